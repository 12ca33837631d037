package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/policy"
)

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
