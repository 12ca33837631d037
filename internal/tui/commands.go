package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A command is what a line that begins with "/" does. This table is all that the
// screen knows of commands: the palette, the help and the dispatch read it.
type command struct {
	name  string
	args  string // what may follow, in words
	about string
	// offered says whether what the command needs is there; nil is always.
	offered func(*Options) bool
	run     func(m *Model, args string) tea.Cmd
}

// commands lists the commands, in the order in which they are shown. It is a
// function, since the help that one of them shows is made of it.
func commands() []command {
	hasAgents := func(o *Options) bool { return o.Agents != nil }
	hasModels := func(o *Options) bool { return o.Models != nil }
	hasKept := func(o *Options) bool { return o.Conversations != nil }
	return []command{
		{"help", "", "keys and commands", nil, func(m *Model, _ string) tea.Cmd { return m.openHelp() }},
		{"model", "", "the main agent's model and reasoning effort", hasModels, func(m *Model, _ string) tea.Cmd { return m.openModels(mainRow) }},
		{"subagent", "[name]", "the sub-agents' models and reasoning efforts", hasModels, func(m *Model, args string) tea.Cmd { return m.openModels(args) }},
		{"subagents", "", "switch agents on and off", hasAgents, func(m *Model, _ string) tea.Cmd { return m.openAgents() }},
		{"agents", "[new]", "the agents, or a new one", hasAgents, func(m *Model, args string) tea.Cmd { return m.agentsCommand(args) }},
		{"explain", "[name]", "what an agent may do, and why", hasAgents, func(m *Model, args string) tea.Cmd { return m.openExplain(args) }},
		{"sessions", "", "conversations to go on with", hasKept, func(m *Model, _ string) tea.Cmd { return m.openKept() }},
		{"resume", "[id]", "go on with the last conversation, or with that one", hasKept, func(m *Model, args string) tea.Cmd { return m.resume(args) }},
		{"trace", "[id]", "what past requests did", func(o *Options) bool { return o.Traces != nil }, func(m *Model, args string) tea.Cmd { return m.openTraces(args) }},
		{"context", "", "what the conversation takes of the model's window", nil, func(m *Model, _ string) tea.Cmd { return m.openContext() }},
		{"config", "", "the settings and where each was set", func(o *Options) bool { return o.Config != nil }, func(m *Model, _ string) tea.Cmd { return m.openConfig() }},
		{"theme", "[name]", "colours", nil, func(m *Model, args string) tea.Cmd { return m.openThemes(args) }},
		{"quit", "", "leave", nil, func(m *Model, _ string) tea.Cmd { return m.leave() }},
	}
}

// offered returns the commands that can be used.
func (m *Model) offered() []command {
	var out []command
	for _, c := range commands() {
		if c.offered == nil || c.offered(&m.opt) {
			out = append(out, c)
		}
	}
	return out
}

func (m *Model) commandEntries() []entry {
	var out []entry
	for _, c := range m.offered() {
		out = append(out, entry{value: "/" + c.name, name: "/" + c.name, about: strings.TrimSpace(c.args + "  " + c.about), run: true})
	}
	return out
}

// commandLine takes a line that gives a command apart. A message may begin with a
// path: a command's name holds no slash.
func commandLine(text string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || strings.Contains(text, "\n") {
		return "", "", false
	}
	name, args, _ = strings.Cut(rest, " ")
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return "", "", false
	}
	return name, strings.TrimSpace(args), true
}

// command does what a line says.
func (m *Model) command(name, args string) tea.Cmd {
	all := m.offered()
	for _, c := range all {
		if c.name == name {
			return c.run(m, args)
		}
	}
	near := rank(name, all, func(c command) string { return c.name })
	if len(near) > 0 {
		return m.say("there is no /" + name + ": did you mean /" + near[0].name + "?")
	}
	return m.say("there is no /" + name + ": /help lists the commands")
}
