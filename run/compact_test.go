package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// sizeOfRequest is about how many tokens a request has.
func sizeOfRequest(req *synapse.Request) int {
	n := len(req.System)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Args)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	return n / 4
}

// narrow is a world whose model has a window of so many tokens. Its main agent
// works through steps, each of which has a result of 4,000 bytes and a remark of
// so many, and counts them by what it finds in its conversation.
func narrow(t *testing.T, window, steps, remark int, fails func(*synapse.Request) error) *mortal {
	w := newMortal(t, nil)
	m := script.Play(func(_ int, req *synapse.Request) script.Turn {
		size := sizeOfRequest(req)
		turn := script.Turn{Check: whole, Usage: synapse.Usage{Requests: 1, InputTokens: int64(size), OutputTokens: 20}}
		if size > window {
			turn.Err = &synapse.ProviderError{Kind: synapse.ErrorContext, Message: "too long"}
			return turn
		}
		last := req.Messages[len(req.Messages)-1]
		done := 0
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				text := p.Text
				if p.Call != nil {
					text = p.Call.Args
				}
				var n int
				if i := strings.LastIndex(text, "step "); i >= 0 {
					if _, err := fmt.Sscanf(text[i:], "step %d", &n); err == nil {
						done = max(done, n)
					}
				}
			}
		}
		if strings.Contains(last.Text(), "outgrow your context window") {
			if fails != nil {
				if turn.Err = fails(req); turn.Err != nil {
					return turn
				}
			}
			turn.Text = fmt.Sprintf("I have come to step %d", done)
			return turn
		}
		if done >= steps {
			turn.Text = fmt.Sprintf("all %d steps", done)
			return turn
		}
		turn.Text = strings.Repeat("remark ", remark/7)
		turn.Calls = []synapse.ToolCall{read(fmt.Sprintf("step %d", done+1))}
		return turn
	})
	w.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m, nil }
	w.local.Size = func(synapse.ModelRef) synapse.ModelSize { return synapse.ModelSize{Window: int64(window)} }
	w.tools[0].Run = func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		return synapse.TextResult("a result\n" + strings.Repeat("x", 4000)), nil
	}
	w.graph.Specs[0].Preload = []synapse.Message{synapse.UserText("a skill"), {Role: synapse.RoleAssistant, Parts: []synapse.Part{{Kind: synapse.PartText, Text: "noted"}}}}
	return w
}

// compactions returns the kinds of the compactions in a journal.
func (w *mortal) compactions() (folds, summaries int) {
	for _, e := range w.journal {
		if b, ok := e.Body.(*synapse.Compacted); ok {
			if b.Summary != "" {
				summaries++
			} else {
				folds++
			}
			if b.After >= b.Before {
				w.t.Errorf("a compaction from %d to %d tokens", b.Before, b.After)
			}
		}
	}
	return folds, summaries
}

// TestCompact: a conversation that would outgrow the window is folded, then
// summed up, and the work comes to its end.
func TestCompact(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		window, steps, remark int
		fails                 func(*synapse.Request) error
		summaries             bool
	}{
		{name: "old results are folded", window: 20_000, steps: 40},
		{name: "long talk is summed up", window: 20_000, steps: 60, remark: 3000, summaries: true},
		{name: "no summary can be had", window: 20_000, steps: 60, remark: 3000, summaries: true,
			fails: func(*synapse.Request) error { return &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: "no"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := narrow(t, tt.window, tt.steps, tt.remark, tt.fails)
				if !w.live(t.Context(), 1<<30) {
					t.Fatal("it does not end")
				}
				for _, wrong := range w.check() {
					t.Error(wrong)
				}
				folds, summaries := w.compactions()
				if folds == 0 || tt.summaries != (summaries > 0) {
					t.Errorf("%d folds and %d summaries", folds, summaries)
				}
				if tt.fails == nil && w.answer() != fmt.Sprintf("all %d steps", tt.steps) {
					t.Errorf("answer %q", w.answer())
				}
			})
		})
	}
}

// TestCompactResumed: a conversation that was made smaller goes on as it was when
// the process dies, at any event.
func TestCompactResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := narrow(t, 20_000, 30, 3000, nil)
		w.live(t.Context(), 1<<30)
		events := len(w.journal)
		for cut := 5; cut < events; cut += 11 {
			w := narrow(t, 20_000, 30, 3000, nil)
			for life := cut; !w.live(t.Context(), life); life = 30 {
			}
			for _, wrong := range w.check() {
				t.Errorf("cut after %d: %s", cut, wrong)
			}
			if w.answer() != "all 30 steps" {
				t.Errorf("cut after %d: answer %q", cut, w.answer())
			}
			if t.Failed() {
				return
			}
		}
	})
}

// TestCompactKeeps: the task, the preloaded skills and what is known of sub-agents
// outlive a summary.
func TestCompactKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := narrow(t, 20_000, 60, 3000, nil)
		w.live(t.Context(), 1<<30)
		st, err := run.Fold(w.history(t.Context(), "trace-1"), "trace-1")
		if err != nil {
			t.Fatal(err)
		}
		if st.Messages[0].Text() != "a skill" || st.Messages[1].Text() != "noted" || st.Messages[2].Text() != "go" ||
			!strings.Contains(st.Messages[3].Text(), "I have come to step") {
			t.Errorf("the conversation begins with %q, %q, %q, %q", st.Messages[0].Text(), st.Messages[1].Text(), st.Messages[2].Text(), st.Messages[3].Text())
		}
	})
}

// TestCompactRefused: a model of which nothing is known says itself that its
// window is full, and the turn is tried again with less.
func TestCompactRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := narrow(t, 20_000, 40, 2000, nil)
		w.local.Size = nil
		if !w.live(t.Context(), 1<<30) {
			t.Fatal("it does not end")
		}
		for _, wrong := range w.check() {
			t.Error(wrong)
		}
		if w.answer() != "all 40 steps" {
			t.Errorf("answer %q", w.answer())
		}
	})
}

// TestLargeResultIsKept: a result that would fill much of the window goes to disk,
// with its beginning and end in the message.
func TestLargeResultIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
			if turnOf(req) == 0 {
				return script.Turn{Calls: []synapse.ToolCall{script.Call("write", map[string]any{"text": "x"})}}
			}
			return script.Turn{Text: script.Results(req)}
		}))
		reads := echoTool("read_file")
		w.tools = append(w.tools, reads)
		w.graph.Specs[0].Policy.Allow = append(w.graph.Specs[0].Policy.Allow, "read_file")
		whole := "begin\n" + strings.Repeat("middle\n", 20_000) + "end"
		w.tools[1].Run = func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
			return synapse.TextResult(whole), nil
		}
		w.local.Size = func(synapse.ModelRef) synapse.ModelSize { return synapse.ModelSize{Window: 50_000} }
		kept := ""
		w.local.Keep = func(_ context.Context, name, text string) (string, error) {
			kept = text
			return "/kept/" + name, nil
		}
		w.live(t.Context(), 1<<30)
		got := w.answer()
		if kept != whole || !strings.Contains(got, "/kept/trace-1-t1-tool-1.txt") || !strings.Contains(got, "begin") || !strings.HasSuffix(strings.TrimSpace(got), "end") || len(got) > 30_000 {
			t.Errorf("kept %d of %d bytes, the message has %d: %.200s", len(kept), len(whole), len(got), got)
		}
	})
}
