package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// kindWords say what a phrase is about without naming it.
var kindWords = set("tool code logic implementation function func type package file part thing class module method handling command feature struct interface")

// locate answers where something is that is described rather than named: by
// the names of definitions, of files, and by string constants.
func (s *session) locate(a ask) section {
	var main, weak []string
	for _, w := range words(joinHyphens(a.subject)) {
		low := strings.ToLower(w)
		switch {
		case stopwords[low] || len(low) < 2:
		case kindWords[low]:
			weak = append(weak, stem(low))
		default:
			main = append(main, low)
		}
	}
	if len(main) == 0 {
		main, weak = weak, nil
	}
	if a.command != "" {
		weak = append(weak, stem(strings.ToLower(a.command)))
	}
	if len(main) == 0 || len(main) > 8 {
		return undone(fmt.Sprintf("“%s” has no word to look for", a.subject))
	}
	stems := make([]string, len(main))
	for i, w := range main {
		stems[i] = eitherSpelling(stem(w))
	}
	defs, outDefs := s.searchAny(stems, query{pattern: `^\s*` + modifiers + opener + ` +([A-Za-z_(*$].*)?TEXT`, path: a.scope, exts: orExts(a.exts), fold: true, why: "find definitions named after " + strings.Join(main, ", ")})
	docs, outDocs := s.searchAny(stems, query{pattern: `^\s*(//|#|/?\*+|""")[^:]*\bTEXT`, path: a.scope, exts: orExts(a.exts), fold: true, why: "find comments about " + strings.Join(main, ", ")})
	names, outNames := s.searchAny(quoteAll(main), query{pattern: `["'` + "`" + `]TEXT["'` + "`" + `]`, path: a.scope, exts: orExts(a.exts), why: "find names in quotes"})
	globs := make([]string, len(main))
	for i, w := range main {
		globs[i] = foldCase(w)
	}
	named := s.find("**/*"+strings.Join(globs, "*")+"*", a.scope)
	if sec, stop := stopped(outDefs, outDocs, outNames); stop {
		return sec
	}
	if named.state == waiting {
		return wait()
	}
	type scored struct {
		hit
		score float64
	}
	whole, phrase := strings.Join(main, ""), fold(joinHyphens(a.subject))
	found := map[string][]scored{}
	total := map[string]float64{}
	add := func(hits []hit, base float64, nameOnly bool) {
		for _, h := range hits {
			text := h.text
			if nameOnly {
				text = definedName(h.text)
			}
			line, where := tokens(text), strings.ToLower(h.path)
			score, covered := 0.0, 0
			for _, st := range main {
				st = stem(st)
				if slices.Contains(line, st) {
					score += base
					covered++
				} else if nameOnly && strings.Contains(strings.ToLower(text), st) {
					score += base / 2
				}
				if strings.Contains(where, st) {
					score += 1.5
				}
			}
			for _, st := range weak {
				if slices.Contains(line, st) {
					score += base / 2
				}
				if score > 0 && strings.Contains(path.Base(where), st) {
					score++
				}
			}
			if nameOnly && openLine().MatchString(h.text) {
				if fold(text) == whole {
					score += base / 2 // it is called just that
				}
				if nameAfter().MatchString(h.text) && isWork().MatchString(h.text) {
					score += 0.5
				}
			}
			if score < base {
				continue
			}
			if covered == len(main) && covered > 1 {
				score *= 1.5
			}
			switch {
			case inData(h.path):
				score /= 8
			case isTest(h.path):
				score /= 4
			}
			found[h.path] = append(found[h.path], scored{h, score})
			total[h.path] = max(total[h.path], score)
		}
	}
	add(defs, 4, true)
	add(docs, 1.5, false)
	add(names, 3, false)
	// A file of just that name, though no line of it says so.
	var same []string
	if named.ok() {
		same = readPaths(named.text)
	}
	for _, f := range same {
		pattern, ok := outlineFor(ext(f))
		stem := fold(strings.TrimSuffix(path.Base(f), path.Ext(f)))
		if !ok || len(found[f]) > 0 || inData(f) || isTest(f) || stem != phrase && stem != whole {
			continue
		}
		o := s.search(query{pattern: pattern, path: f, why: "outline " + f})
		if o.state == waiting {
			return wait()
		}
		for _, h := range readHits(o.text) {
			if !groupLine().MatchString(h.text) && len(found[f]) < 4 {
				found[f] = append(found[f], scored{h, 4})
				total[f] = 4
			}
		}
	}
	var files []string
	for f := range found {
		files = append(files, f)
		// A file with several things about it is likelier than one with one.
		total[f] += min(float64(len(found[f])), 8) * 0.3
		switch fold(strings.TrimSuffix(path.Base(f), path.Ext(f))) { // a file of just that name
		case phrase:
			total[f] += 7
		case whole:
			if !slices.ContainsFunc(files, func(f string) bool { return fold(strings.TrimSuffix(path.Base(f), path.Ext(f))) == phrase }) {
				total[f] += 3
			}
		}
	}
	// What belongs together lies together.
	home := ""
	for _, f := range files {
		if home == "" || total[f] > total[home] || total[f] == total[home] && f < home {
			home = f
		}
	}
	beside := 3.0
	if phrase != whole && home != "" && fold(strings.TrimSuffix(path.Base(home), path.Ext(home))) == phrase {
		beside = 5 // the name says it all, so that this is the place
	}
	for _, f := range files {
		if f != home && !isTest(f) && path.Dir(f) == path.Dir(home) {
			total[f] += beside
		}
	}
	slices.SortFunc(files, func(x, y string) int {
		if total[x] != total[y] {
			if total[x] > total[y] {
				return -1
			}
			return 1
		}
		return strings.Compare(x, y)
	})
	if len(files) == 0 {
		return section{lead: fmt.Sprintf("nothing defined or commented here is named after “%s”", a.subject)}
	}
	sec := section{lead: fmt.Sprintf("closest to “%s”, by names and comments", a.subject)}
	for i, f := range files {
		if i == 3 || i > 0 && total[f] < total[files[0]]/2 {
			break
		}
		best := found[f]
		slices.SortStableFunc(best, func(x, y scored) int {
			switch {
			case x.score > y.score:
				return -1
			case x.score < y.score:
				return 1
			}
			return x.line - y.line
		})
		picked := best[:min(len(best), 4)]
		for _, c := range slices.Clone(picked) {
			if !isComment(c.text) {
				continue
			}
			for _, h := range best { // what a comment is about says more than the next comment
				if !isComment(h.text) && h.line > c.line && h.line <= c.line+4 {
					picked = append(slices.Clone(picked), h)
				}
			}
		}
		best = picked
		slices.SortFunc(best, func(x, y scored) int { return x.line - y.line })
		last := 0
		for _, h := range best {
			if h.line != last {
				sec.lines = append(sec.lines, h.hit.quote())
			}
			last = h.line
		}
	}
	return sec
}

// isWork is the start of a definition that does something, or says what there is.
var isWork = lazily(`^\s*` + modifiers + `(func|function\*?|def|class|type|struct|interface|fn|trait)\b`)

func quoteAll(ws []string) []string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = regexp.QuoteMeta(w)
	}
	return out
}

var nameAfter = lazily(`\b(?:func|function\*?|def|class|type|struct|interface|enum|trait|fn|mod|const|let|var|static|record|union|namespace)\s+(?:\([^)]*\)\s*)?([\w$]+)`)

// definedName returns the name that a line defines, else the line.
func definedName(l string) string {
	if m := nameAfter().FindStringSubmatch(l); m != nil {
		return m[1]
	}
	return l
}
