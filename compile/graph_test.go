package compile_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

// randomInput makes an input out of a seed, with everything that decides about
// tools in it.
func randomInput(seed uint64) compile.Input {
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{
		"read_file", "Write", "edit_file", "Bash", "execute", "patch", "find_files", "search_files", "Grep", "ls", "glob",
		"fetch_url", "web_search", "skill", "task", "Task", "task_output", "write_todos", "mcp__db__*", "mcp__db__drop", "*_file", "*", "nope",
	}
	pick := func(most int) []string {
		var list []string
		for range r.IntN(most + 1) {
			list = append(list, words[r.IntN(len(words))])
		}
		return list
	}
	rules := func() []policy.Rule {
		var list []policy.Rule
		for range r.IntN(4) {
			list = append(list, policy.Rule{
				Tool:    words[r.IntN(len(words))],
				Pattern: []string{"*", "src/**", "git *"}[r.IntN(3)],
				Action:  []policy.Action{policy.Allow, policy.Ask, policy.Deny}[r.IntN(3)],
			})
		}
		return list
	}
	in := compile.Input{
		App: r.IntN(2) == 0, MaxDepth: r.IntN(4), Workspace: "/w",
		MainChoice: compile.Choice{Model: synapse.ModelRef{Provider: "p", Name: "m"}},
	}
	for _, name := range append(slices.Clone(hostTools), "mcp__db__query", "mcp__db__drop") {
		if r.IntN(6) > 0 {
			in.Tools = append(in.Tools, compile.HostTool{Name: name, ReadOnly: name == "mcp__db__query"})
		}
	}
	if r.IntN(3) == 0 {
		in.Restrictions.Excluded = []compile.Names{{Values: pick(2), Origin: "user settings"}, {Values: pick(2), Origin: "flag"}}
		in.Restrictions.ReadOnly = compile.Switch{On: r.IntN(2) == 0, Origin: "flag"}
		in.Restrictions.Minimal = compile.Switch{On: r.IntN(2) == 0, Origin: "user settings"}
		in.Restrictions.Rules = []policy.Source{{Origin: "user settings", Rules: rules()}}
	}
	if r.IntN(6) == 0 {
		in.Restrictions.Allowed = &compile.Names{Values: pick(8), Origin: "flag"}
	}
	for i := range 2 + r.IntN(5) {
		def := &agents.Definition{
			Name: fmt.Sprintf("agent%d", i), Description: "d", Prompt: "p", Layer: agents.LayerProject,
			Pos: agents.Pos{File: fmt.Sprintf("agent%d.md", i), Line: 1}, CanSpawn: r.IntN(2) == 0,
			DisallowedTools: pick(2), Permissions: rules(),
			Mode:     []agents.Mode{agents.ModeAll, agents.ModeAll, agents.ModeSubagent, agents.ModePrimary}[r.IntN(4)],
			Disabled: r.IntN(8) == 0,
		}
		switch r.IntN(3) {
		case 1:
			def.Tools.Mode = agents.ToolsFramework
		case 2:
			def.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: append(pick(6), "task")}
		}
		if in.Main == nil && !def.Disabled && def.Mode != agents.ModeSubagent && r.IntN(4) == 0 {
			in.Main = def
		}
		in.Agents = append(in.Agents, def)
	}
	return in
}

// TestGraphInvariants checks on many graphs what must hold for each.
func TestGraphInvariants(t *testing.T) {
	deep, restricted := 0, 0
	for seed := range uint64(600) {
		in := randomInput(seed)
		g, _, err := compile.Task(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkGraph(t, &in, g)
		specs := map[string]*synapse.Spec{}
		for i := range g.Specs {
			specs[g.Specs[i].ID] = &g.Specs[i]
		}
		depth := walk(t, &in, g, specs, specs[g.Entry], nil, 0)
		limit := in.MaxDepth
		if limit == 0 {
			limit = compile.DefaultMaxDepth
		}
		if depth > limit {
			t.Errorf("seed %d: sub-agents reach depth %d of %d", seed, depth, limit)
		}
		if depth > 1 {
			deep++
		}
		if strings.Contains(fmt.Sprint(specs), "[") {
			restricted++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if deep < 50 || restricted < 50 {
		t.Errorf("the inputs are too tame: %d deep graphs, %d with restricting callers", deep, restricted)
	}
}

// walk follows every path of calls and checks that nobody on it may do what a
// definition above denies.
func walk(t *testing.T, in *compile.Input, g *synapse.Graph, specs map[string]*synapse.Spec, s *synapse.Spec, above []*agents.Definition, depth int) int {
	t.Helper()
	for _, def := range above {
		for _, tool := range s.Policy.Allow {
			for _, name := range def.DisallowedTools {
				exists := func(tool string) bool {
					_, denied := s.Policy.Block[tool]
					return denied || slices.Contains(s.Policy.Allow, tool)
				}
				if policy.MatchName(policy.Canonical(name, exists), tool) {
					t.Errorf("%s may call %s, which %s above it denies", s.ID, tool, def.Name)
				}
			}
		}
		for _, rule := range def.Permissions {
			if rule.Action == policy.Allow {
				continue
			}
			bound := slices.ContainsFunc(s.Policy.Rules, func(src policy.Source) bool { return slices.Contains(src.Rules, rule) })
			touches := slices.ContainsFunc(s.Policy.Allow, func(tool string) bool {
				return policy.MatchName(policy.Canonical(rule.Tool, nil), tool)
			})
			if touches && !bound {
				t.Errorf("%s is not bound by the rule %+v of %s above it", s.ID, rule, def.Name)
			}
		}
	}
	if i := slices.IndexFunc(in.Agents, func(d *agents.Definition) bool { return d.Name == s.Agent }); i >= 0 {
		above = append(slices.Clip(above), in.Agents[i])
	}
	deepest := depth
	for _, e := range g.Edges {
		if e.From == s.ID {
			deepest = max(deepest, walk(t, in, g, specs, specs[e.To], above, depth+1))
		}
	}
	return deepest
}

// TestTaskIsDeterministic checks that neither the order of the definitions nor
// that of maps shows in the result.
func TestTaskIsDeterministic(t *testing.T) {
	for seed := range uint64(100) {
		encode := func(in compile.Input) string {
			g, diags, err := compile.Task(in)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(struct {
				*synapse.Graph
				Diagnostics []agents.Diagnostic
			}{g, diags})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		in := randomInput(seed)
		want := encode(in)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 5 {
			r.Shuffle(len(in.Agents), func(i, j int) { in.Agents[i], in.Agents[j] = in.Agents[j], in.Agents[i] })
			if got := encode(in); got != want {
				t.Fatalf("seed %d: two compilations differ:\n%s\n%s", seed, want, got)
			}
		}
	}
}

// TestTaskLeavesItsInputAlone compiles the same definitions from two goroutines;
// the race detector sees a write.
func TestTaskLeavesItsInputAlone(t *testing.T) {
	in := randomInput(3)
	before, err := json.Marshal(in.Agents)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 2 {
		go func() {
			_, _, err := compile.Task(in)
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := json.Marshal(in.Agents); string(after) != string(before) {
		t.Error("compiling changed a definition")
	}
}

func TestDigest(t *testing.T) {
	base := func() (compile.Input, *agents.Definition) {
		s := scenario{}
		return s.input(t), &agents.Definition{
			Name: "worker", Description: "Works.", Prompt: "Work.", Layer: agents.LayerProject, Pos: agents.Pos{File: "worker.md", Line: 1},
			DisallowedTools: []string{"patch"},
			Permissions:     []policy.Rule{{Tool: "execute", Pattern: "mv *", Action: policy.Deny, Line: 7}},
		}
	}
	in, def := base()
	_, first := compileOne(t, in, def)
	temperature := 0.5
	for name, tt := range map[string]struct {
		change func(in *compile.Input, def *agents.Definition)
		same   bool
	}{
		"nothing":      {func(*compile.Input, *agents.Definition) {}, true},
		"description":  {func(_ *compile.Input, d *agents.Definition) { d.Description = "Other." }, true},
		"place":        {func(_ *compile.Input, d *agents.Definition) { d.Pos.File = "elsewhere.md"; d.Permissions[0].Line = 9 }, true},
		"model origin": {func(in *compile.Input, d *agents.Definition) { d.Model = in.MainChoice.Model.String() }, true},
		"prompt":       {func(_ *compile.Input, d *agents.Definition) { d.Prompt = "Work!" }, false},
		"workspace":    {func(in *compile.Input, _ *agents.Definition) { in.Workspace = "/other" }, false},
		"instructions": {func(in *compile.Input, _ *agents.Definition) { in.Instructions = "Use tabs." }, false},
		"model":        {func(_ *compile.Input, d *agents.Definition) { d.Model = "openai:other" }, false},
		"effort":       {func(_ *compile.Input, d *agents.Definition) { d.ReasoningEffort = synapse.EffortOff }, false},
		"temperature":  {func(_ *compile.Input, d *agents.Definition) { d.Temperature = &temperature }, false},
		"top_p":        {func(_ *compile.Input, d *agents.Definition) { d.TopP = &temperature }, false},
		"tools":        {func(_ *compile.Input, d *agents.Definition) { d.Tools.Mode = agents.ToolsFramework }, false},
		"turns":        {func(_ *compile.Input, d *agents.Definition) { d.MaxTurns = 3 }, false},
		"fallback":     {func(in *compile.Input, _ *agents.Definition) { in.Models.Fallback = []string{"a:b"} }, false},
		"output":       {func(_ *compile.Input, d *agents.Definition) { d.OutputSchema = json.RawMessage(`{}`) }, false},
		"background":   {func(_ *compile.Input, d *agents.Definition) { d.Background = true }, false},
		"rules": {func(_ *compile.Input, d *agents.Definition) {
			d.Permissions[0].Action = policy.Ask
		}, false},
		"skills": {func(in *compile.Input, d *agents.Definition) {
			d.Skills = []string{"go"}
			in.Skill = func(string) (string, bool) { return "Write Go.", true }
		}, false},
	} {
		in, def := base()
		tt.change(&in, def)
		if _, sub := compileOne(t, in, def); (sub.Digest == first.Digest) != tt.same {
			t.Errorf("changing the %s: digest the same: %v, want %v", name, sub.Digest == first.Digest, tt.same)
		}
	}
}

// TestTaskIsBounded compiles agents that all delegate and all restrict in their
// own way: at three levels that would be millions of specs.
func TestTaskIsBounded(t *testing.T) {
	s := scenario{}
	in := s.input(t)
	for i := range 150 {
		in.Tools = append(in.Tools, compile.HostTool{Name: fmt.Sprintf("mcp__s__t%d", i)})
		in.Agents = append(in.Agents, &agents.Definition{
			Name: fmt.Sprintf("a%d", i), Description: "d", Prompt: "p", CanSpawn: true, DisallowedTools: []string{fmt.Sprintf("mcp__s__t%d", i)},
		})
	}
	g, diags, err := compile.Task(in)
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(t, &in, g)
	if len(g.Specs) > compile.MaxSpecs {
		t.Errorf("%d specs, want at most %d", len(g.Specs), compile.MaxSpecs)
	}
	if !slices.Contains(codes(diags), "depth-reduced") {
		t.Errorf("the smaller depth is not reported: %v", codes(diags))
	}
	// The same agents with the same denials keep their depth.
	for _, def := range in.Agents {
		def.DisallowedTools = []string{"write_file"}
	}
	g, diags, err = compile.Task(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(diags) > 0 || len(g.Specs) != 1+3*150 {
		t.Errorf("%d specs and diagnostics %v, want %d and none", len(g.Specs), diags, 1+3*150)
	}
}

func TestTaskErrors(t *testing.T) {
	twin := []*agents.Definition{
		{Name: "x", Pos: agents.Pos{File: "a.md"}}, {Name: "x", Pos: agents.Pos{File: "b.md"}},
	}
	for name, tt := range map[string]struct {
		in   compile.Input
		want []string
	}{
		"negative depth":      {compile.Input{MaxDepth: -1}, []string{"max depth -1", "1 or more"}},
		"two of one name":     {compile.Input{Agents: twin}, []string{`"x"`, "a.md", "b.md"}},
		"broken main":         {compile.Input{Main: &agents.Definition{Name: "x", Broken: true, Disabled: true}}, []string{`"x"`, "validate"}},
		"unreadable schema":   {compile.Input{Agents: []*agents.Definition{{Name: "x", OutputSchema: json.RawMessage(`{`)}}, Tools: []compile.HostTool{{Name: "task"}}}, []string{`"x"`, "output schema"}},
		"main is a sub-agent": {compile.Input{Main: &agents.Definition{Name: "x", Mode: agents.ModeSubagent}}, []string{`"x"`, "mode: all"}},
	} {
		g, _, err := compile.Task(tt.in)
		if err == nil || g != nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", name, err, part)
			}
		}
		if _, explained := compile.Explain(tt.in, nil); name != "unreadable schema" && explained == nil {
			t.Errorf("%s: explained without an error", name)
		}
	}
}

func BenchmarkTask(b *testing.B) {
	s := scenario{}
	in := s.input(b)
	for i := range 40 {
		in.Tools = append(in.Tools, compile.HostTool{Name: fmt.Sprintf("mcp__s__t%d", i)})
	}
	for i := range 150 {
		def := &agents.Definition{
			Name: fmt.Sprintf("agent%d", i), Description: "Does one thing.", Prompt: strings.Repeat("Instruction. ", 200),
			Layer: agents.LayerProject, Pos: agents.Pos{File: "x.md", Line: 1},
		}
		switch i % 3 {
		case 1:
			def.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"Read", "Grep", "Glob", "Bash", "mcp__s__*"}}
		case 2:
			def.DisallowedTools = []string{"Write", "Edit"}
		}
		def.CanSpawn = i%15 == 0
		in.Agents = append(in.Agents, def)
	}
	b.ReportAllocs()
	for b.Loop() {
		g, _, err := compile.Task(in)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(g.Specs)), "specs")
	}
}
