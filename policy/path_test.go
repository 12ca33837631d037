package policy_test

import (
	"testing"

	"github.com/synapse-agents/synapse/policy"
)

func TestPaths(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"*", "a", true}, {"*", "a/b/c", true}, {"*", "", true}, {"*", "../x", true},
		{"**", "a/b", true}, {"/", "a/b", true}, {"/**", "a/b", true}, {"./", "a", true}, {"**", ".", true},
		{"docs/**", "docs/a", true}, {"docs/**", "docs/a/b", true}, {"docs/**", "docs", true}, {"docs/**", "docs/", true},
		{"docs/**", "docs2/a", false}, {"docs/**", "a/docs/b", false}, {"docs/**", "", false}, {"docs/**", ".", false}, {"docs/**", "/", false},
		{"/docs/**", "docs/a", true}, {"./docs/**", "docs/a", true}, {".//docs/**", "docs/a", true}, {"docs/", "docs/a", true}, {"docs/", "docs", true}, {"docs", "docs/a", false},
		{"docs/**", "/docs/a", true}, {"docs/**", "./docs/a", true}, {"docs/**", "//docs//a", true}, {"docs/**", "x/../docs/a", true}, {"docs/**", "docs/./a", true},
		{"docs/**", "docs/../secret", false}, {"docs/**", "docs/../../docs/a", true},
		{"secrets/**", "docs/../secrets/k", true}, {"secrets/**", "/secrets/k", true}, {"secrets/**", "./secrets//k", true}, {"secrets/**", "a/b/../../secrets/./k", true},
		{"secrets/**", "/../secrets/k", true}, {"secrets/**", "../secrets/k", true}, {"secrets/**", "../../x/../secrets/k", true}, {"../secrets/**", "../secrets/k", true},
		{"secrets/**", "Secrets/k", false}, {"secrets/**", `secrets\k`, false}, {"secrets/**", "secrets /k", false},
		// DA#4882: a search that names no path is not about the secrets alone.
		{"secrets/**", "", false}, {"secrets/**", ".", false}, {".", "", true}, {"/.", "", true},
		{"*.go", "a.go", true}, {"*.go", "a/b.go", false}, {"**/*.go", "a/b.go", true}, {"**/*.go", "b.go", true},
		{"**/.env", ".env", true}, {"**/.env", "a/.env", true}, {"**/.env*", "a/.env.local", true},
		{"{a,b}/*", "a/x", true}, {"{a,b}/*", "c/x", false}, {"[ab].txt", "a.txt", true}, {`\[a\]`, "[a]", true}, {"a?c", "abc", true}, {"a?c", "a/c", false},
		{"日本/**", "日本/語", true}, {"a b/**", "a b/c", true},
	}
	for _, tt := range tests {
		for _, a := range []policy.Action{policy.Deny, policy.Ask} {
			p := policy.Policy{Allow: []string{"read_file"}, Rules: []policy.Source{rules(t, "s", "read_file", tt.pattern, string(a))}}
			want := policy.Allow
			if tt.want {
				want = a
			}
			if d := p.Check(policy.Call{Tool: "read_file", Kind: policy.SubjectPath, Subjects: []string{tt.path}}); d.Action != want {
				t.Errorf("%s %q, path %q: %s, want %s", a, tt.pattern, tt.path, d.Action, want)
			}
		}
	}
}

// An allowance needs every reading of a path to fit; a path that tries to leave
// the workspace has two.
func TestAllowedPaths(t *testing.T) {
	p := policy.Policy{Allow: []string{"edit_file"}, Rules: []policy.Source{rules(t, "s", "edit_file", "*", "deny", "edit_file", "docs/**", "allow")}}
	for path, want := range map[string]policy.Action{
		"docs/a":              policy.Allow,
		"/docs/a":             policy.Allow,
		"docs":                policy.Allow,
		"a/../docs/x":         policy.Allow,
		"docs/../a":           policy.Deny,
		"../docs/a":           policy.Deny,
		"docs/../../docs/a":   policy.Deny,
		"/../docs/a":          policy.Deny,
		"docs/../../../etc/x": policy.Deny,
		"":                    policy.Deny,
		"docsx":               policy.Deny,
	} {
		if d := p.Check(policy.Call{Tool: "edit_file", Kind: policy.SubjectPath, Subjects: []string{path}}); d.Action != want {
			t.Errorf("%q: %s, want %s", path, d.Action, want)
		}
	}
}

func TestNoPathIsTheRoot(t *testing.T) {
	call := policy.Call{Tool: "search_files", Kind: policy.SubjectPath}
	for _, tt := range []struct {
		pattern string
		want    policy.Action
	}{{"secrets/**", policy.Allow}, {"*", policy.Deny}, {"**", policy.Deny}, {".", policy.Deny}} {
		p := policy.Policy{Allow: []string{"search_files"}, Rules: []policy.Source{rules(t, "s", "search_files", tt.pattern, "deny")}}
		if d := p.Check(call); d.Action != tt.want {
			t.Errorf("%q: %+v, want %s", tt.pattern, d, tt.want)
		}
	}
}

func TestSeveralSubjects(t *testing.T) {
	p := policy.Policy{Allow: []string{"patch"}, Rules: []policy.Source{rules(t, "s", "patch", "ask/**", "ask", "patch", "deny/**", "deny")}}
	for _, tt := range []struct {
		paths []string
		want  policy.Action
		who   string
	}{
		{[]string{"a", "b"}, policy.Allow, ""},
		{[]string{"a", "ask/x"}, policy.Ask, "ask/x"},
		{[]string{"deny/x", "ask/x", "a"}, policy.Deny, "deny/x"},
		{[]string{"ask/x", "ask/y"}, policy.Ask, "ask/x"},
	} {
		d := p.Check(policy.Call{Tool: "patch", Kind: policy.SubjectPath, Subjects: tt.paths})
		if d.Action != tt.want || d.Subject != tt.who {
			t.Errorf("%q: %+v, want %s by %q", tt.paths, d, tt.want, tt.who)
		}
	}
}
