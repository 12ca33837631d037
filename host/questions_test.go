package host_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

// The embedded rules answer questions about this very repository. What is right
// changes with every commit, so nothing is compared with stored text: the facts
// are worked out here by other means (the Go parser, a walk over the files,
// git), and every line of every answer must be a quote of the file and line it
// names, or one of the few forms that answers have besides.

// A question is what a visitor or a contributor asks.
type question struct {
	ask   string
	agent []string // who must be started for it, sorted; nil: nobody
	git   bool     // it takes the repository's history
	forms string   // a regular expression for further lines that are no quotes
	right func(*answer)
}

var questions = []question{
	// What there is.
	{ask: "What packages are there and what is each for?", right: rightPackages},
	{ask: "有哪些包，各是做什么的？", right: rightPackages},
	{ask: "How many Go files and lines are there?", right: rightCounts},
	{ask: "统计 Go 文件和行数", right: rightCounts},
	{ask: "List the built-in agents", forms: `^[\w-]+: .+ \(tools: .+\)$`, right: rightAgents},
	{ask: "Which file is the longest?", forms: `^ +[\d,]+  \S+$`, right: rightLongest},
	{ask: "List the Markdown files", right: rightMarkdown},
	{ask: "List all interfaces", right: func(a *answer) {
		want := a.declared(func(d declaration) bool { return d.kind == "interface" && !d.test })
		a.quotesExactly(want)
		a.says(fmt.Sprintf("%d interfaces in", len(want)))
	}},
	{ask: "Find every TODO", right: rightTodo},
	{ask: "Which Go version does it need?", right: func(a *answer) {
		a.quotesExactly(a.linesOf("go.mod", `^go \d`))
	}},
	{ask: "What are the direct dependencies?", right: func(a *answer) {
		a.quotesExactly(a.linesOf("go.mod", `^\s+\S+\.\S+/\S+ v[^/]*$`))
	}},

	// Where something is.
	{ask: "Where is the task tool implemented?", right: func(a *answer) {
		a.quotesFile("run/tasktool.go")
		a.quotesDeclaration("run", "task")
	}},
	{ask: "Where is the guard?", right: func(a *answer) { a.quotesDeclaration("run", "guard") }},
	{ask: "Which file defines ModelRef?", right: func(a *answer) {
		a.says("1 definition of ModelRef")
		a.quotesDeclaration(".", "ModelRef")
	}},
	{ask: "ModelRef 在哪里定义？", right: func(a *answer) { a.quotesDeclaration(".", "ModelRef") }},
	{ask: "Where is the system prompt built?", right: func(a *answer) { a.quotesDeclaration("compile", "systemPrompt") }},
	{ask: "Where are the built-in agents defined?", right: func(a *answer) { a.quotesDeclaration("agents", "Builtin") }},
	{ask: `Where is "permission denied" produced?`, right: func(a *answer) {
		want := a.tree.grep(`permission denied`, func(f string) bool { return strings.HasSuffix(f, ".go") && !isTest(f) && !isData(f) })
		want = slices.DeleteFunc(want, func(p spot) bool { return strings.HasPrefix(strings.TrimSpace(a.tree.line(p)), "//") })
		a.quotesExactly(want)
	}},
	{ask: "Which files mention os.Root?", right: func(a *answer) {
		want := a.tree.grep(`os\.Root`, func(string) bool { return true })
		a.says(fmt.Sprintf("“os.Root”: %d lines in %d files", len(want), files(want)))
		a.quotesExactly(want)
	}},
	{ask: "Who calls ParseModelRef?", right: func(a *answer) {
		want := a.tree.grep(`\bParseModelRef\(`, func(f string) bool { return strings.HasSuffix(f, ".go") })
		want = slices.DeleteFunc(want, func(p spot) bool {
			l := strings.TrimSpace(a.tree.line(p))
			return strings.HasPrefix(l, "//") || strings.HasPrefix(l, "func ParseModelRef")
		})
		a.quotesExactly(want)
	}},

	// What it looks like.
	{ask: "Outline event.go", right: func(a *answer) {
		want := a.declared(func(d declaration) bool { return d.file == "event.go" })
		a.says(fmt.Sprintf("%d definitions in event.go", len(want)))
		a.quotesExactly(want)
	}},
	{ask: "What does Outcome hold?", right: func(a *answer) { a.quotesWhole("Outcome") }},
	{ask: "List the methods of Policy", right: func(a *answer) {
		a.quotesExactly(a.declared(func(d declaration) bool { return d.kind == "func" && d.receiver == "Policy" && d.dir == "policy" }))
	}},
	{ask: "Show the first 12 lines of run/runtime.go", right: func(a *answer) {
		a.quotesRange("run/runtime.go", 1, 12)
	}},
	{ask: "What are the headings of ARCHITECTURE.md?", right: func(a *answer) {
		a.quotesExactly(a.headings("ARCHITECTURE.md"))
	}},
	{ask: "Which tests cover the policy?", right: rightTests},
	{ask: "哪些测试覆盖 policy？", right: rightTests},

	{ask: "How many tests are there?", right: func(a *answer) {
		want := a.declared(func(d declaration) bool {
			return d.test && d.kind == "func" && d.receiver == "" && testName.MatchString(d.name)
		})
		a.says(fmt.Sprintf("%s tests in %s files", grouped(len(want)), grouped(files(want))))
	}},

	// What is written about it.
	{ask: "Who may import what?", right: func(a *answer) { a.quotesExactly(a.arrows("")) }},
	{ask: "What may run import?", right: func(a *answer) { a.quotesExactly(a.arrows("run")) }},
	{ask: "How do I run the tests?", right: func(a *answer) {
		a.says("go.mod is there, so: go test ./...")
		a.quotesOneOf(a.linesOf("Makefile", `^(test|check):`))
	}},
	{ask: "What does the README say about permissions?", right: func(a *answer) {
		if len(a.quotes) < 2 {
			a.t.Errorf("%d quotes", len(a.quotes))
		}
		for _, q := range a.quotes {
			if q.path != "README.md" || !strings.HasPrefix(q.text, "#") && !strings.Contains(strings.ToLower(a.tree.text(q)), "permission") {
				a.t.Errorf("%s:%d-%d says nothing about permissions", q.path, q.from, q.to)
			}
		}
	}},
	{ask: "What are the exit codes?", right: func(a *answer) {
		codes := a.tree.grep(`^\texit\w+ += \d+`, func(f string) bool { return path.Dir(f) == "internal/cli" && !isTest(f) })
		if len(codes) < 8 {
			a.t.Fatalf("only %d exit codes found: the test is looking in the wrong place", len(codes))
		}
		for _, p := range codes {
			a.quotesPlace(p)
		}
	}},
	{ask: "How are limits counted?", right: func(a *answer) {
		a.quotesOneOf(a.linesOf("ARCHITECTURE.md", `Limits are counted`))
	}},
	{ask: "How does the guard work?", right: func(a *answer) { a.quotesDeclaration("run", "guard") }},

	// What happened to it.
	{ask: "Show the git log of event.go", git: true, forms: `^[0-9a-f]+ \d{4}-\d\d-\d\d .+$`, right: func(a *answer) {
		a.holdsOutput("git", "--no-pager", "log", "-10", "--date=short", "--format=%h %ad %an: %s", "--", "event.go")
	}},
	{ask: "What changed last?", git: true, forms: `.*`, right: func(a *answer) { a.holdsOutput("git", "--no-pager", "log", "-1", "--stat") }},
	{ask: "How many commits are there?", git: true, forms: `^\d+$`, right: func(a *answer) { a.holdsOutput("git", "rev-list", "--count", "HEAD") }},

	// Several things at once, each by a sub-agent.
	{
		ask:   "In parallel: list the packages with their doc comments, find where the task tool is implemented, count the Go files and lines",
		agent: []string{"explore", "explore", "researcher"},
		right: func(a *answer) {
			rightPackages(a.part(1))
			a.part(2).quotesFile("run/tasktool.go")
			rightCounts(a.part(3))
		},
	},
	{
		ask:   "In parallel: which tests cover the policy, find every TODO, what does Outcome hold, and list the headings of ARCHITECTURE.md",
		agent: []string{"explore", "explore", "explore", "researcher"},
		right: func(a *answer) {
			rightTests(a.part(1))
			rightTodo(a.part(2))
			a.part(3).quotesWhole("Outcome")
			four := a.part(4)
			four.quotesExactly(four.headings("ARCHITECTURE.md"))
		},
	},
	{
		ask: "For each of policy, run and trace: outline the package", agent: []string{"explore", "explore", "explore"},
		right: func(a *answer) {
			for i, dir := range []string{"policy", "run", "trace"} {
				rightOutline(a.part(i+1), dir)
			}
		},
	},
	{
		ask: "同时：列出所有包、查找 TODO、统计 Go 文件和行数", agent: []string{"explore", "explore", "researcher"},
		right: func(a *answer) {
			rightPackages(a.part(1))
			rightTodo(a.part(2))
			rightCounts(a.part(3))
		},
	},
	// An agent that has one tool does what that tool can do.
	{ask: "Ask the librarian to find go.mod", agent: []string{"librarian"}, right: func(a *answer) {
		a.lists("go.mod")
	}},
	{ask: "Ask the clerk for the git log", agent: []string{"clerk"}, git: true, forms: `^[0-9a-f]+ \d{4}-\d\d-\d\d .+$`, right: func(a *answer) {
		a.holdsOutput("git", "--no-pager", "log", "-10", "--date=short", "--format=%h %ad %an: %s")
	}},
	{ask: "Ask the clerk to count the Go files and ask the librarian where runtime.go is", agent: []string{"clerk", "librarian"}, right: func(a *answer) {
		a.part(1).says(strconv.Itoa(len(a.tree.goFiles())) + " Go files")
		a.part(2).lists("run/runtime.go")
	}},
}

func TestQuestions(t *testing.T) {
	// HOME is for git alone, which may have been told there whose repository this is.
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	h, err := host.Open(t.Context(), host.Options{
		Workspace: "..", Environ: env,
		Settings: []host.Setting{{Flag: "test", Key: "model", Value: "offline:rules"}},
		Agents: []*agents.Definition{
			{Name: "clerk", Description: "Runs commands, nothing else.", Prompt: "You run commands.", Tools: agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"execute"}}},
			{Name: "librarian", Description: "Finds files, nothing else.", Prompt: "You find files.", Tools: agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"find_files"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if len(questions) < 24 {
		t.Errorf("%d questions", len(questions))
	}
	now := readTree(t, nil)
	for _, q := range questions {
		t.Run(q.ask, func(t *testing.T) {
			if raceDetector && len(q.agent) < 2 {
				t.Skip("the race detector slows searching down tenfold; what runs in parallel is enough for it")
			}
			if q.git {
				if _, err := os.Stat("../.git"); err != nil {
					t.Skip("this copy has no git history")
				}
				if _, err := exec.LookPath("git"); err != nil {
					t.Skip("git is not installed")
				}
			}
			var a *answer
			for range 8 {
				var out synapse.Outcome
				var events []*synapse.Event
				out, events = finish(t, h.Run(t.Context(), host.Input{Prompt: q.ask}))
				before := now
				if now = readTree(t, now); !now.same(before) {
					continue // somebody is at work: ask again
				}
				if out.Status != synapse.StatusCompleted || out.Failed > 0 {
					t.Fatalf("%s, %s, %d sub-agents failed:\n%s", out.Status, out.Cause, out.Failed, out.Text)
				}
				a = read(t, now, out.Text, q.forms)
				a.started(events, q.agent)
				break
			}
			if a == nil {
				t.Skip("the files change faster than they can be asked about")
			}
			q.right(a)
			if t.Failed() {
				t.Logf("the answer:\n%s", a.whole)
			}
		})
	}
}

// What rules can't do is refused, and refused by the kind that the command line
// gives an exit code of its own.
func TestRefusals(t *testing.T) {
	h, err := host.Open(t.Context(), host.Options{
		Workspace: "..", Environ: []string{"PATH=" + os.Getenv("PATH")},
		Settings: []host.Setting{{Flag: "test", Key: "model", Value: "offline:rules"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, ask := range []string{"Why does the loop hold no clock?", "Rewrite the guard", "Translate README.md into French"} {
		out, events := finish(t, h.Run(t.Context(), host.Input{Prompt: ask}))
		if out.Status != synapse.StatusFailed || out.ErrorKind != synapse.ErrorUnsupported {
			t.Errorf("%s: %s, %s: %s", ask, out.Status, out.ErrorKind, out.Text)
		}
		for _, e := range events {
			if e.Kind == synapse.KindToolStarted {
				t.Errorf("%s: a tool was called: %+v", ask, e.Body)
			}
		}
	}
}

// The checks have to be able to fail, or they would prove nothing.
func TestChecksSeeWrongAnswers(t *testing.T) {
	tr := &tree{content: map[string]string{
		"a/a.go": "// Package a keeps\n// things. It is old.\npackage a\n\nfunc B() {}\n", "x.md": "# X\n\none\ntwo\n",
	}, split: map[string][]string{}, sources: map[string]source{}}
	for _, tc := range []struct {
		answer string
		ok     bool
	}{
		{"a/a.go:5: func B() {}", true},
		{"a/a.go:4: func B() {}", false},
		{"a/a.go:5: func B()", false},
		{"a/a.go:9: func B() {}", false},
		{"a/a.go:5: func B…", true},
		{"a/a.go:5: func C…", false},
		{"a/a.go:1-2: Package a keeps things.", true},
		{"a/a.go:1-2: Package a keeps things. It is old.", true},
		{"a/a.go:1-2: Package a keeps", false},
		{"a/a.go:1-2: Package a loses things.", false},
		{"x.md:3-4: one two", true},
		{"x.md:3-4: two one", false},
		{"a/a.go:4-5\n\n    4\n    5  func B() {}", true},
		{"a/a.go:4-5\n\n    4  func B() {}", false},
		{"b/b.go:1: package b", false},
		{"a/a.go", true},
		{"a/b.go", false},
		{"There are many packages.", false},
		{"2 packages", true},
	} {
		a, faults := inspect(tr, tc.answer, "")
		if (len(faults) == 0) != tc.ok {
			t.Errorf("%q: faults %q, quotes %+v", tc.answer, faults, a.quotes)
		}
	}
	if want := (declaration{spot: spot{"a/a.go", 5}, file: "a/a.go", dir: "a", name: "B", kind: "func", exported: true, first: 5, end: 5}); !slices.Contains(tr.declarations(), want) {
		t.Errorf("declarations %+v", tr.declarations())
	}
}

func rightPackages(a *answer) {
	docs := a.tree.packageDocs(a.t)
	a.says(fmt.Sprintf("%d packages", len(docs)))
	told := map[string]string{}
	for _, q := range a.quotes {
		told[path.Dir(q.path)] = q.text
	}
	for dir, doc := range docs {
		switch first := told[dir]; {
		case doc == "":
			if !strings.HasPrefix(first, "package ") {
				a.t.Errorf("%s has no doc comment, told is %q", dir, first)
			}
		case !strings.HasPrefix(doc, strings.TrimSuffix(first, "…")) || !strings.Contains(".?!…", last(first)):
			a.t.Errorf("%s: told is %q, its doc is %q", dir, first, doc)
		}
	}
	for dir := range told {
		if _, ok := docs[dir]; !ok {
			a.t.Errorf("%s is no package of ours", dir)
		}
	}
}

func last(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return "nothing"
	}
	return string(r[len(r)-1])
}

func rightCounts(a *answer) {
	all := a.tree.goFiles()
	tests, code, inTests := 0, 0, 0
	dirs := map[string]int{}
	for _, f := range all {
		n := len(a.tree.lines(f))
		if dir, _, deep := strings.Cut(f, "/"); deep {
			dirs[dir] += n
		} else {
			dirs["."] += n
		}
		if strings.HasSuffix(f, "_test.go") {
			tests, inTests = tests+1, inTests+n
		} else {
			code += n
		}
	}
	a.says(fmt.Sprintf("%s Go files, %d of them tests", grouped(len(all)), tests))
	a.says(fmt.Sprintf("%s Go lines in %s files: %s in code, %s in tests", grouped(code+inTests), grouped(len(all)), grouped(code), grouped(inTests)))
	rows := 0
	for _, l := range a.lines {
		if m := tableRow.FindStringSubmatch(l); m != nil && m[2] != "elsewhere" {
			rows++
			if m[1] != grouped(dirs[m[2]]) {
				a.t.Errorf("%q, but there are %d", l, dirs[m[2]])
			}
		}
	}
	if rows != min(len(dirs), 12) {
		a.t.Errorf("%d rows for %d folders", rows, len(dirs))
	}
}

func rightAgents(a *answer) {
	for _, f := range a.tree.under("agents/builtin/", ".md") {
		text := a.tree.content[f]
		name := regexp.MustCompile(`(?m)^name: (.+)$`).FindStringSubmatch(text)
		about := regexp.MustCompile(`(?m)^description: (.{40})`).FindStringSubmatch(text)
		if name == nil || about == nil {
			a.t.Fatalf("%s has no name or description", f)
		}
		a.says("\n" + name[1] + ": " + about[1])
	}
	a.says("\nclerk: Runs commands, nothing else. (tools: execute)")
	a.says(fmt.Sprintf("%d agents can be delegated to", len(a.tree.under("agents/builtin/", ".md"))+2))
}

func rightLongest(a *answer) {
	longest, n := "", 0
	for _, f := range a.tree.goFiles() {
		if l := len(a.tree.lines(f)); !isData(f) && l > n {
			longest, n = f, l
		}
	}
	for _, l := range a.lines {
		if m := tableRow.FindStringSubmatch(l); m != nil {
			if m[2] != longest && m[1] != grouped(n) {
				a.t.Errorf("first is %q, but %s has %d lines", l, longest, n)
			}
			return
		}
	}
	a.t.Error("no file is named")
}

func rightMarkdown(a *answer) {
	var own []string
	all := a.tree.under("", ".md")
	for _, f := range all {
		if !isData(f) {
			own = append(own, f)
		}
	}
	a.says(fmt.Sprintf("%s Markdown files (find_files **/*.md)", grouped(len(all))))
	listed := a.listed()
	for _, f := range listed {
		if !slices.Contains(all, f) || isData(f) {
			a.t.Errorf("%s is listed", f)
		}
	}
	// The tool lists 200, and what a sample is counts among them.
	if len(all) <= 200 && !slices.Equal(listed, own) {
		a.t.Errorf("listed are %q,\nwant %q", listed, own)
	}
}

func rightTodo(a *answer) {
	var want []spot
	for _, f := range a.tree.goFiles() {
		if isData(f) {
			continue
		}
		for _, p := range a.tree.source(f).comments {
			if regexp.MustCompile(`^(//|/\*)\s*TODO\b`).MatchString(p.text) {
				want = append(want, p.spot)
			}
		}
	}
	for _, p := range want {
		a.quotesPlace(p)
	}
	for _, q := range a.quotes {
		if isData(q.path) {
			a.t.Errorf("sample data is quoted: %s", q.path)
		}
	}
	if len(want) == 0 && len(a.quotes) == 0 {
		a.says("no TODO comment in the project's own files")
	}
}

func rightTests(a *answer) {
	want := a.declared(func(d declaration) bool {
		return d.test && d.kind == "func" && d.receiver == "" && testName.MatchString(d.name) &&
			(strings.Contains(strings.ToLower(d.name), "policy") || strings.Contains(strings.ToLower(d.file), "policy"))
	})
	a.says(fmt.Sprintf("%d tests named after “policy” (their own name, file or folder) in %d files", len(want), files(want)))
	for _, q := range a.quotes {
		if !slices.Contains(want, spot{q.path, q.from}) {
			a.t.Errorf("%s:%d is no test of the policy", q.path, q.from)
		}
	}
	if a.cut() == 0 && len(a.quotes) != len(want) || a.cut()+len(a.quotes) != len(want) {
		a.t.Errorf("%d are quoted and %d said to be left out, of %d", len(a.quotes), a.cut(), len(want))
	}
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)

func rightOutline(a *answer, dir string) {
	all := a.declared(func(d declaration) bool { return d.dir == dir && !d.test })
	public := a.declared(func(d declaration) bool { return d.dir == dir && !d.test && d.exported })
	want := all
	a.says(fmt.Sprintf("%d definitions in %s", len(all), dir))
	if strings.Contains(a.text, "are exported") {
		a.says(fmt.Sprintf("of which %d are exported", len(public)))
		want = public
	}
	for _, q := range a.quotes {
		if !slices.Contains(want, spot{q.path, q.from}) {
			a.t.Errorf("%s:%d is no such definition of %s", q.path, q.from, dir)
		}
	}
	if a.cut()+len(a.quotes) != len(want) {
		a.t.Errorf("%d are quoted and %d said to be left out, of %d", len(a.quotes), a.cut(), len(want))
	}
}

// started checks which sub-agents were asked, and that they were all under way
// before the first of them was done.
func (a *answer) started(events []*synapse.Event, want []string) {
	a.t.Helper()
	var names []string
	ended := false
	for _, e := range events {
		switch b := e.Body.(type) {
		case *synapse.ChildStarted:
			names = append(names, b.Agent)
			if ended {
				a.t.Errorf("%s was started after another had ended: they don't run in parallel", b.Agent)
			}
		case *synapse.ChildFinished:
			ended = true
			if b.Status != synapse.StatusCompleted {
				a.t.Errorf("%s: %s: %s", b.Agent, b.Status, b.Cause)
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		a.t.Errorf("asked are %q, want %q", names, want)
	}
}

// A tree is the repository's text as it was read at one moment.
type tree struct {
	content map[string]string // by slash-separated path, without what git ignores
	stamps  map[string]string // of every file, ignored or not
	head    string            // the last commit, where there are any
	split   map[string][]string
	sources map[string]source // parsed so far, by file
}

// readTree reads every file that git does not ignore. Where nothing has changed
// since before, it returns that.
func readTree(t *testing.T, before *tree) *tree {
	t.Helper()
	tr := &tree{content: map[string]string{}, stamps: map[string]string{}, split: map[string][]string{}, sources: map[string]source{}}
	if before != nil {
		tr.sources = before.sources
	}
	if head, err := exec.Command("git", "-C", "..", "rev-parse", "HEAD").Output(); err == nil {
		tr.head = string(head)
	}
	err := filepath.WalkDir("..", func(p string, d os.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err): // a test of another package has taken it away
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.Type().IsRegular():
			info, err := d.Info()
			if os.IsNotExist(err) {
				return nil
			} else if err != nil {
				return err
			}
			tr.stamps[strings.TrimPrefix(filepath.ToSlash(p), "../")] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if before != nil && before.head == tr.head && maps.Equal(before.stamps, tr.stamps) {
		return before
	}
	ignored := func(string) bool { return false }
	if out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output(); err == nil && len(out) > 0 {
		known := map[string]bool{}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			known[name] = true
		}
		ignored = func(name string) bool { return !known[name] }
	}
	for name := range tr.stamps {
		if ignored(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		tr.content[name] = string(text)
	}
	if len(tr.goFiles()) < 100 {
		t.Fatalf("found only %d Go files: the test is looking in the wrong place", len(tr.goFiles()))
	}
	return tr
}

// same reports whether what git does not ignore is the same in both.
func (tr *tree) same(other *tree) bool {
	return tr == other || tr.head == other.head && maps.Equal(tr.content, other.content)
}
