package agents

import (
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
)

// mcpForm is how a product names the tools of MCP servers. Here the tool "get"
// of the server "db" is mcp__db__get.
type mcpForm string

const (
	mcpDouble mcpForm = "mcp__db__get" // the server's name alone, mcp__db, means all of them
	mcpSingle mcpForm = "mcp_db_get"
	mcpBare   mcpForm = "db_get"
	mcpSlash  mcpForm = "db/get"
)

// tool is a row of a product's table of tools. Naming it grants exactly the
// tools given.
func tool(name string, grants ...string) ProductTool {
	return ProductTool{Name: name, Grants: grants, Covers: grants}
}

// or gives a tool other names.
func (t ProductTool) or(also ...string) ProductTool {
	t.Also = append(slices.Clone(t.Also), also...)
	return t
}

// covers says what the tool can do beyond what naming it grants.
func (t ProductTool) covers(more ...string) ProductTool {
	t.Covers = slices.Concat(t.Grants, more)
	return t
}

// lookupTool finds a tool by one of the product's names for it.
func (p *product) lookupTool(name string) *ProductTool {
	if p.foldNames {
		name = strings.ToLower(name)
	}
	return p.names[name]
}

// toolNames returns the tools here that a name in a list means. In a list of
// denials that is all that the name stands for, and at least that; elsewhere
// what it grants.
func (r *reader) toolNames(name string, deny bool) []string {
	p := r.dialect.product
	switch {
	case p == nil:
		return []string{name}
	case name == "*" || strings.EqualFold(name, wordAll):
		return []string{"*"}
	}
	if t := p.lookupTool(name); t != nil {
		if deny {
			return t.Covers
		}
		if len(t.Grants) > 0 {
			return t.Grants
		}
		return []string{name} // known there, nothing here: the compiler says so
	}
	if names, ok := p.grouped(name); ok {
		return names
	}
	if names := p.mcp.native(name, deny); names != nil {
		return names
	}
	return []string{name}
}

// grouped reads "search/codebase" where a product groups its own tools like
// that: as the tool behind the slash, or the group for "search/*". What the
// product does not know gives nothing.
func (p *product) grouped(name string) ([]string, bool) {
	group, leaf, ok := strings.Cut(name, "/")
	if !ok || p.mcp != mcpSlash {
		return nil, false
	}
	whole := p.lookupTool(group)
	if whole == nil {
		return nil, false
	}
	if leaf == "*" {
		return whole.Grants, true
	}
	if t := p.lookupTool(leaf); t != nil && len(t.Grants) > 0 {
		return t.Grants, true
	}
	return []string{name}, true
}

// bypass returns the tools that could do what a denied one is denied for: no
// product knows of patch, which edits and creates files.
func bypass(names []string) []string {
	for _, name := range names {
		switch policy.Canonical(name, nil) {
		case "write_file", "edit_file":
			if !slices.Contains(names, "patch") {
				return []string{"patch"}
			}
		}
	}
	return nil
}

// native returns the names here of the tools of MCP servers that a product's
// name means, nil if it is no such name. A denial is read in every way in which
// it could be meant.
func (m mcpForm) native(name string, deny bool) []string {
	switch m {
	case mcpDouble:
		rest, ok := strings.CutPrefix(name, "mcp__")
		if !ok || rest == "" {
			return nil
		}
		if server, _, cut := strings.Cut(rest, "__"); !cut && !policy.IsGlob(server) {
			return []string{name + "__*"}
		}
		return []string{name}
	case mcpSingle:
		rest, ok := strings.CutPrefix(name, "mcp_")
		if !ok || rest == "" {
			return nil
		}
		if strings.HasPrefix(rest, "_") { // written as we do
			return mcpDouble.native(name, deny)
		}
		return serverTool(rest, "_", deny)
	case mcpSlash:
		if !strings.Contains(name, "/") {
			return mcpDouble.native(name, deny)
		}
		return serverTool(name, "/", deny)
	case mcpBare:
		if names := mcpDouble.native(name, deny); names != nil {
			return names
		}
		if !strings.Contains(name, "_") || knownTool(name) {
			return nil
		}
		// Tools of a program's own may be named like that too.
		if deny && !slices.ContainsFunc(builtinTools, func(t string) bool { return policy.MatchName(name, t) }) {
			return append(serverTool(name, "_", true), name)
		}
		return serverTool(name, "_", false)
	}
	return nil
}

// serverTool turns "server<sep>tool" into our form. Where the separator may be
// part of either name, a denial is about every way to cut it.
func serverTool(name, sep string, deny bool) []string {
	server, tool, ok := strings.Cut(name, sep)
	if !ok || server == "" || tool == "" {
		if policy.IsGlob(name) {
			return []string{"mcp__" + name}
		}
		return []string{"mcp__" + name + "__*"}
	}
	if deny && strings.Contains(tool, sep) {
		return []string{"mcp__" + strings.ReplaceAll(name, sep, "*")}
	}
	return []string{"mcp__" + server + "__" + tool}
}

// builtinTools are the tools that exist here, beside those of servers and of
// programs that embed us.
var builtinTools = []string{
	"ls", "glob", "grep", "read_file", "write_file", "edit_file", "execute", "find_files", "search_files", "patch",
	"fetch_url", "web_search", "write_todos", "skill", "task", "task_output", "task_stop",
}

// knownTool reports whether a name is that of a tool here, or another
// product's for one.
func knownTool(name string) bool {
	return slices.Contains(builtinTools, policy.Canonical(name, nil))
}
