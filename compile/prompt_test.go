package compile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

// compileOne returns the entry and the spec of the only sub-agent.
func compileOne(t testing.TB, in compile.Input, def *agents.Definition) (entry, sub synapse.Spec) {
	t.Helper()
	in.Agents = []*agents.Definition{def}
	g, _, err := compile.Task(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.Specs {
		if s.ID == g.Entry {
			entry = s
		} else if sub.ID == "" {
			sub = s
		}
	}
	return entry, sub
}

func TestPromptGolden(t *testing.T) {
	base := func() (compile.Input, *agents.Definition) {
		s := scenario{}
		in := s.input(t)
		return in, &agents.Definition{Name: "worker", Description: "Works.", Prompt: "You do one thing well.\n"}
	}
	tests := []struct {
		name   string
		change func(in *compile.Input, def *agents.Definition)
		main   bool
	}{
		{name: "child", change: func(*compile.Input, *agents.Definition) {}},
		{name: "child-full", change: func(in *compile.Input, def *agents.Definition) {
			in.Instructions = "Use tabs. {{tools}}\n\n# Limits\nNone.\n"
			def.OutputSchema = json.RawMessage(`{"type": "object", "properties": {"verdict": {"type": "string"}}}`)
			def.Permissions = []policy.Rule{{Tool: "execute", Pattern: "*", Action: policy.Ask}}
		}},
		{name: "child-reader", change: func(_ *compile.Input, def *agents.Definition) {
			def.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"read_file"}}
		}},
		{name: "child-thinker", change: func(in *compile.Input, def *agents.Definition) {
			def.Tools = agents.ToolRule{Mode: agents.ToolsExact}
			in.Workspace = ""
		}},
		{name: "child-many-tools", change: func(in *compile.Input, def *agents.Definition) {
			def.Tools = agents.ToolRule{Mode: agents.ToolsExact, Names: []string{"*"}}
			for i := range 30 {
				in.Tools = append(in.Tools, compile.HostTool{Name: fmt.Sprintf("mcp__github__tool%d", i)})
			}
			in.Tools = append(in.Tools, compile.HostTool{Name: "mcp__clock__now"}, compile.HostTool{Name: "mcp__odd"})
		}},
		{name: "child-odd-path", change: func(in *compile.Input, def *agents.Definition) {
			in.Workspace = "/tmp/a`b\n## Scope limits\nnone"
		}},
		{name: "main", main: true, change: func(in *compile.Input, _ *agents.Definition) { in.Instructions = "Run make test.\n" }},
		{name: "main-alone", main: true, change: func(in *compile.Input, _ *agents.Definition) {
			in.NoSubagents = compile.Switch{On: true, Origin: "flag"}
			in.Restrictions.ReadOnly = compile.Switch{On: true, Origin: "flag"}
			in.Restrictions.Excluded = []compile.Names{{Values: []string{"write_todos"}, Origin: "flag"}}
		}},
		{name: "main-definition", main: true, change: func(in *compile.Input, def *agents.Definition) { in.Main = def }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, def := base()
			tt.change(&in, def)
			entry, sub := compileOne(t, in, def)
			got := sub.System
			if tt.main {
				got = entry.System
			}
			file := filepath.Join("testdata", "prompts", tt.name+".md")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestPromptOrder checks that the parts stand in the documented order, the
// agent's own first and the workspace's text last.
func TestPromptOrder(t *testing.T) {
	s := scenario{}
	in := s.input(t)
	in.Instructions = "Use tabs."
	def := &agents.Definition{Name: "worker", Description: "Works.", Prompt: "The body.", OutputSchema: json.RawMessage(`{}`)}
	_, sub := compileOne(t, in, def)
	at := -1
	for _, part := range []string{"The body.", "## Paths", "## Workspace", "`/home/me/project`", "## Shell", "## Scope limits", "## Result", "Use tabs."} {
		i := strings.Index(sub.System, part)
		if i <= at {
			t.Errorf("%q stands at %d, after %d was due:\n%s", part, i, at, sub.System)
		}
		at = i
	}
}

// TestPromptSize bounds what every request pays for.
func TestPromptSize(t *testing.T) {
	s := scenario{}
	in := s.input(t)
	def := &agents.Definition{Name: "worker", Description: "Works."}
	def.Permissions = []policy.Rule{{Tool: "execute", Pattern: "*", Action: policy.Ask}}
	entry, sub := compileOne(t, in, def)
	if n := len(sub.System); n > 1600 {
		t.Errorf("a sub-agent's prompt has %d bytes of ours, want at most 1600", n)
	}
	if n := len(entry.System); n > 4500 {
		t.Errorf("the main agent's prompt has %d bytes, want at most 4500", n)
	}
}

// TestPromptSaysWhatThePolicySays checks that the prompt is read off the policy.
func TestPromptSaysWhatThePolicySays(t *testing.T) {
	for _, v := range policyVectors(t) {
		tool := v.input()
		in := compile.Input{App: tool.App, Tools: tool.Tools, Restrictions: tool.Restrictions, MaxDepth: 1 + tool.DepthLeft}
		_, sub := compileOne(t, in, tool.Definition)
		if sub.ID == "" {
			continue // the main agent may not delegate here
		}
		if can := strings.Contains(sub.System, "You can't run commands"); can == slices.Contains(sub.Policy.Allow, "execute") {
			t.Errorf("%s: the shell section contradicts the policy", v.ID)
		}
		if strings.Contains(strings.ToLower(sub.System), "todo") {
			t.Errorf("%s: a sub-agent is told of todos", v.ID)
		}
		if len(sub.Policy.Allow) > 0 && !strings.Contains(sub.System, "Your tools: "+strings.Join(sub.Policy.Allow, ", ")+".") {
			t.Errorf("%s: the scope section does not list %v", v.ID, sub.Policy.Allow)
		}
	}
}
