package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// ToolMode tells the three shapes of the tools field apart. They are three
// different things, and no round trip through JSON may merge them.
type ToolMode string

// The tool modes.
const (
	ToolsInherit   ToolMode = "inherit"   // absent or null
	ToolsFramework ToolMode = "framework" // []
	ToolsExact     ToolMode = "exact"     // a list of names
)

// A ToolRule is the value of the tools field. Its JSON form is null, [] or a
// list of names; its zero value is ToolsInherit. ToolsExact without a name is
// what "tools: none" says, an agent that has no tool at all; its JSON form is
// the string "none".
type ToolRule struct {
	Mode ToolMode
	// Names are the tools named, as written, without repetition and without
	// the part in brackets: "Bash(git:*)" is the name "Bash" here and a rule in
	// [Definition.Permissions]. "*" stands for every tool. Only with ToolsExact.
	Names []string
}

// all and none are the words that stand for a whole list.
const (
	wordAll  = "all"
	wordNone = "none"
)

// MarshalJSON writes null, [], a list, or "none".
func (r ToolRule) MarshalJSON() ([]byte, error) {
	switch r.Mode {
	case "", ToolsInherit:
		return []byte("null"), nil
	case ToolsFramework:
		return []byte("[]"), nil
	case ToolsExact:
		if len(r.Names) == 0 {
			return json.Marshal(wordNone)
		}
		return json.Marshal(r.Names)
	}
	return nil, fmt.Errorf("tool rule: unknown mode %q", r.Mode)
}

// UnmarshalJSON reads what MarshalJSON writes. Everything else is an error.
func (r *ToolRule) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("null")) {
		*r = ToolRule{Mode: ToolsInherit}
		return nil
	}
	if bytes.Equal(data, []byte(`"none"`)) {
		*r = ToolRule{Mode: ToolsExact}
		return nil
	}
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("tools: want null, a list of names or %q: %w", wordNone, err)
	}
	if len(names) == 0 {
		*r = ToolRule{Mode: ToolsFramework}
		return nil
	}
	if slices.Contains(names, "") {
		return fmt.Errorf("tools: a name in the list is empty")
	}
	*r = ToolRule{Mode: ToolsExact, Names: names}
	return nil
}
