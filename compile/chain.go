package compile

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// A link is a definition seen as a caller: what it denies itself, and with that
// everything below it. A sub-agent that may not edit can't have the edit done
// by a sub-agent of its own. Its list of tools is not passed on: a caller that
// needs no more than two tools says nothing against an agent that has others.
type link struct {
	id     int // within the compilation
	def    *agents.Definition
	denied map[string]bool // tools that exist
	ruled  map[string]bool // tools that exist and that a restricting permission rule is about
}

func (c *compiler) newLink(def *agents.Definition) *link {
	j := newJudge(&ToolInput{Tools: c.in.Tools, Definition: def})
	c.links++
	l := &link{id: c.links, def: def, denied: map[string]bool{}, ruled: map[string]bool{}}
	for _, t := range j.tools {
		if _, denied := j.denies(def, t.Name); denied {
			l.denied[t.Name] = true
		}
		for _, r := range def.Permissions {
			// A rule for no tool here is taken to be about every one: whoever
			// judges calls may know better what it means.
			if r.Action != policy.Allow && (len(j.resolve(r.Tool)) == 0 || j.names([]string{r.Tool}, t.Name)) {
				l.ruled[t.Name] = true
			}
		}
	}
	return l
}

// restricts reports whether the definition denies anything.
func (l *link) restricts() bool { return len(l.denied) > 0 || len(l.ruled) > 0 }

// A target is a definition seen as a sub-agent that can be called.
type target struct {
	*link
	names    []string // what callers may write
	has      []string // the tools it has when no caller restricts it and there is depth left
	reported bool     // its diagnostics are in
}

func (c *compiler) newTarget(def *agents.Definition) *target {
	t := &target{link: c.newLink(def), names: []string{def.Name}}
	known := func(name string) bool {
		return slices.ContainsFunc(c.in.Agents, func(d *agents.Definition) bool { return d.Name == name })
	}
	aliases := agents.BuiltinAliases()
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if aliases[alias] == def.Name && !known(alias) {
			t.names = append(t.names, alias)
		}
	}
	if def.Name == DefaultAgent {
		t.names = append(t.names, "")
	}
	p, _, _ := Effective(ToolInput{
		App: c.in.App, Tools: c.in.Tools, Restrictions: c.in.Restrictions,
		Definition: def, DepthLeft: 1, NoSubagents: c.in.NoSubagents,
	})
	t.has = p.Allow
	return t
}

// nests reports whether the target delegates where there is depth left.
func (t *target) nests(under chain) bool {
	return slices.Contains(t.has, toolTask) &&
		!slices.ContainsFunc(under, func(l *link) bool { return l.denied[toolTask] })
}

// binding returns those of the callers whose restrictions make the target
// another agent than without them. Where it may delegate, all of them do: they
// bind what is below it.
func (t *target) binding(under chain, nest bool) chain {
	if nest && t.nests(under) {
		return under.without(t.def)
	}
	var affecting chain
	for _, l := range under.without(t.def) {
		if slices.ContainsFunc(t.has, func(tool string) bool { return l.denied[tool] || l.ruled[tool] }) {
			affecting = append(affecting, l)
		}
	}
	return affecting
}

// A chain are the callers above a spec that restrict it, by name. It is a set:
// in which order they called each other changes nothing.
type chain []*link

// mainCallers returns the chain below the main agent.
func (c *compiler) mainCallers() chain {
	if c.in.Main == nil {
		return nil
	}
	for _, t := range c.targets {
		if t.def == c.in.Main {
			return chain(nil).join(t.link)
		}
	}
	return chain(nil).join(c.newLink(c.in.Main))
}

// join returns the chain below a further caller. Callers that deny nothing
// which others don't are left out, so that agents with the same denials pass
// on the same chain.
func (ch chain) join(l *link) chain {
	if !l.restricts() || slices.ContainsFunc(ch, func(m *link) bool { return m.def == l.def }) {
		return ch
	}
	all := append(slices.Clone(ch), l)
	slices.SortFunc(all, func(a, b *link) int {
		return cmp.Or(cmp.Compare(a.def.Name, b.def.Name), cmp.Compare(a.id, b.id))
	})
	var kept chain
	denied := map[string]bool{}
	for _, m := range all {
		adds := len(m.ruled) > 0
		for tool := range m.denied {
			adds = adds || !denied[tool]
		}
		if adds {
			kept = append(kept, m)
			maps.Copy(denied, m.denied)
		}
	}
	return kept
}

// without returns the chain without a definition, which denies to itself what
// it denies as a caller.
func (ch chain) without(def *agents.Definition) chain {
	return slices.DeleteFunc(slices.Clone(ch), func(l *link) bool { return l.def == def })
}

func (ch chain) definitions() []*agents.Definition {
	var defs []*agents.Definition
	for _, l := range ch {
		defs = append(defs, l.def)
	}
	return defs
}

// key returns a text that is the same for equal chains only.
func (ch chain) key() string {
	var b []byte
	for _, l := range ch {
		b = strconv.AppendInt(append(b, ' '), int64(l.id), 10)
	}
	return string(b)
}
