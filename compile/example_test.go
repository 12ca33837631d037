package compile_test

import (
	"fmt"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
)

func ExampleTask() {
	g, _, err := compile.Task(compile.Input{
		Agents: []*agents.Definition{{
			Name: "scout", Description: "Finds things.", Prompt: "You find things.",
			Tools:           agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"Read", "Grep", "Bash"}},
			DisallowedTools: []string{"execute"},
		}},
		Tools:      []compile.HostTool{{Name: "search_files"}, {Name: "task"}},
		MainChoice: compile.Choice{Model: synapse.ModelRef{Provider: "openai", Name: "gpt-5"}, ModelOrigin: "user settings"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range g.Edges {
		fmt.Println(e.From, "calls", e.To)
	}
	scout := g.Specs[1]
	fmt.Println("allowed:", scout.Policy.Allow)
	fmt.Println("execute:", scout.Policy.Block["execute"].Code)
	fmt.Println("model:", scout.Model, "by", scout.ModelOrigin)
	// Output:
	// main calls scout
	// allowed: [read_file search_files]
	// execute: disallowed_tools
	// model: openai:gpt-5 by inherit
}
