package run_test

import (
	"context"
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
	"github.com/synapse-agents/synapse/run"
)

// cutAfter drops what the journal has after the first event that matches, as a
// killed process leaves it.
func (b *bench) cutAfter(match func(*synapse.Event) bool) {
	b.t.Helper()
	i := slices.IndexFunc(b.journal, match)
	if i < 0 {
		b.t.Fatal("the journal has no such event")
	}
	b.journal = b.journal[:i+1]
}

// again is a call that continues a task.
func again(id string) synapse.ToolCall {
	return script.Call("task", map[string]any{"task_id": id, "description": "again", "prompt": "go on"})
}

// TestContinueAfterCrash: the process died while a child and its own children
// ran. The child is continued; it learns what became of the others, and asking
// about them or stopping them tells the truth and breaks nothing.
func TestContinueAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("middle", "1")}}, {Text: "told"}},
			"middle": {{Calls: []synapse.ToolCall{background("leaf", "2"), task("leaf", "3")}}, {Text: "ok"}, {Text: "ok"}},
			"leaf":   {{Delay: time.Hour, Text: "x"}},
		}))
		b.child("middle", "task", "task_output", "task_stop")
		b.edge("middle", "leaf", "leaf")
		b.spec("leaf", "read")
		b.run(t.Context(), "go")
		n := 0
		b.cutAfter(func(e *synapse.Event) bool {
			if c, ok := e.Body.(*synapse.ChildStarted); ok && c.Agent == "leaf" {
				n++
			}
			return n == 2
		})
		var middle string
		leaves := map[bool]string{}
		for _, e := range b.journal {
			if c, ok := e.Body.(*synapse.ChildStarted); ok && c.Agent == "middle" {
				middle = c.Task
			} else if ok {
				leaves[c.Background] = c.Task
			}
		}

		b.local.NewID = func() string { return "trace-2" }
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			if strings.Contains(req.System, "main") {
				if n == 0 {
					return script.Turn{Calls: []synapse.ToolCall{again(middle)}}
				}
				return script.Turn{Text: script.Results(req)}
			}
			if n > 0 {
				return script.Turn{Text: "seen: " + script.Results(req)}
			}
			// The conversation is whole, and names what was lost.
			results := req.Messages[2]
			if got := results.Parts[1].Result.Text; !strings.Contains(got, "unknown") || !strings.Contains(got, leaves[false]) {
				return script.Turn{Err: fmt.Errorf("the lost call reads %q", got)}
			}
			last := req.Messages[len(req.Messages)-1]
			if got := last.Text(); !strings.Contains(got, `Agent "leaf" failed: it was cut off`) || !strings.Contains(got, leaves[true]) {
				return script.Turn{Err: fmt.Errorf("the model was told %q", got)}
			}
			var calls []synapse.ToolCall
			for _, id := range leaves {
				calls = append(calls,
					script.Call("task_output", map[string]any{"task_id": id, "wait": 10}),
					script.Call("task_output", map[string]any{"task_id": id}),
					script.Call("task_stop", map[string]any{"task_id": id}))
			}
			return script.Turn{Calls: calls}
		})
		b.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m, nil }
		r := b.run(t.Context(), "again")
		if len(bodies[*synapse.RunFinished](r, "middle")) == 0 {
			t.Fatalf("middle did not run: %q", r.results("main"))
		}
		out := r.outcome("middle")
		if out.Status != synapse.StatusCompleted || strings.Count(out.Text, "failed: it was cut off") != 6 {
			t.Errorf("middle ended as %+v", out)
		}
		if out.Failed != 0 {
			t.Errorf("%d children of an earlier start count as failed", out.Failed)
		}
	})
}

// TestFoldOddEvents: a journal that was damaged gives an odd state, not a crash.
func TestFoldOddEvents(t *testing.T) {
	event := func(body synapse.Body) *synapse.Event {
		return &synapse.Event{Run: "r", Kind: body.Kind(), Body: body}
	}
	events := []*synapse.Event{
		event(&synapse.ToolFinished{Result: synapse.ToolResult{CallID: "x"}}),
		event(&synapse.ChildFinished{Task: "nobody"}),
		event(&synapse.RunStarted{Spec: &synapse.Spec{ID: "a", Agent: "a"}, Input: []synapse.Message{synapse.UserText("go")}}),
		event(&synapse.ToolFinished{Result: synapse.ToolResult{CallID: "y"}}),
	}
	st, err := run.Fold(func(yield func(*synapse.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, "r")
	if err != nil || len(st.Messages) != 1 {
		t.Errorf("Fold = %+v, %v", st, err)
	}
}

// TestKeysOfAContinuedRun: the second start of a run makes the same first call
// as the first one did. To a tool that keeps its promise about keys, it is
// another call all the same; so is its question, and so is a long report.
func TestKeysOfAContinuedRun(t *testing.T) {
	long := strings.Repeat("word ", 20_000)
	write := script.Call("write", map[string]any{"text": "x"})
	var id string
	starts := 0
	b := newBench(t, script.Play(func(n int, req *synapse.Request) script.Turn {
		if strings.Contains(req.System, "main") {
			switch n {
			case 0:
				return script.Turn{Calls: []synapse.ToolCall{task("worker", "1")}}
			case 1:
				id = idIn(script.Results(req))
				return script.Turn{Calls: []synapse.ToolCall{again(id)}}
			}
			return script.Turn{Text: "told"}
		}
		if n%2 == 0 {
			return script.Turn{Calls: []synapse.ToolCall{write}}
		}
		starts++
		return script.Turn{Text: fmt.Sprint(starts, long)}
	}))
	var keys, asks []string
	kept := map[string]string{}
	b.tools[1].Keyed = true
	b.tools[1].Run = func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		keys = append(keys, in.Key)
		return synapse.TextResult("ok"), nil
	}
	b.local.Ask = func(_ context.Context, q synapse.Ask) (synapse.Answer, error) {
		asks = append(asks, q.ID)
		return synapse.Answer{Allow: true}, nil
	}
	b.local.Keep = func(_ context.Context, name, text string) (string, error) {
		kept[name] = text
		return "/kept/" + name, nil
	}
	asking(b.child("worker", "write"), "write")
	r := b.run(t.Context(), "go")
	if len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("keys = %q", keys)
	}
	if len(asks) != 2 || asks[0] == asks[1] {
		t.Errorf("questions = %q", asks)
	}
	if len(kept) != 2 {
		t.Errorf("%d of 2 reports are kept", len(kept))
	}
	seen := map[string]bool{}
	for _, s := range bodies[*synapse.ToolStarted](r, "worker") {
		if seen[s.Key] {
			t.Errorf("two calls of one run have the key %s", s.Key)
		}
		seen[s.Key] = true
	}
}

// TestContinue: a child takes up where it stopped, with its context, its spec
// and its policy, though the definition has changed since.
func TestContinue(t *testing.T) {
	m := byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "remember 7")}}, {Text: "told"}},
		"worker": {{Calls: []synapse.ToolCall{read("notes")}}, {Text: "7 it is"}},
	})
	b := newBench(t, m)
	b.child("worker", "read")
	id := taskIDs(b.run(t.Context(), "go"))[0]

	// A later request of the same conversation. The definition is another now.
	b.local.NewID = func() string { return "trace-2" }
	b.graph.Specs = slices.Clone(b.graph.Specs)
	worker := &b.graph.Specs[1]
	old := *worker
	worker.System, worker.Digest, worker.Policy.Allow = "You are changed.", "new", []string{"read", "write"}
	m2 := script.Play(func(n int, req *synapse.Request) script.Turn {
		if strings.Contains(req.System, "main") {
			if n == 0 {
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task", map[string]any{"task_id": id, "description": "again", "prompt": "what was it?"})}}
			}
			return script.Turn{Text: script.Results(req)}
		}
		var texts []string
		for _, msg := range req.Messages {
			texts = append(texts, string(msg.Role)+":"+msg.Text())
		}
		if want := []string{"user:remember 7", "assistant:", "tool:", "assistant:7 it is", "user:what was it?"}; !slices.Equal(texts, want) {
			return script.Turn{Err: fmt.Errorf("the child remembers %q", texts)}
		}
		if req.System != old.System || len(req.Tools) != 1 {
			return script.Turn{Err: fmt.Errorf("the child is another: %q with %d tools", req.System, len(req.Tools))}
		}
		return script.Turn{Text: "it was 7"}
	})
	b.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m2, nil }
	r := b.run(t.Context(), "again")
	if out := r.outcome("main"); !strings.HasSuffix(out.Text, "it was 7") || !strings.Contains(out.Text, "Task: "+id) {
		t.Errorf("main ended as %+v", out)
	}
}

func TestContinueRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cont := func(id, agent string) synapse.ToolCall {
			args := map[string]any{"task_id": id, "description": "again", "prompt": "more"}
			if agent != "" {
				args["subagent_type"] = agent
			}
			return script.Call("task", args)
		}
		var id string
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "slow"):
				return script.Turn{Delay: time.Hour, Text: "x"}
			case n == 0:
				return script.Turn{Calls: []synapse.ToolCall{background("slow", "do it")}}
			case n == 1:
				id = idIn(script.Results(req))
				return script.Turn{Calls: []synapse.ToolCall{cont(id, ""), cont("t-none", ""), cont("trace-1", "")}}
			case n == 2:
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_stop", map[string]any{"task_id": id})}}
			case n == 3:
				return script.Turn{Calls: []synapse.ToolCall{cont(id, "other")}}
			}
			return script.Turn{Text: "ok"}
		})
		b := newBench(t, m)
		b.child("slow", "read")
		b.child("other", "read")
		r := b.run(t.Context(), "go")
		got := r.results("main")
		for i, want := range map[int]string{
			1: "is still running",
			2: "task t-none can't be continued: there is no run t-none",
			3: "task trace-1 is not a sub-agent of yours",
			5: `is of the agent "slow"`,
		} {
			if !strings.Contains(got[i], want) {
				t.Errorf("result %d = %q, want …%q…", i, got[i], want)
			}
		}
	})
}

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
