package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/workflow"
)

// toolWorkflow starts a workflow. Like task it starts agents, and is had under
// the same conditions.
const toolWorkflow = "run_workflow"

// CheckWorkflows says what is wrong with workflows, given the agents and the
// workflows there are, and returns those that can run, by name.
func CheckWorkflows(defs []*workflow.Definition, all []*agents.Definition) (good []*workflow.Definition, diags []agents.Diagnostic) {
	var names workflow.Names
	for _, d := range all {
		if notOffered(d) == "" {
			names.Agents = append(names.Agents, d.Name)
		}
	}
	slices.Sort(names.Agents)
	for _, d := range defs {
		names.Workflows = append(names.Workflows, d.Name)
	}
	slices.Sort(names.Workflows)
	bad := map[string]bool{}
	for _, d := range defs {
		its := names
		for name := range d.Funcs {
			its.Funcs = append(its.Funcs, name)
		}
		slices.Sort(its.Funcs)
		found := workflow.Check(d, its)
		diags = append(diags, found...)
		bad[d.Name] = agents.HasErrors(found)
	}
	for _, d := range defs {
		if path := cycle(d.Name, defs, nil); path != nil && !bad[d.Name] {
			bad[d.Name] = true
			diags = append(diags, agents.Diagnostic{
				Pos: agents.Pos{File: d.File, Line: 1, Column: 1}, Severity: agents.Error, Code: workflow.CodeReference,
				Message: "workflow " + d.Name + " would run itself: " + strings.Join(path, " → "),
			})
		}
	}
	for again := true; again; { // what a broken one is part of can't run either
		again = false
		for _, d := range defs {
			for _, n := range d.Flow.Nodes {
				if n.Kind == synapse.NodeWorkflow && bad[n.Use] && !bad[d.Name] {
					bad[d.Name], again = true, true
					diags = append(diags, agents.Diagnostic{
						Pos: agents.Pos{File: d.File, Line: 1, Column: 1}, Severity: agents.Error, Code: workflow.CodeReference,
						Message: fmt.Sprintf("node %s: the workflow %q has errors", n.Name, n.Use),
					})
				}
			}
		}
	}
	for _, d := range defs {
		if !bad[d.Name] {
			good = append(good, d)
		}
	}
	slices.SortFunc(good, func(a, b *workflow.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return good, diags
}

// cycle returns the path on which a workflow comes back to itself.
func cycle(name string, defs []*workflow.Definition, path []string) []string {
	path = append(slices.Clone(path), name)
	if len(path) > 1 && name == path[0] {
		return path
	}
	if len(path) > len(defs) {
		return nil // a cycle further down, which is somebody else's
	}
	for _, d := range defs {
		if d.Name != name {
			continue
		}
		for _, n := range d.Flow.Nodes {
			if n.Kind == synapse.NodeWorkflow {
				if found := cycle(n.Use, defs, path); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// WorkflowID is the id of a workflow's spec.
func WorkflowID(name string) string { return "workflow:" + name }

// FuncName is the name under which a program's function is called by the
// workflow that it is part of.
func FuncName(workflow, name string) string { return workflow + "." + name }

// workflows compiles the workflows and the agents in them, which are one level
// below the main agent: a workflow is a way to call agents, not one itself.
func (c *compiler) workflows() error {
	if c.in.NoSubagents.On {
		return nil
	}
	for _, d := range c.in.Workflows {
		flow := d.Flow
		flow.Nodes = slices.Clone(flow.Nodes)
		for i := range flow.Nodes {
			n := &flow.Nodes[i]
			switch n.Kind {
			case synapse.NodeWorkflow:
				n.Spec = WorkflowID(n.Use)
			case synapse.NodeFunction:
				n.Use = FuncName(d.Name, n.Use)
			case synapse.NodeAgent:
				if err := c.nodeAgent(d, n); err != nil {
					return err
				}
			}
		}
		spec := synapse.Spec{
			ID: WorkflowID(d.Name), Agent: d.Name, Description: d.Description, Limits: d.Limits, Flow: &flow,
			Origin: cmp.Or(d.File, "workflow "+d.Name),
		}
		data, err := json.Marshal(struct {
			Flow   *synapse.Flow
			Limits synapse.Limits
		}{&flow, d.Limits})
		if err != nil {
			return fmt.Errorf("compile: workflow %q: %w", d.Name, err)
		}
		sum := sha256.Sum256(data)
		spec.Digest = hex.EncodeToString(sum[:])
		c.ids[spec.ID] = true
		c.flows = append(c.flows, spec)
	}
	return nil
}

// nodeAgent compiles the agent of a node. One without a schema of its own gets
// that of the state key which its output joins.
func (c *compiler) nodeAgent(d *workflow.Definition, n *synapse.FlowNode) error {
	i := slices.IndexFunc(c.targets, func(t *target) bool { return t.def.Name == n.Use })
	if i < 0 {
		return fmt.Errorf("compile: workflow %q: node %s: there is no agent %q", d.Name, n.Name, n.Use)
	}
	t := c.targets[i]
	nest := c.maxDepth > 1
	var schema json.RawMessage
	for _, key := range d.Flow.State {
		if key.Name == n.Output {
			schema = workflow.OutputSchema(key, n.ForEach != "")
		}
	}
	if len(schema) == 0 || len(t.def.OutputSchema) > 0 {
		id, fresh, err := c.ensure(t, 1, nest, c.top)
		if err != nil {
			return err
		}
		n.Spec = id
		if fresh && nest && t.nests(c.top) {
			c.pending = append(c.pending, group{under: c.top.join(t.own), callers: []string{id}})
		}
		return nil
	}
	def := t.def.Clone()
	def.OutputSchema = schema
	typed := *t
	typed.def = def
	left := 0
	if nest {
		left = c.maxDepth - 1
	}
	s, err := c.subSpec(&typed, left, t.binding(c.top, nest))
	if err != nil {
		return err
	}
	n.Spec = c.unique(fmt.Sprintf("%s(%s.%s)", t.def.Name, d.Name, n.Name))
	c.add(s, n.Spec)
	if nest && t.nests(c.top) {
		c.pending = append(c.pending, group{under: c.top.join(t.own), callers: []string{n.Spec}})
	}
	return nil
}

// joinFlows adds the workflows to the graph, and an edge from every agent that
// may run them.
func (c *compiler) joinFlows() {
	n := len(c.graph.Specs)
	for _, spec := range c.flows {
		c.graph.Specs = append(c.graph.Specs, spec)
		for _, caller := range c.graph.Specs[:n] {
			if slices.Contains(caller.Policy.Allow, toolWorkflow) {
				c.graph.Edges = append(c.graph.Edges, synapse.Edge{Kind: synapse.EdgeFlow, From: caller.ID, To: spec.ID, Names: []string{spec.Agent}})
			}
		}
	}
}
