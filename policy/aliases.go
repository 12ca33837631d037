package policy

import "strings"

// aliases maps the names that other products give their tools to ours.
var aliases = map[string]string{
	"Read":              "read_file",
	"Write":             "write_file",
	"Edit":              "edit_file",
	"MultiEdit":         "edit_file",
	"replace":           "edit_file",
	"Bash":              "execute",
	"bash":              "execute",
	"shell":             "execute",
	"run_shell_command": "execute",
	"execute_bash":      "execute",
	"Grep":              "search_files",
	"grep_search":       "search_files",
	"search_code":       "search_files",
	"Glob":              "find_files",
	"LS":                "find_files",
	"list_files":        "find_files",
	"list_directory":    "find_files",
	"WebFetch":          "fetch_url",
	"webfetch":          "fetch_url",
	"web_fetch":         "fetch_url",
	"WebSearch":         "web_search",
	"websearch":         "web_search",
	"google_web_search": "web_search",
	"TodoWrite":         "write_todos",
	"todowrite":         "write_todos",
	"Task":              "task",
	"Agent":             "task",
	"Skill":             "skill",
}

// kinds says what the subjects of our own tools are, so that a pattern can be
// checked where it is written. A tool that is not listed is judged by the kind
// that its call brings along.
var kinds = map[string]SubjectKind{
	"ls":           SubjectPath,
	"glob":         SubjectPath,
	"grep":         SubjectPath,
	"read_file":    SubjectPath,
	"write_file":   SubjectPath,
	"edit_file":    SubjectPath,
	"patch":        SubjectPath,
	"find_files":   SubjectPath,
	"search_files": SubjectPath,
	"execute":      SubjectCommand,
	"fetch_url":    SubjectURL,
}

// Canonical returns the native name of a tool that may be written the way
// another product writes it: "Bash" becomes "execute". A name for which exists
// reports true is native and stays as it is, even where it is an alias too;
// so does a name that is no alias. A nil exists knows no tools.
func Canonical(name string, exists func(string) bool) string {
	if exists != nil && exists(name) {
		return name
	}
	if native, ok := aliases[name]; ok {
		return native
	}
	return name
}

// IsGlob reports whether a tool name is a pattern for [MatchName] and not the
// name of one tool.
func IsGlob(name string) bool { return strings.IndexByte(name, '*') >= 0 }

// MatchName reports whether a tool's name fits a pattern in which "*" stands
// for any run of characters ("mcp__github__*", "*_file", "*"). Everything else
// stands for itself, in this letter case.
func MatchName(pattern, name string) bool {
	return pattern == name || IsGlob(pattern) && wildcard(pattern, name)
}

// namePattern reports whether s can be a tool name or a glob over names. A
// bracket, a brace or a blank in it is a typing error, or the pattern language
// of something else, and would silently match nothing.
func namePattern(s string) bool {
	return s != "" && plainText(s) && !strings.ContainsAny(s, " \t\n,;()[]{}?!\\\"'`")
}
