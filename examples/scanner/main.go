// Command scanner registers a sub-agent in code, looks at what its policy lets
// it do, and has it scan a workspace.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

func main() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "db.py"), []byte("import os\n\nPASSWORD = \"hunter2\"\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	scanner := &agents.Definition{
		Name:        "security-scanner",
		Description: "Use to look for secrets and dangerous calls. Reads only.",
		Prompt:      "You look for security problems and report each with its place.",
		Mode:        agents.ModeSubagent,
		Tools:       agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"read_file", "search_code"}},
	}
	h, err := host.Open(context.Background(), host.Options{
		Workspace: dir, Agents: []*agents.Definition{scanner},
		Settings: []host.Setting{{Flag: "example", Key: "model", Value: "offline:rules"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	why, err := h.Explain("security-scanner")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("may call:", why.Tools.Allowed)
	fmt.Println("execute:", why.Tools.Denied["execute"])

	for event, err := range h.Run(context.Background(), host.Input{Prompt: "Ask security-scanner to search for PASSWORD"}) {
		if err != nil {
			log.Fatal(err)
		}
		if c, ok := event.Body.(*synapse.Conclusion); ok {
			fmt.Println(c.Content)
		}
	}
}
