package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// CodeHandoffUnresolved warns of a name in handoffs that no agent takes over.
const CodeHandoffUnresolved = "handoff-unresolved"

// TransferTool is the tool that hands the conversation over to an agent. What
// tools can't be called is written as _.
func TransferTool(agent string) string {
	return "transfer_to_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, agent)
}

// receivers returns the definitions that take conversations over, by name. The
// main agent's own is none: it is the one that begins.
func (c *compiler) receivers() []*agents.Definition {
	var out []*agents.Definition
	for _, d := range c.in.Agents {
		if d.Ownership == agents.OwnershipHandoff && !d.Broken && !d.Disabled && (c.in.Main == nil || c.in.Main.Name != d.Name) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *agents.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *compiler) mainName() string {
	if c.in.Main != nil {
		return c.in.Main.Name
	}
	return MainName
}

// handsTo returns whom an agent may hand over to; nil is the main agent's
// definition, which is built in.
func (c *compiler) handsTo(def *agents.Definition) (names []string) {
	all := c.receivers()
	if len(all) == 0 {
		return nil
	}
	isMain := def == nil || def.Name == c.mainName()
	if def != nil && def.Handoffs != nil {
		for _, name := range def.Handoffs {
			if name == c.mainName() && !isMain || name != def.Name && slices.ContainsFunc(all, func(d *agents.Definition) bool { return d.Name == name }) {
				names = append(names, name)
			}
		}
		return names
	}
	if !isMain {
		names = append(names, c.mainName())
	}
	for _, d := range all {
		if def == nil || d.Name != def.Name {
			names = append(names, d.Name)
		}
	}
	return names
}

func (c *compiler) transfersOf(def *agents.Definition) []string {
	var tools []string
	for _, name := range c.handsTo(def) {
		if tool := TransferTool(name); !slices.Contains(tools, tool) { // of two that read alike, the first
			tools = append(tools, tool)
		}
	}
	return tools
}

// transfers lets an agent have the tools with which it hands over, unless
// something takes them away.
func (j *judge) transfers(p *policy.Policy, tools []string) {
	for _, name := range tools {
		if reason, denied := j.blocked(HostTool{Name: name, ReadOnly: true}); denied {
			p.Block[name] = reason
			continue
		}
		p.Allow = append(p.Allow, name)
	}
}

// owners compiles the agents that take conversations over. They are bound by
// what binds the main agent, and delegate, where they may, to the same level.
func (c *compiler) owners(level []group) ([]group, error) {
	ids := map[string]string{c.mainName(): c.graph.Entry}
	defs := map[string]*agents.Definition{c.mainName(): c.in.Main}
	order := []string{c.mainName()}
	for _, def := range c.receivers() {
		s := &compiled{owner: true, transfers: c.transfersOf(def), spec: synapse.Spec{
			Agent: def.Name, Description: def.Description, Origin: file(def),
			Limits: c.in.Limits.Min(ownLimits(def)), History: def.HandoffHistory,
		}}
		var choice Choice
		choice, s.diagnostics = ResolveModel(def, c.main, c.in.Models)
		if err := c.finish(s, def, choice, ToolInput{DepthLeft: c.maxDepth, Callers: c.top.callers()}); err != nil {
			return nil, err
		}
		for _, name := range def.Handoffs {
			if !slices.Contains(c.handsTo(def), name) {
				s.diagnostics = append(s.diagnostics, warning(def, "handoffs", CodeHandoffUnresolved, "",
					"handoffs: %q is no agent that takes conversations over, so nothing is handed to it", name))
			}
		}
		c.diagnostics = append(c.diagnostics, s.diagnostics...)
		id := c.unique(def.Name)
		c.add(s, id)
		ids[def.Name], defs[def.Name] = id, def
		order = append(order, def.Name)
		if slices.Contains(s.spec.Policy.Allow, toolTask) {
			level = append(level, group{under: c.top.join(c.link(def)), callers: []string{id}})
		}
	}
	for _, from := range order {
		seen := map[string]bool{}
		for _, to := range c.handsTo(defs[from]) {
			tool := TransferTool(to)
			if seen[tool] {
				continue
			}
			seen[tool] = true
			if ids[to] == "" {
				return nil, fmt.Errorf("compile: agent %q hands over to %q, which was not compiled", from, to)
			}
			c.graph.Edges = append(c.graph.Edges, synapse.Edge{Kind: synapse.EdgeTransfer, From: ids[from], To: ids[to], Names: []string{to, tool}})
		}
	}
	return level, nil
}
