package compile

import (
	"path"
	"strings"
)

func canonical(name string) string {
	if c, ok := standIn[name]; ok {
		return c
	}
	return name
}

func matchName(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

var standIn = map[string]string{
	"Read": "read_file", "Write": "write_file",
	"Edit": "edit_file", "MultiEdit": "edit_file", "replace": "edit_file",
	"Bash": "execute", "bash": "execute", "shell": "execute", "run_shell_command": "execute", "execute_bash": "execute",
	"Grep": "search_files", "grep_search": "search_files", "search_code": "search_files",
	"Glob": "find_files", "LS": "find_files", "list_files": "find_files", "list_directory": "find_files",
	"WebFetch": "fetch_url", "webfetch": "fetch_url", "web_fetch": "fetch_url",
	"WebSearch": "web_search", "websearch": "web_search", "google_web_search": "web_search",
	"TodoWrite": "write_todos", "todowrite": "write_todos", "Task": "task", "Agent": "task", "Skill": "skill",
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }
