package compile_test

import (
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/policy"
)

// TestCallersBind judges real calls of sub-agents by what stands above them.
func TestCallersBind(t *testing.T) {
	const team = `{"max_depth": 2, "agents": [
	  {"name": "reader-lead", "can_spawn_subagent": true, "disallowed_tools": ["Write", "Edit", "patch"],
	   "permissions": [{"tool": "execute", "pattern": "*", "action": "ask"}, {"tool": "execute", "pattern": "git *", "action": "allow"}]},
	  {"name": "deny-lead", "can_spawn_subagent": true, "permissions": [{"tool": "edit_file", "pattern": "*", "action": "deny"}]},
	  {"name": "list-lead", "can_spawn_subagent": true, "tools": ["read_file", "task"]},
	  {"name": "web-lead", "can_spawn_subagent": true, "disallowed_tools": ["web_search"], "permissions": [{"tool": "fetch_url", "pattern": "*", "action": "deny"}]},
	  {"name": "coder", "tools": ["read_file", "edit_file", "execute"],
	   "permissions": [{"tool": "execute", "pattern": "*", "action": "allow"}, {"tool": "execute", "pattern": "git push *", "action": "deny"}]}
	]}`
	edit := policy.Call{Tool: "edit_file", Kind: policy.SubjectPath, Subjects: []string{"a.go"}}
	run := func(command string) policy.Call {
		return policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{command}}
	}
	tests := []struct {
		name   string
		main   string
		caller string // "" is the main agent
		call   policy.Call
		want   policy.Action
		code   policy.Code
	}{
		{"the main agent passes nothing on", "", "", edit, policy.Allow, ""},
		{"the sub-agent of a read-only caller can't edit", "", "reader-lead", edit, policy.Deny, policy.DisallowedTools},
		{"nor where the caller says so by a rule", "", "deny-lead", edit, policy.Deny, policy.DisallowedTools},
		{"a caller's list of tools is its own affair", "", "list-lead", edit, policy.Allow, ""},
		{"a caller's denial of other tools breaks nothing", "", "web-lead", edit, policy.Allow, ""},
		{"a caller's question is asked for its sub-agents", "", "reader-lead", run("make"), policy.Ask, ""},
		{"unless its rules allow the call", "", "reader-lead", run("git status"), policy.Allow, ""},
		{"what the caller allows the sub-agent may still deny", "", "reader-lead", run("git push origin"), policy.Deny, ""},
		{"a sub-agent's own allowance holds elsewhere", "", "web-lead", run("make"), policy.Allow, ""},
		{"a definition as the main agent is a caller too", "reader-lead", "", edit, policy.Deny, policy.DisallowedTools},
		{"and stays one above another caller", "deny-lead", "web-lead", edit, policy.Deny, policy.DisallowedTools},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := readScenario(t, []byte(team))
			s.Main = tt.main
			g, _, err := compile.Task(s.input(t))
			if err != nil {
				t.Fatal(err)
			}
			from := g.Entry
			if tt.caller != "" {
				from = calls(t, g, from, tt.caller).ID
			}
			got := calls(t, g, from, "coder").Policy.Check(tt.call)
			if got.Action != tt.want || got.Code != tt.code {
				t.Errorf("got %+v, want %s %s", got, tt.want, tt.code)
			}
			if got.Action != policy.Allow && got.Origin == "" {
				t.Errorf("the refusal does not say where it was set: %+v", got)
			}
		})
	}
}

// calls returns the spec that a spec means by a name.
func calls(t *testing.T, g *synapse.Graph, from, name string) *synapse.Spec {
	t.Helper()
	for _, e := range g.Edges {
		if e.From != from || e.Names[0] != name {
			continue
		}
		for i := range g.Specs {
			if g.Specs[i].ID == e.To {
				return &g.Specs[i]
			}
		}
	}
	t.Fatalf("%s can't call %q", from, name)
	return nil
}

// TestForgedCalls checks that what is not offered is refused when it is called
// all the same, for every agent of every vector.
func TestForgedCalls(t *testing.T) {
	for _, v := range policyVectors(t) {
		p, _, _ := compile.Effective(v.input())
		for tool, want := range v.Want.Denied {
			if got := p.Check(policy.Call{Tool: tool}); got.Action != policy.Deny || string(got.Code) != want {
				t.Errorf("%s: a call of %s comes to %+v, want denied: %s", v.ID, tool, got, want)
			}
		}
		for _, tool := range v.Want.Allowed {
			if got := p.Check(policy.Call{Tool: tool}); got.Action != policy.Allow {
				t.Errorf("%s: a call of %s comes to %+v, want allowed", v.ID, tool, got)
			}
		}
	}
}
