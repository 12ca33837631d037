package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// listFiles answers which files there are.
func (s *session) listFiles(a ask) section {
	pattern := "**/*"
	switch {
	case a.flags["tests"] && slices.Contains(a.exts, "go"):
		pattern = "**/*_test.go"
	case a.flags["tests"]:
		pattern = "**/*{_test,.test,.spec,test_,Test}*"
	case len(a.exts) > 0:
		pattern = globFor(a.exts)
	case a.subject != "" && !strings.Contains(a.subject, " "):
		pattern = "**/*" + foldCase(unquote(a.subject)) + "*"
	}
	out := s.find(pattern, a.scope)
	if sec, stop := stopped(out); stop {
		return sec
	}
	paths := readPaths(out.text)
	if a.flags["tests"] {
		paths = slices.DeleteFunc(paths, func(p string) bool { return !isTest(p) })
	}
	left, _ := more(out.text)
	total := len(paths) + left
	what := "file"
	if a.lang != "" {
		what = a.lang + " file"
	}
	if a.flags["tests"] {
		what = "test file"
	}
	where := ""
	if a.scope != "" {
		where = " in " + a.scope
	}
	sec := section{lead: fmt.Sprintf("%s%s (%s %s)", count(total, what), where, s.by(roleFind), pattern)}
	// Sample data would bury the project's own files.
	const few, most = 30, 100
	own := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return inData(p) && !inData(a.scope+"/x") })
	if samples := len(paths) - len(own); samples > 0 && len(own) > 0 && total > few {
		paths = own
		sec.lead += fmt.Sprintf("; %d of them, in sample data, are not listed", samples)
		total -= samples
	}
	sec.lines = paths[:min(len(paths), most)]
	if n := total - len(sec.lines); n > 0 {
		sec.lines = append(slices.Clone(sec.lines), fmt.Sprintf("… %s more", count(n, "file")))
	}
	return sec
}

// locateFile answers where a file is.
func (s *session) locateFile(a ask) section {
	name := unquote(a.subject)
	paths, sec, stop := s.resolve(name)
	if stop {
		return sec
	}
	return section{lead: fmt.Sprintf("%s named %s", count(len(paths), "file"), name), lines: head(paths, 40)}
}

// show quotes a file, lines of it, or one definition.
func (s *session) show(a ask) section {
	if a.flags["symbol"] {
		return s.showSymbol(a)
	}
	files, sec, stop := s.resolve(a.subject)
	if stop {
		return sec
	}
	if len(files) == 0 {
		if identifier().MatchString(a.subject) {
			return s.showSymbol(a)
		}
		return section{lead: "no file named " + a.subject}
	}
	from, n := max(a.from, 1), maxLines-20
	if a.to >= a.from && a.to > 0 {
		n = min(n, a.to-from+1)
	}
	out := s.read(files[0], from, n)
	if sec, stop := stopped(out); stop {
		return sec
	}
	sec = block(readLines(files[0], out.text, from))
	if note := partial(out.text); note != "" && a.to == 0 {
		sec.lines = append(sec.lines, "", "The tool adds: "+note)
	}
	if len(files) > 1 {
		sec.lines = append(sec.lines, "", "Also of that name: "+strings.Join(head(files[1:], 5), ", "))
	}
	return sec
}

// block writes consecutive lines of a file under one heading.
func block(lines []hit) section {
	if len(lines) == 0 {
		return section{lead: "no lines there"}
	}
	first, last := lines[0], lines[len(lines)-1]
	sec := section{lead: fmt.Sprintf("%s:%d-%d", first.path, first.line, last.line)}
	for _, l := range lines {
		sec.lines = append(sec.lines, strings.TrimRight(fmt.Sprintf("%5d  %s", l.line, clip(strings.ReplaceAll(l.text, "\t", "    "), 240)), " "))
	}
	return sec
}

// showSymbol quotes a definition whole, as far as its end can be seen.
func (s *session) showSymbol(a ask) section {
	qualifier, base := splitName(unquote(a.subject))
	out := s.search(definitionQuery(base, "", sourceExts))
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(proper(definitionsIn(out, base)))
	if q := qualified(hits, qualifier, base); len(q) > 0 {
		hits = q
	}
	if len(hits) == 0 {
		return section{lead: "no definition of " + a.subject + " found"}
	}
	const shown = 3 // of several with one name
	var blocks []section
	for _, at := range hits[:min(len(hits), shown)] {
		blocks = append(blocks, s.wholeDefinition(at))
	}
	if len(blocks) == 1 {
		return blocks[0]
	}
	sec := section{lead: fmt.Sprintf("%s of %s", count(len(hits), "definition"), a.subject)}
	for i, b := range blocks {
		if b.waiting {
			return b
		}
		if i > 0 {
			sec.lines = append(sec.lines, "")
		}
		sec.lines = append(append(sec.lines, b.lead, ""), b.lines...)
		sec.left = append(sec.left, b.left...)
	}
	if n := len(hits) - len(blocks); n > 0 {
		sec.lines = append(sec.lines, "", fmt.Sprintf("… %s more", count(n, "definition")))
	}
	return sec
}

// wholeDefinition quotes a definition with its comment.
func (s *session) wholeDefinition(at hit) section {
	const above, below, most = 40, 500, 150
	from := max(1, at.line-above)
	text := s.read(at.path, from, at.line-from+below)
	if sec, stop := stopped(text); stop {
		return sec
	}
	lines := readLines(at.path, text.text, from)
	i := slices.IndexFunc(lines, func(l hit) bool { return l.line == at.line })
	if i < 0 {
		return section{lead: "definition of " + definedName(at.text), lines: []string{at.quote()}}
	}
	start := i
	for start > 0 && isComment(lines[start-1].text) {
		start--
	}
	sec := block(lines[start : i+bodyLen(lines[i:], ext(at.path))])
	sec.lines = head(sec.lines, most)
	return sec
}

// bodyLen returns how many lines a definition has, its first included.
func bodyLen(lines []hit, e string) int {
	indent := func(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }
	base := indent(lines[0].text)
	if e == "py" {
		n := 1
		for i, l := range lines[1:] {
			if strings.TrimSpace(l.text) == "" {
				continue
			}
			if indent(l.text) <= base {
				break
			}
			n = i + 2
		}
		return n
	}
	first := strings.TrimSpace(lines[0].text)
	if !strings.HasSuffix(first, "{") && !strings.HasSuffix(first, "(") && !strings.HasSuffix(first, ",") {
		return 1
	}
	for i, l := range lines[1:] {
		t := strings.TrimSpace(l.text)
		if indent(l.text) <= base && (strings.HasPrefix(t, "}") || strings.HasPrefix(t, ")")) && !strings.HasSuffix(t, "{") {
			return i + 2
		}
	}
	return len(lines)
}

// count answers how many there are.
func (s *session) count(a ask) section {
	var sec section
	say := func(format string, args ...any) { sec.lines = append(sec.lines, fmt.Sprintf(format, args...)) }
	var outs []outcome
	get := func(q query) []tally {
		q.path, q.count = a.scope, true
		if q.exts == nil && q.glob == "" {
			q.exts = a.exts
		}
		o := s.search(q)
		outs = append(outs, o)
		return readTallies(o.text)
	}
	where := ""
	if a.scope != "" {
		where = " in " + a.scope
	}
	lang := ""
	if a.lang != "" {
		lang = a.lang + " "
	}
	// A tool that shows only so many files says how many more there were.
	total := func(ts []tally, o outcome) (n, files int) {
		n, files = more(o.text)
		for _, t := range ts {
			n += t.n
		}
		return n, files + len(ts)
	}
	if a.flags["matches"] {
		pattern := regexp.QuoteMeta(a.subject)
		if identifier().MatchString(a.subject) {
			pattern = `\b` + pattern + `\b`
		}
		ts := get(query{pattern: pattern, fold: strings.ToLower(a.subject) == a.subject})
		n, files := total(ts, outs[0])
		say("“%s”: %s in %s%s", a.subject, count(n, "line"), count(files, "file"), where)
		slices.SortStableFunc(ts, func(x, y tally) int { return y.n - x.n })
		for i, t := range ts {
			if i == 12 {
				say("… %s more", count(len(ts)-i, "file"))
				break
			}
			say("%s: %d", t.path, t.n)
		}
	}
	if a.flags["largest"] {
		exts := orExts(a.exts)
		var all []tally
		whole := true
		q := query{pattern: "^", path: a.scope, count: true, why: "count the lines of each file"}
		var found []outcome
		if slices.Contains(exts, "go") {
			found = append(s.everyGo(q, false), s.everyGo(q, true)...)
		}
		if q.exts = slices.DeleteFunc(slices.Clone(exts), func(e string) bool { return e == "go" }); len(q.exts) > 0 {
			found = append(found, s.search(q))
		}
		for _, o := range found {
			left, _ := more(o.text)
			all, whole = append(all, readTallies(o.text)...), whole && left == 0
		}
		outs = append(outs, found...)
		all = slices.DeleteFunc(all, func(t tally) bool { return inData(t.path) })
		slices.SortStableFunc(all, func(x, y tally) int { return y.n - x.n })
		n := 10
		if a.from > 0 {
			n = min(a.from, 50)
		}
		say("the %d longest of %s%s by lines", min(n, len(all)), count(len(all), lang+"file"), where)
		for _, t := range all[:min(n, len(all))] {
			say("  %6s  %s", group(t.n), t.path)
		}
		if !whole {
			say("… more files that the tool left out")
		}
	}
	if a.flags["files"] || a.flags["testfiles"] {
		s.countFiles(a, lang, where, &outs, say)
	}
	if a.flags["lines"] {
		q := query{pattern: "^", path: a.scope, exts: a.exts, count: true, why: "count lines"}
		halves := [][]outcome{nil}
		if a.lang == "Go" { // code and tests
			q.exts = nil
			halves = [][]outcome{s.everyGo(q, false), s.everyGo(q, true)}
		} else {
			halves[0] = []outcome{s.search(q)}
		}
		var all []tally
		n, files := make([]int, len(halves)), make([]int, len(halves))
		whole := true
		for i, half := range halves {
			for _, o := range half {
				ts := readTallies(o.text)
				all = append(all, ts...)
				tn, tf := total(ts, o)
				n[i], files[i] = n[i]+tn, files[i]+tf
				whole = whole && tf == len(ts)
			}
			outs = append(outs, half...)
		}
		lead := fmt.Sprintf("%s in %s%s", count(add(n), lang+"line"), count(add(files), "file"), where)
		if len(n) == 2 && n[1] > 0 {
			lead += fmt.Sprintf(": %s in code, %s in tests", group(n[0]), group(n[1]))
		}
		say("%s (%s counts lines per file)", lead, s.by(roleSearch))
		if add(files) > 1 && whole {
			sec.lines = append(sec.lines, byDir(all, a.scope)...)
		}
	}
	// A word that opens a definition in one language is a name in another.
	const countTests = "count tests"
	perLanguage := func(goPattern, others, why string) (n, files int) {
		exts := orExts(a.exts)
		for _, q := range []query{{pattern: goPattern, exts: []string{"go"}}, {pattern: others, exts: slices.DeleteFunc(slices.Clone(exts), func(e string) bool { return e == "go" })}} {
			if len(q.exts) == 0 || !slices.Contains(exts, q.exts[0]) {
				continue
			}
			if q.why = why; q.exts[0] == "go" && why == countTests {
				q.exts, q.glob = nil, "**/*_test.go" // elsewhere a name like a test's is just a name
			}
			ts := get(q)
			o := outs[len(outs)-1]
			ts = slices.DeleteFunc(ts, func(t tally) bool { return inData(t.path) && !inData(a.scope+"/x") })
			tn, tf := total(ts, o)
			n, files = n+tn, files+tf
		}
		return n, files
	}
	if a.flags["tests"] {
		n, files := perLanguage(`^func (Test|Fuzz|Benchmark|Example)([A-Z_]\w*)?\(`, `^\s*(async )?def test_|^\s*(it|test)\(|^\s*#\[(tokio::)?test`, countTests)
		say("%s in %s%s", count(n, lang+"test"), count(files, "file"), where)
	}
	if a.flags["functions"] {
		n, files := perLanguage(`^func `, `^\s*(async )?def |^\s*(export )?(async )?function |^\s*(pub(\([a-z]+\))? )?(async )?fn `, "count functions")
		say("%s in %s%s, methods and tests included", count(n, lang+"function"), count(files, "file"), where)
	}
	if a.flags["types"] {
		n, files := perLanguage(`^type [A-Za-z]`, `^\s*(export )?(abstract )?(class|interface|enum) |^\s*(pub )?(struct|enum|trait) `, "count types")
		say("%s in %s%s", count(n, lang+"type"), count(files, "file"), where)
	}
	if a.flags["packages"] {
		exts := orExts(a.exts)
		o := s.find(globFor(exts), a.scope)
		outs = append(outs, o)
		dirs := map[string]bool{}
		for _, p := range readPaths(o.text) {
			if !inData(p) {
				dirs[path.Dir(p)] = true
			}
		}
		say("%s with %ssource files%s", count(len(dirs), "directory", "directories"), lang, where)
	}
	if stop, is := stopped(outs...); is {
		return stop
	}
	if len(sec.lines) > 0 {
		sec.lead, sec.lines = sec.lines[0], sec.lines[1:]
	}
	return sec
}

// countFiles says how many files there are, and how many of them are tests.
func (s *session) countFiles(a ask, lang, where string, outs *[]outcome, say func(string, ...any)) {
	patterns := []string{"**/*"}
	switch {
	case a.lang == "Go":
		patterns = []string{ownGo, "**/*_test.go"}
	case len(a.exts) > 0:
		patterns = []string{globFor(a.exts)}
	}
	var paths []string
	left, tests := 0, 0
	for _, p := range patterns {
		o := s.find(p, a.scope)
		*outs = append(*outs, o)
		found := readPaths(o.text)
		paths = append(paths, found...)
		n, _ := more(o.text)
		left += n
		if tests = 0; a.lang == "Go" { // the second pattern finds just them
			tests = len(found) + n
			continue
		}
		for _, p := range found {
			if isTest(p) && !inData(p) {
				tests++
			}
		}
	}
	text := count(len(paths)+left, lang+"file") + where
	switch {
	case a.flags["testfiles"]:
		text = count(tests, lang+"test file") + where
	case (left == 0 || a.lang == "Go") && tests > 0:
		text += fmt.Sprintf(", %d of them tests", tests)
	}
	source := strings.Join(patterns, " and ")
	if a.lang == "Go" {
		source = "**/*.go, tests apart"
	}
	say("%s (%s %s)", text, s.by(roleFind), source)
	if len(a.exts) == 0 && left == 0 && !a.flags["testfiles"] {
		for _, l := range byExt(paths) {
			say("%s", l)
		}
	}
}

func add(ns []int) (sum int) {
	for _, n := range ns {
		sum += n
	}
	return sum
}

// byExt counts files by the end of their names.
func byExt(paths []string) []string {
	n := map[string]int{}
	for _, p := range paths {
		e := path.Ext(p)
		if e == "" {
			e = "(no extension)"
		}
		n[e]++
	}
	return table(n, 12)
}

// byDir sums tallies by the first directory of their paths below scope.
func byDir(ts []tally, scope string) []string {
	n := map[string]int{}
	for _, t := range ts {
		rest := strings.TrimPrefix(strings.TrimPrefix(t.path, scope), "/")
		dir, _, deep := strings.Cut(rest, "/")
		if !deep {
			dir = "."
		}
		n[dir] += t.n
	}
	if len(n) < 2 {
		return nil
	}
	return table(n, 12)
}

func table(n map[string]int, limit int) []string {
	keys := make([]string, 0, len(n))
	width := 0
	for k := range n {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if n[a] != n[b] {
			return n[b] - n[a]
		}
		return strings.Compare(a, b)
	})
	rest := 0
	if len(keys) > limit {
		for _, k := range keys[limit:] {
			rest += n[k]
		}
		keys = keys[:limit]
	}
	for _, k := range keys {
		width = max(width, len(group(n[k])))
	}
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("  %*s  %s", width, group(n[k]), k))
	}
	if rest > 0 {
		out = append(out, fmt.Sprintf("  %*s  elsewhere", width, group(rest)))
	}
	return out
}
