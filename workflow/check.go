package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/expr"
	"github.com/synapse-agents/synapse/internal/spelling"
)

// Names are what nodes may refer to.
type Names struct {
	Agents    []string
	Workflows []string
	Funcs     []string
}

// Check says what is wrong with a workflow, before anything of it runs.
func Check(d *Definition, names Names) []agents.Diagnostic {
	c := &checker{parser: parser{d: d}, names: names, nodes: map[string]bool{}}
	c.check()
	return c.diags
}

type checker struct {
	parser
	names Names
	nodes map[string]bool
	scope *expr.Scope
}

func (c *checker) check() {
	d := c.d
	if strings.TrimSpace(d.Name) == "" {
		c.errorf("name", CodeValue, "", "the workflow has no name")
	}
	if len(d.Flow.Nodes) == 0 {
		c.errorf("nodes", CodeValue, "", "the workflow has no nodes")
		return
	}
	keys := map[string]bool{}
	ok := c.schema("input", d.Flow.Input)
	for _, key := range d.Flow.State {
		keys[key.Name] = true
		ok = c.schema("state."+key.Name, key.Schema) && ok
		c.reducer(key)
	}
	for _, n := range d.Flow.Nodes {
		if c.nodes[n.Name] {
			c.errorf("nodes."+n.Name, CodeValue, "", "two nodes are named %q", n.Name)
		}
		c.nodes[n.Name] = true
	}
	if ok {
		var err error
		if c.scope, err = expr.NewScope(&d.Flow); err != nil {
			c.errorf("", CodeExpression, "", "%v", err)
		}
	}
	for i := range d.Flow.Nodes {
		c.node(&d.Flow.Nodes[i], keys)
	}
	for i, e := range d.Flow.Edges {
		c.edge("edges."+strconv.Itoa(i), e)
	}
	c.template("result", d.Flow.Result, c.scope)
	if !agents.HasErrors(c.diags) {
		c.paths()
	}
}

func (c *checker) schema(path string, raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	var s jsonschema.Schema
	err := json.Unmarshal(raw, &s)
	if err == nil {
		_, err = s.Resolve(nil)
	}
	if err != nil {
		c.errorf(path, CodeValue, "", "%s: it is no JSON Schema: %v", path, err)
	}
	return err == nil
}

// reducer refuses a key whose outputs could never join it.
func (c *checker) reducer(key synapse.StateKey) {
	var s struct{ Type any }
	_ = json.Unmarshal(key.Schema, &s) // schema has said what is wrong
	t, _ := s.Type.(string)
	want := map[synapse.Reduce]string{synapse.ReduceAppend: "array", synapse.ReduceMerge: "object"}[key.Reduce]
	if want != "" && t != "" && t != want {
		path := "state." + key.Name
		c.errorf(path+".reduce", CodeValue, "", "%s: reduce %s needs the type %s, found %s", path, key.Reduce, want, t)
	}
}

// known says that a name is none of those there are.
func (c *checker) known(path, what, name string, list []string) bool {
	if slices.Contains(list, name) {
		return true
	}
	hint := "there are: " + strings.Join(list, ", ")
	if len(list) == 0 {
		hint = "there is none"
	}
	if near := spelling.Nearest(name, list); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.errorf(path, CodeReference, hint, "there is no %s %q", what, name)
	return false
}

func (c *checker) node(n *synapse.FlowNode, keys map[string]bool) {
	path := "nodes." + n.Name
	switch n.Kind {
	case synapse.NodeAgent:
		c.known(path+".agent", "agent", n.Use, c.names.Agents)
		if strings.TrimSpace(n.Prompt) == "" {
			c.errorf(path, CodeValue, "", "node %s: an agent needs a prompt: it is all that the agent will know", n.Name)
		}
	case synapse.NodeWorkflow:
		c.known(path+".workflow", "workflow", n.Use, c.names.Workflows)
	case synapse.NodeFunction:
		c.known(path+".func", "function", n.Use, c.names.Funcs)
	case synapse.NodeApprove:
		if n.ForEach != "" {
			c.errorf(path+".for_each", CodeValue, "ask once, about the whole list", "node %s: approve can't be asked for each of a list", n.Name)
		}
	}
	if n.Kind != synapse.NodeAgent && n.Kind != synapse.NodeApprove && n.Prompt != "" {
		c.errorf(path+".prompt", CodeValue, "", "node %s: only an agent has a prompt", n.Name)
	}
	if n.Kind != synapse.NodeWorkflow && len(n.Input) > 0 {
		c.errorf(path+".input", CodeValue, "", "node %s: only a workflow has an input; an agent knows its prompt", n.Name)
	}
	if n.Output != "" && !keys[n.Output] {
		c.known(path+".output", "state key", n.Output, c.stateKeys())
	}
	if n.Then == synapse.ThenGoto && n.Goto != synapse.FlowEnd {
		c.known(path+".on_error.then", "node", n.Goto, c.nodeNames(synapse.FlowEnd))
	}
	scope := c.scope
	if n.ForEach == "" {
		if n.As != "" || n.MaxParallel != 0 {
			c.errorf(path, CodeValue, "", "node %s: as and max_parallel belong to for_each", n.Name)
		}
	} else {
		if n.As == "" {
			n.As = "item"
		}
		if scope != nil && c.name(path+".as", "an element", n.As) {
			list, err := scope.List(n.ForEach)
			if err != nil {
				c.expression(path+".for_each", err)
			}
			if scope, err = scope.WithItem(n.As, list); err != nil {
				c.errorf(path+".as", CodeExpression, "", "%v", err)
			}
		}
	}
	c.template(path+".prompt", n.Prompt, scope)
	if scope != nil && len(n.Input) > 0 {
		var input any
		if err := json.Unmarshal(n.Input, &input); err != nil {
			c.errorf(path+".input", CodeValue, "", "node %s: input: %v", n.Name, err)
		} else if _, err := scope.Tree(input); err != nil {
			c.expression(path+".input", err)
		}
	}
}

func (c *checker) stateKeys() []string {
	var out []string
	for _, k := range c.d.Flow.State {
		out = append(out, k.Name)
	}
	return out
}

func (c *checker) nodeNames(more ...string) []string {
	var out []string
	for _, n := range c.d.Flow.Nodes {
		out = append(out, n.Name)
	}
	return append(out, more...)
}

func (c *checker) template(path, text string, scope *expr.Scope) {
	if scope == nil || text == "" {
		return
	}
	if _, err := scope.Template(text); err != nil {
		c.expression(path, err)
	}
}

// expression reports what is wrong with an expression, at its place in the file.
func (c *checker) expression(path string, err error) {
	offset := 0
	var e *expr.Error
	if errors.As(err, &e) {
		offset = e.Offset
	}
	c.diags = append(c.diags, agents.Diagnostic{
		Pos: c.d.at(path, offset), Severity: agents.Error, Code: CodeExpression, Message: path + ": " + err.Error(),
	})
}

func (c *checker) edge(path string, e synapse.FlowEdge) {
	if e.From == "" || e.To == "" {
		c.errorf(path, CodeValue, "", "%s: an edge needs from and to", path)
		return
	}
	if e.From != synapse.FlowStart && !c.nodes[e.From] {
		c.known(path+".from", "node", e.From, c.nodeNames(synapse.FlowStart))
	}
	if e.To != synapse.FlowEnd && !c.nodes[e.To] {
		c.known(path+".to", "node", e.To, c.nodeNames(synapse.FlowEnd))
	}
	if e.When != "" && c.scope != nil {
		if _, err := c.scope.Condition(e.When); err != nil {
			c.expression(path+".when", err)
		}
	}
}

// paths finds nodes that nothing leads to, and nodes that lead to no end.
func (c *checker) paths() {
	forth, back := map[string][]string{}, map[string][]string{}
	link := func(from, to string) {
		forth[from] = append(forth[from], to)
		back[to] = append(back[to], from)
	}
	for _, e := range c.d.Flow.Edges {
		link(e.From, e.To)
	}
	for _, n := range c.d.Flow.Nodes {
		if n.Then == synapse.ThenGoto {
			link(n.Name, n.Goto)
		}
	}
	reached, ending := walk(synapse.FlowStart, forth), walk(synapse.FlowEnd, back)
	if len(forth[synapse.FlowStart]) == 0 {
		c.errorf("edges", CodeUnreachable, "add {from: start, to: NODE}", "no edge leads from start")
		return
	}
	for _, n := range c.d.Flow.Nodes {
		switch {
		case !reached[n.Name]:
			c.errorf("nodes."+n.Name, CodeUnreachable, "add an edge to it, or take it out", "no path leads from start to the node %q", n.Name)
		case !ending[n.Name]:
			c.errorf("nodes."+n.Name, CodeNoEnd, fmt.Sprintf("add {from: %s, to: end}, with a condition if need be", n.Name), "no path leads from the node %q to end", n.Name)
		}
	}
}

func walk(from string, edges map[string][]string) map[string]bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, next := range edges[todo[0]] {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return seen
}
