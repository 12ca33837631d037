package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// key takes a key to where it belongs: a question, the page on top, the popup,
// the part of the screen that has the focus.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name != "ctrl+c" {
		m.quit = -1
	}
	if m.dialog != nil {
		return m.dialogKey(k)
	}
	switch name {
	case "ctrl+c":
		return m.ctrlC()
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	}
	if n := len(m.pages); n > 0 {
		p := m.pages[n-1]
		cmd, stays := p.key(m, k)
		if !stays {
			m.close(p)
		}
		return cmd
	}
	switch name {
	case "ctrl+o":
		m.open = !m.open
		return nil
	case "pgup":
		m.scroll(-max(1, m.h/2))
		return nil
	case "pgdown":
		m.scroll(max(1, m.h/2))
		return nil
	case "ctrl+t":
		return m.focusTree()
	}
	switch m.focus {
	case focusConversation:
		return m.conversationKey(k)
	case focusTree:
		return m.treeKey(k)
	}
	return m.inputKey(k)
}

// close takes a page away.
func (m *Model) close(p page) {
	for i, o := range m.pages {
		if o == p {
			m.pages = append(m.pages[:i:i], m.pages[i+1:]...)
			return
		}
	}
}

// ctrlC stops what goes on, or clears what is written; the second one leaves.
func (m *Model) ctrlC() tea.Cmd {
	if m.quit >= 0 {
		return m.leave()
	}
	word := "Ctrl+C once more leaves"
	switch {
	case m.busy && !m.stopped:
		m.interrupt()
		word = "interrupted; " + word
	case len(m.pages) > 0:
		m.pages = m.pages[:len(m.pages)-1]
	case !m.input.empty():
		m.history.add(m.input.value())
		m.input.set("")
		m.refreshPopup()
		word = "cleared, ↑ brings it back; " + word
	}
	cmd := m.say(word)
	m.quit = m.flashAt
	return cmd
}

// leave ends the screen.
func (m *Model) leave() tea.Cmd {
	if m.stop != nil {
		m.stop()
	}
	return tea.Quit
}

func (m *Model) scroll(by int) {
	l, rows := m.look(m.w-2), max(1, m.h-8)
	m.ledger.conv.scroll(by, l, rows)
}

// inputKey takes a key for what is being written.
func (m *Model) inputKey(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if m.popup != nil {
		switch name {
		case "up", "ctrl+p", "down", "ctrl+n", "pgup", "pgdown":
			m.popup.list.key(name, len(m.popup.entries), popupRows)
			return nil
		case "esc":
			m.popup = nil
			return nil
		case "tab":
			m.accept()
			return nil
		case "enter":
			if m.accept() {
				return m.submit()
			}
			return nil
		}
	}
	e := m.input
	switch name {
	case "enter":
		if strings.HasSuffix(strings.Join(e.cells[:e.at], ""), `\`) && e.at == e.lineEnd() { // goes on in the next line
			e.backspace()
			e.insert("\n")
			break
		}
		return m.submit()
	case "esc":
		if m.busy && !m.stopped {
			return m.interrupt()
		}
		if !e.empty() {
			m.history.add(e.value())
			e.set("")
		} else if m.ledger.conv.free {
			m.ledger.conv.free = false
		}
	case "tab":
		m.nextFocus()
	case "shift+tab":
		return m.focusTree()
	case "up":
		if !e.move(-1, m.w-3) {
			m.callUp(-1)
		}
		return nil
	case "down":
		if !e.move(1, m.w-3) {
			m.callUp(1)
		}
		return nil
	case "ctrl+d":
		if e.empty() {
			return m.leave()
		}
		e.cut(e.at, e.at+1)
	case "end":
		if e.empty() {
			m.ledger.conv.free = false
		}
		e.to(e.lineEnd())
	default:
		if !typeInto(e, k, m.w-3) {
			return nil
		}
	}
	m.refreshPopup()
	return nil
}

// callUp brings up what was sent before; what waits to be sent comes first.
func (m *Model) callUp(by int) {
	if n := len(m.queue); by < 0 && n > 0 && m.input.empty() {
		m.input.set(m.queue[n-1])
		m.queue = m.queue[:n-1]
		return
	}
	if text, ok := m.history.move(by, m.input.value()); ok {
		m.input.set(text)
	}
	m.popup = nil
}

// typeInto does to a text what a key means in any editor, and reports whether it
// meant anything.
func typeInto(e *editor, k tea.KeyPressMsg, columns int) bool {
	switch k.String() {
	case "left", "ctrl+b":
		e.to(e.at - 1)
	case "right", "ctrl+f":
		e.to(e.at + 1)
	case "up":
		e.move(-1, columns)
	case "down":
		e.move(1, columns)
	case "alt+left", "ctrl+left", "alt+b":
		e.to(e.wordLeft())
	case "alt+right", "ctrl+right", "alt+f":
		e.to(e.wordRight())
	case "home", "ctrl+a":
		e.to(e.lineStart())
	case "end", "ctrl+e":
		e.to(e.lineEnd())
	case "ctrl+home":
		e.to(0)
	case "ctrl+end":
		e.to(len(e.cells))
	case "backspace", "ctrl+h", "shift+backspace":
		e.backspace()
	case "delete":
		e.cut(e.at, e.at+1)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.kill(e.wordLeft(), e.at)
	case "alt+d", "ctrl+delete":
		e.kill(e.at, e.wordRight())
	case "ctrl+u":
		e.kill(e.lineStart(), e.at)
	case "ctrl+k":
		e.kill(e.at, e.lineEnd())
	case "ctrl+y":
		e.insert(e.killed)
	case "ctrl+_", "ctrl+/":
		e.unDo()
	case "alt+_", "ctrl+shift+z", "alt+/":
		e.reDo()
	case "shift+enter", "alt+enter", "ctrl+j":
		e.insert("\n")
	default:
		if k.Text == "" || k.Mod&^tea.ModShift != 0 && k.Mod != tea.ModCapsLock {
			return false
		}
		e.insert(k.Text)
	}
	return true
}

// paste takes what was pasted.
func (m *Model) paste(text string) tea.Cmd {
	if m.dialog != nil && m.dialog.reason != nil {
		m.dialog.reason.paste(text)
		return nil
	}
	if n := len(m.pages); n > 0 {
		if p, ok := m.pages[n-1].(interface{ paste(string) }); ok {
			p.paste(text)
		}
		return nil
	}
	m.focus = focusInput
	m.input.paste(text)
	m.refreshPopup()
	return nil
}

// nextFocus goes to the next part of the screen that there is.
func (m *Model) nextFocus() {
	switch {
	case m.focus == focusInput && len(m.ledger.conv.items) > 0:
		m.focus = focusConversation
		m.ledger.conv.move(0, m.look(m.w-2), max(1, m.h-8))
	case m.focus != focusTree && len(m.root().children) > 0:
		m.focus = focusTree
		m.ledger.conv.cursor = -1
	default:
		m.toInput()
	}
}

// toInput gives the keys back to what is being written.
func (m *Model) toInput() {
	m.focus = focusInput
	m.ledger.conv.cursor = -1
}

func (m *Model) focusTree() tea.Cmd {
	if len(m.root().children) == 0 {
		return m.say("there are no sub-agents")
	}
	if m.focus == focusTree {
		m.toInput()
		return nil
	}
	m.ledger.conv.cursor = -1
	m.focus = focusTree
	return nil
}

// conversationKey looks through the conversation.
func (m *Model) conversationKey(k tea.KeyPressMsg) tea.Cmd {
	conv, l, rows := m.ledger.conv, m.look(m.w-2), max(1, m.h-8)
	switch name := k.String(); name {
	case "up", "k":
		conv.move(-1, l, rows)
	case "down", "j":
		conv.move(1, l, rows)
	case "home", "g":
		conv.move(-len(conv.items), l, rows)
	case "end", "G":
		conv.move(len(conv.items), l, rows)
	case "enter", "space":
		return m.openItem(conv.chosen())
	case "tab":
		m.nextFocus()
	case "esc", "q":
		m.toInput()
		conv.free = false
	default:
		if k.Text == "" {
			return nil
		}
		m.toInput()
		return m.inputKey(k)
	}
	return nil
}

// openItem unfolds an item, or shows the sub-agent that it has started.
func (m *Model) openItem(it *item) tea.Cmd {
	switch {
	case it == nil:
	case it.child != nil:
		m.push(newChildPage(it.child))
	default:
		it.opened = !it.opened
	}
	return nil
}

// treeKey looks through the sub-agents.
func (m *Model) treeKey(k tea.KeyPressMsg) tea.Cmd {
	all := branches(m.root())
	switch name := k.String(); name {
	case "enter", "space", "right":
		if len(all) > 0 {
			m.push(newChildPage(all[min(m.tree.list.at, len(all)-1)].run))
		}
	case "tab", "esc", "q", "left":
		m.toInput()
	default:
		if m.tree.list.key(name, len(all), max(3, m.h/2)) {
			return nil
		}
		if k.Text != "" {
			m.toInput()
			return m.inputKey(k)
		}
	}
	return nil
}

// mouse scrolls with the wheel and opens what is clicked on.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	if len(m.pages) > 0 || m.dialog != nil {
		return nil
	}
	switch msg.(type) {
	case tea.MouseWheelMsg:
		if at.Button == tea.MouseWheelUp {
			m.scroll(-3)
		} else {
			m.scroll(3)
		}
	case tea.MouseClickMsg:
		conv := m.ledger.conv
		if at.Y < len(conv.rows) && conv.rows[at.Y].item >= 0 {
			return m.openItem(conv.items[conv.rows[at.Y].item])
		}
	}
	return nil
}
