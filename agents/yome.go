package agents

// The table of yome.
func yome() *product {
	p := &product{
		Product: Product{
			Name: "yome", Title: "yome", Format: formatMarkdown,
			Places:      []Place{{LayerHome, ".yome/agents"}, {LayerWorkspace, ".yome/agents"}},
			Twice:       "the project's before the user's",
			AbsentTools: "all tools", EmptyTools: "no tool",
			Tools: []ProductTool{
				tool("Read", "read_file"),
				tool("Write", "write_file"),
				tool("Edit", "edit_file"),
				tool("Bash", "execute"),
				tool("Grep", "search_files").covers("grep"),
				tool("Glob", "find_files").covers("glob"),
				tool("LS", "find_files").covers("ls"),
				tool("WebFetch", "fetch_url"),
				tool("WebSearch", "web_search"),
				tool("TodoWrite", "write_todos"),
				tool("Skill", "skill"),
				tool("Agent", "task"),
			},
			Differs: []string{"Sub-agents don't start sub-agents, as in yome."},
		},
		mcp: mcpDouble, paths: pathsIgnore,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("model", "model"),
		take("tools", "tools"),
		take("disallowed_tools", "disallowedTools"),
		take("max_turns", "maxTurns"),
		take("skills", "skills"),
	)
	p.judge = judge{needs: []string{"name", "description"}, tools: "tools", denies: "disallowedTools"}
	return p
}
