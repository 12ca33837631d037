package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/policy"
)

// TestArgumentsOfAnotherCase: Go's JSON decoder takes "Path" for "path", and
// "ſ" for "s". What the rules were not shown must not reach the tool.
func TestArgumentsOfAnotherCase(t *testing.T) {
	tests := []struct{ args, want string }{
		{`{"path":"docs/a"}`, `{"path":"docs/a"}`},
		{`{"Path":"secret/a"}`, `invalid arguments for look: there is no property "Path": did you mean "path"?`},
		{`{"path":"docs/a","PATH":"secret/a"}`, `invalid arguments for look: there is no property "PATH": did you mean "path"?`},
		{`{"path":"docs/a","other":1}`, `{"path":"docs/a","other":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{{Name: "look", Args: tt.args}}}, script.Turn{Text: "ok"}))
			b.tools = append(b.tools, synapse.Tool{
				Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
				Subject: policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}},
				Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
					return synapse.TextResult(string(in.Args)), nil
				},
			})
			b.graph.Specs[0].Policy = policy.Policy{Allow: []string{"look"}, Rules: []policy.Source{
				{Rules: []policy.Rule{{Tool: "look", Pattern: "secret/**", Action: policy.Deny}}},
			}}
			if got := b.run(t.Context(), "go").results("main")[0]; !strings.HasPrefix(got, tt.want) {
				t.Errorf("result = %s, want %s", got, tt.want)
			}
		})
	}
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main": {{Calls: []synapse.ToolCall{
			script.Call("task", map[string]any{"subagent_type": "mild", "\u017fubagent_type": "wild", "description": "d", "prompt": "p"}),
		}}, {Text: "told"}},
		"mild": {{Text: "mild"}}, "wild": {{Text: "wild"}},
	}))
	b.child("mild")
	b.child("wild")
	b.graph.Specs[0].Policy.Rules = []policy.Source{{Rules: []policy.Rule{{Tool: "task", Pattern: "wild", Action: policy.Deny}}}}
	if r := b.run(t.Context(), "go"); len(bodies[*synapse.RunStarted](r, "wild")) != 0 {
		t.Error("the denied agent ran")
	}
}

// TestTruncatedBeforeItsArguments: a reply that is cut off right after the name
// of its call has no arguments yet; that is not a call without arguments.
func TestTruncatedBeforeItsArguments(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Stop: synapse.StopLength, Calls: []synapse.ToolCall{{Name: "clear"}}},
		script.Turn{Calls: []synapse.ToolCall{{Name: "clear"}}},
		script.Turn{Text: "ok"},
	))
	b.tools = append(b.tools, synapse.Tool{Name: "clear", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		return synapse.TextResult("all is gone"), nil
	}})
	b.graph.Specs[0].Policy.Allow = []string{"clear"}
	got := b.run(t.Context(), "go").results("main")
	if len(got) != 2 || !strings.Contains(got[0], "cut off by the output limit") || got[1] != "all is gone" {
		t.Errorf("results = %q", got)
	}
}

// TestPermitsAfterApproval: who allows a search of a folder that a rule asks
// about has allowed what that rule covers in it, for that call; what another
// rule covers stays closed.
func TestPermitsAfterApproval(t *testing.T) {
	walk := func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		var seen []string
		for _, p := range []string{"docs/a", "docs/b", "docs/keys/c", "docs/plans/d", "src/e"} {
			if in.Permits(p) {
				seen = append(seen, p)
			}
		}
		return synapse.TextResult(strings.Join(seen, " ")), nil
	}
	tests := []struct {
		path string
		want string
	}{
		{"docs", "docs/a docs/b src/e"}, // the user has said yes to docs
		{"src", "src/e"},                // nobody was asked
	}
	for _, tt := range tests {
		b := newBench(t, script.New(
			script.Turn{Calls: []synapse.ToolCall{script.Call("walk", map[string]any{"path": tt.path})}},
			script.Turn{Text: "ok"},
		))
		b.tools = append(b.tools, synapse.Tool{
			Name: "walk", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
			Subject: policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}, Run: walk,
		})
		b.graph.Specs[0].Policy = policy.Policy{Allow: []string{"walk"}, Rules: []policy.Source{
			{Origin: "settings", Rules: []policy.Rule{
				{Tool: "walk", Pattern: "docs/**", Action: policy.Ask},
				{Tool: "walk", Pattern: "docs/plans/**", Action: policy.Ask},
				{Tool: "walk", Pattern: "docs/keys/**", Action: policy.Deny},
			}},
		}}
		b.local.Ask = func(context.Context, synapse.Ask) (synapse.Answer, error) { return synapse.Answer{Allow: true}, nil }
		if got := b.run(t.Context(), "go").results("main")[0]; got != tt.want {
			t.Errorf("a walk of %s saw %q, want %q", tt.path, got, tt.want)
		}
	}
}

// TestQuestionOfACancelledRun: a question that nobody answers in time is closed,
// in the events too, before its run ends.
func TestQuestionOfACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{
			script.Call("write", map[string]any{"text": "x"}), script.Call("write", map[string]any{"text": "y"}),
		}}))
		b.tools[1].Parallel = true
		asking(&b.graph.Specs[0], "write")
		b.graph.Specs[0].Limits.Time = synapse.Duration(time.Minute)
		b.local.Ask = func(ctx context.Context, _ synapse.Ask) (synapse.Answer, error) {
			<-ctx.Done()
			return synapse.Answer{}, ctx.Err()
		}
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Status != synapse.StatusTimedOut {
			t.Errorf("outcome = %+v", out)
		}
		open := map[string]bool{}
		for _, q := range bodies[*synapse.ApprovalAsked](r, "") {
			open[q.Ask.ID] = true
		}
		answers := bodies[*synapse.ApprovalAnswered](r, "")
		for _, a := range answers {
			if a.Answer.Allow || a.Answer.Reason == "" {
				t.Errorf("answer = %+v", a)
			}
			delete(open, a.ID)
		}
		if len(open) > 0 || len(answers) != 2 {
			t.Errorf("%d questions are open, %d were answered", len(open), len(answers))
		}
	})
}

// TestForgedCalls: a tool that was not offered, one of the parent's, task in a
// child, one that doesn't exist: nothing happens, the model is told, and the run
// ends well.
func TestForgedCalls(t *testing.T) {
	for _, name := range []string{"write", "task", "task_stop", "rocket", "Read", ""} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main": {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
				"worker": {
					{Calls: []synapse.ToolCall{{Name: name, Args: `{"text":"x","prompt":"p","description":"d","task_id":"t"}`}, read("fine")}},
					{Text: "went on"},
				},
			}))
			b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
				t.Error("the tool ran")
				return nil, nil
			}
			b.child("worker", "read")
			r := b.run(t.Context(), "go")
			var refused *synapse.ToolFinished
			for _, f := range bodies[*synapse.ToolFinished](r, "worker") {
				if f.Result.Name == name {
					refused = f
				}
			}
			if refused == nil || !refused.Result.IsError || refused.Denied == "" ||
				!strings.HasPrefix(refused.Result.Text, "permission denied: "+name+": ") || !strings.HasSuffix(refused.Result.Text, "; do not retry") {
				t.Errorf("result = %+v", refused)
			}
			for _, s := range bodies[*synapse.ToolStarted](r, "worker") {
				if s.Call.Name == name {
					t.Error("its start was recorded")
				}
			}
			if out := r.outcome("worker"); out.Status != synapse.StatusCompleted || out.Text != "went on" {
				t.Errorf("worker ended as %+v", out)
			}
		})
	}
}

// TestOfferedIsEnforced: what is blocked is neither offered nor run, though it
// stands in the list of what is allowed.
func TestOfferedIsEnforced(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}, Check: func(req *synapse.Request) error {
			for _, d := range req.Tools {
				if d.Name == "write" {
					return fmt.Errorf("write is offered")
				}
			}
			return nil
		}},
		script.Turn{Text: "ok"},
	))
	b.graph.Specs[0].Policy.Block = map[string]policy.Reason{"write": {Code: policy.ReadOnly, Origin: "flag --readonly"}}
	r := b.run(t.Context(), "go")
	if got := r.results("main")[0]; !strings.HasPrefix(got, "permission denied: write: ") || !strings.Contains(got, "--readonly") {
		t.Errorf("result = %q", got)
	}
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"fine", `{"intent":"see","text":"a"}`, "read: a"},
		{"without an intent", `{"text":"a"}`, "read: a"},
		{"an intent of another type", `{"intent":7,"text":"a"}`, "read: a"},
		{"cut off", `{"text":"a`, "invalid arguments for read: the JSON breaks off before its end"},
		{"not an object", `["a"]`, "invalid arguments for read: array where an object belongs"},
		{"null", `null`, "invalid arguments for read: null where an object belongs"},
		{"two objects", `{"text":"a"}{"text":"b"}`, "invalid arguments for read: there is something after the JSON object"},
		{"empty", ``, "invalid arguments for read: "},
		{"a missing property", `{}`, "invalid arguments for read: "},
		{"a wrong type", `{"text":1}`, "invalid arguments for read: "},
		{"not JSON", `text=a`, "invalid arguments for read: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, script.New(
				script.Turn{Calls: []synapse.ToolCall{{Name: "read", Args: tt.args}}},
				script.Turn{Text: "ok"},
			))
			r := b.run(t.Context(), "go")
			got := r.results("main")[0]
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("result = %q, want %q…", got, tt.want)
			}
			if strings.HasPrefix(got, "invalid") && !strings.Contains(got, `"required":["text"]`) {
				t.Errorf("the schema is not told: %q", got)
			}
			if out := r.outcome("main"); out.Text != "ok" {
				t.Errorf("outcome = %+v", out)
			}
		})
	}
}

// TestTruncatedReply never runs half a call; a whole one before it runs.
func TestTruncatedReply(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Stop: synapse.StopLength, Calls: []synapse.ToolCall{read("whole"), {Name: "read", Args: `{"text":"ha`}}},
		script.Turn{Text: "ok"},
	))
	r := b.run(t.Context(), "go")
	got := strings.Join(r.results("main"), "\n")
	if !strings.Contains(got, "read: whole") || !strings.Contains(got, "cut off by the output limit") || len(bodies[*synapse.ToolStarted](r, "")) != 1 {
		t.Errorf("results = %q", got)
	}
}

// TestIntent: offered, shown, and gone before the tool runs.
func TestIntent(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{{Name: "read", Args: `{"intent":"to see","text":"a"}`}}, Check: func(req *synapse.Request) error {
			for _, d := range req.Tools {
				var s struct {
					Properties map[string]any
					Required   []string
				}
				if err := json.Unmarshal(d.Schema, &s); err != nil {
					return err
				}
				if s.Properties["intent"] == nil || len(s.Required) == 0 || s.Required[0] != "intent" {
					return fmt.Errorf("%s has the schema %s", d.Name, d.Schema)
				}
			}
			return nil
		}},
		script.Turn{Text: "ok"},
	))
	b.tools[0].Run = func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		return synapse.TextResult(string(in.Args)), nil
	}
	r := b.run(t.Context(), "go")
	if got := r.results("main")[0]; got != `{"text":"a"}` {
		t.Errorf("the tool got %s", got)
	}
	if got := bodies[*synapse.ToolStarted](r, "")[0].Intent; got != "to see" {
		t.Errorf("intent = %q", got)
	}
	if out := r.outcome("main"); out.Text != "ok" {
		t.Errorf("outcome = %+v", out)
	}
}

func TestNoIntent(t *testing.T) {
	b := newBench(t, script.New(script.Turn{Text: "ok"}))
	b.opt.NoIntent = true
	for _, d := range b.program().Offered("main") {
		if strings.Contains(string(d.Schema), "intent") {
			t.Errorf("%s is offered as %s", d.Name, d.Schema)
		}
	}
}

// asking makes calls of the tool a question.
func asking(spec *synapse.Spec, tool string) {
	spec.Policy.Rules = []policy.Source{{Origin: "user settings", Rules: []policy.Rule{{Tool: tool, Pattern: "*", Action: policy.Ask}}}}
}

// TestApprovals: two children ask at once, the questions are told apart, and the
// answer to one doesn't run the other's tools again.
func TestApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran := map[string]int{}
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main": {{Calls: []synapse.ToolCall{task("one", "1"), task("two", "2")}}, {Text: "told"}},
			"one":  {{Calls: []synapse.ToolCall{read("r1"), script.Call("write", map[string]any{"text": "w1"})}}, {Text: "done"}},
			"two":  {{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "w2"}), read("r2")}}, {Text: "done"}},
		}))
		for i := range b.tools {
			inner := b.tools[i].Run
			b.tools[i].Parallel = true
			b.tools[i].Run = func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
				mu.Lock()
				ran[string(in.Args)]++
				mu.Unlock()
				return inner(ctx, in)
			}
		}
		asking(b.child("one", "read", "write"), "write")
		asking(b.child("two", "read", "write"), "write")
		ids := map[string]bool{}
		b.local.Ask = func(ctx context.Context, q synapse.Ask) (synapse.Answer, error) {
			mu.Lock()
			ids[q.ID] = true
			mu.Unlock()
			if q.Tool != "write" || q.Intent != "test" || q.Reason == "" {
				t.Errorf("asked %+v", q)
			}
			if q.Agent == "one" {
				time.Sleep(time.Minute)
				return synapse.Answer{Allow: true}, nil
			}
			time.Sleep(time.Second)
			return synapse.Answer{Reason: "not on a Friday"}, nil
		}
		r := b.run(t.Context(), "go")
		if len(ids) != 2 {
			t.Errorf("%d questions", len(ids))
		}
		for args, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", args, n)
			}
		}
		if ran[`{"text":"w1"}`] != 1 || ran[`{"text":"w2"}`] != 0 {
			t.Errorf("ran %v", ran)
		}
		if got := strings.Join(r.results("two"), "\n"); !strings.Contains(got, "permission denied: write: the user did not allow it: not on a Friday") {
			t.Errorf("two reads %q", got)
		}
		asked, answered := bodies[*synapse.ApprovalAsked](r, ""), bodies[*synapse.ApprovalAnswered](r, "")
		if len(asked) != 2 || len(answered) != 2 {
			t.Errorf("%d asked, %d answered", len(asked), len(answered))
		}
	})
}

// TestNobodyToAsk: without someone to ask, a question is a denial, in the
// foreground and in the background alike.
func TestNobodyToAsk(t *testing.T) {
	for _, start := range []synapse.ToolCall{task("worker", "1"), background("worker", "1")} {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{start}}, {Text: "told"}, {Text: "told"}},
			"worker": {{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}, {Text: "was not allowed"}},
		}))
		b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			t.Error("the tool ran")
			return nil, nil
		}
		asking(b.child("worker", "write"), "write")
		r := b.run(t.Context(), "go")
		if got := r.results("worker")[0]; !strings.Contains(got, "nobody is there to ask") || !strings.HasPrefix(got, "permission denied: write:") {
			t.Errorf("result = %q", got)
		}
	}
}

// TestSequentialBatch: one tool that may not run beside others puts the whole
// batch in the order of its calls.
func TestSequentialBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		b := newBench(t, script.New(
			script.Turn{Calls: []synapse.ToolCall{read("1"), script.Call("write", map[string]any{"text": "2"}), read("3")}},
			script.Turn{Text: "ok"},
		))
		for i := range b.tools {
			name := b.tools[i].Name
			b.tools[i].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
				order = append(order, "start "+name)
				time.Sleep(time.Second)
				order = append(order, "end "+name)
				return synapse.TextResult("ok"), nil
			}
		}
		b.run(t.Context(), "go")
		want := "start read end read start write end write start read end read"
		if got := strings.Join(order, " "); got != want {
			t.Errorf("order = %s", got)
		}
	})
}

// TestDuplicateCallIDs: some models leave ids out or use one twice.
func TestDuplicateCallIDs(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{
			{ID: "x", Name: "read", Args: `{"text":"a"}`}, {ID: "x", Name: "read", Args: `{"text":"b"}`},
		}},
		script.Turn{Text: "ok", Check: func(req *synapse.Request) error {
			calls, results := req.Messages[1].Calls(), req.Messages[2].Parts
			for i := range calls {
				if calls[i].ID != results[i].Result.CallID {
					return fmt.Errorf("call %q has the result of %q", calls[i].ID, results[i].Result.CallID)
				}
			}
			if calls[0].ID == calls[1].ID {
				return fmt.Errorf("both calls are %q", calls[0].ID)
			}
			return nil
		}},
	))
	if out := b.run(t.Context(), "go").outcome("main"); out.Text != "ok" {
		t.Errorf("outcome = %+v", out)
	}
}

// TestSubjectsFoundByTheTool: where a tool finds what its calls are about
// itself, each of the subjects must pass, and a call it can't understand goes
// no further.
func TestSubjectsFoundByTheTool(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"docs/a docs/b", "write: docs/a docs/b"},
		{"docs/a secret/b", "permission denied: write: "},
		{"secret/b docs/a", "permission denied: write: "},
		{"", "write: nothing to write"},
		{"!", "write: find what the call is about: panic: !"},
	} {
		ran := false
		b := newBench(t, script.New(
			script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": tt.text})}},
			script.Turn{Text: "ok"},
		))
		inner := b.tools[1].Run
		b.tools[1].Run = func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			ran = true
			return inner(ctx, in)
		}
		b.tools[1].Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"text"}}
		b.tools[1].Subjects = func(args json.RawMessage) ([]string, error) {
			var a struct{ Text string }
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			switch a.Text {
			case "":
				return nil, errors.New("nothing to write")
			case "!":
				panic(a.Text)
			}
			return strings.Fields(a.Text), nil
		}
		b.graph.Specs[0].Policy.Rules = []policy.Source{{Origin: "user settings", Rules: []policy.Rule{
			{Tool: "write", Pattern: "secret/**", Action: policy.Deny},
		}}}
		r := b.run(t.Context(), "go")
		if got := r.results("main")[0]; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: result = %q, want %q…", tt.text, got, tt.want)
		}
		if want := strings.HasPrefix(tt.text, "docs/a docs"); ran != want {
			t.Errorf("%q: ran %v, want %v", tt.text, ran, want)
		}
		if out := r.outcome("main"); out.Text != "ok" {
			t.Errorf("%q: outcome = %+v", tt.text, out)
		}
	}
}

// TestBackgroundQuestion: what a child in the background asks reaches the user,
// and the answer reaches the child.
func TestBackgroundQuestion(t *testing.T) {
	for _, allow := range []bool{true, false} {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{background("worker", "1")}}, {Text: "told"}, {Text: "told"}},
			"worker": {{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}, {Text: "done"}},
		}))
		asking(b.child("worker", "write"), "write")
		b.local.Ask = func(_ context.Context, q synapse.Ask) (synapse.Answer, error) {
			if q.Agent != "worker" || q.Tool != "write" || string(q.Args) != `{"text":"x"}` {
				t.Errorf("asked %+v", q)
			}
			return synapse.Answer{Allow: allow}, nil
		}
		want := "permission denied: write: the user did not allow it; do not retry"
		if allow {
			want = "write: x"
		}
		if got := b.run(t.Context(), "go").results("worker")[0]; got != want {
			t.Errorf("result = %q, want %q", got, want)
		}
	}
}

// TestAbsentPathIsTheWorkspace: rules about some folder don't deny a search that
// names none.
func TestAbsentPathIsTheWorkspace(t *testing.T) {
	b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("glob", map[string]any{"pattern": "*.go"})}}, script.Turn{Text: "ok"}))
	b.tools = append(b.tools, synapse.Tool{
		Name: "glob", Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}}}`),
		Subject: policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}},
		Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			return synapse.TextResult(fmt.Sprint(in.Permits("src/a.go"), in.Permits("secret/b.go"))), nil
		},
	})
	b.graph.Specs[0].Policy = policy.Policy{Allow: []string{"glob"}, Rules: []policy.Source{
		{Rules: []policy.Rule{{Tool: "glob", Pattern: "secret/**", Action: policy.Deny}}},
	}}
	if got := b.run(t.Context(), "go").results("main")[0]; got != "true false" {
		t.Errorf("result = %q", got)
	}
}

// TestRulesAboutAgents: a rule that names an agent holds under whatever name the
// model writes, for the default, and for a task that is continued.
func TestRulesAboutAgents(t *testing.T) {
	call := func(args map[string]any) synapse.ToolCall {
		args["description"], args["prompt"] = "d", "p"
		return script.Call("task", args)
	}
	var id string
	b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
		switch {
		case !strings.Contains(req.System, "main"):
			return script.Turn{Text: "ran"}
		case len(req.Messages) > 1:
			return script.Turn{Text: "told"}
		case id == "":
			return script.Turn{Calls: []synapse.ToolCall{call(map[string]any{"subagent_type": "coder"})}}
		}
		return script.Turn{Calls: []synapse.ToolCall{
			call(map[string]any{"subagent_type": "coder"}), call(map[string]any{"subagent_type": "Coder"}), call(map[string]any{"subagent_type": "dev"}),
			call(map[string]any{}), call(map[string]any{"task_id": id}), call(map[string]any{"subagent_type": "reader"}), call(map[string]any{"subagent_type": "asker"}),
		}}
	}))
	b.edge("main", "coder", "coder", "dev", "")
	b.spec("coder")
	b.child("reader")
	b.child("asker")
	id = taskIDs(b.run(t.Context(), "first"))[0]

	b.local.NewID = func() string { return "trace-2" }
	b.graph.Specs[0].Policy.Rules = []policy.Source{{Origin: "user settings", Rules: []policy.Rule{
		{Tool: "task", Pattern: "coder", Action: policy.Deny}, {Tool: "task", Pattern: "asker", Action: policy.Ask},
	}}}
	var asked []string
	b.local.Ask = func(_ context.Context, q synapse.Ask) (synapse.Answer, error) {
		asked = append(asked, q.Subject)
		return synapse.Answer{Allow: true}, nil
	}
	r := b.run(t.Context(), "second")
	if got := bodies[*synapse.RunStarted](r, "coder"); len(got) != 0 {
		t.Errorf("coder was started %d times", len(got))
	}
	denied := 0
	for _, f := range bodies[*synapse.ToolFinished](r, "main") {
		if f.Denied != "" && strings.HasPrefix(f.Result.Text, "permission denied: task: ") {
			denied++
		}
	}
	if denied != 5 {
		t.Errorf("%d calls were denied: %q", denied, r.results("main"))
	}
	if len(bodies[*synapse.RunStarted](r, "reader")) != 1 || len(bodies[*synapse.RunStarted](r, "asker")) != 1 || !slices.Equal(asked, []string{"asker"}) {
		t.Errorf("asked about %q; results %q", asked, r.results("main"))
	}
}
