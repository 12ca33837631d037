package agents

import (
	"slices"

	"github.com/synapse-agents/synapse/policy"
)

// The tools that change files and those that can do so by other means. A word
// such as "read-only" in another product's file takes all of them away: what
// part of it a shell or a server's tool would respect can't be told here.
var (
	toolsEdit     = []string{"write_file", "edit_file", "patch"}
	toolsShell    = []string{"execute"}
	toolsServers  = []string{"mcp__*"}
	toolsReadOnly = slices.Concat(toolsEdit, toolsShell)
)

// A tightening raises what rules say of tools to at least an action.
type tightening struct {
	tools  []string
	action policy.Action
	line   int
}

// limit takes tools away, or asks before each of their calls.
func (r *reader) limit(line int, action policy.Action, tools ...[]string) {
	r.tighten = append(r.tighten, tightening{slices.Concat(tools...), action, line})
}

// tightenAll applies what was gathered, when all other rules are known.
func (r *reader) tightenAll() {
	done := map[string]policy.Action{}
	for _, t := range r.tighten {
		for _, tool := range t.tools {
			if a, ok := done[tool]; ok && !stricter(t.action, a) {
				continue
			}
			done[tool] = t.action
			r.d.Permissions = tightenRules(r.d.Permissions, tool, t.action, t.line)
		}
	}
}

// tightenRules returns rules that say of each call of a tool the stricter of
// what they said and the action. As the last rule that matches decides, every
// later rule that would loosen it is followed by a copy that does not.
func tightenRules(rules []policy.Rule, tool string, action policy.Action, line int) []policy.Rule {
	out := []policy.Rule{{Tool: tool, Pattern: "*", Action: action, Line: line}}
	for _, r := range rules {
		out = append(out, r)
		if stricter(action, r.Action) && overlap(r.Tool, tool) {
			out = append(out, policy.Rule{Tool: tool, Pattern: r.Pattern, Action: action, Line: line})
		}
	}
	return out
}

// overlap reports whether two tool names, or globs over them, can mean the same
// tool. It may say yes where they can't.
func overlap(a, b string) bool {
	a, b = policy.Canonical(a, nil), policy.Canonical(b, nil)
	return policy.MatchName(a, b) || policy.MatchName(b, a) || policy.IsGlob(a) && policy.IsGlob(b)
}

var strictness = map[policy.Action]int{policy.Allow: 0, policy.Ask: 1, policy.Deny: 2}

func stricter(a, b policy.Action) bool { return strictness[a] > strictness[b] }
