package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// An agentsPage switches agents on and off.
type agentsPage struct {
	all    AgentList
	loaded bool
	list   list
	rows   int
	only   string // shown are the agents that answer this
	typing bool
	wait   string // the agent whose switch is on its way
}

func (m *Model) openAgents() tea.Cmd {
	p := &agentsPage{all: m.agents, loaded: len(m.agents.Agents) > 0, rows: 10}
	m.push(p)
	return m.loadAgents()
}

// agentsCommand is /agents.
func (m *Model) agentsCommand(args string) tea.Cmd {
	switch args {
	case "":
		return m.openAgents()
	case "new":
		if m.opt.Drafts != nil {
			return m.openDraft()
		}
	}
	return m.say("/agents takes \"new\", or nothing")
}

func (p *agentsPage) receive(_ *Model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case agentsMsg:
		p.all, p.loaded, p.wait = msg.AgentList, true, ""
	case failure:
		p.wait = ""
	}
	return nil
}

// shown are the agents on the page.
func (p *agentsPage) shown() []Agent {
	if p.only == "" {
		return p.all.Agents
	}
	return rank(p.only, p.all.Agents, func(a Agent) string { return a.Name })
}

func (p *agentsPage) title() string {
	on := 0
	for _, a := range p.all.Agents {
		if a.On {
			on++
		}
	}
	t := fmt.Sprintf("Agents: %d on, %d off", on, len(p.all.Agents)-on)
	if p.only != "" || p.typing {
		t += " · /" + p.only
	}
	return t
}

func (p *agentsPage) hints(m *Model) []string {
	h := []string{"Enter", "on/off", "Esc", "back", "e", "explain", "/", "find"}
	if m.opt.Drafts != nil {
		h = append(h, "n", "new")
	}
	if m.opt.Models != nil {
		h = append(h, "m", "model")
	}
	return h
}

func (p *agentsPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	shown := p.shown()
	name := k.String()
	if p.typing {
		switch {
		case name == "esc":
			p.typing, p.only = false, ""
			return nil, true
		case name == "backspace":
			if r := []rune(p.only); len(r) > 0 {
				p.only = string(r[:len(r)-1])
			}
			return nil, true
		case name != "enter" && k.Text != "" && name != "space":
			p.only += foreign(k.Text)
			p.list.at = 0
			return nil, true
		}
	}
	var at *Agent
	if len(shown) > 0 {
		p.list.at = min(p.list.at, len(shown)-1)
		at = &shown[p.list.at]
	}
	switch name {
	case "enter", "space":
		if at == nil || p.wait != "" {
			return nil, true
		}
		agent, on := at.Name, !at.On
		p.wait = agent
		word := agent + " is off, from the next message on, in every workspace"
		if on {
			word = agent + " is on, from the next message on"
		}
		return func() tea.Msg {
			if err := m.opt.Agents.Switch(m.ctx, agent, on); err != nil {
				return failure{err}
			}
			return done{word}
		}, true
	case "esc", "q":
		if p.only != "" {
			p.only, p.typing = "", false
			return nil, true
		}
		return nil, false
	case "/":
		p.typing = true
	case "e":
		if at != nil {
			agent := at.Name
			return m.openSheet("What "+agent+" may do", func(ctx context.Context) (Sheet, error) { return m.opt.Agents.Explain(ctx, agent) }), true
		}
	case "n":
		if m.opt.Drafts != nil {
			return m.openDraft(), true
		}
	case "m":
		if m.opt.Models != nil && at != nil {
			return m.openModels(at.Name), true
		}
	default:
		p.list.key(name, len(shown), p.rows)
	}
	return nil, true
}

func (p *agentsPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	th := m.th
	if !p.loaded {
		return []string{th.faint.paint("…")}, nil
	}
	shown := p.shown()
	var below []string
	if len(shown) > 0 {
		p.list.at = min(p.list.at, len(shown)-1)
		below = p.about(shown[p.list.at], columns, th)
	} else {
		below = []string{th.faint.paint("there is no such agent")}
	}
	problems := p.problems(columns, th)
	below = append(below, problems...)
	if most := rows / 2; len(below) > most {
		below = append(below[:most-1:most-1], th.faint.paint(cut(fmt.Sprintf("… %d lines more in `synapse agents list`", len(below)-most+1), columns)))
	}
	p.rows = max(1, rows-len(below)-1)
	from, to := p.list.window(len(shown), p.rows)
	names, sources := 0, 0
	for _, a := range shown {
		names, sources = max(names, width(oneLine(a.Name))), max(sources, width(oneLine(a.Source)))
	}
	names, sources = min(names, columns/3), min(sources, columns/4)
	var out []string
	for i := from; i < to; i++ {
		a := shown[i]
		mark, st := "[✓]", th.good
		switch {
		case a.Name == p.wait:
			mark, st = "[…]", th.faint
		case !a.On:
			mark, st = "[ ]", th.faint
		}
		name, source := fill(oneLine(a.Name), names), fill(oneLine(a.Source), sources)
		model := oneLine(a.Model)
		if a.Effort != "" {
			model += " · " + a.Effort
		}
		if i == p.list.at {
			out = append(out, th.selected.paint(fill(mark+" "+name+"  "+source+"  "+model, columns)))
			continue
		}
		out = append(out, cut(st.paint(mark)+" "+th.strong.paint(name)+"  "+th.faint.paint(source)+"  "+model, columns))
	}
	for len(out) < p.rows && len(out) < rows-len(below)-1 {
		out = append(out, "")
	}
	return append(append(out, th.border.paint(strings.Repeat("─", columns))), below...), nil
}

// about says more of the chosen agent.
func (p *agentsPage) about(a Agent, columns int, th *theme) []string {
	out, more := clipped(wrapText(oneLine(a.Description), "", columns), 3)
	if more > 0 {
		out[len(out)-1] = cut(out[len(out)-1]+" …", columns)
	}
	place := oneLine(a.Path)
	if place == "" {
		place = "no file: " + oneLine(a.Source)
	}
	out = append(out, th.faint.paint(cut(place, columns)))
	if !a.Callable {
		out = append(out, th.faint.paint(cut("the main agent does not delegate to it", columns)))
	}
	for _, s := range a.Shadows {
		out = append(out, th.faint.paint(cut("shadows "+oneLine(s), columns)))
	}
	for _, pr := range p.all.Problems {
		if pr.Name == a.Name {
			out = append(out, problem(pr, columns, th)...)
		}
	}
	return out
}

// problems are those that are about no agent of the list.
func (p *agentsPage) problems(columns int, th *theme) []string {
	known := map[string]bool{}
	for _, a := range p.all.Agents {
		known[a.Name] = true
	}
	var out []string
	for _, pr := range p.all.Problems {
		if !known[pr.Name] {
			out = append(out, problem(pr, columns, th)...)
		}
	}
	return out
}

func problem(p Problem, columns int, th *theme) []string {
	st := th.warn
	if p.Bad {
		st = th.bad
	}
	return wrapText(oneLine(p.Text), st, columns)
}
