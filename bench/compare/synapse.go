package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

// openSynapse runs the world with policy, permission rules, events and a journal
// in memory on: what the program runs with, but for the disk.
func openSynapse(w *world) (func(context.Context) (string, error), error) {
	program, err := programOf(w)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) { return answerOf(ctx, w, program, new(trace.Memory)) }, nil
}

// openDurable runs it with the journal that the program has, on disk: what a tool
// with effects is about to do is synced before it begins.
func openDurable(w *world) (func(context.Context) (string, error), error) {
	program, err := programOf(w)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "synapse-compare-")
	if err != nil {
		return nil, err
	}
	w.cleanup = func() { os.RemoveAll(dir) }
	journal, err := trace.OpenSQLite(context.Background(), filepath.Join(dir, "journal.db"), trace.SQLiteOptions{})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) { return answerOf(ctx, w, program, journal) }, nil
}

func programOf(w *world) (*run.Program, error) {
	rules := []policy.Source{{Origin: "user settings", Rules: []policy.Rule{
		{Tool: "execute", Pattern: "git *", Action: policy.Allow}, {Tool: "read_file", Pattern: "secrets/**", Action: policy.Deny},
	}}}
	spec := func(name string, tools ...string) synapse.Spec {
		return synapse.Spec{
			ID: name, Agent: name, Description: "works", Digest: name, System: name,
			Model: synapse.ModelRef{Provider: "bench", Name: "m"}, Policy: policy.Policy{Allow: tools, Rules: rules},
		}
	}
	graph := &synapse.Graph{
		Entry: "main", Specs: []synapse.Spec{spec("main", "read_file", "boom", "task"), spec("worker", "read_file")},
		Edges: []synapse.Edge{{Kind: synapse.EdgeCall, From: "main", To: "worker", Names: []string{"worker"}}},
	}
	tools := []synapse.Tool{
		{
			Name: "read_file", Description: "reads a file", ReadOnly: true, Parallel: true,
			Schema:  json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"}},"required":["path"]}`),
			Subject: policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}},
			Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
				text, err := w.read(string(in.Args))
				if err != nil {
					return nil, err
				}
				return synapse.TextResult(text), nil
			},
		},
		{Name: "boom", Description: "panics", Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) { panic("boom") }},
	}
	return run.NewProgram(graph, tools, run.ProgramOptions{})
}

func answerOf(ctx context.Context, w *world, program *run.Program, journal trace.Journal) (string, error) {
	l := run.Local{
		Model:       func(synapse.ModelRef) (synapse.Model, error) { return synapseModel{w}, nil },
		Append:      func(ctx context.Context, events []*synapse.Event) error { return journal.Append(ctx, events...) },
		MaxParallel: 100,
	}
	var out synapse.Outcome
	for e, err := range l.Run(ctx, program, run.Input{Prompt: "go"}) {
		if err != nil {
			return "", err
		}
		if b, ok := e.Body.(*synapse.RunFinished); ok && e.ParentRun == "" {
			out = b.Outcome
		}
	}
	if out.Status != synapse.StatusCompleted {
		return "", errors.New(string(out.Status) + ": " + out.Cause)
	}
	return out.Text, nil
}

type synapseModel struct{ w *world }

func (m synapseModel) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		r, err := m.w.next(ctx, req.System == "main", req.Messages[0].Text(), len(req.Messages)/2)
		if err != nil {
			yield(nil, err)
			return
		}
		if r.text != "" && !yield(&synapse.Delta{Kind: synapse.DeltaText, Text: r.text}, nil) {
			return
		}
		stop := synapse.StopEnd
		for _, c := range r.calls {
			stop = synapse.StopCalls
			args := c.args
			if c.name == spawn {
				args = `{"subagent_type":"worker","description":"a part","prompt":"` + c.prompt + `"}`
			}
			if !yield(&synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{ID: c.id, Name: c.name, Args: args}}, nil) {
				return
			}
		}
		yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: stop, Usage: synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 10}}, nil)
	}
}
