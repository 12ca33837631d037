package offline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
)

// project writes files into a directory of its own.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var harbour = map[string]string{
	"go.mod": "module example.com/harbour\n\ngo 1.24\n",
	"README.md": "[English](README.md) · [Deutsch](README.de.md)\n\n# Harbour\n\nHarbour berths ships.\n\n## Fees\n\n" +
		"A fee is due when a ship leaves.\nIt is counted per night.\n\n```sh\n# not a heading\nharbour fee\n```\n\n" +
		"## Exit codes\n\n| code | meaning |\n| --- | --- |\n| 0 | berthed |\n| 3 | no room |\n\n- **Tides.** They are not looked at.\n",
	"docs/layers.md":        "# Layers\n\n```\nquay  ->\nship  -> quay\n.     -> ship quay\n```\n",
	"docs/plan.txt":         "later\n",
	"quay/quay.go":          "// Package quay knows the berths.\npackage quay\n\n// A Berth is where a ship lies.\ntype Berth struct {\n\t// Length is in metres.\n\tLength int\n\tFree   bool\n}\n\n// Fits says whether there is room.\nfunc (b *Berth) Fits(\n\tlength int,\n) bool {\n\treturn b.Free && length <= b.Length\n}\n\nfunc (b Berth) String() string { return \"berth\" }\n",
	"quay/quay_test.go":     "package quay\n\nimport \"testing\"\n\nfunc TestFits(t *testing.T) {\n\ttest(t)\n}\n\nfunc test(t *testing.T) { t.Log(Berth{}) }\n",
	"quay/testdata/x.go":    "package x\n\n// TODO: nobody's\nfunc TestNothing() {}\n",
	"ship/ship.go":          "// Package ship moves ships.\npackage ship\n\nimport (\n\t\"errors\"\n\n\t\"example.com/harbour/quay\"\n)\n\n// A Mover moves a ship.\ntype Mover interface{ Move() error }\n\n// A Ship has a berth, sometimes.\ntype Ship struct {\n\tquay.Berth\n\tName string\n}\n\n// enter lets a ship in: the harbour master's rule.\nfunc enter(s *Ship) error {\n\tif !s.Fits(10) {\n\t\treturn errors.New(\"no room for you\")\n\t}\n\treturn nil\n}\n",
	"ship/harbourmaster.go": "package ship\n\ntype rule struct{ weight int }\n\nfunc newRule() rule { return rule{} }\n",
	"shiptest/shiptest.go":  "// Package shiptest makes ships for tests.\npackage shiptest\n\nfunc New() {}\n",
	"cmd/harbour/main.go":   "// Command harbour runs a harbour.\npackage main\n\nfunc main() {}\n",
	"Makefile":              "check: vet ## everything\n\tgo test ./...\n\nvet:\n\tgo vet ./...\n",
}

func TestHarbour(t *testing.T) {
	dir := project(t, harbour)
	for _, tc := range []struct {
		ask  string
		want []string
		not  string
	}{
		{"what packages are there?", []string{"4 packages", "shiptest/shiptest.go:1: Package shiptest makes ships for tests."}, ""},
		{"find every TODO", []string{"no TODO comment in the project's own files; 1 line in sample data left out"}, "testdata/"},
		{"how many TODOs are there?", []string{"no TODO comment in the project's own files"}, "testdata/"},
		{"how many tests are there?", []string{"1 test in 1 file"}, ""},
		{"list the tests in quay", []string{"1 test in quay, in 1 file", "quay/quay_test.go:5:"}, ""},
		{"where is Berth defined?", []string{"1 definition of Berth", "quay/quay.go:5: type Berth struct {"}, "ship/"},
		{"what does Berth hold?", []string{"quay/quay.go:4-9", "    7      Length int"}, ""},
		{"what fields does Ship have?", []string{"ship/ship.go:13-17"}, ""},
		{"list the methods of Berth", []string{"2 methods of Berth", "quay/quay.go:12: func (b *Berth) Fits(", "quay/quay.go:18:"}, ""},
		{"outline the package quay", []string{"3 definitions in quay", "quay/quay.go:12: func (b *Berth) Fits("}, "_test.go"},
		{"outline shiptest", []string{"1 definition in shiptest"}, ""},
		{"list all interfaces", []string{"1 interface in 1 file", "ship/ship.go:11:"}, ""},
		{"列出所有接口", []string{"1 interface in 1 file"}, ""},
		{"list the make targets", []string{"2 targets in 1 file", "Makefile:1: check: vet ## everything"}, ""},
		{"which file is the longest?", []string{"of 6 files by lines", "      25  ship/ship.go"}, "testdata"},
		{`where is "no room for you" produced?`, []string{"“no room for you”: 1 line of code in 1 file", "ship/ship.go:22:"}, ""},
		{"where is the harbour master implemented?", []string{"ship/harbourmaster.go:3:"}, ""},
		{"what are the headings of README.md?", []string{"3 headings in README.md", "README.md:17: ## Exit codes"}, "not a heading"},
		{"who may import what?", []string{"import rules: 3 lines in 1 file", "docs/layers.md:5: ship  -> quay"}, ""},
		{"what may ship import?", []string{"import rules of ship: 1 line", "docs/layers.md:5:"}, "docs/layers.md:6"},
		{"which packages may import quay?", []string{"docs/layers.md:5:", "docs/layers.md:6:"}, "docs/layers.md:4"},
		{"what are the exit codes?", []string{"README.md:17: ## Exit codes", "README.md:21: | 0 | berthed |", "README.md:22: | 3 | no room |"}, ""},
		{"how are fees counted?", []string{"README.md:9-10: A fee is due when a ship leaves. It is counted per night.", "README.md:14: harbour fee"}, ""},
		{"what does the README say about tides?", []string{"README.md:24: - **Tides.** They are not looked at."}, ""},
		{"what does the CHANGELOG say about fees?", []string{"no document named CHANGELOG"}, ""},
		{"what does entering take?", []string{"ship/ship.go:20: func enter(s *Ship) error {"}, ""},
		{"tell me about quay", []string{"quay/quay.go:1: Package quay knows the berths."}, ""},
		{"what is harbour?", []string{"README.md, its headings", "README.md:5: Harbour berths ships."}, "English"},
		{"what's in docs?", []string{"2 files in docs", "docs/plan.txt"}, ""},
		{"is there a Makefile?", []string{"1 file named Makefile"}, ""},
		{"for each of quay, ship and shiptest: say what it is for", []string{"Package quay knows", "Package ship moves", "Package shiptest makes"}, ""},
		{"hello!", []string{"They can find and list files"}, ""},
	} {
		t.Run(tc.ask, func(t *testing.T) {
			b := newBench(t, dir)
			got, err := b.ask(tc.ask)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range tc.want {
				if !strings.Contains(got, w) {
					t.Errorf("the answer lacks %q:\n%s", w, got)
				}
			}
			if tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("the answer holds %q:\n%s", tc.not, got)
			}
			if !strings.HasPrefix(got, "These are") {
				verify(t, dir, got)
			}
		})
	}
}

// An agent with one tool is asked for what that tool can do, and no more.
func TestAgentsWithOneTool(t *testing.T) {
	dir := project(t, harbour)
	few := []benchAgent{
		{"clerk", "Runs commands.", []string{"execute"}},
		{"librarian", "Lists files.", []string{"find_files"}},
		{"seeker", "Searches.", []string{"search_files"}},
		{"reader", "Reads.", []string{"read_file"}},
	}
	log := map[string]*synapse.ToolResult{"git ": synapse.TextResult("abc1234 2020-01-01 Ann: berths\n[exit code 0]")}
	for _, tc := range []struct{ ask, prompt, want string }{
		{"ask clerk for the git log", "Show the git log.", "abc1234 2020-01-01 Ann: berths"},
		{"ask the clerk for the last 3 commits", "Show the last 3 commits.", "git --no-pager log -3"},
		{"ask the clerk for the number of Go files", "Show the number of Go files.", "7 Go files, 1 of them tests (find "},
		{"ask clerk where Berth is defined", "Where Berth is defined?", "quay/quay.go:5: type Berth struct {"},
		{"ask librarian to list the Go files", "List the Go files.", "7 Go files"},
		{"ask the librarian to find go.mod", "Find go.mod.", "1 file named go.mod"},
		{"ask the librarian where quay.go is", "Where quay.go is?", "quay/quay.go"},
		{"ask the seeker to list the Go files", "List the Go files.", "7 Go files (search_files **/*.go)"},
		{"ask seeker about the quay package", "Summarise the quay package.", "3 exported definitions in quay"},
		{"ask reader to show the first 3 lines of go.mod", "Show the first 3 lines of go.mod.", "    3  go 1.24"},
		{"ask reader to summarise README.md", "Summarise README.md.", "README.md:7: ## Fees"},
		{"ask the reader to list the Go files", "", "Not done: the agent reader has no tool to find files."},
		{"ask the librarian to summarise README.md", "", "Not done: the agent librarian has no tool to read files."},
		{"ask seeker for the git log", "", "Not done: the agent seeker has no tool to run commands (execute)."},
	} {
		t.Run(tc.ask, func(t *testing.T) {
			b := newBench(t, dir)
			b.agents, b.exec = few, log
			got, err := b.ask(tc.ask)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("the answer lacks %q:\n%s", tc.want, got)
			}
			asked := delegated(t, b.log)
			if tc.prompt == "" && len(asked) > 0 || tc.prompt != "" && (len(asked) != 1 || !strings.HasSuffix(asked[0], ": "+tc.prompt)) {
				t.Errorf("asked %q, want %q", asked, tc.prompt)
			}
		})
	}
}

// A package with more definitions than a search returns is still counted, and
// what it exports is there.
func TestHugePackage(t *testing.T) {
	var src strings.Builder
	src.WriteString("package big\n")
	for i := range 400 {
		fmt.Fprintf(&src, "func hidden%d() {}\n", i)
	}
	for i := range 100 {
		fmt.Fprintf(&src, "func Shown%d() {}\n", i)
	}
	b := newBench(t, project(t, map[string]string{"big/a.go": src.String(), "big/sub/b.go": "package sub\n\nfunc Other() {}\n"}))
	got, err := b.ask("outline the package big")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"500 definitions in big, of which 100 are exported", "big/a.go:402: func Shown0() {}", "… 20 lines more"} {
		if !strings.Contains(got, w) {
			t.Errorf("the answer lacks %q:\n%s", w, got)
		}
	}
	if strings.Contains(got, "hidden") || strings.Contains(got, "Other") {
		t.Errorf("got %s", got)
	}
}

// Nor do many files hide a package, or a line.
func TestManyFiles(t *testing.T) {
	files := map[string]string{"zz/z.go": "package zz\n", "a/t.go": "package a\n", "a/est.go": "package a\n", "a/at.go": "package a\n", "a/_x.go": "package a\n"}
	code, tests := 5, 0
	for i := range 300 {
		dir := fmt.Sprintf("p%02d", i%60)
		c := string(rune('a' + i%26))
		files[fmt.Sprintf("%s/%sx%d.go", dir, c, i)] = "package " + dir + "\n\nvar _ = 1\n"
		files[fmt.Sprintf("%s/%sx%d_test.go", dir, c, i)] = "package " + dir + "\n"
		code, tests = code+3, tests+1
	}
	dir := project(t, files)
	for ask, want := range map[string]string{
		"what packages are there?":                    "62 packages",
		"count the Go files and lines":                fmt.Sprintf("605 Go files, 300 of them tests (find_files **/*.go, tests apart)\n\n%s Go lines in 605 files: %d in code, %d in tests", "1,205", code, tests),
		"which file is the longest?":                  "the 10 longest of 605 files by lines",
		"how many tests are there?":                   "0 tests in 0 files",
		"how many lines of Go code are there in p00?": "20 Go lines in 10 files in p00: 15 in code, 5 in tests",
		"list the Go files":                           "605 Go files (find_files **/*.go)",
	} {
		b := newBench(t, dir)
		got, err := b.ask(ask)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: the answer lacks %q:\n%s", ask, want, got)
		}
		if strings.Contains(got, "The tool adds") || strings.Contains(got, "at least") {
			t.Errorf("%s: something is left out:\n%s", ask, got)
		}
	}
	// Where something is left out, the numbers say so, or hold it.
	for ask, want := range map[string]string{
		`search for "package "`: "“package”: 605 lines in 605 files",
		"who uses p00?":         "nothing uses p00",
		"which tests cover p0?": "no test is named after",
		`search for "var _"`:    "“var _”: 300 lines in 300 files",
		"who uses var?":         "at least ",
	} {
		b := newBench(t, dir)
		got, err := b.ask(ask)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, the answer lacks %q:\n%s", ask, err, want, got)
		}
	}
	// Commands cut their output too, and say so.
	b := newBench(t, dir)
	got, err := b.converse("main", []string{"execute"}, false, synapse.UserText("count the Go files and lines"))
	if want := fmt.Sprintf("%s Go lines in 605 files: %d in code, %d in tests (grep counts lines per file)", "1,205", code, tests); err != nil || !strings.Contains(got, want) {
		t.Errorf("with commands: %v, the answer lacks %q:\n%s", err, want, got)
	}
}

// A name with several definitions is shown with all of them.
func TestSeveralDefinitions(t *testing.T) {
	files := map[string]string{}
	for _, dir := range []string{"a", "b", "c", "d"} {
		files[dir+"/x.go"] = fmt.Sprintf("package %s\n\n// End is %[1]s's.\ntype End struct {\n\tOf string\n}\n", dir)
	}
	dir := project(t, files)
	b := newBench(t, dir)
	got, err := b.ask("what does End hold?")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"4 definitions of End", "a/x.go:3-6", "b/x.go:3-6", "    5      Of string", "… 1 definition more"} {
		if !strings.Contains(got, w) {
			t.Errorf("the answer lacks %q:\n%s", w, got)
		}
	}
	verify(t, dir, got)
	if got, err = b.ask("show the type c.End"); err != nil || !strings.HasPrefix(got, "c/x.go:3-6\n") {
		t.Errorf("got %v, %s", err, got)
	}
}

// What a sub-agent has cut and what the answer cuts again is one number.
func TestCutTwiceIsCountedOnce(t *testing.T) {
	files := map[string]string{}
	for _, dir := range []string{"a", "b", "c"} {
		var src strings.Builder
		fmt.Fprintf(&src, "package %s\n", dir)
		for i := range 150 {
			fmt.Fprintf(&src, "func F%d() {}\n", i)
		}
		files[dir+"/x.go"] = src.String()
	}
	b := newBench(t, project(t, files))
	b.agents = crew
	got, err := b.ask("for each of a, b and c: outline the package")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
	shown := strings.Count(got, ": func F")
	left := 0
	for l := range strings.Lines(got) {
		var n int
		if _, err := fmt.Sscanf(l, "… %d lines more", &n); err == nil {
			left += n
		}
	}
	if shown+left != 450 {
		t.Errorf("%d are shown and %d said to be left out:\n%s", shown, left, got)
	}
}
