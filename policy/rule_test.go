package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/policy"
)

func TestParseJSON(t *testing.T) {
	tests := []struct {
		in   string
		want []policy.Rule
	}{
		{`null`, nil},
		{`{}`, nil},
		{`"ask"`, []policy.Rule{{Tool: "*", Pattern: "*", Action: "ask", Line: 1}}},
		{`{"*": "deny"}`, []policy.Rule{{Tool: "*", Pattern: "*", Action: "deny", Line: 1}}},
		{`{"execute": {"git *": "allow", "*": "ask"}, "edit_file": {"docs/**": "allow", "*": "deny"}, "fetch_url": {"https://pkg.go.dev/*": "allow"}}`, []policy.Rule{
			{Tool: "execute", Pattern: "git *", Action: "allow", Line: 1}, {Tool: "execute", Pattern: "*", Action: "ask", Line: 1},
			{Tool: "edit_file", Pattern: "docs/**", Action: "allow", Line: 1}, {Tool: "edit_file", Pattern: "*", Action: "deny", Line: 1},
			{Tool: "fetch_url", Pattern: "https://pkg.go.dev/*", Action: "allow", Line: 1},
		}},
		// Neither order nor repetition is lost.
		{"{\n \"z\": \"deny\",\n \"a\": {\n  \"2\": \"ask\",\n  \"1\": \"deny\",\n  \"2\": \"allow\"\n },\n \"z\": \"allow\"\n}\n", []policy.Rule{
			{Tool: "z", Pattern: "*", Action: "deny", Line: 2},
			{Tool: "a", Pattern: "2", Action: "ask", Line: 4}, {Tool: "a", Pattern: "1", Action: "deny", Line: 5}, {Tool: "a", Pattern: "2", Action: "allow", Line: 6},
			{Tool: "z", Pattern: "*", Action: "allow", Line: 8},
		}},
		{`{"mcp__github__*": "ask", "Bash": {"npm run: *": "deny"}}`, []policy.Rule{
			{Tool: "mcp__github__*", Pattern: "*", Action: "ask", Line: 1}, {Tool: "Bash", Pattern: "npm run: *", Action: "deny", Line: 1}}},
		{`{"execute": {"a | b": "allow"}}`, []policy.Rule{{Tool: "execute", Pattern: "a | b", Action: "allow", Line: 1}}},
	}
	for _, tt := range tests {
		got, err := policy.ParseJSON([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestParseJSONErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{``, `line 1, column 1: permissions are not valid JSON: unexpected end`},
		{`{`, `line 1, column 2: permissions are not valid JSON: unexpected end`},
		{`{"a": "ask"`, `line 1, column 12: permissions are not valid JSON: unexpected end`},
		{`{"a": "ask"} x`, `line 1, column 14: unexpected text after the permissions`},
		{"{\n  \"a\": alow\n}", `line 2, column 8: permissions are not valid JSON: invalid character 'a' looking for`},
		{`"alow"`, `line 1, column 1: permission "alow": want allow, ask or deny (did you mean allow?)`},
		{"{\n  \"a\": \"alow\"\n}", `line 2, column 8: permission "alow": want allow, ask or deny (did you mean allow?)`},
		{"{\n  \"a\": {\"ä\": \"Deny\"}\n}", `line 2, column 14: permission "Deny": want allow, ask or deny (did you mean deny?)`},
		{`{"a": "dney"}`, `(did you mean deny?)`}, {`{"a": "as"}`, `(did you mean ask?)`}, {`{"a": "block"}`, `(did you mean deny?)`}, {`{"a": "prompt"}`, `(did you mean ask?)`},
		{`{"a": "sometimes"}`, `line 1, column 7: permission "sometimes": want allow, ask or deny`},
		{`{"a": ""}`, `permission "": want allow, ask or deny`},
		{`{"a": true}`, `line 1, column 7: permissions for "a": found true, want allow, ask or deny, or an object from patterns to actions (did you mean allow?)`},
		{`{"a": null}`, `found null`}, {`{"a": 1}`, `found 1`}, {`{"a": {"b": null}}`, `line 1, column 13: permissions for "a", pattern "b": found null`}, {`{"a": {"b": {"c": "ask"}}}`, `found an object`},
		{`{"a": ["b"]}`, `line 1, column 7: permissions for "a": found a list`},
		{`{"deny": ["Bash(rm:*)"]}`, `group rules by tool`},
		{`[]`, `line 1, column 1: permissions: found a list, want an object or one action`}, {`7`, `found 7`},
		{`{"Bash(git:*)": "allow"}`, `write {"Bash": {"git *": "allow"}}`},
		{`{"mcp__[a": "deny"}`, `permissions for tool "mcp__[a"`}, {`{"": "deny"}`, `permissions for tool ""`}, {`{"{a,b}": "deny"}`, `want a tool's name`}, {`{"a b": {}}`, `want a tool's name`},
		{`{"read_file": {"[a": "deny"}}`, `line 1, column 22: permissions for read_file: pattern "[a" is not a valid glob`}, {`{"Read": {"{a": "allow"}}`, `is not a valid glob`},
		{`{"fetch_url": {"https://": "deny"}}`, `is not a URL pattern`}, {`{"WebFetch": {"https://u@h/": "deny"}}`, `is not a URL pattern`},
		{`{"execute": {"curl * | sh": "deny"}}`, `is about more than one simple command`}, {`{"execute": {"a && b": "ask"}}`, `is about more than one simple command`},
		{`{"x": {"": "deny"}}`, `is empty`}, {`{"x": {"\u0000": "deny"}}`, `holds control characters`},
	}
	for _, tt := range tests {
		got, err := policy.ParseJSON([]byte(tt.in))
		if err == nil {
			t.Errorf("%s: no error, rules %v", tt.in, got)
			continue
		}
		var syntax *policy.SyntaxError
		if !errors.As(err, &syntax) || got != nil {
			t.Errorf("%s: %T %v, rules %v", tt.in, err, err, got)
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.in, err, tt.want)
		}
	}
}

func TestNewRule(t *testing.T) {
	r, err := policy.NewRule(" execute ", " git * ", "allow", 7)
	if err != nil || r != (policy.Rule{Tool: "execute", Pattern: "git *", Action: policy.Allow, Line: 7}) {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = policy.NewRule("execute", "x", "dény", 3)
	var syntax *policy.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 3 || syntax.Column != 0 || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("%v", err)
	}
	if _, err = policy.NewRule("execute", "x", "nope", 0); err == nil || strings.HasPrefix(err.Error(), "line") {
		t.Errorf("%v", err)
	}
}

func TestParseSpecifier(t *testing.T) {
	tests := []struct {
		in, tool, pattern string
		ok                bool
	}{
		{"Bash(git:*)", "Bash", "git *", true},
		{"Bash(git commit:*)", "Bash", "git commit *", true},
		{"Bash(npm run build)", "Bash", "npm run build", true},
		{"Bash(npm audit*)", "Bash", "npm audit*", true},
		{"Bash(*)", "Bash", "*", true}, {"Bash()", "Bash", "*", true}, {"Bash(:*)", "Bash", "*", true},
		{" Bash ( git:* ) ", "Bash", "git *", true},
		{`Bash("git push")`, "Bash", "git push", true},
		{`Bash(echo "(x)")`, "Bash", `echo "(x)"`, true},
		{"Read(docs/**)", "Read", "docs/**", true},
		{"WebFetch(domain:example.com)", "WebFetch", "*://example.com/*", true},
		{"mcp__db__*(x)", "mcp__db__*", "x", true},
		{"Bash", "", "", false}, {"Bash(git", "", "", false}, {"(git)", "", "", false}, {"Bash)(", "", "", false}, {"", "", "", false}, {"a b(c)", "", "", false}, {"Bash(a) x", "", "", false},
	}
	for _, tt := range tests {
		tool, pattern, ok := policy.ParseSpecifier(tt.in)
		if tool != tt.tool || pattern != tt.pattern || ok != tt.ok {
			t.Errorf("%q: %q %q %v, want %q %q %v", tt.in, tool, pattern, ok, tt.tool, tt.pattern, tt.ok)
		}
	}
	for in, want := range map[string][]string{
		"Bash(git add:*, git commit:*)": {"git add *", "git commit *"},
		"Bash(git:*)":                   {"git *"},
		"Bash(echo a, b)":               {"echo a, b"},
		"Bash(echo a, b:*)":             {"echo a, b *"},
		"Bash":                          nil,
	} {
		_, got, ok := policy.ParseSpecifiers(in)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != nil) {
			t.Errorf("%q: %v\n%s", in, ok, diff)
		}
	}
}

func TestSplitList(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                    nil,
		" , ,":                                nil,
		"Read":                                {"Read"},
		"Read, Grep,Glob ,":                   {"Read", "Grep", "Glob"},
		"Bash(git add:*, git commit:*), Read": {"Bash(git add:*, git commit:*)", "Read"},
		"Bash(a(b, c), d), Read":              {"Bash(a(b, c), d)", "Read"},
		`"Read", 'Grep', "a, b"`:              {"Read", "Grep", "a, b"},
		"`Read`, Grep":                        {"Read", "Grep"},
		"[Read, Grep]":                        {"Read", "Grep"},
		"mcp__x__{a,b}, Read":                 {"mcp__x__{a,b}", "Read"},
		`Bash(echo ")", x), Read`:             {`Bash(echo ")", x)`, "Read"},
		`Bash("git x"), Read`:                 {`Bash("git x")`, "Read"},
		// What is never closed protects nothing.
		"Bash(rm, Write":  {"Bash(rm", "Write"},
		`"Read, Write`:    {"Read", "Write"},
		"Read\", Write":   {"Read", "Write"},
		"don't, won't":    {"don't", "won't"},
		"Read，Grep":       {"Read，Grep"},
		"Read,\n  Grep\n": {"Read", "Grep"},
	} {
		if diff := cmp.Diff(want, policy.SplitList(in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func TestCanonical(t *testing.T) {
	// The table of names in its written form.
	const table = `Read→read_file · Write→write_file · Edit, MultiEdit, replace→edit_file · Bash, bash, shell, run_shell_command, execute_bash→execute · Grep, grep_search, search_code→search_files ·
Glob, LS, list_files, list_directory→find_files · WebFetch, webfetch, web_fetch→fetch_url · WebSearch, websearch, google_web_search→web_search ·
TodoWrite, todowrite→write_todos · Task, Agent→task · Skill→skill`
	n := 0
	for _, entry := range strings.Split(table, "·") {
		names, native, _ := strings.Cut(strings.TrimSpace(entry), "→")
		for _, alias := range strings.Split(names, ", ") {
			n++
			if got := policy.Canonical(alias, nil); got != native {
				t.Errorf("Canonical(%q) = %q, want %q", alias, got, native)
			}
			if got := policy.Canonical(alias, func(s string) bool { return s == alias }); got != alias {
				t.Errorf("a native %q became %q", alias, got)
			}
			if got := policy.Canonical(native, nil); got != native {
				t.Errorf("Canonical(%q) = %q", native, got)
			}
		}
	}
	if n != 28 {
		t.Errorf("%d aliases", n)
	}
	for _, name := range []string{"read", "READ", "Read_File", "glob", "grep", "ls", "launch_rocket", "", "mcp__db__*"} {
		if got := policy.Canonical(name, nil); got != name {
			t.Errorf("Canonical(%q) = %q", name, got)
		}
	}
}

func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "anything", true}, {"*", "", true}, {"read_file", "read_file", true}, {"read_file", "Read_File", false}, {"mcp__github__*", "mcp__github__list", true}, {"mcp__github__*", "mcp__github__", true},
		{"mcp__github__*", "mcp__git__list", false}, {"*_file", "read_file", true}, {"*_file", "read_files", false}, {"m*_*x", "mcp__ax", true}, {"", "", true}, {"", "a", false}, {"[a]", "a", false}, {"a?", "ab", false}, {"mcp__*", "mcp__a/b", true},
	} {
		if got := policy.MatchName(tt.pattern, tt.name); got != tt.want {
			t.Errorf("MatchName(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestOverridden(t *testing.T) {
	for in, want := range map[string][]int{
		`{"execute": {"git *": "allow", "*": "ask"}}`:                    {0},
		`{"execute": {"*": "ask", "git *": "allow"}}`:                    nil,
		`{"execute": {"git *": "allow", "git *": "deny"}}`:               {0},
		`{"execute": {"git *": "allow"}, "read_file": "deny"}`:           nil,
		`{"execute": {"git *": "allow"}, "*": "deny"}`:                   {0},
		`{"mcp__a__x": "deny", "b": "ask", "mcp__a__*": "allow"}`:        {0},
		`{"mcp__a__*": "deny", "mcp__a__x": "allow"}`:                    nil,
		`{"Bash": {"rm *": "deny"}, "execute": "allow"}`:                 {0},
		`{"execute": {"git *": "deny", "*": "deny"}}`:                    nil, // it says the same
		`{"a": {"x": "deny", "y": "ask", "*": "allow", "z": "deny"}}`:    {0, 1},
		`{"a": {"x": "deny"}, "b": {"x": "allow"}, "c": {"*": "allow"}}`: nil,
	} {
		rules, err := policy.ParseJSON([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, policy.Overridden(rules)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}
