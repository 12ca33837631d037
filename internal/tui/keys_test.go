package tui_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/tui"
)

// reply is a request that answers after a second.
func reply(ctx context.Context, s *stage) {
	s.begin("m-"+s.trace, "", "main", "", s.prompt)
	select {
	case <-time.After(time.Second):
		s.turn("m-"+s.trace, "answer to "+s.prompt)
		s.end("m-"+s.trace, synapse.StatusCompleted, "")
	case <-ctx.Done():
		s.end("m-"+s.trace, synapse.StatusCancelled, "")
	}
}

func TestMessagesWait(t *testing.T) {
	opt, s := whole(&world{}, reply)
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("one")
		d.press("enter")
		d.write("two")
		d.press("enter")
		d.write("three")
		d.press("enter")
		d.sees("⏎ two", "⏎ three")
		d.press("up") // takes the last one back
		d.misses("⏎ three")
		d.sees("❯ three")
		d.press("enter")
		d.pass(5 * time.Second)
		d.sees("answer to one", "answer to two", "answer to three")
		if want := []string{"one", "two", "three"}; !slices.Equal(s.sent, want) {
			t.Errorf("sent %q, want %q", s.sent, want)
		}
	})
}

// TestInterrupt wants Esc to stop the request and not what is being written, and
// what waits to come back instead of being sent.
func TestInterrupt(t *testing.T) {
	opt, s := whole(&world{}, reply)
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("one")
		d.press("enter")
		d.pass(100 * time.Millisecond)
		d.write("later")
		d.press("enter")
		d.write("draft")
		d.press("esc")
		d.pass(200 * time.Millisecond)
		d.sees("■ cancelled", "later", "draft")
		d.misses("⏎", "Esc interrupts")
		if len(s.sent) != 1 {
			t.Errorf("sent %q after an interruption", s.sent)
		}
		d.press("esc") // nothing goes on: now it clears
		d.misses("draft")
		d.press("up") // and what was cleared is not lost
		d.sees("draft")
	})
}

func TestLeaving(t *testing.T) {
	opt, _ := whole(&world{}, reply)
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("one")
		d.press("enter", "ctrl+c")
		d.pass(100 * time.Millisecond)
		d.sees("cancelled", "Ctrl+C once more leaves")
		d.pass(30 * time.Second) // too late to count
		d.press("ctrl+c")
		if d.quit {
			t.Fatal("one Ctrl+C left")
		}
		d.press("x", "ctrl+c") // another key between takes it back
		if d.quit {
			t.Fatal("a Ctrl+C that something came after counted")
		}
		d.press("ctrl+c")
		if !d.quit {
			t.Error("two of them did not leave")
		}
	})
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("x")
		d.press("ctrl+d") // takes out a character where there is one
		if d.press("ctrl+a", "ctrl+d"); d.quit {
			t.Error("Ctrl+D left a text behind")
		}
		if d.press("ctrl+d"); !d.quit {
			t.Error("Ctrl+D did not leave")
		}
	})
}

func TestEditing(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(d *driver)
		want string
	}{
		{"words", func(d *driver) { d.write("one two three"); d.press("ctrl+w", "ctrl+w"); d.write("2") }, "one 2"},
		{"cut and paste back", func(d *driver) { d.write("one two"); d.press("alt+left", "ctrl+k", "home", "ctrl+y") }, "twoone "},
		{"undo", func(d *driver) { d.write("one two"); d.press("ctrl+u", "ctrl+_") }, "one two"},
		{"wide", func(d *driver) { d.write("界面研究"); d.press("left", "left", "backspace") }, "界研究"},
		{"emoji", func(d *driver) { d.send(tea.PasteMsg{Content: "a👩‍👩‍👧b"}); d.press("left", "backspace") }, "ab"},
		{"accent", func(d *driver) { d.write("e"); d.write("\u0301x"); d.press("backspace", "backspace"); d.write("z") }, "z"},
		{"lines", func(d *driver) {
			d.write("one")
			d.press("shift+enter")
			d.write("two")
			d.press("up", "end")
			d.write("!")
		}, "one!\ntwo"},
		{"backslash", func(d *driver) { d.write(`one\`); d.press("enter"); d.write("two") }, "one\ntwo"},
		{"controls", func(d *driver) { d.send(tea.PasteMsg{Content: "a\x1b[31mb\x07\r\nc\td"}) }, "a[31mb\nc   d"},
		{"long paste", func(d *driver) { d.send(tea.PasteMsg{Content: strings.Repeat("line\n", 40) + "end"}); d.write(" go") }, strings.Repeat("line\n", 40) + "end go"},
		{"long paste taken out", func(d *driver) {
			d.write("x")
			d.send(tea.PasteMsg{Content: strings.Repeat("line\n", 40)})
			d.press("backspace")
		}, "x"},
		{"history", func(d *driver) { d.press("up", "up") }, "the first"},
		{"history and back", func(d *driver) { d.write("new"); d.press("up", "down") }, "new"},
		{"agent", func(d *driver) { d.write("ask @rev"); d.press("tab"); d.write("now") }, "ask @reviewer now"},
		{"file", func(d *driver) { d.write("see @mod"); d.press("enter") }, "see @internal/tui/model.go"},
		{"wide file", func(d *driver) { d.write("@界"); d.press("tab") }, "@docs/界面.md"},
		{"path", func(d *driver) { d.write("/etc/hosts is odd") }, "/etc/hosts is odd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{}
			opt, s := whole(w, reply)
			drive(t, opt, 80, 24, func(d *driver) {
				tt.do(d)
				checkFrame(t, d.m.View().Content, 80, 24)
				d.press("enter")
				d.pass(3 * time.Second)
				if want := strings.TrimSpace(tt.want); len(s.sent) != 1 || s.sent[0] != want {
					t.Errorf("sent %q, want %q", s.sent, want)
				}
				if len(w.history) != 1 || w.history[0] != strings.TrimSpace(tt.want) {
					t.Errorf("remembered %q", w.history)
				}
			})
		})
	}
}

func TestCommands(t *testing.T) {
	opt, s := whole(&world{}, reply)
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("/cfg") // the letters of a word, in order
		d.press("enter")
		d.sees("Settings")
		d.press("esc")
		d.write("/workflow")
		d.press("enter")
		d.sees("there is no /workflow")
		d.write("/theme light")
		d.press("enter")
		d.write("/theme pink")
		d.press("enter")
		d.sees("there is no theme pink")
		if len(s.sent) != 0 {
			t.Errorf("commands were sent: %q", s.sent)
		}
	})
	// What has nothing behind it is not there.
	drive(t, options{Options: tui.Options{Conversation: tui.Conversation{Session: s}}}, 80, 24, func(d *driver) {
		d.write("/")
		d.sees("/help", "/context", "/theme")
		d.misses("/subagent", "/trace", "/config", "/model")
		d.write("trace")
		d.press("enter")
		d.sees("there is no /trace")
	})
}

func TestSwitchAgents(t *testing.T) {
	w := &world{}
	opt, _ := whole(w, reply)
	drive(t, opt, 100, 30, func(d *driver) {
		d.write("/subagents")
		d.press("enter", "down", "down", "enter")
		d.sees("4 on, 1 off", "[ ] general-purpose")
		if !w.off["general-purpose"] {
			t.Error("it is not off")
		}
		d.press("space")
		d.sees("5 on, 0 off")
		d.press("home", "enter")
		d.sees("off by its own definition", "5 on")
		d.press("down", "down", "down")
		d.sees("shadows /home/u/.synapse/agents/reviewer.md", "unknown field", "no description")
		d.press("/")
		d.write("研")
		d.sees("[✓] 研究者")
		d.misses("[✓] explore")
		d.press("enter")
		if !w.off["研究者"] {
			t.Error("the one that was found is not off")
		}
		d.press("esc", "e")
		d.sees("may do")
		d.press("esc", "esc")
		d.pass(time.Minute)
		d.write("@") // what is off is not offered
		d.sees("reviewer")
		d.misses("研究者")
	})
}

func TestModels(t *testing.T) {
	w := &world{}
	opt, _ := whole(w, reply)
	drive(t, opt, 100, 30, func(d *driver) {
		d.write("/subagent reviewer")
		d.press("enter")
		d.sees("❯ reviewer")
		d.press("enter")
		d.write("my:model")
		d.press("enter")
		d.sees("my:model *", "1 not saved")
		d.press("r") // takes the edit back
		d.misses("not saved")
		d.press("r") // and then what is set
		d.sees("inherit *")
		d.press("right", "enter", "down", "enter", "l", "s")
		d.misses("not saved")
		d.sees("saved m.reviewer to project settings", "saved e.reviewer")
		want := []tui.ModelEdit{{Key: "m.reviewer", Value: "inherit"}, {Key: "e.reviewer", Value: "off"}}
		if !slices.Equal(w.edits, want) || w.layer != "project" {
			t.Errorf("saved %v to %s, want %v", w.edits, w.layer, want)
		}
		d.press("home", "left", "enter", "down", "enter", "s")
		d.sees("it is hidden by environment AGENT_MODEL")
		w.failSave = true
		d.press("enter", "down", "enter", "s")
		d.sees("the file has changed", "1 not saved")
		d.press("esc")
		d.sees("1 changes dropped")
		d.press("esc")
		d.misses("Models and")
	})
}

func TestDraft(t *testing.T) {
	w := &world{}
	opt, _ := whole(w, reply)
	drive(t, opt, 120, 30, func(d *driver) {
		d.write("/agents new")
		d.press("enter", "ctrl+s")
		d.sees("it needs a name")
		d.write("checker")
		d.press("tab")
		d.write("Use it.")
		d.press("enter")
		d.write("Often.")
		d.press("tab", "ctrl+u")
		d.write("read_file")
		d.press("tab", "tab")
		d.pass(time.Second)
		d.write("huge")
		d.pass(time.Second)
		d.sees("want one of off", "✓ read_file")
		d.press("ctrl+u")
		d.write("low")
		d.press("tab", "tab", "right", "ctrl+s")
		d.misses("A new agent")
		d.sees("written: /ws/.synapse/agents/checker.md")
		want := tui.Draft{Name: "checker", Description: "Use it.\nOften.", Tools: "read_file", Effort: "low", User: true}
		if len(w.drafts) != 1 || w.drafts[0] != want {
			t.Errorf("wrote %+v, want %+v", w.drafts, want)
		}
	})
}

// answers are those that a question may get.
type answers struct {
	answer synapse.Answer
	err    error
}

type memoryGrants struct{ list []synapse.Ask }

func (g *memoryGrants) Granted(q synapse.Ask) bool {
	return slices.ContainsFunc(g.list, func(o synapse.Ask) bool { return o.Tool == q.Tool && o.Subject == q.Subject })
}

func (g *memoryGrants) Grant(q synapse.Ask) error {
	if q.Subject == "fails" {
		return errors.New("approvals.json is damaged")
	}
	g.list = append(g.list, q)
	return nil
}

func TestQuestions(t *testing.T) {
	put := func(d *driver, subject string) chan answers {
		c := make(chan answers, 1)
		args, _ := json.Marshal(map[string]string{"command": subject})
		go func() {
			a, err := d.ask.Ask(d.ctx, synapse.Ask{ID: subject, Agent: "tester", Tool: "execute", Subject: subject, Args: args, Reason: "the rule asks"})
			c <- answers{a, err}
		}()
		d.settle()
		return c
	}
	got := func(t *testing.T, c chan answers, want synapse.Answer) {
		t.Helper()
		select {
		case a := <-c:
			if a.err != nil || a.answer != want {
				t.Errorf("answered %+v, want %+v", a, want)
			}
		default:
			t.Errorf("not answered; want %+v", want)
		}
	}
	grants := &memoryGrants{}
	opt, s := whole(&world{}, reply)
	opt.grants = grants
	drive(t, opt, 100, 30, func(d *driver) {
		// What is typed while it comes up is not the answer, and is not lost.
		d.write("I was typing y")
		c := put(d, "make")
		d.write("yy")
		d.pass(200 * time.Millisecond)
		d.write("n")
		d.pass(300 * time.Millisecond)
		d.sees("tester wants to run execute", "waits until you stop typing", "make")
		d.pass(time.Second)
		d.misses("waits until")
		d.press("y")
		got(t, c, synapse.Answer{Allow: true})
		d.misses("wants to run")
		d.sees("I was typing yyyn")

		c = put(d, "make")
		d.pass(time.Second)
		d.press("r")
		d.write("use go test, yes")
		d.press("enter")
		got(t, c, synapse.Answer{Reason: "use go test, yes"})

		c = put(d, "make")
		d.pass(time.Second)
		d.press("down", "down", "down", "enter") // no
		got(t, c, synapse.Answer{})

		// For the session: the next one is not asked, and another that is open is
		// answered with it.
		c, c2, c3 := put(d, "ls"), put(d, "ls"), put(d, "pwd")
		d.sees("and 2 more to answer")
		d.pass(time.Second)
		d.press("s")
		got(t, c, synapse.Answer{Allow: true})
		got(t, c2, synapse.Answer{Allow: true})
		d.sees("pwd")
		d.pass(time.Second)
		d.press("p")
		got(t, c3, synapse.Answer{Allow: true})
		got(t, put(d, "ls"), synapse.Answer{Allow: true})
		got(t, put(d, "pwd"), synapse.Answer{Allow: true})
		if len(grants.list) != 1 || grants.list[0].Subject != "pwd" {
			t.Errorf("granted for good: %v", grants.list)
		}
		// A grant that can't be kept is said, and the call allowed.
		c = put(d, "fails")
		d.pass(time.Second)
		d.press("p")
		got(t, c, synapse.Answer{Allow: true})
		d.sees("approvals.json is damaged")
		d.press("ctrl+u")

		// A question whose request is interrupted goes.
		ctx, cancel := context.WithCancel(d.ctx)
		gone := make(chan error, 1)
		go func() {
			_, err := d.ask.Ask(ctx, synapse.Ask{ID: "x", Agent: "a", Tool: "t", Args: json.RawMessage(`{}`)})
			gone <- err
		}()
		d.settle()
		d.sees("a wants to run t")
		cancel()
		d.settle()
		d.misses("wants to run")
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want it cancelled", err)
		}
	})
	if len(s.sent) != 0 {
		t.Errorf("sent %q", s.sent)
	}
}

func TestSubAgents(t *testing.T) {
	w := &world{}
	opt, _ := whole(w, delegation)
	opt.Controls = tui.Controls{
		Stop:  func(_ context.Context, run string) error { w.stopped = append(w.stopped, run); return nil },
		Steer: func(_ context.Context, run, text string) error { w.steered = run + ": " + text; return nil },
	}
	drive(t, opt, 110, 40, func(d *driver) {
		d.write("delegate")
		d.press("enter")
		d.pass(5 * time.Second)
		d.sees("waiting for 4 sub-agents", "1 in the background", "asks for permission", "analyst · part 4 · waiting for 1 sub-agent")
		d.press("ctrl+t", "down", "down", "enter")
		d.sees("main › 研究者 · part 2", "Do part 2 and report.", "● Reading.", "s stop", "m message")
		d.misses("p pause", "b to background") // nobody can
		d.press("s")
		d.press("m")
		d.write("look at 界 too")
		d.press("enter")
		if len(w.stopped) != 1 || w.stopped[0] != "r2" || w.steered != "r2: look at 界 too" {
			t.Errorf("stopped %v, told %q", w.stopped, w.steered)
		}
		d.press("esc", "up", "up", "enter")
		d.sees("✓ done", "● Found it.")
		d.misses("s stop")
		d.press("esc", "esc", "esc") // interrupts
		d.pass(time.Second)
		d.sees("8 sub-agents", "6 cancelled", "1 failed")
		d.misses("waiting for")
		// What it did can be looked at from the conversation.
		d.press("tab", "home")
		for range 5 {
			d.press("down")
		}
		d.press("enter")
		d.sees("main › explore")
	})
}

// TestRetry wants what a broken reply had streamed to go.
func TestRetry(t *testing.T) {
	opt, _ := whole(&world{}, func(_ context.Context, s *stage) {
		s.begin("m", "", "main", "", s.prompt)
		s.emit("m", &synapse.ModelRequested{Turn: 1})
		s.emit("m", &synapse.Text{Text: "half an ans"})
		s.emit("m", &synapse.Retry{Turn: 1, Attempt: 1, Error: "the stream broke", After: synapse.Duration(time.Second)})
		time.Sleep(time.Second)
		s.turn("m", "the whole answer")
		s.end("m", synapse.StatusPartial, "2 turns reached")
	})
	drive(t, opt, 80, 24, func(d *driver) {
		d.write("x")
		d.press("enter")
		d.pass(5 * time.Second)
		d.sees("attempt 1 failed: the stream broke", "● the whole answer", "◐ partial: 2 turns reached")
		d.misses("half an")
	})
}

// TestColours wants NO_COLOR and terminals without colours to get none, and a
// light background other ones than a dark one.
func TestColours(t *testing.T) {
	frame := func(no bool, msgs ...tea.Msg) (out string) {
		opt, _ := whole(&world{}, conversation)
		opt.NoColor = no
		drive(t, opt, 100, 60, func(d *driver) {
			for _, m := range msgs {
				d.send(m)
			}
			d.write("x")
			d.press("enter")
			d.pass(2 * time.Second)
			out = d.m.View().Content
		})
		return out
	}
	coloured := func(s string) bool {
		return strings.Contains(s, "\x1b[38;") || strings.Contains(s, "\x1b[3") && strings.Contains(s, ";3")
	}
	if s := frame(true); coloured(s) {
		t.Error("there are colours in spite of NO_COLOR")
	}
	dark, light := frame(false), frame(false, tea.BackgroundColorMsg{Color: white{}})
	if !coloured(dark) || dark == light {
		t.Error("a light background looks like a dark one")
	}
}

type white struct{}

func (white) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }

type trust struct{ decided []bool }

func (w *trust) Held(context.Context) ([]string, error) {
	return []string{"settings.json:2: providers does not count"}, nil
}

func (w *trust) Decide(_ context.Context, yes bool) error {
	w.decided = append(w.decided, yes)
	return nil
}

func TestTrust(t *testing.T) {
	w := &trust{}
	opt, s := whole(&world{}, reply)
	opt.Trust = w
	drive(t, opt, 60, 16, func(d *driver) {
		d.settle()
		d.sees("Is this workspace yours?", "providers does not count")
		checkFrame(t, d.m.View().Content, 60, 16)
		d.press("enter", "space") // neither is an answer
		if len(w.decided) != 0 {
			t.Fatal("a key that was no answer decided")
		}
		d.press("n")
		d.sees("Say what to do")
	})
	if !slices.Equal(w.decided, []bool{false}) || len(s.sent) != 0 {
		t.Errorf("decided %v, sent %q", w.decided, s.sent)
	}
}

// TestKept goes on with conversations of before.
func TestKept(t *testing.T) {
	opt, s := whole(&world{}, reply)
	drive(t, opt, 100, 60, func(d *driver) {
		d.write("first")
		d.press("enter")
		d.pass(100 * time.Millisecond)
		d.write("/resume") // not in the middle of something
		d.press("enter")
		d.sees("a request goes on")
		d.pass(3 * time.Second)
		d.write("/resume nope")
		d.press("enter")
		d.sees(`no conversation "nope"`, "answer to first")
		d.write("/sessions")
		d.press("enter")
		d.sees("Conversations in this workspace: 2", "policy: please 编辑 it")
		d.press("enter")
		d.pass(5 * time.Second)
		// What nobody has seen coming looks as it did when it came.
		d.sees("❯ said before", "● I'll make one change", "policy/policy.go +2 −1", "[image: diagram.png, 4.0 KiB]", "● Done", "goes on")
		d.misses("answer to first")
		d.write("and now")
		d.press("enter")
		d.pass(3 * time.Second)
		d.sees("answer to and now")
		d.write("/sessions")
		d.press("enter", "down", "enter")
		d.pass(3 * time.Second)
		d.sees("❯ cut off here", "which was cut off", "● taken up again")
		d.misses("Done", "Esc interrupts")
	})
	if len(s.sent) != 1 {
		t.Errorf("the first conversation was sent %q", s.sent)
	}
}

// TestSignals wants what a user tells a sub-agent to be seen where it was told.
func TestSignals(t *testing.T) {
	opt, _ := whole(&world{}, func(ctx context.Context, s *stage) {
		s.begin("m", "", "main", "", s.prompt)
		s.emit("m", &synapse.ChildStarted{Task: "c", Agent: "explore", Description: "look", CallID: "x"})
		s.begin("c", "m", "explore", "look", "Look.")
		s.emit("c", &synapse.Signalled{Signal: synapse.Signal{Kind: synapse.SignalPause}})
		time.Sleep(2 * time.Second)
		s.emit("c", &synapse.Signalled{Signal: synapse.Signal{Kind: synapse.SignalSend, Text: "in docs, too"}})
		time.Sleep(2 * time.Second)
		s.emit("c", &synapse.Compacted{Before: 150_000, After: 20_000})
		s.end("c", synapse.StatusCompleted, "")
		s.end("m", synapse.StatusCompleted, "")
	})
	nothing := func(context.Context, string) error { return nil }
	opt.Controls = tui.Controls{Pause: nothing, Resume: nothing}
	drive(t, opt, 100, 30, func(d *driver) {
		d.write("x")
		d.press("enter")
		d.pass(time.Second)
		d.sees("‖ explore · look · paused")
		d.press("ctrl+t", "enter")
		d.sees("p go on")
		d.pass(2 * time.Second)
		d.sees("p pause", "❯ in docs, too")
		d.pass(2 * time.Second)
		d.sees("from about 150k tokens to 20k")
		d.misses("p pause")
	})
}
