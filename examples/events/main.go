// Command events prints what happens while it happens: the events of the main
// agent and of its sub-agents, in one stream.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/script"
)

// reply is the scripted model: the main agent delegates once, the sub-agent
// reads a file that isn't there, and both report.
func reply(turn int, req *synapse.Request) script.Turn {
	main := strings.Contains(script.FirstUser(req), "Look around")
	switch {
	case main && turn == 0:
		return script.Turn{Calls: []synapse.ToolCall{script.Call("task", map[string]any{
			"subagent_type": "explore", "description": "read the plan", "prompt": "Read plan.md and say what it says.",
		})}}
	case main:
		return script.Turn{Text: "There is no plan yet."}
	case turn == 0:
		return script.Turn{Calls: []synapse.ToolCall{script.Call("read_file", map[string]any{"path": "plan.md"})}}
	default:
		return script.Turn{Text: "plan.md does not exist."}
	}
}

func main() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(context.Background(), host.Options{
		Workspace: dir, Models: map[string]synapse.Model{"script": script.Play(reply)},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	for e, err := range h.Run(context.Background(), host.Input{Prompt: "Look around."}) {
		if err != nil {
			log.Fatal(err)
		}
		switch b := e.Body.(type) {
		case *synapse.ChildStarted:
			fmt.Printf("%s starts %s: %s\n", e.Agent, b.Agent, b.Description)
		case *synapse.ToolStarted:
			fmt.Printf("%s calls %s\n", e.Agent, b.Call.Name)
		case *synapse.ToolFinished:
			fmt.Printf("%s has the result of %s (error: %v)\n", e.Agent, b.Result.Name, b.Result.IsError)
		case *synapse.RunFinished:
			fmt.Printf("%s %s after %d turns: %s\n", e.Agent, b.Status, b.Turns, b.Text)
		}
	}
}
