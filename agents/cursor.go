package agents

// The table of Cursor.
func cursor() *product {
	p := &product{
		Product: Product{
			Name: "cursor", Title: "Cursor", Format: formatMarkdown,
			Places:      []Place{{LayerHome, ".cursor/agents"}, {LayerWorkspace, ".cursor/agents"}},
			Twice:       "the project's before the user's",
			AbsentTools: "all tools", EmptyTools: "not known to Cursor: all tools; here none",
			Tools: []ProductTool{
				tool("Read", "read_file").or("ReadFile"),
				tool("Write", "write_file"),
				tool("Edit", "edit_file").or("StrReplace", "MultiEdit"),
				tool("Delete").covers("edit_file"),
				tool("Shell", "execute").or("Bash"),
				tool("Grep", "search_files").or("SemanticSearch").covers("grep"),
				tool("Glob", "find_files").covers("glob"),
				tool("LS", "find_files").covers("ls"),
				tool("WebFetch", "fetch_url"),
				tool("WebSearch", "web_search"),
				tool("TodoWrite", "write_todos"),
				tool("Task", "task"),
				tool("ReadLints"),
			},
			Differs: []string{
				"Cursor gives an agent all of its parent's tools whatever tools says; here a list counts.",
				"readonly takes the shell away too: which commands change nothing can't be told.",
			},
		},
		emptyTools: "Cursor does not know the field",
		mcp:        mcpDouble,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("model", "model"),
		own("readonly", "permissions", "no tool that changes files or runs commands", flag(true,
			word{"", readOnly, "no command is let through, as none can be told to change nothing"})),
		take("background", "is_background"),
	)
	p.judge = judge{anyName: true, tools: ""}
	p.writer = &writer{readOnly: "readonly: true", background: "is_background", model: true}
	return p
}
