package run_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// TestReaderThatPanics: a loop body that panics, or ends its goroutine as a
// failing test does, leaves nothing running and nothing unwritten.
func TestReaderThatPanics(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("reader") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []synapse.EventKind{synapse.KindRunStarted, synapse.KindChildStarted, synapse.KindToolStarted, synapse.KindText, synapse.KindRunFinished} {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, byAgent(map[string][]script.Turn{
						"main":   {{Text: "so", Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2")}}, {Text: "told"}},
						"worker": {{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}, {Text: "done"}},
					}))
					var ran atomic.Bool
					b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
						ran.Store(true)
						return synapse.TextResult("ok"), nil
					}
					b.child("worker", "write")
					done := make(chan any)
					go func() {
						defer func() { done <- recover() }()
						for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
							if err != nil {
								t.Error(err)
							}
							if e.Kind == kind {
								leave()
							}
						}
					}()
					if got := <-done; name == "panic" && got != "reader" {
						t.Errorf("%s: the reader's panic became %v", kind, got)
					}
					r := &record{t: t, events: b.journal, gaps: true}
					r.verify()
					if out := r.outcome("main"); kind != synapse.KindRunFinished && out.Status != synapse.StatusCancelled {
						t.Errorf("%s: main ended as %+v", kind, out)
					}
					if kind == synapse.KindToolStarted && ran.Load() {
						t.Error("a tool ran though the reader broke at its start")
					}
				})
			}
		})
	}
}

// TestJournalFailsAnywhere: the journal fails, or panics, at each of its batches
// in turn. The trace is cancelled, the caller gets the error, every run ends, and
// no effect begins whose start was not written.
func TestJournalFailsAnywhere(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		for failing := 1; ; failing++ {
			batches := 0
			synctest.Test(t, func(t *testing.T) {
				// Replies take their time, so that events don't gather to a few batches.
				b := newBench(t, byAgent(map[string][]script.Turn{
					"main": {
						{Calls: []synapse.ToolCall{task("worker", "1"), background("worker", "2"), script.Call("write", map[string]any{"text": "m"})}, Delay: 10 * time.Millisecond},
						{Text: "waiting", Delay: 20 * time.Millisecond}, {Text: "told", Delay: 20 * time.Millisecond},
					},
					"worker": {
						{Calls: []synapse.ToolCall{read("r"), script.Call("write", map[string]any{"text": "w"})}, Delay: 30 * time.Millisecond},
						{Text: "done", Delay: 40 * time.Millisecond},
					},
				}))
				b.child("worker", "read", "write")
				var written sync.Map
				b.local.Append = func(_ context.Context, events []*synapse.Event) error {
					if batches++; batches == failing {
						if how == "panic" {
							panic("disk full")
						}
						return errors.New("disk full")
					}
					for _, e := range events {
						if s, ok := e.Body.(*synapse.ToolStarted); ok {
							written.Store(e.Run+"/"+s.Key, true)
						}
					}
					return nil
				}
				b.tools[1].Run = func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
					if _, ok := written.Load(in.Key); !ok {
						t.Errorf("%s ran unwritten", in.Key)
					}
					return synapse.TextResult("ok"), nil
				}
				r := &record{t: t}
				var got error
				for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
					if got != nil {
						t.Errorf("%v after the error", e)
					}
					if got = err; err == nil {
						r.events = append(r.events, e)
					}
				}
				r.verify()
				if batches >= failing && (got == nil || !strings.Contains(got.Error(), "disk full")) {
					t.Errorf("batch %d fails: error = %v", failing, got)
				}
			})
			if batches < failing {
				if failing < 5 {
					t.Errorf("only %d batches were written: the test shows little", batches)
				}
				break
			}
		}
	}
}

// TestBreakAnywhere: the caller leaves at each event in turn.
func TestBreakAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		seen := 0
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main":   {{Text: "so", Calls: []synapse.ToolCall{task("worker", "1"), background("worker", "2"), read("m")}}, {Text: "waiting"}, {Text: "told"}},
				"worker": {{Delay: time.Second, Calls: []synapse.ToolCall{read("r"), script.Call("write", map[string]any{"text": "w"})}}, {Text: "done"}},
			}))
			b.child("worker", "read", "write")
			for _, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen == at {
					break
				}
			}
			r := &record{t: t, events: b.journal, gaps: true}
			r.verify()
			r.outcome("main")
		})
		if seen < at {
			break
		}
	}
}

// TestNothingAfterTheEnd: a tool that was given up goes on printing, and a run
// that has ended stays quiet.
func TestNothingAfterTheEnd(t *testing.T) {
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		quiet := make(chan struct{})
		stopped := make(chan struct{})
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("chatty", nil)}}))
		b.local.Grace = time.Millisecond
		b.tools = append(b.tools, synapse.Tool{Name: "chatty", Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			defer close(stopped)
			cancel()
			for {
				select {
				case <-quiet:
					return synapse.TextResult("ok"), nil
				default:
					in.Output("x")
				}
			}
		}})
		b.graph.Specs[0].Policy.Allow = []string{"chatty"}
		r := b.run(ctx, "go") // verifies that the end is the last event
		if out := r.outcome("main"); out.Status != synapse.StatusCancelled {
			t.Errorf("outcome = %+v", out)
		}
		close(quiet)
		<-stopped
	}
}

// TestSlowReaderIsNoSilence: the reader of the events takes minutes; the stream
// waits for it and is not broken for that.
func TestSlowReaderIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelFunc(func(ctx context.Context, _ *synapse.Request) iter.Seq2[*synapse.Delta, error] {
			return func(yield func(*synapse.Delta, error) bool) {
				for i := range 20_000 { // more than the queue holds
					kind := synapse.DeltaText
					if i%2 == 1 {
						kind = synapse.DeltaReasoning
					}
					if ctx.Err() != nil {
						yield(nil, ctx.Err())
						return
					}
					if !yield(&synapse.Delta{Kind: kind, Text: "x"}, nil) {
						return
					}
				}
				yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: synapse.StopEnd}, nil)
			}
		})
		b := newBench(t, nil)
		b.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m, nil }
		slept := false
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case *synapse.Text:
				if !slept {
					slept = true
					time.Sleep(10 * time.Minute)
				}
			case *synapse.Retry:
				t.Errorf("tried again: %+v", b)
			case *synapse.RunFinished:
				if b.Status != synapse.StatusCompleted {
					t.Errorf("outcome = %+v", b.Outcome)
				}
			}
		}
	})
}

// modelFunc is a model of one function.
type modelFunc func(context.Context, *synapse.Request) iter.Seq2[*synapse.Delta, error]

func (f modelFunc) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return f(ctx, req)
}

// TestDeltasWhileNobodyReads: the pieces that wait for a reader who is busy join,
// at a cost that grows with their length and not with its square.
func TestDeltasWhileNobodyReads(t *testing.T) {
	const n = 100_000
	piece := strings.Repeat("x", 50)
	m := modelFunc(func(context.Context, *synapse.Request) iter.Seq2[*synapse.Delta, error] {
		return func(yield func(*synapse.Delta, error) bool) {
			for range n {
				if !yield(&synapse.Delta{Kind: synapse.DeltaText, Text: piece}, nil) {
					return
				}
			}
			yield(&synapse.Delta{Kind: synapse.DeltaEnd, Stop: synapse.StopEnd}, nil)
		}
	})
	b := newBench(t, nil)
	b.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m, nil }
	start := time.Now()
	got, waited := 0, false
	for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := e.Body.(*synapse.Text); ok {
			got += len(text.Text)
			if !waited {
				waited = true
				time.Sleep(200 * time.Millisecond)
			}
		}
	}
	if got != n*len(piece) {
		t.Errorf("%d bytes of %d came through", got, n*len(piece))
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestBreakWaits: leaving the range cancels the trace, and the journal gets the
// ends of all runs.
func TestBreakWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2")}}},
			"worker": {{Hang: true}, {Hang: true}},
		}))
		b.child("worker", "read")
		for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == synapse.KindChildStarted {
				break
			}
		}
		r := &record{t: t, events: b.journal, gaps: true}
		r.verify()
		if out := r.outcome("main"); out.Status != synapse.StatusCancelled {
			t.Errorf("outcome = %+v", out)
		}
	})
}

// TestJournalFailure: when nothing can be written, no effect begins.
func TestJournalFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}))
		b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			ran.Store(true)
			return synapse.TextResult("ok"), nil
		}
		b.local.Append = func(_ context.Context, events []*synapse.Event) error {
			for _, e := range events {
				if e.Kind == synapse.KindToolStarted {
					return errors.New("disk full")
				}
			}
			return nil
		}
		var got error
		for _, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			got = err
		}
		if got == nil || !strings.Contains(got.Error(), "disk full") {
			t.Errorf("error = %v", got)
		}
		if ran.Load() {
			t.Error("the tool ran though its start could not be written")
		}
	})
}

// TestWriteAhead: when a tool with an effect runs, the journal and the range
// body have seen its start.
func TestWriteAhead(t *testing.T) {
	b := newBench(t, script.New(
		script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}},
		script.Turn{Text: "ok"},
	))
	var seen atomic.Bool
	b.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		if !seen.Load() {
			t.Error("the tool ran before the reader had seen its start")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if !slices.ContainsFunc(b.journal, func(e *synapse.Event) bool { return e.Kind == synapse.KindToolStarted }) {
			t.Error("the tool ran before its start was in the journal")
		}
		return synapse.TextResult("ok"), nil
	}
	for e, err := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == synapse.KindToolStarted {
			time.Sleep(10 * time.Millisecond)
			seen.Store(true)
		}
	}
}

// TestNoGoroutinesLeft: outside a bubble too, nothing stays behind: not after an
// answer, a cancel, a reader that leaves or panics, nor once a tool that was given
// up has come back.
func TestNoGoroutinesLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	ways := map[string]func(b *bench){
		"answer": func(b *bench) {
			for range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
			}
		},
		"break": func(b *bench) {
			for e := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
				if e.Kind == synapse.KindToolStarted {
					break
				}
			}
		},
		"panic": func(b *bench) {
			defer func() { _ = recover() }()
			for e := range b.local.Run(t.Context(), b.program(), run.Input{Prompt: "go"}) {
				if e.Kind == synapse.KindChildStarted {
					panic("reader")
				}
			}
		},
	}
	for name, way := range ways {
		for _, hangs := range []bool{false, true} {
			release := make(chan struct{})
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main":   {{Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2"), background("worker", "3")}}, {Text: "waiting"}, {Text: "told"}, {Text: "told"}},
				"worker": {{Calls: []synapse.ToolCall{read("x"), script.Call("hang", nil)}}, {Text: "done"}},
			}))
			b.local.Grace = 5 * time.Millisecond
			b.tools = append(b.tools, hangTool(release))
			b.child("worker", "read", "hang").Limits.Time = synapse.Duration(50 * time.Millisecond)
			if !hangs {
				close(release)
			}
			way(b)
			if hangs {
				close(release)
			}
			deadline := time.Now().Add(5 * time.Second)
			for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			if left := runtime.NumGoroutine() - before; left > 0 {
				t.Errorf("%s, a tool that hangs: %v: %d goroutines are left", name, hangs, left)
			}
		}
	}
}
