package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// outline lists the definitions, or headings, of a file or package.
func (s *session) outline(a ask) section {
	target := a.subject
	if target == "" {
		return s.everywhere(a)
	}
	if a.command == "method" && identifier().MatchString(target) && ext(target) == "" && target != strings.ToLower(target) {
		return s.methodsOf(target)
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
	var found []hit
	left := 0 // definitions that the tool leaves out
	var out outcome
	if direct := ext(target) == ""; direct {
		found, left, out = s.packageLines(target)
	} else {
		out = s.search(query{pattern: pattern, path: target, why: "outline " + target})
		found = readHits(out.text)
	}
	if ext(target) == "" && out.ok() && len(found) == 0 && a.command == "" && !a.flags["exported"] { // a folder without code
		return s.listFiles(ask{kind: kindList, scope: target, flags: map[string]bool{}})
	}
	if out.state == failed { // not a path from the root: look deeper
		glob := "**/" + target
		if ext(target) == "" {
			glob += "/*"
		}
		out = s.search(query{pattern: pattern, glob: glob, why: "outline " + target})
		found = readHits(out.text)
	}
	if sec, stop := stopped(out); stop {
		return sec
	}
	direct := ext(target) == ""
	var hits []hit
	fenced := map[string]bool{} // by file: within a block of code, where "#" begins a comment
	for _, h := range found {
		name := definedName(h.text)
		trimmed := strings.TrimSpace(h.text)
		switch {
		case ext(h.path) == "md" && fence().MatchString(h.text):
			fenced[h.path] = !fenced[h.path]
		case fenced[h.path]:
		case direct && (isTest(h.path) || inData(h.path)):
		case direct && strings.Contains(strings.TrimPrefix(h.path, target+"/"), "/") && ext(h.path) == "go":
		case groupLine().MatchString(trimmed):
		case ext(h.path) == "go" && strings.HasPrefix(h.text, "\t"):
		case a.flags["exported"] && ext(h.path) == "go" && hidden(h.text):
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
	total := len(hits)
	if what == "definition" {
		total += left
	}
	lead := fmt.Sprintf("%s in %s", count(total, what), target)
	if left > 0 && total == len(hits) && !a.flags["exported"] {
		lead = "at least " + lead
	}
	const most = 60
	if direct && !a.flags["exported"] && total > most {
		// Of a large package, what others see is its outline.
		if public := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return ext(h.path) == "go" && hidden(h.text) }); len(public) > 0 && len(public) < total {
			lead += fmt.Sprintf(", of which %d are exported", len(public))
			hits = public
		}
	}
	lines := quotes(hits, 80)
	if left == 0 {
		lines = append(lines, noted(out)...)
	}
	return section{lead: lead, lines: lines}
}

// packageLines returns the defining lines of the source files right in a
// directory, tests left out, and how many of them a tool left out. Those that
// are exported are always among them.
func (s *session) packageLines(dir string) (hits []hit, left int, out outcome) {
	const all = `^(func|type|var|const) +[A-Za-z_(].*[^(]$|^func .*\($`
	const public = `^func (\((\w+ )?\*?[A-Z][^)]*\) )?[A-Z]|^(type|var|const) +[A-Z]`
	glob := strings.TrimPrefix(ownGo, "**")
	outs := []outcome{
		s.search(query{pattern: all, path: dir, glob: glob, why: "outline " + dir}),
		s.search(query{pattern: public, path: dir, glob: glob, why: "find what " + dir + " exports"}),
		s.search(query{pattern: outlines["py"] + "|" + outlines["js"] + "|" + outlines["rs"], path: dir, exts: sourceExts[1:], why: "outline " + dir}),
	}
	for _, o := range outs {
		if !o.ok() {
			return nil, 0, o
		}
		for _, h := range readHits(o.text) {
			if !slices.Contains(hits, h) {
				hits = append(hits, h)
			}
		}
	}
	left, _ = more(outs[0].text)
	if left > 0 {
		left -= len(hits) - len(readHits(outs[0].text)) - len(readHits(outs[2].text))
	}
	slices.SortStableFunc(hits, func(x, y hit) int {
		if c := strings.Compare(x.path, y.path); c != 0 {
			return c
		}
		return x.line - y.line
	})
	return hits, left, outs[0]
}

// groupLine opens a group of declarations, which is none itself.
var groupLine = lazily(`^(?:const|var|type|import) \($`)

// hidden reports whether a line of Go defines something that is not exported.
func hidden(l string) bool {
	name := definedName(l)
	return name == "" || name[0] < 'A' || name[0] > 'Z' || receiverHidden(l)
}

// everywhere lists the definitions of one kind in the whole project, for kinds
// that are rare enough to be listed.
func (s *session) everywhere(a ask) section {
	pattern, ok := map[string]string{
		"interface": `^(type +\w+(\[[^]]*\])? +|\s*(export )?)interface\b`,
		"trait":     `^\s*(pub(\([a-z]+\))? )?trait +\w`,
		"struct":    `^(type +\w+(\[[^]]*\])? +|\s*(pub(\([a-z]+\))? )?)struct\b`,
		"class":     `^\s*(export )?(abstract )?class +\w`,
		"target":    `^[A-Za-z][\w.-]*:($|[^=])`,
	}[a.command]
	if !ok {
		return undone("it does not say of what: name a file or a package")
	}
	q := query{pattern: pattern, exts: sourceExts, why: "find every " + a.command}
	if a.command == "target" {
		q = query{pattern: pattern, glob: "**/{Makefile,makefile,GNUmakefile,*.mk}", why: "find the targets"}
	}
	out := s.search(q)
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := slices.DeleteFunc(readHits(out.text), func(h hit) bool { return isTest(h.path) || inData(h.path) })
	return section{
		lead:  fmt.Sprintf("%s%s in %s, tests left out", atLeast(out), count(len(hits), a.command), count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 100), noted(out)...),
	}
}

// methodsOf lists the methods of a Go type.
func (s *session) methodsOf(name string) section {
	_, base := splitName(name)
	out := s.search(query{pattern: `^func \(([A-Za-z_]\w* )?\*?` + regexp.QuoteMeta(base) + `(\[[^]]*\])?\) `, exts: []string{"go"}, why: "find the methods of " + base})
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(readHits(out.text))
	return section{lead: fmt.Sprintf("%s%s of %s", atLeast(out), count(len(hits), "method"), name), lines: append(quotes(hits, 80), noted(out)...)}
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
