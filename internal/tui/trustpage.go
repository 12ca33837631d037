package tui

import tea "charm.land/bubbletea/v2"

// A trustPage asks whether the workspace's own settings may count in full. It is
// shown once for a workspace that has such settings and is not trusted.
type trustPage struct {
	held []string // what does not count as long as it is not trusted
}

// untrustedMsg brings what does not count.
type untrustedMsg []string

func (m *Model) loadTrust() tea.Cmd {
	if m.opt.Trust == nil {
		return nil
	}
	return func() tea.Msg {
		held, err := m.opt.Trust.Held(m.ctx)
		if err != nil {
			return failure{err}
		}
		if len(held) == 0 {
			return nil
		}
		return untrustedMsg(held)
	}
}

func (p *trustPage) title() string { return "Is this workspace yours?" }

func (p *trustPage) hints(*Model) []string {
	return []string{"y", "trust it", "n", "do not; this is not asked again", "Esc", "later"}
}

func (p *trustPage) key(m *Model, k tea.KeyPressMsg) (tea.Cmd, bool) {
	switch k.String() {
	case "y":
		return p.decide(m, true, "the workspace is trusted; `synapse trust --revoke` takes it back"), false
	case "n":
		return p.decide(m, false, "not trusted; `synapse trust` changes that"), false
	case "esc", "q":
		return nil, false
	}
	return nil, true
}

func (p *trustPage) decide(m *Model, yes bool, word string) tea.Cmd {
	return func() tea.Msg {
		if err := m.opt.Trust.Decide(m.ctx, yes); err != nil {
			return failure{err}
		}
		return done{word}
	}
}

func (p *trustPage) draw(m *Model, columns, rows int) ([]string, *tea.Cursor) {
	var out []string
	text := "Its settings name providers, endpoints, commands or directories. Whoever wrote them could have your keys sent to a server of theirs, or commands run. Until you trust the workspace they do not count:"
	out = append(out, wrapText(text, "", columns)...)
	out = append(out, "")
	for _, h := range p.held {
		out = append(out, marked(m.th.warn.paint("! "), "  ", wrapText(oneLine(h), m.th.warn, columns-2))...)
	}
	if len(out) > rows {
		out = append(out[:rows-1:rows-1], m.th.faint.paint("  …"))
	}
	return out, nil
}
