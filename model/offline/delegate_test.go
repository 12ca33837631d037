package offline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse"
)

var passing = map[string]*synapse.ToolResult{"go test": synapse.TextResult("ok  \texample.com/atlas/route\t0.002s\nok  \texample.com/atlas/store\t0.002s\n?   \texample.com/atlas/cmd/atlas\t[no test files]")}

var failing = map[string]*synapse.ToolResult{"go test": synapse.TextResult("--- FAIL: TestShortestWithoutAWay (0.00s)\n    route_test.go:26: got <nil>\nFAIL\nFAIL\texample.com/atlas/route\t0.002s\nok  \texample.com/atlas/store\t0.002s\nFAIL\n[exit code 1]")}

// delegated returns who was asked to do what, "agent: first line of the prompt".
func delegated(t *testing.T, log []string) []string {
	t.Helper()
	var out []string
	for _, l := range log {
		raw, ok := strings.CutPrefix(l, "main: task ")
		if !ok {
			continue
		}
		var args struct {
			Type, Description, Prompt string
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		args.Type, _ = m["subagent_type"].(string)
		args.Description, _ = m["description"].(string)
		args.Prompt, _ = m["prompt"].(string)
		if m["background"] != false {
			t.Errorf("the answer needs the report, but background is %v", m["background"])
		}
		if n := len(strings.Fields(args.Description)); n < 2 || n > 6 {
			t.Errorf("description %q has %d words", args.Description, n)
		}
		first, rest, _ := strings.Cut(args.Prompt, "\n\n")
		if !strings.Contains(rest, "path:line") {
			t.Errorf("the prompt does not say how to report: %q", args.Prompt)
		}
		out = append(out, args.Type+": "+first)
	}
	return out
}

func TestDelegation(t *testing.T) {
	for _, tc := range []struct {
		slug, ask string
		agents    []benchAgent
		want      []string // delegated
		holds     []string // in the answer
		quotes    int
	}{
		{
			"parallel", "In parallel: list the packages with their doc comments, find every TODO, and count the Go files and lines", crew,
			[]string{"researcher: List the packages with their doc comments.", "explore: Find every TODO.", "explore: Count the Go files and lines."},
			[]string{"researcher reports:", "3 packages", "3 TODO comments in 3 files", "184 Go lines"}, 6,
		},
		{
			"named", "Ask the tester to run the tests and use the explore agent to find all callers of checkRoad", crew,
			[]string{"tester: Run the tests.", "explore: Find all callers of checkRoad."},
			[]string{"`go test ./...` passed", "store/store.go:35:"}, 1,
		},
		{
			"numbered", "Please do these:\n1. Where is Shortest defined?\n2. run the tests\n3. which tests cover the store?", crew,
			[]string{"explore: Where is Shortest defined?", "tester: Run the tests.", "explore: Which tests cover the store?"},
			[]string{"route/route.go:14:", "passed", "store/store_test.go:5:"}, 4,
		},
		{
			"each", "For each package, list the exported functions", crew,
			[]string{"explore: List the exported functions in cmd/atlas/.", "explore: List the exported functions in route/.", "explore: List the exported functions in store/."},
			[]string{"0 functions in cmd/atlas", "store/store.go:29:"}, 3,
		},
		{
			"zh", "让 tester 运行测试，并让 explore 查找 checkRoad 的调用", crew,
			[]string{"tester: 运行测试.", "explore: 查找 checkRoad 的调用."},
			[]string{"`go test ./...` passed", "store/store.go:35:"}, 1,
		},
		{
			"parallel-zh", "同时：列出所有包、查找 TODO、统计 Go 文件和行数", crew,
			[]string{"researcher: 列出所有包.", "explore: 查找 TODO.", "explore: 统计 Go 文件和行数."},
			[]string{"3 packages", "184 Go lines"}, 6,
		},
		{
			"mixed", "Find every TODO; run the tests; write a haiku", crew,
			[]string{"explore: Find every TODO.", "tester: Run the tests."},
			[]string{"## 3. write a haiku", "Not done: it takes a language model"}, 3,
		},
		{
			"nobody-can-execute", "run the tests and list the Go files", crew[:2],
			[]string{"explore: List the Go files."},
			[]string{"`go test ./...` passed"}, 0, // done by the main agent itself
		},
		{
			"wrong-agent", "ask explore to run the tests", crew, nil,
			[]string{"Not done: the agent explore has no tool to run commands (execute)."}, 0,
		},
		{
			"child-refuses", "ask the reviewer to judge the design; ask explore where Shortest is defined", crew,
			[]string{"reviewer: Judge the design.", "explore: Where Shortest is defined?"},
			[]string{"Not done: the agent reviewer failed: offline:rules: unsupported: Can't do “Judge the design”: it takes a language model.", "route/route.go:14:"}, 2,
		},
		{
			"unknown-agent", "use the poet agent to list the files", crew, nil,
			[]string{`Not done: there is no agent "poet"; there are: analyst, explore`}, 0,
		},
		{
			"one-part", "Find every TODO", crew, nil, []string{"3 TODO comments"}, 3,
		},
		{
			"two-linked", "Where is checkRoad defined and who calls it?", crew, nil, []string{"store/store.go:53:", "store/store.go:35:"}, 2,
		},
	} {
		t.Run(tc.slug, func(t *testing.T) {
			b := newBench(t, atlas)
			b.agents, b.exec = tc.agents, passing
			got, err := b.ask(tc.ask)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, delegated(t, b.log)); d != "" {
				t.Errorf("delegated (-want +got):\n%s", d)
			}
			for _, w := range tc.holds {
				if !strings.Contains(got, w) {
					t.Errorf("the answer lacks %q:\n%s", w, got)
				}
			}
			if n := verify(t, atlas, strings.ReplaceAll(got, "ok  \t", "… 1 ok ")); n < tc.quotes {
				t.Errorf("%d quotes, want %d at least:\n%s", n, tc.quotes, got)
			}
			golden(t, "delegate-"+tc.slug, fmt.Sprintf("Q: %s\n\n%s", tc.ask, got))
		})
	}
}

// Parts that say "in parallel" go out in one message.
func TestParallelPartsAreOneMessage(t *testing.T) {
	b := newBench(t, atlas)
	b.agents = crew
	r := mustCollect(t, &synapse.Request{Messages: []synapse.Message{synapse.UserText("in parallel: find every TODO, count the Go files, list the packages")}, Tools: b.defs(nil, true)})
	if n := len(r.Message.Calls()); n != 3 {
		t.Fatalf("%d calls in the first message: %s", n, show(r.Message.Calls()))
	}
	ids := map[string]bool{}
	for _, c := range r.Message.Calls() {
		if ids[c.ID] {
			t.Errorf("two calls have the id %s", c.ID)
		}
		ids[c.ID] = true
	}
}

// What comes after "then" starts when the part before is done.
func TestThenWaits(t *testing.T) {
	b := newBench(t, atlas)
	b.agents = crew
	r := mustCollect(t, &synapse.Request{Messages: []synapse.Message{synapse.UserText("run the tests and then list the Go files")}, Tools: b.defs(nil, true)})
	if calls := r.Message.Calls(); len(calls) != 1 || !strings.Contains(calls[0].Args, "Run the tests.") {
		t.Fatalf("got %s", show(r.Message.Calls()))
	}
}

func TestFailingTestsAreQuoted(t *testing.T) {
	b := newBench(t, atlas)
	b.exec = failing
	got, err := b.ask("run the tests in route")
	if err != nil {
		t.Fatal(err)
	}
	want := "`go test ./route/...` failed (exit 1) (chosen by go.mod)\n\n--- FAIL: TestShortestWithoutAWay (0.00s)\n    route_test.go:26: got <nil>\nFAIL\nFAIL\texample.com/atlas/route\t0.002s\nFAIL\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTestCommands(t *testing.T) {
	for _, tc := range []struct{ file, ask, want string }{
		{"go.mod", "run the tests", "go test ./..."},
		{"go.mod", "run the store tests", "go test ./store/..."},
		{"go.mod", "run TestAddRefusesLoops tests", "go test -run '^TestAddRefusesLoops$' ./..."},
		{"package.json", "run the tests", "npm test"},
		{"pyproject.toml", "do all tests pass?", "python3 -m pytest -q"},
		{"Cargo.toml", "运行测试", "cargo test"},
		{"Makefile", "are the tests green?", "make test"},
		{"docs/package.json", "run the tests", ""}, // not at the root
	} {
		t.Run(tc.file+" "+tc.ask, func(t *testing.T) {
			b := newBench(t, atlas)
			defs := b.defs([]string{"find_files", "execute"}, false)
			messages := []synapse.Message{synapse.UserText(tc.ask)}
			got := ""
			for range 4 {
				r := mustCollect(t, &synapse.Request{Messages: messages, Tools: defs})
				calls := r.Message.Calls()
				if len(calls) == 0 {
					break
				}
				var args map[string]any
				if err := json.Unmarshal([]byte(calls[0].Args), &args); err != nil {
					t.Fatal(err)
				}
				if calls[0].Name == "execute" {
					got, _ = args["command"].(string)
					break
				}
				text := tc.file
				if args["path"] != nil {
					text = "store/store.go"
				}
				messages = append(messages, r.Message, synapse.Message{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: calls[0].ID, Name: calls[0].Name, Text: text}}}})
			}
			if got != tc.want {
				t.Errorf("ran %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGitQuestions(t *testing.T) {
	for _, tc := range []struct{ ask, want string }{
		{"show the last 3 commits", "git --no-pager log -3 --date=short --format='%h %ad %an: %s'"},
		{"git log", "git --no-pager log -10 --date=short --format='%h %ad %an: %s'"},
		{"what changed recently in store/?", "git --no-pager log -10 --date=short --format='%h %ad %an: %s' -- store"},
		{"what changed in the last commit?", "git --no-pager log -1 --stat"},
		{"git status", "git status --short --branch"},
		{"are there uncommitted changes?", "git status --short --branch"},
		{"show the diff", "git --no-pager diff --stat --patch"},
		{"who last changed store/store.go?", "git --no-pager log -5 --date=short --format='%h %ad %an: %s' -- store/store.go"},
		{"git blame store/store.go line 11", "git --no-pager blame -L 11,11 --date=short -- store/store.go"},
		{"how many commits are there?", "git rev-list --count HEAD"},
		{"who are the contributors?", "git --no-pager shortlog -sn HEAD"},
		{"which branch is this?", "git branch -vv"},
		{"最近 5 次提交", "git --no-pager log -5 --date=short --format='%h %ad %an: %s'"},
		{"who wrote a'b;rm -rf", "git --no-pager log -5 --date=short --format='%h %ad %an: %s' -- 'a'\\''b'"},
		{"run `make -n all`", "make -n all"},
		{"run go vet ./...", "go vet ./..."},
	} {
		t.Run(tc.ask, func(t *testing.T) {
			b := newBench(t, atlas)
			b.exec = map[string]*synapse.ToolResult{"": synapse.TextResult("abc1234 something\n[exit code 0]")}
			got, err := b.ask(tc.ask)
			if len(b.log) != 1 {
				t.Fatalf("calls %v, %v", b.log, err)
			}
			var args map[string]any
			if err := json.Unmarshal([]byte(strings.TrimPrefix(b.log[0], "main: execute ")), &args); err != nil {
				t.Fatal(err)
			}
			if args["command"] != tc.want {
				t.Errorf("ran %v, want %s", args["command"], tc.want)
			}
			if !strings.Contains(got, "abc1234 something") || !strings.Contains(got, "`"+tc.want+"`") {
				t.Errorf("got %s", got)
			}
		})
	}
}
