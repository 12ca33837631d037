package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/agents"
)

// TestTOMLPlaces: what is said of a key stands where the key does, whatever
// text is above it.
func TestTOMLPlaces(t *testing.T) {
	text := "# one\r\n\"name\" = 'x' # name = 2\r\n\r\ndeveloper_instructions = '''\r\n[no]\r\nmodel = 1\r\n'''\r\n" +
		"list = [\n  \"]\", # ]\n  '[',\n]\n  model = 5\nm2 = \"\"\"a\\\"\"\"\"\"\n\n[mcp_servers.x]\nname = 'y'\n[[skills.config]]\na = 1\n"
	d, diags := agents.Parse("x.toml", []byte(text), agents.ParseOptions{Origin: "codex"})
	want := map[string]string{"model is": "12:3", "list": "8:1", "m2": "13:1", "mcp_servers": "15:1", "skills": "17:1"}
	for _, diag := range diags {
		for key, place := range want {
			if strings.Contains(diag.Message, key) {
				if got := fmt.Sprintf("%d:%d", diag.Line, diag.Column); got != place {
					t.Errorf("%s: at %s, want %s", diag.Message, got, place)
				}
				delete(want, key)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v: %v", want, diags)
	}
	if d.Name != "x" || !strings.HasPrefix(d.Prompt, "[no]") {
		t.Errorf("name %q, prompt %q", d.Name, d.Prompt)
	}
}

// TestTOMLHostile: files that are meant to use up memory or time.
func TestTOMLHostile(t *testing.T) {
	head := "name = 'x'\ndescription = 'd'\ndeveloper_instructions = 'p'\n"
	for name, text := range map[string]string{
		"deep lists":     head + "a = " + strings.Repeat("[", 200_000),
		"deep closed":    head + "a = " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		"deep tables":    head + "a = " + strings.Repeat("{b=", 50_000),
		"long key":       head + strings.Repeat("a.", 100_000) + "b = 1",
		"many keys":      head + manyKeys(60_000),
		"many tables":    head + strings.Repeat("[[a]]\n", 150_000),
		"unclosed":       head + "a = \"\"\"" + strings.Repeat("x", 500_000),
		"many headers":   head + strings.Repeat("[a.b.c.d", 100_000),
		"long header":    head + "[" + strings.Repeat("a.", 100_000) + "b]\nc = 1",
		"nested headers": head + nestedHeaders(1200),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			d, diags := agents.Parse("x.toml", []byte(text), agents.ParseOptions{Origin: "codex"})
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v for %d bytes", took, len(text))
			}
			checkDefinition(t, d, diags)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	return b.String()
}

func nestedHeaders(n int) string {
	var b strings.Builder
	key := "a"
	for range n {
		fmt.Fprintf(&b, "[%s]\n", key)
		key += ".a"
	}
	return b.String()
}

// TestDetect reads a directory with files of several products and of ours.
func TestDetect(t *testing.T) {
	root := tree(t, map[string]string{
		"agents/a.md":               agentFile("a", "d"),
		".claude/agents/b.md":       agentFile("b", "d"),
		".codex/agents/c.toml":      tomlFile("c", "d"),
		".codex/config.toml":        "model = 'x'\n",
		"opencode.json":             `{"agent": {"d": {"description": "d", "prompt": "p"}}}`,
		"package.json":              `{"name": "x"}`,
		"w/subagents/custom.json":   `{"agents": {"f": {"description": "d", "system_prompt": "p"}}}`,
		".github/agents/e.agent.md": agentFile("", "d"),
		".git/agents/no.md":         agentFile("no", "d"),
	})
	layer := agents.LoadDir(root, agents.LayerProject, agents.LoadOptions{Detect: true, Hidden: true})
	got := map[string]string{}
	for _, d := range layer.Defs {
		got[d.Name] = d.Origin
	}
	want := map[string]string{"a": agents.Native, "b": "claude", "c": "codex", "d": "opencode", "e": "copilot", "f": agents.Native}
	if fmt.Sprint(got) != fmt.Sprint(want) || agents.HasErrors(layer.Diagnostics) {
		t.Errorf("%v, want %v: %v", got, want, layer.Diagnostics)
	}
	if _, err := os.Stat(filepath.Join(root, "package.json")); err != nil {
		t.Fatal(err)
	}
}
