package agents_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

func agentFile(name, description string) string {
	if name != "" {
		name = "name: " + name + "\n"
	}
	return "---\n" + name + "description: " + description + "\n---\nbody\n"
}

func tomlFile(name, description string) string {
	return "name = '" + name + "'\ndescription = '" + description + "'\ndeveloper_instructions = 'body'\n"
}

// where lists the agents with the file each comes from.
func where(t *testing.T, root string, r *agents.Registry) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range r.All() {
		rel, err := filepath.Rel(root, d.Pos.File)
		if err != nil {
			t.Fatal(err)
		}
		out[d.Name] = filepath.ToSlash(rel)
	}
	return out
}

// TestImportPlaces: each product's files are found where it keeps them, and
// nothing else is.
func TestImportPlaces(t *testing.T) {
	root := tree(t, map[string]string{
		".claude/agents/a/b/claude-nested.md": agentFile("claude-nested", "d"),
		".claude/agents/README.md":            "# Agents\n",
		".claude/agents/x.toml":               tomlFile("no", "d"),
		".claude/commands/no.md":              agentFile("no", "d"),
		".opencode/agent/one.md":              agentFile("", "d"),
		".opencode/agents/team/two.md":        agentFile("", "d"),
		"opencode.json":                       `{"agent": {"three": {"description": "d", "prompt": "{file:prompts/p.md}"}}}`,
		"prompts/p.md":                        "body",
		".gemini/agents/gemini.md":            agentFile("gemini", "d"),
		".gemini/agents/_draft.md":            agentFile("draft", "d"),
		".gemini/agents/sub/no.md":            agentFile("no", "d"),
		".github/agents/copilot.agent.md":     agentFile("", "d"),
		".github/agents/plain.md":             agentFile("", "d"),
		".github/agents/sub/no.agent.md":      agentFile("", "d"),
		".cursor/agents/cursor.md":            agentFile("", "d"),
		".codex/agents/deep/codex.toml":       tomlFile("codex", "d"),
		".codex/agents/no.md":                 agentFile("no", "d"),
		".qwen/agents/qwen.md":                agentFile("qwen", "d"),
		".yome/agents/yome.md":                agentFile("yome", "d"),
		".synapse/agents/no.md":               agentFile("no", "d"),
		"agents/no.md":                        agentFile("no", "d"),
	})
	r, diags := agents.Merge(agents.ImportLayers(agents.LayerWorkspace, root, nil, agents.LoadOptions{})...)
	want := map[string]string{
		"claude-nested": ".claude/agents/a/b/claude-nested.md",
		"one":           ".opencode/agent/one.md", "team/two": ".opencode/agents/team/two.md", "three": "opencode.json",
		"gemini": ".gemini/agents/gemini.md", "copilot": ".github/agents/copilot.agent.md", "plain": ".github/agents/plain.md",
		"cursor": ".cursor/agents/cursor.md", "codex": ".codex/agents/deep/codex.toml",
		"qwen": ".qwen/agents/qwen.md", "yome": ".yome/agents/yome.md",
	}
	if diff := cmp.Diff(want, where(t, root, r)); diff != "" {
		t.Errorf("agents and files (-want +got):\n%s", diff)
	}
	if agents.HasErrors(diags) {
		t.Error(diags)
	}
	if !slices.ContainsFunc(diags, func(d agents.Diagnostic) bool {
		return d.Code == agents.CodeHiddenFile && strings.HasSuffix(d.File, "_draft.md")
	}) {
		t.Errorf("nothing is said of _draft.md: %v", diags)
	}
	for _, d := range r.All() {
		if d.Layer != agents.LayerWorkspace {
			t.Errorf("%s: layer %s", d.Name, d.Layer)
		}
	}
	// Some products, none, and one that there is not.
	r, _ = agents.Merge(agents.ImportLayers(agents.LayerWorkspace, root, []string{"yome", "qwen"}, agents.LoadOptions{})...)
	if got := where(t, root, r); len(got) != 2 || got["qwen"] == "" || got["yome"] == "" {
		t.Errorf("two products: %v", got)
	}
	if layers := agents.ImportLayers(agents.LayerWorkspace, root, []string{}, agents.LoadOptions{}); len(layers) > 0 {
		t.Errorf("no product: %v", layers)
	}
	err := agents.CheckProducts([]string{"claude", "curser"})
	var unknown *agents.UnknownProductError
	if !errors.As(err, &unknown) || unknown.Name != "curser" || !strings.Contains(err.Error(), `did you mean "cursor"?`) || !strings.Contains(err.Error(), "opencode") {
		t.Errorf("a product that there is not: %v", err)
	}
	if err := agents.CheckProducts(agents.ProductNames()); err != nil {
		t.Error(err)
	}
}

// TestImportHome: under the home directory products have places of their own.
func TestImportHome(t *testing.T) {
	root := tree(t, map[string]string{
		".claude/agents/a.md":            agentFile("a", "d"),
		".config/opencode/agents/b.md":   agentFile("", "d"),
		".config/opencode/opencode.json": `{"agent": {"c": {"description": "d", "prompt": "p"}}}`,
		".copilot/agents/d.agent.md":     agentFile("", "d"),
		".github/agents/e.md":            agentFile("", "d"),
		".opencode/agent/f.md":           agentFile("", "d"),
		"opencode.json":                  `{"agent": {"no": {"description": "d", "prompt": "p"}}}`,
	})
	r, _ := agents.Merge(agents.ImportLayers(agents.LayerHome, root, nil, agents.LoadOptions{})...)
	var names []string
	for _, d := range r.All() {
		names = append(names, d.Name)
	}
	if want := []string{"a", "b", "c", "d", "e", "f"}; !slices.Equal(names, want) {
		t.Errorf("agents %q, want %q", names, want)
	}
}

// TestPrecedence: native before imported, near before far, and of two products
// the one that comes first in the table.
func TestPrecedence(t *testing.T) {
	files := map[string]string{}
	for _, p := range agents.Products() {
		for _, place := range p.Places {
			switch {
			case place.Level != agents.LayerWorkspace || strings.HasSuffix(place.Path, ".json") || strings.HasSuffix(place.Path, ".jsonc"):
			case p.Format == "toml":
				files[place.Path+"/reviewer.toml"] = tomlFile("reviewer", p.Name)
			default:
				files[place.Path+"/reviewer.md"] = agentFile("reviewer", p.Name)
			}
		}
	}
	files[".opencode/agents/reviewer.md"] = agentFile("reviewer", "opencode, the second place")
	root := tree(t, files)
	home := tree(t, map[string]string{".claude/agents/reviewer.md": agentFile("reviewer", "home")})
	project := tree(t, map[string]string{"reviewer.md": agentFile("reviewer", "native")})
	imported := agents.ImportLayers(agents.LayerWorkspace, root, nil, agents.LoadOptions{})
	layers := slices.Concat([]agents.Layer{agents.Builtin()}, agents.ImportLayers(agents.LayerHome, home, nil, agents.LoadOptions{}), imported)

	r, _ := agents.Merge(layers...)
	get := func(r *agents.Registry, name string) string {
		d, err := r.Lookup(name)
		if err != nil {
			return err.Error()
		}
		return d.Description
	}
	if got := get(r, "reviewer"); got != agents.ProductNames()[0] {
		t.Errorf("reviewer is %q's, want that of the first product", got)
	}
	for _, p := range agents.ProductNames() {
		if got := get(r, p+":reviewer"); got != p {
			t.Errorf("%s:reviewer is %q", p, got)
		}
		if got := get(r, strings.ToUpper(p)+":Reviewer"); got != p {
			t.Errorf("%s:reviewer in capitals is %q", p, got)
		}
	}
	if got := get(r, "nosuch:reviewer"); !strings.Contains(got, `no agent "nosuch:reviewer"`) {
		t.Error(got)
	}
	// A native one takes the plain name from all of them.
	r, _ = agents.Merge(append(layers, agents.LoadDir(project, agents.LayerProject, agents.LoadOptions{}))...)
	if got := get(r, "reviewer"); got != "native" {
		t.Errorf("reviewer is %q", got)
	}
	for _, p := range agents.ProductNames() {
		if d, ok := r.Get(p + ":reviewer"); !ok || d.Description != p || d.Name != p+":reviewer" {
			t.Errorf("%s:reviewer is no agent of its own: %v", p, d)
		}
	}
	// The list has both, and says what was replaced.
	claude, _ := r.Get("claude:reviewer")
	if !slices.Contains(r.All(), claude) || len(r.Shadows("claude:reviewer")) != 1 || !strings.HasPrefix(r.Shadows("claude:reviewer")[0], home) {
		t.Errorf("claude:reviewer shadows %q, want the one of the home directory", r.Shadows("claude:reviewer"))
	}
	if n := len(r.Shadows("reviewer")); n < 9 {
		t.Errorf("reviewer shadows %d", n)
	}
	// Switched off, an agent can't be reached under any of its names.
	off, missing := r.Disable("claude:reviewer")
	if len(missing) > 0 || !strings.Contains(get(off, "claude:reviewer"), "disabled") || get(off, "reviewer") != "native" {
		t.Errorf("switched off: %q, %q", get(off, "claude:reviewer"), missing)
	}
	r, _ = agents.Merge(layers...)
	off, missing = r.Disable("reviewer")
	if len(missing) > 0 || !strings.Contains(get(off, "claude:reviewer"), "disabled") {
		t.Errorf("the alias of a disabled agent: %q", get(off, "claude:reviewer"))
	}
	off, missing = r.Disable("claude:reviewer")
	if len(missing) > 0 || !strings.Contains(get(off, "reviewer"), "disabled") {
		t.Errorf("disabled by its alias: %q, %q", get(off, "reviewer"), missing)
	}
	gone, _ := r.Without("reviewer")
	if got := get(gone, "claude:reviewer"); !strings.Contains(got, "no agent") {
		t.Errorf("the alias of an agent that is gone: %q", got)
	}
}

// TestCopiesAreOneAgent: files generated from one source for several products
// are not offered several times.
func TestCopiesAreOneAgent(t *testing.T) {
	text := "---\nname: reviewer\ndescription: d\n---\nbody\n"
	root := tree(t, map[string]string{
		".claude/agents/reviewer.md": text, ".cursor/agents/reviewer.md": text, ".gemini/agents/reviewer.md": text,
		".qwen/agents/reviewer.md": "---\nname: reviewer\ndescription: d\ntools: [read_file]\n---\nbody\n",
	})
	r, _ := agents.Merge(agents.ImportLayers(agents.LayerWorkspace, root, nil, agents.LoadOptions{})...)
	var names []string
	for _, d := range r.All() {
		names = append(names, d.Name)
	}
	if want := []string{"qwen:reviewer", "reviewer"}; !slices.Equal(names, want) {
		t.Errorf("agents %q, want %q", names, want)
	}
	if want := []string{"claude:reviewer", "cursor:reviewer", "gemini:reviewer"}; !slices.Equal(r.Aliases("reviewer"), want) {
		t.Errorf("aliases %q, want %q", r.Aliases("reviewer"), want)
	}
	for _, alias := range r.Aliases("reviewer") {
		if d, err := r.Lookup(alias); err != nil || d.Name != "reviewer" {
			t.Errorf("%s: %v, %v", alias, d, err)
		}
	}
}

// TestImportWithin: a workspace that is not trusted brings in no files from
// elsewhere.
func TestImportWithin(t *testing.T) {
	outside := tree(t, map[string]string{
		"agents/x.md": agentFile("x", "d"), "opencode.json": `{"agent": {"y": {"description": "d", "prompt": "p"}}}`, "secret.txt": "secret",
	})
	root := tree(t, map[string]string{
		".opencode/opencode.json": `{"agent": {"z": {"description": "d", "prompt": "{file:../../` + filepath.Base(outside) + `/secret.txt}"}}}`,
		".gemini/agents/ok.md":    agentFile("ok", "d"),
		".gemini/agents/x.md":     "-> " + outside + "/agents/x.md",
		".claude/agents":          "-> " + outside + "/agents",
		"opencode.json":           "-> " + outside + "/opencode.json",
	})
	r, diags := agents.Merge(agents.ImportLayers(agents.LayerWorkspace, root, nil, agents.LoadOptions{Within: root})...)
	if got := where(t, root, r); len(got) != 1 || got["ok"] == "" {
		t.Errorf("agents %v, want ok alone; %v", got, diags)
	}
	n := 0
	for _, d := range diags {
		if d.Code == agents.CodeOutsideRoot {
			n++
		}
		if strings.Contains(d.Message, "secret\n") {
			t.Errorf("a file's text is in a message: %s", d)
		}
	}
	if n != 3 {
		t.Errorf("%d places outside are reported, want 3: %v", n, diags)
	}
}
