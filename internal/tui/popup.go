package tui

import (
	"strings"
)

// A popup offers ways to go on with the word at the cursor.
type popup struct {
	start   int // of the word in the editor
	word    string
	list    list
	entries []entry
}

type entry struct {
	value string // what is put in the word's place
	name  string
	about string
	run   bool // choosing it does it at once
}

// popupRows bounds the height of a popup.
const popupRows = 8

// refreshPopup offers what fits what is being written.
func (m *Model) refreshPopup() {
	var entries []entry
	start := -1
	word := ""
	text := m.input.text()
	switch {
	case strings.HasPrefix(text, "/") && !strings.ContainsAny(text, " \n") && m.input.at == len(m.input.cells):
		start, word = 0, text[1:]
		entries = rank(word, m.commandEntries(), func(e entry) string { return e.name[1:] })
	default:
		if word, start = m.input.word("@"); start >= 0 {
			entries = rank(word, m.mentions(), func(e entry) string { return e.name })
		}
	}
	if start < 0 || len(entries) == 0 {
		m.popup = nil
		return
	}
	if m.popup != nil && m.popup.start == start && m.popup.word == word {
		m.popup.entries = entries
		return
	}
	m.popup = &popup{start: start, word: word, entries: entries[:min(len(entries), 100)]}
}

// mentions are what may follow an "@": the agents that can be called, then the
// files.
func (m *Model) mentions() []entry {
	out := make([]entry, 0, len(m.agents.Agents)+len(m.files))
	for _, a := range m.agents.Agents {
		if a.On && a.Callable {
			out = append(out, entry{value: "@" + a.Name + " ", name: a.Name, about: a.Description})
		}
	}
	for _, f := range m.files {
		out = append(out, entry{value: "@" + f + " ", name: f, about: "file"})
	}
	return out
}

// accept puts the chosen entry in the place of the word, and reports whether it
// is to be done at once.
func (m *Model) accept() bool {
	e := m.popup.entries[m.popup.list.at]
	m.input.replace(m.popup.start, e.value)
	m.popup = nil
	return e.run
}

// draw draws the popup.
func (p *popup) draw(columns, rows int, th *theme) []string {
	from, to := p.list.window(len(p.entries), min(rows, popupRows))
	names := 0
	for _, e := range p.entries[from:to] {
		names = max(names, width(e.name))
	}
	names = min(names, columns/2)
	var out []string
	for i := from; i < to; i++ {
		e := p.entries[i]
		name, about := fill(oneLine(e.name), names), cut(oneLine(e.about), max(0, columns-names-5))
		if i == p.list.at {
			out = append(out, th.selected.paint(fill(" "+name+"  "+about, columns)))
			continue
		}
		out = append(out, " "+th.accent.paint(name)+"  "+th.faint.paint(about))
	}
	return out
}
