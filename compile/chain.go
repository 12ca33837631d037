package compile

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// A link is what a definition denies itself as a caller, and with that
// everything below it. A sub-agent that may not edit can't have the edit done by
// a sub-agent of its own. Its list of tools is not passed on: a caller that
// needs no more than two tools says nothing against an agent that has others.
//
// Definitions that deny the same share one link, so that what they call is the
// same specs.
type link struct {
	id     int // within the compilation
	def    *agents.Definition
	names  []string        // of the definitions that share it, def's first
	denied map[string]bool // tools that exist
	ruled  map[string]bool // tools that exist and that a restricting permission rule is about
}

// link returns the link of a definition that may become a caller.
func (c *compiler) link(def *agents.Definition) *link {
	l := &link{id: len(c.links) + 1, def: def, names: []string{def.Name}, denied: map[string]bool{}, ruled: map[string]bool{}}
	h := c.host
	for _, t := range h.tools {
		if _, denied := h.denies(def, t.Name); denied {
			l.denied[t.Name] = true
		}
		for _, r := range def.Permissions {
			// A rule for no tool here is taken to be about every one: whoever
			// judges calls may know better what it means.
			if r.Action != policy.Allow && (len(h.resolve(r.Tool)) == 0 || h.names([]string{r.Tool}, t.Name)) {
				l.ruled[t.Name] = true
			}
		}
	}
	for _, other := range c.links {
		if maps.Equal(l.denied, other.denied) && sameRules(def.Permissions, other.def.Permissions) {
			if !slices.Contains(other.names, def.Name) {
				other.names = append(other.names, def.Name)
			}
			return other
		}
	}
	c.links = append(c.links, l)
	return l
}

// sameRules reports whether two sources judge every call alike, whatever lines
// they stand on.
func sameRules(a, b []policy.Rule) bool {
	if !restricts(a) && !restricts(b) {
		return true // sources that only allow are not passed on
	}
	return slices.EqualFunc(a, b, func(x, y policy.Rule) bool {
		return x.Tool == y.Tool && x.Pattern == y.Pattern && x.Action == y.Action
	})
}

// restricts reports whether the definition denies anything.
func (l *link) restricts() bool { return len(l.denied) > 0 || len(l.ruled) > 0 }

// A target is a definition seen as a sub-agent that can be called.
type target struct {
	def      *agents.Definition
	own      *link    // nil for an agent that never delegates
	names    []string // what callers may write
	has      []string // the tools it has when no caller restricts it and there is depth left
	reported bool     // its diagnostics are in
}

func (c *compiler) newTarget(def *agents.Definition) *target {
	t := &target{def: def, names: []string{def.Name}}
	known := func(name string) bool {
		return slices.ContainsFunc(c.in.Agents, func(d *agents.Definition) bool { return d.Name == name })
	}
	aliases := agents.BuiltinAliases()
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if aliases[alias] == def.Name && !known(alias) {
			t.names = append(t.names, alias)
		}
	}
	if q := def.QualifiedName(); q != def.Name && !known(q) {
		t.names = append(t.names, q)
	}
	if def.Name == DefaultAgent {
		t.names = append(t.names, "")
	}
	p, _ := c.judge(def, ToolInput{DepthLeft: 1}).policy()
	t.has = p.Allow
	if slices.Contains(t.has, toolTask) {
		t.own = c.link(def)
	}
	return t
}

// nests reports whether the target delegates where there is depth left.
func (t *target) nests(under chain) bool {
	return t.own != nil && !slices.ContainsFunc(under, func(l *link) bool { return l.denied[toolTask] })
}

// binding returns those of the callers whose restrictions make the target
// another agent than without them. Where it may delegate, all of them do: they
// bind what is below it.
func (t *target) binding(under chain, nest bool) chain {
	if nest && t.nests(under) {
		return under.without(t.own)
	}
	var affecting chain
	for _, l := range under.without(t.own) {
		if slices.ContainsFunc(t.has, func(tool string) bool { return l.denied[tool] || l.ruled[tool] }) {
			affecting = append(affecting, l)
		}
	}
	return affecting
}

// A chain are the links of the callers above a spec that restrict it, by their
// IDs. It is a set: in which order they called each other changes nothing.
type chain []*link

// join returns the chain below a further caller. Callers that deny nothing
// which others don't are left out, so that agents with the same denials pass
// on the same chain.
func (ch chain) join(l *link) chain {
	if !l.restricts() || slices.ContainsFunc(ch, func(m *link) bool { return m == l }) {
		return ch
	}
	all := append(slices.Clone(ch), l)
	slices.SortFunc(all, func(a, b *link) int {
		return cmp.Compare(a.id, b.id)
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

// without returns the chain without the agent's own link: what it denies itself
// needs no caller to deny it.
func (ch chain) without(own *link) chain {
	return slices.DeleteFunc(slices.Clone(ch), func(l *link) bool { return l == own })
}

func (ch chain) callers() []Caller {
	var callers []Caller
	for _, l := range ch {
		callers = append(callers, Caller{Definition: l.def, Names: l.names})
	}
	return callers
}

// key returns a text that is the same for equal chains only.
func (ch chain) key() string {
	var b []byte
	for _, l := range ch {
		b = strconv.AppendInt(append(b, ' '), int64(l.id), 10)
	}
	return string(b)
}
