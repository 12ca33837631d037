package compile

import "github.com/synapse-agents/synapse/policy"

// Origins that this package itself gives. Every other origin is the caller's
// word for a place: a settings layer, a file, a variable.
const (
	// OriginBuiltin is where limits come from that nobody set.
	OriginBuiltin = "built-in"
	// OriginFlag is where limits and choices come from that were made for this
	// call on the command line.
	OriginFlag = "flag"
)

// Names is a list of tool names from one place. A name may be an alias or a
// glob.
type Names struct {
	Values []string
	Origin string
}

// A Switch is a setting that is on or off, with where it was turned on. The
// zero value is off.
type Switch struct {
	On     bool
	Origin string
}

// Restrictions are the limits on tools that hold for every agent of a graph,
// whatever its definition says. They only ever narrow. The zero value
// restricts nothing.
type Restrictions struct {
	// Excluded are the tools nobody has, one entry for each settings layer
	// that excludes some, then one for --disallowed-tools.
	Excluded []Names
	// Minimal is minimal_filesystem_tools; MinimalExcluded is what it blocks,
	// by default the names of [MinimalExcluded].
	Minimal         Switch
	MinimalExcluded []string
	// ReadOnly blocks every tool that is not known to change nothing.
	ReadOnly Switch
	// Allowed is --allowed-tools: where it is not nil, no other tool is left.
	Allowed *Names
	// Rules are the permission rules of each settings layer, then of the call.
	Rules []policy.Source
}

// FrameworkTools returns the tools that every host has.
func FrameworkTools() []string {
	return []string{"ls", "glob", "grep", "read_file", "write_file", "edit_file", "execute"}
}

// MinimalExcluded returns the tools that minimal_filesystem_tools blocks unless
// settings name others.
func MinimalExcluded() []string {
	return []string{"search_files", "edit_file", "write_file"}
}

// The tools that start and follow sub-agents. The two companions of task are
// had exactly when it is, unless something excludes them by name.
const (
	toolTask   = "task"
	toolOutput = "task_output"
	toolStop   = "task_stop"
)

// isCompanion reports whether the tool is of use only beside task.
func isCompanion(tool string) bool { return tool == toolOutput || tool == toolStop }

// startsAgents reports whether the tool starts sub-agents.
func startsAgents(tool string) bool {
	return tool == toolTask || tool == "Agent" || tool == toolWorkflow
}

// inherited reports whether a sub-agent gets this tool beyond the framework's
// when its definition does not speak of tools.
func inherited(tool string) bool {
	return tool == "find_files" || tool == "search_files" || tool == "patch"
}

// searches reports whether the tool is one of the framework's own search
// tools, which find_files and search_files replace.
func searches(tool string) bool { return tool == "ls" || tool == "glob" || tool == "grep" }

// keepsTodos reports whether the tool writes the list of the main agent's
// intentions, which belongs to the user's conversation.
func keepsTodos(tool string) bool {
	return tool == "write_todos" || tool == "todo_write" || tool == "todos"
}

// knownReadOnly reports whether a tool of ours leaves the workspace as it is.
// Starting a sub-agent counts: the child is bound by the same restrictions.
func knownReadOnly(tool string) bool {
	switch tool {
	case "read_file", "find_files", "search_files", "fetch_url", "web_search", "skill":
		return true
	}
	return searches(tool) || keepsTodos(tool) || startsAgents(tool) || isCompanion(tool)
}
