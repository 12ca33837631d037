package offline

import (
	"slices"
	"strings"
	"unicode"
)

// An agent is a line of the task tool's text.
type agent struct {
	name  string
	about string
	tools []string
}

var agentLine = lazily(`(?m)^- (.+?): (.*) \(Tools: ([^()\n]*)\)\s*$`)

// roster reads the agents that the task tool's text offers.
func roster(task *offer) []agent {
	if task == nil {
		return nil
	}
	var out []agent
	for _, m := range agentLine().FindAllStringSubmatch(task.def.Description, -1) {
		a := agent{name: m[1], about: m[2]}
		for t := range strings.SplitSeq(m[3], ",") {
			a.tools = append(a.tools, strings.TrimSpace(t))
		}
		out = append(out, a)
	}
	return out
}

// can reports whether the agent has a tool for the role.
func (a agent) can(r role) bool {
	return slices.ContainsFunc(a.tools, func(t string) bool {
		return t == "*" || strings.EqualFold(t, "all") || slices.Contains(roleTools[r], t)
	})
}

// serves reports whether the agent can do the role's work with any tool:
// commands list, search and read files too.
func (a agent) serves(r role) bool {
	return a.can(r) || a.can(roleExec) && (r == roleFind || r == roleSearch || r == roleRead) ||
		r == roleFind && a.can(roleSearch)
}

// fold makes names comparable: case, blanks, "-" and "_" do not count.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// named returns the agent that a request calls by name.
func named(agents []agent, name string) (agent, bool) {
	for _, a := range agents {
		if fold(a.name) == fold(name) {
			return a, true
		}
	}
	return agent{}, false
}

// pick returns the agent whose description fits the part best, among those with
// the tools that it takes. Where no description says anything about it, the
// first of the agents with the fewest tools is chosen: what they can't do, they
// don't need.
func pick(agents []agent, part ask) (agent, bool) {
	var able []agent
	for _, a := range agents {
		if part.needs() == "" || a.can(part.needs()) {
			able = append(able, a)
		}
	}
	if len(able) == 0 {
		for _, a := range agents {
			if a.serves(part.needs()) {
				able = append(able, a)
			}
		}
	}
	if len(able) == 0 {
		return agent{}, false
	}
	docs := make([][]string, len(able))
	for i, a := range able {
		docs[i] = tokens(a.name + " " + a.name + " " + a.about)
	}
	query := content(part.text)
	for _, w := range tokens(part.kind.hints()) {
		if !slices.Contains(query, w) {
			query = append(query, w)
		}
	}
	best := 0
	scores := rank(query, docs)
	for i := range able {
		switch {
		case scores[i] > scores[best]+1e-9:
			best = i
		case scores[i] > scores[best]-1e-9 && len(able[i].tools) < len(able[best].tools):
			best = i
		}
	}
	return able[best], true
}
