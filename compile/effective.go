package compile

import (
	"fmt"
	"strings"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// A HostTool is what the compiler must know of a tool that the host offers.
type HostTool struct {
	Name string
	// ReadOnly says that the tool changes nothing anywhere and that its word
	// can be trusted. Of an MCP server's tool that takes both the server's
	// hint and the user's trust in the server. The tools this package knows by
	// name are judged by their name.
	ReadOnly bool
}

// ToolInput is everything that decides which tools an agent has.
type ToolInput struct {
	// App says that the application assembles the agent: ls, glob and grep are
	// then never offered. A program that embeds the compiler leaves it false
	// and may have them by naming them.
	App bool
	// Tools are the main agent's tools in the order in which they are offered.
	// Framework tools that are not among them come first.
	Tools        []HostTool
	Restrictions Restrictions
	// Definition is the agent's; nil is the built-in main agent.
	Definition *agents.Definition
	// Main says that the agent talks to the user: it keeps the todo list, has
	// everything where its definition is silent, and may delegate.
	Main bool
	// DepthLeft is how many levels of sub-agents may be below this agent.
	DepthLeft int
	// NoSubagents turns delegation off for everyone.
	NoSubagents Switch
	// Callers are the agents above this one. What they deny themselves is
	// denied here too; what they list is not asked.
	Callers []Caller
}

// A Caller is an agent that may start others.
type Caller struct {
	Definition *agents.Definition
	// Names are the agents that Definition speaks for; nil means its own. One
	// definition speaks for all agents that deny the same.
	Names []string
}

// origin returns the place, with whose it is.
func (c Caller) origin(place string) string {
	names := c.Names
	if len(names) == 0 {
		names = []string{c.Definition.Name}
	}
	more := ""
	if n := len(names) - 3; n > 0 {
		names, more = names[:3], fmt.Sprintf(" or %d others", n)
	}
	return place + ", caller " + strings.Join(names, " or ") + more
}

// Effective computes an agent's policy. Every tool that exists is either in
// the policy's Allow or has a reason in its Block. It returns the names in the
// definition's tools field that no tool answers to, and warnings with the
// codes tool-unresolved, disallowed-unresolved, tool-denied and no-tools.
func Effective(in ToolInput) (p policy.Policy, unresolved []string, warnings []agents.Diagnostic) {
	j := newJudge(newHost(in.Tools), &in)
	p, unresolved = j.policy()
	return p, unresolved, j.warnings(&p, unresolved)
}

// A host is what tools there are, the same for every agent of a graph.
type host struct {
	tools []HostTool // in the order in which they are offered
	have  map[string]bool
}

func newHost(tools []HostTool) *host {
	h := &host{have: make(map[string]bool, len(tools)+8)}
	for _, t := range tools {
		h.have[t.Name] = true
	}
	for _, name := range FrameworkTools() {
		if !h.have[name] {
			h.have[name] = true
			h.tools = append(h.tools, HostTool{Name: name})
		}
	}
	seen := make(map[string]bool, len(tools))
	for _, t := range tools {
		if !seen[t.Name] {
			seen[t.Name] = true
			h.tools = append(h.tools, t)
		}
	}
	return h
}

func (h *host) exists(tool string) bool { return h.have[tool] }

// resolve returns the tools that a name in a definition stands for: a tool of
// just that name, else the one it is an alias for, else those the glob matches.
func (h *host) resolve(name string) []string {
	if tool := policy.Canonical(name, h.exists); h.have[tool] {
		return []string{tool}
	}
	var found []string
	if policy.IsGlob(name) {
		for _, t := range h.tools {
			if policy.MatchName(name, t.Name) {
				found = append(found, t.Name)
			}
		}
	}
	return found
}

// names reports whether one of the names stands for the tool: as its own name,
// as an alias or as a glob.
func (h *host) names(list []string, tool string) bool {
	for _, name := range list {
		if policy.MatchName(policy.Canonical(name, h.exists), tool) {
			return true
		}
	}
	return false
}

// A judge holds one agent's case.
type judge struct {
	*host
	*ToolInput
	named   map[string]bool // tools that the definition lists by name, not by glob
	minimal []string
}

func newJudge(h *host, in *ToolInput) *judge {
	j := &judge{host: h, ToolInput: in, named: map[string]bool{}, minimal: in.Restrictions.MinimalExcluded}
	if j.minimal == nil {
		j.minimal = MinimalExcluded()
	}
	return j
}

// policy decides on every tool.
func (j *judge) policy() (p policy.Policy, unresolved []string) {
	wanted, unresolved := j.candidates()
	p.Block = make(map[string]policy.Reason, len(j.tools))
	for _, t := range j.tools {
		if isCompanion(t.Name) {
			continue
		}
		if reason, denied := j.verdict(t, wanted[t.Name]); denied {
			p.Block[t.Name] = reason
		}
	}
	if reason, denied := p.Block[toolTask]; denied && j.have[toolWorkflow] && (reason.Code == policy.ExcludedTools || reason.Code == policy.DisallowedTools) {
		p.Block[toolWorkflow] = reason // who may not start agents may not do so by way of a workflow
	}
	j.companions(&p)
	p.Allow = make([]string, 0, len(j.tools)-len(p.Block))
	for _, t := range j.tools {
		if _, denied := p.Block[t.Name]; !denied {
			p.Allow = append(p.Allow, t.Name)
		}
	}
	p.Rules = j.rules()
	return p, unresolved
}

// toolRule returns the definition's rule; the built-in main agent inherits.
func (j *judge) toolRule() agents.ToolRule {
	if j.Definition == nil {
		return agents.ToolRule{Mode: agents.ToolsInherit}
	}
	rule := j.Definition.Tools
	if rule.Mode == "" {
		rule.Mode = agents.ToolsInherit
	}
	return rule
}

// candidates returns the tools that the agent has unless something blocks them
// and the listed names that no tool answers to.
func (j *judge) candidates() (wanted map[string]bool, unresolved []string) {
	wanted = map[string]bool{}
	unresolved = []string{}
	rule := j.toolRule()
	if rule.Mode == agents.ToolsExact {
		seen := map[string]bool{}
		for _, name := range rule.Names {
			if seen[name] {
				continue
			}
			seen[name] = true
			found := j.resolve(name)
			if len(found) == 0 {
				unresolved = append(unresolved, name)
			}
			for _, tool := range found {
				wanted[tool] = true
				if !policy.IsGlob(name) {
					j.named[tool] = true
				}
			}
		}
		return wanted, unresolved
	}
	for _, name := range FrameworkTools() {
		wanted[name] = true
	}
	if j.Definition != nil && j.Definition.CanSpawn {
		wanted[toolTask] = true
	}
	if rule.Mode == agents.ToolsFramework {
		return wanted, unresolved
	}
	for _, t := range j.tools {
		if j.Main || inherited(t.Name) {
			wanted[t.Name] = true
		}
	}
	return wanted, unresolved
}

// verdict returns why the tool is denied, if it is.
func (j *judge) verdict(t HostTool, wanted bool) (policy.Reason, bool) {
	if reason, blocked := j.blocked(t); blocked {
		return reason, true
	}
	if !wanted {
		return j.leftOver(), true
	}
	return policy.Reason{}, false
}

// companions gives the tools that follow sub-agents the verdict on task, unless
// something denies one of them on its own.
func (j *judge) companions(p *policy.Policy) {
	reason, denied := p.Block[toolTask]
	if !j.have[toolTask] {
		reason, denied = policy.Reason{Code: policy.NoSpawn, Origin: OriginBuiltin}, true
	}
	for _, t := range j.tools {
		if !isCompanion(t.Name) {
			continue
		}
		if own, blocked := j.blocked(t); blocked {
			p.Block[t.Name] = own
		} else if denied {
			p.Block[t.Name] = reason
		}
	}
}

// blocked returns the first reason, in the documented order, why the agent
// can't have the tool whatever its definition lists.
func (j *judge) blocked(t HostTool) (policy.Reason, bool) {
	r := &j.Restrictions
	for _, layer := range r.Excluded {
		if j.names(layer.Values, t.Name) {
			return policy.Reason{Code: policy.ExcludedTools, Origin: layer.Origin}, true
		}
	}
	for _, src := range r.Rules {
		if line, ok := j.deniesAll(src.Rules, t.Name); ok {
			return policy.Reason{Code: policy.ExcludedTools, Origin: at(src.Origin, line) + ", permissions"}, true
		}
	}
	if r.Minimal.On && j.names(j.minimal, t.Name) {
		return policy.Reason{Code: policy.MinimalFilesystem, Origin: r.Minimal.Origin}, true
	}
	if r.ReadOnly.On && !t.ReadOnly && !knownReadOnly(t.Name) {
		return policy.Reason{Code: policy.ReadOnly, Origin: r.ReadOnly.Origin}, true
	}
	if origin, ok := j.denies(j.Definition, t.Name); ok {
		return policy.Reason{Code: policy.DisallowedTools, Origin: origin}, true
	}
	for _, caller := range j.Callers {
		if origin, ok := j.denies(caller.Definition, t.Name); ok {
			return policy.Reason{Code: policy.DisallowedTools, Origin: caller.origin(origin)}, true
		}
	}
	if keepsTodos(t.Name) && !j.Main {
		return policy.Reason{Code: policy.TodoIsolation, Origin: OriginBuiltin}, true
	}
	if searches(t.Name) && j.hidesSearch(t.Name) {
		return policy.Reason{Code: policy.BuiltinSearch, Origin: OriginBuiltin}, true
	}
	if startsAgents(t.Name) {
		if j.NoSubagents.On {
			return policy.Reason{Code: policy.NoSpawn, Origin: j.NoSubagents.Origin}, true
		}
		if j.DepthLeft <= 0 || !j.Main && (j.Definition == nil || !j.Definition.CanSpawn) {
			return policy.Reason{Code: policy.NoSpawn, Origin: OriginBuiltin}, true
		}
	}
	if r.Allowed != nil && !isCompanion(t.Name) && !j.names(r.Allowed.Values, t.Name) {
		return policy.Reason{Code: policy.NotListed, Origin: r.Allowed.Origin}, true
	}
	return policy.Reason{}, false
}

// hidesSearch reports whether one of the framework's search tools is kept from
// this agent in favour of find_files and search_files.
func (j *judge) hidesSearch(tool string) bool {
	switch rule := j.toolRule(); {
	case j.App || rule.Mode == agents.ToolsInherit:
		return true
	case rule.Mode == agents.ToolsExact:
		return !j.named[tool]
	default:
		return false
	}
}

// leftOver is the reason for a tool that nothing blocks and nothing grants.
func (j *judge) leftOver() policy.Reason {
	switch j.toolRule().Mode {
	case agents.ToolsExact:
		return policy.Reason{Code: policy.NotListed, Origin: place(j.Definition, "tools")}
	case agents.ToolsFramework:
		return policy.Reason{Code: policy.FrameworkOnly, Origin: place(j.Definition, "tools")}
	default:
		return policy.Reason{Code: policy.NotInherited, Origin: OriginBuiltin}
	}
}

// rules collects the permission rules of every source that binds the agent.
func (j *judge) rules() []policy.Source {
	var sources []policy.Source
	for _, src := range j.Restrictions.Rules {
		if len(src.Rules) > 0 {
			sources = append(sources, src)
		}
	}
	if def := j.Definition; def != nil && len(def.Permissions) > 0 {
		sources = append(sources, policy.Source{Origin: file(def), Rules: def.Permissions})
	}
	for _, caller := range j.Callers {
		if def := caller.Definition; restricts(def.Permissions) {
			sources = append(sources, policy.Source{Origin: caller.origin(file(def)), Rules: def.Permissions})
		}
	}
	return sources
}

// warnings says what in the definition has not the effect it seems to have.
func (j *judge) warnings(p *policy.Policy, unresolved []string) []agents.Diagnostic {
	def := j.Definition
	if def == nil {
		return nil
	}
	var list []agents.Diagnostic
	warn := func(field, code, hint, format string, args ...any) {
		list = append(list, warning(def, field, code, hint, format, args...))
	}
	for _, name := range unresolved {
		warn("tools", CodeToolUnresolved, j.didYouMean(name), "tools: %q is no tool here, so it gives nothing", name)
	}
	seen := map[string]bool{}
	for _, name := range def.Tools.Names {
		if policy.IsGlob(name) || def.Tools.Mode != agents.ToolsExact {
			continue
		}
		for _, tool := range j.resolve(name) {
			if reason, denied := p.Block[tool]; denied && !seen[tool] {
				seen[tool] = true
				warn("tools", CodeToolDenied, "", "tools: %s is listed but denied: %s (%s)", tool, reason.Code, reason.Origin)
			}
		}
	}
	clear(seen)
	for _, name := range def.DisallowedTools {
		if !seen[name] && len(j.resolve(name)) == 0 {
			seen[name] = true
			warn("disallowed_tools", CodeDisallowedUnresolved, j.didYouMean(name), "disallowed_tools: %q is no tool here, so it denies nothing", name)
		}
	}
	if len(p.Allow) == 0 && !asksForNone(def.Tools) {
		warn("tools", CodeNoTools, "see `synapse agents explain` for every tool's reason",
			"%s", j.noTools(p, unresolved))
	}
	return list
}

// asksForNone reports whether the definition wants an agent without tools.
func asksForNone(rule agents.ToolRule) bool {
	return rule.Mode == agents.ToolsExact && len(rule.Names) == 0
}

// noTools says in one sentence why nothing is left of the tools asked for.
func (j *judge) noTools(p *policy.Policy, unresolved []string) string {
	var why []string
	if len(unresolved) > 0 {
		why = append(why, "no such tool: "+strings.Join(unresolved, ", "))
	}
	wanted, _ := j.candidates()
	said := map[policy.Reason]bool{}
	for _, t := range j.tools {
		if reason := p.Block[t.Name]; wanted[t.Name] && !said[reason] {
			said[reason] = true
			why = append(why, fmt.Sprintf("%s: %s (%s)", t.Name, reason.Code, reason.Origin))
		}
	}
	return fmt.Sprintf("agent %q is left without any tool: %s", j.Definition.Name, strings.Join(why, "; "))
}

// denies reports whether a definition takes the tool away, and where it says so.
func (h *host) denies(def *agents.Definition, tool string) (origin string, ok bool) {
	if def == nil {
		return "", false
	}
	if h.names(def.DisallowedTools, tool) {
		return place(def, "disallowed_tools"), true
	}
	if line, ok := h.deniesAll(def.Permissions, tool); ok {
		origin := place(def, "permissions")
		if line > 0 && def.Layer != agents.LayerBuiltin {
			origin = at(file(def), line)
		}
		return origin + ", permissions", true
	}
	return "", false
}

// deniesAll reports whether the rules of one source deny every call of the
// tool, and on which line. Such a tool is not worth offering. The last rule
// that matches a call decides, so the rules are read backwards: one that
// grants anything ends the search.
func (h *host) deniesAll(rules []policy.Rule, tool string) (line int, ok bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if !h.names([]string{r.Tool}, tool) {
			continue
		}
		if r.Action != policy.Deny {
			return 0, false
		}
		if r.Pattern == "*" {
			return r.Line, true
		}
	}
	return 0, false
}

// restricts reports whether rules take anything away.
func restricts(rules []policy.Rule) bool {
	for _, r := range rules {
		if r.Action != policy.Allow {
			return true
		}
	}
	return false
}

// file returns where a definition comes from as a whole.
func file(def *agents.Definition) string {
	switch {
	case def.Layer == agents.LayerBuiltin:
		return OriginBuiltin
	case def.Place() == "":
		return "agent " + def.Name // made by a program that says no more
	default:
		return def.Place()
	}
}

// place returns where a definition sets a field, as file:line where known.
func place(def *agents.Definition, field string) string {
	if def.Layer == agents.LayerBuiltin || def.Pos.File == "" {
		return file(def)
	}
	return at(def.Pos.File, line(def, field))
}

func line(def *agents.Definition, field string) int {
	if n := def.Lines[field]; n > 0 {
		return n
	}
	return def.Pos.Line
}

func at(origin string, line int) string {
	if line <= 0 {
		return origin
	}
	return fmt.Sprintf("%s:%d", origin, line)
}

// warning returns a diagnostic about a field of a definition. About a preset of
// ours it is only information: the user can't mend it.
func warning(def *agents.Definition, field, code, hint, format string, args ...any) agents.Diagnostic {
	severity := agents.Warn
	if def.Layer == agents.LayerBuiltin {
		severity = agents.Info
	}
	return agents.Diagnostic{
		Pos:      agents.Pos{File: def.Pos.File, Line: line(def, field)},
		Severity: severity,
		Code:     code,
		Message:  fmt.Sprintf(format, args...),
		Hint:     hint,
	}
}
