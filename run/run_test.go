package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
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

// A bench is a small world to run graphs in: a scripted model, tools, and a
// journal of slices.
type bench struct {
	t     *testing.T
	graph synapse.Graph
	tools []synapse.Tool
	local run.Local
	opt   run.ProgramOptions

	mu      sync.Mutex
	journal []*synapse.Event
}

// newBench returns a world in which every model is m.
func newBench(t *testing.T, m synapse.Model) *bench {
	b := &bench{t: t}
	b.local = run.Local{
		Model:   func(synapse.ModelRef) (synapse.Model, error) { return m, nil },
		Append:  b.append,
		History: b.history,
		NewID:   func() string { return "trace-1" },
	}
	b.tools = []synapse.Tool{echoTool("read"), echoTool("write")}
	b.tools[0].ReadOnly, b.tools[0].Parallel = true, true
	b.graph.Entry = "main"
	b.spec("main", "read", "write", "task", "task_output", "task_stop")
	return b
}

// echoTool answers with its name and its text argument.
func echoTool(name string) synapse.Tool {
	return synapse.Tool{
		Name:        name,
		Description: name + "s",
		Schema:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			var args struct{ Text string }
			if err := json.Unmarshal(in.Args, &args); err != nil {
				return nil, err
			}
			return synapse.TextResult(name + ": " + args.Text), nil
		},
	}
}

// spec adds an agent that may use the tools.
func (b *bench) spec(name string, tools ...string) *synapse.Spec {
	b.graph.Specs = append(b.graph.Specs, synapse.Spec{
		ID: name, Agent: name, Description: "does " + name + " work", Digest: name, System: "You are " + name + ".",
		Model: synapse.ModelRef{Provider: "test", Name: "m"}, Policy: policy.Policy{Allow: tools},
	})
	return &b.graph.Specs[len(b.graph.Specs)-1]
}

// child adds a sub-agent of main.
func (b *bench) child(name string, tools ...string) *synapse.Spec {
	b.edge("main", name, name)
	return b.spec(name, tools...)
}

func (b *bench) edge(from, to string, names ...string) {
	b.graph.Edges = append(b.graph.Edges, synapse.Edge{Kind: synapse.EdgeCall, From: from, To: to, Names: names})
}

func (b *bench) append(_ context.Context, events []*synapse.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.journal = append(b.journal, events...)
	return nil
}

func (b *bench) history(_ context.Context, runID string) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		b.mu.Lock()
		events := slices.Clone(b.journal)
		b.mu.Unlock()
		for _, e := range events {
			if e.Run == runID && !yield(e, nil) {
				return
			}
		}
	}
}

func (b *bench) program() *run.Program {
	b.t.Helper()
	p, err := run.NewProgram(&b.graph, b.tools, b.opt)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// run runs a prompt to its end and checks what holds for every run.
func (b *bench) run(ctx context.Context, prompt string) *record {
	b.t.Helper()
	return b.input(ctx, run.Input{Prompt: prompt})
}

func (b *bench) input(ctx context.Context, in run.Input) *record {
	b.t.Helper()
	r := &record{t: b.t}
	for e, err := range b.local.Run(ctx, b.program(), in) {
		if err != nil {
			b.t.Fatalf("run: %v", err)
		}
		r.events = append(r.events, e)
	}
	r.verify()
	return r
}

// A record is what a run yielded.
type record struct {
	t      *testing.T
	events []*synapse.Event
	gaps   bool // the deltas are not among the events
}

// verify checks the invariants: numbers ascend without gaps and times with them,
// every started run has exactly one end and says nothing after it, a child starts
// after its parent says so and has ended before that says so, with the same
// outcome, and every call has exactly one result.
func (r *record) verify() {
	r.t.Helper()
	var last *synapse.Event
	open := map[string]bool{}
	ends := map[string]synapse.Outcome{}
	announced := map[string]bool{}
	calls := map[string]bool{} // waiting for their results, by run and id
	for _, e := range r.events {
		if last != nil && (r.gaps && e.Seq <= last.Seq || !r.gaps && e.Seq != last.Seq+1) {
			r.t.Errorf("event %d follows %d", e.Seq, last.Seq)
		}
		if last != nil && e.Time.Before(last.Time) {
			r.t.Errorf("event %d is older than the one before it", e.Seq)
		}
		last = e
		if e.Kind != synapse.KindRunStarted && !open[e.Run] {
			r.t.Errorf("%s of run %s outside its start and end", e.Kind, e.Run)
		}
		switch b := e.Body.(type) {
		case *synapse.RunStarted:
			if open[e.Run] {
				r.t.Errorf("run %s has two starts and one end", e.Run)
			}
			open[e.Run] = true
			if e.ParentRun != "" && !announced[e.ParentRun+"/"+e.Run] {
				r.t.Errorf("run %s started before its parent said so", e.Run)
			}
			delete(announced, e.ParentRun+"/"+e.Run)
		case *synapse.ChildStarted:
			announced[e.Run+"/"+b.Task] = true
		case *synapse.RunFinished:
			delete(open, e.Run)
			ends[e.Run] = b.Outcome
		case *synapse.ChildFinished:
			if out, ok := ends[b.Task]; open[b.Task] || !ok || !reflect.DeepEqual(out, b.Outcome) {
				r.t.Errorf("child_finished of %s before or beside its end: %+v, its end: %+v", b.Task, b.Outcome, out)
			}
		case *synapse.ModelReplied:
			for _, c := range b.Message.Calls() {
				calls[e.Run+"/"+c.ID] = true
			}
		case *synapse.ToolFinished:
			if key := e.Run + "/" + b.Result.CallID; calls[key] {
				delete(calls, key)
			} else {
				r.t.Errorf("a second result, or one without a call: %s", key)
			}
		}
	}
	for id := range open {
		r.t.Errorf("run %s has no end", id)
	}
	for key := range calls {
		r.t.Errorf("call %s has no result", key)
	}
}

// bodies returns the bodies of a type, of one agent's runs or of all.
func bodies[B synapse.Body](r *record, agent string) []B {
	var out []B
	for _, e := range r.events {
		if b, ok := e.Body.(B); ok && (agent == "" || e.Agent == agent) {
			out = append(out, b)
		}
	}
	return out
}

// outcome returns how the last run of the agent ended.
func (r *record) outcome(agent string) synapse.Outcome {
	r.t.Helper()
	ends := bodies[*synapse.RunFinished](r, agent)
	if len(ends) == 0 {
		r.t.Fatalf("no run of %s ended", agent)
	}
	return ends[len(ends)-1].Outcome
}

// results returns the texts of an agent's tool results, as they came.
func (r *record) results(agent string) []string {
	var out []string
	for _, b := range bodies[*synapse.ToolFinished](r, agent) {
		out = append(out, b.Result.Text)
	}
	return out
}

// byAgent plays a script for each agent, told apart by its system prompt.
func byAgent(scripts map[string][]script.Turn) *script.Model {
	return script.Play(func(n int, req *synapse.Request) script.Turn {
		name := strings.TrimSuffix(strings.TrimPrefix(req.System, "You are "), ".")
		turns := scripts[name]
		if n >= len(turns) {
			return script.Turn{Err: fmt.Errorf("the script of %q has %d turns", name, len(turns))}
		}
		return turns[n]
	})
}

func task(agent, prompt string) synapse.ToolCall {
	return script.Call("task", map[string]any{"subagent_type": agent, "description": "a test", "prompt": prompt})
}

func read(text string) synapse.ToolCall { return script.Call("read", map[string]any{"text": text}) }

func TestLoopRunsToolsAndAnswers(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Text: "Looking.", Calls: []synapse.ToolCall{read("a"), read("b")}},
		script.Turn{Text: "Done."},
	))
	r := b.run(t.Context(), "go")
	out := r.outcome("main")
	if out.Status != synapse.StatusCompleted || out.Text != "Done." || out.Turns != 2 {
		t.Errorf("outcome = %+v", out)
	}
	if out.Usage.InputTokens != 20 || out.Usage.OutputTokens != 10 || out.Total.Requests != 2 {
		t.Errorf("usage = %+v", out.Usage)
	}
	want := []string{"read: a", "read: b"}
	got := r.results("main")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("results = %q, want %q", got, want)
	}
	if got := bodies[*synapse.Conclusion](r, ""); len(got) != 1 || got[0].Content != "Done." {
		t.Errorf("conclusion = %+v", got)
	}
}

func TestParallelChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		m := script.Play(func(turn int, req *synapse.Request) script.Turn {
			if strings.Contains(req.System, "main") {
				if turn == 0 {
					calls := make([]synapse.ToolCall, n)
					for i := range calls {
						calls[i] = task("worker", fmt.Sprintf("part %d", i))
					}
					return script.Turn{Calls: calls}
				}
				return script.Turn{Text: "All " + fmt.Sprint(strings.Count(script.Results(req), "completed.")) + " done."}
			}
			if turn == 0 {
				return script.Turn{Delay: 200 * time.Millisecond, Calls: []synapse.ToolCall{read(script.FirstUser(req))}}
			}
			return script.Turn{Delay: 200 * time.Millisecond, Text: "saw " + script.Results(req)}
		})
		b := newBench(t, m)
		b.child("worker", "read")
		b.local.MaxParallel = n
		start := time.Now()
		r := b.run(t.Context(), "go")
		if got := time.Since(start); got != 400*time.Millisecond {
			t.Errorf("took %s, want 400ms: the children did not run side by side", got)
		}
		if out := r.outcome("main"); out.Text != "All 100 done." || out.Total.Requests != 2+2*n {
			t.Errorf("outcome = %+v", out)
		}
		results := r.results("main")
		for i, e := range bodies[*synapse.ChildFinished](r, "main") {
			if e.Text == "" || e.Status != synapse.StatusCompleted {
				t.Errorf("child %d: %+v", i, e.Outcome)
			}
		}
		if len(results) != n {
			t.Fatalf("%d results", len(results))
		}
		// The results stand in the order of the calls, whoever was first.
		reqs := m.Requests()
		parts := reqs[len(reqs)-1].Messages[2].Parts
		for i, p := range parts {
			if !strings.HasSuffix(p.Result.Text, fmt.Sprintf("saw read: part %d", i)) {
				t.Errorf("result %d = %q", i, p.Result.Text)
			}
		}
	})
}

// TestCallsAtTheEndOfATurn: a reply that says it is done and calls a tool all the
// same has the tool run.
func TestCallsAtTheEndOfATurn(t *testing.T) {
	for _, stop := range []synapse.StopReason{synapse.StopEnd, synapse.StopUnknown, synapse.StopCalls} {
		b := newBench(t, script.New(script.Turn{Text: "done", Stop: stop, Calls: []synapse.ToolCall{read("a")}}, script.Turn{Text: "ok"}))
		r := b.run(t.Context(), "go")
		if got := r.results("main"); len(got) != 1 || got[0] != "read: a" {
			t.Errorf("%s: results = %q", stop, got)
		}
		if out := r.outcome("main"); out.Text != "ok" {
			t.Errorf("%s: outcome = %+v", stop, out)
		}
	}
}
