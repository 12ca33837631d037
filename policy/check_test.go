package policy_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/policy"
)

// rules builds a source from "tool pattern... action" triples.
func rules(t testing.TB, origin string, triples ...string) policy.Source {
	t.Helper()
	s := policy.Source{Origin: origin}
	for i := 0; i < len(triples); i += 3 {
		r, err := policy.NewRule(triples[i], triples[i+1], triples[i+2], i/3+1)
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func strictness(a policy.Action) int {
	return map[policy.Action]int{policy.Allow: 0, policy.Ask: 1, policy.Deny: 2}[a]
}

// Every combination of: listed or not, blocked or not, and the outcome of two
// sources of two rules each.
func TestTruthTable(t *testing.T) {
	outcomes := []policy.Action{"", policy.Allow, policy.Ask, policy.Deny}
	for _, listed := range []bool{false, true} {
		for _, blocked := range []bool{false, true} {
			for _, a1 := range outcomes {
				for _, a2 := range outcomes {
					for _, b1 := range outcomes {
						for _, b2 := range outcomes {
							p := policy.Policy{}
							if listed {
								p.Allow = []string{"other", "note"}
							}
							if blocked {
								p.Block = map[string]policy.Reason{"note": {Code: policy.DisallowedTools, Origin: "a.md:3"}}
							}
							source := func(first, last policy.Action) policy.Action {
								s := policy.Source{Origin: "s"}
								want := policy.Allow
								for _, a := range []policy.Action{first, last} {
									if a != "" {
										s.Rules = append(s.Rules, policy.Rule{Tool: "note", Pattern: "x*", Action: a})
										want = a
									}
								}
								p.Rules = append(p.Rules, s)
								return want
							}
							x, y := source(a1, a2), source(b1, b2)
							want, code := x, policy.Code("")
							if strictness(y) > strictness(x) {
								want = y
							}
							switch {
							case blocked:
								want, code = policy.Deny, policy.DisallowedTools
							case !listed:
								want, code = policy.Deny, policy.UnknownTool
							}
							name := fmt.Sprintf("listed %v blocked %v rules %q %q %q %q", listed, blocked, a1, a2, b1, b2)
							got := p.Check(policy.Call{Tool: "note", Kind: policy.SubjectText, Subjects: []string{"xyz"}})
							if got.Action != want || got.Code != code {
								t.Errorf("%s: got %+v, want %s %q", name, got, want, code)
							}
							if allows := p.Allows("note"); allows != (listed && !blocked) {
								t.Errorf("%s: Allows = %v", name, allows)
							}
						}
					}
				}
			}
		}
	}
}

func TestZeroPolicyAllowsNothing(t *testing.T) {
	var p policy.Policy
	for _, tool := range []string{"", "*", "read_file", "execute", "task"} {
		d := p.Check(policy.Call{Tool: tool})
		if d.Action != policy.Deny || d.Code != policy.UnknownTool || p.Allows(tool) {
			t.Errorf("Check(%q) = %+v, Allows = %v", tool, d, p.Allows(tool))
		}
	}
}

func TestBlockedReasons(t *testing.T) {
	codes := []policy.Code{
		policy.ExcludedTools, policy.MinimalFilesystem, policy.ReadOnly, policy.DisallowedTools, policy.TodoIsolation,
		policy.BuiltinSearch, policy.NoSpawn, policy.NotListed, policy.FrameworkOnly, policy.NotInherited, policy.UnknownTool, "later_code", "",
	}
	for _, code := range codes {
		p := policy.Policy{Allow: []string{"x"}, Block: map[string]policy.Reason{"x": {Code: code, Origin: "settings.json:4"}}}
		d := p.Check(policy.Call{Tool: "x"})
		if code == "" {
			code = policy.NotListed // a block is a block, whatever its reason
		}
		if d.Action != policy.Deny || d.Code != code || d.Origin != "settings.json:4" || !strings.HasPrefix(d.Reason, string(code)) {
			t.Errorf("%s: %+v", code, d)
		}
	}
}

func TestDecisionNamesWhatDecided(t *testing.T) {
	p := policy.Policy{Allow: []string{"execute", "read_file", "note"}, Rules: []policy.Source{
		rules(t, "user settings.json", "execute", "*", "ask", "execute", "git *", "allow"),
		rules(t, "reviewer.md", "execute", "git push *", "deny", "read_file", "secrets/**", "deny", "note", "*", "ask"),
		{Rules: []policy.Rule{{Tool: "note", Pattern: "x", Action: policy.Deny, Line: 7}}},
	}}
	tests := []struct {
		call policy.Call
		want policy.Decision
	}{
		{policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git status"}},
			policy.Decision{Action: policy.Allow, Origin: "user settings.json:2", Subject: "git status", Reason: `the rule execute "git *" allows "git status"`, Rule: p.Rules[0].Rules[1]}},
		{policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git status && git push origin"}},
			policy.Decision{Action: policy.Deny, Origin: "reviewer.md:1", Subject: "git status && git push origin", Reason: `the rule execute "git push *" denies "git push origin"`, Rule: p.Rules[1].Rules[0]}},
		{policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"ls"}},
			policy.Decision{Action: policy.Ask, Origin: "user settings.json:1", Subject: "ls", Reason: `the rule execute "*" asks about "ls"`, Rule: p.Rules[0].Rules[0]}},
		{policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git $x"}},
			policy.Decision{Action: policy.Ask, Origin: "reviewer.md:1", Subject: "git $x", Reason: `the rule execute "git push *" may be about "git $x"`, Rule: p.Rules[1].Rules[0]}},
		{policy.Call{Tool: "read_file", Kind: policy.SubjectPath, Subjects: []string{"a", "/secrets/key", "b"}},
			policy.Decision{Action: policy.Deny, Origin: "reviewer.md:2", Subject: "/secrets/key", Reason: `the rule read_file "secrets/**" denies "/secrets/key"`, Rule: p.Rules[1].Rules[1]}},
		{policy.Call{Tool: "read_file", Kind: policy.SubjectPath, Subjects: []string{"a"}},
			policy.Decision{Action: policy.Allow, Reason: "no rule matches"}},
		{policy.Call{Tool: "note"},
			policy.Decision{Action: policy.Ask, Origin: "reviewer.md:3", Reason: `the rule note "*" asks about this tool`, Rule: p.Rules[1].Rules[2]}},
		{policy.Call{Tool: "note", Subjects: []string{"x"}},
			policy.Decision{Action: policy.Deny, Origin: "line 7", Subject: "x", Reason: `the rule note "x" denies "x"`, Rule: p.Rules[2].Rules[0]}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, p.Check(tt.call)); diff != "" {
			t.Errorf("Check(%+v) (-want +got):\n%s", tt.call, diff)
		}
	}
}

func TestRulesForTools(t *testing.T) {
	tests := []struct {
		rule, tool string
		want       policy.Action
	}{
		{"note", "note", policy.Deny},
		{"note", "Note", policy.Allow},
		{"note", "notes", policy.Allow},
		{"*", "note", policy.Deny},
		{"mcp__github__*", "mcp__github__merge", policy.Deny},
		{"mcp__github__*", "mcp__gitlab__merge", policy.Allow},
		{"*_file", "read_file", policy.Deny},
		{"*_file", "read_files", policy.Allow},
		{"Bash", "execute", policy.Deny},
		{"Task", "task", policy.Deny},
		// "Agent" is a tool of its own here, so the rule is about that one.
		{"Agent", "task", policy.Allow},
		{"Agent", "Agent", policy.Deny},
	}
	for _, tt := range tests {
		p := policy.Policy{Allow: []string{"note", "Note", "notes", "mcp__github__merge", "mcp__gitlab__merge", "read_file", "read_files", "execute", "task", "Agent"},
			Rules: []policy.Source{{Rules: []policy.Rule{{Tool: tt.rule, Pattern: "*", Action: policy.Deny}}}}}
		if got := p.Check(policy.Call{Tool: tt.tool}).Action; got != tt.want {
			t.Errorf("rule for %q, call of %q: %s, want %s", tt.rule, tt.tool, got, tt.want)
		}
	}
}

// A rule that can't be read restricts, whatever got it past the parser.
func TestBrokenRulesNeverAllow(t *testing.T) {
	calls := []policy.Call{
		{Tool: "x", Kind: policy.SubjectPath, Subjects: []string{"a"}},
		{Tool: "x", Kind: policy.SubjectURL, Subjects: []string{"https://a.example/"}},
		{Tool: "x", Kind: policy.SubjectCommand, Subjects: []string{"ls"}},
		{Tool: "x", Kind: policy.SubjectText, Subjects: []string{"a"}},
	}
	for _, c := range calls {
		patterns := []string{"", "a\x00b"}
		switch c.Kind {
		case policy.SubjectPath:
			patterns = append(patterns, "[a", "{a", `a\`)
		case policy.SubjectURL:
			patterns = append(patterns, "https://u@a.example/", "https:///x", "https://a.example:port/", "https://bücher.example/*", "a b")
		}
		check := func(name string, want policy.Action, rr ...policy.Rule) {
			t.Helper()
			p := policy.Policy{Allow: []string{"x"}, Rules: []policy.Source{{Rules: rr}}}
			if got := p.Check(c).Action; got != want {
				t.Errorf("%s, %s: %s, want %s", c.Kind, name, got, want)
			}
		}
		for _, pattern := range patterns {
			for _, a := range []policy.Action{policy.Deny, policy.Ask} {
				check(fmt.Sprintf("%s %q", a, pattern), a, policy.Rule{Tool: "x", Pattern: pattern, Action: a})
			}
			check(fmt.Sprintf("allow %q", pattern), policy.Deny,
				policy.Rule{Tool: "x", Pattern: "*", Action: policy.Deny}, policy.Rule{Tool: "x", Pattern: pattern, Action: policy.Allow})
			check(fmt.Sprintf("deny before ask %q", pattern), policy.Deny,
				policy.Rule{Tool: "x", Pattern: "*", Action: policy.Deny}, policy.Rule{Tool: "x", Pattern: pattern, Action: policy.Ask})
		}
		for _, a := range []policy.Action{"", "Allow", "permit"} {
			check(fmt.Sprintf("action %q", a), policy.Deny, policy.Rule{Tool: "x", Pattern: "*", Action: a})
		}
		for _, tool := range []string{"", "[x", "x(a)", "{x,y}"} {
			check(fmt.Sprintf("tool %q", tool), policy.Deny, policy.Rule{Tool: tool, Pattern: "*", Action: policy.Deny})
			check(fmt.Sprintf("allow tool %q", tool), policy.Deny,
				policy.Rule{Tool: "x", Pattern: "*", Action: policy.Deny}, policy.Rule{Tool: tool, Pattern: "*", Action: policy.Allow})
		}
	}
}

func TestNoSubject(t *testing.T) {
	p := policy.Policy{Allow: []string{"x"}, Rules: []policy.Source{rules(t, "s", "x", "*", "ask", "x", "a*", "deny", "x", "b*", "allow")}}
	if d := p.Check(policy.Call{Tool: "x", Kind: policy.SubjectText}); d.Action != policy.Ask {
		t.Errorf("only the rule for every call is about a call without subject: %+v", d)
	}
}

func TestWith(t *testing.T) {
	base := policy.Policy{Allow: []string{"execute"}, Rules: make([]policy.Source, 0, 4)}
	base.Rules = append(base.Rules, rules(t, "user", "execute", "*", "allow"))
	before, _ := json.Marshal(base)
	deny := rules(t, "parent", "execute", "rm *", "deny")
	ask := rules(t, "call", "execute", "*", "ask")
	narrow, other := base.With(deny), base.With(ask, policy.Source{Origin: "empty"})
	deny.Rules[0].Action = policy.Allow // the caller's copy

	call := policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"rm x"}}
	for _, tt := range []struct {
		name string
		p    policy.Policy
		want policy.Action
	}{{"base", base, policy.Allow}, {"narrow", narrow, policy.Deny}, {"other", other, policy.Ask}, {"both", other.With(rules(t, "p", "execute", "rm *", "deny")), policy.Deny}} {
		if got := tt.p.Check(call).Action; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if after, _ := json.Marshal(base); string(after) != string(before) {
		t.Errorf("With changed its receiver: %s", after)
	}
	if n := len(other.Rules); n != 2 {
		t.Errorf("a source without rules was kept: %d sources", n)
	}
}

// OC#26514, OC#26700: a child can't get around its parent, and an unrelated
// denial of the parent does not break what the child may do.
func TestAncestors(t *testing.T) {
	child := policy.Policy{Allow: []string{"edit_file", "execute"}, Rules: []policy.Source{
		rules(t, "child.md", "edit_file", "*", "allow", "execute", "*", "deny", "execute", "go test *", "allow")}}
	got := child.With(rules(t, "parent.md", "edit_file", "*", "deny"))
	edit := policy.Call{Tool: "edit_file", Kind: policy.SubjectPath, Subjects: []string{"a.go"}}
	test := policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"go test ./..."}}
	if d := got.Check(edit); d.Action != policy.Deny || d.Origin != "parent.md:1" {
		t.Errorf("edit: %+v", d)
	}
	if d := got.Check(test); d.Action != policy.Allow {
		t.Errorf("go test: %+v", d)
	}
}

func TestPolicyIsPlainData(t *testing.T) {
	p := policy.Policy{Allow: []string{"a"}, Block: map[string]policy.Reason{"b": {Code: policy.NoSpawn, Origin: "o"}},
		Rules: []policy.Source{{Origin: "s", Rules: []policy.Rule{{Tool: "a", Pattern: "*", Action: policy.Ask, Line: 2}}}}}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back policy.Policy
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("round trip: %v, %+v", err, back)
	}
}
