package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
)

// optional are the tools that another one covers wherever it is had.
var optional = []string{"ls", "glob", "grep", "patch"}

// tools writes which tools the agent has, and what it may do with them.
func (c *converter) tools() {
	switch w := c.w; {
	case w.permission:
		c.permission()
	case w.lists:
		c.toolList()
	case w.readOnly != "":
		c.readOnly()
	}
}

// hasAll reports whether the definition has every tool that it does not deny,
// those of servers included.
func (d *Definition) hasAll() bool {
	return d.Tools.Mode == ToolsExact && slices.Contains(d.Tools.Names, "*")
}

// whole reports what a tool can be had for in a format without patterns: as a
// whole, or not at all. What asks, or depends on the call, is lost.
func (c *converter) whole(tool string) bool {
	s := c.d.standing(tool)
	deny := func(r policy.Rule) bool { return r.Action == policy.Deny }
	if s.action == policy.Deny && (len(s.patterns) == 0 || !slices.ContainsFunc(s.patterns, func(r policy.Rule) bool { return !deny(r) })) {
		return false
	}
	if s.action != policy.Allow || slices.ContainsFunc(s.patterns, func(r policy.Rule) bool { return r.Action != policy.Allow }) {
		c.lost("permissions", true, "rules for single calls of %s can't be said for %s", tool, c.p.Title)
	}
	return true
}

// toolList writes a list of names, and of denials where there is one.
func (c *converter) toolList() {
	d := c.d
	have := map[string]bool{}
	for _, tool := range builtinTools {
		if tool != "task_output" && tool != "task_stop" && tool != "write_todos" {
			have[tool] = c.whole(tool)
		}
	}
	have["write_todos"] = d.standing("write_todos").action != policy.Deny
	if d.hasAll() && c.denyList(have) {
		return
	}
	var names []string
	granted := map[string]bool{}
	for _, t := range c.p.Tools {
		adds := false
		for _, g := range t.Grants {
			adds = adds || !granted[g]
		}
		whole := !slices.ContainsFunc(t.Covers, func(g string) bool { return !have[g] && !slices.Contains(optional, g) })
		if adds && whole && slices.ContainsFunc(t.Grants, func(g string) bool { return have[g] }) {
			names = append(names, t.Name)
			for _, g := range t.Grants {
				granted[g] = true
			}
		}
	}
	c.delegates = c.w.spawns && granted["task"]
	names = append(names, c.serverTools()...)
	var lost []string
	for _, tool := range builtinTools {
		if have[tool] && !granted[tool] && !slices.Contains(optional, tool) && tool != "write_todos" {
			lost = append(lost, tool)
		}
	}
	if have["patch"] && !(granted["edit_file"] && granted["write_file"]) {
		lost = append(lost, "patch")
	}
	if d.hasAll() {
		lost = append(lost, "the tools of servers")
	}
	if len(lost) > 0 {
		c.narrowed("not in the list for %s: %s", c.p.Title, strings.Join(lost, ", "))
	}
	switch {
	case len(names) == 0 && !c.w.emptyList:
		c.lost("tools", true, "an agent without any tool can't be said for %s", c.p.Title)
	case c.w.commaTools && len(names) > 0:
		c.put("tools", c.key("tools"), strings.Join(names, ", "))
	default:
		c.put("tools", c.key("tools"), append([]string{}, names...))
	}
}

// denyList writes denials beside a silence that means all tools. It reports
// false, and writes nothing, where a denial has no name in the product.
func (c *converter) denyList(have map[string]bool) bool {
	var names []string
	done := map[string]bool{}
	for _, tool := range builtinTools {
		if slices.Contains(optional, tool) || tool == "task_output" || tool == "task_stop" || have[tool] || tool == "task" && !c.d.CanSpawn {
			continue
		}
		found := false
		for _, t := range c.p.Tools {
			if !slices.Contains(t.Covers, tool) {
				continue
			}
			// Every name that covers the tool must go, and takes along what else
			// it is for.
			found = true
			if !done[t.Name] {
				done[t.Name] = true
				names = append(names, t.Name)
			}
		}
		if !found {
			return false
		}
	}
	if len(names) > 0 && c.w.denies == "" || c.deniesServers() {
		return false
	}
	if len(names) > 0 {
		if c.w.commaTools {
			c.put("disallowed_tools", c.w.denies, strings.Join(names, ", "))
		} else {
			c.put("disallowed_tools", c.w.denies, names)
		}
	}
	return true
}

// deniesServers reports whether the definition says anything of tools that are
// not built in.
func (c *converter) deniesServers() bool {
	builtin := func(name string) bool { return slices.Contains(builtinTools, policy.Canonical(name, nil)) }
	return slices.ContainsFunc(c.d.DisallowedTools, func(name string) bool { return !builtin(name) }) ||
		slices.ContainsFunc(c.d.Permissions, func(r policy.Rule) bool { return r.Action != policy.Allow && !builtin(r.Tool) })
}

// serverTools returns the listed tools of servers under the product's names.
func (c *converter) serverTools() []string {
	var names []string
	for _, name := range c.d.Tools.Names {
		rest, ok := strings.CutPrefix(name, "mcp__")
		server, tool, cut := strings.Cut(rest, "__")
		switch {
		case name == "*" || knownTool(name):
		case policy.IsGlob(name) && !ok:
			// A glob over our own names was written out above.
			if slices.ContainsFunc(universe(c.d), func(t string) bool { return strings.HasPrefix(t, "mcp__") && policy.MatchName(name, t) }) {
				c.narrowed("tools: %q is left out for the tools of servers", name)
			}
		case !ok || !cut || server == "" || tool == "":
			c.narrowed("tools: %q has no name that %s would know", shorten(name, 40), c.p.Title)
		case c.d.standing(strings.ReplaceAll(name, "*", "x")).action != policy.Allow:
			c.narrowed("tools: %q is left out, as rules restrict it", shorten(name, 40))
		case policy.IsGlob(server) || policy.IsGlob(tool) && tool != "*":
			c.narrowed("tools: %q is left out, as it is a glob", shorten(name, 40))
		default:
			names = append(names, c.p.mcp.write(server, tool))
		}
	}
	c.servers = append(c.servers, names...)
	return names
}

// write is the product's name for a server's tool.
func (m mcpForm) write(server, tool string) string {
	switch m {
	case mcpSingle:
		return "mcp_" + server + "_" + tool
	case mcpBare:
		return server + "_" + tool
	case mcpSlash:
		return server + "/" + tool
	}
	return "mcp__" + server + "__" + tool
}

// readOnly writes a format that knows of nothing but taking all writing away.
func (c *converter) readOnly() {
	d := c.d
	full := &Definition{Tools: ToolRule{Mode: ToolsExact, Names: []string{"*"}}, Mode: d.Mode}
	locked := full.Clone()
	for _, t := range toolsReadOnly {
		locked.Permissions = tightenRules(locked.Permissions, t, policy.Deny, 0)
	}
	same := func(o *Definition) bool {
		o.CanSpawn = d.CanSpawn
		more, _ := compareAccess(&Definition{
			Tools: o.Tools, Permissions: o.Permissions, CanSpawn: o.CanSpawn,
			Mode: d.Mode, MaxTurns: d.MaxTurns, Limits: d.Limits, Disabled: d.Disabled, Ownership: d.Ownership,
		}, d, nil)
		return len(more) == 0
	}
	switch {
	case same(full):
		return
	case same(locked):
		// There a shell that changes nothing stays, whatever we make of the word
		// when we read it.
		for _, s := range samples(subjectKind("execute"), d) {
			if d.judges("execute", s) != policy.Allow {
				c.lost("tools", true, "the shell can't be taken away for %s, only kept from changing anything", c.p.Title)
				break
			}
		}
	default:
		c.lost("tools", true, "which tools the agent has can't be said for %s, only that it changes nothing", c.p.Title)
		if d.judges("write_file", "x") != policy.Deny || d.judges("execute", "ls") != policy.Deny {
			return
		}
	}
	key, value, _ := strings.Cut(c.w.readOnly, "=")
	if !c.toml() {
		key, value, _ = strings.Cut(c.w.readOnly, ":")
	}
	c.out = append(c.out, keyText{"tools", strings.TrimSpace(key), strings.TrimSpace(value)})
}

// permission writes ordered rules: all that is not had is denied first.
func (c *converter) permission() {
	d := c.d
	var rules object
	text := func(v any) []byte { return []byte(c.value(v)) }
	all := d.hasAll()
	if !all {
		rules = append(rules, member{"*", []byte(`"deny"`)})
	}
	for _, t := range c.p.Tools {
		if len(t.Grants) == 0 || slices.Contains([]string{"write", "patch", "task"}, t.Name) {
			continue
		}
		s, odd := c.strictest(t)
		if odd {
			c.narrowed("%s: write_file and edit_file have different rules; for %s the stricter ones hold for both", t.Name, c.p.Title)
		}
		switch {
		case len(s.patterns) == 0 && all && s.action == policy.Allow, len(s.patterns) == 0 && !all && s.action == policy.Deny:
		case len(s.patterns) == 0:
			rules = append(rules, member{t.Name, text(string(s.action))})
		default:
			rules = append(rules, member{t.Name, c.patternMap(t, s)})
		}
	}
	c.delegates = d.CanSpawn
	switch s := d.standing("task"); {
	case d.CanSpawn && len(s.patterns) > 0:
		rules = append(rules, member{"task", c.patternMap(*c.p.lookupTool("task"), s)})
	case d.CanSpawn:
		rules = append(rules, member{"task", text(string(s.action))})
	}
	if !all {
		for _, name := range c.serverTools() {
			rules = append(rules, member{name, []byte(`"allow"`)})
		}
	}
	for _, name := range d.deniedServers() {
		rest := strings.TrimPrefix(name, "mcp__")
		switch {
		case rest == "*":
			rules = append(rules, member{"*_*", []byte(`"deny"`)})
		case strings.HasPrefix(name, "mcp__"):
			rules = append(rules, member{strings.Replace(rest, "__", "_", 1), []byte(`"deny"`)})
		default:
			rules = append(rules, member{name, []byte(`"deny"`)})
		}
	}
	seen := map[string]bool{}
	rules = slices.DeleteFunc(rules, func(m member) bool {
		again := seen[m.key]
		seen[m.key] = true
		return again
	})
	if len(rules) > 0 {
		data, err := rules.MarshalJSON()
		if err == nil {
			c.out = append(c.out, keyText{"permissions", c.key("permissions"), yamlFlow(data)})
		}
	}
}

// deniedServers returns what is denied as a whole and is not built in.
func (d *Definition) deniedServers() []string {
	var list []string
	builtin := func(name string) bool { return slices.Contains(builtinTools, policy.Canonical(name, nil)) }
	for _, name := range d.DisallowedTools {
		if !builtin(name) && name != "*" {
			list = append(list, name)
		}
	}
	for _, r := range d.Permissions {
		if r.Action == policy.Deny && r.Pattern == "*" && !builtin(r.Tool) && r.Tool != "*" {
			list = append(list, r.Tool)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// strictest joins what is said of the tools that one of the product's stands
// for.
func (c *converter) strictest(t ProductTool) (s standing, odd bool) {
	var tools []string
	for _, tool := range t.Covers {
		if !slices.Contains(optional, tool) {
			tools = append(tools, tool)
		}
	}
	for i, tool := range tools {
		o := c.d.standing(tool)
		switch {
		case i == 0:
			s = o
		case sameStanding(s, o):
		default:
			odd = true
			if stricter(o.action, s.action) {
				s.action = o.action
			}
			s.patterns = nil // what one of them may do by a pattern the other may not
			if s.action != policy.Deny {
				s.action = policy.Deny
			}
		}
	}
	return s, odd
}

func sameStanding(a, b standing) bool {
	return a.action == b.action && slices.EqualFunc(a.patterns, b.patterns, func(x, y policy.Rule) bool {
		return x.Pattern == y.Pattern && x.Action == y.Action
	})
}

// patternMap writes the rules over one tool's calls.
func (c *converter) patternMap(t ProductTool, s standing) []byte {
	o := object{{"*", []byte(fmt.Sprintf("%q", s.action))}}
	set := func(pattern string, action policy.Action) {
		// A key that is there already would keep its place, so it goes first.
		o = slices.DeleteFunc(o, func(m member) bool { return m.key == pattern })
		o = append(o, member{pattern, []byte(fmt.Sprintf("%q", action))})
	}
	path := slices.Contains(pathTools, t.Grants[0])
	for _, r := range s.patterns {
		switch {
		case searchPermission(t.Name):
			if r.Action != policy.Allow {
				c.lost("permissions", true, "a rule over files for %s can't be said for %s", t.Name, c.p.Title)
			} else {
				c.narrowed("a rule over files for %s can't be said for %s, and is left out", t.Name, c.p.Title)
			}
		case !path:
			set(r.Pattern, r.Action)
		default:
			patterns, exact := wildcards(r.Pattern)
			if !exact && r.Action != policy.Deny {
				if r.Action == policy.Allow {
					c.narrowed("the pattern %q can't be said for %s, where “*” crosses folders, and is left out", r.Pattern, c.p.Title)
				} else {
					c.lost("permissions", true, "the pattern %q can't be said for %s, where “*” crosses folders", r.Pattern, c.p.Title)
				}
				continue
			}
			for _, p := range patterns {
				set(p, r.Action)
			}
		}
	}
	data, err := o.MarshalJSON()
	if err != nil {
		return []byte(`"deny"`)
	}
	return data
}

// wildcards writes one of our patterns over files as patterns in which "*" is
// any run of characters: those that fit at least as much. It reports whether
// they fit just as much.
func wildcards(pattern string) (list []string, exact bool) {
	p := strings.TrimPrefix(strings.TrimPrefix(pattern, "/"), "./")
	folder := strings.HasSuffix(p, "/")
	p = strings.TrimSuffix(p, "/")
	if !strings.ContainsAny(p, `*?[]{}\`) {
		if folder {
			return []string{p, p + "/*"}, true
		}
		return []string{p}, true
	}
	if base, ok := strings.CutSuffix(p, "/**"); ok && !strings.ContainsAny(base, `*?[]{}\`) {
		return []string{base, base + "/*"}, true
	}
	wide := strings.ReplaceAll(p, "**/", "*")
	for _, c := range []string{"[", "{"} {
		if i := strings.Index(wide, c); i >= 0 {
			wide = wide[:i] + "*"
		}
	}
	wide = strings.NewReplacer("**", "*", "?", "*", `\`, "*").Replace(wide)
	for strings.Contains(wide, "**") {
		wide = strings.ReplaceAll(wide, "**", "*")
	}
	for strings.Count(wide, "*") > maxStars && strings.Contains(wide, "*/*") {
		wide = strings.Replace(wide, "*/*", "*", 1)
	}
	if parts := strings.SplitAfterN(wide, "*", maxStars+1); len(parts) > maxStars && strings.Contains(parts[maxStars], "*") {
		wide = strings.Join(parts[:maxStars], "")
	}
	if base, ok := strings.CutSuffix(p, "/**"); ok {
		more, _ := wildcards(base)
		return append(more, wide), false
	}
	return []string{wide}, false
}
