package agents

import "go.yaml.in/yaml/v3"

// The table of Qwen Code.
func qwen() *product {
	p := &product{
		Product: Product{
			Name: "qwen", Title: "Qwen Code", Format: formatMarkdown,
			Places:      []Place{{LayerHome, ".qwen/agents"}, {LayerWorkspace, ".qwen/agents"}},
			Twice:       "the project's before the user's, letter case aside",
			AbsentTools: "all tools", EmptyTools: "all tools; here none",
			Tools: []ProductTool{
				tool("read_file", "read_file").or("ReadFile", "Read"),
				tool("read_many_files", "read_file").or("ReadManyFiles"),
				tool("write_file", "write_file").or("WriteFile", "Write"),
				tool("edit", "edit_file").or("Edit", "replace", "MultiEdit"),
				tool("run_shell_command", "execute").or("Shell", "Bash"),
				tool("grep_search", "search_files").or("Grep", "search_file_content", "SearchFiles").covers("grep"),
				tool("glob", "find_files").or("Glob", "FindFiles").covers("glob"),
				tool("list_directory", "find_files").or("ListFiles", "ReadFolder", "LS").covers("ls"),
				tool("web_fetch", "fetch_url").or("WebFetch"),
				tool("web_search", "web_search").or("WebSearch"),
				tool("todo_write", "write_todos").or("TodoWrite", "task_list", "TaskList"),
				tool("skill", "skill").or("Skill"),
				tool("agent", "task").or("Agent", "task", "Task"),
				tool("lsp").or("Lsp"),
				tool("save_memory").or("SaveMemory"),
				tool("ask_user_question").or("AskUserQuestion"),
				tool("exit_plan_mode").or("ExitPlanMode"),
			},
			Differs: []string{
				"An approvalMode that asks less is not followed; plan takes tools away.",
				"Sub-agents don't start sub-agents, as in Qwen Code.",
			},
		},
		emptyTools: "Qwen Code takes that for all tools",
		mcp:        mcpDouble, paths: pathsIgnore,
	}
	plan := word{"plan", readOnly, "no command is let through, as none can be told to change nothing"}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("model", "model"),
		take("reasoning_effort", "effort").with(readForeignEffort),
		take("tools", "tools"),
		take("disallowed_tools", "disallowedTools"),
		own("approvalMode", "permissions", "plan takes tools away; the others leave the user's rules as they are", words(
			word{name: "default"}, word{name: "bubble"}, plan,
			word{name: "auto", effect: widens}, word{name: "auto-edit", effect: widens}, word{name: "yolo", effect: widens},
		)),
		own("permissionMode", "permissions", "as in Claude Code", words(
			word{name: "default"}, word{name: "dontAsk"}, plan,
			word{name: "acceptEdits", effect: widens}, word{name: "auto", effect: widens}, word{name: "bypassPermissions", effect: widens},
		)),
		take("max_turns", "maxTurns"),
		own("runConfig", "max_turns, limits", "a map of max_turns and max_time_minutes", readRunConfig),
		take("skills", "skills"),
		take("background", "background"),
		own("isolation", "permissions", "a copy of the workspace to work in", isolation),
		own("executor", "", "another program that the agent runs in", notRunnable("the agent runs in another program")),
		take("color", "color"),
		ignored("modelConfig", "the model is that of the field model; its settings are the user's"),
		ignored("mcpServers", servers),
		ignored("hooks", "hooks are run from the user's settings alone, not from an agent's file"),
		ignored("memory", "agents keep no memory of their own"),
	)
	p.judge = judge{
		needs: []string{"name", "description"}, strictYAML: true,
		tools: "tools", denies: "disallowedTools", emptyIsAll: true,
	}
	p.writer = &writer{
		lists: true, denies: "disallowedTools", turns: "maxTurns",
		effort: "effort", efforts: claudeEfforts, model: true, background: "background", color: true,
	}
	return p
}

// readRunConfig reads {max_turns: 10, max_time_minutes: 5}.
func readRunConfig(r *reader, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || customTag(n) {
		return r.bad(n, "write runConfig: {max_turns: 10}", "is %s, not a map", kindOf(n))
	}
	for _, p := range r.pairs(n) {
		v := r.follow(p.value)
		if isNull(v) {
			continue
		}
		var err error
		switch foldName(p.key.Value) {
		case "maxturns":
			var turns int64
			if turns, err = r.integer(v, 1, 1<<31-1); err == nil && (r.d.MaxTurns == 0 || int(turns) < r.d.MaxTurns) {
				r.d.MaxTurns = int(turns)
			}
		case "maxtimeminutes":
			err = readMinutes(r, v)
		default:
			err = r.bad(p.key, "write max_turns or max_time_minutes", "has no key %q", shorten(p.key.Value, 40))
		}
		if err != nil {
			return within(p.key.Value, err)
		}
	}
	return nil
}
