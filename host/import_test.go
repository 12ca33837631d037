package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

func foreignAgent(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n\nYou are " + description + ".\n"
}

// TestImportedAgents: other products' agents sit just below the native ones of
// their level, both of two with one name can be reached, and the user chooses
// whose are read.
func TestImportedAgents(t *testing.T) {
	p := newPlace(t, map[string]string{
		"home/.claude/agents/a.md":           foreignAgent("a", "home claude"),
		"home/.synapse/agents/b.md":          foreignAgent("b", "user"),
		"home/.claude/agents/b.md":           foreignAgent("b", "home claude"),
		"ws/.claude/agents/a.md":             foreignAgent("a", "workspace claude"),
		"ws/.claude/agents/b.md":             foreignAgent("b", "workspace claude"),
		"ws/.cursor/agents/b.md":             foreignAgent("b", "workspace cursor"),
		"ws/.claude/agents/c.md":             foreignAgent("c", "workspace claude"),
		"ws/.synapse/agents/c.md":            foreignAgent("c", "project"),
		"ws/.codex/agents/d.toml":            "name = 'd'\ndescription = 'codex'\nsandbox_mode = 'read-only'\ndeveloper_instructions = 'x'\n",
		"ws/.gemini/agents/reviewer.md":      foreignAgent("reviewer", "gemini"),
		"ws/.opencode/agents/team/helper.md": "---\ndescription: opencode\npermission: {bash: deny}\n---\nx\n",
	})
	h := p.open()
	want := map[string]string{
		"a": "workspace claude", "b": "workspace claude", "claude:b": "workspace claude", "cursor:b": "workspace cursor",
		"c": "project", "claude:c": "workspace claude", "d": "codex", "reviewer": "gemini", "gemini:reviewer": "gemini", "team/helper": "opencode",
	}
	for name, description := range want {
		d, err := h.Registry().Lookup(name)
		if err != nil || d.Description != description {
			t.Errorf("%s is %v (%v), want %q", name, d, err, description)
		}
	}
	if d, _ := h.Registry().Get("a"); d.Origin != "claude" || d.Layer != agents.LayerWorkspace {
		t.Errorf("a has the origin %q and the layer %q", d.Origin, d.Layer)
	}
	if d, _ := h.Registry().Get("c"); d.Origin != agents.Native || d.Layer != agents.LayerProject {
		t.Errorf("c has the origin %q and the layer %q", d.Origin, d.Layer)
	}
	// The model reaches them by the same names.
	var names []string
	for _, e := range h.Graph().Edges {
		if e.From == h.Graph().Entry {
			names = append(names, e.Names...)
		}
	}
	for name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("the main agent can't call %s: %q", name, names)
		}
	}
	for name, denied := range map[string]string{"d": "execute", "team/helper": "execute"} {
		e, err := h.Explain(name)
		if err != nil || e.Tools.Denied[denied] == "" || slices.Contains(e.Tools.Allowed, denied) || !slices.Contains(e.Tools.Allowed, "read_file") {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	if e, err := h.Explain("claude:c"); err != nil || e.Name != "claude:c" || e.Origin != "claude" {
		t.Errorf("claude:c: %+v, %v", e, err)
	}

	// Some, none, and none that there is not.
	p.write("home/.synapse/settings.json", `{"import_sources": ["cursor"]}`)
	if d, err := p.open().Registry().Lookup("b"); err != nil || d.Description != "workspace cursor" {
		t.Errorf("cursor alone: %v, %v", d, err)
	}
	p.write("home/.synapse/settings.json", `{"import_sources": []}`)
	r := p.open().Registry()
	if d, err := r.Lookup("b"); err != nil || d.Description != "user" {
		t.Errorf("no product: %v, %v", d, err)
	}
	if _, err := r.Lookup("a"); err == nil {
		t.Error("no product: there is an agent a")
	}
	p.write("home/.synapse/settings.json", `{"import_sources": ["claude", "copilott"]}`)
	_, err := p.try()
	if !host.IsConfig(err) || !strings.Contains(err.Error(), `did you mean "copilot"?`) || !strings.Contains(err.Error(), "settings.json") {
		t.Errorf("an unknown product: %v", err)
	}
	p.write("home/.synapse/settings.json", `{"enable_custom_subagents": false}`)
	if _, err := p.open().Registry().Lookup("a"); err == nil {
		t.Error("agents of files are off, and there is an agent a")
	}
}

// TestHomeIsWorkspace: whoever works in the home directory has its agents once.
func TestHomeIsWorkspace(t *testing.T) {
	p := newPlace(t, map[string]string{"home/.claude/agents/a.md": foreignAgent("a", "claude")})
	h := p.open(func(o *host.Options) { o.Workspace = o.Home })
	if d, err := h.Registry().Lookup("a"); err != nil || d.Layer != agents.LayerWorkspace || len(h.Registry().Shadows("a")) > 0 {
		t.Errorf("a: %v, %v, shadows %q", d, err, h.Registry().Shadows("a"))
	}
}
