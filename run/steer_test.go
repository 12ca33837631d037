package run_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// steered is a world whose child works a second a turn, until it is told "enough".
func steered(t *testing.T) *mortal {
	w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
		turn := script.Turn{Delay: time.Second, Check: whole}
		n := turnOf(req)
		switch {
		case strings.Contains(req.System, "main") && n == 0:
			turn.Calls = []synapse.ToolCall{task("leaf", "work")}
		case strings.Contains(req.System, "main"):
			turn.Text = script.Results(req)
		case saidBy(req, "enough"):
			turn.Text = "stopped as you said"
		case n < 20:
			turn.Calls = []synapse.ToolCall{read("x")}
		default:
			turn.Text = "all twenty"
		}
		return turn
	}))
	w.child("leaf", "read")
	return w
}

// saidBy reports whether the user has said something in a conversation.
func saidBy(req *synapse.Request, text string) bool {
	for _, m := range req.Messages {
		if m.Role == synapse.RoleUser && strings.Contains(m.Text(), text) {
			return true
		}
	}
	return false
}

// follow runs the request and calls at for each event.
func (w *mortal) follow(at func(e *synapse.Event)) {
	w.t.Helper()
	w.life = 1 << 30
	for e, err := range w.local.Run(w.t.Context(), w.program(), run.Input{Prompt: "go"}) {
		if err != nil {
			w.t.Fatal(err)
		}
		at(e)
	}
	for _, wrong := range w.check() {
		w.t.Error(wrong)
	}
}

// TestSteer: what the user tells a child while it works reaches it at its next
// turn, and no other run.
func TestSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := steered(t)
		heard := 0
		w.follow(func(e *synapse.Event) {
			if b, ok := e.Body.(*synapse.ModelReplied); ok && e.Agent == "leaf" && b.Turn == 3 {
				if !w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalSend, Text: "enough"}) {
					t.Error("the run is not there")
				}
			}
			if b, ok := e.Body.(*synapse.Signalled); ok && b.Text == "enough" && e.Agent == "leaf" {
				heard++
			}
		})
		if heard != 1 || !strings.Contains(w.answer(), "stopped as you said") {
			t.Errorf("heard %d times, answer %q", heard, w.answer())
		}
		if w.local.Signal("t-nobody", synapse.Signal{Kind: synapse.SignalStop}) {
			t.Error("a run that is not there took a signal")
		}
	})
}

// TestSteerLate: what arrives while the last reply is on its way is answered too.
func TestSteerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMortal(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
			if saidBy(req, "and more") {
				return script.Turn{Text: "more"}
			}
			return script.Turn{Text: "first"}
		}))
		w.follow(func(e *synapse.Event) {
			if e.Kind == synapse.KindModelRequested {
				w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalSend, Text: "and more"})
			}
			if b, ok := e.Body.(*synapse.ModelRequested); ok && b.Turn > 3 {
				t.Fatal("it goes on for ever")
			}
			if b, ok := e.Body.(*synapse.ModelReplied); ok && b.Turn == 2 && b.Message.Text() != "more" {
				t.Errorf("turn 2: %q", b.Message.Text())
			}
		})
	})
}

// TestPause: a paused child begins no turn until it is told to go on; its time
// and its siblings do not wait.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := steered(t)
		var paused time.Time
		var waited time.Duration
		w.follow(func(e *synapse.Event) {
			if e.Agent != "leaf" {
				return
			}
			switch b := e.Body.(type) {
			case *synapse.ModelReplied:
				if b.Turn == 2 {
					w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalPause})
				}
			case *synapse.Signalled:
				if b.Signal.Kind == synapse.SignalPause {
					paused = e.Time
					time.AfterFunc(time.Hour, func() { w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalContinue}) })
				}
			case *synapse.ModelRequested:
				if !paused.IsZero() && waited == 0 {
					waited = e.Time.Sub(paused)
				}
			}
		})
		if waited < time.Hour {
			t.Errorf("the next turn came after %v", waited)
		}
		if !strings.Contains(w.answer(), "all twenty") {
			t.Errorf("answer %q", w.answer())
		}
	})
}

// TestStopSignal: a child that is stopped ends as cancelled, paused or not, and
// its parent is told and goes on.
func TestStopSignal(t *testing.T) {
	for _, pause := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := steered(t)
			w.follow(func(e *synapse.Event) {
				b, ok := e.Body.(*synapse.ModelReplied)
				if !ok || e.Agent != "leaf" || b.Turn != 2 {
					return
				}
				if pause {
					w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalPause})
				}
				time.AfterFunc(time.Minute/2, func() { w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalStop}) })
			})
			want := "was cancelled"
			if !pause {
				want = "all twenty" // it was done by then
			}
			if !strings.Contains(w.answer(), want) {
				t.Errorf("pause %v: answer %q", pause, w.answer())
			}
		})
	}
}

// TestSteerSurvives: a message that has reached a run is not lost when the process
// dies before the next turn, and a paused run is paused still.
func TestSteerSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := steered(t)
		w.follow(func(e *synapse.Event) {
			if b, ok := e.Body.(*synapse.ModelReplied); ok && e.Agent == "leaf" && b.Turn == 3 {
				w.local.Signal(e.Run, synapse.Signal{Kind: synapse.SignalSend, Text: "enough"})
			}
		})
		w.cutAfter(func(e *synapse.Event) bool { return e.Kind == synapse.KindSignalled })
		if !w.live(t.Context(), 1<<30) {
			t.Fatal("it does not end")
		}
		if !strings.Contains(w.answer(), "stopped as you said") {
			t.Errorf("answer %q", w.answer())
		}
		for _, wrong := range w.check() {
			t.Error(wrong)
		}
	})
}

// TestConversation: a request that goes on with a conversation knows what was
// said and which sub-agents there were, and its events hold only what is new.
func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, script.Play(func(_ int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "leaf"):
				return script.Turn{Text: "leaf's report"}
			case saidBy(req, "second"):
				if turnOf(req) == 2 {
					id := taskID.FindStringSubmatch(req.Messages[2].Parts[0].Result.Text)[1]
					return script.Turn{Calls: []synapse.ToolCall{script.Call("task_output", map[string]any{"task_id": id})}}
				}
				return script.Turn{Text: script.Results(req)}
			case turnOf(req) == 0:
				return script.Turn{Calls: []synapse.ToolCall{task("leaf", "1")}}
			}
			return script.Turn{Text: "first answer"}
		}))
		b.child("leaf", "read")
		first := b.run(t.Context(), "first")
		before, err := run.Fold(b.history(t.Context(), "trace-1"), "trace-1")
		if err != nil {
			t.Fatal(err)
		}
		b.local.NewID = func() string { return "trace-2" }
		second := b.input(t.Context(), run.Input{Prompt: "second", Before: before, After: "trace-1", Session: "s-1", Workspace: "/w"})
		if len(first.events) == 0 || !strings.Contains(second.outcome("main").Text, "leaf's report") {
			t.Errorf("the second answer is %q", second.outcome("main").Text)
		}
		for e := range b.history(t.Context(), "trace-2") {
			if s, ok := e.Body.(*synapse.RunStarted); ok {
				if len(s.Input) != 1 || s.After != "trace-1" || s.Session != "s-1" || s.Workspace != "/w" || s.Resumed {
					t.Errorf("run_started %+v", s)
				}
			}
		}
		after, err := run.FoldAfter(before, b.history(t.Context(), "trace-2"), "trace-2")
		if err != nil {
			t.Fatal(err)
		}
		if got := len(after.Messages); got != len(before.Messages)+4 || len(after.Children) != 1 {
			t.Errorf("%d messages after %d, %d children", got, len(before.Messages), len(after.Children))
		}
	})
}
