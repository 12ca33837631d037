package agents

// The table of Claude Code.
func claude() *product {
	p := &product{
		Product: Product{
			Name: "claude", Title: "Claude Code", Format: formatMarkdown, Nested: true,
			Places:      []Place{{LayerHome, ".claude/agents"}, {LayerWorkspace, ".claude/agents"}},
			Twice:       "the project's before the user's; within one of them either may win",
			AbsentTools: "all tools", EmptyTools: "no tool",
			Tools: []ProductTool{
				tool("Read", "read_file"),
				tool("Write", "write_file"),
				tool("Edit", "edit_file").or("MultiEdit"),
				tool("Bash", "execute"),
				tool("Grep", "search_files").covers("grep"),
				tool("Glob", "find_files").covers("glob"),
				tool("LS", "find_files").covers("ls"),
				tool("WebFetch", "fetch_url"),
				tool("WebSearch", "web_search"),
				tool("TodoWrite", "write_todos"),
				tool("Agent", "task").or("Task"),
				tool("Skill", "skill"),
				tool("NotebookRead", "read_file"),
				tool("NotebookEdit").covers("edit_file"),
			},
			Differs: []string{
				"The user's settings and rules are those of Synapse; Claude Code's settings.json is not read.",
				"A permissionMode that asks less is not followed. plan and dontAsk take tools away.",
				"Sub-agents don't start sub-agents, as in Claude Code.",
			},
		},
		mcp: mcpDouble, paths: pathsIgnore,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("model", "model"),
		take("reasoning_effort", "effort").with(readForeignEffort),
		take("tools", "tools"),
		take("disallowed_tools", "disallowedTools"),
		own("permissionMode", "permissions", "plan and dontAsk take tools away; the others leave the user's rules as they are", words(
			word{name: "default"}, word{name: "manual"},
			word{name: "acceptEdits", effect: widens}, word{name: "auto", effect: widens}, word{name: "bypassPermissions", effect: widens},
			word{"plan", readOnly, "no command is let through, as none can be told to change nothing"},
			word{"dontAsk", noAsking, "what Claude Code's settings allow in advance is not known here"},
		)),
		take("max_turns", "maxTurns"),
		take("skills", "skills"),
		take("background", "background"),
		own("isolation", "permissions", "a copy of the workspace to work in", isolation),
		take("color", "color"),
		ignored("mcpServers", servers),
		ignored("hooks", "hooks are run from the user's settings alone, not from an agent's file"),
		ignored("memory", "agents keep no memory of their own"),
		ignored("initialPrompt", "an agent that talks to the user waits for a message"),
	)
	p.judge = judge{
		needs: []string{"name", "description"}, strictYAML: true,
		tools: "tools", denies: "disallowedTools",
	}
	p.writer = &writer{
		lists: true, emptyList: true, commaTools: true, denies: "disallowedTools", turns: "maxTurns",
		effort: "effort", efforts: claudeEfforts, model: true, skills: "skills", background: "background", color: true,
	}
	return p
}
