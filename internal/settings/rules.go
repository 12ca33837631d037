package settings

import (
	"github.com/synapse-agents/synapse/policy"
)

// readRules reads permission rules in the order in which they are written.
func readRules(g *given) ([]policy.Rule, *fault) {
	d, n := g.doc, g.node
	if n == nil {
		var err *Error
		if d, err = parseValue(g.text); err != nil {
			return nil, &fault{found: quote(g.text), takes: "a JSON object of rules"}
		}
		n = d.root
	}
	const takes = "allow, ask or deny"
	var rules []policy.Rule
	rule := func(tool, pattern string, n *node, key string) *fault {
		action := policy.Action(n.text)
		if n.kind != stringNode || action != policy.Allow && action != policy.Ask && action != policy.Deny {
			return &fault{at: n, key: key, found: n.describe(), takes: takes}
		}
		line, _ := d.position(n.start)
		rules = append(rules, policy.Rule{Tool: tool, Pattern: pattern, Action: action, Line: line})
		return nil
	}
	if n.kind == stringNode {
		f := rule("*", "*", n, "")
		return rules, f
	}
	if n.kind != objectNode {
		return nil, &fault{at: n, found: n.describe(), takes: "an object of tool → action"}
	}
	for _, tool := range n.members {
		if tool.value.kind != objectNode {
			if f := rule(tool.key, "*", tool.value, "."+tool.key); f != nil {
				return nil, f
			}
			continue
		}
		for _, pattern := range tool.value.members {
			if f := rule(tool.key, pattern.key, pattern.value, "."+tool.key+"."+pattern.key); f != nil {
				return nil, f
			}
		}
	}
	return rules, nil
}
