package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// define answers where something is defined, with its doc comment.
func (s *session) define(a ask) section {
	if a.subject == "" {
		return undone("it does not say of what")
	}
	if a.flags["quoted"] && !identifier().MatchString(a.subject) {
		return s.textInCode(a)
	}
	if !identifier().MatchString(a.subject) || a.command != "" && strings.ToLower(a.subject) == a.subject || a.flags["loose"] && strings.ToLower(a.subject) == a.subject {
		return s.locate(a)
	}
	qualifier, base := splitName(a.subject)
	out := s.search(query{pattern: definition(base), path: a.scope, exts: orExts(a.exts), why: "find the definition of " + base})
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(under(readHits(out.text), a.scope))
	if q := qualified(hits, qualifier, base); len(q) > 0 {
		hits = q
	}
	if len(hits) == 0 && a.flags["doc"] {
		return s.passages(a)
	}
	if len(hits) == 0 {
		return s.locate(a)
	}
	// The file that is named after it is the likelier place.
	slices.SortStableFunc(hits, func(x, y hit) int { return namesake(y.path, base) - namesake(x.path, base) })
	if own := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return inData(h.path) || isTest(h.path) }); len(own) > 0 {
		hits = own
	}
	sec := section{lead: fmt.Sprintf("%s of %s", count(len(hits), "definition"), a.subject)}
	const shown = 6
	for i, h := range hits {
		if i == shown {
			sec.lines = append(sec.lines, fmt.Sprintf("… %s more", count(len(hits)-i, "definition")))
			break
		}
		if i < 3 {
			doc := s.docOf(h)
			sec.waiting = sec.waiting || doc == nil
			sec.lines = append(sec.lines, quotes(doc, 12)...)
		}
		sec.lines = append(sec.lines, h.quote())
	}
	sec.lines = append(sec.lines, noted(out)...)
	return sec
}

// textInCode answers where a text that the request quotes stands in code.
func (s *session) textInCode(a ask) section {
	out := s.search(query{pattern: regexp.QuoteMeta(a.subject), path: a.scope, exts: orExts(a.exts), why: "find where “" + clip(a.subject, 40) + "” stands"})
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(under(readHits(out.text), a.scope))
	own := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return isTest(h.path) || inData(h.path) || isComment(h.text) })
	sec := section{lead: fmt.Sprintf("“%s”: %s of code in %s", a.subject, count(len(own), "line"), count(distinctFiles(own), "file"))}
	if n := len(hits) - len(own); n > 0 {
		sec.lead += fmt.Sprintf("; %s in tests and comments", group(n))
	}
	if len(own) == 0 {
		own = hits
	}
	sec.lines = append(quotes(own, 40), noted(out)...)
	return sec
}

func orExts(exts []string) []string {
	if len(exts) > 0 {
		return exts
	}
	return sourceExts
}

// namesake is 1 for a file named after a definition, else 0.
func namesake(file, name string) int {
	if fold(strings.TrimSuffix(path.Base(file), path.Ext(file))) == fold(name) {
		return 1
	}
	return 0
}

// qualified keeps the hits that fit a package or receiver name.
func qualified(hits []hit, qualifier, base string) []hit {
	if qualifier == "" {
		return nil
	}
	var out []hit
	method := regexp.MustCompile(`\(\s*\w*\s*\*?` + regexp.QuoteMeta(qualifier) + `(\[[^)]*\])?\s*\)\s*` + regexp.QuoteMeta(base) + `\b`)
	for _, h := range hits {
		if method.MatchString(h.text) || path.Base(path.Dir(h.path)) == qualifier ||
			strings.TrimSuffix(path.Base(h.path), path.Ext(h.path)) == qualifier {
			out = append(out, h)
		}
	}
	return out
}

// docOf returns the comment lines right above a definition, or the docstring
// below it: empty when there are none, nil while the file is being read.
func (s *session) docOf(h hit) []hit {
	const above, below = 12, 4
	from := max(1, h.line-above)
	out := s.read(h.path, from, h.line-from+below)
	switch out.state {
	case waiting:
		return nil
	case ready:
	default:
		return []hit{}
	}
	lines := readLines(h.path, out.text, from)
	at := slices.IndexFunc(lines, func(l hit) bool { return l.line == h.line })
	doc := []hit{}
	if at < 0 {
		return doc
	}
	for i := at - 1; i >= 0 && isComment(lines[i].text); i-- {
		doc = append([]hit{lines[i]}, doc...)
	}
	if ext(h.path) == "py" {
		for _, l := range lines[at+1:] {
			t := strings.TrimSpace(l.text)
			if strings.HasPrefix(t, `"""`) || strings.HasPrefix(t, `'''`) {
				return append(doc, l)
			}
			if strings.HasSuffix(strings.TrimSpace(lines[at].text), ":") {
				break
			}
		}
	}
	return doc
}

func isComment(l string) bool {
	l = strings.TrimSpace(l)
	for _, p := range []string{"//", "#", "/*", "*", "--", ";;"} {
		if strings.HasPrefix(l, p) && !strings.HasPrefix(l, "#define") && !strings.HasPrefix(l, "#include") {
			return true
		}
	}
	return false
}

// kindWords say what a phrase is about without naming it.
var kindWords = set("tool code logic implementation function func type package file part thing class module method handling command feature struct interface")

// locate answers where something is that is described rather than named: by
// the names of definitions, of files, and by string constants.
func (s *session) locate(a ask) section {
	var main, weak []string
	for _, w := range words(a.subject) {
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
		stems[i] = regexp.QuoteMeta(stem(w))
	}
	alt := strings.Join(stems, "|")
	defs := s.search(query{pattern: `^\s*` + modifiers + opener + ` +([A-Za-z_(*$].*)?(` + alt + `)`, path: a.scope, exts: orExts(a.exts), fold: true, why: "find definitions named after " + strings.Join(main, ", ")})
	docs := s.search(query{pattern: `^\s*(//|#|/?\*+|""")[^:]*\b(` + alt + `)`, path: a.scope, exts: orExts(a.exts), fold: true, why: "find comments about " + strings.Join(main, ", ")})
	names := s.search(query{pattern: `["'` + "`" + `](` + strings.Join(quoteAll(main), "|") + `)["'` + "`" + `]`, path: a.scope, exts: orExts(a.exts), why: "find names in quotes"})
	if sec, stop := stopped(defs, docs, names); stop {
		return sec
	}
	type scored struct {
		hit
		score float64
	}
	found := map[string][]scored{}
	total := map[string]float64{}
	add := func(out outcome, base float64, nameOnly bool) {
		for _, h := range readHits(out.text) {
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
	var files []string
	for f := range found {
		files = append(files, f)
		// A file with several things about it is likelier than one with one.
		total[f] += min(float64(len(found[f])), 8) * 0.3
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

// usesOf answers who calls or uses something.
func (s *session) usesOf(a ask) section {
	if !identifier().MatchString(a.subject) {
		return s.passages(a)
	}
	_, base := splitName(a.subject)
	out := s.search(query{pattern: `\b` + regexp.QuoteMeta(base) + `\b`, path: a.scope, exts: orExts(a.exts), why: "find uses of " + base})
	if sec, stop := stopped(out); stop {
		return sec
	}
	isDef := regexp.MustCompile(definition(base))
	var uses []hit
	defined := 0
	for _, h := range byOwnFirst(under(readHits(out.text), a.scope)) {
		switch {
		case isDef.MatchString(h.text):
			defined++
		case isComment(h.text):
		default:
			uses = append(uses, h)
		}
	}
	calls := regexp.MustCompile(`\b` + regexp.QuoteMeta(base) + `(\[[^\]]*\])?\(`)
	what := "use"
	if wantCalls().MatchString(a.text) {
		if c := slices.DeleteFunc(slices.Clone(uses), func(h hit) bool { return !calls.MatchString(h.text) }); len(c) > 0 {
			uses, what = c, "call"
		}
	}
	if len(uses) == 0 {
		return section{lead: fmt.Sprintf("nothing uses %s: %s, no use outside comments", a.subject, count(defined, "definition"))}
	}
	sec := section{lead: fmt.Sprintf("%s of %s in %s", count(len(uses), what), a.subject, count(distinctFiles(uses), "file"))}
	// Which function a use stands in takes the outlines of the files; for more
	// than a few files that costs more than it tells.
	outline := map[string][]hit{}
	if distinctFiles(uses) <= 8 {
		for _, h := range uses {
			pattern, ok := outlineFor(ext(h.path))
			if _, seen := outline[h.path]; seen || !ok {
				continue
			}
			o := s.search(query{pattern: pattern, path: h.path, why: "see what encloses the uses"})
			sec.waiting = sec.waiting || o.state == waiting
			outline[h.path] = readHits(o.text)
		}
	}
	const shown = 40
	for i, h := range uses {
		if i == shown {
			sec.lines = append(sec.lines, fmt.Sprintf("… %s more", count(len(uses)-i, what)))
			break
		}
		line := h.quote()
		if in := enclosing(outline[h.path], h.line); in != "" {
			line += "   [in " + in + "]"
		}
		sec.lines = append(sec.lines, line)
	}
	sec.lines = append(sec.lines, noted(out)...)
	return sec
}

var wantCalls = lazily(`(?i)\bcall|invoke|调用`)

// enclosing returns the name of the last definition above a line that is a
// function's or a method's.
func enclosing(outline []hit, line int) string {
	in := ""
	for _, h := range outline {
		if h.line >= line {
			break
		}
		if strings.Contains(h.text, "(") && nameAfter().MatchString(h.text) {
			in = definedName(h.text)
		}
	}
	return in
}

// importsOf answers who imports a package, or what one imports.
func (s *session) importsOf(a ask) section {
	name := cleanPath(strings.TrimSuffix(a.subject, " package"))
	if name == "" {
		return undone("it does not say of what")
	}
	q := query{why: "find imports"}
	lead := ""
	if a.flags["of"] {
		q.path = name
		q.pattern = `^\s*(import )?(_ |\. |\w+ )?"[\w./-]+"$|^\s*(import|from|use) \w|^#include |require\(`
		lead = "imports in " + name
	} else {
		n := regexp.QuoteMeta(name)
		q.path, q.exts = a.scope, orExts(a.exts)
		q.pattern = `^\s*(import )?(_ |\. |\w+ )?"([\w./-]+/)?` + n + `"|^\s*from +[\w.]*` + n + `\b.* import|^\s*import +([\w.]+\.)?` + n + `\b|(from|require\() *['"][^'"]*` + n + `['"]|^use .*\b` + n + `\b|^#include.*\b` + n
		lead = "imports of " + name
	}
	out := s.search(q)
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(readHits(out.text))
	return section{
		lead:  fmt.Sprintf("%s: %s in %s", lead, count(len(hits), "line"), count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 60), noted(out)...),
	}
}

// grep answers searches for a text, and for marker comments.
func (s *session) grep(a ask) section {
	q := query{path: a.scope, exts: a.exts}
	what := a.subject
	if a.kind == kindMarks {
		q.pattern = `(^|//|#|/\*|<!--|--|;|\*)\s*(` + a.subject + `)\b`
		what = strings.ReplaceAll(a.subject, "|", " and ") + " comment"
	} else {
		if what == "" {
			return undone("it does not say what to search for")
		}
		if q.pattern = what; !a.flags["regexp"] {
			q.pattern = regexp.QuoteMeta(what)
		}
		q.fold = !a.flags["quoted"] && strings.ToLower(what) == what
	}
	out := s.search(q)
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(under(readHits(out.text), a.scope))
	if a.kind == kindMarks {
		hits = slices.DeleteFunc(hits, func(h hit) bool { return inString(h.text, a.subject) })
		own := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return inData(h.path) })
		sec := section{lead: fmt.Sprintf("%s in %s", count(len(own), what), count(distinctFiles(own), "file"))}
		if n := len(hits) - len(own); n > 0 {
			if len(own) == 0 {
				sec.lead = "no " + what + " in the project's own files"
			}
			sec.lead += fmt.Sprintf("; %s in sample data left out", count(n, "line"))
		}
		sec.lines = append(quotes(own, 60), noted(out)...) // what samples hold is nobody's work
		return sec
	}
	if len(hits) == 0 && len(strings.Fields(what)) > 1 && !a.flags["quoted"] {
		return s.passages(a)
	}
	return section{
		lead:  fmt.Sprintf("“%s”: %s in %s", what, count(len(hits), "line"), count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 60), noted(out)...),
	}
}

// inString reports whether a marker stands in a string rather than a comment:
// after a quote that is still open.
func inString(l, marker string) bool {
	at := len(l)
	for m := range strings.SplitSeq(marker, "|") {
		if i := strings.Index(l, m); i >= 0 {
			at = min(at, i)
		}
	}
	head := strings.ReplaceAll(l[:at], `\"`, "")
	return strings.Count(head, `"`)%2 == 1 || strings.Count(head, "`")%2 == 1
}

// outline lists the definitions, or headings, of a file or package.
func (s *session) outline(a ask) section {
	target := a.subject
	if target == "" {
		return undone("it does not say of what")
	}
	e := ext(target)
	pattern, isFile := outlineFor(e)
	heads := strings.HasPrefix(a.command, "heading") || strings.HasPrefix(a.command, "section")
	if !isFile {
		if heads || docName().MatchString(target) {
			files, sec, stop := s.resolve(target)
			if stop {
				return sec
			}
			if files = slices.DeleteFunc(files, func(f string) bool { return ext(f) != "md" }); len(files) == 0 {
				return section{lead: "no document named " + target}
			}
			target, pattern = files[0], outlines["md"]
		} else {
			pattern = outlines["go"] + "|" + outlines["py"] + "|" + outlines["js"] + "|" + outlines["rs"]
		}
	}
	q := query{pattern: pattern, path: target, why: "outline " + target}
	if ext(target) == "" {
		q.exts = sourceExts
	}
	out := s.search(q)
	if out.state == failed { // not a path from the root: look deeper
		glob := "**/" + target
		if ext(target) == "" {
			glob += "/*"
		}
		out = s.search(query{pattern: pattern, glob: glob, why: "outline " + target})
	}
	if sec, stop := stopped(out); stop {
		return sec
	}
	direct := ext(target) == ""
	var hits []hit
	for _, h := range readHits(out.text) {
		name := definedName(h.text)
		trimmed := strings.TrimSpace(h.text)
		switch {
		case direct && (isTest(h.path) || inData(h.path)):
		case direct && strings.Contains(strings.TrimPrefix(h.path, target+"/"), "/") && ext(h.path) == "go":
		case strings.HasSuffix(trimmed, "("):
		case ext(h.path) == "go" && strings.HasPrefix(h.text, "\t"):
		case a.flags["exported"] && ext(h.path) == "go" && (name == "" || name[0] < 'A' || name[0] > 'Z'):
		case a.flags["exported"] && ext(h.path) == "go" && receiverHidden(h.text):
		case a.flags["exported"] && ext(h.path) == "py" && strings.HasPrefix(name, "_"):
		case !kindFits(a.command, trimmed):
		default:
			hits = append(hits, h)
		}
	}
	what := "definition"
	switch {
	case ext(target) == "md":
		what = "heading"
	case a.command == "function" || a.command == "func":
		what = "function"
	case a.command == "type" || a.command == "method" || a.command == "constant" || a.command == "struct" || a.command == "interface":
		what = a.command
	case a.flags["exported"]:
		what = "exported definition"
	}
	return section{
		lead:  fmt.Sprintf("%s in %s", count(len(hits), what), target),
		lines: append(quotes(hits, 80), noted(out)...),
	}
}

var receiver = lazily(`^func \(\w* ?\*?([A-Za-z]\w*)`)

// receiverHidden reports whether a Go method belongs to an unexported type.
func receiverHidden(l string) bool {
	m := receiver().FindStringSubmatch(l)
	return m != nil && m[1][0] >= 'a'
}

// kindFits reports whether a definition is of the kind that was asked for.
func kindFits(kind, l string) bool {
	first := strings.Fields(leading().ReplaceAllString(l, ""))
	if len(first) == 0 {
		return false
	}
	switch w := first[0]; kind {
	case "function", "func":
		return w == "func" || w == "def" || w == "fn" || strings.HasPrefix(w, "function") || strings.HasPrefix(l, "async def")
	case "method":
		return strings.HasPrefix(l, "func (") || w == "def" || w == "fn"
	case "type":
		return w == "type" || w == "class" || w == "struct" || w == "interface" || w == "enum" || w == "trait"
	case "classe", "class":
		return w == "class"
	case "struct":
		return w == "struct" || w == "type" && strings.Contains(l, " struct")
	case "interface":
		return w == "interface" || w == "trait" || w == "type" && strings.Contains(l, " interface")
	case "constant":
		return w == "const"
	}
	return true
}

// docName is what documents are called without their extension.
var docName = lazily(`(?i)^(readme|spec|design|changelog|contributing|architecture|agents)$`)

// leading are the modifiers in front of a definition.
var leading = lazily(`^` + modifiers)
