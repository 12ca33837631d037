package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// A childPage is a sub-agent's own view: what it was told, what it does, what it
// has found, and what it may use.
type childPage struct {
	run   *run
	tools bool
	rows  int // of the transcript when it was last drawn
	w     int
	steer *editor // what is being written to it
}

func newChildPage(r *run) *childPage { return &childPage{run: r, rows: 10, w: 80} }

func (p *childPage) title() string {
	var names []string
	for r := p.run; r != nil; r = r.parent {
		names = append(names, r.agent)
	}
	slices.Reverse(names)
	t := strings.Join(names, " › ")
	if p.run.what != "" {
		t += " · " + p.run.what
	}
	return t
}

func (p *childPage) hints(m *Model) []string {
	if p.steer != nil {
		return []string{"Enter", "send", "Esc", "back"}
	}
	h := []string{"Esc", "back", "↑↓", "scroll", "t", "tools", "Ctrl+O", "unfold"}
	if p.run.ended() {
		return h
	}
	c := m.opt.Controls
	if c.Stop != nil {
		h = append(h, "s", "stop")
	}
	if c.Steer != nil {
		h = append(h, "m", "message")
	}
	if c.Pause != nil && c.Resume != nil {
		if p.run.state() == runPaused {
			h = append(h, "p", "go on")
		} else {
			h = append(h, "p", "pause")
		}
	}
	if c.Background != nil && !p.run.background {
		h = append(h, "b", "to background")
	}
	return h
}

func (p *childPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	if p.steer != nil {
		return p.steerKey(m, k), true
	}
	s, l := p.run.script, m.look(p.w-2)
	c := m.opt.Controls
	going := !p.run.ended()
	switch name := k.String(); name {
	case "esc", "q", "left":
		return nil, false
	case "up", "k":
		s.scroll(-1, l, p.rows)
	case "down", "j":
		s.scroll(1, l, p.rows)
	case "pgup":
		s.scroll(-p.rows, l, p.rows)
	case "pgdown", "space":
		s.scroll(p.rows, l, p.rows)
	case "home", "g":
		s.free, s.at, s.skip = true, 0, 0
	case "end", "G":
		s.free = false
	case "ctrl+o":
		m.open = !m.open
	case "t":
		p.tools = !p.tools
	case "s":
		if going && c.Stop != nil {
			return act(m, c.Stop, p.run, "stopping "+p.run.agent), true
		}
	case "b":
		if going && c.Background != nil && !p.run.background {
			return act(m, c.Background, p.run, p.run.agent+" goes on in the background"), true
		}
	case "p":
		switch {
		case !going || c.Pause == nil || c.Resume == nil:
		case p.run.state() == runPaused:
			return act(m, c.Resume, p.run, p.run.agent+" goes on"), true
		default:
			return act(m, c.Pause, p.run, p.run.agent+" pauses after what it is doing"), true
		}
	case "m":
		if going && c.Steer != nil {
			p.steer = newEditor()
		}
	}
	return nil, true
}

func (p *childPage) steerKey(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		p.steer = nil
	case "enter":
		text := strings.TrimSpace(p.steer.value())
		p.steer = nil
		if text != "" {
			steer := m.opt.Controls.Steer
			return act(m, func(ctx context.Context, run string) error { return steer(ctx, run, text) }, p.run, p.run.agent+" reads it at its next turn")
		}
	default:
		typeInto(p.steer, k, p.w-4)
	}
	return nil
}

func (p *childPage) paste(text string) {
	if p.steer != nil {
		p.steer.paste(text)
	}
}

// act does something to a run and says so.
func act(m *Model, do func(context.Context, string) error, r *run, word string) tea.Cmd {
	id := r.id
	return func() tea.Msg {
		if err := do(m.ctx, id); err != nil {
			return failure{err}
		}
		return done{word}
	}
}

func (p *childPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	r := p.run
	sign, st := r.sign(m.frame, m.th)
	state := r.now()
	if state == "" {
		state = "done"
	}
	model := r.model
	if r.effort != "" {
		model += " · " + string(r.effort)
	}
	lines := []string{
		sides(st.paint(sign)+" "+cut(state, columns-2), m.th.faint.paint(r.figures(m.now)), columns),
		m.th.faint.paint(cut(model, columns)),
	}
	if p.tools {
		lines = append(lines, p.drawTools(m.th, columns)...)
	}
	lines = append(lines, "")
	if len(lines) > rows/2 {
		lines = lines[:max(rows/2, 3)]
	}
	var end []string
	var cursor *tea.Cursor
	if p.steer != nil {
		text, x, y := p.steer.view(columns-2, 4, m.th)
		for i, l := range text {
			if i == y {
				cursor = tea.NewCursor(x+2, 0)
			}
			end = append(end, m.th.user.paint("❯ ")+l)
		}
		cursor.Y = rows - len(end) + y
	}
	p.w, p.rows = columns, max(1, rows-len(lines)-len(end))
	lines = append(lines, r.script.view(m.look(columns-2), p.rows)...)
	return append(lines, end...), cursor
}

// drawTools shows what the policy of the run allows and what it takes away.
func (p *childPage) drawTools(th *theme, columns int) []string {
	s := p.run.spec
	if s == nil {
		return []string{th.faint.paint("it has not begun")}
	}
	out := wrap([]span{{"may use  ", th.good}, {strings.Join(s.Policy.Allow, "  "), ""}}, columns)
	reasons := map[string][]string{}
	for tool, why := range s.Policy.Block {
		reason := string(why.Code)
		reasons[reason] = append(reasons[reason], tool)
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		slices.Sort(reasons[reason])
		out = append(out, wrap([]span{{oneLine(reason) + "  ", th.warn}, {strings.Join(reasons[reason], "  "), th.faint}}, columns)...)
	}
	if l := limitsOf(s.Limits); l != "" {
		out = append(out, th.faint.paint(cut("limits  "+l, columns)))
	}
	return out
}

func limitsOf(l synapse.Limits) string {
	var parts []string
	if l.Turns > 0 {
		parts = append(parts, fmt.Sprintf("%d turns", l.Turns))
	}
	if l.Tokens > 0 {
		parts = append(parts, short(l.Tokens)+" tokens")
	}
	if l.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%g", l.CostUSD))
	}
	if l.Time > 0 {
		parts = append(parts, l.Time.String())
	}
	return strings.Join(parts, " · ")
}
