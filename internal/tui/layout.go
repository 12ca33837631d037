package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

// The smallest screen that everything is laid out for. A smaller one is drawn in
// full and cut.
const (
	minColumns = 30
	minRows    = 8
	sideTree   = 132 // columns from which the sub-agents stand beside the conversation
)

// View draws the screen.
func (m *Model) View() tea.View {
	w, h := max(m.w, minColumns), max(m.h, minRows)
	lines, cursor := m.compose(w, h)
	for i := range lines {
		if i >= m.h {
			lines = lines[:m.h]
			break
		}
		if m.w < minColumns {
			lines[i] = cut(lines[i], m.w)
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "synapse"
	if m.opt.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if cursor != nil && cursor.X < m.w && cursor.Y < m.h {
		v.Cursor = cursor
	}
	return v
}

// compose draws exactly h lines of at most w columns.
func (m *Model) compose(w, h int) ([]string, *tea.Cursor) {
	var lines []string
	var cursor *tea.Cursor
	if n := len(m.pages); n > 0 {
		lines, cursor = m.drawPage(m.pages[n-1], w, h-1)
	} else {
		lines, cursor = m.drawConversation(w, h-1)
	}
	if m.dialog != nil {
		box, c := m.dialog.draw(w, h-1, m.th)
		top := max(0, h-1-len(box))
		lines = append(lines[:top:top], box...)
		if cursor = c; c != nil {
			c.Y += top
		}
	}
	return append(lines, m.statusLine(w)), cursor
}

// drawPage draws a page with its title and its keys.
func (m *Model) drawPage(p page, w, h int) ([]string, *tea.Cursor) {
	head := m.th.heading.paint(p.title())
	lines := []string{cut(" "+head, w), m.th.border.paint(strings.Repeat("─", w))}
	body, cursor := p.draw(m, w-2, h-4)
	for i, l := range body {
		if i >= h-4 {
			break
		}
		lines = append(lines, " "+l)
	}
	if cursor != nil {
		cursor.X++
		cursor.Y += 2
	}
	for len(lines) < h-2 {
		lines = append(lines, "")
	}
	lines = append(lines, m.th.border.paint(strings.Repeat("─", w)))
	return append(lines, " "+m.keys(p.hints(m), w-2)), cursor
}

// keys shows pairs of a key and what it does, as many as there is room for.
func (m *Model) keys(pairs []string, columns int) string {
	var b strings.Builder
	room := columns
	for i := 0; i+1 < len(pairs); i += 2 {
		w := width(pairs[i]) + 1 + width(pairs[i+1])
		if i > 0 {
			w += 3
		}
		if w > room {
			break
		}
		if i > 0 {
			b.WriteString(m.th.faint.paint(" · "))
		}
		b.WriteString(m.th.key.paint(pairs[i]) + " " + m.th.faint.paint(pairs[i+1]))
		room -= w
	}
	return b.String()
}

// drawConversation draws the conversation, the sub-agents and the input.
func (m *Model) drawConversation(w, h int) ([]string, *tea.Cursor) {
	below, cursor := m.drawInput(w, h)
	all := branches(m.root())
	beside := len(all) > 0 && w >= sideTree
	left := w
	if beside {
		left = w - w*2/5 - 1
	}
	var panel []string
	if len(all) > 0 && !beside {
		rows := max(3, h/4)
		if m.focus == focusTree {
			rows = max(3, h/2)
		}
		rows = min(rows, max(1, h-len(below)-4))
		panel = m.tree.draw(all, w-2, rows, m.frame, m.now, m.focus == focusTree, false, m.th)
	}
	room := max(1, h-len(below)-len(panel))
	lines := m.ledger.conv.view(m.look(left-2), room)
	if m.ledger.conv.free && len(lines) > 1 {
		lines[len(lines)-1] = m.th.faint.paint(cut(" ↓ more below: End", left))
	}
	if beside {
		side := m.tree.draw(all, w-left-3, room, m.frame, m.now, m.focus == focusTree, true, m.th)
		for i := range lines {
			text := ""
			if i < len(side) {
				text = side[i]
			}
			lines[i] = fill(lines[i], left) + m.th.border.paint("│ ") + text
		}
	}
	for _, l := range panel {
		lines = append(lines, " "+l)
	}
	if cursor != nil {
		cursor.Y += len(lines)
	}
	return append(lines, below...), cursor
}

// drawInput draws what stands below the conversation: what goes on, what waits,
// what is offered and what is being written.
func (m *Model) drawInput(w, h int) ([]string, *tea.Cursor) {
	var lines []string
	if m.busy {
		lines = append(lines, m.working(w))
	}
	for i, q := range m.queue {
		if i == 3 {
			lines = append(lines, m.th.faint.paint(cut(fmt.Sprintf("   … %d more wait", len(m.queue)-3), w)))
			break
		}
		lines = append(lines, m.th.faint.paint(cut(" ⏎ "+oneLine(q), w)))
	}
	if m.popup != nil {
		lines = append(lines, m.popup.draw(w, max(1, h-len(lines)-6), m.th)...)
	}
	rule := m.th.border
	if m.focus == focusInput && m.dialog == nil {
		rule = m.th.accent
	}
	lines = append(lines, rule.paint(strings.Repeat("─", w)))
	rows, x, y := m.input.view(w-3, max(1, h/3), m.th)
	var cursor *tea.Cursor
	if m.focus == focusInput {
		cursor = tea.NewCursor(x+2, len(lines)+y)
	}
	for i, r := range rows {
		mark := "  "
		if i == 0 {
			mark = m.th.user.paint("❯ ")
		}
		if m.input.empty() && len(m.ledger.conv.items) > 0 {
			r = m.th.faint.paint(cut(m.placeholder(), w-3))
		}
		lines = append(lines, mark+r)
	}
	return append(lines, rule.paint(strings.Repeat("─", w))), cursor
}

func (m *Model) placeholder() string {
	if m.busy {
		return "what you write now is sent when the answer is there"
	}
	return ""
}

// working says what the main agent is doing.
func (m *Model) working(w int) string {
	r := m.root()
	sign, st := r.sign(m.frame, m.th)
	now := r.now()
	if m.stopped {
		now = "stopping"
	}
	right := display.Seconds(r.worked(m.now))
	if r.usage.Tokens() > 0 {
		right = short(r.usage.Tokens()) + " tok · " + right
	}
	if !m.stopped {
		right += " · Esc interrupts"
	}
	return sides(" "+st.paint(sign)+" "+cut(now, max(w-4, 1)), m.th.faint.paint(right)+" ", w)
}

// statusLine is the last line of the screen.
func (m *Model) statusLine(w int) string {
	if m.flash != "" {
		return m.th.warn.paint(cut(" "+m.flash, w))
	}
	var parts []string
	model := oneLine(m.status.Model)
	if m.status.Effort != "" {
		model += " · " + oneLine(m.status.Effort)
	}
	if model != "" {
		parts = append(parts, model)
	}
	var right []string
	if n, background := m.root().running(); background > 0 {
		right = append(right, fmt.Sprintf("%d in the background", background))
	} else if n > 0 && len(m.pages) > 0 {
		right = append(right, display.Count(int64(n), "sub-agent"))
	}
	if n := m.ledger.context; n > 0 {
		text := "context " + short(n)
		if m.status.Window > 0 {
			text += fmt.Sprintf(" (%d%%)", n*100/m.status.Window)
		}
		right = append(right, text)
	}
	if u := m.ledger.usage; u.Tokens() > 0 {
		right = append(right, costOf(u))
	}
	if len(right) == 0 {
		right = append(right, "/help")
	}
	return m.th.faint.paint(sides(" "+strings.Join(parts, " · "), strings.Join(right, " · ")+" ", w))
}

func costOf(u synapse.Usage) string {
	if c := display.Cost(u); c != "unknown" {
		return c
	}
	return "cost unknown"
}
