package run_test

import (
	"context"
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
	"github.com/synapse-agents/synapse/run"
)

// TestContinueAnyEnd: whatever ended a child, it can be continued, and then has
// the whole of its conversation, every call with its result.
func TestContinueAnyEnd(t *testing.T) {
	call := script.Turn{Text: "looking", Calls: []synapse.ToolCall{read("a"), script.Call("write", map[string]any{"text": "b"})}}
	tests := []struct {
		name   string
		limits synapse.Limits
		turns  []script.Turn
		stop   bool // by task_stop
		want   synapse.Status
	}{
		{"completed", synapse.Limits{}, []script.Turn{call, {Text: "done"}}, false, synapse.StatusCompleted},
		{"partial", synapse.Limits{Turns: 2}, []script.Turn{call, {Text: "half"}}, false, synapse.StatusPartial},
		{"timed out", synapse.Limits{Time: synapse.Duration(time.Minute)}, []script.Turn{call, {Delay: time.Hour}}, false, synapse.StatusTimedOut},
		{"timed out in a tool", synapse.Limits{Time: synapse.Duration(time.Minute)}, []script.Turn{{Calls: []synapse.ToolCall{read("a"), script.Call("sleep", nil), read("c")}}}, false, synapse.StatusTimedOut},
		{"failed", synapse.Limits{}, []script.Turn{call, {Err: &synapse.ProviderError{Kind: synapse.ErrorAuth}}}, false, synapse.StatusFailed},
		{"stopped", synapse.Limits{}, []script.Turn{call, {Delay: time.Hour}}, true, synapse.StatusCancelled},
		{"stopped in a tool", synapse.Limits{}, []script.Turn{{Calls: []synapse.ToolCall{script.Call("sleep", nil), script.Call("sleep", nil)}}}, true, synapse.StatusCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var id string
				m := script.Play(func(n int, req *synapse.Request) script.Turn {
					if strings.Contains(req.System, "worker") {
						if n < len(tt.turns) {
							turn := tt.turns[n]
							turn.Delay += time.Second // not before main asks about it
							return turn
						}
						return script.Turn{Text: "went on", Check: whole}
					}
					switch {
					case n == 0:
						return script.Turn{Calls: []synapse.ToolCall{background("worker", "1")}}
					case n == 1:
						id = idIn(script.Results(req))
						wait := script.Call("task_output", map[string]any{"task_id": id, "wait": 100})
						if tt.stop {
							wait = script.Call("task_output", map[string]any{"task_id": id, "wait": 5})
						}
						return script.Turn{Calls: []synapse.ToolCall{wait}}
					case n == 2 && tt.stop:
						return script.Turn{Calls: []synapse.ToolCall{script.Call("task_stop", map[string]any{"task_id": id})}}
					case n == 2, n == 3 && tt.stop:
						return script.Turn{Calls: []synapse.ToolCall{again(id)}}
					}
					return script.Turn{Text: script.Results(req)}
				})
				b := newBench(t, m)
				b.local.IdleTimeout = 2 * time.Hour
				b.tools = append(b.tools, synapse.Tool{Name: "sleep", Parallel: true, Run: func(ctx context.Context, _ *synapse.Invocation) (*synapse.ToolResult, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}})
				b.child("worker", "read", "write", "sleep").Limits = tt.limits
				r := b.run(t.Context(), "go")
				ends := bodies[*synapse.RunFinished](r, "worker")
				if len(ends) != 2 || ends[0].Status != tt.want {
					t.Fatalf("worker ended as %+v", ends)
				}
				// Limits count from the continuation on: a turn limit of two, for one, leaves two.
				if end := ends[1]; end.Text != "went on" {
					t.Errorf("worker, continued, ended as %+v", end.Outcome)
				}
				if out := r.outcome("main"); !strings.HasSuffix(out.Text, "went on") || !strings.Contains(out.Text, id) {
					t.Errorf("main ended as %+v", out)
				}
			})
		})
	}
}

// whole checks that every call of a conversation has its result right after it,
// in order.
func whole(req *synapse.Request) error {
	for i, msg := range req.Messages {
		calls := msg.Calls()
		if len(calls) == 0 {
			continue
		}
		if i+1 == len(req.Messages) || req.Messages[i+1].Role != synapse.RoleTool || len(req.Messages[i+1].Parts) != len(calls) {
			return fmt.Errorf("message %d has %d calls and not as many results after it", i, len(calls))
		}
		for j, p := range req.Messages[i+1].Parts {
			if p.Result == nil || p.Result.CallID != calls[j].ID || p.Result.Name != calls[j].Name {
				return fmt.Errorf("call %q of message %d has the result %+v", calls[j].ID, i, p.Result)
			}
		}
	}
	return nil
}

// TestContinueTwice in one message: one child is one conversation.
func TestContinueTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "worker"):
				return script.Turn{Delay: time.Second, Text: fmt.Sprint("answer ", n)}
			case n == 0:
				return script.Turn{Calls: []synapse.ToolCall{task("worker", "1")}}
			case n == 1:
				id := idIn(script.Results(req))
				return script.Turn{Calls: []synapse.ToolCall{again(id), again(id)}}
			}
			return script.Turn{Text: "told"}
		}))
		b.child("worker")
		got := strings.Join(b.run(t.Context(), "go").results("main"), "\n")
		if !strings.Contains(got, "answer 0") || !strings.Contains(got, "answer 1") || strings.Contains(got, "answer 2") || !strings.Contains(got, "is still running") {
			t.Errorf("results = %s", got)
		}
	})
}

// TestContinueElsewhere: a child is continued by another Local over the same
// journal; and while one request runs it, another of the same Local may not.
func TestContinueElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main": {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}}, "worker": {{Text: "first"}},
		}))
		b.child("worker")
		id := taskIDs(b.run(t.Context(), "go"))[0]

		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "worker"):
				return script.Turn{Delay: time.Second, Text: "second", Check: func(req *synapse.Request) error {
					if len(req.Messages) != 3 {
						return fmt.Errorf("%d messages", len(req.Messages))
					}
					return nil
				}}
			case len(req.Messages) == 1:
				return script.Turn{Calls: []synapse.ToolCall{again(id)}}
			}
			return script.Turn{Text: script.Results(req)}
		})
		second := &run.Local{
			Model: func(synapse.ModelRef) (synapse.Model, error) { return m, nil }, Append: b.append, History: b.history,
		}
		p := b.program()
		var wg sync.WaitGroup
		texts := make([]string, 2)
		for i := range texts {
			wg.Go(func() {
				for e, err := range second.Run(t.Context(), p, run.Input{Prompt: fmt.Sprint("again ", i)}) {
					if err != nil {
						t.Error(err)
						return
					}
					if c, ok := e.Body.(*synapse.Conclusion); ok {
						texts[i] = c.Content
					}
				}
			})
		}
		wg.Wait()
		ran, refused := texts[0], texts[1]
		if strings.Contains(refused, "second") {
			ran, refused = refused, ran
		}
		if !strings.HasSuffix(ran, "second") || !strings.Contains(refused, "it is running already") {
			t.Errorf("the requests ended with\n%s\nand\n%s", ran, refused)
		}
	})
}

// TestContinueOthersChild: a task belongs to the agent that started it.
func TestContinueOthersChild(t *testing.T) {
	var id string
	b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
		switch {
		case strings.Contains(req.System, "main") && n == 0:
			return script.Turn{Calls: []synapse.ToolCall{task("middle", "first")}}
		case strings.Contains(req.System, "main") && n == 1:
			return script.Turn{Calls: []synapse.ToolCall{task("middle", "second")}}
		case strings.Contains(req.System, "leaf"):
			return script.Turn{Text: "secret"}
		case script.FirstUser(req) == "first" && n == 0:
			return script.Turn{Calls: []synapse.ToolCall{task("leaf", "x")}}
		case script.FirstUser(req) == "first" && n == 1:
			id = idIn(script.Results(req))
			return script.Turn{Calls: []synapse.ToolCall{again(id)}}
		case script.FirstUser(req) == "second" && n == 0:
			return script.Turn{Calls: []synapse.ToolCall{again(id)}}
		}
		return script.Turn{Text: script.Results(req)}
	}))
	b.child("middle", "task")
	b.edge("middle", "leaf", "leaf")
	b.spec("leaf")
	r := b.run(t.Context(), "go")
	if got := len(bodies[*synapse.RunStarted](r, "leaf")); got != 2 {
		t.Errorf("leaf was started %d times, want twice by its parent", got)
	}
	got := r.results("middle")
	if last := got[len(got)-1]; last != "task "+id+" is not a sub-agent of yours" {
		t.Errorf("the other agent reads %q", last)
	}
}

// TestContinueUnderNewRestrictions: a child keeps its definition and policy, but
// what the user has restricted since holds for it too, and a tool that is gone
// is refused like any other.
func TestContinueUnderNewRestrictions(t *testing.T) {
	writes := func(n int, req *synapse.Request) script.Turn {
		if n%2 == 0 {
			return script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"}), read("secret"), read("plain"), script.Call("old", nil)}}
		}
		return script.Turn{Text: script.Results(req)}
	}
	var id string
	b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
		switch {
		case strings.Contains(req.System, "worker"):
			return writes(n, req)
		case n == 0:
			return script.Turn{Calls: []synapse.ToolCall{task("worker", "1")}}
		case n%2 == 0:
			return script.Turn{Calls: []synapse.ToolCall{again(id)}}
		}
		return script.Turn{Text: script.Results(req)}
	}))
	b.tools = append(b.tools, synapse.Tool{Name: "old", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		return nil, errors.New("no matter")
	}})
	b.tools[0].Subject = policy.Subject{Kind: policy.SubjectText, Args: []string{"text"}}
	b.child("worker", "read", "write", "old")
	r := b.run(t.Context(), "go")
	id = taskIDs(r)[0]
	if got := r.results("worker"); got[0] != "write: x" || got[1] != "read: secret" || got[3] != "old failed: no matter" {
		t.Fatalf("results = %q", got)
	}

	b.local.NewID = func() string { return "trace-2" }
	b.tools = b.tools[:2]
	graph := b.graph
	b.graph.Specs = append([]synapse.Spec(nil), graph.Specs...)
	worker := &b.graph.Specs[1]
	worker.Digest = "restricted"
	worker.Policy = policy.Policy{
		Allow: []string{"read"},
		Block: map[string]policy.Reason{"write": {Code: policy.ReadOnly, Origin: "flag --readonly"}},
		Rules: []policy.Source{{Origin: "user settings", Rules: []policy.Rule{{Tool: "read", Pattern: "secret", Action: policy.Deny}}}},
	}
	r = b.run(t.Context(), "go")
	got := r.results("worker")
	if len(got) != 4 {
		t.Fatalf("results = %q", got)
	}
	for i, want := range []string{"permission denied: write: readonly", "permission denied: read: the rule", "read: plain", "permission denied: old: unknown_tool"} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("result %d = %q, want %q…", i, got[i], want)
		}
	}
	if started := bodies[*synapse.RunStarted](r, "worker"); started[0].Spec.System != "You are worker." {
		t.Errorf("the child was started with %+v", started[0].Spec)
	}
	if graph.Specs[1].Policy.Block != nil {
		t.Error("the old spec was changed")
	}

	// Nothing of that sticks once the restriction is lifted.
	b.local.NewID = func() string { return "trace-3" }
	worker.Digest, worker.Policy = "worker", policy.Policy{Allow: []string{"read", "write"}}
	r = b.run(t.Context(), "go")
	if got := r.results("worker"); len(got) != 4 || got[0] != "write: x" || got[1] != "read: secret" {
		t.Errorf("results = %q", got)
	}
}
