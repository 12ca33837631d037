package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
)

// frameworkTools are the tools that every host has; inheritedTools are those
// that an agent has beyond them where its definition is silent.
var (
	frameworkTools = []string{"ls", "glob", "grep", "read_file", "write_file", "edit_file", "execute"}
	inheritedTools = []string{"find_files", "search_files", "patch"}
)

// lists reports whether the definition's list of tools has the tool in it, or
// would have it if it were one.
func (d *Definition) lists(tool string) bool {
	switch d.Tools.Mode {
	case ToolsExact:
		for _, name := range d.Tools.Names {
			if policy.MatchName(policy.Canonical(name, nil), tool) || policy.MatchName(name, tool) {
				return true
			}
		}
		return false
	case ToolsFramework:
		return slices.Contains(frameworkTools, tool) || tool == "task" && d.CanSpawn
	}
	return slices.Contains(frameworkTools, tool) || slices.Contains(inheritedTools, tool) || tool == "task" && d.CanSpawn
}

// denies reports whether disallowed_tools takes the tool away.
func (d *Definition) denies(tool string) bool {
	for _, name := range d.DisallowedTools {
		if policy.MatchName(policy.Canonical(name, nil), tool) || policy.MatchName(name, tool) {
			return true
		}
	}
	return false
}

// judges says what the definition lets the agent do with a tool, for one
// subject. The host's own restrictions come on top of it.
func (d *Definition) judges(tool, subject string) policy.Action {
	if !d.lists(tool) || d.denies(tool) || tool == "task" && !d.CanSpawn {
		return policy.Deny
	}
	p := policy.Policy{Allow: []string{tool}}
	if len(d.Permissions) > 0 {
		p.Rules = []policy.Source{{Rules: d.Permissions}}
	}
	return p.Check(policy.Call{Tool: tool, Kind: subjectKind(tool), Subjects: []string{subject}}).Action
}

// subjectKind is the kind of what a tool's calls are about.
func subjectKind(tool string) policy.SubjectKind {
	switch {
	case slices.Contains(pathTools, tool):
		return policy.SubjectPath
	case tool == "execute":
		return policy.SubjectCommand
	case tool == "fetch_url":
		return policy.SubjectURL
	}
	return policy.SubjectText
}

// standing is what a definition says of a tool as a whole.
type standing struct {
	action policy.Action // of the calls that no pattern is about
	// patterns are the rules that decide otherwise, in their order.
	patterns []policy.Rule
}

// standing sums up what the definition says of a tool.
func (d *Definition) standing(tool string) standing {
	if !d.lists(tool) || d.denies(tool) || tool == "task" && !d.CanSpawn {
		return standing{action: policy.Deny}
	}
	s := standing{action: policy.Allow}
	for _, r := range d.Permissions {
		if !policy.MatchName(policy.Canonical(r.Tool, nil), tool) && !policy.MatchName(r.Tool, tool) {
			continue
		}
		if r.Pattern == "*" {
			s = standing{action: r.Action}
			continue
		}
		if len(s.patterns) > 0 || r.Action != s.action {
			s.patterns = append(s.patterns, r)
		}
	}
	return s
}

// universe returns tools that tell two definitions apart: those there are, and
// for each name and glob in them one that it means.
func universe(defs ...*Definition) []string {
	list := slices.Clone(builtinTools)
	list = slices.DeleteFunc(list, func(t string) bool { return t == "task_output" || t == "task_stop" || t == "write_todos" })
	add := func(name string) {
		name = strings.ReplaceAll(policy.Canonical(name, nil), "*", "x")
		if !slices.Contains(list, name) && name != "" && name != "write_todos" {
			list = append(list, name)
		}
	}
	add("mcp__other__do")
	for _, d := range defs {
		for _, name := range slices.Concat(d.Tools.Names, d.DisallowedTools) {
			add(name)
		}
		for _, r := range d.Permissions {
			add(r.Tool)
		}
	}
	return list
}

// bare takes what a pattern has beyond plain text off.
var bare = strings.NewReplacer("?", "x", `\`, "")

// samples returns subjects that tell rules apart: for each pattern some that
// fit it and some that barely don't, and a few that are just there.
func samples(kind policy.SubjectKind, defs ...*Definition) []string {
	var list []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	switch kind {
	case policy.SubjectPath:
		for _, s := range []string{".", "x", "x/y", "src/main.go", ".env", "a/b/c.txt"} {
			add(s)
		}
	case policy.SubjectCommand:
		for _, s := range []string{"ls", "ls -l", "git status", "rm -rf x"} {
			add(s)
		}
	case policy.SubjectURL:
		add("https://example.com/x")
		add("https://pkg.go.dev/fmt")
	default:
		add("x")
		add("reviewer")
	}
	for _, d := range defs {
		for _, r := range d.Permissions {
			p := r.Pattern
			if p == "*" || !policy.IsGlob(r.Tool) && subjectKind(policy.Canonical(r.Tool, nil)) != kind {
				continue
			}
			for _, star := range []string{"", "x", "x/y", "x y"} {
				s := strings.ReplaceAll(strings.ReplaceAll(p, "**", star), "*", star)
				add(bare.Replace(s))
			}
			add(strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(p, "*"), "*"), " /"))
			add("x" + p)
		}
		if len(list) > 150 {
			break
		}
	}
	return list
}

// allows says what the definition lets the agent do, by one tool or by others
// that come to the same: who may edit and write a file may patch it, unless the
// definition says otherwise of patch.
func (d *Definition) allows(tool, subject string) policy.Action {
	a := d.judges(tool, subject)
	about := func(name string) bool {
		return policy.MatchName(policy.Canonical(name, nil), tool) || policy.MatchName(name, tool)
	}
	if tool != "patch" || d.denies(tool) || slices.ContainsFunc(d.Permissions, func(r policy.Rule) bool { return about(r.Tool) }) {
		return a
	}
	b := d.judges("edit_file", subject)
	if w := d.judges("write_file", subject); stricter(w, b) {
		b = w
	}
	if stricter(a, b) {
		return b
	}
	return a
}

// compareAccess says in which ways got lets an agent do more than want does,
// and in which less. The tools of the names in same are passed over.
func compareAccess(got, want *Definition, same []string) (more, less []string) {
	subjects := map[policy.SubjectKind][]string{}
	for _, tool := range universe(got, want) {
		if slices.Contains(same, tool) {
			continue
		}
		kind := subjectKind(tool)
		if subjects[kind] == nil {
			subjects[kind] = samples(kind, got, want)
		}
		for _, s := range subjects[kind] {
			a, b := got.allows(tool, s), want.allows(tool, s)
			if a == b {
				continue
			}
			what := fmt.Sprintf("%s (%s) would be %s instead of %s", tool, shorten(s, 30), verdicts[a], verdicts[b])
			if stricter(b, a) {
				more = append(more, what)
			} else {
				less = append(less, what)
			}
			break
		}
	}
	bound := func(what string, got, want float64) {
		switch {
		case want > 0 && (got == 0 || got > want):
			more = append(more, what+" would not hold")
		case got > 0 && (want == 0 || got < want):
			less = append(less, what+" would be smaller")
		}
	}
	bound("max_turns", float64(got.MaxTurns), float64(want.MaxTurns))
	bound("limits.tokens", float64(got.Limits.Tokens), float64(want.Limits.Tokens))
	bound("limits.cost_usd", got.Limits.CostUSD, want.Limits.CostUSD)
	bound("limits.time", float64(got.Limits.Time), float64(want.Limits.Time))
	bound("limits.tool_calls", float64(got.Limits.ToolCalls), float64(want.Limits.ToolCalls))
	bound("limits.spawns", float64(got.Limits.Spawns), float64(want.Limits.Spawns))
	switch {
	case want.Disabled && !got.Disabled:
		more = append(more, "the agent would be on")
	case got.Disabled && !want.Disabled:
		less = append(less, "the agent would be off")
	}
	if got.Mode != want.Mode {
		if want.Mode != ModeAll && want.Mode != "" {
			more = append(more, fmt.Sprintf("mode would be %s instead of %s", got.Mode, want.Mode))
		} else {
			less = append(less, fmt.Sprintf("mode would be %s instead of %s", got.Mode, want.Mode))
		}
	}
	if got.Ownership != want.Ownership && want.Ownership == OwnershipHandoff {
		more = append(more, "ownership would not be handoff")
	}
	return more, less
}

var verdicts = map[policy.Action]string{policy.Allow: "allowed", policy.Ask: "asked about", policy.Deny: "denied"}
