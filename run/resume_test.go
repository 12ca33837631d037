package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
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
	"github.com/synapse-agents/synapse/trace"
)

// turnOf is the place of a request in its conversation: the same when it is made
// again after a crash.
func turnOf(req *synapse.Request) int {
	n := 0
	for _, m := range req.Messages {
		if m.Role == synapse.RoleAssistant {
			n++
		}
	}
	return n
}

// A mortal is a world whose process dies: its journal takes so many events, and
// what is not in it has not happened, but for what tools have done.
type mortal struct {
	*bench
	mu      sync.Mutex
	life    int            // events that the journal still takes
	effects map[string]int // of tools with an effect, by key
}

func newMortal(t *testing.T, m synapse.Model) *mortal {
	w := &mortal{bench: newBench(t, m), effects: map[string]int{}}
	w.local.Append = func(ctx context.Context, events []*synapse.Event) error {
		w.mu.Lock()
		n := min(len(events), w.life)
		w.life -= n
		w.mu.Unlock()
		if err := w.append(ctx, events[:n]); err != nil || n == len(events) {
			return err
		}
		return errors.New("the process has died")
	}
	w.tools[1].Run = w.effect("write")
	keyed := echoTool("keyed")
	keyed.Keyed = true
	keyed.Run = w.effect("keyed")
	w.tools = append(w.tools, keyed)
	return w
}

// effect is a tool that leaves a trace in the world.
func (w *mortal) effect(name string) synapse.ToolFunc {
	return func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		time.Sleep(time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if name != "keyed" || w.effects[in.Key] == 0 {
			w.effects[in.Key]++
		}
		return synapse.TextResult(name + " done"), nil
	}
}

// live runs the request, or goes on with it, for so many events. It reports
// whether that took it to its end.
func (w *mortal) live(ctx context.Context, events int) bool {
	w.t.Helper()
	w.mu.Lock()
	w.life = events
	w.mu.Unlock()
	in := run.Input{Prompt: "go"}
	if len(w.journal) > 0 {
		checkpoint, err := run.Restore(trace.Of(w.journal...), func(id string) iter.Seq2[*synapse.Event, error] {
			return w.history(ctx, id)
		}, nil)
		if err != nil {
			w.t.Fatalf("restore: %v", err)
		}
		in = run.Input{From: checkpoint}
	}
	// A process that dies takes its runtime along.
	local := run.Local{
		Model: w.local.Model, Append: w.local.Append, History: w.local.History, NewID: w.local.NewID, Ask: w.local.Ask,
		Retry: w.local.Retry, MaxParallel: w.local.MaxParallel, Size: w.local.Size, Keep: w.local.Keep,
	}
	var failed error
	for _, err := range local.Run(ctx, w.program(), in) {
		if err != nil {
			failed = err
		}
	}
	return failed == nil
}

// check says what is wrong with the history, once it has come to its end.
func (w *mortal) check() []string {
	var wrong []string
	for _, p := range trace.Verify(trace.Of(w.journal...)) {
		wrong = append(wrong, p.String())
	}
	ends := map[string]int{}
	for _, e := range w.journal {
		if e.Kind == synapse.KindRunFinished && e.Run == "trace-1" {
			ends[e.Run]++
		}
	}
	if ends["trace-1"] != 1 {
		wrong = append(wrong, fmt.Sprintf("the main run has %d ends", ends["trace-1"]))
	}
	for key, n := range w.effects {
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("%s was done %d times", key, n))
		}
	}
	return wrong
}

func (w *mortal) answer() string {
	for _, e := range slices.Backward(w.journal) {
		if b, ok := e.Body.(*synapse.Conclusion); ok {
			return b.Content
		}
	}
	return ""
}

// family is a world of three generations: the main agent has two foreground
// children and one in the background, they have children of their own, and
// everybody writes.
func family(t *testing.T, tool string) *mortal {
	write := func(text string) synapse.ToolCall { return script.Call(tool, map[string]any{"text": text}) }
	turns := map[string][]script.Turn{
		"main": {
			{Calls: []synapse.ToolCall{background("other", "b"), read("x"), task("middle", "1"), task("middle", "2")}},
			{Calls: []synapse.ToolCall{write("m")}},
			{Text: "the answer"},
		},
		"middle": {
			{Text: "first", Calls: []synapse.ToolCall{write("a")}},
			{Calls: []synapse.ToolCall{task("leaf", "l1"), task("leaf", "l2"), read("y")}},
			{Text: "middle's report"},
		},
		"leaf":  {{Calls: []synapse.ToolCall{write("l"), read("z")}}, {Delay: time.Second, Text: "leaf's report"}},
		"other": {{Calls: []synapse.ToolCall{write("o")}}, {Delay: time.Minute, Text: "other's report"}},
	}
	w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
		for name, list := range turns {
			if !strings.Contains(req.System, name) {
				continue
			}
			turn := list[min(turnOf(req), len(list)-1)]
			turn.Check = whole
			return turn
		}
		return script.Turn{Err: errors.New("whose request is it?")}
	}))
	w.graph.Specs = nil
	w.spec("main", "read", tool, "task", "task_output", "task_stop")
	w.child("middle", "read", tool, "task")
	w.child("other", tool)
	w.edge("middle", "leaf", "leaf")
	w.spec("leaf", "read", tool)
	return w
}

// TestResumeAtEveryEvent: the process dies after each event in turn, and again
// after some events more. Every run ends once, nothing is done twice, and the
// answer is the same.
func TestResumeAtEveryEvent(t *testing.T) {
	for _, tool := range []string{"keyed", "write"} {
		t.Run(tool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := family(t, tool)
				if !whole.live(t.Context(), 1<<30) {
					t.Fatal("the world doesn't come to an end by itself")
				}
				events := len(whole.journal)
				if events < 60 {
					t.Fatalf("only %d events", events)
				}
				step := 1
				if tool == "write" {
					step = 4 // the same but for calls in flight
				}
				for cut := 1; cut < events; cut += step {
					w := family(t, tool)
					lives := 1
					for life := cut; !w.live(t.Context(), life); life = 10 + cut%17 + 4*lives { // each start costs some events
						if lives++; lives > 100 {
							t.Fatalf("cut after %d: it never ends", cut)
						}
					}
					for _, wrong := range w.check() {
						t.Errorf("cut after %d of %d: %s", cut, events, wrong)
					}
					if got := w.answer(); got != "the answer" {
						t.Errorf("cut after %d: the answer is %q", cut, got)
					}
					// Of a call in flight that has no key nobody knows: it is left alone.
					if got, want := len(w.effects), len(whole.effects); got > want || got < want && tool == "keyed" {
						t.Errorf("cut after %d: %d writes, want %d", cut, got, want)
					}
					if t.Failed() {
						return
					}
				}
			})
		})
	}
}

// TestResumeChaos: worlds of chance die at moments of chance. Whatever they do,
// the history stays whole and nothing with an effect is done twice.
func TestResumeChaos(t *testing.T) {
	worlds := 60
	if testing.Short() {
		worlds = 10
	}
	for seed := range worlds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 7))
			data := make([]byte, 200)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			c := newChaos(t, data)
			w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn { return c.play(turnOf(req), req) }))
			w.graph, w.local.Ask, w.local.Retry, w.local.MaxParallel = c.graph, c.local.Ask, c.local.Retry, c.local.MaxParallel
			for _, tool := range c.tools {
				if tool.Name == "flaky" {
					inner := tool.Run
					tool.Run = func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
						if _, err := w.effect("flaky")(ctx, in); err != nil {
							return nil, err
						}
						return inner(ctx, in)
					}
					w.tools = append(w.tools, tool)
				}
			}
			c.written = map[string]bool{} // chaos asks its own journal, which this world does not write
			for lives := 0; !w.live(t.Context(), 1+rng.IntN(40)); lives++ {
				if lives > 200 {
					t.Fatalf("seed %d: it never ends", seed)
				}
			}
			for _, wrong := range w.check() {
				t.Errorf("seed %d: %s", seed, wrong)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestResumeAnswered: an answer that the user has given before the process died
// is not asked for again; a question without one is.
func TestResumeAnswered(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after synapse.EventKind
		asked int
	}{
		{"asked", synapse.KindApprovalAsked, 2},
		{"answered", synapse.KindApprovalAnswered, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
					if turnOf(req) == 0 {
						return script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}
					}
					return script.Turn{Text: script.Results(req)}
				}))
				w.graph.Specs[0].Policy.Rules = []policy.Source{{Origin: "test", Rules: []policy.Rule{{Tool: "write", Pattern: "*", Action: policy.Ask}}}}
				asked := 0
				w.local.Ask = func(context.Context, synapse.Ask) (synapse.Answer, error) {
					asked++
					return synapse.Answer{Allow: true}, nil
				}
				w.live(t.Context(), 1<<30)
				w.cutAfter(func(e *synapse.Event) bool { return e.Kind == tt.after })
				clear(w.effects)
				asked = 1
				if !w.live(t.Context(), 1<<30) {
					t.Fatal("it does not end")
				}
				if asked != tt.asked {
					t.Errorf("asked %d times, want %d", asked, tt.asked)
				}
				if got := w.answer(); !strings.Contains(got, "write done") {
					t.Errorf("answer %q", got)
				}
				for _, wrong := range w.check() {
					t.Error(wrong)
				}
			})
		})
	}
}

// TestResumeLimits: what was used before the process died still counts.
func TestResumeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
			if len(req.Tools) == 0 {
				return script.Turn{Text: "out of calls"}
			}
			return script.Turn{Text: fmt.Sprint("turn ", turnOf(req)), Calls: []synapse.ToolCall{read("x")}, Delay: 10 * time.Second}
		}))
		w.graph.Specs[0].Limits = synapse.Limits{ToolCalls: 5, Time: synapse.Duration(time.Hour)}
		for lives := 0; !w.live(t.Context(), 6); lives++ {
			time.Sleep(24 * time.Hour) // nobody works: it counts for nothing
			if lives > 50 {
				t.Fatal("it never ends")
			}
		}
		calls := 0
		var out synapse.Outcome
		for _, e := range w.journal {
			switch b := e.Body.(type) {
			case *synapse.ToolFinished:
				calls++
			case *synapse.RunFinished:
				out = b.Outcome
			}
		}
		if calls != 5 || out.Status != synapse.StatusPartial || out.Limit != "tool_calls" {
			t.Errorf("%d calls, outcome %+v", calls, out)
		}
		if out.Turns != 6 || out.Usage.Requests != 6 {
			t.Errorf("turns %d, requests %d, want 6 of both", out.Turns, out.Usage.Requests)
		}
	})
}

// TestResumeEnded: there is nothing to resume of what has ended or never was.
func TestResumeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMortal(t, script.New(script.Turn{Text: "done"}))
		w.live(t.Context(), 1<<30)
		history := func(id string) iter.Seq2[*synapse.Event, error] { return w.history(t.Context(), id) }
		if _, err := run.Restore(trace.Of(w.journal...), history, nil); !errors.Is(err, run.ErrEnded) {
			t.Errorf("restore of an ended trace: %v", err)
		}
		if _, err := run.Restore(trace.Of(), history, nil); err == nil {
			t.Error("restore of nothing succeeds")
		}
		if _, err := run.Restore(trace.Of(w.journal[1:2]...), history, nil); err == nil {
			t.Error("restore of a trace without its beginning succeeds")
		}
	})
}

// TestResumeOutput: the corrections of a result that does not fit its schema are
// counted on, and the last one is the last.
func TestResumeOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
			if turnOf(req) < 3 {
				return script.Turn{Text: "no number"}
			}
			return script.Turn{Text: `{"n":1}`}
		}))
		w.graph.Specs[0].Output = json.RawMessage(number)
		for lives := 0; !w.live(t.Context(), 3); lives++ {
			if lives > 20 {
				t.Fatal("it never ends")
			}
		}
		if got := w.answer(); got != `{"n":1}` {
			t.Errorf("answer %q", got)
		}
		for _, wrong := range w.check() {
			t.Error(wrong)
		}
	})
}
