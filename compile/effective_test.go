package compile_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
)

type policyVector struct {
	ID       string
	App      bool
	Main     []string `json:"main_tools"`
	Settings struct {
		Excluded        []string `json:"excluded_tools"`
		Minimal         bool     `json:"minimal_filesystem_tools"`
		MinimalExcluded []string `json:"minimal_filesystem_excluded_tools"`
		ReadOnly        bool     `json:"readonly"`
	}
	Definition struct {
		Tools      agents.ToolRule `json:"tools"`
		Disallowed []string        `json:"disallowed_tools"`
		CanSpawn   bool            `json:"can_spawn_subagent"`
	}
	ReadOnly  []string `json:"read_only_tools"`
	DepthLeft *int     `json:"depth_left"`
	Want      struct {
		Allowed    []string
		Denied     map[string]string
		Unresolved []string
		Warnings   []string
	}
}

func (v *policyVector) input() compile.ToolInput {
	in := compile.ToolInput{
		App: v.App,
		Definition: &agents.Definition{
			Name:            "subject",
			Tools:           v.Definition.Tools,
			DisallowedTools: v.Definition.Disallowed,
			CanSpawn:        v.Definition.CanSpawn,
			Layer:           agents.LayerProject,
			Pos:             agents.Pos{File: "subject.md", Line: 1},
			Lines:           map[string]int{"tools": 4, "disallowed_tools": 5},
		},
		DepthLeft: 1,
		Restrictions: compile.Restrictions{
			Excluded:        []compile.Names{{Values: v.Settings.Excluded, Origin: "user settings"}},
			Minimal:         compile.Switch{On: v.Settings.Minimal, Origin: "user settings"},
			MinimalExcluded: v.Settings.MinimalExcluded,
			ReadOnly:        compile.Switch{On: v.Settings.ReadOnly, Origin: "user settings"},
		},
	}
	if v.DepthLeft != nil {
		in.DepthLeft = *v.DepthLeft
	}
	for _, name := range v.Main {
		in.Tools = append(in.Tools, compile.HostTool{Name: name, ReadOnly: slices.Contains(v.ReadOnly, name)})
	}
	return in
}

func policyVectors(t testing.TB) []policyVector {
	t.Helper()
	data, err := os.ReadFile("testdata/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []policyVector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("testdata/policy.json holds no cases")
	}
	return file.Cases
}

func codes(list []agents.Diagnostic) []string {
	var words []string
	for _, d := range list {
		words = append(words, d.Code)
	}
	slices.Sort(words)
	return words
}

func TestEffectiveVectors(t *testing.T) {
	for _, v := range policyVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			p, unresolved, warnings := compile.Effective(v.input())
			denied := map[string]string{}
			for tool, reason := range p.Block {
				denied[tool] = string(reason.Code)
				if reason.Origin == "" {
					t.Errorf("%s is denied (%s) without an origin", tool, reason.Code)
				}
			}
			got, want := v.Want, v.Want
			got.Allowed, got.Denied = slices.Sorted(slices.Values(p.Allow)), denied
			got.Unresolved, got.Warnings = slices.Sorted(slices.Values(unresolved)), codes(warnings)
			slices.Sort(want.Unresolved)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, w := range warnings {
				if w.File != "subject.md" || w.Line < 4 || strings.TrimSpace(w.Message) == "" {
					t.Errorf("warning %+v does not say where it comes from", w)
				}
			}
		})
	}
}
