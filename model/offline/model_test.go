package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/offline"
)

// schema returns an object schema of string properties, all required.
func schema(props ...string) json.RawMessage {
	m := map[string]any{}
	for _, p := range props {
		m[p] = map[string]any{"type": "string"}
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": m, "required": props})
	if err != nil {
		panic(err)
	}
	return b
}

func collect(req *synapse.Request) (*synapse.Reply, error) {
	return synapse.Collect(offline.New().Generate(context.Background(), req), nil)
}

func mustCollect(t *testing.T, req *synapse.Request) *synapse.Reply {
	t.Helper()
	r, err := collect(req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// unsupported fails the test unless err is the refusal that the CLI knows.
func unsupported(t *testing.T, err error) *synapse.ProviderError {
	t.Helper()
	var pe *synapse.ProviderError
	if !errors.As(err, &pe) || pe.Kind != synapse.ErrorUnsupported {
		t.Fatalf("got %v, want a refusal", err)
	}
	if pe.Provider != offline.Provider || pe.Model != offline.Name || pe.Retryable() {
		t.Errorf("got %+v", pe)
	}
	return pe
}

func TestEndSaysWhatItIs(t *testing.T) {
	b := newBench(t, atlas)
	req := &synapse.Request{Messages: []synapse.Message{synapse.UserText("List the Go files")}, Tools: b.defs(nil, false)}
	r := mustCollect(t, req)
	if r.Model != offline.Label || r.Stop != synapse.StopCalls {
		t.Errorf("got model %q, stop %q", r.Model, r.Stop)
	}
	if r.Usage.Requests != 1 || r.Usage.Tokens() != 0 || r.Usage.CostUSD == nil || *r.Usage.CostUSD != 0 {
		t.Errorf("got usage %+v", r.Usage)
	}
	if r.Message.Parts[0].Kind != synapse.PartReasoning || !strings.Contains(r.Message.Parts[0].Text, offline.Label) {
		t.Errorf("the first part is %+v", r.Message.Parts[0])
	}
}

func TestSameRequestSameReply(t *testing.T) {
	b := newBench(t, atlas)
	b.agents = crew
	req := &synapse.Request{
		Messages: []synapse.Message{synapse.UserText("In parallel: list the packages, find every TODO, count the Go lines and ask the tester to run the tests")},
		Tools:    b.defs(nil, true),
	}
	first := mustCollect(t, req)
	for range 20 {
		if d := cmp.Diff(first, mustCollect(t, req)); d != "" {
			t.Fatal(d)
		}
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, atlas)
	b.agents = crew
	for _, ask := range []string{
		"Write a function that sorts places",
		"Why is the limit 10,000?",
		"Explain how the search works",
		"Fix the bug in store.go",
		"Translate the README to French",
		"please refactor package route",
		"Is this good code?",
		"What do you think of the design?",
		"解释一下架构",
		"帮我写一个排序函数",
		"add a test; then commit it",
		"asdf qwer",
	} {
		t.Run(ask, func(t *testing.T) {
			b.log = nil
			_, err := b.ask(ask)
			pe := unsupported(t, err)
			for _, w := range []string{offline.Label, "OPENAI_API_KEY", "-m openai:NAME", "OPENAI_BASE_URL", "ollama", "search code"} {
				if !strings.Contains(pe.Message, w) {
					t.Errorf("the refusal lacks %q: %s", w, pe.Message)
				}
			}
			if len(b.log) > 0 {
				t.Errorf("it called %s before it refused", b.log)
			}
		})
	}
}

func TestOutputSchemaIsRefused(t *testing.T) {
	b := newBench(t, atlas)
	_, err := collect(&synapse.Request{
		System:   "You look.\n## Result\nYour last message must be exactly one JSON value that fits this JSON Schema, without code fence or other text:\n{\"type\":\"object\"}",
		Messages: []synapse.Message{synapse.UserText("List the Go files")},
		Tools:    b.defs(nil, false),
	})
	if pe := unsupported(t, err); !strings.Contains(pe.Message, "JSON") {
		t.Errorf("got %q", pe.Message)
	}
}

func TestNoRequest(t *testing.T) {
	for _, msgs := range [][]synapse.Message{nil, {synapse.UserText(" \n")}, {synapse.AssistantText("hello")}} {
		_, err := collect(&synapse.Request{Messages: msgs})
		unsupported(t, err)
	}
}

func TestCancelledAndBroken(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req := &synapse.Request{Messages: []synapse.Message{synapse.UserText("help")}}
	if _, err := synapse.Collect(offline.New().Generate(ctx, req), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	n := 0
	for _, err := range offline.New().Generate(context.Background(), req) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d deltas after a break", n)
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range offline.New().Generate(ctx, req) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled in the middle: got %v", last)
	}
}

// A call's arguments take the names that the offered schema has.
func TestArgumentsFollowTheSchema(t *testing.T) {
	for _, tc := range []struct {
		name string
		tool synapse.ToolDef
		ask  string
		want string // "" when there must be no call
	}{
		{"other names", synapse.ToolDef{Name: "grep", Schema: schema("query", "intent")}, `search for "x y"`, `{"intent":"look for x y","query":"x y"}`},
		{"glob", synapse.ToolDef{Name: "glob", Schema: schema("pattern")}, "list the Go files", `{"pattern":"**/*.go"}`},
		{"file_path", synapse.ToolDef{Name: "read_file", Schema: schema("file_path")}, "use the read_file tool on a.go", `{"file_path":"a.go"}`},
		{"unknown requirement", synapse.ToolDef{Name: "search_files", Schema: schema("pattern", "tenant")}, `search for "x"`, ""},
		{"wrong type", synapse.ToolDef{Name: "search_files", Schema: json.RawMessage(`{"properties":{"pattern":{"type":"integer"}}}`)}, `search for "x"`, ""},
		{"list of strings", synapse.ToolDef{Name: "search_files", Schema: json.RawMessage(`{"properties":{"pattern":{"type":"array","items":{"type":"string"}}}}`)}, `search for "x"`, `{"pattern":["x"]}`},
		{"no schema", synapse.ToolDef{Name: "search_files", Schema: json.RawMessage(`nonsense`)}, `search for "x"`, ""},
		{"no place for the pattern", synapse.ToolDef{Name: "search_files", Schema: schema("path")}, `search for "x"`, ""},
		{"enum", synapse.ToolDef{Name: "search_files", Schema: json.RawMessage(`{"properties":{"pattern":{"type":"string"},"mode":{"type":"string","enum":["content","count"]}}}`)}, `search for "x"`, `{"mode":"content","pattern":"x"}`},
		{"maximum", synapse.ToolDef{Name: "execute", Schema: json.RawMessage(`{"properties":{"command":{"type":"string"},"timeout":{"type":"integer","description":"seconds","maximum":60}}}`)}, "run `true`", `{"command":"true","timeout":60}`},
		{"named tool", synapse.ToolDef{Name: "fetch_url", Schema: schema("url")}, "fetch https://example.com/a", `{"url":"https://example.com/a"}`},
		{"skill", synapse.ToolDef{Name: "skill", Schema: schema("name")}, "use the release skill", `{"name":"release"}`},
		{"handoff", synapse.ToolDef{Name: "transfer_to_billing", Schema: schema("reason")}, "transfer me to billing", `{"reason":"asked for"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustCollect(t, &synapse.Request{Messages: []synapse.Message{synapse.UserText(tc.ask)}, Tools: []synapse.ToolDef{tc.tool}})
			calls := r.Message.Calls()
			if tc.want == "" {
				if len(calls) > 0 || !strings.Contains(r.Message.Text(), "Not done") {
					t.Fatalf("got calls %v, text %q", calls, r.Message.Text())
				}
				return
			}
			if len(calls) != 1 || calls[0].Name != tc.tool.Name || calls[0].Args != tc.want {
				t.Fatalf("got %v, want %s", show(calls), tc.want)
			}
		})
	}
}

func show(calls []*synapse.ToolCall) string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Name+" "+c.Args)
	}
	return strings.Join(out, "\n")
}

func TestUnavailableAndDeniedToolsAreSaid(t *testing.T) {
	b := newBench(t, atlas)
	r := mustCollect(t, &synapse.Request{Messages: []synapse.Message{synapse.UserText("run the tests")}, Tools: b.defs([]string{"find_files"}, false)})
	if got := r.Message.Text(); !strings.Contains(got, "Not done: no tool to run commands (execute) is offered") {
		t.Errorf("got %q", got)
	}
	b.deny = map[string]string{"execute": "permission denied: execute: readonly; do not retry"}
	got, err := b.ask("run the tests")
	if err != nil {
		t.Fatal(err)
	}
	if want := "Not done: execute: permission denied: execute: readonly; do not retry.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(slices.DeleteFunc(b.log, func(l string) bool { return !strings.Contains(l, "execute") })); n != 1 {
		t.Errorf("execute was called %d times", n)
	}
}

// Without search tools, commands do the same work.
func TestCommandsInsteadOfSearchTools(t *testing.T) {
	for _, q := range []struct{ ask, want string }{
		{"Who calls checkRoad?", "store/store.go:35: if err := checkRoad(r); err != nil {   [in Add]"},
		{"List the Python files", "tools/report.py"},
		{"Show lines 1-3 of docs/limits.md", "    1  # Limits"},
		{"Where is MaxPlaces defined?", "store/store.go:11: const MaxPlaces = 10_000"},
	} {
		b := newBench(t, atlas)
		got, err := b.converse("main", []string{"execute"}, false, synapse.UserText(q.ask))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, q.want) {
			t.Errorf("%s: the answer lacks %q:\n%s", q.ask, q.want, got)
		}
	}
}

// At its last turn a run is told to finish and gets no tools: it answers with
// what it has.
func TestLastTurnWithoutTools(t *testing.T) {
	b := newBench(t, atlas)
	defs := b.defs(nil, false)
	messages := []synapse.Message{synapse.UserText("Find every TODO; what packages are there?")}
	r := mustCollect(t, &synapse.Request{Messages: messages, Tools: defs})
	messages = append(messages, r.Message)
	results := synapse.Message{Role: synapse.RoleTool}
	for _, c := range r.Message.Calls() {
		res := b.run("main", defs, c)
		res.CallID, res.Name = c.ID, c.Name
		results.Parts = append(results.Parts, synapse.Part{Kind: synapse.PartResult, Result: res})
	}
	messages = append(messages, results, synapse.UserText("This is your last turn: the limit of this task is reached and no tools are available any more. Answer now with what you have."))
	r = mustCollect(t, &synapse.Request{Messages: messages})
	text := r.Message.Text()
	if len(r.Message.Calls()) > 0 {
		t.Fatalf("it calls %s", show(r.Message.Calls()))
	}
	for _, w := range []string{"3 TODO comments in 3 files", "store/store.go:54: // TODO", "package store keeps the places"} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			t.Errorf("the answer lacks %q:\n%s", w, text)
		}
	}
}

// What the loop says in the middle of a run is not a new request.
func TestNoticesAreNoRequests(t *testing.T) {
	b := newBench(t, atlas)
	for _, notice := range []string{
		"A background task has ended.\n\nAgent \"explore\" completed.", "Agent \"tester\" failed: x",
		"This is your last turn: finish.", "continue",
	} {
		r := mustCollect(t, &synapse.Request{
			Messages: []synapse.Message{synapse.UserText("list the Go files"), synapse.AssistantText("…"), synapse.UserText(notice)},
			Tools:    b.defs(nil, false),
		})
		if calls := r.Message.Calls(); len(calls) != 1 || calls[0].Name != "find_files" {
			t.Errorf("%s: got %q, calls %s", notice, r.Message.Text(), show(calls))
		}
	}
}

func TestLastTurnWithReports(t *testing.T) {
	call := func(id, agent, prompt string) synapse.Part {
		args, err := json.Marshal(map[string]string{"subagent_type": agent, "prompt": prompt, "description": "d"})
		if err != nil {
			t.Fatal(err)
		}
		return synapse.Part{Kind: synapse.PartCall, Call: &synapse.ToolCall{ID: id, Name: "task", Args: string(args)}}
	}
	r := mustCollect(t, &synapse.Request{Messages: []synapse.Message{
		synapse.UserText("In parallel: find every TODO, run the tests"),
		{Role: synapse.RoleAssistant, Parts: []synapse.Part{call("1", "explore", "Find every TODO.\n\nHow to report: x"), call("2", "tester", "Run the tests.\n\nHow to report: x")}},
		{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: "1", Name: "task", Text: "Agent \"explore\" completed.\nTokens: 1 in / 2 out\nTask: a\n\na.go:1: // TODO: x"}}}},
		synapse.UserText("This is your last turn: finish."),
	}})
	want := "## 1. Find every TODO\nexplore reports:\n\na.go:1: // TODO: x\n\n## 2. Run the tests\ntester reports:\n\nNot done: no report came back in time.\n"
	if d := cmp.Diff(want, r.Message.Text()); d != "" {
		t.Error(d)
	}
}

// A follow-up can speak of what the request before was about.
func TestFollowUp(t *testing.T) {
	b := newBench(t, atlas)
	first, err := b.ask("Where is checkRoad defined?")
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.converse("main", nil, false, synapse.UserText("Where is checkRoad defined?"), synapse.AssistantText(first), synapse.UserText("And who calls it?"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "store/store.go:35:") {
		t.Errorf("got %s", got)
	}
}

// Every reply to one request is one turn; whatever tools return, the eighth
// holds no call.
func TestTurnsAreBounded(t *testing.T) {
	b := newBench(t, atlas)
	b.agents = crew
	defs := b.defs(nil, true)
	for _, ask := range []string{
		"for each package, list the exported functions", "summarise the store package", "run the tests and then list the packages and then find every TODO and then count the files",
		"What packages are there and what is each for?", "Who calls Shortest?", "run the tests in nowhere",
	} {
		for name, result := range map[string]string{"paths": "a/b.go\nc/d.go", "hits": "a/b.go:1:func Shortest(\nc/d.go:2:Shortest()", "nothing": "", "garbage": "\x00\xff::::\n-1-\n:0:"} {
			messages := []synapse.Message{synapse.UserText(ask)}
			for turn := 1; ; turn++ {
				r, err := collect(&synapse.Request{Messages: messages, Tools: defs})
				if err != nil || len(r.Message.Calls()) == 0 {
					break
				}
				if turn == 8 {
					t.Fatalf("%s on %s: the eighth reply calls %s", ask, name, show(r.Message.Calls()))
				}
				res := synapse.Message{Role: synapse.RoleTool}
				for i, c := range r.Message.Calls() {
					text := result
					if name == "paths" { // new ones every time
						text = fmt.Sprintf("p%d/q%d.go\n%s", turn, i, result)
					}
					res.Parts = append(res.Parts, synapse.Part{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: c.ID, Name: c.Name, Text: text}})
				}
				messages = append(messages, r.Message, res)
			}
		}
	}
}

func TestLongResultsAreCut(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "a/f%d.go:%d:// TODO: thing %d\n", i, i+1, i)
	}
	b := newBench(t, atlas)
	messages := []synapse.Message{synapse.UserText("find every TODO")}
	r := mustCollect(t, &synapse.Request{Messages: messages, Tools: b.defs(nil, false)})
	messages = append(messages, r.Message, synapse.Message{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{
		CallID: r.Message.Calls()[0].ID, Name: "search_files", Text: long.String(),
	}}}})
	text := mustCollect(t, &synapse.Request{Messages: messages, Tools: b.defs(nil, false)}).Message.Text()
	if n := strings.Count(text, "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(text, "5,000 TODO comments in 5,000 files") || !strings.Contains(text, "… 4,940 lines more") {
		t.Errorf("it does not say how many there are:\n%s", text)
	}
}

// Text that comes with a request may be long and odd; it must not be slow.
func TestOddRequestsAreQuick(t *testing.T) {
	b := newBench(t, atlas)
	for _, ask := range []string{
		strings.Repeat("a, ", 6000), strings.Repeat("list;", 4000), strings.Repeat("for each ", 300) + "x list y",
		strings.Repeat("who calls x and ", 1000), "where is " + strings.Repeat("x ", 400) + "defined", strings.Repeat("(((", 3000),
		strings.Repeat("`a` ", 2000), strings.Repeat("1. a ", 2000), strings.Repeat("什么", 600), "who calls x, " + strings.Repeat("who calls it, ", 300),
	} {
		start := time.Now()
		if _, err := collect(&synapse.Request{Messages: []synapse.Message{synapse.UserText(ask)}, Tools: b.defs(nil, false)}); err != nil {
			unsupported(t, err)
		}
		// Seconds, where the faults that this looks for cost minutes.
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("%.20q… takes %v", ask, d)
		}
	}
}
