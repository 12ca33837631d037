package run

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/expr"
)

// A preparedFlow is a workflow whose expressions and schemas have been read.
type preparedFlow struct {
	flow   *synapse.Flow
	input  *jsonschema.Resolved // nil: any object
	nodes  []*preparedNode
	byName map[string]*preparedNode
	first  []*preparedEdge // from the start
	keys   map[string]*preparedKey
	result *expr.Template
}

type preparedNode struct {
	*synapse.FlowNode
	index   int // the node's place, which is the order of everything
	spec    *preparedSpec
	fn      synapse.NodeFunc
	prompt  *expr.Template
	input   *expr.Tree
	forEach *expr.Expr
	key     *preparedKey
	out     []*preparedEdge
	sources []string // where edges to it come from
}

type preparedEdge struct {
	to   *preparedNode // nil: the end
	from string
	when *expr.Expr // nil: always
}

type preparedKey struct {
	synapse.StateKey
	schema *jsonschema.Resolved // of the value; nil: any
	items  *jsonschema.Resolved // of what is appended; nil: any
	text   bool                 // what joins it is text
}

func (p *Program) prepareFlow(f *synapse.Flow) (*preparedFlow, error) {
	scope, err := expr.NewScope(f)
	if err != nil {
		return nil, err
	}
	pf := &preparedFlow{flow: f, byName: map[string]*preparedNode{}, keys: map[string]*preparedKey{}}
	if len(f.Input) > 0 {
		if pf.input, err = resolveSchema(f.Input); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
	}
	for _, key := range f.State {
		if pf.keys[key.Name], err = prepareKey(key); err != nil {
			return nil, fmt.Errorf("state %s: %w", key.Name, err)
		}
	}
	for i := range f.Nodes {
		n, err := p.prepareNode(pf, scope, &f.Nodes[i])
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", f.Nodes[i].Name, err)
		}
		if pf.byName[n.Name] != nil {
			return nil, fmt.Errorf("two nodes are named %q", n.Name)
		}
		n.index = i
		pf.nodes = append(pf.nodes, n)
		pf.byName[n.Name] = n
	}
	for _, e := range f.Edges {
		if err := pf.prepareEdge(scope, e); err != nil {
			return nil, fmt.Errorf("edge %s → %s: %w", e.From, e.To, err)
		}
	}
	for _, n := range pf.nodes {
		if n.Then == synapse.ThenGoto && pf.byName[n.Goto] == nil && n.Goto != synapse.FlowEnd {
			return nil, fmt.Errorf("node %s: on_error: there is no node %q", n.Name, n.Goto)
		}
	}
	if f.Result != "" {
		if pf.result, err = scope.Template(f.Result); err != nil {
			return nil, fmt.Errorf("result: %w", err)
		}
	}
	return pf, nil
}

func prepareKey(key synapse.StateKey) (*preparedKey, error) {
	k := &preparedKey{StateKey: key}
	if len(key.Schema) == 0 {
		return k, nil
	}
	var err error
	if k.schema, err = resolveSchema(key.Schema); err != nil {
		return nil, err
	}
	joins := ItemSchema(key)
	k.items = k.schema
	if key.Reduce == synapse.ReduceAppend {
		k.items = nil
		if len(joins) > 0 {
			if k.items, err = resolveSchema(joins); err != nil {
				return nil, err
			}
		}
	}
	if k.items != nil {
		k.text = k.items.Schema().Type == "string"
	}
	return k, nil
}

// ItemSchema returns the schema of what may join a state key: the key's own, or
// that of its elements where outputs are appended; nil for anything.
func ItemSchema(key synapse.StateKey) json.RawMessage {
	if key.Reduce != synapse.ReduceAppend {
		return key.Schema
	}
	var s struct{ Items json.RawMessage }
	if json.Unmarshal(key.Schema, &s) != nil {
		return nil
	}
	return s.Items
}

func (p *Program) prepareNode(pf *preparedFlow, scope *expr.Scope, node *synapse.FlowNode) (*preparedNode, error) {
	n := &preparedNode{FlowNode: node}
	var err error
	if node.ForEach != "" {
		if n.forEach, err = scope.List(node.ForEach); err != nil {
			return nil, fmt.Errorf("for_each: %w", err)
		}
		if scope, err = scope.WithItem(node.As, n.forEach); err != nil {
			return nil, err
		}
	}
	if node.Prompt != "" {
		if n.prompt, err = scope.Template(node.Prompt); err != nil {
			return nil, fmt.Errorf("prompt: %w", err)
		}
	}
	if len(node.Input) > 0 {
		var input any
		if err := json.Unmarshal(node.Input, &input); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		if n.input, err = scope.Tree(input); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
	}
	if node.Output != "" {
		if n.key = pf.keys[node.Output]; n.key == nil {
			return nil, fmt.Errorf("output: the state has no key %q", node.Output)
		}
	}
	switch node.Kind {
	case synapse.NodeAgent, synapse.NodeWorkflow:
		if n.spec = p.specs[node.Spec]; n.spec == nil {
			return nil, fmt.Errorf("the graph has no spec %q for the %s %q", node.Spec, node.Kind, node.Use)
		}
	case synapse.NodeFunction:
		if n.fn = p.opt.Funcs[node.Use]; n.fn.Run == nil {
			return nil, fmt.Errorf("the program has no function %q", node.Use)
		}
	case synapse.NodeApprove:
	default:
		return nil, fmt.Errorf("it is of the kind %q, want agent, workflow, approve or func", node.Kind)
	}
	return n, nil
}

func (pf *preparedFlow) prepareEdge(scope *expr.Scope, e synapse.FlowEdge) error {
	edge := &preparedEdge{from: e.From, to: pf.byName[e.To]}
	if edge.to == nil && e.To != synapse.FlowEnd {
		return fmt.Errorf("there is no node %q", e.To)
	}
	var err error
	if e.When != "" {
		if edge.when, err = scope.Condition(e.When); err != nil {
			return fmt.Errorf("when: %w", err)
		}
	}
	if e.From == synapse.FlowStart {
		pf.first = append(pf.first, edge)
	} else if from := pf.byName[e.From]; from != nil {
		from.out = append(from.out, edge)
	} else {
		return fmt.Errorf("there is no node %q", e.From)
	}
	if to := edge.to; to != nil {
		known := false
		for _, s := range to.sources {
			known = known || s == e.From
		}
		if !known {
			to.sources = append(to.sources, e.From)
		}
	}
	return nil
}
