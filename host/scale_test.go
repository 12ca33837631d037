package host_test

import (
	"fmt"
	"testing"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

// BenchmarkOpenDelegates opens a host whose agents may all call each other, which
// is an edge for each pair and depth.
func BenchmarkOpenDelegates(b *testing.B) {
	for _, n := range []int{100, 200, 400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			opt := host.Options{
				Workspace: b.TempDir(), Inspect: true, Settings: []host.Setting{{Flag: "test", Key: "model", Value: "offline:rules"}},
			}
			for i := range n {
				opt.Agents = append(opt.Agents, &agents.Definition{
					Name: fmt.Sprintf("agent-%03d", i), Description: fmt.Sprintf("Use it for what has the number %d, and for nothing else.", i), Prompt: "p", CanSpawn: true,
				})
			}
			for b.Loop() {
				h, err := host.Open(b.Context(), opt)
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
