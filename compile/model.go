package compile

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
)

// The origins of a sub-agent's model and reasoning effort, strongest first.
const (
	OriginOverride   = "override"   // settings, by the agent's name
	OriginDefinition = "definition" // the definition's own field
	OriginEnv        = "env"        // AGENT_SUBAGENT_<NAME>_MODEL
	OriginDefault    = "default"    // settings, for all sub-agents
	OriginInherit    = "inherit"    // the main agent's
)

// A Choice is a model and a reasoning effort, each with where it comes from.
type Choice struct {
	Model        synapse.ModelRef
	ModelOrigin  string
	Effort       synapse.Effort
	EffortOrigin string
}

// ModelSettings are a host's settings about models. An empty name and
// "inherit" say nothing, wherever they stand.
type ModelSettings struct {
	// Aliases give names of the user's own, or another product's, a meaning:
	// "provider:model", "inherit" or a further alias.
	Aliases map[string]string
	// Overrides and EffortOverrides are by the agent's name.
	Overrides       map[string]string
	EffortOverrides map[string]synapse.Effort
	// Default and DefaultEffort are for every sub-agent.
	Default       string
	DefaultEffort synapse.Effort
	// Fallback are the models tried in order when an agent's is out of service.
	Fallback []string
	// Env looks a variable up; nil finds none.
	Env func(name string) (value string, ok bool)
	// Provider reports whether there is a provider of that name; nil takes
	// every name for one. A name like "llama3:8b" is told from
	// "provider:model" by it.
	Provider func(name string) bool
}

// ResolveModel decides with which model and effort the agent of a definition
// runs as a sub-agent of main. The two are decided apart: override, definition,
// the agent's variable (for the model, and only if the definition leaves its
// model out), default, main. A name that can't be resolved says nothing, like
// "inherit", and is warned about as model-unresolved: nobody gets a model that
// the user did not choose.
func ResolveModel(def *agents.Definition, main Choice, s ModelSettings) (Choice, []agents.Diagnostic) {
	r := resolver{def: def, settings: &s}
	c := Choice{Model: main.Model, ModelOrigin: OriginInherit}
	steps := []struct{ origin, where, name string }{
		{OriginOverride, fmt.Sprintf("subagent_model_overrides for %q", def.Name), s.Overrides[def.Name]},
		{OriginDefinition, "model", def.Model},
		{OriginEnv, EnvName(def.Name), r.env()},
		{OriginDefault, "subagent_default_model", s.Default},
	}
	for _, step := range steps {
		if ref, ok := r.resolve(step.name, step.where); ok {
			c.Model, c.ModelOrigin = ref, step.origin
			break
		}
	}
	c.Effort, c.EffortOrigin = effort(def, main, s)
	return c, r.diagnostics
}

// effort decides the second axis.
func effort(def *agents.Definition, main Choice, s ModelSettings) (synapse.Effort, string) {
	switch {
	case says(s.EffortOverrides[def.Name]):
		return s.EffortOverrides[def.Name], OriginOverride
	case says(def.ReasoningEffort):
		return def.ReasoningEffort, OriginDefinition
	case says(s.DefaultEffort):
		return s.DefaultEffort, OriginDefault
	default:
		return main.Effort, OriginInherit
	}
}

func says(e synapse.Effort) bool { return e != "" && e != synapse.EffortInherit }

// mainChoice decides for the main agent: the command line, then the definition
// chosen with --agent, then what the host has.
func mainChoice(def *agents.Definition, host Choice, s ModelSettings) (Choice, []agents.Diagnostic) {
	c := host
	if def == nil {
		return c, nil
	}
	r := resolver{def: def, settings: &s}
	if host.ModelOrigin != OriginFlag {
		if ref, ok := r.resolve(def.Model, "model"); ok {
			c.Model, c.ModelOrigin = ref, OriginDefinition
		}
	}
	if host.EffortOrigin != OriginFlag && says(def.ReasoningEffort) {
		c.Effort, c.EffortOrigin = def.ReasoningEffort, OriginDefinition
	}
	return c, r.diagnostics
}

// fallback resolves the fallback chain once for the whole graph.
func fallback(s ModelSettings) ([]synapse.ModelRef, []agents.Diagnostic) {
	r := resolver{settings: &s}
	var chain []synapse.ModelRef
	for _, name := range s.Fallback {
		if ref, ok := r.resolve(name, "fallback_models"); ok {
			chain = append(chain, ref)
		}
	}
	return chain, r.diagnostics
}

// EnvName returns the variable that sets the model of the agent of that name:
// AGENT_SUBAGENT_<NAME>_MODEL with the name in upper case and everything that
// is no letter or digit turned into an underscore.
func EnvName(agent string) string {
	return "AGENT_SUBAGENT_" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, agent) + "_MODEL"
}

// A resolver turns the names of one agent's models into references and keeps
// what it could not resolve.
type resolver struct {
	def         *agents.Definition // nil: the names are settings of the whole graph
	settings    *ModelSettings
	diagnostics []agents.Diagnostic
}

// env returns the value of the agent's variable, "" where the definition
// speaks for itself.
func (r *resolver) env() string {
	name := EnvName(r.def.Name)
	if r.def.Model != "" || r.settings.Env == nil || name == EnvName("default") {
		return "" // AGENT_SUBAGENT_DEFAULT_MODEL is the default of all, not an agent's
	}
	value, _ := r.settings.Env(name)
	return strings.TrimSpace(value)
}

// resolve returns the model that a name means. It is false for a name that
// says nothing and for one that can't be resolved; the latter is kept.
func (r *resolver) resolve(name, where string) (synapse.ModelRef, bool) {
	target := name
	for range len(r.settings.Aliases) + 1 { // an alias of an alias, but never around in a circle
		if target == "" || target == string(synapse.EffortInherit) {
			return synapse.ModelRef{}, false
		}
		next, ok := r.alias(target)
		if !ok {
			break
		}
		target = next
	}
	if ref, err := synapse.ParseModelRef(target); err == nil && (r.settings.Provider == nil || r.settings.Provider(ref.Provider)) {
		return ref, true
	}
	r.unresolved(name, where)
	return synapse.ModelRef{}, false
}

// alias looks a name up as written, then ignoring case.
func (r *resolver) alias(name string) (string, bool) {
	if target, ok := r.settings.Aliases[name]; ok {
		return target, true
	}
	folded, target := "", ""
	for alias, t := range r.settings.Aliases {
		if strings.EqualFold(alias, name) && (folded == "" || alias < folded) {
			folded, target = alias, t
		}
	}
	return target, folded != ""
}

func (r *resolver) unresolved(name, where string) {
	hint := "write provider:model, or add the name to model_aliases in settings"
	message := fmt.Sprintf("%s: %q names no model here, so it counts as inherit", where, name)
	if r.def != nil {
		r.diagnostics = append(r.diagnostics, warning(r.def, "model", CodeModelUnresolved, hint, "%s", message))
		return
	}
	r.diagnostics = append(r.diagnostics, agents.Diagnostic{
		Severity: agents.Warn, Code: CodeModelUnresolved, Hint: hint,
		Message: fmt.Sprintf("%s: %q names no model here, so it is passed over", where, name),
	})
}
