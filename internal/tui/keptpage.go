package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// pastMsg brings a conversation with what was said in it.
type pastMsg struct {
	conv   Conversation
	events []*synapse.Event
}

// recall reads what was said in a conversation.
func (m *Model) recall(c Conversation) tea.Cmd {
	if c.Past == nil && c.Resume == nil {
		return nil
	}
	return func() tea.Msg {
		msg := pastMsg{conv: c}
		if c.Past != nil {
			for e, err := range c.Past(m.ctx) {
				if err != nil {
					return failure{err}
				}
				msg.events = append(msg.events, e)
			}
		}
		return msg
	}
}

// goOn shows a conversation of before, and goes on where it was cut off.
func (m *Model) goOn(p pastMsg) tea.Cmd {
	if m.busy {
		return m.say("a request goes on: Esc interrupts it")
	}
	m.pages = nil
	m.conv, m.said, m.ledger = p.conv, true, newLedger()
	m.ledger.past = true
	for _, e := range p.events {
		m.ledger.apply(e)
	}
	m.ledger.past = false
	m.toInput()
	if p.conv.Resume == nil {
		m.notice("✦", (*theme).accentStyle, "this is where the conversation goes on")
		return m.loadStatus()
	}
	m.notice("✦", (*theme).accentStyle, "going on with the request, which was cut off")
	return m.follow(p.conv.Resume)
}

// resume goes on with the conversation of an id, or with the last one.
func (m *Model) resume(id string) tea.Cmd {
	if m.busy {
		return m.say("a request goes on: Esc interrupts it")
	}
	return func() tea.Msg {
		c, err := m.opt.Conversations.Open(m.ctx, id)
		if err != nil {
			return failure{err}
		}
		return m.recall(c)()
	}
}

// A keptPage lists conversations.
type keptPage struct {
	all    []Kept
	loaded bool
	list   list
	rows   int
}

type keptMsg []Kept

func (m *Model) openKept() tea.Cmd {
	m.push(&keptPage{rows: 10})
	return func() tea.Msg {
		l, err := m.opt.Conversations.Conversations(m.ctx)
		if err != nil {
			return failure{err}
		}
		return keptMsg(l)
	}
}

func (p *keptPage) receive(_ *Model, msg tea.Msg) tea.Cmd {
	if l, ok := msg.(keptMsg); ok {
		p.all, p.loaded = l, true
	}
	return nil
}

func (p *keptPage) title() string {
	return fmt.Sprintf("Conversations in this workspace: %d", len(p.all))
}
func (p *keptPage) hints(*Model) []string { return []string{"Enter", "go on with it", "Esc", "back"} }

func (p *keptPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	switch name := k.String(); name {
	case "esc", "q":
		return nil, false
	case "enter", "space":
		if p.list.at < len(p.all) {
			return m.resume(p.all[p.list.at].ID), true
		}
	default:
		p.list.key(name, len(p.all), p.rows)
	}
	return nil, true
}

func (p *keptPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	switch {
	case !p.loaded:
		return []string{m.th.faint.paint("…")}, nil
	case len(p.all) == 0:
		return []string{m.th.faint.paint("there is no conversation here yet")}, nil
	}
	p.rows = rows
	from, to := p.list.window(len(p.all), rows)
	var out []string
	for i := from; i < to; i++ {
		c := p.all[i]
		name := oneLine(c.Prompt)
		if c.Name != "" {
			name = oneLine(c.Name) + ": " + name
		}
		left := fmt.Sprintf("%s  %-10s  %s", oneLine(c.Updated), oneLine(c.Status), name)
		right := fmt.Sprintf("%d requests · %s tok · %s", c.Requests, short(c.Tokens), oneLine(c.Cost))
		if i == p.list.at {
			out = append(out, m.th.selected.paint(fill(sides(left, right, columns), columns)))
			continue
		}
		out = append(out, sides(left, m.th.faint.paint(right), columns))
	}
	return out, nil
}
