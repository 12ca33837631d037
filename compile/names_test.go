package compile_test

import (
	"slices"
	"testing"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
)

// TestQualifiedNames: what another product defines is called by its qualified
// name too, unless that is another agent's.
func TestQualifiedNames(t *testing.T) {
	def := func(name, origin string) *agents.Definition {
		return &agents.Definition{
			Name: name, Description: "d", Prompt: "p", Mode: agents.ModeAll, Ownership: agents.OwnershipTask,
			Origin: origin, Pos: agents.Pos{File: origin + "/" + name},
		}
	}
	g, _, err := compile.Task(compile.Input{
		App: true, Tools: []compile.HostTool{{Name: "task"}},
		Agents: []*agents.Definition{
			def("reviewer", "claude"), def("opencode:reviewer", "opencode"), def("tester", agents.Native),
			def("planner", "gemini"), def("gemini:planner", agents.Native), def("odd", "some label"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"reviewer": {"reviewer", "claude:reviewer"}, "opencode:reviewer": {"opencode:reviewer"}, "tester": {"tester"},
		"planner": {"planner"}, "gemini:planner": {"gemini:planner"}, "odd": {"odd"},
	}
	for _, e := range g.Edges {
		name := e.Names[0]
		if !slices.Equal(e.Names, want[name]) {
			t.Errorf("%s is called by %q, want %q", name, e.Names, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no edge leads to %v", want)
	}
}
