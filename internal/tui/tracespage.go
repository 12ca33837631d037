package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// A tracesPage lists past requests.
type tracesPage struct {
	all    []Trace
	loaded bool
	list   list
	rows   int
}

type tracesMsg []Trace

// openTraces shows the list, or the request of an id.
func (m *Model) openTraces(id string) tea.Cmd {
	if id != "" {
		return m.openTrace(id)
	}
	m.push(&tracesPage{rows: 10})
	return func() tea.Msg {
		l, err := m.opt.Traces.Traces(m.ctx)
		if err != nil {
			return failure{err}
		}
		return tracesMsg(l)
	}
}

func (m *Model) openTrace(id string) tea.Cmd {
	return m.openSheet("Trace "+id, func(ctx context.Context) (Sheet, error) { return m.opt.Traces.Trace(ctx, id) })
}

func (p *tracesPage) receive(_ *Model, msg tea.Msg) tea.Cmd {
	if l, ok := msg.(tracesMsg); ok {
		p.all, p.loaded = l, true
	}
	return nil
}

func (p *tracesPage) title() string         { return fmt.Sprintf("Past requests: %d", len(p.all)) }
func (p *tracesPage) hints(*Model) []string { return []string{"Enter", "show", "Esc", "back"} }

func (p *tracesPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	switch name := k.String(); name {
	case "esc", "q":
		return nil, false
	case "enter", "space":
		if p.list.at < len(p.all) {
			return m.openTrace(p.all[p.list.at].ID), true
		}
	default:
		p.list.key(name, len(p.all), p.rows)
	}
	return nil, true
}

func (p *tracesPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	switch {
	case !p.loaded:
		return []string{m.th.faint.paint("…")}, nil
	case len(p.all) == 0:
		return []string{m.th.faint.paint("nothing has been run yet")}, nil
	}
	p.rows = rows
	from, to := p.list.window(len(p.all), rows)
	var out []string
	for i := from; i < to; i++ {
		t := p.all[i]
		left := fmt.Sprintf("%s  %-10s  %s", oneLine(t.Started), oneLine(t.Status), oneLine(t.Prompt))
		right := fmt.Sprintf("%d runs · %s tok · %s · %s", t.Runs, short(t.Tokens), oneLine(t.Cost), oneLine(t.Elapsed))
		if columns < 100 {
			right = oneLine(t.Elapsed)
		}
		if i == p.list.at {
			out = append(out, m.th.selected.paint(fill(sides(left, right, columns), columns)))
			continue
		}
		out = append(out, sides(left, m.th.faint.paint(right), columns))
	}
	return out, nil
}

// A themesPage chooses the colours; what is chosen is shown at once.
type themesPage struct {
	list   list
	before string
}

// openThemes shows the themes, or takes the one of a name.
func (m *Model) openThemes(name string) tea.Cmd {
	switch {
	case name == "":
	case name == themeAuto || themeNamed(name) != nil:
		return m.takeTheme(name)
	default:
		return m.say("there is no theme " + oneLine(name))
	}
	p := &themesPage{before: m.choice}
	for i, n := range themeNames() {
		if n == m.choice {
			p.list.at = i
		}
	}
	m.push(p)
	return nil
}

// themeNames are the themes and auto, which comes first.
func themeNames() []string {
	names := []string{themeAuto}
	for _, make := range themes {
		names = append(names, make().name)
	}
	return names
}

func (m *Model) takeTheme(name string) tea.Cmd {
	m.setTheme(name)
	if m.opt.Memory == nil {
		return nil
	}
	return func() tea.Msg {
		if err := m.opt.Memory.SaveTheme(m.ctx, name); err != nil {
			return failure{err}
		}
		return nil
	}
}

func (p *themesPage) title() string         { return "Colours" }
func (p *themesPage) hints(*Model) []string { return []string{"Enter", "take", "Esc", "as it was"} }

func (p *themesPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	names := themeNames()
	switch name := k.String(); name {
	case "esc", "q":
		m.setTheme(p.before)
		return nil, false
	case "enter", "space":
		return m.takeTheme(names[p.list.at]), false
	default:
		if p.list.key(name, len(names), len(names)) {
			m.setTheme(names[p.list.at])
		}
	}
	return nil, true
}

func (p *themesPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	var out []string
	for i, n := range themeNames() {
		about := "what fits the terminal"
		if t := themeNamed(n); t != nil {
			about = t.about
		}
		line := fmt.Sprintf("%-6s  %s", n, about)
		if i == p.list.at {
			out = append(out, m.th.selected.paint(fill(line, columns)))
		} else {
			out = append(out, cut(line, columns))
		}
	}
	sample := "# Heading\nText with **weight**, *stress*, `code` and a [link](https://example.org).\n\n```go\nfunc add(a, b int) int { return a + b } // 42\n```\n```diff\n-removed\n+added\n```"
	out = append(out, "", m.th.border.paint("─── what it looks like"))
	return append(out, markdown(sample, columns, m.th)...), nil
}
