// Package agents reads agent definitions (Markdown files with YAML
// frontmatter, JSON, values registered by a program) and merges them, layer by
// layer, into a [Registry]: the only place that knows which agents there are.
// What is wrong with a file is told by [Diagnostic] values; one bad file never
// stops the rest.
package agents

import (
	"encoding/json"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// Mode says in which role an agent may serve.
type Mode string

// The modes.
const (
	ModeAll      Mode = "all"
	ModePrimary  Mode = "primary"  // can be the main agent, never delegated to
	ModeSubagent Mode = "subagent" // can be delegated to, never the main agent
)

// Ownership says which compiler takes a definition.
type Ownership string

// The ownerships.
const (
	OwnershipTask    Ownership = "task"
	OwnershipHandoff Ownership = "handoff"
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
// list of names; its zero value is ToolsInherit.
type ToolRule struct {
	Mode  ToolMode
	Names []string // as written, only with ToolsExact
}

// A Definition says who a sub-agent is. It is data, free of any topology.
type Definition struct {
	Name        string
	Description string
	Prompt      string // the body: the agent's system prompt
	Mode        Mode   // default ModeAll
	// Model is "" when the file says nothing, "inherit" when it says so, else
	// "provider:model" or an alias from settings.
	Model           string
	ReasoningEffort synapse.Effort // "" when the file says nothing
	Temperature     *float64
	TopP            *float64
	Tools           ToolRule
	DisallowedTools []string
	Permissions     []policy.Rule // in the file's order
	MaxTurns        int           // 0: the default
	Limits          synapse.Limits
	Skills          []string
	CanSpawn        bool
	Ownership       Ownership // default OwnershipTask
	Handoffs        []string  // nil when absent
	OutputSchema    json.RawMessage
	Background      bool
	Disabled        bool // enabled: false
	Color           string
	// Extra holds the keys unknown to us, kept as they were.
	Extra map[string]any

	// Layer, Origin and Pos say where it came from: the registry layer, the
	// product whose format the file has, and the file's position.
	Layer  LayerKind
	Origin string // "synapse", or another product's name
	Pos    Pos
	// Lines gives the line on which each field was set, for messages about it.
	Lines map[string]int
}

// LayerKind names the layer of the registry that a definition comes from.
type LayerKind string

// The layers, low to high.
const (
	LayerBuiltin    LayerKind = "builtin"
	LayerUser       LayerKind = "user"
	LayerExecutable LayerKind = "executable"
	LayerProject    LayerKind = "project"
	LayerCustomDir  LayerKind = "custom_dir"
	LayerCustomJSON LayerKind = "custom_json"
	LayerFlag       LayerKind = "flag"
	LayerProgram    LayerKind = "program"
)

// A Pos is a place in a file. Line and Column count from 1; 0 means unknown.
type Pos struct {
	File   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Severity grades a diagnostic.
type Severity string

// The severities. An error disables the definition it is about.
const (
	Error Severity = "error"
	Warn  Severity = "warning"
	Info  Severity = "info"
)

// A Diagnostic says what is wrong with a definition. Code is stable.
type Diagnostic struct {
	Pos
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // the way out, where there is one
}
