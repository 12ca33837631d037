package agents

import "go.yaml.in/yaml/v3"

// The table of Gemini CLI.
func gemini() *product {
	remote := notRunnable("a remote agent runs on its own server")
	p := &product{
		Product: Product{
			Name: "gemini", Title: "Gemini CLI", Format: formatMarkdown, PassOver: "_",
			Places:      []Place{{LayerHome, ".gemini/agents"}, {LayerWorkspace, ".gemini/agents"}},
			Twice:       "the project's before the user's",
			AbsentTools: "all tools", EmptyTools: "no tool",
			Tools: []ProductTool{
				tool("read_file", "read_file"),
				tool("read_many_files", "read_file"),
				tool("write_file", "write_file"),
				tool("replace", "edit_file"),
				tool("run_shell_command", "execute"),
				tool("grep_search", "search_files").or("search_file_content").covers("grep"),
				tool("glob", "find_files").covers("glob"),
				tool("list_directory", "find_files").covers("ls"),
				tool("web_fetch", "fetch_url"),
				tool("google_web_search", "web_search"),
				tool("write_todos", "write_todos"),
				tool("activate_skill", "skill"),
				tool("get_internal_docs"), tool("ask_user"), tool("enter_plan_mode"), tool("exit_plan_mode"), tool("update_topic"),
				tool("complete_task"), tool("read_mcp_resource"), tool("list_mcp_resources"), tool("save_memory"),
			},
			Differs: []string{
				"Gemini CLI ends an agent after 10 minutes where timeout_mins is left out; here the usual limits hold.",
				"Gemini CLI refuses a file with a key or a tool that it does not know; here such a key is kept and such a tool gives nothing.",
				"Sub-agents don't start sub-agents, as in Gemini CLI.",
			},
		},
		mcp: mcpSingle,
	}
	p.build(
		own("kind", "", "local; a remote agent can't be run here", readKind),
		take("name", "name"),
		ignored("display_name", "agents go by their name"),
		take("description", "description"),
		take("model", "model"),
		take("temperature", "temperature"),
		take("tools", "tools"),
		take("max_turns", "max_turns"),
		own("timeout_mins", "limits", "time in minutes", readMinutes),
		ignored("mcp_servers", servers, "mcpServers"),
		own("agent_card_url", "", "where a remote agent is found", remote),
		own("agent_card_json", "", "what a remote agent is", remote),
		own("auth", "", "how a remote agent is asked", remote),
	)
	p.judge = judge{
		needs: []string{"name", "description"}, slugs: true, strictYAML: true, strictKeys: true, listOnly: true, strictTools: true,
		tools: "tools",
	}
	p.writer = &writer{
		lists: true, emptyList: true, turns: "max_turns", minutes: "timeout_mins", model: true, temperature: true, slugs: true,
	}
	return p
}

func readKind(r *reader, n *yaml.Node) error {
	kind, err := r.word(n, "local", "remote")
	if err == nil && kind == "remote" {
		return notRunnable("a remote agent runs on its own server")(r, n)
	}
	return err
}
