package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var joinable = lazily(`^(built|set|sub|plug|log|sign|opt|time|hand|fall|roll|start|clean|look)(in|up|out|off|back|agent|process|packag|command)`)

// eitherSpelling returns a pattern for a stem, with or without a hyphen.
func eitherSpelling(stem string) string {
	return joinable().ReplaceAllString(regexp.QuoteMeta(stem), "$1-?$2")
}

// imperative is a verb of the request, not of its topic.
var imperative = lazily(`(?i)^(?:list|find|show|quote|look up|print|summari[sz]e|report)\s+`)

// passages quotes what documents and comments say closest to a topic. It does
// not know what they mean, and the answer says so.
func (s *session) passages(a ask) section {
	topic := a.subject
	if topic == "" || a.kind == kindPassages && a.scope == "" {
		topic = a.text
	}
	stems := content(imperative().ReplaceAllString(topic, ""))
	if len(stems) == 0 {
		return undone(beyond)
	}
	stems = stems[:min(len(stems), 10)]
	if a.kind == kindTopic {
		if all, file := document(a.scope); file {
			return s.passagesOf(a, stems)
		} else if all {
			a.scope = ""
		}
	}
	parts := make([]string, len(stems))
	for i, st := range stems {
		parts[i] = eitherSpelling(st)
	}
	prose, outProse := s.searchAny(parts, query{pattern: `TEXT`, path: a.scope, exts: []string{"md", "txt", "rst"}, fold: true, why: "what the documents say on " + strings.Join(stems, ", ")})
	code, outCode := s.searchAny(parts, query{pattern: `^\s*(//|#|/?\*+|"""|` + opener + ` ).*TEXT`, path: a.scope, exts: sourceExts, fold: true, why: "what comments say on " + strings.Join(stems, ", ")})
	if sec, stop := stopped(outProse, outCode); stop {
		return sec
	}
	docs, pending := s.docsAbout(prose, stems)
	comments, more := s.commentsAbout(code, stems)
	if pending || more {
		return wait()
	}
	// What was written to be read comes first.
	all := append(docs, comments...)
	scores := weigh(all, stems, a.text)
	order := whole(all, best(scores[:len(docs)], 4), stems)
	for _, i := range best(scores[len(docs):], 4) {
		order = append(order, len(docs)+i)
	}
	if len(order) == 0 {
		return section{lead: "no document or comment here mentions “" + a.topic() + "”"}
	}
	return section{
		lead:  "closest to “" + a.topic() + "” in documents and comments (quoted, not interpreted)",
		lines: write(all, order, stems),
	}
}

// whole puts a section that is about just the topic in front, all of it.
func whole(all []passage, order []int, stems []string) []int {
	for _, i := range order {
		under := all[i].under
		if under.line == 0 || !isAbout(under.text, stems) {
			continue
		}
		var out []int
		for j := range all {
			if all[j].under == under && len(out) < passageRows {
				out = append(out, j)
			}
		}
		for _, j := range order {
			if !slices.Contains(out, j) {
				out = append(out, j)
			}
		}
		return out
	}
	return order
}

// directive is a comment for a tool.
var directive = lazily(`^\s*//(?:go:|nolint|export |line )`)

// ours leaves out sample data and tests, and counts for each line how many of
// the stems it has.
func ours(hits []hit, stems []string) (own []hit, covers []int) {
	for _, h := range hits {
		if inData(h.path) || isTest(h.path) || directive().MatchString(h.text) {
			continue
		}
		n := 0
		for _, st := range stems {
			if slices.Contains(tokens(h.text+" "+path.Base(h.path)), st) {
				n++
			}
		}
		own, covers = append(own, h), append(covers, n)
	}
	return own, covers
}

// docsAbout reads the documents whose lines say most on a topic.
func (s *session) docsAbout(hits []hit, stems []string) (all []passage, pending bool) {
	const most = 4 // documents
	hits, covers := ours(hits, stems)
	var files []string
	score := map[string]float64{}
	for i, h := range hits {
		if score[h.path] == 0 {
			files = append(files, h.path)
		}
		n := float64(covers[i])
		if heading().MatchString(h.text) && isAbout(h.text, stems) {
			n += 2
		} else if m := boldLead().FindStringSubmatch(h.text); m != nil && isAbout(m[1], stems) {
			n++
		}
		score[h.path] = max(score[h.path], n) + 0.05
	}
	slices.SortStableFunc(files, func(x, y string) int {
		switch dx, dy := score[x]-0.3*float64(strings.Count(x, "/")), score[y]-0.3*float64(strings.Count(y, "/")); {
		case dx > dy:
			return -1
		case dx < dy:
			return 1
		}
		return strings.Compare(x, y)
	})
	for _, f := range files[:min(len(files), most)] {
		out := s.read(f, 1, 0)
		pending = pending || out.state == waiting
		if out.ok() {
			all = append(all, docPassages(readLines(f, out.text, 1))...)
		}
	}
	return all, pending
}

// commentsAbout reads the comments whose lines say most on a topic.
func (s *session) commentsAbout(hits []hit, stems []string) (all []passage, pending bool) {
	const (
		most, perFile = 10, 3
		above, below  = 14, 22 // lines read around each
	)
	hits, covers := ours(hits, stems)
	docs := make([][]string, len(hits))
	for i, h := range hits {
		docs[i] = tokens(h.text + " " + strings.TrimSuffix(path.Base(h.path), path.Ext(h.path)))
	}
	scores := rank(stems, docs)
	for i := range hits {
		scores[i] *= float64(covers[i])
		if !isComment(hits[i].text) {
			scores[i] *= 0.6
		}
	}
	n := map[string]int{}
	seen := map[string]bool{}
	taken := 0
	for _, i := range best(scores, len(hits)) {
		h := hits[i]
		if taken == most {
			break
		}
		if n[h.path]++; n[h.path] > perFile {
			continue
		}
		taken++
		from := max(1, h.line-above)
		out := s.read(h.path, from, h.line-from+below)
		pending = pending || out.state == waiting
		if !out.ok() {
			continue
		}
		for _, p := range commentPassages(readLines(h.path, out.text, from), h.line) {
			if key := fmt.Sprintf("%s:%d", h.path, p.lines[0].line); !seen[key] {
				seen[key] = true
				all = append(all, p)
			}
		}
	}
	return all, pending
}

// topic names what passages are looked for, as it was asked.
func (a ask) topic() string {
	text := a.subject
	if text == "" {
		text = a.text
	}
	if a.kind != kindTopic {
		text = strings.Join(slices.DeleteFunc(strings.Fields(text), func(w string) bool { return stopwords[strings.ToLower(w)] }), " ")
	}
	return clip(text, 80)
}

// document reports whether a request means all documents by a name, or a file.
func document(name string) (all, file bool) {
	switch strings.ToLower(name) {
	case "", "docs", "doc", "documentation", "documents", "document":
		return true, false
	}
	return false, true
}

// passagesOf quotes from one document.
func (s *session) passagesOf(a ask, stems []string) section {
	files, sec, stop := s.resolve(a.scope)
	if stop {
		return sec
	}
	if files = slices.DeleteFunc(files, func(f string) bool {
		return inData(f) && !strings.EqualFold(f, a.scope) || ext(f) != "md" && ext(f) != "txt" && ext(f) != "rst" && !strings.EqualFold(f, a.scope)
	}); len(files) == 0 {
		return section{lead: "no document named " + a.scope}
	}
	if hanText(a.text) { // the translation, where there is one
		slices.SortStableFunc(files, func(x, y string) int { return translated(y) - translated(x) })
	}
	out := s.read(files[0], 1, 0)
	if sec, stop := stopped(out); stop {
		return sec
	}
	all := docPassages(readLines(files[0], out.text, 1))
	order := best(weigh(all, stems, ""), 6)
	if len(order) == 0 {
		return section{lead: fmt.Sprintf("%s has no line on “%s”", files[0], a.topic())}
	}
	slices.Sort(order)
	order = whole(all, order, stems)
	return section{
		lead:  fmt.Sprintf("%s on “%s” (quoted, not interpreted)", files[0], a.topic()),
		lines: append(write(all, order, stems), noted(out)...),
	}
}

var zhName = lazily(`(?i)[._-](?:zh|cn)\b`)

// translated is 1 for a document whose name says that it is in Chinese.
func translated(file string) int {
	if zhName().MatchString(path.Base(file)) {
		return 1
	}
	return 0
}

// best returns the indexes of the n highest scores above 0, highest first; those
// far below the highest are left out.
func best(scores []float64, n int) []int {
	var order []int
	for i, sc := range scores {
		if sc > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return a - b
	})
	for i, at := range order {
		if i == n || scores[at] < scores[order[0]]/4 {
			return order[:i]
		}
	}
	return order
}
