package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// intentField is the property that every offered schema carries: why the model
// makes the call, in a few words, for people. It is removed before the tool runs.
const intentField = "intent"

// ProgramOptions tune what a program offers.
type ProgramOptions struct {
	// NoIntent leaves the "intent" property out of the schemas.
	NoIntent bool
	// DescriptionBudget bounds the descriptions of the agents in the task
	// tool's text, in tokens of four bytes. 0 means 4,000.
	DescriptionBudget int
	// MaxHandoffs bounds how often a request changes hands; 0 means
	// DefaultMaxHandoffs.
	MaxHandoffs int
	// Funcs are the functions that nodes of workflows call, by name.
	Funcs map[string]synapse.NodeFunc
}

// A Program is a graph joined with the tools it names, checked and prepared
// once: schemas are resolved here and not at every request. It is immutable and
// safe for use by several goroutines.
type Program struct {
	graph *synapse.Graph
	opt   ProgramOptions
	tools map[string]*preparedTool
	specs map[string]*preparedSpec
	// delegation has the tools of delegation, as the guard sees them.
	delegation map[string]*preparedTool
}

type preparedTool struct {
	synapse.Tool
	def    synapse.ToolDef
	schema *jsonschema.Resolved
	shape  *shape // of the schema, nil when it has none
	strip  bool   // the offered schema has an intent that is ours
}

type preparedSpec struct {
	spec   *synapse.Spec
	defs   []synapse.ToolDef // what is offered, in the policy's order
	agents []callee
	roster string   // what the task tool says of them
	flows  []callee // the workflows it may run
	// transfers are those it may hand the conversation over to, by the tool's name.
	transfers map[string]*synapse.Spec
	output    *jsonschema.Resolved
	flow      *preparedFlow // nil for an agent
}

// A callee is a sub-agent as its caller may name it.
type callee struct {
	names []string
	spec  *synapse.Spec
}

// NewProgram prepares a graph. It fails when the graph names a spec or allows a
// tool that does not exist, or when a schema is not one.
func NewProgram(g *synapse.Graph, tools []synapse.Tool, opt ProgramOptions) (*Program, error) {
	if opt.DescriptionBudget == 0 {
		opt.DescriptionBudget = 4000
	}
	p := &Program{graph: g, opt: opt, tools: map[string]*preparedTool{}, specs: map[string]*preparedSpec{}, delegation: map[string]*preparedTool{}}
	for _, def := range DelegationTools() {
		t, err := prepareTool(synapse.Tool{Name: def.Name, Schema: def.Schema}, opt)
		if err != nil {
			return nil, err
		}
		if def.Name == toolTask {
			t.Subject.Kind = policy.SubjectText // the agents' names: see agentsOf
		}
		p.delegation[def.Name] = t
	}
	for i := range tools {
		t := tools[i]
		if _, ok := p.tools[t.Name]; ok {
			return nil, fmt.Errorf("prepare tools: two tools are named %q", t.Name)
		}
		if t.Name == "" || t.Run == nil {
			return nil, fmt.Errorf("prepare tools: tool %q needs a name and a Run function", t.Name)
		}
		if isDelegation(t.Name) {
			return nil, fmt.Errorf("prepare tools: the name %q belongs to delegation itself", t.Name)
		}
		pt, err := prepareTool(t, opt)
		if err != nil {
			return nil, err
		}
		p.tools[t.Name] = pt
	}
	for i := range g.Specs {
		s := &g.Specs[i]
		if _, ok := p.specs[s.ID]; ok {
			return nil, fmt.Errorf("prepare graph: two specs have the id %q", s.ID)
		}
		p.specs[s.ID] = &preparedSpec{spec: s}
	}
	var err error
	for _, e := range g.Edges {
		from, ok := p.specs[e.From]
		to, ok2 := p.specs[e.To]
		if !ok || !ok2 {
			return nil, fmt.Errorf("prepare graph: edge %s → %s names a spec that is not there", e.From, e.To)
		}
		if e.Kind == synapse.EdgeCall {
			from.agents = append(from.agents, callee{names: e.Names, spec: to.spec})
		}
		if e.Kind == synapse.EdgeTransfer {
			if from.transfers == nil {
				from.transfers = map[string]*synapse.Spec{}
			}
			if len(e.Names) < 2 {
				return nil, fmt.Errorf("prepare graph: the transfer %s → %s has no tool", e.From, e.To)
			}
			name := e.Names[1]
			from.transfers[name] = to.spec
			if p.delegation[name], err = prepareTool(synapse.Tool{Name: name, Schema: transferSchema}, opt); err != nil {
				return nil, err
			}
		}
		if e.Kind == synapse.EdgeFlow {
			from.flows = append(from.flows, callee{names: e.Names, spec: to.spec})
		}
	}
	p.writeRosters()
	for _, ps := range p.specs {
		if err := p.prepareSpec(ps); err != nil {
			return nil, err
		}
	}
	if _, ok := p.specs[g.Entry]; !ok {
		return nil, fmt.Errorf("prepare graph: the entry %q is not there", g.Entry)
	}
	return p, nil
}

// Entry returns the spec that answers the user.
func (p *Program) Entry() *synapse.Spec { return p.specs[p.graph.Entry].spec }

// entry returns the spec that a request is for.
func (p *Program) entry(in Input) (*synapse.Spec, error) {
	id := in.Spec
	if in.From != nil {
		id = in.From.State.Spec.ID
		if p.specs[id] == nil { // it has gone since: its spec is in the trace
			return p.Entry(), nil
		}
	}
	if id == "" && in.Before != nil && p.owns(in.Before.Spec.ID) {
		id = in.Before.Spec.ID // who owns the conversation answers on
	}
	if id == "" {
		return p.Entry(), nil
	}
	ps := p.specs[id]
	if ps == nil {
		return nil, fmt.Errorf("run: the graph has no spec %q", id)
	}
	return ps.spec, nil
}

// owns reports whether a spec is one that a conversation can be handed over to.
func (p *Program) owns(id string) bool {
	for _, e := range p.graph.Edges {
		if e.Kind == synapse.EdgeTransfer && e.To == id {
			return true
		}
	}
	return false
}

// Graph returns the graph that the program was made from.
func (p *Program) Graph() *synapse.Graph { return p.graph }

// Offered returns the tools that a spec's model is offered, just as it reads them.
func (p *Program) Offered(specID string) []synapse.ToolDef {
	ps, ok := p.specs[specID]
	if !ok {
		return nil
	}
	return slices.Clone(ps.defs)
}

func prepareTool(t synapse.Tool, opt ProgramOptions) (*preparedTool, error) {
	pt := &preparedTool{Tool: t}
	if len(t.Schema) == 0 {
		t.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var err error
	if pt.schema, err = resolveSchema(t.Schema); err != nil {
		return nil, fmt.Errorf("prepare tool %s: %w", t.Name, err)
	}
	pt.shape = shapeOf(pt.schema.Schema())
	offered := t.Schema
	if !opt.NoIntent {
		if offered, pt.strip, err = withIntent(t.Schema); err != nil {
			return nil, fmt.Errorf("prepare tool %s: %w", t.Name, err)
		}
	}
	pt.def = synapse.ToolDef{Name: t.Name, Description: t.Description, Schema: offered}
	return pt, nil
}

func resolveSchema(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read JSON Schema: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve JSON Schema: %w", err)
	}
	return r, nil
}

// withIntent adds the required intent property to an object schema. A tool that
// has a property of that name keeps its own. Keys come out sorted, so the bytes
// are the same at every start and prompt caches hit.
func withIntent(schema json.RawMessage) (offered json.RawMessage, added bool, err error) {
	var m map[string]any
	if err := json.Unmarshal(schema, &m); err != nil {
		return nil, false, fmt.Errorf("read JSON Schema: %w", err)
	}
	props, _ := m["properties"].(map[string]any)
	if props == nil {
		props = map[string]any{}
	}
	if _, taken := props[intentField]; taken {
		return schema, false, nil
	}
	props[intentField] = map[string]any{"type": "string", "description": "why"}
	m["properties"] = props
	required, _ := m["required"].([]any)
	m["required"] = append([]any{intentField}, required...)
	if m["type"] == nil {
		m["type"] = "object"
	}
	offered, err = json.Marshal(m)
	return offered, true, err
}

// prepareSpec collects what the spec's model is offered: the tools its policy
// allows, the same value that the guard asks.
func (p *Program) prepareSpec(ps *preparedSpec) error {
	var err error
	if ps.spec.Flow != nil {
		if ps.flow, err = p.prepareFlow(ps.spec.Flow); err != nil {
			return fmt.Errorf("prepare workflow %s: %w", ps.spec.Agent, err)
		}
		return nil
	}
	ps.defs = ps.defs[:0]
	for _, name := range ps.spec.Policy.Allow {
		if !ps.spec.Policy.Allows(name) {
			continue // blocked after all: Block wins
		}
		if isDelegation(name) {
			def, err := delegationDef(name, ps, p.opt)
			if err != nil {
				return err
			}
			ps.defs = append(ps.defs, def)
			continue
		}
		t, ok := p.tools[name]
		if !ok {
			return fmt.Errorf("prepare agent %s: its policy allows the tool %q, which does not exist (there are: %s)",
				ps.spec.Agent, name, strings.Join(p.toolNames(), ", "))
		}
		ps.defs = append(ps.defs, t.def)
	}
	if len(ps.spec.Output) > 0 {
		if ps.output, err = resolveSchema(ps.spec.Output); err != nil {
			return fmt.Errorf("prepare agent %s: output_schema: %w", ps.spec.Agent, err)
		}
	}
	return nil
}

// prepared returns the spec as it was prepared, or prepares one that is no
// longer in the graph: a continued child keeps the definition it started with.
func (p *Program) prepared(spec *synapse.Spec) (*preparedSpec, error) {
	ps, ok := p.specs[spec.ID]
	if ok && (ps.spec == spec || ps.spec.Digest == spec.Digest) {
		return ps, nil
	}
	fresh := &preparedSpec{spec: spec, roster: roster(nil, 0)}
	if ok {
		fresh.agents, fresh.roster, fresh.flows, fresh.transfers = ps.agents, ps.roster, ps.flows, ps.transfers
	}
	if err := p.prepareSpec(fresh); err != nil {
		return nil, err
	}
	return fresh, nil
}

// narrowed returns the spec of a child that is continued: as it was, but for what
// has been restricted since in the spec that its agent has now. Restrictions of
// the whole session and rules only ever add up; tools that are gone are blocked.
func (p *Program) narrowed(old, now *synapse.Spec) *synapse.Spec {
	if old.Digest == now.Digest || old.ID != now.ID {
		return old
	}
	block := maps.Clone(old.Policy.Block)
	if block == nil {
		block = map[string]policy.Reason{}
	}
	for _, name := range old.Policy.Allow {
		switch reason, blocked := now.Policy.Block[name]; {
		case blocked && (reason.Code == policy.ExcludedTools || reason.Code == policy.MinimalFilesystem || reason.Code == policy.ReadOnly):
			block[name] = reason
		case p.tools[name] == nil && !isDelegation(name):
			block[name] = policy.Reason{Code: policy.UnknownTool}
		}
	}
	spec := *old
	spec.Policy.Block = block
	for _, src := range now.Policy.Rules {
		if !slices.ContainsFunc(old.Policy.Rules, func(s policy.Source) bool { return s.Origin == src.Origin && slices.Equal(s.Rules, src.Rules) }) {
			spec.Policy = spec.Policy.With(src)
		}
	}
	return &spec
}

func (p *Program) toolNames() []string {
	names := make([]string, 0, len(p.tools))
	for name := range p.tools {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
