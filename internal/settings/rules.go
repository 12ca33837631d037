package settings

import (
	"errors"

	"github.com/synapse-agents/synapse/policy"
)

// readRules reads permission rules in the order in which they are written.
func readRules(g *given) ([]policy.Rule, *Error) {
	text, line, column := []byte(g.text), 1, 1
	if g.node != nil {
		text = g.doc.raw(g.node)
		line, column = g.doc.position(g.node.start)
	}
	rules, err := policy.ParseJSON(text)
	if err != nil {
		e := &Error{Path: g.origin.Path, Line: g.origin.Line, Var: g.origin.Var, Key: "permissions", Err: err}
		var syntax *policy.SyntaxError
		if errors.As(err, &syntax) { // its place is within the value
			e.Err, e.Hint = errors.New(syntax.Message), syntax.Hint
			if g.node != nil && syntax.Line > 0 {
				e.Line, e.Column = line+syntax.Line-1, syntax.Column
				if syntax.Line == 1 && syntax.Column > 0 {
					e.Column += column - 1
				}
			}
		}
		return nil, e
	}
	for i := range rules {
		if g.node == nil {
			rules[i].Line = 0 // text has no lines
		} else if rules[i].Line > 0 {
			rules[i].Line += line - 1
		}
	}
	return rules, nil
}
