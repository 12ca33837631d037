package compile

import (
	"slices"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// An Explanation says what an agent would be and why. Its JSON form is that of
// `synapse agents explain --json`.
type Explanation struct {
	Name   string           `json:"name"`
	Path   string           `json:"path"` // the file, "" where there is none
	Layer  agents.LayerKind `json:"layer"`
	Origin string           `json:"origin"` // the product whose format the file has
	// NotOffered is why nobody can delegate to the agent, "" if it is offered.
	NotOffered string         `json:"not_offered,omitempty"`
	Tools      ToolsExplained `json:"tools"`
	Model      Explained      `json:"model"`
	Effort     Explained      `json:"reasoning_effort"`
	Limits     synapse.Limits `json:"limits"`
	// Permissions are the rules that judge single calls, by source.
	Permissions []policy.Source `json:"permissions,omitempty"`
	Warnings    []string        `json:"warnings"` // codes, each once
	// Diagnostics are the warnings in full.
	Diagnostics []agents.Diagnostic `json:"-"`
	// Spec is what all of this was read off.
	Spec synapse.Spec `json:"-"`
}

// ToolsExplained says of every tool that exists whether the agent has it.
type ToolsExplained struct {
	Allowed    []string               `json:"allowed"`
	Denied     map[string]policy.Code `json:"denied"`
	DeniedAt   map[string]string      `json:"denied_at"` // where each denial was set
	Unresolved []string               `json:"unresolved"`
}

// Explained is a value and where it comes from.
type Explained struct {
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Explain compiles one agent the way [Task] does and says what came of it. A
// nil definition is the main agent of the input. An agent that is not offered
// is explained as it would be if it were; a primary one as the main agent. A
// sub-agent is taken as the main agent calls it, one level below.
func Explain(in Input, def *agents.Definition) (*Explanation, error) {
	c, err := newCompiler(&in)
	if err != nil {
		return nil, err
	}
	entry, err := c.mainSpec(in.Main)
	if err != nil {
		return nil, err
	}
	e := &Explanation{}
	s := entry
	switch {
	case def == nil:
		def = in.Main
	case def.Mode == agents.ModePrimary:
		e.NotOffered = notOffered(def)
		s, err = c.mainSpec(def)
	default:
		e.NotOffered = c.notCalled(entry, def)
		t := c.newTarget(def)
		s, err = c.subSpec(t, c.maxDepth-1, t.binding(c.top, c.maxDepth > 1))
	}
	if err != nil {
		return nil, err
	}
	e.fill(s, def)
	return e, nil
}

// notCalled says why the main agent can't delegate to the definition's agent.
func (c *compiler) notCalled(entry *compiled, def *agents.Definition) string {
	if reason := notOffered(def); reason != "" {
		return reason
	}
	if reason, denied := entry.spec.Policy.Block[toolTask]; denied {
		return "the main agent may not use task: " + string(reason.Code) + " (" + reason.Origin + ")"
	}
	if !slices.Contains(entry.spec.Policy.Allow, toolTask) {
		return "the main agent has no task tool"
	}
	return ""
}

// fill reads the explanation off a spec.
func (e *Explanation) fill(s *compiled, def *agents.Definition) {
	spec := &s.spec
	e.Name, e.Layer, e.Origin = spec.Agent, agents.LayerBuiltin, "synapse"
	if def != nil {
		e.Path, e.Layer, e.Origin = def.Pos.File, def.Layer, def.Origin
	}
	e.Tools = ToolsExplained{
		Allowed: spec.Policy.Allow, Unresolved: s.unresolved,
		Denied: map[string]policy.Code{}, DeniedAt: map[string]string{},
	}
	for tool, reason := range spec.Policy.Block {
		e.Tools.Denied[tool], e.Tools.DeniedAt[tool] = reason.Code, reason.Origin
	}
	e.Model = Explained{Value: spec.Model.String(), Origin: spec.ModelOrigin}
	e.Effort = Explained{Value: string(spec.Effort), Origin: spec.EffortOrigin}
	e.Limits = spec.Limits
	e.Permissions = spec.Policy.Rules
	e.Warnings = []string{}
	for _, d := range s.diagnostics {
		if !slices.Contains(e.Warnings, d.Code) { // each occurrence is in Diagnostics
			e.Warnings = append(e.Warnings, d.Code)
		}
	}
	e.Diagnostics = s.diagnostics
	e.Spec = *spec
}
