package tui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// sizes are those that every screen is looked at in.
var sizes = [][2]int{{60, 16}, {100, 30}, {200, 50}}

// TestFrames keeps what every screen looks like.
func TestFrames(t *testing.T) {
	ask := func(d *driver) {
		args, _ := json.Marshal(map[string]string{"command": "make test && echo \x1b[31mred 界面 && " + strings.Repeat("long ", 30)})
		go d.ask.Ask(d.ctx, synapse.Ask{ID: "1", Agent: "tester", Tool: "execute", Args: args, Intent: "run the tests", Subject: "make test", Reason: "the rule execute \"*\" asks (user settings)"})
		d.settle()
	}
	screens := []struct {
		name string
		play func(context.Context, *stage)
		do   func(d *driver)
	}{
		{"empty", conversation, func(d *driver) {}},
		{"conversation", conversation, func(d *driver) { d.write("please edit"); d.press("enter"); d.pass(2 * time.Second) }},
		{"unfolded", conversation, func(d *driver) {
			d.write("please edit")
			d.press("enter")
			d.pass(2 * time.Second)
			d.press("ctrl+o", "tab", "home")
		}},
		{"tree", delegation, func(d *driver) {
			d.write("delegate")
			d.press("enter")
			d.pass(5 * time.Second)
			d.write("and then this")
			d.press("enter")
			d.write("half a thought")
		}},
		{"treefocus", delegation, func(d *driver) {
			d.write("delegate")
			d.press("enter")
			d.pass(5 * time.Second)
			d.press("ctrl+t", "down", "down")
		}},
		{"child", delegation, func(d *driver) {
			d.write("delegate")
			d.press("enter")
			d.pass(5 * time.Second)
			d.press("ctrl+t", "down", "down", "enter", "t")
		}},
		{"palette", conversation, func(d *driver) { d.write("/") }},
		{"mention", conversation, func(d *driver) { d.write("see @r") }},
		{"help", conversation, func(d *driver) { d.write("/help"); d.press("enter") }},
		{"agents", conversation, func(d *driver) { d.write("/subagents"); d.press("enter", "down", "enter", "down", "down") }},
		{"models", conversation, func(d *driver) {
			d.write("/subagent reviewer")
			d.press("enter", "right", "enter", "down", "down", "enter")
		}},
		{"pick", conversation, func(d *driver) { d.write("/model"); d.press("enter", "enter"); d.write("gpt") }},
		{"saved", conversation, func(d *driver) {
			d.write("/model")
			d.press("enter", "enter", "down", "enter", "s")
		}},
		{"draft", conversation, func(d *driver) {
			d.write("/agents new")
			d.press("enter")
			d.write("checker")
			d.press("tab")
			d.write("Use it to check 中文.")
			d.pass(time.Second)
		}},
		{"sessions", conversation, func(d *driver) { d.write("/sessions"); d.press("enter") }},
		{"traces", conversation, func(d *driver) { d.write("/trace"); d.press("enter") }},
		{"trace", conversation, func(d *driver) { d.write("/trace"); d.press("enter", "enter") }},
		{"config", conversation, func(d *driver) { d.write("/config"); d.press("enter") }},
		{"context", conversation, func(d *driver) {
			d.write("please edit")
			d.press("enter")
			d.pass(2 * time.Second)
			d.write("/context")
			d.press("enter")
		}},
		{"theme", conversation, func(d *driver) { d.write("/theme"); d.press("enter", "down", "down") }},
		{"question", conversation, func(d *driver) { ask(d); d.pass(time.Second) }},
		{"reason", conversation, func(d *driver) { ask(d); d.pass(time.Second); d.press("r"); d.write("use 界 instead") }},
	}
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			var all strings.Builder
			for _, size := range sizes {
				opt, _ := whole(&world{}, s.play)
				drive(t, opt, size[0], size[1], func(d *driver) {
					s.do(d)
					v := d.m.View()
					checkFrame(t, v.Content, size[0], size[1])
					if c := v.Cursor; c != nil && (c.X >= size[0] || c.Y >= size[1]) {
						t.Errorf("the cursor is at %d, %d of %v", c.X, c.Y, size)
					}
					fmt.Fprintf(&all, "=== %d × %d", size[0], size[1])
					if v.Cursor != nil {
						fmt.Fprintf(&all, ", cursor at %d, %d", v.Cursor.X, v.Cursor.Y)
					}
					all.WriteString("\n")
					for l := range strings.SplitSeq(d.frame(), "\n") {
						all.WriteString(strings.TrimRight(l, " ") + "\n")
					}
				})
			}
			golden(t, s.name, all.String())
		})
	}
}

// TestFramesAtAnySize wants no screen to tear or to panic, however small or odd
// the terminal is, and while it changes.
func TestFramesAtAnySize(t *testing.T) {
	opt, _ := whole(&world{}, delegation)
	drive(t, opt, 100, 30, func(d *driver) {
		d.write("delegate")
		d.press("enter")
		d.pass(5 * time.Second)
		pages := []func(){
			func() {}, func() { d.press("ctrl+t") }, func() { d.press("enter") }, func() { d.press("t") },
			func() { d.press("esc", "esc"); d.write("/subagents"); d.press("enter") },
			func() { d.press("esc"); d.write("/subagent"); d.press("enter") }, func() { d.press("enter") },
			func() { d.press("esc", "esc"); d.write("/agents new"); d.press("enter") },
			func() { d.press("esc"); d.write("/theme"); d.press("enter") },
			func() { d.press("esc"); d.write("/help"); d.press("enter") },
			func() { d.press("esc"); d.write("@") },
		}
		for i, open := range pages {
			open()
			for _, size := range [][2]int{{1, 1}, {5, 3}, {20, 6}, {30, 8}, {40, 10}, {60, 16}, {61, 17}, {131, 9}, {132, 40}, {250, 80}} {
				d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				lines := strings.Split(d.m.View().Content, "\n")
				if len(lines) > size[1] {
					t.Errorf("page %d: %d lines on a screen of %v", i, len(lines), size)
				}
				if size[0] >= 30 && size[1] >= 8 {
					checkFrame(t, d.m.View().Content, size[0], size[1])
				}
			}
		}
		d.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	})
}
