package compile_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
)

type modelVector struct {
	ID    string
	Agent string
	Main  struct {
		Model  synapse.ModelRef `json:"model"`
		Effort synapse.Effort   `json:"reasoning_effort"`
	}
	Settings struct {
		Default         string                    `json:"subagent_default_model"`
		DefaultEffort   synapse.Effort            `json:"subagent_default_reasoning_effort"`
		Overrides       map[string]string         `json:"subagent_model_overrides"`
		EffortOverrides map[string]synapse.Effort `json:"subagent_reasoning_effort_overrides"`
	}
	Definition struct {
		Model  string
		Effort synapse.Effort `json:"reasoning_effort"`
	}
	Env  map[string]string
	Want struct {
		Model        string
		ModelOrigin  string         `json:"model_origin"`
		Effort       synapse.Effort `json:"reasoning_effort"`
		EffortOrigin string         `json:"reasoning_effort_origin"`
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestResolveModelVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []modelVector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("testdata/model.json holds no cases")
	}
	for _, v := range file.Cases {
		t.Run(v.ID, func(t *testing.T) {
			got, diags := compile.ResolveModel(
				&agents.Definition{Name: v.Agent, Model: v.Definition.Model, ReasoningEffort: v.Definition.Effort},
				compile.Choice{Model: v.Main.Model, Effort: v.Main.Effort},
				compile.ModelSettings{
					Overrides: v.Settings.Overrides, EffortOverrides: v.Settings.EffortOverrides,
					Default: v.Settings.Default, DefaultEffort: v.Settings.DefaultEffort, Env: lookup(v.Env),
				})
			want := compile.Choice{
				ModelOrigin: v.Want.ModelOrigin, Effort: v.Want.Effort, EffortOrigin: v.Want.EffortOrigin,
			}
			if want.Model, err = synapse.ParseModelRef(v.Want.Model); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(diags) > 0 {
				t.Errorf("unexpected diagnostics: %v", diags)
			}
		})
	}
}

func TestResolveModelNames(t *testing.T) {
	main := compile.Choice{Model: synapse.ModelRef{Provider: "openai", Name: "main"}, Effort: synapse.EffortLow}
	settings := compile.ModelSettings{
		Aliases: map[string]string{
			"sonnet": "anthropic:big", "fast": "cheap", "cheap": "ollama:small", "free": "inherit",
			"a": "b", "b": "a", "GPT-4.1": "openai:gpt",
		},
		Provider: func(name string) bool { return name == "openai" || name == "anthropic" || name == "ollama" },
	}
	tests := []struct {
		name    string
		model   string
		env     string
		deflt   string
		want    string
		origin  string
		warning bool
	}{
		{name: "an alias", model: "sonnet", want: "anthropic:big", origin: "definition"},
		{name: "an alias in another case", model: "gpt-4.1", want: "openai:gpt", origin: "definition"},
		{name: "an alias of an alias", model: "fast", want: "ollama:small", origin: "definition"},
		{name: "an alias for inherit", model: "free", want: "openai:main", origin: "inherit"},
		{name: "a circle of aliases", model: "a", want: "openai:main", origin: "inherit", warning: true},
		{name: "another product's name", model: "opus", want: "openai:main", origin: "inherit", warning: true},
		{name: "a name that only looks like provider:model", model: "llama3:8b", want: "openai:main", origin: "inherit", warning: true},
		{name: "a name with a colon", model: "ollama:llama3:8b", want: "ollama:llama3:8b", origin: "definition"},
		{name: "unresolvable silences the variable as inherit does", model: "opus", env: "anthropic:env", want: "openai:main", origin: "inherit", warning: true},
		{name: "unresolvable falls to the default as inherit does", model: "opus", deflt: "sonnet", want: "anthropic:big", origin: "default", warning: true},
		{name: "an alias in the variable", env: "sonnet", want: "anthropic:big", origin: "env"},
		{name: "an unresolvable variable", env: "opus", want: "openai:main", origin: "inherit", warning: true},
		{name: "an unresolvable default", deflt: "opus", want: "openai:main", origin: "inherit", warning: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := settings
			s.Default = tt.deflt
			s.Env = lookup(map[string]string{"AGENT_SUBAGENT_ROLE_MODEL": tt.env})
			def := &agents.Definition{Name: "role", Model: tt.model, Pos: agents.Pos{File: "role.md"}, Lines: map[string]int{"model": 3}}
			got, diags := compile.ResolveModel(def, main, s)
			if got.Model.String() != tt.want || got.ModelOrigin != tt.origin {
				t.Errorf("got %s from %s, want %s from %s", got.Model, got.ModelOrigin, tt.want, tt.origin)
			}
			if warned := len(diags) > 0; warned != tt.warning {
				t.Errorf("diagnostics %v, want any: %v", diags, tt.warning)
			}
			for _, d := range diags {
				if d.Code != "model-unresolved" || d.File != "role.md" || d.Line != 3 || d.Hint == "" {
					t.Errorf("diagnostic %+v lacks its code, place or way out", d)
				}
			}
		})
	}
}

func TestEnvName(t *testing.T) {
	for agent, want := range map[string]string{
		"reviewer":   "AGENT_SUBAGENT_REVIEWER_MODEL",
		"sec-review": "AGENT_SUBAGENT_SEC_REVIEW_MODEL",
		"My agent.2": "AGENT_SUBAGENT_MY_AGENT_2_MODEL",
		"审查":         "AGENT_SUBAGENT_审查_MODEL",
	} {
		if got := compile.EnvName(agent); got != want {
			t.Errorf("EnvName(%q) = %q, want %q", agent, got, want)
		}
	}
	// An agent called "default" does not take everybody's default for its own.
	got, _ := compile.ResolveModel(&agents.Definition{Name: "default"}, compile.Choice{}, compile.ModelSettings{
		Env: lookup(map[string]string{"AGENT_SUBAGENT_DEFAULT_MODEL": "openai:x"}), Default: "openai:x",
	})
	if got.ModelOrigin != compile.OriginDefault {
		t.Errorf("origin %q, want %q", got.ModelOrigin, compile.OriginDefault)
	}
}
