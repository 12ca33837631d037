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
	out := s.search(definitionQuery(base, a.scope, orExts(a.exts)))
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(proper(under(definitionsIn(out, base), a.scope)))
	if a.flags["doc"] && qualifier == "" && strings.ToLower(base) == base {
		// A word can be a package's name.
		files := s.find("**/"+base+"/*.go", "")
		if sec, stop := stopped(files); stop {
			return sec
		}
		for _, p := range readPaths(files.text) {
			if dir := path.Dir(p); path.Base(dir) == base && !inData(p) && !isTest(p) {
				if path.Dir(dir) == "cmd" { // a program's name is mostly the project's
					return s.summary(ask{kind: kindSummary, text: a.text, flags: map[string]bool{}})
				}
				return s.summaryOfPackage(dir)
			}
		}
	}
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
	sec := section{lead: fmt.Sprintf("%s%s of %s", atLeast(out), count(len(hits), "definition"), a.subject)}
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

func orExts(exts []string) []string {
	if len(exts) > 0 {
		return exts
	}
	return sourceExts
}

var (
	openLine  = lazily(`^\s*` + modifiers + opener + `\b`)
	localLine = lazily(`^\s+(?:const|let|var|static)\b`)
	bareLine  = lazily(`^\t\w+ *(?://.*)?$`)
)

// proper leaves out what only looks like a definition where there are real
// ones: embedded fields, which look like constants in a block, and variables
// inside of functions.
func proper(hits []hit) []hit {
	top := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return bareLine().MatchString(h.text) || localLine().MatchString(h.text) })
	if slices.ContainsFunc(top, func(h hit) bool { return openLine().MatchString(h.text) && !isTest(h.path) }) {
		return top
	}
	return hits
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
		case isComment(h.text), packageClause().MatchString(h.text):
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
	sec := section{lead: fmt.Sprintf("%s%s of %s in %s", atLeast(out), count(len(uses), what), a.subject, count(distinctFiles(uses), "file"))}
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

var packageClause = lazily(`^package \w+$`)

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
	if a.flags["rules"] {
		return s.importRules(a)
	}
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
		lead:  fmt.Sprintf("%s: %s%s in %s", lead, atLeast(out), count(len(hits), "line"), count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 60), noted(out)...),
	}
}

var arrow = lazily(`^\s*([\w./*-]+)\s+(?:->|→)\s*([\w./* ,-]*)$`)

// importRules quotes the lines of documents that say which package may import
// which ("run -> . policy").
func (s *session) importRules(a ask) section {
	out := s.search(query{pattern: `^ *[A-Za-z0-9_./*-]+ +(->|→) *[A-Za-z0-9_./* ,-]*$`, exts: []string{"md"}, why: "find the import rules"})
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := slices.DeleteFunc(readHits(out.text), func(h hit) bool { return inData(h.path) })
	if len(hits) == 0 {
		a.kind = kindPassages
		return s.passages(a)
	}
	lead := "import rules"
	switch {
	case a.subject != "":
		lead += " that name " + a.subject + " on the right"
		hits = slices.DeleteFunc(hits, func(h hit) bool {
			m := arrow().FindStringSubmatch(h.text)
			return m == nil || !slices.ContainsFunc(strings.Fields(m[2]), func(to string) bool { return to == "*" || to == a.subject })
		})
	case a.scope != "":
		lead += " of " + a.scope
		hits = slices.DeleteFunc(hits, func(h hit) bool {
			m := arrow().FindStringSubmatch(h.text)
			if m == nil {
				return true
			}
			match, err := path.Match(m[1], a.scope)
			return err != nil || !match
		})
	}
	return section{
		lead:  fmt.Sprintf("%s: %s in %s", lead, count(len(hits), "line"), count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 80), noted(out)...),
	}
}
