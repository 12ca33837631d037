package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// mainRow is how the main agent's row of the model page is asked for: no agent's
// name can be it.
const mainRow = "\x00main"

// A modelsPage edits models and reasoning efforts. Nothing is written before it is
// saved.
type modelsPage struct {
	data   ModelPage
	loaded bool
	want   string // the row to begin at
	list   list
	rows   int
	effort bool // the effort's column is chosen, not the model's
	layer  int
	edits  []ModelEdit // in the order in which they were made
	saved  []Saved
	saving bool
	pick   *pick
}

// pick chooses a value: from a list, or typed.
type pick struct {
	title   string
	input   *editor
	choices []Choice
	list    list
}

type (
	modelsMsg struct{ ModelPage }
	savedMsg  struct {
		saved []Saved
		n     int // of the edits
		err   error
	}
)

func (m *Model) openModels(name string) tea.Cmd {
	m.push(&modelsPage{want: name, rows: 10})
	return m.loadModels()
}

func (m *Model) loadModels() tea.Cmd {
	return func() tea.Msg {
		d, err := m.opt.Models.Models(m.ctx)
		if err != nil {
			return failure{err}
		}
		return modelsMsg{d}
	}
}

func (p *modelsPage) receive(m *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case modelsMsg:
		p.data, p.loaded = msg.ModelPage, true
		for i, r := range p.data.Rows {
			if p.want != "" && (r.Name == p.want || p.want == mainRow && i == 0) {
				p.list.at = i
			}
		}
		p.want = ""
	case savedMsg:
		p.saving = false
		p.saved = msg.saved
		p.edits = p.edits[min(len(msg.saved), len(p.edits)):]
		cmds := []tea.Cmd{m.loadModels(), m.loadStatus(), m.loadAgents()}
		if msg.err != nil {
			cmds = append(cmds, m.say(oneLine(msg.err.Error())))
		}
		return tea.Batch(cmds...)
	}
	return nil
}

func (p *modelsPage) title() string {
	t := "Models and reasoning efforts"
	if p.layer < len(p.data.Layers) {
		t += " · saved to the " + p.data.Layers[p.layer].Name + " settings"
	}
	if n := len(p.edits); n > 0 {
		t += fmt.Sprintf(" · %d not saved", n)
	}
	return t
}

func (p *modelsPage) hints(*Model) []string {
	if p.pick != nil {
		return []string{"Enter", "take", "Esc", "back", "type", "find, or write a model"}
	}
	return []string{"Enter", "edit", "←→", "model/effort", "s", "save", "r", "reset", "l", "layer", "Esc", "back"}
}

// edit is the value that a key is to get.
func (p *modelsPage) edit(key string) (string, bool) {
	for _, e := range p.edits {
		if e.Key == key {
			return e.Value, true
		}
	}
	return "", false
}

func (p *modelsPage) set(key, value string) {
	p.unset(key)
	p.edits = append(p.edits, ModelEdit{key, value})
}

func (p *modelsPage) unset(key string) bool {
	for i, e := range p.edits {
		if e.Key == key {
			p.edits = append(p.edits[:i:i], p.edits[i+1:]...)
			return true
		}
	}
	return false
}

func (p *modelsPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	if p.pick != nil {
		p.pickKey(k)
		return nil, true
	}
	if !p.loaded || len(p.data.Rows) == 0 {
		return nil, k.String() != "esc" && k.String() != "q"
	}
	row := p.data.Rows[p.list.at]
	key := row.ModelKey
	if p.effort {
		key = row.EffortKey
	}
	switch name := k.String(); name {
	case "esc", "q":
		if len(p.edits) > 0 {
			n := len(p.edits)
			p.edits = nil
			return m.say(fmt.Sprintf("%d changes dropped; Esc once more leaves", n)), true
		}
		return nil, false
	case "left", "right", "tab", "h":
		p.effort = !p.effort
	case "enter", "space", "e":
		p.openPick(row)
	case "r":
		if !p.unset(key) {
			p.set(key, "inherit")
		}
	case "l":
		if n := len(p.data.Layers); n > 0 {
			p.layer = (p.layer + 1) % n
		}
	case "s", "ctrl+s":
		if len(p.edits) == 0 || p.saving || p.layer >= len(p.data.Layers) {
			return nil, true
		}
		p.saving = true
		layer, edits := p.data.Layers[p.layer].Name, append([]ModelEdit{}, p.edits...)
		return func() tea.Msg {
			saved, err := m.opt.Models.Save(m.ctx, layer, edits)
			return savedMsg{saved, len(edits), err}
		}, true
	default:
		p.list.key(name, len(p.data.Rows), p.rows)
	}
	return nil, true
}

func (p *modelsPage) openPick(row ModelRow) {
	name := row.Name
	p.pick = &pick{title: "Model of " + name, input: newEditor(), choices: p.data.Choices}
	if p.effort {
		p.pick.title, p.pick.choices = "Reasoning effort of "+name, nil
		for _, e := range p.data.Efforts {
			p.pick.choices = append(p.pick.choices, Choice{Value: e})
		}
	}
}

// offered are the choices that answer what has been typed; what can't be chosen
// from the list may be written out.
func (p *modelsPage) offered() []Choice {
	typed := strings.TrimSpace(p.pick.input.text())
	found := rank(typed, p.pick.choices, func(c Choice) string { return c.Value })
	if !p.effort && typed != "" {
		for _, c := range found {
			if c.Value == typed {
				return found
			}
		}
		found = append(found, Choice{Value: typed, About: "as written"})
	}
	return found
}

func (p *modelsPage) pickKey(k tea.KeyPressMsg) {
	offered := p.offered()
	switch name := k.String(); name {
	case "esc":
		p.pick = nil
	case "enter":
		if len(offered) == 0 {
			return
		}
		row := p.data.Rows[p.list.at]
		key := row.ModelKey
		if p.effort {
			key = row.EffortKey
		}
		p.set(key, offered[min(p.pick.list.at, len(offered)-1)].Value)
		p.pick = nil
	case "up", "down", "pgup", "pgdown", "ctrl+p", "ctrl+n":
		p.pick.list.key(name, len(offered), p.rows)
	default:
		if typeInto(p.pick.input, k, 1000) {
			p.pick.list.at = 0
		}
	}
}

func (p *modelsPage) paste(text string) {
	if p.pick != nil {
		p.pick.input.insert(oneLine(text))
	}
}

func (p *modelsPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	th := m.th
	if !p.loaded {
		return []string{th.faint.paint("…")}, nil
	}
	if p.pick != nil {
		return p.drawPick(columns, rows, th)
	}
	var below []string
	if len(p.data.Rows) > 0 {
		p.list.at = min(p.list.at, len(p.data.Rows)-1)
		below = p.about(p.data.Rows[p.list.at], columns, th)
	}
	for _, s := range p.saved {
		st := th.good
		if s.Hidden {
			st = th.warn
		}
		below = append(below, wrapText(oneLine(s.Text), st, columns)...)
	}
	if most := max(rows/2, 2); len(below) > most {
		below = below[len(below)-most:]
	}
	p.rows = max(1, rows-len(below)-1)
	from, to := p.list.window(len(p.data.Rows), p.rows)
	names, models := 0, 0
	for _, r := range p.data.Rows {
		names = max(names, width(oneLine(r.Name)))
		models = max(models, width(p.shown(r.ModelKey, r.Model)))
	}
	names, models = min(names, columns/3), min(models, columns/2)
	var out []string
	for i := from; i < to; i++ {
		r := p.data.Rows[i]
		model, effort := p.shown(r.ModelKey, r.Model), p.shown(r.EffortKey, orDefault(r.Effort))
		name := fill(oneLine(r.Name), names)
		if i != p.list.at {
			out = append(out, cut("  "+th.strong.paint(name)+"  "+p.tinted(r.ModelKey, fill(model, models), th)+"  "+p.tinted(r.EffortKey, effort, th), columns))
			continue
		}
		a, b := th.selected.paint(fill(model, models)), p.tinted(r.EffortKey, effort, th)
		if p.effort {
			a, b = p.tinted(r.ModelKey, fill(model, models), th), th.selected.paint(effort)
		}
		out = append(out, cut(th.key.paint("❯ ")+th.strong.paint(name)+"  "+a+"  "+b, columns))
	}
	for len(out) < rows-len(below)-1 {
		out = append(out, "")
	}
	return append(append(out, th.border.paint(strings.Repeat("─", columns))), below...), nil
}

// shown is a value on the page: the edit that is not saved yet has a star.
func (p *modelsPage) shown(key, value string) string {
	if v, ok := p.edit(key); ok {
		return oneLine(v) + " *"
	}
	return oneLine(orUnknown(value))
}

func (p *modelsPage) tinted(key, text string, th *theme) string {
	if _, ok := p.edit(key); ok {
		return th.warn.paint(text)
	}
	return text
}

func orDefault(effort string) string {
	if effort == "" {
		return "default"
	}
	return effort
}

// about says where the values of the chosen row come from.
func (p *modelsPage) about(r ModelRow, columns int, th *theme) []string {
	out := []string{th.faint.paint(cut(oneLine(r.About), columns))}
	out = append(out, wrap([]span{{"model   ", th.faint}, {oneLine(r.Model), ""}, {"  " + oneLine(r.ModelFrom), th.faint}}, columns)...)
	out = append(out, wrap([]span{{"effort  ", th.faint}, {orDefault(r.Effort), ""}, {"  " + oneLine(r.EffortFrom), th.faint}}, columns)...)
	if p.layer < len(p.data.Layers) {
		out = append(out, th.faint.paint(cut("saves to "+oneLine(p.data.Layers[p.layer].Path), columns)))
	}
	return out
}

func (p *modelsPage) drawPick(columns, rows int, th *theme) ([]string, *tea.Cursor) {
	lines, x, _ := p.pick.input.view(columns-3, 1, th)
	out := []string{th.strong.paint(cut(oneLine(p.pick.title), columns)), th.user.paint("❯ ") + lines[0]}
	cursor := tea.NewCursor(x+2, 1)
	offered := p.offered()
	from, to := p.pick.list.window(len(offered), rows-2)
	for i := from; i < to; i++ {
		c := offered[i]
		if i == p.pick.list.at {
			out = append(out, th.selected.paint(fill("  "+oneLine(c.Value)+"  "+oneLine(c.About), columns)))
			continue
		}
		out = append(out, cut("  "+oneLine(c.Value)+"  "+th.faint.paint(oneLine(c.About)), columns))
	}
	return out, cursor
}
