// Command subagents runs a main agent with two sub-agents of its own. It needs
// no provider: the embedded rules answer.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

func only(tools ...string) agents.ToolRule { return agents.ToolRule{Mode: agents.ToolsExact, Names: tools} }

func main() {
	ctx := context.Background()
	h, err := host.Open(ctx, host.Options{
		Workspace: os.TempDir(),
		Settings:  []host.Setting{{Flag: "example", Key: "model", Value: "offline:rules"}},
		Agents: []*agents.Definition{
			{Name: "finder", Description: "Finds files.", Prompt: "You find files.", Tools: only("find_files", "read_file")},
			{Name: "clerk", Description: "Reads git's log.", Prompt: "You read git's log.", Tools: only("execute")},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	for event, err := range h.Run(ctx, host.Input{Prompt: "In parallel: ask finder to find go.mod; ask clerk for the git log"}) {
		if err != nil {
			log.Fatal(err)
		} else if answer, ok := event.Body.(*synapse.Conclusion); ok {
			fmt.Println(answer.Content)
		}
	}
}
