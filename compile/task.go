package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/workflow"
)

// The limits that hold where nothing else is said.
const (
	DefaultTurns    = 30                                 // of a sub-agent's run
	DefaultTime     = synapse.Duration(30 * time.Minute) // of a sub-agent's run
	DefaultMaxDepth = 3                                  // levels of sub-agents below the main agent
)

// MainName is the name of the built-in main agent.
const MainName = "main"

// DefaultAgent is the sub-agent that is meant when a caller names none.
const DefaultAgent = "general-purpose"

// MaxSpecs bounds a graph. Agents that may delegate need a spec for each depth,
// and one for each set of restrictions that callers can pass on; where that
// would be more specs than this, they delegate to a smaller depth.
const MaxSpecs = 4096

// Input is what the task compiler turns into a graph: the registry's
// definitions and the facts of the host. It is only read.
type Input struct {
	// App says that the application assembles the agents; see [ToolInput].
	App bool
	// Agents are all definitions of the registry, in any order.
	Agents []*agents.Definition
	// Main is the definition chosen for the main agent, nil for the built-in.
	Main *agents.Definition
	// Tools are the main agent's tools in the order in which they are offered.
	Tools        []HostTool
	Restrictions Restrictions
	// NoSubagents turns delegation off.
	NoSubagents Switch
	// MaxDepth is how many levels of sub-agents may be below the main agent; 0
	// means DefaultMaxDepth. At 1 no sub-agent delegates.
	MaxDepth int
	// MainChoice are the host's model and effort for the main agent. What has
	// the origin [OriginFlag] wins over the main agent's definition.
	MainChoice Choice
	Models     ModelSettings
	// Limits are those of this call. They bound the main agent's run, and so
	// everything below it.
	Limits synapse.Limits
	// Skill returns a skill's text; nil knows none.
	Skill func(name string) (text string, ok bool)
	// Workspace is the workspace's root as agents are told it, "" for none.
	Workspace string
	// Workflows are those that [CheckWorkflows] has found nothing wrong with.
	Workflows []*workflow.Definition
	// Instructions is the text of the workspace's AGENTS.md.
	Instructions string
}

// Task compiles the main agent and every sub-agent that is offered to it or to
// another sub-agent, joined by call edges. The diagnostics say what is odd in
// definitions and settings; the error says why there can be no graph at all.
func Task(in Input) (*synapse.Graph, []agents.Diagnostic, error) {
	c, err := newCompiler(&in)
	if err != nil {
		return nil, nil, err
	}
	if err := c.compile(); err != nil {
		return nil, nil, err
	}
	return c.graph, c.diagnostics, nil
}

// A compiler holds one compilation.
type compiler struct {
	in          *Input
	host        *host
	maxDepth    int
	noSubagents Switch
	main        Choice
	fallback    []synapse.ModelRef
	targets     []*target // the sub-agents on offer, by name
	graph       *synapse.Graph
	diagnostics []agents.Diagnostic
	ids         map[string]bool
	taken       map[specKey]string // the ID of what has been compiled
	links       []*link
	top         chain // what the main agent passes on
	flows       []synapse.Spec
	pending     []group // who calls from the second level on, besides what the levels find
}

func newCompiler(in *Input) (*compiler, error) {
	tools := in.Tools
	if len(in.Workflows) == 0 || in.NoSubagents.On {
		tools = slices.DeleteFunc(slices.Clone(tools), func(t HostTool) bool { return t.Name == toolWorkflow })
	}
	c := &compiler{
		in: in, host: newHost(tools), maxDepth: in.MaxDepth, noSubagents: in.NoSubagents,
		graph: &synapse.Graph{}, ids: map[string]bool{}, taken: map[specKey]string{},
	}
	if c.maxDepth == 0 {
		c.maxDepth = DefaultMaxDepth
	}
	if c.maxDepth < 0 {
		return nil, fmt.Errorf("compile: max depth %d: want 1 or more; turn sub-agents off to have none", in.MaxDepth)
	}
	if def := in.Main; def != nil {
		if reason := notMain(def); reason != "" {
			return nil, fmt.Errorf("compile: agent %q (%s) can't be the main agent: %s", def.Name, def.Place(), reason)
		}
	}
	c.main, _ = mainChoice(in.Main, in.MainChoice, in.Models) // mainSpec reports
	c.fallback, c.diagnostics = fallback(in.Models)
	c.diagnostics = append(c.diagnostics, c.flagNames()...)
	offered := slices.DeleteFunc(slices.Clone(in.Agents), func(d *agents.Definition) bool { return notOffered(d) != "" })
	slices.SortStableFunc(offered, func(a, b *agents.Definition) int { return cmp.Compare(a.Name, b.Name) })
	for i, def := range offered {
		if i > 0 && def.Name == offered[i-1].Name {
			return nil, fmt.Errorf("compile: two definitions are named %q: %s and %s; merge them in a registry first",
				def.Name, offered[i-1].Place(), def.Place())
		}
		c.targets = append(c.targets, c.newTarget(def))
	}
	if in.Main != nil {
		c.top = c.top.join(c.link(in.Main))
	}
	if len(c.targets) == 0 && !c.noSubagents.On {
		c.noSubagents = Switch{On: true, Origin: "no sub-agent is enabled"}
	}
	return c, nil
}

// notMain says why a definition can't be the main agent, and the way out; "" if
// it can.
func notMain(def *agents.Definition) string {
	switch {
	case def.Broken:
		return "its definition has errors; `synapse agents validate` shows them"
	case def.Disabled:
		return "it is disabled; enable it first"
	case def.Mode == agents.ModeSubagent:
		return "its mode is subagent; set `mode: all` or `mode: primary`"
	}
	return ""
}

// notOffered says why a definition is no sub-agent that can be delegated to; ""
// if it is one.
func notOffered(def *agents.Definition) string {
	switch {
	case def.Broken:
		return "its definition has errors"
	case def.Disabled:
		return "it is disabled"
	case def.Mode == agents.ModePrimary:
		return "its mode is primary: it can be the main agent and is never delegated to"
	case def.Ownership == agents.OwnershipHandoff:
		return "its ownership is handoff: it takes the conversation over instead of being delegated to"
	}
	return ""
}

// flagNames warns of names on the command line that no tool answers to. Those
// in settings may be meant for another workspace and are passed over.
func (c *compiler) flagNames() []agents.Diagnostic {
	var list []agents.Diagnostic
	warn := func(code, flag, effect string, names Names) {
		for _, name := range names.Values {
			if len(c.host.resolve(name)) == 0 {
				list = append(list, agents.Diagnostic{
					Severity: agents.Warn, Code: code, Hint: c.host.didYouMean(name),
					Message: fmt.Sprintf("%s: %q is no tool here, so it %s", flag, name, effect),
				})
			}
		}
	}
	if allowed := c.in.Restrictions.Allowed; allowed != nil {
		warn(CodeToolUnresolved, "--allowed-tools", "gives nothing", *allowed)
	}
	for _, layer := range c.in.Restrictions.Excluded {
		if layer.Origin == OriginFlag {
			warn(CodeDisallowedUnresolved, "--disallowed-tools", "denies nothing", layer)
		}
	}
	return list
}

// compile builds the graph level by level, so that every spec knows whether
// there is a level below it.
func (c *compiler) compile() error {
	entry, err := c.mainSpec(c.in.Main)
	if err != nil {
		return err
	}
	c.add(entry, c.entryID(entry.spec.Agent))
	c.graph.Entry = entry.spec.ID
	c.diagnostics = append(c.diagnostics, entry.diagnostics...)
	var level []group
	if slices.Contains(entry.spec.Policy.Allow, toolTask) {
		level = append(level, group{under: c.top, callers: []string{entry.spec.ID}})
	}
	if level, err = c.owners(level); err != nil {
		return err
	}
	if err := c.workflows(); err != nil {
		return err
	}
	for depth := 1; len(level) > 0 || depth < 3 && len(c.pending) > 0; depth++ {
		if depth == 2 {
			level = append(level, c.pending...)
		}
		below := c.below(level)
		nest := depth < c.maxDepth
		if nest && len(c.graph.Specs)+(len(level)+len(below))*len(c.targets) > MaxSpecs {
			nest = false
			c.diagnostics = append(c.diagnostics, agents.Diagnostic{
				Severity: agents.Warn, Code: CodeDepthReduced,
				Message: fmt.Sprintf("the agents that may delegate would need more than %d specs, so none of them delegates below depth %d", MaxSpecs, depth),
				Hint:    "let fewer agents delegate (can_spawn_subagent), or give them the same disallowed_tools and permissions",
			})
		}
		next := map[string]*group{}
		for _, g := range level {
			c.graph.Edges = slices.Grow(c.graph.Edges, len(g.callers)*len(c.targets))
			for _, t := range c.targets {
				id, fresh, err := c.ensure(t, depth, nest, g.under)
				if err != nil {
					return err
				}
				for _, caller := range g.callers {
					c.graph.Edges = append(c.graph.Edges, synapse.Edge{Kind: synapse.EdgeCall, From: caller, To: id, Names: t.names})
				}
				if fresh && nest && t.nests(g.under) {
					under := g.under.join(t.own)
					key := under.key()
					if next[key] == nil {
						next[key] = &group{under: under}
					}
					next[key].callers = append(next[key].callers, id)
				}
			}
		}
		level = level[:0]
		for _, g := range below {
			if at := next[g.under.key()]; at != nil {
				level = append(level, *at)
			}
		}
	}
	c.joinFlows()
	return nil
}

// A group are the callers of one level that pass on the same restrictions:
// what they call is the same.
type group struct {
	under   chain
	callers []string // spec IDs
}

// below returns the groups that the level's own spawners would form, without
// their callers, in the order of the level.
func (c *compiler) below(level []group) []group {
	var groups []group
	seen := map[string]bool{}
	for _, g := range level {
		for _, t := range c.targets {
			if !t.nests(g.under) {
				continue
			}
			under := g.under.join(t.own)
			if key := under.key(); !seen[key] {
				seen[key] = true
				groups = append(groups, group{under: under})
			}
		}
	}
	return groups
}

// specKey tells the specs of a graph apart.
type specKey struct {
	name  string
	depth int // 0 for an agent that is the same at every depth
	under string
}

// ensure returns the ID of the target's spec at the depth and under the
// callers, compiling it if it is not there yet.
func (c *compiler) ensure(t *target, depth int, nest bool, under chain) (id string, fresh bool, err error) {
	key := specKey{name: t.def.Name}
	if t.nests(under) {
		key.depth = depth
	}
	under = t.binding(under, nest)
	key.under = under.key()
	if id, ok := c.taken[key]; ok {
		return id, false, nil
	}
	left := 0
	if nest {
		left = c.maxDepth - depth
	}
	s, err := c.subSpec(t, left, under)
	if err != nil {
		return "", false, err
	}
	if !t.reported { // the first spec is the one nearest to the user
		t.reported = true
		c.diagnostics = append(c.diagnostics, s.diagnostics...)
	}
	id = c.subID(t.def.Name, key.depth, under)
	c.taken[key] = id
	c.add(s, id)
	return id, true, nil
}

func (c *compiler) add(s *compiled, id string) {
	s.spec.ID = id
	c.ids[id] = true
	c.graph.Specs = append(c.graph.Specs, s.spec)
}

// entryID names the main agent's spec, apart from a sub-agent of that name.
func (c *compiler) entryID(name string) string {
	for _, t := range c.targets {
		if t.def.Name == name {
			return c.unique(name + "@0")
		}
	}
	return name
}

// subID names a sub-agent's spec: its name, the depth where that matters, and
// the callers whose restrictions make it another agent than elsewhere.
func (c *compiler) subID(name string, depth int, under chain) string {
	id := name
	if depth > 0 && c.maxDepth > 1 {
		id = fmt.Sprintf("%s@%d", name, depth)
	}
	var callers []string
	for _, l := range under {
		if slices.Contains(c.top, l) {
			continue // everybody is below the main agent
		}
		name := l.names[0]
		if more := len(l.names) - 1; more > 0 {
			name = fmt.Sprintf("%s+%d", name, more)
		}
		callers = append(callers, name)
	}
	if len(callers) > 0 {
		id += "[" + strings.Join(callers, ",") + "]"
	}
	if id == name {
		return id // names are unique, and nothing else takes them
	}
	return c.unique(id)
}

// unique returns the ID, changed if it is in use or is an agent's name: names
// may hold any character.
func (c *compiler) unique(id string) string {
	taken := func(id string) bool {
		return c.ids[id] || slices.ContainsFunc(c.targets, func(t *target) bool { return t.def.Name == id })
	}
	next := id
	for n := 2; taken(next); n++ {
		next = fmt.Sprintf("%s~%d", id, n)
	}
	return next
}

// compiled is a spec with what is known of it beside the spec itself.
type compiled struct {
	spec        synapse.Spec
	unresolved  []string
	diagnostics []agents.Diagnostic
	transfers   []string // the tools with which it hands over
	owner       bool     // it answers the user
}

// mainSpec compiles the main agent; nil is the built-in.
func (c *compiler) mainSpec(def *agents.Definition) (*compiled, error) {
	s := &compiled{spec: synapse.Spec{
		Agent: MainName, Description: "The main agent: it answers the user.", Origin: OriginBuiltin, Limits: c.in.Limits,
	}}
	choice := c.main
	if def != nil {
		s.spec.Agent, s.spec.Description, s.spec.Origin = def.Name, def.Description, file(def)
		s.spec.Limits = c.in.Limits.Min(ownLimits(def))
		choice, s.diagnostics = mainChoice(def, c.in.MainChoice, c.in.Models)
	}
	s.transfers = c.transfersOf(def)
	return s, c.finish(s, def, choice, ToolInput{Main: true, DepthLeft: c.maxDepth})
}

// subSpec compiles a sub-agent that has left levels below it.
func (c *compiler) subSpec(t *target, left int, under chain) (*compiled, error) {
	def := t.def
	s := &compiled{spec: synapse.Spec{
		Agent: def.Name, Description: def.Description, Origin: file(def),
		Background: def.Background, Limits: ownLimits(def),
	}}
	s.spec.Limits.Turns = cmp.Or(s.spec.Limits.Turns, DefaultTurns)
	s.spec.Limits.Time = cmp.Or(s.spec.Limits.Time, DefaultTime)
	var choice Choice
	choice, s.diagnostics = ResolveModel(def, c.main, c.in.Models)
	return s, c.finish(s, def, choice, ToolInput{DepthLeft: left, Callers: under.callers()})
}

// ownLimits returns the limits that a definition sets.
func ownLimits(def *agents.Definition) synapse.Limits {
	return def.Limits.Min(synapse.Limits{Turns: def.MaxTurns})
}

// finish fills in what main and sub-agents have in common.
func (c *compiler) finish(s *compiled, def *agents.Definition, choice Choice, tools ToolInput) error {
	spec := &s.spec
	spec.Model, spec.ModelOrigin = choice.Model, choice.ModelOrigin
	spec.Effort, spec.EffortOrigin = choice.Effort, choice.EffortOrigin
	for _, ref := range c.fallback {
		if ref != spec.Model {
			spec.Fallback = append(spec.Fallback, ref)
		}
	}
	j := c.judge(def, tools)
	spec.Policy, s.unresolved = j.policy()
	j.transfers(&spec.Policy, s.transfers)
	diags := j.warnings(&spec.Policy, s.unresolved)
	s.diagnostics = append(s.diagnostics, diags...)
	if def != nil {
		spec.Temperature, spec.TopP = def.Temperature, def.TopP
		spec.Output = def.OutputSchema
		for _, d := range diags {
			if d.Code == CodeNoTools && !tools.Main {
				spec.NoTools = d.Message
			}
		}
		s.diagnostics = append(s.diagnostics, c.preload(spec, def)...)
	}
	var err error
	if spec.System, err = systemPrompt(c.in, def, tools.Main || s.owner, &spec.Policy); err == nil {
		spec.Digest, err = digest(spec)
	}
	if err != nil {
		return fmt.Errorf("compile: agent %q (%s): %w", spec.Agent, spec.Origin, err)
	}
	return nil
}

// judge returns the judge of one agent, with what is the same for all filled in.
func (c *compiler) judge(def *agents.Definition, in ToolInput) *judge {
	in.App, in.Tools, in.Restrictions = c.in.App, c.in.Tools, c.in.Restrictions
	in.NoSubagents, in.Definition = c.noSubagents, def
	return newJudge(c.host, &in)
}

// preload puts the definition's skills before the task prompt.
func (c *compiler) preload(spec *synapse.Spec, def *agents.Definition) []agents.Diagnostic {
	var missing []agents.Diagnostic
	for _, name := range def.Skills {
		text, ok := "", false
		if c.in.Skill != nil {
			text, ok = c.in.Skill(name)
		}
		if !ok {
			missing = append(missing, warning(def, "skills", CodeSkillMissing,
				"put it at .synapse/skills/"+name+"/SKILL.md in the workspace or the home directory",
				"skills: there is no skill %q, so it is not preloaded", name))
			continue
		}
		spec.Preload = append(spec.Preload,
			synapse.UserText("Skill `"+name+"`, for the task that follows:\n\n"+strings.TrimSpace(text)),
			synapse.AssistantText("I have read the skill `"+name+"` and will apply it."))
	}
	return missing
}

// digest returns the SHA-256 of what decides how a run of the spec behaves. Its
// names, the places its parts come from and the reasons of denials only decide
// how people are told of it.
func digest(spec *synapse.Spec) (string, error) {
	s := *spec
	s.ID, s.Digest, s.Description, s.Origin, s.ModelOrigin, s.EffortOrigin = "", "", "", "", "", ""
	s.Policy.Block = nil // what is not in Allow is refused
	s.Policy.Rules = nil
	for _, src := range spec.Policy.Rules {
		rules := slices.Clone(src.Rules)
		for i := range rules {
			rules[i].Line = 0
		}
		s.Policy.Rules = append(s.Policy.Rules, policy.Source{Rules: rules})
	}
	data, err := json.Marshal(&s) // fields in their order, raw JSON compacted
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
