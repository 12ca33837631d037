package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// A draftPage is the form for a new agent, with what would come of it beside it.
type draftPage struct {
	fields  []*field
	at      int
	preview Preview
	problem string
	version int // counts changes, so that an old preview does not replace a newer one
	top     int // of the preview
}

// A field is one entry of the form.
type field struct {
	name  string
	about string
	input *editor
	many  bool // it may have several lines
	// choices are the values it can have, where it can't be written.
	choices []string
	choice  int
}

const (
	fieldName = iota
	fieldDescription
	fieldTools
	fieldModel
	fieldEffort
	fieldPrompt
	fieldScope
)

type (
	previewMsg struct {
		page    *draftPage
		version int
		preview Preview
		err     error
	}
	previewDue struct {
		page    *draftPage
		version int
	}
	writtenMsg struct {
		page *draftPage
		path string
		err  error
	}
)

func (m *Model) openDraft() tea.Cmd {
	p := &draftPage{fields: []*field{
		fieldName:        {name: "Name", about: "letters of any script"},
		fieldDescription: {name: "Description", about: "when to delegate to it: the main agent decides by this", many: true},
		fieldTools:       {name: "Tools", about: "separated by commas; * for what sub-agents have by default, nothing for none"},
		fieldModel:       {name: "Model", about: "provider:model or an alias; nothing for the main agent's"},
		fieldEffort:      {name: "Effort", about: "off, minimal, low, medium, high, max; nothing for the main agent's"},
		fieldPrompt:      {name: "Prompt", about: "its system prompt; nothing for a first draft", many: true},
		fieldScope:       {name: "For", choices: []string{"this workspace", "every workspace"}},
	}}
	for _, f := range p.fields {
		f.input = newEditor()
	}
	p.fields[fieldTools].input.set("*")
	m.push(p)
	return p.changed(m)
}

// draft is what the form holds.
func (p *draftPage) draft() Draft {
	v := func(i int) string { return strings.TrimSpace(p.fields[i].input.value()) }
	d := Draft{Name: v(fieldName), Description: v(fieldDescription), Tools: v(fieldTools), Model: v(fieldModel), Effort: v(fieldEffort),
		Prompt: v(fieldPrompt), User: p.fields[fieldScope].choice == 1}
	if d.Tools == "*" {
		d.Tools, d.AllTools = "", true
	}
	return d
}

// previewRest is how long the keys rest before what was written is explained.
const previewRest = 200 * time.Millisecond

func (p *draftPage) changed(m *Model) tea.Cmd {
	p.version++
	due := previewDue{p, p.version}
	return tea.Tick(previewRest, func(time.Time) tea.Msg { return due })
}

func (p *draftPage) receive(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case previewDue:
		if msg.page != p || msg.version != p.version || p.draft().Name == "" {
			return nil
		}
		d, version := p.draft(), p.version
		return func() tea.Msg {
			v, err := m.opt.Drafts.Preview(m.ctx, d)
			return previewMsg{p, version, v, err}
		}
	case previewMsg:
		if msg.page != p || msg.version != p.version {
			return nil
		}
		p.problem = ""
		if msg.err != nil {
			p.problem = oneLine(msg.err.Error())
			return nil
		}
		p.preview = msg.preview
	case writtenMsg:
		if msg.page != p {
			return nil
		}
		if msg.err != nil {
			p.problem = oneLine(msg.err.Error())
			return nil
		}
		m.close(p)
		return tea.Batch(m.say("written: "+oneLine(msg.path)+", from the next message on"), m.loadAgents())
	}
	return nil
}

func (p *draftPage) title() string { return "A new agent" }
func (p *draftPage) hints(*Model) []string {
	return []string{"Tab ↑↓", "field", "Ctrl+S", "write the file", "PgDn", "preview", "Esc", "drop it"}
}

func (p *draftPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	f := p.fields[p.at]
	switch name := k.String(); name {
	case "esc":
		return nil, false
	case "tab", "shift+tab", "down", "up":
		by := 1
		if name == "shift+tab" || name == "up" {
			by = -1
		}
		if (name == "up" || name == "down") && f.many && f.input.move(by, m.w/2) {
			return nil, true
		}
		p.at = (p.at + by + len(p.fields)) % len(p.fields)
		return nil, true
	case "ctrl+s":
		d := p.draft()
		if d.Name == "" {
			p.at = fieldName
			p.problem = "it needs a name"
			return nil, true
		}
		return func() tea.Msg {
			path, err := m.opt.Drafts.Write(m.ctx, d)
			return writtenMsg{p, path, err}
		}, true
	case "pgup":
		p.top = max(0, p.top-5)
		return nil, true
	case "pgdown":
		p.top += 5
		return nil, true
	case "enter":
		if !f.many {
			p.at = (p.at + 1) % len(p.fields)
			return nil, true
		}
		f.input.insert("\n")
		return p.changed(m), true
	}
	if len(f.choices) > 0 {
		switch k.String() {
		case "left", "right", "space":
			f.choice = (f.choice + 1) % len(f.choices)
			return p.changed(m), true
		}
		return nil, true
	}
	if typeInto(f.input, k, m.w/2) {
		return p.changed(m), true
	}
	return nil, true
}

func (p *draftPage) paste(text string) {
	if f := p.fields[p.at]; len(f.choices) == 0 {
		if !f.many {
			text = oneLine(text)
		}
		f.input.insert(text)
		p.version++
	}
}

func (p *draftPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	th := m.th
	left := columns
	wide := columns >= 100
	if wide {
		left = columns / 2
	}
	lines, cursor := p.drawForm(left-1, th, max(2, (rows-len(p.fields))/3))
	about := p.fields[p.at].about
	lines = append(lines, "", th.faint.paint(cut(about, left-1)))
	if p.problem != "" {
		lines = append(lines, wrapText(p.problem, th.bad, left-1)...)
	}
	w := columns
	if wide {
		w = columns - left - 2
	}
	preview := p.drawPreview(w, th)
	if wide {
		p.top = max(0, min(p.top, len(preview)-rows))
		preview = preview[p.top:]
		for len(lines) < min(rows, max(len(lines), len(preview))) {
			lines = append(lines, "")
		}
		for i := range lines {
			text := ""
			if i < len(preview) {
				text = preview[i]
			}
			lines[i] = fill(lines[i], left) + th.border.paint("│ ") + text
		}
		return lines, cursor
	}
	lines = append(lines, th.border.paint(strings.Repeat("─", columns)))
	p.top = max(0, min(p.top, len(preview)-max(1, rows-len(lines))))
	return append(lines, preview[p.top:]...), cursor
}

func (p *draftPage) drawForm(columns int, th *theme, most int) ([]string, *tea.Cursor) {
	const label = 13
	var lines []string
	var cursor *tea.Cursor
	for i, f := range p.fields {
		name := th.faint.paint(fill(f.name, label))
		if i == p.at {
			name = th.key.paint(fill(f.name, label))
		}
		if len(f.choices) > 0 {
			value := f.choices[f.choice]
			if i == p.at {
				value = th.selected.paint("‹ " + value + " ›")
			}
			lines = append(lines, name+value)
			continue
		}
		rows := 1
		if f.many && i == p.at {
			rows = most
		} else if f.many {
			rows = 2
		}
		text, x, y := f.input.view(columns-label, rows, th)
		if i == p.at {
			cursor = tea.NewCursor(label+x, len(lines)+y)
		}
		for j, l := range text {
			if j > 0 {
				name = strings.Repeat(" ", label)
			}
			lines = append(lines, name+l)
		}
	}
	return lines, cursor
}

func (p *draftPage) drawPreview(columns int, th *theme) []string {
	if p.preview.Text == "" {
		return []string{th.faint.paint("what it may do appears here")}
	}
	out := []string{th.faint.paint(cut(oneLine(p.preview.Path), columns))}
	out = append(out, drawSheet(p.preview.Explain, columns, th)...)
	out = append(out, "", th.heading.paint("The file"))
	for _, l := range highlight(foreign(p.preview.Text), "yaml", th) {
		out = append(out, wrap(l, columns)...)
	}
	return out
}
