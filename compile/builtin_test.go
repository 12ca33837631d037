package compile_test

import (
	"slices"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
)

// TestBuiltins compiles the presets with the application's tools.
func TestBuiltins(t *testing.T) {
	s := scenario{}
	in := s.input(t)
	in.Agents = agents.Builtin().Defs
	g, diags, err := compile.Task(in)
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(t, &in, g)
	for _, d := range diags {
		if d.Severity != agents.Info { // the user can't mend a preset
			t.Errorf("a preset is complained about: %v", d)
		}
	}
	specs := map[string]*synapse.Spec{}
	for i := range g.Specs {
		specs[g.Specs[i].Agent] = &g.Specs[i]
	}
	writes := []string{"write_file", "edit_file", "patch"}
	for _, tt := range []struct {
		agent     string
		has, not  []string
		turns     int
		temp      float64
		isDefault bool
	}{
		{agent: "researcher", has: []string{"read_file", "find_files", "search_files"}, not: append(writes, "execute", "task"), turns: 30},
		{agent: "reviewer", has: []string{"read_file", "execute"}, not: append(writes, "task"), turns: 30},
		{agent: "tester", has: append(writes, "read_file", "execute"), not: []string{"task", "write_todos"}, turns: 30},
		{agent: "general-purpose", has: append(writes, "execute", "fetch_url", "web_search", "skill"), not: []string{"write_todos"}, turns: 30, isDefault: true},
		{agent: "explore", has: []string{"read_file", "find_files", "search_files"}, not: append(writes, "execute", "task"), turns: 15},
		{agent: "analyst", has: []string{"read_file", "fetch_url", "web_search"}, not: append(writes, "task"), turns: 25, temp: 0.3},
	} {
		spec := specs[tt.agent]
		if spec == nil {
			t.Errorf("there is no %s", tt.agent)
			continue
		}
		for _, tool := range tt.has {
			if !slices.Contains(spec.Policy.Allow, tool) {
				t.Errorf("%s lacks %s: %v", tt.agent, tool, spec.Policy.Block[tool])
			}
		}
		for _, tool := range tt.not {
			if slices.Contains(spec.Policy.Allow, tool) {
				t.Errorf("%s has %s", tt.agent, tool)
			}
		}
		if spec.Limits.Turns != tt.turns {
			t.Errorf("%s has %d turns, want %d", tt.agent, spec.Limits.Turns, tt.turns)
		}
		if spec.Origin != compile.OriginBuiltin {
			t.Errorf("%s is from %q, want %q", tt.agent, spec.Origin, compile.OriginBuiltin)
		}
		if got := spec.Temperature; (got == nil) != (tt.temp == 0) || got != nil && *got != tt.temp {
			t.Errorf("%s has temperature %v, want %v", tt.agent, got, tt.temp)
		}
		edge := slices.IndexFunc(g.Edges, func(e synapse.Edge) bool { return e.To == spec.ID })
		if got := slices.Contains(g.Edges[edge].Names, ""); got != tt.isDefault {
			t.Errorf("%s is the default: %v, want %v", tt.agent, got, tt.isDefault)
		}
		if n := len(spec.System); n > 2600 {
			t.Errorf("%s is told %d bytes before its task, want at most 2600", tt.agent, n)
		}
	}
}

// TestCodes checks that every diagnostic's code is listed.
func TestCodes(t *testing.T) {
	listed := map[string]bool{}
	for _, info := range compile.Codes() {
		if info.About == "" || listed[info.Code] {
			t.Errorf("code %q has no sentence of its own", info.Code)
		}
		listed[info.Code] = true
	}
	for seed := range uint64(200) {
		in := randomInput(seed)
		in.Models.Default = "nowhere"
		in.Agents[0].Skills = []string{"missing"}
		_, diags, err := compile.Task(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range diags {
			if !listed[d.Code] {
				t.Errorf("code %q is not listed", d.Code)
			}
		}
	}
}
