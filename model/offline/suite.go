package offline

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// buildFiles are the files that say how a project is built and tested.
const buildFiles = "**/{go.mod,package.json,pyproject.toml,setup.py,pytest.ini,tox.ini,Cargo.toml,pom.xml,build.gradle,Makefile}"

// A suite is a way to run a project's tests, and where that was read.
type suite struct {
	test, build, lint string
	file              string
}

// suites returns what the build files nearest the root stand for.
func suites(paths []string) []suite {
	var out []suite
	known := map[string]suite{
		"go.mod":         {test: "go test ./...", build: "go build ./...", lint: "go vet ./..."},
		"Cargo.toml":     {test: "cargo test", build: "cargo build", lint: "cargo clippy"},
		"package.json":   {test: "npm test", build: "npm run build", lint: "npm run lint"},
		"pyproject.toml": {test: "python3 -m pytest -q"},
		"pytest.ini":     {test: "python3 -m pytest -q"},
		"tox.ini":        {test: "python3 -m pytest -q"},
		"setup.py":       {test: "python3 -m pytest -q"},
		"pom.xml":        {test: "mvn -q test", build: "mvn -q package"},
		"build.gradle":   {test: "gradle test", build: "gradle build"},
		"Makefile":       {test: "make test", build: "make"},
	}
	// In this order: what names a language tells more than a Makefile.
	for _, base := range []string{"go.mod", "Cargo.toml", "package.json", "pyproject.toml", "pytest.ini", "tox.ini", "setup.py", "pom.xml", "build.gradle", "Makefile"} {
		for _, p := range paths {
			if p == base && !slices.ContainsFunc(out, func(x suite) bool { return x.test == known[base].test }) {
				su := known[base]
				su.file = p
				out = append(out, su)
			}
		}
	}
	return out
}

// runTests runs the project's tests and quotes how they went.
func (s *session) runTests(a ask) section {
	if s.box.role(roleExec) == nil {
		return undone("no tool to " + verbs[roleExec] + " is offered, so tests can't be run")
	}
	found := s.find(buildFiles, "")
	if sec, stop := stopped(found); stop {
		return sec
	}
	all := suites(readPaths(found.text))
	if len(all) == 0 {
		return section{lead: "no go.mod, package.json, pyproject.toml, Cargo.toml or Makefile at the root says how to run tests", left: []string{"the tests were not run: name the command, like: run `make check`"}}
	}
	su := all[0]
	cmd := su.test
	if a.scope != "" || a.subject != "" {
		var sec section
		if cmd, sec = s.narrow(su, a); cmd == "" {
			return sec
		}
	}
	o := s.execute(cmd, "run the tests")
	if o.state == waiting {
		return wait()
	}
	if o.state == missing || refused(o) {
		return undone(o.why())
	}
	return testReport(cmd, su.file, o)
}

// narrow writes the command for some of the tests; "" means the section says
// what stands in the way.
func (s *session) narrow(su suite, a ask) (string, section) {
	scope := a.scope
	if scope != "" {
		// A bare word is a folder somewhere.
		out := s.find("**/*"+orAny(su)+"*", scope)
		if out.state == failed {
			deep := s.find("**/"+foldCase(scope)+"/*", "")
			if sec, stop := stopped(deep); stop {
				return "", sec
			}
			paths := slices.DeleteFunc(readPaths(deep.text), inData)
			if len(paths) == 0 {
				return "", section{lead: "there is no folder " + scope, left: []string{"the tests were not run"}}
			}
			scope = path.Dir(paths[0])
		} else if sec, stop := stopped(out); stop {
			return "", sec
		}
	}
	switch {
	case strings.HasPrefix(su.test, "go "):
		target := "./..."
		if scope != "" {
			if target = "./" + scope + "/..."; path.Ext(scope) == ".go" {
				target = "./" + path.Dir(scope)
			}
		}
		if a.subject != "" {
			return "go test -run " + shellQuote("^"+a.subject+"$") + " " + shellQuote(target), section{}
		}
		return "go test " + shellQuote(target), section{}
	case strings.Contains(su.test, "pytest"):
		cmd := su.test
		if scope != "" {
			cmd += " " + shellQuote(scope)
		}
		if a.subject != "" {
			cmd += " -k " + shellQuote(a.subject)
		}
		return cmd, section{}
	case strings.HasPrefix(su.test, "cargo ") && a.subject != "":
		return su.test + " " + shellQuote(a.subject), section{}
	}
	return su.test, section{}
}

func orAny(su suite) string {
	if strings.HasPrefix(su.test, "go ") {
		return ".go"
	}
	return ""
}

// execute runs a command that may take minutes.
func (s *session) execute(cmd, why string) outcome {
	w := want{"+command": cmd}
	if o := s.box.role(roleExec); o != nil && o.seconds() {
		w["timeout"] = 600
	}
	return s.use(roleExec, w, why)
}

// refused reports whether a result says that the call was not permitted, rather
// than that the command failed.
func refused(o outcome) bool {
	return o.state == failed && (strings.HasPrefix(o.text, "permission denied") || strings.Contains(o.text, "do not retry"))
}

var (
	exitCode = lazily(`(?i)\bexit(?:ed)?(?: (?:code|status|with(?: code| status)?))?:? ?(\d+)`)
	failMark = lazily(`^\s*--- FAIL|^FAIL\b|^panic:|^\s*\S+\.\w+:\d+(:\d+)?: |^E\s|^FAILED|^ERROR|^error(\[|:)|^test .* FAILED|^\s*[✕×●]|AssertionError|^\S+Error: |^make: \*\*\*|undefined: |\[build failed\]|thread '.*' panicked|not ok `)
	passMark = lazily(`^ok\s|^PASS\b|^=+ .*(passed|failed|error).* =+$|^\d+ (passed|failed)|^test result: |^Tests?:\s|^Tests run: |^# (pass|fail) |^\?\s|no test files|^Ran \d+ tests?|^OK\b`)
)

// testReport quotes the lines of a test run that say how it went.
func testReport(cmd, file string, o outcome) section {
	var fails, passes, rest []string
	for l := range strings.Lines(o.text) {
		l = strings.TrimRight(l, " \t\r\n")
		switch {
		case strings.TrimSpace(l) == "", strings.HasPrefix(l, "[") && exitCode().MatchString(l):
		case failMark().MatchString(l):
			fails = append(fails, l)
		case passMark().MatchString(l):
			passes = append(passes, l)
		default:
			rest = append(rest, l)
		}
	}
	code, known := exitOf(o)
	verdict := "passed"
	switch {
	case known && code != 0 || !known && len(fails) > 0:
		verdict = "failed"
	case !known && len(passes) == 0:
		verdict = "ended without a line that says how it went"
	}
	if known && code != 0 {
		verdict += fmt.Sprintf(" (exit %d)", code)
	}
	sec := section{lead: fmt.Sprintf("`%s` %s (chosen by %s)", cmd, verdict, file)}
	if strings.HasPrefix(verdict, "passed") {
		passes = slices.DeleteFunc(passes, func(l string) bool { return strings.Contains(l, "no test files") })
		sec.lines = head(passes, 40)
		if len(passes) == 0 {
			sec.lines = head(rest, 10)
		}
		return sec
	}
	sec.lines = head(fails, 40)
	if len(fails) == 0 {
		sec.lines = tail(append(passes, rest...), 20)
	}
	return sec
}

func tail(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append([]string{fmt.Sprintf("… %s before", count(len(lines)-n, "line"))}, lines[len(lines)-n:]...)
}

// exitOf reads a command's exit code from what the tool says at the end.
func exitOf(o outcome) (int, bool) {
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	for i := len(lines) - 1; i >= max(0, len(lines)-4); i-- {
		if m := exitCode().FindStringSubmatch(lines[i]); m != nil && len(lines[i]) < 160 {
			return atoi(m[1]), true
		}
	}
	for i := range min(3, len(lines)) {
		if m := exitCode().FindStringSubmatch(lines[i]); m != nil && len(lines[i]) < 100 {
			return atoi(m[1]), true
		}
	}
	if o.state == failed {
		return 1, true
	}
	return 0, false
}

// howTo quotes how a project is tested, built or run.
func (s *session) howTo(a ask) section {
	pattern := `\b(go test|npm (run )?test|yarn test|pnpm test|pytest|python3? -m (pytest|unittest)|cargo test|make [\w-]*test|make check|mvn test|gradle test)\b|^(test|check)[\w-]*:`
	what := "running the tests"
	if !a.flags["test"] {
		pattern = `^\s*(\$ )?(go (install|build|run)|npm (install|i|ci|run)|pip3? install|cargo (build|install|run)|make|docker|brew|curl|git clone|\./\w+|export [A-Z_]+=)( |$)|^(all|build|install|run)[\w-]*:|\b(go (install|build|run) \S+|pip install \S+|npm install|make (build|install))`
		what = "building, installing and running"
	}
	files := s.find(buildFiles, "")
	docs := s.search(query{pattern: pattern, glob: "**/{*.md,Makefile,*.yml,*.yaml,justfile,package.json}", why: "find the commands for " + what})
	if sec, stop := stopped(files, docs); stop {
		return sec
	}
	hits := slices.DeleteFunc(readHits(docs.text), func(h hit) bool { return inData(h.path) })
	slices.SortStableFunc(hits, func(x, y hit) int { return authority(x.path) - authority(y.path) })
	sec := section{lead: "lines about " + what}
	for _, su := range suites(readPaths(files.text)) {
		if su.file == "Makefile" {
			continue // its targets are quoted below
		}
		if c := su.test; a.flags["test"] {
			sec.lines = append(sec.lines, fmt.Sprintf("%s is there, so: %s", su.file, c))
		} else if su.build != "" {
			sec.lines = append(sec.lines, fmt.Sprintf("%s is there, so: %s", su.file, su.build))
		}
	}
	sec.lines = append(sec.lines, quotes(hits, 15)...)
	if len(sec.lines) == 0 {
		sec.lead = "no document, Makefile or build file here says a word about " + what
	}
	return sec
}

// authority sorts the places that say how something is done.
func authority(p string) int {
	base := strings.ToLower(path.Base(p))
	n := strings.Count(p, "/")
	switch {
	case strings.HasPrefix(base, "readme"):
		return n
	case base == "makefile", strings.HasPrefix(base, "contributing"), strings.HasPrefix(base, "agents"):
		return 10 + n
	case ext(p) == "md":
		return 20 + n
	}
	return 30 + n
}

// testsOf answers which tests cover something: those named after it, and those
// in files named after it.
func (s *session) testsOf(a ask) section {
	topic := cleanPath(kindTail().ReplaceAllString(a.subject, ""))
	ws := words(topic)
	if len(ws) == 0 {
		return undone("it does not say of what")
	}
	var parts, globs []string
	for _, w := range ws {
		if low := strings.ToLower(w); !stopwords[low] {
			st := stem(low)
			parts = append(parts, st)
			globs = append(globs, foldCase(st))
		}
	}
	if len(parts) == 0 || len(parts) > 6 {
		return undone("it does not say of what")
	}
	const opener = `^func (Test|Fuzz|Benchmark|Example)|^\s*(async )?def test_|^\s*(it|test|describe)\(`
	near := strings.Join(globs, "*")
	if m := testsInside().FindStringSubmatch(a.text); m != nil && len(ws) == 1 {
		inside := s.search(query{pattern: opener, path: cleanPath(m[1]), exts: sourceExts, why: "list the tests in " + m[1]})
		if inside.state == waiting {
			return wait()
		}
		if hits := slices.DeleteFunc(readHits(inside.text), func(h hit) bool { return !isTest(h.path) || inData(h.path) || !opensTest(h) }); inside.ok() && len(hits) > 0 {
			return section{
				lead:  fmt.Sprintf("%s%s in %s, in %s", atLeast(inside), count(len(hits), "test"), m[1], count(distinctFiles(hits), "file")),
				lines: append(quotes(hits, 80), noted(inside)...),
			}
		}
	}
	named := s.search(query{pattern: `(^func (Test|Fuzz|Benchmark|Example)|^\s*(async )?def test_|^\s*(it|test|describe)\().*` + strings.Join(quoteAll(parts), ".*"), fold: true, exts: sourceExts, why: "find tests named after " + topic})
	inFile := s.search(query{pattern: opener, glob: "**/*" + near + "*", why: "find tests in files named after " + topic})
	inDir := s.search(query{pattern: opener, glob: "**/*" + near + "*/**", why: "find tests in folders named after " + topic})
	if sec, stop := stopped(named, inFile, inDir); stop {
		return sec
	}
	var hits []hit
	seen := map[string]bool{}
	for _, h := range slices.Concat(readHits(inDir.text), readHits(inFile.text), readHits(named.text)) {
		key := fmt.Sprint(h.path, ":", h.line)
		if !seen[key] && isTest(h.path) && !inData(h.path) && opensTest(h) {
			seen[key] = true
			hits = append(hits, h)
		}
	}
	if len(hits) == 0 {
		return section{lead: fmt.Sprintf("no test is named after “%s”, nor the file or folder of one", topic)}
	}
	return section{
		lead:  fmt.Sprintf("%s%s named after “%s” (their own name, file or folder) in %s", atLeast(named, inFile, inDir), count(len(hits), "test"), topic, count(distinctFiles(hits), "file")),
		lines: append(quotes(hits, 60), noted(named, inFile, inDir)...),
	}
}

var goTest = lazily(`^func (Test|Fuzz|Benchmark|Example)([A-Z_]\w*)?\(`)

// opensTest reports whether a line that looks like a test's first is one in its
// file's language.
func opensTest(h hit) bool { return ext(h.path) != "go" || goTest().MatchString(h.text) }

// testsInside asks for what lies in a folder, rather than what is about it.
var testsInside = lazily(`(?i)\btests?(?: are there)? in(?: the)? ([\w./-]+)(?: package| folder| directory)?$`)

// kindTail is a word that says what a name stands for.
var kindTail = lazily(`(?i)\s+(?:package|code|tool|module|function|folder)$`)
