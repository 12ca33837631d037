// Command customtool gives agents a tool of the program's own: a Go function
// whose JSON Schema is inferred from its arguments. A scripted model calls it, so
// that the example runs without a provider.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/tool"
)

// weatherArgs are the tool's arguments, as the model fills them in.
type weatherArgs struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func main() {
	weather, err := tool.New("weather", "Tells the weather of a city.",
		func(_ context.Context, _ *synapse.Invocation, args weatherArgs) (*synapse.ToolResult, error) {
			if args.City != "Bergen" {
				return nil, fmt.Errorf("no station in %q", args.City)
			}
			return synapse.TextResult("rain"), nil
		})
	if err != nil {
		log.Fatal(err)
	}
	weather.ReadOnly, weather.Parallel = true, true

	model := script.New(
		script.Turn{Calls: []synapse.ToolCall{script.Call("weather", map[string]any{"city": "Bergen"})}},
		script.Turn{Text: "Take an umbrella."},
	)
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(context.Background(), host.Options{
		Workspace: dir, Tools: []synapse.Tool{weather}, Models: map[string]synapse.Model{"script": model},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	for event, err := range h.Run(context.Background(), host.Input{Prompt: "What do I need in Bergen?"}) {
		if err != nil {
			log.Fatal(err)
		}
		switch b := event.Body.(type) {
		case *synapse.ToolFinished:
			fmt.Printf("%s said: %s\n", b.Result.Name, b.Result.Text)
		case *synapse.Conclusion:
			fmt.Println(b.Content)
		}
	}
}
