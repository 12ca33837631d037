package agents

import (
	"slices"

	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// The table of GitHub Copilot: its command line, its agents on the web, and the
// editors that read the same files.
func copilot() *product {
	p := &product{
		Product: Product{
			Name: "copilot", Title: "GitHub Copilot", Format: formatMarkdown, Suffix: ".agent.md",
			Places: []Place{
				{LayerHome, ".copilot/agents"}, {LayerHome, ".github/agents"}, {LayerWorkspace, ".github/agents"},
			},
			Twice:       "agents go by their file's name without .agent.md or .md; the repository's before the organisation's",
			AbsentTools: "all tools", EmptyTools: "no tool",
			Tools: []ProductTool{
				tool("read", "read_file").or("NotebookRead", "view", "readFile"),
				tool("edit", "write_file", "edit_file").or("MultiEdit", "Write", "NotebookEdit", "editFiles", "str_replace_editor", "apply_patch").covers("patch"),
				tool("str_replace", "edit_file"),
				tool("create", "write_file").or("createFile"),
				tool("execute", "execute").or("shell", "bash", "powershell", "runCommands", "runInTerminal"),
				tool("search", "search_files", "find_files").or("Grep", "Glob", "codebase").covers("grep", "glob", "ls"),
				tool("textSearch", "search_files").covers("grep"),
				tool("fileSearch", "find_files").or("listDirectory").covers("glob", "ls"),
				tool("web", "fetch_url", "web_search").or("WebSearch", "WebFetch"),
				tool("fetch", "fetch_url").or("web_fetch"),
				tool("web_search", "web_search"),
				tool("agent", "task").or("custom-agent", "Task", "runSubagent"),
				tool("todo", "write_todos").or("TodoWrite", "todos"),
				tool("skill", "skill"),
				tool("vscode"), tool("vscodeAPI"), tool("extensions"), tool("openSimpleBrowser"), tool("githubRepo"), tool("changes"), tool("new"),
				tool("problems"), tool("usages"), tool("findTestFiles"), tool("searchResults"),
				tool("runTests"), tool("runTasks"), tool("testFailure"), tool("terminalLastCommand"), tool("terminalSelection"), tool("getTerminalOutput"),
			},
			Differs: []string{
				"Of a group of tools in an editor (search/codebase) the tool is read that has the name behind the slash; one that does less than any tool here gives nothing.",
				"Handing over with a button (handoffs) does not exist here; whom an agent may call (agents) does.",
				"Copilot cuts a body at 30,000 characters; here it is read whole.",
			},
		},
		foldNames: true, mcp: mcpSlash,
		finish: finishCopilot,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("model", "model"),
		take("tools", "tools"),
		own("disable-model-invocation", "mode", "true: only the user may choose it", readVisibility(hideFromModel, true)),
		own("user-invocable", "mode", "false: only another agent may call it", readVisibility(hideFromUser, false)),
		own("infer", "mode", "false: only the user may choose it", readVisibility(hideFromModel, false)),
		own("agents", "permissions", "whom it may call", readCallees),
		ignored("target", "the file is read here whatever its target"),
		ignored("argument-hint", "a hint for a field to type in"),
		ignored("handoffs", "buttons that hand the conversation over with a prompt"),
		ignored("metadata", "notes"),
		ignored("mcp-servers", servers, "mcpServers"),
		ignored("include-custom-instructions", "every agent is told the workspace's AGENTS.md, and no other file of instructions"),
		ignored("sidekick", "agents are started by a call, not by an event"),
		take("skills", "skills"),
		ignored("hooks", "hooks are run from the user's settings alone, not from an agent's file"),
	)
	p.judge = judge{anyName: true, needs: []string{"description"}, strictYAML: true, tools: "tools"}
	p.writer = &writer{lists: true, emptyList: true, model: true, visibility: true, spawns: true}
	return p
}

const (
	hideFromModel = "disable-model-invocation"
	hideFromUser  = "user-invocable"
)

// readVisibility reads a field of which one value hides the agent from someone.
func readVisibility(from string, when bool) readFunc {
	return func(r *reader, n *yaml.Node) error {
		on, err := r.boolean(n)
		if err != nil {
			return err
		}
		if _, set := r.hides[from]; set && r.field.name == "infer" {
			return nil // the newer field wins
		}
		if r.hides == nil {
			r.hides = map[string]bool{}
		}
		r.hides[from] = on == when
		return nil
	}
}

// finishCopilot makes a mode of who may see the agent.
func finishCopilot(r *reader) {
	model, user := r.hides[hideFromModel], r.hides[hideFromUser]
	switch {
	case model && user:
		r.d.Disabled = true
	case model && r.d.Mode != ModeSubagent:
		r.d.Mode = ModePrimary
	case user && r.d.Mode != ModePrimary:
		r.d.Mode = ModeSubagent
	case model || user:
		r.d.Disabled = true
	}
	for _, entry := range r.d.ToolEntries {
		if t := r.dialect.product.lookupTool(entry); t != nil && t.Name == "agent" {
			r.d.CanSpawn = true
		}
	}
}

// readCallees reads the names of the agents that may be called.
func readCallees(r *reader, n *yaml.Node) error {
	names, err := r.names(n)
	if err != nil {
		return err
	}
	rules, err := calleeRules(r, n, names)
	r.d.Permissions = append(r.d.Permissions, rules...)
	return err
}

// calleeRules let the agent call others of those names alone.
func calleeRules(r *reader, n *yaml.Node, names []string) ([]policy.Rule, error) {
	if slices.Contains(names, "*") {
		return nil, nil
	}
	rules := []policy.Rule{{Tool: "task", Pattern: "*", Action: policy.Deny, Line: n.Line}}
	for _, name := range names {
		rule, err := r.newRule(n, "task", name, policy.Allow)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
