package agents_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

// lint parses files of the given headers and returns "name line code" of what
// is odd about them.
func lint(t *testing.T, origin string, opt agents.LintOptions, headers ...string) []string {
	t.Helper()
	var defs []*agents.Definition
	for i, h := range headers {
		file := fmt.Sprintf("%d.md", i)
		d, diags := agents.Parse(file, []byte("---\n"+h+"\n---\nbody\n"), agents.ParseOptions{Origin: origin})
		if d.Broken {
			t.Fatal(diags)
		}
		defs = append(defs, d)
	}
	var out []string
	for _, d := range agents.Lint(defs, opt) {
		if d.Message == "" || d.File == "" || d.Line == 0 {
			t.Errorf("incomplete: %#v", d)
		}
		out = append(out, fmt.Sprintf("%s:%d %s", d.File, d.Line, d.Code))
	}
	return out
}

func TestLint(t *testing.T) {
	long := strings.Repeat("Use it for the parser, the lexer and the printer of queries. ", 20)
	for _, tt := range []struct {
		name    string
		origin  string
		opt     agents.LintOptions
		headers []string
		want    []string
	}{
		{name: "nothing odd", headers: []string{
			"name: reviewer\ndescription: Reviews a change for faults before it is committed.\ntools: [read_file, Bash, 'mcp__github__*']\ndisallowed_tools: [write_file, Bash]",
			"name: tester\ndescription: Runs the tests and explains each failure.",
		}, want: []string{"0.md:5 denial-unneeded"}},
		{name: "vague", headers: []string{
			"name: go-expert\ndescription: A Go expert agent", "name: x\ndescription: helper", "name: 测试\ndescription: 运行测试并解释失败的原因",
			"name: main\nmode: primary\ndescription: main", "name: off\nenabled: false\ndescription: off",
		}, want: []string{"0.md:3 description-vague", "1.md:3 description-vague"}},
		{name: "collision", headers: []string{
			"name: a\ndescription: Reviews Go code for faults, style and missing tests.",
			"name: b\ndescription: Reviews Go code for style, faults, and tests missing!",
			"name: c\ndescription: Reviews Python code for speed.",
			"name: d\ndescription: 审查代码中的错误、风格和缺少的测试", "name: e\ndescription: 审查代码中的错误、风格和缺少的测试。",
		}, want: []string{"1.md:3 description-collision", "4.md:3 description-collision"}},
		{name: "cost of one", headers: []string{"name: a\ndescription: " + long}, want: []string{"0.md:3 description-cost"}},
		{name: "cost of all", opt: agents.LintOptions{Budget: 20}, headers: []string{
			"name: a\ndescription: Reviews Go code for faults and style.", "name: b\ndescription: Runs every test and explains each of the failures at length.",
		}, want: []string{"1.md:3 description-cost"}},
		{name: "unknown tools", opt: agents.LintOptions{Tools: []string{"deploy"}}, headers: []string{
			"name: a\ndescription: Reviews Go code for faults.\ntools: [Raed, deploy, mcp__x__y, '*_file', 'zzz*']\npermissions: {exceute: deny}",
		}, want: []string{"0.md:4 tool-unknown", "0.md:4 tool-unknown", "0.md:5 tool-unknown"}},
		{name: "a product's own tools", origin: "gemini", headers: []string{
			"name: a\ndescription: Reviews Go code for faults.\ntools: [read_file, ask_user, Raed]",
		}, want: []string{"0.md:4 tool-unknown"}},
		{name: "overridden", headers: []string{
			"name: a\ndescription: Reviews Go code for faults.\npermissions:\n  execute:\n    \"git *\": allow\n    \"*\": ask",
		}, want: []string{"0.md:6 rule-overridden"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lint(t, tt.origin, tt.opt, tt.headers...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestElsewhere: what each product does with a file of another's.
func TestElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name, origin, text string
		want               map[string]agents.Outcome
	}{
		{"a plain one", "claude", "---\nname: x\ndescription: d\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Loads, "opencode": agents.Loads, "gemini": agents.Loads, "copilot": agents.Loads, "cursor": agents.Loads,
			"codex": agents.ReadsNone, "qwen": agents.Loads, "yome": agents.Loads,
		}},
		{"a comma list", "claude", "---\nname: x\ndescription: d\ntools: Read, Grep\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Loads, "opencode": agents.Refuses, "gemini": agents.Refuses, "copilot": agents.Loads, "cursor": agents.LoadsAll,
			"codex": agents.ReadsNone, "qwen": agents.Loads, "yome": agents.Loads,
		}},
		{"denials alone", "claude", "---\nname: x\ndescription: d\ndisallowedTools: [Write]\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Loads, "opencode": agents.LoadsAll, "gemini": agents.Refuses, "copilot": agents.LoadsAll, "cursor": agents.LoadsAll,
			"codex": agents.ReadsNone, "qwen": agents.Loads, "yome": agents.Loads,
		}},
		{"a map", "opencode", "---\ndescription: d\ntools: {write: false}\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Refuses, "opencode": agents.Loads, "gemini": agents.Refuses, "copilot": agents.LoadsAll, "cursor": agents.LoadsAll,
			"codex": agents.ReadsNone, "qwen": agents.Refuses, "yome": agents.Refuses,
		}},
		{"an empty list", "gemini", "---\nname: x\ndescription: d\ntools: []\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Loads, "opencode": agents.Refuses, "gemini": agents.Loads, "copilot": agents.Loads, "cursor": agents.LoadsAll,
			"codex": agents.ReadsNone, "qwen": agents.LoadsAll, "yome": agents.Loads,
		}},
		{"not valid YAML", "claude", "---\nname: x\ndescription: Use it: often\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Refuses, "opencode": agents.Refuses, "gemini": agents.Refuses, "copilot": agents.Refuses, "cursor": agents.Loads,
			"codex": agents.ReadsNone, "qwen": agents.Refuses, "yome": agents.Loads,
		}},
		{"ours", agents.Native, "---\nname: Code Reviewer\ndescription: d\ntools: [read_file]\npermissions: {execute: deny}\n---\nbody\n", map[string]agents.Outcome{
			"claude": agents.Loads, "opencode": agents.Refuses, "gemini": agents.Refuses, "copilot": agents.Loads, "cursor": agents.LoadsAll,
			"codex": agents.ReadsNone, "qwen": agents.Loads, "yome": agents.Loads,
		}},
		{"no frontmatter", agents.Native, "# Title\n", map[string]agents.Outcome{
			"claude": agents.Refuses, "opencode": agents.Refuses, "gemini": agents.Refuses, "copilot": agents.Refuses, "cursor": agents.Refuses,
			"codex": agents.ReadsNone, "qwen": agents.Refuses, "yome": agents.Refuses,
		}},
		{"TOML", "codex", "name = 'x'\ndescription = 'd'\ndeveloper_instructions = 'p'\n", map[string]agents.Outcome{
			"claude": agents.ReadsNone, "opencode": agents.ReadsNone, "gemini": agents.ReadsNone, "copilot": agents.ReadsNone, "cursor": agents.ReadsNone,
			"codex": agents.Loads, "qwen": agents.ReadsNone, "yome": agents.ReadsNone,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]agents.Outcome{}
			for _, f := range agents.Elsewhere("x.md", []byte(tt.text), tt.origin) {
				got[f.Product] = f.Outcome
				if f.Outcome != agents.Loads && f.Why == "" {
					t.Errorf("%s %s: no reason is given", f.Product, f.Outcome)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := 0
			for product, outcome := range tt.want {
				if outcome == agents.LoadsAll || outcome == agents.Refuses && product != tt.origin {
					said++
				}
			}
			if diags := agents.LintFile("x.md", []byte(tt.text), tt.origin); len(diags) != said {
				t.Errorf("%d diagnostics, want %d: %v", len(diags), said, diags)
			}
		})
	}
}

func TestFix(t *testing.T) {
	for _, tt := range []struct {
		name, origin, before, after string
		codes                       []string
	}{
		{"quotes", "claude", "name: x\ndescription: Use it: it's good # really", "name: x\ndescription: 'Use it: it''s good # really'", []string{"yaml-lenient"}},
		{"no quotes needed", "claude", "name: x # short\ndescription: Use it", "name: x # short\ndescription: Use it", nil},
		{"a value that goes on is left", "claude", "name: x\ndescription: Use it: so\n  and so\nmodel: y", "name: x\ndescription: Use it: so\n  and so\nmodel: y", nil},
		{"spellings", "claude", "Name: x\ndescription: d\ndisallowed-tools : Write", "name: x\ndescription: d\ndisallowedTools : Write", []string{"key-spelling", "key-spelling"}},
		{"ours", "", "name: x\ndescription: d\nMaxTurns: 3", "name: x\ndescription: d\nmax_turns: 3", []string{"key-spelling"}},
		{"twice", "claude", "name: x\ndescription: d\nmodel: a\n# about tools\ndescription:\n  other\n\n# end\ntools: Read", "name: x\ndescription: d\nmodel: a\n# about tools\n\n# end\ntools: Read", []string{"duplicate-field"}},
		{"two denials are both kept", "claude", "name: x\ndescription: d\ndisallowedTools: Write\ndisallowedTools: Edit", "name: x\ndescription: d\ndisallowedTools: Write\ndisallowedTools: Edit", nil},
		{"names of tools", "claude", "name: x\ndescription: d\ntools: read, BASH(git:*), Grep # read is enough\ndisallowedTools:\n  - web_fetch\n  - webFetch", "name: x\ndescription: d\ntools: Read, Bash(git:*), Grep # read is enough\ndisallowedTools:\n  - web_fetch\n  - WebFetch", []string{"tool-unknown", "tool-unknown", "tool-unknown"}},
		{"all at once", "qwen", "Name: x\ndescription: a: b\nmodel: m\nmodel: n\ntools: [READFILE]", "name: x\ndescription: 'a: b'\nmodel: m\ntools: [ReadFile]", []string{"duplicate-field", "key-spelling", "tool-unknown", "yaml-lenient"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				wrap := func(s string) []byte {
					return []byte(strings.ReplaceAll("---\n"+s+"\n---\n\n  body \n\n", "\n", end))
				}
				got, applied := agents.Fix("x.md", wrap(tt.before), tt.origin)
				if diff := cmp.Diff(string(wrap(tt.after)), string(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				var codes []string
				for _, d := range applied {
					codes = append(codes, d.Code)
				}
				slices.Sort(codes)
				if !slices.Equal(codes, tt.codes) {
					t.Errorf("applied %q, want %q", codes, tt.codes)
				}
			}
		})
	}
}

// checkFix holds for every file: fixing it once is enough, the body is as it
// was, and the agent is the same but for the names of tools.
func checkFix(t *testing.T, file string, data []byte, origin string) int {
	t.Helper()
	once, applied := agents.Fix(file, data, origin)
	if (len(applied) > 0) == bytes.Equal(once, data) {
		t.Errorf("%s: %d things done, and changed is %t", file, len(applied), !bytes.Equal(once, data))
	}
	twice, more := agents.Fix(file, once, origin)
	if !bytes.Equal(once, twice) || len(more) > 0 {
		t.Errorf("%s: fixed again: %v\n%q\n%q", file, more, once, twice)
	}
	if len(applied) == 0 {
		return 0
	}
	opt := agents.ParseOptions{Origin: origin, StemName: true}
	a, _ := agents.Parse(file, data, opt)
	b, diags := agents.Parse(file, once, opt)
	if b == nil || b.Broken && !a.Broken {
		t.Fatalf("%s: does not load any more: %v", file, diags)
	}
	if a.Name != b.Name || a.Description != b.Description || a.Prompt != b.Prompt || a.Model != b.Model || a.MaxTurns != b.MaxTurns || a.Mode != b.Mode {
		t.Errorf("%s: another agent:\n%s", file, cmp.Diff(a, b))
	}
	return len(applied)
}

// TestFixFiles fixes every file at hand.
func TestFixFiles(t *testing.T) {
	n := 0
	for _, dir := range append([]string{"testdata/files"}, productDirs()...) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			origin := ""
			if filepath.Dir(dir) == filepath.FromSlash("testdata/products") {
				origin = filepath.Base(dir)
			}
			n += checkFix(t, e.Name(), data, origin)
		}
	}
	if n < 5 {
		t.Errorf("only %d things were fixed", n)
	}
}

func productDirs() []string {
	var dirs []string
	for _, name := range agents.ProductNames() {
		dirs = append(dirs, filepath.Join("testdata", "products", name))
	}
	return dirs
}
