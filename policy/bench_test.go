package policy_test

import (
	"testing"

	"github.com/synapse-agents/synapse/policy"
)

func BenchmarkCheck(b *testing.B) {
	plain := policy.Policy{Allow: []string{"read_file", "search_files", "execute"}, Block: map[string]policy.Reason{"task": {Code: policy.NoSpawn}}}
	ruled := plain.With(
		rules(b, "user", "read_file", "secrets/**", "deny", "execute", "*", "ask", "execute", "git *", "allow", "execute", "go *", "allow"),
		rules(b, "project", "execute", "git push *", "deny"))
	for _, bm := range []struct {
		name string
		p    policy.Policy
		call policy.Call
	}{
		{"none", plain, policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git status"}}},
		{"other", ruled, policy.Call{Tool: "search_files", Kind: policy.SubjectPath, Subjects: []string{"docs/a.md"}}},
		{"path", ruled, policy.Call{Tool: "read_file", Kind: policy.SubjectPath, Subjects: []string{"docs/a.md"}}},
		{"command", ruled, policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git status"}}},
		{"pipeline", ruled, policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"cd a && go test ./... 2>&1 | tail -n 20"}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bm.p.Check(bm.call)
			}
		})
	}
}

func TestCheckWithoutRulesAllocatesNothing(t *testing.T) {
	p := policy.Policy{Allow: []string{"read_file", "execute"}, Block: map[string]policy.Reason{"task": {Code: policy.NoSpawn}}}
	call := policy.Call{Tool: "execute", Kind: policy.SubjectCommand, Subjects: []string{"git status"}}
	if n := testing.AllocsPerRun(100, func() { p.Check(call) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
