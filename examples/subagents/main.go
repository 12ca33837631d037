// Command subagents runs a main agent with two sub-agents of its own. It needs
// no provider: the embedded rules answer.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

func main() {
	ctx := context.Background()
	reads := agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"find_files", "search_files", "read_file"}}
	h, err := host.Open(ctx, host.Options{
		Workspace: "testdata",
		Settings:  []host.Setting{{Flag: "example", Key: "model", Value: "offline:rules"}},
		Agents: []*agents.Definition{
			{Name: "librarian", Description: "Finds files.", Prompt: "You find files.", Tools: reads},
			{Name: "gardener", Description: "Looks after what is to be done.", Prompt: "You search text.", Tools: reads},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	prompt := "In parallel: ask librarian to list the files; ask gardener to find TODO"
	for event, err := range h.Run(ctx, host.Input{Prompt: prompt}) {
		if err != nil {
			log.Fatal(err)
		} else if answer, ok := event.Body.(*synapse.Conclusion); ok {
			fmt.Println(answer.Content)
		}
	}
}
