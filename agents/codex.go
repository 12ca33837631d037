package agents

import (
	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// The table of Codex.
func codex() *product {
	p := &product{
		Product: Product{
			Name: "codex", Title: "Codex", Format: formatTOML, Nested: true,
			Places:      []Place{{LayerHome, ".codex/agents"}, {LayerWorkspace, ".codex/agents"}},
			Twice:       "an error within one directory; a project's role is completed from the user's of the same name, which does not happen here",
			AbsentTools: "all tools", EmptyTools: "not known to Codex; here none",
			Tools: []ProductTool{
				tool("shell", "execute"), tool("apply_patch", "edit_file", "write_file").covers("patch"),
				tool("web_search", "web_search"), tool("view_image"), tool("update_plan", "write_todos"),
			},
			Differs: []string{
				"There is no sandbox here. With sandbox_mode = \"read-only\" the agent has no shell; with \"workspace-write\" each command is asked about.",
				"Keys of config.toml that set up Codex itself have no effect.",
			},
		},
		mcp: mcpDouble,
	}
	p.build(
		take("name", "name"),
		take("description", "description"),
		take("system_prompt", "developer_instructions"),
		take("model", "model"),
		take("reasoning_effort", "model_reasoning_effort").with(readForeignEffort),
		own("sandbox_mode", "permissions", "read-only takes writing and the shell away, workspace-write asks before commands", words(
			word{"read-only", noWrites, "there is no sandbox that would let commands read alone, so the agent has no shell"},
			word{"workspace-write", askShell, "there is no sandbox that would keep commands in the workspace and off the network, so each is asked about"},
			word{name: "danger-full-access", effect: widens},
		)),
		own("approval_policy", "permissions", "untrusted asks before commands; the others leave the user's rules as they are", readApproval),
		own("web_search", "permissions", "disabled takes web_search away", readWebSearch),
		take("tools", "tools").says("a table of switches; what is false is taken away").with(readSwitches),
		own("default_permissions", "permissions", "a named profile of rights", readProfile),
		ignored("nickname_candidates", "agents go by their name"),
		ignored("mcp_servers", servers),
		ignored("skills", "skills are switched in the user's settings"),
		ignored("model_provider", "a model's provider is part of its name here"),
		ignored("model_verbosity", "there is no such setting"),
		ignored("model_reasoning_summary", "there is no such setting"),
		ignored("personality", "there is no such setting"),
		ignored("features", "switches of Codex itself"),
		ignored("sandbox_workspace_write", "there is no sandbox to set up"),
	)
	p.judge = judge{needs: []string{"name", "description", "developer_instructions"}, toml: true, strictKeys: true}
	p.writer = &writer{readOnly: `sandbox_mode = "read-only"`, effort: "model_reasoning_effort", efforts: openaiEfforts, model: true}
	return p
}

// readApproval reads when Codex asks.
func readApproval(r *reader, n *yaml.Node) error {
	if n.Kind == yaml.MappingNode && !customTag(n) { // single kinds of questions, each on or off
		r.apply(n, word{"a table", askShell, "each command is asked about"})
		return nil
	}
	return words(
		word{"untrusted", askShell, "which commands are trusted is not known here, so each is asked about"},
		word{name: "on-request"}, word{name: "on-failure"}, word{name: "never"},
	)(r, n)
}

// readWebSearch reads whether the agent may search the web.
func readWebSearch(r *reader, n *yaml.Node) error {
	if on, ok := boolOf(n); ok && n.ShortTag() == "!!bool" {
		if !on {
			r.limit(n.Line, policy.Deny, []string{"web_search"})
		}
		return nil
	}
	v, err := r.word(n, "disabled", "cached", "live")
	if err == nil && v == "disabled" {
		r.limit(n.Line, policy.Deny, []string{"web_search"})
	}
	return err
}

// readSwitches reads {web_search = false}.
func readSwitches(r *reader, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		r.warn(n, CodeForeignField, "", "Codex knows no list of tools; it is read as in a file of ours")
		return readTools(r, n)
	}
	for _, p := range r.pairs(n) {
		name, v := trim(p.key.Value), r.follow(p.value)
		if v.Kind == yaml.MappingNode && !customTag(v) {
			continue // settings of a tool, which is on then
		}
		on, ok := boolOf(v)
		if !ok {
			return within(name, r.bad(v, "write true or false", "is %s", kindOf(v)))
		}
		if !on {
			r.limit(p.key.Line, policy.Deny, r.toolNames(name, true))
		}
	}
	return nil
}

// readProfile reads the name of a profile of rights, which is set up elsewhere.
func readProfile(r *reader, n *yaml.Node) error {
	name, err := r.text(n)
	if err == nil {
		r.apply(n, word{name, noWrites, "what the profile lets through is set up in Codex, so the agent has no tool that changes files or runs commands"})
	}
	return err
}
