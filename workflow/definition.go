// Package workflow reads workflow files, builds workflows in Go, checks them and
// draws them. A file and the builder make the same [Definition], and one check
// judges both.
package workflow

import (
	"encoding/json"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
)

// A Definition is a workflow before it is compiled: its nodes name agents and
// workflows, not specs.
type Definition struct {
	Name        string
	Description string
	Flow        synapse.Flow
	Limits      synapse.Limits // of a run and everything below it
	// Funcs are the functions of a workflow built in Go, by node name.
	Funcs map[string]synapse.NodeFunc
	// File is where it was read from, "" for one built in Go.
	File string

	places map[string]place
}

// A place is where something stands in a file.
type place struct {
	line, column int
	inline       bool // the text begins there, so that an offset is a column
}

// at returns the place of a path ("nodes.fix.prompt"), or of the nearest thing
// that holds it, offset characters into its text.
func (d *Definition) at(path string, offset int) agents.Pos {
	pos := agents.Pos{File: d.File}
	if d.File == "" {
		return pos
	}
	for p := path; ; p = parent(p) {
		if at, ok := d.places[p]; ok {
			pos.Line, pos.Column = at.line, at.column
			if at.inline && p == path {
				pos.Column += offset
			}
			return pos
		}
		if p == "" {
			pos.Line, pos.Column = 1, 1
			return pos
		}
	}
}

func parent(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return ""
}

// Node returns the node of a name.
func (d *Definition) Node(name string) (*synapse.FlowNode, bool) {
	for i := range d.Flow.Nodes {
		if d.Flow.Nodes[i].Name == name {
			return &d.Flow.Nodes[i], true
		}
	}
	return nil, false
}

// The codes of diagnostics about workflows.
const (
	CodeSyntax      = "workflow-syntax"      // the file is not YAML
	CodeField       = "workflow-field"       // a key that there isn't
	CodeValue       = "workflow-value"       // a value that can't be read, or is missing
	CodeReference   = "workflow-reference"   // a name that nothing has
	CodeExpression  = "workflow-expression"  // an expression that can't be read
	CodeUnreachable = "workflow-unreachable" // a node that no path leads to
	CodeNoEnd       = "workflow-no-end"      // a node from which no path leads to the end
	CodeDuplicate   = "workflow-duplicate"   // two workflows of one name
)

// OutputSchema returns the schema of what a node's agent must answer so that its
// output can join the key; nil where plain text will do. Each is the answer for
// one element of a for_each.
func OutputSchema(key synapse.StateKey, each bool) json.RawMessage {
	var s struct {
		Type  any             `json:"type"`
		Items json.RawMessage `json:"items"`
	}
	schema := key.Schema
	_ = json.Unmarshal(schema, &s) // Check has said what is wrong with it
	if key.Reduce == synapse.ReduceAppend || each && key.Reduce != synapse.ReduceMerge {
		schema, s.Type = s.Items, nil
		_ = json.Unmarshal(schema, &s)
	}
	if s.Type == nil || s.Type == "string" {
		return nil
	}
	return schema
}
