package tui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/tui"
)

// crowd is a conversation of 2,000 messages with 200 sub-agents at work and a
// reply that is streaming in.
func crowd(b testing.TB) (m *tui.Model, update func(tea.Msg), next func(n int) tea.Msg) {
	release, streamed := make(chan int), make(chan struct{})
	s := &session{plays: []func(context.Context, *stage){func(ctx context.Context, s *stage) {
		s.begin("m", "", "main", "", s.prompt)
		say := func(text string) {
			s.emit("m", &synapse.ModelRequested{Turn: 1})
			s.emit("m", &synapse.Text{Text: text})
			s.emit("m", &synapse.ModelReplied{Turn: 1, Reply: synapse.Reply{Message: synapse.AssistantText(text)}})
		}
		for i := range 2000 {
			say(fmt.Sprintf("## Message %d\n\nSome **text** with `code`, a [link](https://example.org) and 研究.\n\n- one\n- two\n\n```go\nfunc f() int { return %d }\n```", i, i))
		}
		for i := range 200 {
			id := fmt.Sprint("c", i)
			s.emit("m", &synapse.ChildStarted{Task: id, Agent: "explore", Description: fmt.Sprint("part ", i), CallID: id})
			s.begin(id, "m", "explore", fmt.Sprint("part ", i), "go")
			c := call("x", "read_file", `{"path":"a/b/c.go"}`)
			s.emit(id, &synapse.ToolStarted{Call: c, Intent: "to find out about it"})
		}
		s.emit("m", &synapse.ModelRequested{Turn: 2})
		streamed <- struct{}{}
		for n := range release {
			for i := range n {
				s.emit("m", &synapse.Text{Text: fmt.Sprintf("word%d and **more** ", i)})
				if i%40 == 39 {
					s.emit("m", &synapse.Text{Text: "\n\n"})
				}
				s.emit(fmt.Sprint("c", i%200), &synapse.Text{Text: "some more of it "})
			}
			streamed <- struct{}{}
		}
	}}}
	m = tui.New(b.Context(), tui.Options{Conversation: tui.Conversation{Session: s}})
	msgs := make(chan tea.Msg, 1000)
	var run func(tea.Cmd)
	run = func(cmd tea.Cmd) {
		if cmd != nil {
			go func() {
				switch msg := cmd().(type) {
				case tea.BatchMsg:
					for _, c := range msg {
						run(c)
					}
				default:
					msgs <- msg
				}
			}()
		}
	}
	update = func(msg tea.Msg) {
		_, cmd := m.Update(msg)
		run(cmd)
	}
	run(m.Init())
	update(tea.WindowSizeMsg{Width: 200, Height: 60})
	for _, r := range "go" {
		update(tea.KeyPressMsg(tea.Key{Code: r, Text: string(r)}))
	}
	update(tea.KeyPressMsg(tea.Key{Code: tea.KeyEnter}))
	// next has n events stream in and returns the message that brings them.
	next = func(n int) tea.Msg {
		if n > 0 {
			release <- n
		}
		<-streamed
		for {
			msg := <-msgs
			if fmt.Sprintf("%T", msg) == "tui.batch" {
				return msg
			}
			update(msg)
		}
	}
	update(next(0))
	for strings.Count(m.View().Content, "explore") == 0 { // what has come in arrives a frame at a time
		update(<-msgs)
	}
	b.Cleanup(func() { close(release) })
	return m, update, next
}

// BenchmarkFrame is what one frame costs while 10,000 events a second stream in:
// the events of a frame's time, a key, and drawing it all.
func BenchmarkFrame(b *testing.B) {
	m, update, next := crowd(b)
	keys := []tea.Msg{tea.KeyPressMsg(tea.Key{Code: 'x', Text: "x"}), tea.KeyPressMsg(tea.Key{Code: tea.KeyBackspace})}
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		msg := next(330) // 10,000 a second, at 30 frames a second
		b.StartTimer()
		update(msg)
		update(keys[i%2])
		m.View()
	}
}

// BenchmarkResize is what a frame costs when the width has changed, so that
// nothing that was drawn before can be used.
func BenchmarkResize(b *testing.B) {
	m, _, _ := crowd(b)
	b.ResetTimer()
	for i := range b.N {
		m.Update(tea.WindowSizeMsg{Width: 150 + i%50, Height: 60})
		m.View()
	}
}
