package compile_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

func explainInput(t *testing.T) compile.Input {
	s := readScenario(t, []byte(`{
	  "tools": ["find_files", "task", "write_todos", "web_search"],
	  "excluded": [{"Values": ["execute"], "Origin": "user settings"}],
	  "model": "openai:main", "effort": "low",
	  "agents": [
	    {"name": "reviewer", "tools": ["Read", "Bash", "nope"], "disallowed_tools": ["Write"], "model": "anthropic:big", "max_turns": 7,
	     "permissions": [{"tool": "read_file", "pattern": "secrets/**", "action": "deny"}]},
	    {"name": "lead", "mode": "primary"},
	    {"name": "billing", "ownership": "handoff"},
	    {"name": "asleep", "disabled": true}
	  ]
	}`))
	return s.input(t)
}

func named(in compile.Input, name string) *agents.Definition {
	i := slices.IndexFunc(in.Agents, func(d *agents.Definition) bool { return d.Name == name })
	return in.Agents[i]
}

func TestExplainJSON(t *testing.T) {
	in := explainInput(t)
	e, err := compile.Explain(in, named(in, "reviewer"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "name": "reviewer",
  "path": "agents/reviewer.md",
  "layer": "project",
  "origin": "synapse",
  "tools": {
    "allowed": [
      "read_file"
    ],
    "denied": {
      "edit_file": "not_listed",
      "execute": "excluded_tools",
      "find_files": "not_listed",
      "glob": "builtin_search",
      "grep": "builtin_search",
      "ls": "builtin_search",
      "task": "no_spawn",
      "web_search": "not_listed",
      "write_file": "disallowed_tools",
      "write_todos": "todo_isolation"
    },
    "denied_at": {
      "edit_file": "agents/reviewer.md:4",
      "execute": "user settings",
      "find_files": "agents/reviewer.md:4",
      "glob": "built-in",
      "grep": "built-in",
      "ls": "built-in",
      "task": "built-in",
      "web_search": "agents/reviewer.md:4",
      "write_file": "agents/reviewer.md:5",
      "write_todos": "built-in"
    },
    "unresolved": [
      "nope"
    ]
  },
  "model": {
    "value": "anthropic:big",
    "origin": "definition"
  },
  "reasoning_effort": {
    "value": "low",
    "origin": "inherit"
  },
  "limits": {
    "turns": 7,
    "time": "30m0s"
  },
  "permissions": [
    {
      "origin": "agents/reviewer.md",
      "rules": [
        {
          "tool": "read_file",
          "pattern": "secrets/**",
          "action": "deny"
        }
      ]
    }
  ],
  "warnings": [
    "tool-unresolved",
    "tool-denied"
  ]
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestExplainIsTheSpec checks that what is explained is what would run.
func TestExplainIsTheSpec(t *testing.T) {
	for _, main := range []string{"", "planner"} {
		s := readScenario(t, []byte(`{"agents": [
		  {"name": "planner", "can_spawn_subagent": true, "disallowed_tools": ["edit_file"], "permissions": [{"tool": "execute", "pattern": "*", "action": "ask"}]},
		  {"name": "coder", "can_spawn_subagent": true, "tools": ["*"]},
		  {"name": "reader", "tools": ["read_file"]}
		]}`))
		s.Main = main
		in := s.input(t)
		g, _, err := compile.Task(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, edge := range g.Edges {
			if edge.From != g.Entry {
				continue
			}
			i := slices.IndexFunc(g.Specs, func(s synapse.Spec) bool { return s.ID == edge.To })
			want := g.Specs[i]
			e, err := compile.Explain(in, named(in, want.Agent))
			if err != nil {
				t.Fatal(err)
			}
			if e.NotOffered != "" {
				t.Errorf("%s is offered, and explained as not: %s", want.ID, e.NotOffered)
			}
			want.ID = ""
			if diff := cmp.Diff(want, e.Spec); diff != "" {
				t.Errorf("%s (-graph +explained)\n%s", want.Agent, diff)
			}
		}
		e, err := compile.Explain(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := g.Specs[0]
		want.ID = ""
		if diff := cmp.Diff(want, e.Spec); diff != "" {
			t.Errorf("main agent (-graph +explained)\n%s", diff)
		}
	}
}

func TestExplainNotOffered(t *testing.T) {
	in := explainInput(t)
	for name, why := range map[string]string{"lead": "primary", "billing": "handoff", "asleep": "disabled", "reviewer": ""} {
		e, err := compile.Explain(in, named(in, name))
		if err != nil {
			t.Fatal(err)
		}
		if (why == "") != (e.NotOffered == "") || !strings.Contains(e.NotOffered, why) {
			t.Errorf("%s: not offered because %q, want %q in it", name, e.NotOffered, why)
		}
		if len(e.Tools.Allowed) == 0 || len(e.Tools.Denied) == 0 {
			t.Errorf("%s: its tools are not explained: %+v", name, e.Tools)
		}
	}
	// A primary agent is explained as what it can be: the main agent.
	e, err := compile.Explain(in, named(in, "lead"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(e.Tools.Allowed, "write_todos") {
		t.Errorf("a primary agent is explained without the main agent's tools: %v", e.Tools.Allowed)
	}
	// Where nobody delegates, nobody is offered.
	in.Restrictions.Excluded = append(in.Restrictions.Excluded, compile.Names{Values: []string{"task"}, Origin: "flag"})
	e, err = compile.Explain(in, named(in, "reviewer"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(e.NotOffered, "excluded_tools") || !strings.Contains(e.NotOffered, "flag") {
		t.Errorf("not offered because %q, want the reason and the flag in it", e.NotOffered)
	}
}

// TestReasonOrigins checks for every reason that it says where it was set.
func TestReasonOrigins(t *testing.T) {
	in := compile.ToolInput{
		App:   true,
		Tools: []compile.HostTool{{Name: "find_files"}, {Name: "search_files"}, {Name: "patch"}, {Name: "task"}, {Name: "write_todos"}, {Name: "fetch_url"}},
		Restrictions: compile.Restrictions{
			Excluded: []compile.Names{{Values: []string{"patch"}, Origin: "user settings"}, {Values: []string{"patch", "fetch_url"}, Origin: "project settings"}},
			Minimal:  compile.Switch{On: true, Origin: "AGENT_MINIMAL_FILESYSTEM_TOOLS"},
			ReadOnly: compile.Switch{On: true, Origin: "flag"},
		},
		Definition: &agents.Definition{
			Name: "x", DisallowedTools: []string{"find_files"}, Layer: agents.LayerUser,
			Pos: agents.Pos{File: "x.md", Line: 1}, Lines: map[string]int{"disallowed_tools": 9},
		},
		Callers: []compile.Caller{{Definition: &agents.Definition{
			Name: "boss", DisallowedTools: []string{"read_file"}, Pos: agents.Pos{File: "boss.md", Line: 1},
		}}},
	}
	p, _, _ := compile.Effective(in)
	want := map[string]policy.Reason{
		"patch":        {Code: policy.ExcludedTools, Origin: "user settings"},
		"fetch_url":    {Code: policy.ExcludedTools, Origin: "project settings"},
		"search_files": {Code: policy.MinimalFilesystem, Origin: "AGENT_MINIMAL_FILESYSTEM_TOOLS"},
		"write_file":   {Code: policy.MinimalFilesystem, Origin: "AGENT_MINIMAL_FILESYSTEM_TOOLS"},
		"edit_file":    {Code: policy.MinimalFilesystem, Origin: "AGENT_MINIMAL_FILESYSTEM_TOOLS"},
		"execute":      {Code: policy.ReadOnly, Origin: "flag"},
		"find_files":   {Code: policy.DisallowedTools, Origin: "x.md:9"},
		"read_file":    {Code: policy.DisallowedTools, Origin: "boss.md:1, caller boss"},
		"write_todos":  {Code: policy.TodoIsolation, Origin: "built-in"},
		"task":         {Code: policy.NoSpawn, Origin: "built-in"},
		"ls":           {Code: policy.BuiltinSearch, Origin: "built-in"},
		"glob":         {Code: policy.BuiltinSearch, Origin: "built-in"},
		"grep":         {Code: policy.BuiltinSearch, Origin: "built-in"},
	}
	if diff := cmp.Diff(want, maps.Clone(p.Block)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
