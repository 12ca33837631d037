package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A sheetPage shows something to read.
type sheetPage struct {
	sheet  Sheet
	loaded bool
	load   func(context.Context) (Sheet, error)
	top    int
	rows   int
	lines  []string
	look   look
}

// sheetMsg brings the sheet of a page.
type sheetMsg struct {
	page  *sheetPage
	sheet Sheet
}

// openSheet opens a page whose sheet has to be fetched.
func (m *Model) openSheet(title string, load func(context.Context) (Sheet, error)) tea.Cmd {
	p := &sheetPage{sheet: Sheet{Title: title}, load: load}
	m.push(p)
	return func() tea.Msg {
		s, err := load(m.ctx)
		if err != nil {
			s = Sheet{Title: title, Sections: []Section{{Rows: []Row{{Cells: []string{err.Error()}, Tone: Bad}}}}}
		}
		return sheetMsg{p, s}
	}
}

func (p *sheetPage) receive(_ *Model, msg tea.Msg) tea.Cmd {
	if s, ok := msg.(sheetMsg); ok && s.page == p {
		p.sheet.Sections, p.loaded, p.lines = s.sheet.Sections, true, nil
	}
	return nil
}

func (p *sheetPage) title() string { return oneLine(p.sheet.Title) }
func (p *sheetPage) hints(*Model) []string {
	return []string{"Esc", "back", "↑↓ PgUp PgDn", "scroll"}
}

func (p *sheetPage) key(_ *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	n := max(0, len(p.lines)-p.rows)
	switch k.String() {
	case "esc", "q", "left":
		return nil, false
	case "up", "k":
		p.top--
	case "down", "j", "enter":
		p.top++
	case "pgup":
		p.top -= p.rows
	case "pgdown", "space":
		p.top += p.rows
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = n
	}
	p.top = min(max(p.top, 0), n)
	return nil, true
}

func (p *sheetPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	l := look{width: columns, th: m.th}
	if p.lines == nil || p.look != l {
		p.lines, p.look = drawSheet(p.sheet, columns, m.th), l
	}
	if !p.loaded && p.load != nil {
		return []string{m.th.faint.paint("…")}, nil
	}
	p.rows = rows
	p.top = min(p.top, max(0, len(p.lines)-rows))
	return p.lines[p.top:min(len(p.lines), p.top+rows)], nil
}

// drawSheet draws a sheet whole.
func drawSheet(s Sheet, columns int, th *theme) []string {
	var out []string
	for _, sec := range s.Sections {
		if len(out) > 0 {
			out = append(out, "")
		}
		if sec.Title != "" {
			out = append(out, wrapText(oneLine(sec.Title), th.heading, columns)...)
		}
		out = append(out, drawRows(sec.Rows, columns, th)...)
		for _, l := range sec.Lines {
			out = append(out, wrapText(foreign(l), "", columns)...)
		}
	}
	return out
}

// drawRows aligns the cells of rows. The last column is wrapped; where there is no
// room for it beside the others it goes below.
func drawRows(rows []Row, columns int, th *theme) []string {
	var widths []int
	for _, r := range rows {
		for i, c := range r.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(r.Cells)-1 {
				widths[i] = max(widths[i], min(width(oneLine(c)), columns/2))
			}
		}
	}
	var out []string
	for _, r := range rows {
		st := r.Tone.style(th)
		var head []span
		used := 0
		for i, c := range r.Cells[:max(0, len(r.Cells)-1)] {
			text := fill(oneLine(c), widths[i])
			if i > 0 {
				head = append(head, span{text + "  ", th.faint})
			} else {
				head = append(head, span{text + "  ", st})
			}
			used += widths[i] + 2
		}
		if len(r.Cells) == 0 {
			out = append(out, "")
			continue
		}
		last := oneLine(r.Cells[len(r.Cells)-1])
		if len(r.Cells) == 1 {
			out = append(out, wrapText(last, st, columns)...)
			continue
		}
		if columns-used < 12 && used > 0 {
			out = append(out, cut(join(cells(head)), columns))
			for _, l := range wrapText(last, th.faint, columns-2) {
				out = append(out, "  "+l)
			}
			continue
		}
		for i, l := range wrapText(last, "", columns-used) {
			if i == 0 {
				out = append(out, join(cells(head))+l)
			} else {
				out = append(out, strings.Repeat(" ", used)+l)
			}
		}
	}
	return out
}

func (m *Model) openConfig() tea.Cmd { return m.openSheet("Settings", m.opt.Config.Config) }

func (m *Model) openExplain(name string) tea.Cmd {
	return m.openSheet("What "+orMain(name)+" may do", func(ctx context.Context) (Sheet, error) { return m.opt.Agents.Explain(ctx, name) })
}

func orMain(name string) string {
	if name == "" {
		return "the main agent"
	}
	return name
}

// openHelp shows the keys and the commands there are.
func (m *Model) openHelp() tea.Cmd {
	var list []Row
	for _, c := range m.offered() {
		list = append(list, Row{Cells: []string{strings.TrimSpace("/" + c.name + " " + c.args), c.about}})
	}
	keys := func(pairs ...string) []Row {
		var rows []Row
		for i := 0; i+1 < len(pairs); i += 2 {
			rows = append(rows, Row{Cells: pairs[i : i+2]})
		}
		return rows
	}
	m.push(&sheetPage{loaded: true, sheet: Sheet{Title: "Help", Sections: []Section{
		{Title: "Commands", Rows: list},
		{Title: "Writing", Rows: keys(
			"Enter", "send; while an answer is coming, the message waits for its end",
			"Shift+Enter, Alt+Enter, Ctrl+J, \\ Enter", "another line",
			"@", "name an agent or a file", "/", "a command",
			"↑ ↓", "what was sent before; first what still waits",
			"Ctrl+A E U K W Y, Ctrl+/", "line start and end, cut, paste back, undo",
			"Esc", "interrupt; when nothing goes on, clear")},
		{Title: "Looking", Rows: keys(
			"Tab", "go from the input to the conversation and the sub-agents",
			"Enter", "unfold what is chosen, or open the sub-agent",
			"Ctrl+O", "show everything whole, or folded again",
			"Ctrl+T", "the sub-agents",
			"PgUp PgDn", "scroll", "End", "back to what is new",
			"Ctrl+L", "draw the screen anew", "Ctrl+C twice", "leave")},
	}}})
	return nil
}

// openContext shows what the conversation takes.
func (m *Model) openContext() tea.Cmd {
	u := m.ledger.usage
	used := Row{Cells: []string{"last request and reply", short(m.ledger.context) + " tokens"}}
	if w := m.status.Window; w > 0 {
		used.Cells[1] += fmt.Sprintf(" of %s, %d%%", short(w), m.ledger.context*100/w)
	}
	kinds := map[itemKind]int{}
	for _, it := range m.ledger.conv.items {
		kinds[it.kind]++
	}
	m.push(&sheetPage{loaded: true, sheet: Sheet{Title: "Context", Sections: []Section{
		{Title: "The conversation", Rows: []Row{
			{Cells: []string{"model", orUnknown(m.status.Model)}},
			used,
			{Cells: []string{"messages", fmt.Sprintf("%d from you, %d replies, %d tool calls", kinds[itemUser], kinds[itemText], kinds[itemCall])}},
		}},
		{Title: "Everything so far, sub-agents included", Rows: []Row{
			{Cells: []string{"requests", fmt.Sprint(u.Requests)}},
			{Cells: []string{"input", short(u.InputTokens) + " tokens, of which " + short(u.CacheReadTokens) + " from the cache"}},
			{Cells: []string{"output", short(u.OutputTokens) + " tokens, of which " + short(u.ReasoningTokens) + " reasoning"}},
			{Cells: []string{"cost", costOf(u)}},
		}},
	}}})
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
