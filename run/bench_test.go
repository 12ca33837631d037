package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

// The benchmarks run the same work twice: "bare" calls the model function, runs
// the tool function and appends messages, as a program of twenty lines would;
// "synapse" does it with policy, events and an in-memory journal. No model thinks
// and no tool works, so what is measured is the loop.

// turnsModel answers a conversation with calls of the tool until it has turns
// replies, then with a text. The main agent of a fan-out delegates instead.
type turnsModel struct{ turns, children int }

func (m turnsModel) Generate(_ context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		turn := len(req.Messages) / 2 // user, then pairs of a reply and its results
		stop := synapse.StopCalls
		switch {
		case m.children > 0 && req.System == "You are main.":
			if turn > 0 {
				stop = synapse.StopEnd
				break
			}
			for i := range m.children {
				n := strconv.Itoa(i)
				if !yield(&synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{
					ID: "c" + n, Name: "task", Args: `{"intent":"share the work","subagent_type":"worker","description":"a part","prompt":"part ` + n + `"}`,
				}}, nil) {
					return
				}
			}
		case turn < m.turns-1:
			if !yield(&synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{
				ID: "c" + strconv.Itoa(turn), Name: "read_file", Args: `{"intent":"see what is in it","path":"docs/a.md","offset":` + strconv.Itoa(turn) + `}`,
			}}, nil) {
				return
			}
		default:
			stop = synapse.StopEnd
		}
		if stop == synapse.StopEnd && !yield(&synapse.Delta{Kind: synapse.DeltaText, Text: "That is what it says."}, nil) {
			return
		}
		yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: stop, Usage: synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 10}}, nil)
	}
}

// readTool reads its arguments and answers at once.
func readTool() synapse.Tool {
	return synapse.Tool{
		Name: "read_file", Description: "reads", ReadOnly: true, Parallel: true,
		Schema:  json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer"}},"required":["path"]}`),
		Subject: policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}},
		Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			var args struct {
				Path   string
				Offset int
			}
			if err := json.Unmarshal(in.Args, &args); err != nil {
				return nil, err
			}
			return synapse.TextResult("the text of " + args.Path), nil
		},
	}
}

// benchProgram is a main agent and a worker with rules of two sources.
func benchProgram(b *testing.B) *run.Program {
	rules := []policy.Source{
		{Origin: "user settings", Rules: []policy.Rule{{Tool: "execute", Pattern: "git *", Action: policy.Allow}, {Tool: "read_file", Pattern: "secrets/**", Action: policy.Deny}}},
		{Origin: "project settings", Rules: []policy.Rule{{Tool: "fetch_url", Pattern: "*", Action: policy.Ask}}},
	}
	spec := func(name string, tools ...string) synapse.Spec {
		return synapse.Spec{
			ID: name, Agent: name, Description: "works", Digest: name, System: "You are " + name + ".",
			Model: synapse.ModelRef{Provider: "test", Name: "m"}, Policy: policy.Policy{Allow: tools, Rules: rules},
			Limits: synapse.Limits{Turns: 1000, Tokens: 1 << 40},
		}
	}
	g := &synapse.Graph{
		Entry: "main", Specs: []synapse.Spec{spec("main", "read_file", "task"), spec("worker", "read_file")},
		Edges: []synapse.Edge{{Kind: synapse.EdgeCall, From: "main", To: "worker", Names: []string{"worker"}}},
	}
	p, err := run.NewProgram(g, []synapse.Tool{readTool()}, run.ProgramOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// processorTime reports allocations, and the processor time between its two
// calls: on a busy machine the time on the clock says little.
func processorTime(b *testing.B) func() {
	b.ReportAllocs()
	start := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-start)/1e6/float64(b.N), "cpu-ms/op") }
}

// benchSynapse runs the program once for each iteration.
func benchSynapse(b *testing.B, m synapse.Model, replies int) {
	p := benchProgram(b)
	defer processorTime(b)()
	for b.Loop() {
		var journal trace.Memory
		l := run.Local{
			Model:       func(synapse.ModelRef) (synapse.Model, error) { return m, nil },
			Append:      func(ctx context.Context, events []*synapse.Event) error { return journal.Append(ctx, events...) },
			MaxParallel: 100,
		}
		got := 0
		for e, err := range l.Run(b.Context(), p, run.Input{Prompt: "go"}) {
			if err != nil {
				b.Fatal(err)
			}
			if e.Kind == synapse.KindModelReplied {
				got++
			}
		}
		if got != replies {
			b.Fatalf("%d replies, want %d", got, replies)
		}
	}
}

// bareLoop is the loop without anything around it.
func bareLoop(ctx context.Context, m synapse.Model, tool synapse.Tool, system, prompt string) (string, error) {
	messages := []synapse.Message{synapse.UserText(prompt)}
	for {
		reply, err := synapse.Collect(m.Generate(ctx, &synapse.Request{System: system, Messages: messages}), nil)
		if err != nil {
			return "", err
		}
		messages = append(messages, reply.Message)
		calls := reply.Message.Calls()
		if len(calls) == 0 {
			return reply.Message.Text(), nil
		}
		parts := make([]synapse.Part, len(calls))
		for i, c := range calls {
			result, err := bareTool(ctx, m, tool, c)
			if err != nil {
				return "", err
			}
			result.CallID, result.Name = c.ID, c.Name
			parts[i] = synapse.Part{Kind: synapse.PartResult, Result: result}
		}
		messages = append(messages, synapse.Message{Role: synapse.RoleTool, Parts: parts})
	}
}

func bareTool(ctx context.Context, m synapse.Model, tool synapse.Tool, c *synapse.ToolCall) (*synapse.ToolResult, error) {
	return tool.Run(ctx, &synapse.Invocation{CallID: c.ID, Args: json.RawMessage(c.Args)})
}

// bareFanout starts one loop for each call of the main agent's first reply.
func bareFanout(ctx context.Context, m synapse.Model, tool synapse.Tool) error {
	reply, err := synapse.Collect(m.Generate(ctx, &synapse.Request{System: "You are main.", Messages: []synapse.Message{synapse.UserText("go")}}), nil)
	if err != nil {
		return err
	}
	calls := reply.Message.Calls()
	texts := make([]string, len(calls))
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			var args struct{ Prompt string }
			if errs[i] = json.Unmarshal([]byte(c.Args), &args); errs[i] == nil {
				texts[i], errs[i] = bareLoop(ctx, m, tool, "You are worker.", args.Prompt)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if got := strings.Count(strings.Join(texts, ""), "That is"); got != len(calls) {
		return fmt.Errorf("%d of %d answered", got, len(calls))
	}
	return nil
}

// BenchmarkLoop50 is one agent of fifty turns, all but the last with a tool call.
func BenchmarkLoop50(b *testing.B) {
	m := turnsModel{turns: 50}
	b.Run("bare", func(b *testing.B) {
		tool := readTool()
		defer processorTime(b)()
		for b.Loop() {
			if _, err := bareLoop(b.Context(), m, tool, "You are main.", "go"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("synapse", func(b *testing.B) { benchSynapse(b, m, 50) })
}

// BenchmarkFanout100 is one parent whose hundred children take three turns each.
func BenchmarkFanout100(b *testing.B) {
	m := turnsModel{turns: 3, children: 100}
	b.Run("bare", func(b *testing.B) {
		tool := readTool()
		defer processorTime(b)()
		for b.Loop() {
			if err := bareFanout(b.Context(), m, tool); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("synapse", func(b *testing.B) { benchSynapse(b, m, 302) })
}
