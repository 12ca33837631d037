package compile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// hostTools is what the application's main agent has beyond the framework.
var hostTools = []string{
	"find_files", "search_files", "patch", "fetch_url", "web_search", "skill", "write_todos", "task", "task_output", "task_stop",
}

// A scenario is the JSON form of a compilation's input in the tests.
type scenario struct {
	Library     bool              `json:"library"`
	Main        string            `json:"main"` // --agent
	Tools       []string          `json:"tools"`
	ReadOnly    []string          `json:"read_only_tools"`
	MaxDepth    int               `json:"max_depth"`
	Off         bool              `json:"no_subagents"`
	Excluded    []compile.Names   `json:"excluded"`
	Readonly    compile.Switch    `json:"readonly"`
	Minimal     compile.Switch    `json:"minimal"`
	Allowed     *compile.Names    `json:"allowed"`
	Rules       []policy.Source   `json:"rules"`
	Model       string            `json:"model"`
	Effort      synapse.Effort    `json:"effort"`
	Aliases     map[string]string `json:"model_aliases"`
	Overrides   map[string]string `json:"model_overrides"`
	Fallback    []string          `json:"fallback_models"`
	Limits      synapse.Limits    `json:"limits"`
	Skills      map[string]string `json:"skills"`
	Agents      []scenarioAgent   `json:"agents"`
	Instruction string            `json:"instructions"`
}

type scenarioAgent struct {
	Name        string
	Description string
	Prompt      string
	Mode        agents.Mode
	Model       string
	Effort      synapse.Effort `json:"reasoning_effort"`
	Temperature *float64
	Tools       agents.ToolRule
	Disallowed  []string `json:"disallowed_tools"`
	Permissions []policy.Rule
	MaxTurns    int `json:"max_turns"`
	Limits      synapse.Limits
	Skills      []string
	CanSpawn    bool `json:"can_spawn_subagent"`
	Ownership   agents.Ownership
	Output      json.RawMessage `json:"output_schema"`
	Background  bool
	Disabled    bool
	Layer       agents.LayerKind
}

func (a *scenarioAgent) definition() *agents.Definition {
	d := &agents.Definition{
		Name: a.Name, Description: a.Description, Prompt: a.Prompt, Mode: a.Mode,
		Model: a.Model, ReasoningEffort: a.Effort, Temperature: a.Temperature,
		Tools: a.Tools, DisallowedTools: a.Disallowed, Permissions: a.Permissions,
		MaxTurns: a.MaxTurns, Limits: a.Limits, Skills: a.Skills, CanSpawn: a.CanSpawn,
		Ownership: a.Ownership, OutputSchema: a.Output, Background: a.Background, Disabled: a.Disabled,
		Layer: a.Layer, Origin: "synapse", Pos: agents.Pos{File: "agents/" + a.Name + ".md", Line: 1, Column: 1},
		Lines: map[string]int{"tools": 4, "disallowed_tools": 5, "permissions": 6, "model": 7, "skills": 8},
	}
	if d.Description == "" {
		d.Description = "Does what " + a.Name + " does."
	}
	if d.Prompt == "" {
		d.Prompt = "You are " + a.Name + "."
	}
	if d.Layer == "" {
		d.Layer = agents.LayerProject
	}
	return d
}

func (s *scenario) input(t testing.TB) compile.Input {
	t.Helper()
	in := compile.Input{
		App: !s.Library, MaxDepth: s.MaxDepth, Limits: s.Limits,
		NoSubagents: compile.Switch{On: s.Off, Origin: "user settings"},
		Restrictions: compile.Restrictions{
			Excluded: s.Excluded, ReadOnly: s.Readonly, Minimal: s.Minimal, Allowed: s.Allowed, Rules: s.Rules,
		},
		Models:       compile.ModelSettings{Aliases: s.Aliases, Overrides: s.Overrides, Fallback: s.Fallback},
		MainChoice:   compile.Choice{ModelOrigin: "user settings", Effort: s.Effort, EffortOrigin: "user settings"},
		Workspace:    "/home/me/project",
		Instructions: s.Instruction,
		Skill: func(name string) (string, bool) {
			text, ok := s.Skills[name]
			return text, ok
		},
	}
	model := s.Model
	if model == "" {
		model = "openai:main"
	}
	var err error
	if in.MainChoice.Model, err = synapse.ParseModelRef(model); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools
	if tools == nil {
		tools = hostTools
	}
	for _, name := range tools {
		in.Tools = append(in.Tools, compile.HostTool{Name: name, ReadOnly: slices.Contains(s.ReadOnly, name)})
	}
	for i := range s.Agents {
		def := s.Agents[i].definition()
		in.Agents = append(in.Agents, def)
		if def.Name == s.Main {
			in.Main = def
		}
	}
	if s.Main != "" && in.Main == nil {
		t.Fatalf("the scenario has no agent %q", s.Main)
	}
	return in
}

func readScenario(t testing.TB, data []byte) *scenario {
	t.Helper()
	var s scenario
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// render writes a graph for people. Denials that are the same for every agent
// of a scenario are left out unless they are worth a look.
func render(g *synapse.Graph, diags []agents.Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "entry %s\n", g.Entry)
	for _, s := range g.Specs {
		fmt.Fprintf(&b, "\nspec %s\n", s.ID)
		if s.Agent != s.ID {
			fmt.Fprintf(&b, "  agent %s\n", s.Agent)
		}
		fmt.Fprintf(&b, "  model %s (%s)", s.Model, s.ModelOrigin)
		for _, ref := range s.Fallback {
			fmt.Fprintf(&b, ", else %s", ref)
		}
		fmt.Fprintf(&b, "\n  effort %s (%s)\n", s.Effort, s.EffortOrigin)
		if s.Temperature != nil {
			fmt.Fprintf(&b, "  temperature %v\n", *s.Temperature)
		}
		limits, _ := json.Marshal(s.Limits)
		fmt.Fprintf(&b, "  limits %s\n", limits)
		fmt.Fprintf(&b, "  allow %s\n", strings.Join(s.Policy.Allow, " "))
		byReason := map[policy.Reason][]string{}
		for tool, reason := range s.Policy.Block {
			byReason[reason] = append(byReason[reason], tool)
		}
		var lines []string
		for reason, tools := range byReason {
			slices.Sort(tools)
			lines = append(lines, fmt.Sprintf("  block %s: %s (%s)", strings.Join(tools, " "), reason.Code, reason.Origin))
		}
		slices.Sort(lines)
		for _, line := range lines {
			fmt.Fprintln(&b, line)
		}
		for _, src := range s.Policy.Rules {
			for _, r := range src.Rules {
				fmt.Fprintf(&b, "  rule %s %q %s (%s)\n", r.Tool, r.Pattern, r.Action, src.Origin)
			}
		}
		for _, m := range s.Preload {
			fmt.Fprintf(&b, "  preload %s %q\n", m.Role, m.Text())
		}
		if len(s.Output) > 0 {
			fmt.Fprintf(&b, "  output %s\n", s.Output)
		}
		if s.Background {
			fmt.Fprintln(&b, "  background")
		}
		if s.NoTools != "" {
			fmt.Fprintf(&b, "  no tools: %s\n", s.NoTools)
		}
	}
	b.WriteByte('\n')
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "%s %s -> %s %q\n", e.Kind, e.From, e.To, e.Names)
	}
	for _, d := range diags {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

// TestTask compiles testdata/task/*.txtar: "input" is a scenario, "want" what
// comes of it, or the error.
func TestTask(t *testing.T) {
	files, err := filepath.Glob("testdata/task/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no text pairs in testdata/task", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]byte{}
			for _, f := range ar.Files {
				parts[f.Name] = f.Data
			}
			in := readScenario(t, parts["input"]).input(t)
			g, diags, err := compile.Task(in)
			got := ""
			if err != nil {
				got = "error: " + err.Error() + "\n"
			} else {
				got = render(g, diags)
				checkGraph(t, &in, g)
			}
			if *update {
				ar.Files = []txtar.File{{Name: "input", Data: parts["input"]}, {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(parts["want"]), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkGraph checks what holds for every graph.
func checkGraph(t testing.TB, in *compile.Input, g *synapse.Graph) {
	t.Helper()
	specs := map[string]*synapse.Spec{}
	for i := range g.Specs {
		s := &g.Specs[i]
		if specs[s.ID] != nil {
			t.Errorf("two specs have the ID %q", s.ID)
		}
		specs[s.ID] = s
		tools := in.Tools
		for _, e := range g.Edges { // whoever hands over has a tool for each receiver
			if e.Kind == synapse.EdgeTransfer && e.From == s.ID {
				tools = append(tools[:len(tools):len(tools)], compile.HostTool{Name: e.Names[1]})
			}
		}
		checkPartition(t, tools, s)
		if len(s.Digest) != 64 {
			t.Errorf("%s: digest %q is no SHA-256 in hex", s.ID, s.Digest)
		}
	}
	if specs[g.Entry] == nil {
		t.Errorf("entry %q is no spec", g.Entry)
	}
	reached := map[string]bool{g.Entry: true}
	names := map[[2]string]bool{}
	for _, e := range g.Edges {
		from, to := specs[e.From], specs[e.To]
		if from == nil || to == nil {
			t.Fatalf("edge %+v joins no specs", e)
		}
		reached[e.To] = true
		if len(e.Names) == 0 || e.Names[0] != to.Agent {
			t.Errorf("edge %+v does not name %q first", e, to.Agent)
		}
		for _, name := range e.Names {
			if names[[2]string{e.From, name}] {
				t.Errorf("%s has two edges called %q", e.From, name)
			}
			names[[2]string{e.From, name}] = true
		}
		if e.Kind == synapse.EdgeTransfer {
			if !slices.Contains(from.Policy.Allow, e.Names[1]) {
				t.Errorf("%s has an edge and no tool %s", e.From, e.Names[1])
			}
			continue // and an owner may hand over to the main agent
		}
		if !slices.Contains(from.Policy.Allow, "task") {
			t.Errorf("%s has an edge and no task tool", e.From)
		}
		if e.To == g.Entry {
			t.Errorf("%s can call the main agent", e.From)
		}
	}
	for id := range specs {
		if !reached[id] {
			t.Errorf("nobody can reach %s", id)
		}
		if slices.Contains(specs[id].Policy.Allow, "task") && !hasEdge(g, id) {
			t.Errorf("%s has a task tool and nobody to call", id)
		}
	}
}

func hasEdge(g *synapse.Graph, id string) bool {
	return slices.ContainsFunc(g.Edges, func(e synapse.Edge) bool { return e.From == id })
}

// checkPartition checks that every tool is allowed or denied, and not both.
func checkPartition(t testing.TB, tools []compile.HostTool, s *synapse.Spec) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range compile.FrameworkTools() {
		want[name] = true
	}
	for _, tool := range tools {
		want[tool.Name] = true
	}
	got := map[string]bool{}
	for _, name := range s.Policy.Allow {
		if got[name] {
			t.Errorf("%s: %s is allowed twice", s.ID, name)
		}
		got[name] = true
	}
	for name, reason := range s.Policy.Block {
		if got[name] {
			t.Errorf("%s: %s is both allowed and denied", s.ID, name)
		}
		if reason.Code == "" || reason.Origin == "" {
			t.Errorf("%s: %s is denied without reason or origin: %+v", s.ID, name, reason)
		}
		got[name] = true
	}
	if !maps.Equal(want, got) {
		t.Errorf("%s: the policy speaks of %v, the tools are %v", s.ID, got, want)
	}
}
