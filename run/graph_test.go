package run_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

// flow makes a workflow the entry of a bench whose nodes are functions.
func flow(t *testing.T, f *synapse.Flow, funcs map[string]synapse.NodeFunc, limits synapse.Limits) *bench {
	t.Helper()
	b := newBench(t, script.New())
	b.opt.Funcs = funcs
	b.graph.Specs = append(b.graph.Specs, synapse.Spec{ID: "flow", Agent: "flow", Digest: "flow", Flow: f, Limits: limits})
	b.graph.Entry = "flow"
	return b
}

func fn(f func(in *synapse.NodeInput) (any, error)) synapse.NodeFunc {
	return synapse.NodeFunc{Pure: true, Run: func(_ context.Context, in *synapse.NodeInput) (any, error) { return f(in) }}
}

func node(name, output string) synapse.FlowNode {
	return synapse.FlowNode{Name: name, Kind: synapse.NodeFunction, Use: name, Output: output}
}

func outcome(t *testing.T, events []*synapse.Event) synapse.Outcome {
	t.Helper()
	last := events[len(events)-1]
	end, ok := last.Body.(*synapse.RunFinished)
	if !ok {
		t.Fatalf("the last event is %s, want run_finished", last.Kind)
	}
	return end.Outcome
}

var list = []byte(`{"type":"array","items":{"type":"string"}}`)

func TestWorkflowLoopsUntilAConditionHolds(t *testing.T) {
	f := &synapse.Flow{
		State:  []synapse.StateKey{{Name: "log", Schema: list, Reduce: synapse.ReduceAppend}},
		Nodes:  []synapse.FlowNode{node("work", "log"), node("check", "log")},
		Result: "${{ state.log.size() }} lines, ${{ visits.work }} rounds: ${{ state.log }}",
		Edges: []synapse.FlowEdge{
			{From: "start", To: "work"}, {From: "work", To: "check"},
			{From: "check", To: "work", When: "visits.check < 3"}, {From: "check", To: "end", When: "visits.check >= 3"},
		},
	}
	say := fn(func(in *synapse.NodeInput) (any, error) { return fmt.Sprint(in.Node, in.Visit), nil })
	b := flow(t, f, map[string]synapse.NodeFunc{"work": say, "check": say}, synapse.Limits{})
	out := outcome(t, b.run(t.Context(), "{}").events)
	want := `6 lines, 3 rounds: ["work1","check1","work2","check2","work3","check3"]`
	if out.Status != synapse.StatusCompleted || out.Text != want || out.Turns != 6 {
		t.Errorf("it ended %s after %d steps (%s): %s\nwant %s", out.Status, out.Turns, out.Cause, out.Text, want)
	}
}

func TestWorkflowEnds(t *testing.T) {
	boom := fn(func(*synapse.NodeInput) (any, error) { return nil, errors.New("boom") })
	ok := fn(func(in *synapse.NodeInput) (any, error) { return in.Node, nil })
	tests := []struct {
		name   string
		change func(f *synapse.Flow)
		funcs  map[string]synapse.NodeFunc
		status synapse.Status
		limit  string
		text   string
		cause  string
	}{
		{name: "a node fails", funcs: map[string]synapse.NodeFunc{"a": boom, "b": ok}, status: synapse.StatusFailed, cause: "node a: boom"},
		{name: "it goes on without a node", change: func(f *synapse.Flow) { f.Nodes[0].Then = synapse.ThenContinue },
			funcs: map[string]synapse.NodeFunc{"a": boom, "b": ok}, status: synapse.StatusCompleted, text: "b"},
		{name: "it goes on elsewhere", change: func(f *synapse.Flow) {
			f.Nodes[0].Then, f.Nodes[0].Goto = synapse.ThenGoto, "c"
			f.Nodes = append(f.Nodes, node("c", ""))
			f.Edges = append(f.Edges, synapse.FlowEdge{From: "c", To: "end"})
		}, funcs: map[string]synapse.NodeFunc{"a": boom, "b": ok, "c": ok}, status: synapse.StatusCompleted, text: "c"},
		{name: "an endless loop stops at the limit", change: func(f *synapse.Flow) {
			f.Steps, f.Edges[2].When = 5, "false"
			f.Edges = append(f.Edges, synapse.FlowEdge{From: "b", To: "a"})
		}, funcs: map[string]synapse.NodeFunc{"a": ok, "b": ok}, status: synapse.StatusPartial, limit: "steps", text: "a",
			cause: "stopped after 5 steps, with b still to run"},
		{name: "no edge leads on", change: func(f *synapse.Flow) { f.Edges[2].When = "visits.b > 1" },
			funcs: map[string]synapse.NodeFunc{"a": ok, "b": ok}, status: synapse.StatusFailed, text: "b",
			cause: "no edge led on from b and none had led to the end"},
		{name: "a condition asks for what is not there", change: func(f *synapse.Flow) {
			f.State = []synapse.StateKey{{Name: "v", Schema: []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)}}
			f.Edges[2].When = "state.v.ok"
		}, funcs: map[string]synapse.NodeFunc{"a": ok, "b": ok}, status: synapse.StatusFailed,
			cause: "after node b: state.v.ok: state.v is not set yet: has(state.v) tells whether it is"},
		{name: "an output that does not fit", change: func(f *synapse.Flow) {
			f.State = []synapse.StateKey{{Name: "n", Schema: []byte(`{"type":"integer"}`)}}
			f.Nodes[0].Output = "n"
		}, funcs: map[string]synapse.NodeFunc{"a": ok, "b": ok}, status: synapse.StatusFailed, cause: "does not fit state.n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &synapse.Flow{
				Nodes: []synapse.FlowNode{node("a", ""), node("b", "")},
				Edges: []synapse.FlowEdge{{From: "start", To: "a"}, {From: "a", To: "b"}, {From: "b", To: "end"}},
			}
			if test.change != nil {
				test.change(f)
			}
			out := outcome(t, flow(t, f, test.funcs, synapse.Limits{}).run(t.Context(), "{}").events)
			if out.Status != test.status || out.Limit != test.limit || out.Text != test.text || !strings.Contains(out.Cause, test.cause) {
				t.Errorf("it ended %s (limit %q): %q, because %q; want %s (limit %q): %q, because %q",
					out.Status, out.Limit, out.Text, out.Cause, test.status, test.limit, test.text, test.cause)
			}
		})
	}
}

func TestFanOutJoinsInTheOrderOfItems(t *testing.T) {
	f := &synapse.Flow{
		Input: []byte(`{"type":"object","properties":{"n":{"type":"array","items":{"type":"string"}}},"required":["n"]}`),
		State: []synapse.StateKey{{Name: "seen", Schema: list, Reduce: synapse.ReduceAppend}},
		Nodes: []synapse.FlowNode{
			{Name: "each", Kind: synapse.NodeFunction, Use: "each", ForEach: "input.n", As: "x", MaxParallel: 2, Retry: 1, Then: synapse.ThenContinue, Output: "seen"},
		},
		Edges:  []synapse.FlowEdge{{From: "start", To: "each"}, {From: "each", To: "end"}},
		Result: "${{ state.seen }}",
	}
	var flying, peak, calls atomic.Int64
	each := fn(func(in *synapse.NodeInput) (any, error) {
		calls.Add(1)
		now := flying.Add(1)
		defer flying.Add(-1)
		for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
		}
		if in.Item == "c" {
			return nil, errors.New("c is bad")
		}
		return in.Item, nil
	})
	b := flow(t, f, map[string]synapse.NodeFunc{"each": each}, synapse.Limits{})
	out := outcome(t, b.run(t.Context(), `{"n":["a","b","c","d","e"]}`).events)
	if out.Text != `["a","b","d","e"]` || out.Failed != 1 {
		t.Errorf("it came to %s with %d failed (%s %s), want four in order and one failed", out.Text, out.Failed, out.Status, out.Cause)
	}
	if calls.Load() != 6 || peak.Load() > 2 {
		t.Errorf("%d calls, at most %d at once; want 6 (one tried twice), at most 2 at once", calls.Load(), peak.Load())
	}
	out = outcome(t, flow(t, f, map[string]synapse.NodeFunc{"each": each}, synapse.Limits{}).run(t.Context(), `{}`).events)
	if out.Status != synapse.StatusFailed || !strings.Contains(out.Cause, "does not fit its schema") {
		t.Errorf("an input without n: %s %s", out.Status, out.Cause)
	}
}

func TestJoinWaitsForAllOfItsSources(t *testing.T) {
	f := &synapse.Flow{
		State: []synapse.StateKey{{Name: "log", Schema: list, Reduce: synapse.ReduceAppend}},
		Nodes: []synapse.FlowNode{node("a", "log"), node("b", "log"), node("b2", "log"), node("join", "log")},
		Edges: []synapse.FlowEdge{
			{From: "start", To: "a"}, {From: "start", To: "b"}, {From: "b", To: "b2"},
			{From: "a", To: "join"}, {From: "b2", To: "join"}, {From: "join", To: "end"},
		},
		Result: "${{ state.log }}",
	}
	say := fn(func(in *synapse.NodeInput) (any, error) { return in.Node, nil })
	funcs := map[string]synapse.NodeFunc{"a": say, "b": say, "b2": say, "join": say}
	for wait, want := range map[bool]string{true: `["a","b","b2","join"]`, false: `["a","b","b2","join","join"]`} {
		f.Nodes[3].WaitAll = wait
		out := outcome(t, flow(t, f, funcs, synapse.Limits{}).run(t.Context(), "{}").events)
		if out.Text != want {
			t.Errorf("wait all %v: %s %s, want %s", wait, out.Text, out.Cause, want)
		}
	}
}

// An unanswered question pauses the workflow; the same trace goes on with the
// answer, without running again what had run.
func TestApprovalOutlivesTheProcess(t *testing.T) {
	var runs atomic.Int64
	count := fn(func(in *synapse.NodeInput) (any, error) { runs.Add(1); return in.Node, nil })
	for _, allow := range []bool{true, false} {
		runs.Store(0)
		f := &synapse.Flow{
			Nodes: []synapse.FlowNode{node("before", ""), {Name: "ask", Kind: synapse.NodeApprove, Prompt: "Keep ${{ input.what }}?"}, node("beside", ""), node("after", "")},
			Edges: []synapse.FlowEdge{
				{From: "start", To: "before"}, {From: "before", To: "ask"}, {From: "before", To: "beside"}, {From: "ask", To: "after"},
				{From: "beside", To: "end"}, {From: "after", To: "end"},
			},
		}
		b := flow(t, f, map[string]synapse.NodeFunc{"before": count, "beside": count, "after": count}, synapse.Limits{})
		events := b.run(t.Context(), `{"what":"it"}`).events
		out := outcome(t, events)
		if out.Status != synapse.StatusPartial || out.Limit != run.LimitApproval || out.Cause != "it waits for an answer: Keep it?" {
			t.Fatalf("unattended it ended %s (%s): %s", out.Status, out.Limit, out.Cause)
		}
		at := restore(t, b, events)
		asked := at.State.Flow.Questions()
		if len(asked) != 1 || asked[0].Subject != "Keep it?" {
			t.Fatalf("open questions: %v", asked)
		}
		at.State.Flow.Answers[asked[0].ID] = synapse.Answer{Allow: allow, Reason: "because"}
		var more []*synapse.Event
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{From: at}) {
			if err != nil {
				t.Fatal(err)
			}
			more = append(more, e)
		}
		out = outcome(t, more)
		switch {
		case allow && (out.Status != synapse.StatusCompleted || out.Text != "after" || runs.Load() != 3):
			t.Errorf("with a yes it ended %s: %q (%s) after %d calls, want completed: after, 3 calls", out.Status, out.Text, out.Cause, runs.Load())
		case !allow && (out.Status != synapse.StatusFailed || out.Cause != "node ask: the user said no: because" || runs.Load() != 2):
			t.Errorf("with a no it ended %s: %s after %d calls, want failed after 2", out.Status, out.Cause, runs.Load())
		}
		if first := more[0].Seq; first != events[len(events)-1].Seq+1 {
			t.Errorf("it went on with event %d after %d", first, events[len(events)-1].Seq)
		}
	}
}

// restore makes a checkpoint of the events of a bench's trace.
func restore(t *testing.T, b *bench, events []*synapse.Event) *run.Checkpoint {
	t.Helper()
	at, err := run.Restore(trace.Of(events...), func(id string) iter.Seq2[*synapse.Event, error] {
		return b.history(context.Background(), id)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAgentsAndWorkflowsAreNodes(t *testing.T) {
	model := script.Play(func(_ int, req *synapse.Request) script.Turn {
		return script.Turn{Text: "did " + script.FirstUser(req)}
	})
	b := newBench(t, model)
	b.child("worker", "read")
	inner := &synapse.Flow{
		Input: []byte(`{"type":"object","properties":{"goal":{"type":"string"}}}`),
		Nodes: []synapse.FlowNode{{Name: "one", Kind: synapse.NodeAgent, Use: "worker", Spec: "worker", Prompt: "inner ${{ input.goal }}"}},
		Edges: []synapse.FlowEdge{{From: "start", To: "one"}, {From: "one", To: "end"}},
	}
	outer := &synapse.Flow{
		State: []synapse.StateKey{{Name: "said"}},
		Nodes: []synapse.FlowNode{
			{Name: "a", Kind: synapse.NodeAgent, Use: "worker", Spec: "worker", Prompt: "outer", Output: "said"},
			{Name: "b", Kind: synapse.NodeWorkflow, Use: "inner", Spec: "inner", Input: []byte(`{"goal":"${{ state.said }}"}`)},
		},
		Edges: []synapse.FlowEdge{{From: "start", To: "a"}, {From: "a", To: "b"}, {From: "b", To: "end"}},
	}
	b.graph.Specs = append(b.graph.Specs, synapse.Spec{ID: "inner", Agent: "inner", Digest: "i", Flow: inner}, synapse.Spec{ID: "outer", Agent: "outer", Digest: "o", Flow: outer})
	b.graph.Entry = "outer"
	events := b.run(t.Context(), "{}").events
	out := outcome(t, events)
	if out.Status != synapse.StatusCompleted || out.Text != "did inner did outer" || out.Total.Requests != 2 {
		t.Errorf("it ended %s: %q (%s) with %d requests", out.Status, out.Text, out.Cause, out.Total.Requests)
	}
	var kinds []string
	for _, e := range events {
		if e.ParentRun == "" {
			kinds = append(kinds, string(e.Kind))
		}
	}
	want := []string{"run_started", "state_changed", "node_started", "child_started", "child_finished", "node_finished", "state_changed",
		"node_started", "child_started", "child_finished", "node_finished", "state_changed", "conclusion", "run_finished"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events of the outer workflow (-want +got):\n%s", diff)
	}
}
