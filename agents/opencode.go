package agents

import (
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// The table of opencode.
func opencode() *product {
	p := &product{
		Product: Product{
			Name: "opencode", Title: "opencode", Format: formatMarkdown, Nested: true, PathNames: true,
			Places: []Place{
				{LayerHome, ".config/opencode/opencode.json"}, {LayerHome, ".config/opencode/opencode.jsonc"},
				{LayerHome, ".config/opencode/agent"}, {LayerHome, ".config/opencode/agents"},
				{LayerHome, ".opencode/agent"}, {LayerHome, ".opencode/agents"},
				{LayerWorkspace, "opencode.json"}, {LayerWorkspace, "opencode.jsonc"},
				{LayerWorkspace, ".opencode/opencode.json"}, {LayerWorkspace, ".opencode/opencode.jsonc"},
				{LayerWorkspace, ".opencode/agent"}, {LayerWorkspace, ".opencode/agents"},
			},
			Twice:       "the one that is read last, piece by piece; here the first in the order of places, whole",
			AbsentTools: "all tools", EmptyTools: "all tools; here none",
			Tools: []ProductTool{
				tool("read", "read_file"),
				tool("edit", "edit_file").covers("write_file", "patch"),
				tool("write", "write_file").covers("edit_file", "patch"),
				tool("patch", "patch").or("multiedit", "apply_patch").covers("edit_file", "write_file"),
				tool("bash", "execute"),
				tool("grep", "search_files").covers("grep"),
				tool("glob", "find_files").covers("glob"),
				tool("list", "find_files").covers("ls"),
				tool("webfetch", "fetch_url"),
				tool("websearch", "web_search").or("codesearch"),
				tool("task", "task"),
				tool("skill", "skill"),
				tool("todowrite", "write_todos"),
				tool("todoread"), tool("lsp"), tool("question"), tool("external_directory"), tool("doom_loop"),
				tool("plan_enter"), tool("plan_exit"),
			},
			Differs: []string{
				"Rules for the patterns of searches (grep, glob) can't be said here: any that restricts is about the whole tool.",
				"Of opencode.json nothing but agent, permission and tools is read.",
				"An agent may start others where task is allowed in so many words, as in opencode.",
			},
		},
		emptyTools: "opencode takes that for all tools",
		mcp:        mcpBare, paths: pathsCross,
		config:     "agent",
		passedOver: []string{"build", "plan", "general", "explore", "title", "summary", "compaction"},
		finish:     finishOpencode,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("system_prompt", "prompt").says("the system prompt in opencode.json; {file:…} is read"),
		take("mode", "mode"),
		take("model", "model"),
		take("reasoning_effort", "reasoningEffort").with(readForeignEffort),
		take("temperature", "temperature"),
		take("top_p", "top_p"),
		take("tools", "tools").says("a map of names to true or false: false takes a tool away").with(readToolsMap),
		take("permissions", "permission").says("the last rule that fits wins, as here").with(readOrdered),
		take("max_turns", "steps", "maxSteps"),
		own("disable", "enabled", "true: listed, never run", native.exact["disable"].read),
		ignored("hidden", "the picker of names has no such entry; other agents may call it all the same", "hidden_from_cycle"),
		ignored("variant", "a model's variant is part of its name here"),
		ignored("options", "options go to the provider by its settings"),
		take("color", "color"),
	)
	p.judge = judge{anyName: true, strictYAML: true, mapOnly: true, tools: "tools", allFail: true}
	p.writer = &writer{
		permission: true, mode: true, disable: true, turns: "steps", model: true, slashModel: true, temperature: true, topP: true,
		effort: "reasoningEffort", efforts: openaiEfforts, noName: true,
	}
	return p
}

// A permission is one entry of a product's ordered rules: an action for calls
// of a tool that fit a pattern.
type permission struct {
	tool  string // "*" or a name of the product's, which may be a glob
	rules []patternRule
}

type patternRule struct {
	pattern string
	action  policy.Action
	node    *yaml.Node
}

// assign sets the rules of a tool, as assigning to a key of a JavaScript object
// does: one that is there already keeps its place. A denial that is there
// already stays in front of what replaces it: whoever switches a tool off and
// grants some of its calls means these alone.
func (r *reader) assign(tool string, rules ...patternRule) {
	for i := range r.ordered {
		if p := &r.ordered[i]; p.tool == tool {
			p.rules = append(slices.DeleteFunc(p.rules, func(q patternRule) bool { return q.action == policy.Allow }), rules...)
			return
		}
	}
	r.ordered = append(r.ordered, permission{tool, rules})
}

// readToolsMap reads {write: false, bash: true}: each an action for the whole
// tool. A list, which opencode refuses, is read as one.
func readToolsMap(r *reader, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || customTag(n) {
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && trim(n.Value) != "" {
			r.warn(n, CodeToolsShape, "write a map: {read: true, bash: false}", "tools is a list, which opencode refuses; here it is read as one")
		}
		return readTools(r, n)
	}
	yes, no := 0, 0
	for _, p := range r.pairs(n) {
		name := trim(p.key.Value)
		on, ok := boolOf(r.follow(p.value))
		if !ok || p.key.Kind != yaml.ScalarNode || name == "" || badToolName(name) {
			return r.bad(p.key, "write true or false", "is a map that gives %q neither true nor false", shorten(name, 40))
		}
		action := policy.Deny
		if on {
			yes++
			action = policy.Allow
		} else {
			no++
		}
		// opencode has one permission for all that changes files.
		switch name {
		case "write", "patch", "multiedit", "apply_patch":
			name = "edit"
		}
		r.assign(name, patternRule{"*", action, p.key})
	}
	if r.budget < 0 {
		return r.bad(n, "write a shorter map", "has too many aliases")
	}
	r.warn(n, CodeToolsMap, "write permission: {tool: deny}", "tools is a map; its %d false entries are denials, and its %d true ones grant what the agent has anyway", no, yes)
	return nil
}

// readOrdered reads permission: {edit: deny, bash: {"*": ask, "git *": allow}}.
func readOrdered(r *reader, n *yaml.Node) error {
	const hint = `write permission: {edit: deny, bash: {"*": ask, "git *": allow}}`
	action := func(v *yaml.Node) (policy.Action, error) {
		w, err := r.word(v, string(policy.Allow), string(policy.Ask), string(policy.Deny))
		return policy.Action(w), err
	}
	switch {
	case n.Tag == tagUnreadable:
		return r.bad(n, hint, "can't be read")
	case n.Kind == yaml.ScalarNode && !customTag(n):
		a, err := action(n)
		if err == nil {
			r.assign("*", patternRule{"*", a, n})
		}
		return err
	case n.Kind != yaml.MappingNode || customTag(n):
		return r.bad(n, hint, "is %s", kindOf(n))
	}
	entries := r.ruleEntries(n)
	if key := twice(entries); key != nil {
		return r.bad(key, "join the two", "has the key %q twice", shorten(key.Value, 40))
	}
	for _, p := range entries {
		name, v := trim(p.key.Value), r.follow(p.value)
		if p.key.Kind != yaml.ScalarNode || p.key.Tag == "!!merge" || badToolName(name) {
			return r.bad(p.key, hint, "has a key that is no tool's name")
		}
		if v.Kind != yaml.MappingNode || customTag(v) {
			a, err := action(v)
			if err != nil {
				return within(name, err)
			}
			r.assign(name, patternRule{"*", a, p.key})
			continue
		}
		patterns := r.ruleEntries(v)
		if key := twice(patterns); key != nil {
			return within(name, r.bad(key, "keep one of the two", "has the pattern %q twice", shorten(key.Value, 40)))
		}
		var rules []patternRule
		for _, q := range patterns {
			if q.key.Kind != yaml.ScalarNode || q.key.Tag == "!!merge" || trim(q.key.Value) == "" {
				return r.bad(q.key, hint, "has a key that is no pattern")
			}
			a, err := action(r.follow(q.value))
			if err != nil {
				return within(name, err)
			}
			rules = append(rules, patternRule{trim(q.key.Value), a, q.key})
		}
		r.assign(name, rules...)
	}
	if r.budget < 0 {
		return r.bad(n, hint, "has too many aliases")
	}
	return nil
}

// finishOpencode turns the ordered rules into ours, in the same order: in both
// the last one that fits decides.
func finishOpencode(r *reader) {
	r.field = r.dialect.exact["permissions"]
	for _, p := range r.general {
		if err := r.orderedRules(p); err != nil {
			r.failed(err, nil)
			return
		}
	}
	for _, p := range r.ordered {
		if err := r.orderedRules(p); err != nil {
			r.failed(err, nil)
			return
		}
		if p.tool == "task" && slices.ContainsFunc(p.rules, func(q patternRule) bool { return q.action != policy.Deny }) {
			r.d.CanSpawn = true
		}
	}
}

// maxRules bounds how many rules come of one definition's permissions: a
// pattern with stars that cross folders is several here.
const maxRules = 4000

// opencodeOwner says which permission decides on calls of a tool, where several
// are about it. The others can only take from it.
var opencodeOwner = map[string]string{
	"write_file": "edit", "edit_file": "edit", "patch": "edit",
	"search_files": "grep", "grep": "grep", "find_files": "glob", "glob": "glob", "ls": "list",
}

// searchTools are those of ours that others stand for in the application.
var searchTools = []string{"ls", "glob", "grep"}

// orderedRules adds the rules for one of opencode's permissions.
func (r *reader) orderedRules(p permission) error {
	granted := r.toolNames(p.tool, false)
	for _, tool := range r.permissionTools(p.tool) {
		owner := opencodeOwner[tool]
		owned := owner == "" || policy.MatchName(p.tool, owner)
		rules := p.rules
		if p.tool != "*" && owned && searchPermission(owner) {
			rules = r.wholeTool(tool, p)
		}
		for _, q := range rules {
			if !owned {
				if q.action != policy.Allow {
					r.limit(q.node.Line, q.action, []string{tool})
				}
				continue
			}
			if q.action == policy.Allow && p.tool != "*" && slices.Contains(searchTools, tool) {
				continue // what it grants is the tool that stands for these
			}
			if q.action == policy.Allow && strings.HasPrefix(tool, "mcp__") && !policy.IsGlob(p.tool) {
				// Where server and tool could be cut apart in several ways, a
				// denial is about all of them and a grant about one.
				if len(granted) != 1 {
					continue
				}
				tool = granted[0]
			}
			patterns, err := r.orderedPattern(tool, q)
			if err != nil {
				return err
			}
			for _, pattern := range patterns {
				rule, err := r.newRule(q.node, tool, pattern, q.action)
				if len(r.d.Permissions) >= maxRules {
					return r.bad(q.node, "write fewer patterns, or with fewer stars", "comes to more than %d rules", maxRules)
				}
				switch {
				case err == nil:
					r.d.Permissions = append(r.d.Permissions, rule)
				case q.action != policy.Allow: // an allowance that is lost leaves what was said before
					return err
				}
			}
		}
	}
	return nil
}

// permissionTools returns the tools that a permission of opencode's is about.
func (r *reader) permissionTools(name string) []string {
	if name == "*" {
		return []string{"*"}
	}
	if t := r.dialect.product.lookupTool(name); t != nil {
		return t.Covers
	}
	list := slices.Clone(r.toolNames(name, true))
	if policy.IsGlob(name) { // over opencode's own names too
		for _, t := range r.dialect.product.Tools {
			if policy.MatchName(name, t.Name) {
				list = append(list, t.Covers...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// searchPermission reports whether the patterns of a permission are over what
// is searched for, which no rule here sees.
func searchPermission(name string) bool { return name == "grep" || name == "glob" }

// wholeTool returns the rules for a tool whose patterns can't be said: the last
// one for all calls. What restricts some calls after it restricts all.
func (r *reader) wholeTool(tool string, p permission) []patternRule {
	var whole []patternRule
	var some []patternRule
	for _, q := range p.rules {
		switch {
		case q.pattern == "*" || q.pattern == "**" || q.pattern == "**/*":
			q.pattern = "*"
			whole, some = []patternRule{q}, nil
		case q.action != policy.Allow:
			some = append(some, q)
		}
	}
	for _, q := range some {
		r.wider(tool, q)
	}
	return whole
}

// wider applies a restriction of some calls to all calls of the tool.
func (r *reader) wider(tool string, q patternRule) {
	r.limit(q.node.Line, q.action, []string{tool})
	r.warn(q.node, CodeStricter, "", "a rule for %q can't be said here as it is there, so %s is restricted in all its calls", shorten(q.pattern, 40), tool)
}

// orderedPattern returns a pattern in our form; see [reader.patterns].
func (r *reader) orderedPattern(tool string, q patternRule) ([]string, error) {
	pattern := q.pattern
	restricts := q.action != policy.Allow
	isPath := slices.Contains(pathTools, tool)
	switch {
	case pattern == "*" || pattern == "**":
		return []string{"*"}, nil
	case restricts && tool == "fetch_url", q.action == policy.Ask && strings.Contains(pattern, "?"):
		r.wider(tool, q)
		return nil, nil
	case isPath:
		return r.patterns(tool, pattern, q.action, q.node)
	case restricts: // what fits more may be denied, and not asked about
		return []string{strings.ReplaceAll(pattern, "?", "*")}, nil
	}
	return []string{pattern}, nil
}
