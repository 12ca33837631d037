package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
)

// calm is how long the keys must rest before they can be answers: what was on
// its way when the question came up was not meant for it.
const calm = 500 * time.Millisecond

// armed is the message that the keys have rested since some key.
type armed int

// A dialog puts one question of an agent to the user.
type dialog struct {
	q       *question
	others  int // further questions that are open
	list    list
	ready   bool // keys are answers
	keys    int  // that have come before it was
	reason  *editor
	answers []choice
	scroll  int
}

type choice struct {
	key, text string
	allow     bool
	scope     scope
	why       bool // asks for the reason first
}

// ask shows the first of the open questions, the one that is shown already as
// long as it is open.
func (m *Model) ask(open asked) tea.Cmd {
	if len(open) == 0 {
		m.dialog = nil
		return nil
	}
	if m.dialog != nil {
		for _, q := range open {
			if q == m.dialog.q {
				m.dialog.others = len(open) - 1
				return nil
			}
		}
	}
	q := open[0]
	d := &dialog{q: q, others: len(open) - 1, answers: []choice{
		{key: "y", text: "Yes, once", allow: true},
		{key: "s", text: "Yes, and the same again until this session ends", allow: true, scope: scopeSession},
	}}
	if m.opt.Questions.grants != nil {
		d.answers = append(d.answers, choice{key: "p", text: "Yes, and the same again always in this project", allow: true, scope: scopeProject})
	}
	d.answers = append(d.answers, choice{key: "n", text: "No"}, choice{key: "r", text: "No, and tell " + oneLine(q.Agent) + " why", why: true})
	m.dialog = d
	return d.rest()
}

// rest waits for the keys to come to rest.
func (d *dialog) rest() tea.Cmd {
	d.keys++
	n := d.keys
	return tea.Tick(calm, func(time.Time) tea.Msg { return armed(n) })
}

func (d *dialog) arm(n int) {
	if d != nil && d.keys == n {
		d.ready = true
	}
}

// dialogKey takes a key while a question is open.
func (m *Model) dialogKey(k tea.KeyPressMsg) tea.Cmd {
	d := m.dialog
	if !d.ready {
		return tea.Batch(d.rest(), m.inputKey(k))
	}
	name := k.String()
	if d.reason != nil {
		switch name {
		case "esc":
			d.reason = nil
		case "enter":
			return m.reply(synapse.Answer{Reason: strings.TrimSpace(d.reason.value())}, scopeOnce)
		default:
			typeInto(d.reason, k, m.w-8)
		}
		return nil
	}
	for i, c := range d.answers {
		if name == c.key || name == fmt.Sprint(i+1) {
			d.list.at = i
			return m.choose()
		}
	}
	switch name {
	case "enter":
		return m.choose()
	case "esc":
		return m.reply(synapse.Answer{}, scopeOnce)
	case "ctrl+c":
		cmd := m.reply(synapse.Answer{}, scopeOnce)
		return tea.Batch(cmd, m.interrupt())
	case "pgdown":
		d.scroll += 5
	case "pgup":
		d.scroll = max(0, d.scroll-5)
	default:
		d.list.key(name, len(d.answers), len(d.answers))
	}
	return nil
}

func (m *Model) choose() tea.Cmd {
	c := m.dialog.answers[m.dialog.list.at]
	if c.why {
		m.dialog.reason = newEditor()
		return nil
	}
	return m.reply(synapse.Answer{Allow: c.allow}, c.scope)
}

// reply sends the answer on its way.
func (m *Model) reply(a synapse.Answer, s scope) tea.Cmd {
	q, k := m.dialog.q, m.opt.Questions
	m.dialog = nil
	return func() tea.Msg {
		if err := k.answer(q, a, s); err != nil {
			return failure{err}
		}
		return nil
	}
}

// draw draws the dialog in at most rows lines.
func (d *dialog) draw(columns, rows int, th *theme) ([]string, *tea.Cursor) {
	inner := columns - 4
	head := oneLine(d.q.Agent) + " wants to run " + oneLine(d.q.Tool)
	if d.others > 0 {
		head += fmt.Sprintf(" (and %d more to answer)", d.others)
	}
	var top, body, end []string
	top = append(top, wrapText(head, th.strong, inner)...)
	if d.q.Intent != "" {
		top = append(top, wrapText("why: "+oneLine(d.q.Intent), "", inner)...)
	}
	body = d.arguments(inner, th)
	end = append(end, wrapText("rule: "+oneLine(d.q.Reason), th.faint, inner)...)
	var cursor *tea.Cursor
	if d.reason != nil {
		lines, x, y := d.reason.view(inner-2, 4, th)
		end = append(end, th.strong.paint("Why not? Enter sends it, Esc goes back."))
		for i, l := range lines {
			if i == y {
				cursor = tea.NewCursor(x+4, len(end))
			}
			end = append(end, "› "+l)
		}
	} else {
		for i, c := range d.answers {
			line := fmt.Sprintf("%s  %s", c.key, c.text)
			if i == d.list.at {
				end = append(end, th.selected.paint(fill("❯ "+line, inner)))
				continue
			}
			end = append(end, th.key.paint("  "+c.key)+"  "+cut(c.text, inner-5))
		}
		if !d.ready {
			end = append(end, th.warn.paint(cut("(waits until you stop typing)", inner)))
		}
	}
	room := max(1, rows-2-len(top)-len(end))
	if len(body) > room {
		d.scroll = min(d.scroll, len(body)-room)
		more := len(body) - d.scroll - room
		body = body[d.scroll : d.scroll+room]
		if more > 0 {
			body[len(body)-1] = th.faint.paint(fmt.Sprintf("… %d more lines: PgDn", more+1))
		}
	}
	lines := append(append(top, body...), end...)
	if cursor != nil {
		cursor.Y += 1 + len(top) + len(body)
	}
	if len(lines) > rows-2 {
		lines = lines[len(lines)-max(rows-2, 1):]
	}
	return boxed(lines, columns, th.warn), cursor
}

// arguments are the whole of what the user has to judge.
func (d *dialog) arguments(columns int, th *theme) []string {
	var args map[string]any
	if json.Unmarshal(d.q.Args, &args) == nil && len(args) == 1 {
		for _, v := range args {
			if s, ok := v.(string); ok {
				return wrapText(foreign(s), th.code, columns)
			}
		}
	}
	var out bytes.Buffer
	if json.Indent(&out, d.q.Args, "", "  ") != nil {
		return wrapText(foreign(string(d.q.Args)), th.code, columns)
	}
	return wrapText(foreign(strings.ReplaceAll(out.String(), `\n`, "\n    ")), th.code, columns)
}

// boxed puts a frame around lines.
func boxed(lines []string, columns int, st style) []string {
	inner := columns - 4
	out := []string{st.paint("╭" + strings.Repeat("─", inner+2) + "╮")}
	for _, l := range lines {
		out = append(out, st.paint("│")+" "+fill(l, inner)+" "+st.paint("│"))
	}
	return append(out, st.paint("╰"+strings.Repeat("─", inner+2)+"╯"))
}
