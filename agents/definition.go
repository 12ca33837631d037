// Package agents reads agent definitions (Markdown files with YAML
// frontmatter, JSON, values registered by a program) and merges them, layer by
// layer, into a [Registry]: the only place that knows which agents there are.
// What is wrong with a file is told by [Diagnostic] values; one bad file never
// stops the rest.
//
// A file is read as leniently as can be, with one exception: a field that takes
// something away from the agent and can't be read disables the definition. So
// does a line that looks like such a field and is none. The presets are files
// in the native format too, embedded.
//
// [Parse] and [ParseJSON] are pure; [LoadDir], [LoadFile], [Seed] and the
// functions for the user's switch do I/O, below the paths they are given.
package agents

import (
	"encoding/json"
	"maps"
	"slices"

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
	// HandoffHistory is what it sees of a conversation that it takes over; empty:
	// all of it.
	HandoffHistory synapse.HandoffHistory
	OutputSchema   json.RawMessage
	Background     bool
	Disabled       bool // enabled: false, the user's switch, or Broken
	Color          string
	// Extra holds the keys unknown to us, with their values in the form that
	// encoding/json gives (int64 for whole numbers); nil when there are none.
	Extra map[string]any

	// Broken says that a diagnostic of severity [Error] is about this
	// definition. What could be read of it is here for messages; Disabled is
	// set as well, and no registry offers it.
	Broken bool

	// Layer, Origin and Pos say where it came from: the registry layer, the
	// product whose format the file has, and the file's position.
	Layer  LayerKind
	Origin string // [Native], or the name of one of [Products]
	Pos    Pos
	// Lines gives the line on which each field was set, for messages about it.
	Lines map[string]int
	// ToolEntries are the entries of tools as the file has them, where Tools
	// leaves something of them out: what stands in brackets. For reports.
	ToolEntries []string
}

// ListedTools returns the entries of the tools field, for reports: nil where it
// lists none because it means all that can be had (absent, null, "*"), empty
// and not nil for [] and "none".
func (d *Definition) ListedTools() []string {
	switch {
	case d.Tools.Mode == ToolsFramework:
		return []string{}
	case d.Tools.Mode != ToolsExact || len(d.Tools.Names) == 1 && d.Tools.Names[0] == "*":
		return nil
	case d.ToolEntries != nil:
		return slices.Clone(d.ToolEntries)
	}
	return append([]string{}, d.Tools.Names...)
}

// Place returns where the definition comes from, for people: its file, or the
// layer where it has none.
func (d *Definition) Place() string {
	if d.Pos.File != "" {
		return d.Pos.File
	}
	return string(d.Layer)
}

// Clone returns a copy that shares nothing a caller could change, but for what
// is inside Extra.
func (d *Definition) Clone() *Definition {
	c := *d
	if d.Temperature != nil {
		t := *d.Temperature
		c.Temperature = &t
	}
	if d.TopP != nil {
		t := *d.TopP
		c.TopP = &t
	}
	c.Tools.Names = slices.Clone(d.Tools.Names)
	c.DisallowedTools = slices.Clone(d.DisallowedTools)
	c.Permissions = slices.Clone(d.Permissions)
	c.Skills = slices.Clone(d.Skills)
	c.Handoffs = slices.Clone(d.Handoffs)
	c.OutputSchema = slices.Clone(d.OutputSchema)
	c.Extra = maps.Clone(d.Extra)
	c.Lines = maps.Clone(d.Lines)
	c.ToolEntries = slices.Clone(d.ToolEntries)
	return &c
}

// at returns the place where a field was set, the definition's own place where
// that is unknown.
func (d *Definition) at(field string) Pos {
	if line := d.Lines[field]; line > 0 {
		return Pos{File: d.Pos.File, Line: line, Column: 1}
	}
	return d.Pos
}

// LayerKind names the layer of the registry that a definition comes from.
type LayerKind string

// The layers, low to high.
const (
	LayerBuiltin    LayerKind = "builtin"
	LayerHome       LayerKind = "home" // other products' files in the home directory
	LayerUser       LayerKind = "user"
	LayerExecutable LayerKind = "executable"
	LayerWorkspace  LayerKind = "workspace" // other products' files in the workspace
	LayerProject    LayerKind = "project"
	LayerCustomDir  LayerKind = "custom_dir"
	LayerCustomJSON LayerKind = "custom_json"
	LayerFlag       LayerKind = "flag"
	LayerProgram    LayerKind = "program"
)
