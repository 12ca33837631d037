// Package policy answers one question: may this agent make this tool call? It
// is pure data and pure functions, and imports nothing of ours: the same value
// filters what a model is offered, guards every call, writes the prompt's
// scope section and answers "explain".
//
// # Patterns
//
// What a rule's pattern means depends on the subject of the tool that is
// called. In a path pattern "*" stays within a folder and "**" does not
// ("docs/**" is about docs and all below it); paths are cleaned first, with the
// workspace as root. In a URL pattern "*" stays within scheme, host, or path
// and query; a pattern that is only an origin is about all of it. In a command
// and in other text "*" is any run of characters; "git *" is about a bare git
// too. "*" alone is about every call.
//
// # Commands
//
// A command is parsed, and each simple command in it is judged: after
// unquoting, wherever it is nested, and together with what it runs in turn
// (env, xargs, sh -c and many others). Unwrapping only ever restricts further.
// Where what runs can't be told before it runs, a command asks. This keeps an
// agent from doing by accident or by a trick what its rules forbid by name; it
// is no sandbox, since a program may do anything by other means: a rule
// against rm does not stop a script that calls unlink.
package policy

// Action is what a rule or a policy says of a call.
type Action string

// The actions, from loose to strict.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Code is the stable word for why a tool is denied.
type Code string

// The reasons, in the order in which they are looked for.
const (
	ExcludedTools     Code = "excluded_tools"
	MinimalFilesystem Code = "minimal_filesystem_tools"
	ReadOnly          Code = "readonly"
	DisallowedTools   Code = "disallowed_tools"
	TodoIsolation     Code = "todo_isolation"
	BuiltinSearch     Code = "builtin_search"
	NoSpawn           Code = "no_spawn"
	NotListed         Code = "not_listed"
	FrameworkOnly     Code = "framework_only"
	NotInherited      Code = "not_inherited"
	UnknownTool       Code = "unknown_tool" // no such tool exists
)

// A Reason is why a tool is denied, and where that was set.
type Reason struct {
	Code   Code   `json:"code"`
	Origin string `json:"origin,omitempty"` // a file with line, a settings layer, "built-in"
}

// A Policy is what one agent may do. The zero value allows nothing. A Policy is
// immutable once compiled and safe for use by several goroutines.
type Policy struct {
	// Allow lists the tools that may be called, in the order in which they
	// are offered.
	Allow []string `json:"allow"`
	// Block gives, for every other tool that exists, the reason. It always
	// wins over Allow.
	Block map[string]Reason `json:"block,omitempty"`
	// Rules are the permission rules, one entry a source. Within a source the
	// last rule that matches wins; across sources the strictest outcome does.
	Rules []Source `json:"rules,omitempty"`
}

// A Source is one place that sets permission rules: a settings layer, a
// definition, an ancestor run, a flag.
type Source struct {
	Origin string `json:"origin"`
	Rules  []Rule `json:"rules"`
}

// A Rule says what happens to calls of a tool whose subject matches a pattern.
type Rule struct {
	Tool    string `json:"tool"`    // a tool's name, or a glob over names
	Pattern string `json:"pattern"` // over the subject; "*" matches every call, one without a subject included
	Action  Action `json:"action"`
	Line    int    `json:"line,omitempty"` // in the source's file, 0 when unknown
}

// SubjectKind says how the subject of a tool's call is compared with patterns.
type SubjectKind string

// The kinds of subjects.
const (
	SubjectNone    SubjectKind = ""        // the tool has none
	SubjectPath    SubjectKind = "path"    // a path in the workspace, cleaned before it is matched; absent means the root
	SubjectCommand SubjectKind = "command" // a shell command, parsed; every simple command in it must pass
	SubjectURL     SubjectKind = "url"
	SubjectText    SubjectKind = "text" // matched as it is
)

// A Subject says which arguments of a tool's call its permission rules are
// about, and how they are matched.
type Subject struct {
	Kind SubjectKind `json:"kind,omitempty"`
	// Args are the names of the arguments; each holds a string or a list of
	// strings. Every one of them must pass.
	Args []string `json:"args,omitempty"`
}

// A Call is a tool call as the policy sees it.
type Call struct {
	Tool     string
	Kind     SubjectKind
	Subjects []string // empty: only the tool itself is judged, by name and by rules whose pattern is "*"
}

// A Decision is the answer to a call.
type Decision struct {
	Action Action
	// Code is set when the tool itself is denied, empty when a rule decided.
	Code Code
	// Reason is one clause for people and models: what decided.
	Reason string
	// Origin is where that was set.
	Origin string
	// Subject is the one that decided, where a rule did.
	Subject string
	// Rule is the rule that decided, the zero value where none did.
	Rule Rule
}
