package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var packageDoc = lazily(`^\s*(//|/\*)\s*(Package|Command) (\w[\w-]*)`)

// packages answers which packages there are, each with the first sentence of
// its doc comment.
func (s *session) packages(a ask) section {
	docs := s.search(query{pattern: `^(// |/\* *)(Package|Command) \w`, path: a.scope, exts: []string{"go"}, why: "find the packages' doc comments"})
	clauses := s.everyGo(query{pattern: `^package \w+`, path: a.scope, why: "find the packages"}, false)
	others := s.find("**/{__init__.py,package.json,Cargo.toml,pom.xml}", a.scope)
	if sec, stop := stopped(append(clauses, docs, others)...); stop {
		return sec
	}
	dirs := []string{}
	named := map[string]hit{}
	var found []hit
	for _, o := range clauses {
		found = append(found, readHits(o.text)...)
	}
	for _, h := range found {
		dir := path.Dir(h.path)
		if inData(h.path) || isTest(h.path) {
			continue
		}
		if _, ok := named[dir]; !ok {
			dirs, named[dir] = append(dirs, dir), h
		}
	}
	doc := map[string]hit{}
	for _, h := range readHits(docs.text) {
		dir := path.Dir(h.path)
		if _, ok := named[dir]; !ok && !inData(h.path) && !isTest(h.path) {
			dirs, named[dir] = append(dirs, dir), h
		}
		if m := packageDoc().FindStringSubmatch(h.text); m == nil || inData(h.path) || isTest(h.path) {
			continue
		}
		if _, ok := doc[dir]; !ok {
			doc[dir] = h
		}
	}
	slices.Sort(dirs)
	var sec section
	const most = 40
	var outs []outcome
	for i, dir := range dirs {
		if i == most {
			sec.lines = append(sec.lines, fmt.Sprintf("… %s more", count(len(dirs)-i, "package")))
			break
		}
		d, ok := doc[dir]
		if !ok {
			h := named[dir]
			sec.lines = append(sec.lines, h.quote()+"   [no doc comment]")
			continue
		}
		o := s.read(d.path, d.line, 8)
		outs = append(outs, o)
		if o.ok() {
			sec.lines = append(sec.lines, sentence(readLines(d.path, o.text, d.line)))
		} else if o.state != waiting {
			sec.lines = append(sec.lines, d.quote())
		}
	}
	// Other languages' packages: their first doc line, or their manifest.
	n := len(dirs)
	for _, p := range readPaths(others.text) {
		if inData(p) || n >= most {
			continue
		}
		n++
		o := s.read(p, 1, 8)
		outs = append(outs, o)
		sec.lines = append(sec.lines, manifestLine(p, readLines(p, o.text, 1)))
	}
	for _, o := range outs {
		if o.state == waiting {
			return wait()
		}
	}
	if n == 0 {
		return s.topFolders(a)
	}
	sec.lead = count(n, "package")
	if a.scope != "" {
		sec.lead += " in " + a.scope
	}
	sec.lines = append(sec.lines, noted(append(clauses, docs)...)...)
	return sec
}

// topFolders answers for a project without packages that the rules know.
func (s *session) topFolders(a ask) section {
	out := s.find("**/*", a.scope)
	if sec, stop := stopped(out); stop {
		return sec
	}
	n := map[string]int{}
	for _, p := range readPaths(out.text) {
		dir, _, deep := strings.Cut(p, "/")
		if !deep {
			dir = "."
		}
		n[dir]++
	}
	return section{lead: "no packages found; files by folder", lines: append(table(n, 20), noted(out)...)}
}

// sentence quotes the first sentence of a comment, over as many lines as it
// takes.
func sentence(lines []hit) string {
	if len(lines) == 0 {
		return ""
	}
	text, last := "", lines[0].line
	for _, l := range lines {
		t := bare(l.text)
		if l.line != lines[0].line && (t == "" || !isComment(l.text) && isComment(lines[0].text)) {
			break
		}
		text, last = strings.TrimSpace(text+" "+t), l.line
		if i := sentenceEnd(text); i > 0 {
			text = text[:i]
			break
		}
	}
	at := fmt.Sprint(lines[0].line)
	if last > lines[0].line {
		at = fmt.Sprintf("%d-%d", lines[0].line, last)
	}
	return fmt.Sprintf("%s:%s: %s", lines[0].path, at, text)
}

var fullStop = lazily(`[.?!](\s|$)|[。？！]`)

// abbreviations end in a full stop that ends no sentence.
var abbreviations = []string{"e.g.", "i.e.", "etc.", "vs.", "cf.", "approx."}

// sentenceEnd returns the index after the first sentence's end, 0 if it has
// none.
func sentenceEnd(text string) int {
	for _, loc := range fullStop().FindAllStringIndex(text, -1) {
		end := loc[0] + len(strings.TrimSpace(text[loc[0]:loc[1]]))
		if !slices.ContainsFunc(abbreviations, func(a string) bool { return strings.HasSuffix(text[:end], a) }) {
			return end
		}
	}
	return 0
}

var commentMark = lazily(`^\s*(//+!?|/\*+|\*+/?|#+|--+|"""|''')\s?|\s*(\*/|"""|''')\s*$`)

// bare returns a line's text without comment marks.
func bare(l string) string { return strings.TrimSpace(commentMark().ReplaceAllString(l, "")) }

// manifestLine quotes the line of a package's file that tells most about it.
func manifestLine(p string, lines []hit) string {
	for _, want := range []string{`"description"`, `description =`, `"""`, `"name"`, `name =`} {
		for _, l := range lines {
			if strings.Contains(l.text, want) && len(strings.TrimSpace(l.text)) > len(want) {
				return l.quote()
			}
		}
	}
	return p + "   [no doc comment]"
}

// summary quotes what a file, package or project says about itself.
func (s *session) summary(a ask) section {
	target := a.subject
	switch strings.ToLower(target) {
	case "", "this", "it", "architecture", "structure":
		target = "README"
	default:
		if folderWord().MatchString(a.text) && ext(target) == "" {
			return s.summaryOfPackage(target)
		}
	}
	files, sec, stop := s.resolve(target)
	if stop {
		return sec
	}
	files = slices.DeleteFunc(files, inData)
	if len(files) == 0 || ext(files[0]) != "md" && strings.HasPrefix(files[0], target+"/") {
		if target == "README" {
			return s.packages(ask{flags: map[string]bool{}})
		}
		// A package: what it says of itself, and what it exports.
		return s.summaryOfPackage(target)
	}
	file := files[0]
	out := s.read(file, 1, 0)
	if sec, stop := stopped(out); stop {
		return sec
	}
	lines := readLines(file, out.text, 1)
	if ext(file) != "md" && ext(file) != "txt" && ext(file) != "rst" && ext(file) != "" {
		return s.summaryOfCode(file, lines)
	}
	sec = section{lead: fmt.Sprintf("%s, its headings and the first sentence under each (%s)", file, count(len(lines), "line"))}
	sec.lines = head(gist(lines), 60)
	sec.lines = append(sec.lines, noted(out)...)
	return sec
}

// gist quotes a document's headings, each with the first sentence under it.
func gist(lines []hit) []string {
	var out []string
	fenced, open := false, true // open: the next paragraph is the first of its section
	for i, l := range lines {
		t := strings.TrimSpace(l.text)
		switch {
		case strings.HasPrefix(t, "```"), strings.HasPrefix(t, "~~~"):
			fenced = !fenced
		case fenced || t == "" || t == "---":
		case heading().MatchString(l.text):
			out, open = append(out, l.quote()), true
		case open && plainText().MatchString(t) && !onlyLinks().MatchString(t):
			open = false
			out = append(out, "  "+sentence(lines[i:min(i+8, len(lines))]))
		}
	}
	return out
}

// onlyLinks is a line that says nothing itself: badges, languages.
var onlyLinks = lazily(`^(?:!?\[[^\]]*\]\([^)]*\)|\[!\[.*\)|[\s·|,-])+$`)

// folderWord says that a name is a folder's.
var folderWord = lazily(`(?i)\b(?:package|folder|director(?:y|ies)|module)\b|包|目录`)

// opening is the line before which a file's own comment stands.
var opening = lazily(`^(package|import|from|use) `)

var (
	heading   = lazily(`^#{1,6} `)
	plainText = lazily(`^[\p{L}\d"'“*_` + "`" + `(\[-]`)
)

func (s *session) summaryOfCode(file string, lines []hit) section {
	pattern, ok := outlineFor(ext(file))
	if !ok {
		return section{lead: fmt.Sprintf("%s, first lines of %d", file, len(lines)), lines: quotes(lines, 12)}
	}
	re := regexp.MustCompile(pattern)
	sec := section{lead: fmt.Sprintf("%s (%s): doc comment and definitions", file, count(len(lines), "line"))}
	for i, l := range lines {
		if isComment(l.text) || strings.HasPrefix(l.text, `"""`) {
			sec.lines = append(sec.lines, sentence(lines[i:min(i+8, len(lines))]))
			break
		}
		if i > 20 || re.MatchString(l.text) || opening().MatchString(l.text) {
			break
		}
	}
	var defs []hit
	for _, l := range lines {
		if re.MatchString(l.text) && !groupLine().MatchString(l.text) && !(ext(file) == "go" && strings.HasPrefix(l.text, "\t")) {
			defs = append(defs, l)
		}
	}
	sec.lines = append(sec.lines, quotes(defs, 50)...)
	return sec
}

func (s *session) summaryOfPackage(dir string) section {
	doc := s.packages(ask{scope: dir, flags: map[string]bool{}})
	api := s.outline(ask{subject: dir, flags: map[string]bool{"exported": true}})
	if doc.waiting || api.waiting {
		return wait()
	}
	if doc.failed && api.failed {
		return s.passages(ask{kind: kindPassages, text: dir, subject: dir, flags: map[string]bool{}})
	}
	if len(api.lines) == 0 {
		return doc
	}
	api.lines = append(append(doc.lines, ""), api.lines...)
	return api
}

// facts answers what manifests say: licence, dependencies, versions.
func (s *session) facts(a ask) section {
	var q query
	what := ""
	switch {
	case a.flags["license"]:
		files, sec, stop := s.resolve("LICENSE")
		if stop {
			return sec
		}
		if files = slices.DeleteFunc(files, inData); len(files) == 0 {
			return section{lead: "no LICENSE file"}
		}
		out := s.read(files[0], 1, 6)
		if sec, stop := stopped(out); stop {
			return sec
		}
		lines := slices.DeleteFunc(readLines(files[0], out.text, 1), func(h hit) bool { return strings.TrimSpace(h.text) == "" })
		return section{lead: files[0] + " begins", lines: quotes(lines, 4)}
	case a.flags["version"]:
		q = query{pattern: `^(go|toolchain) [0-9]|requires-python|"node":|rust-version|python_requires`, glob: "**/{go.mod,pyproject.toml,package.json,Cargo.toml,setup.py}", why: "find required versions"}
		what = "required versions"
	case a.flags["module"]:
		q = query{pattern: `^module |^name = |^  "name":`, glob: "**/{go.mod,pyproject.toml,package.json,Cargo.toml}", why: "find module names"}
		what = "modules"
	default:
		q = query{pattern: `^\s+[a-z0-9.-]+\.[a-z]+/\S+ v|^require \S+ v|^\s*"[@\w/-]+": "[~^]?[0-9]|^[A-Za-z0-9_-]+ *[=<>~]=|^\s+"[A-Za-z0-9_-]+ *[=<>~]`, glob: "**/{go.mod,package.json,requirements.txt,pyproject.toml,Cargo.toml}", why: "find dependencies"}
		what = "dependencies"
	}
	out := s.search(q)
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := slices.DeleteFunc(readHits(out.text), func(h hit) bool { return inData(h.path) })
	if a.flags["deps"] {
		// Indirect ones are the business of the direct ones.
		all := len(hits)
		hits = slices.DeleteFunc(hits, func(h hit) bool { return strings.Contains(h.text, "// indirect") })
		if n := all - len(hits); n > 0 {
			what = fmt.Sprintf("direct dependencies (%d indirect ones left out)", n)
		}
	}
	return section{lead: fmt.Sprintf("%s: %s", what, count(len(hits), "line")), lines: append(quotes(hits, 60), noted(out)...)}
}
