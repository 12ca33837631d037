package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/agents"
)

// TestProductFiles reads one small file for each thing that a product's files
// can say, with that product's meaning.
func TestProductFiles(t *testing.T) {
	for _, p := range agents.Products() {
		t.Run(p.Name, func(t *testing.T) {
			dir := filepath.Join("testdata/products", p.Name)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, e := range entries {
				if e.IsDir() {
					continue
				}
				layer := agents.LoadFile(filepath.Join(dir, e.Name()), agents.LayerWorkspace, agents.LoadOptions{Origin: p.Name})
				fmt.Fprintf(&b, "-- %s --\n", e.Name())
				for _, d := range layer.Defs {
					if d.Origin != p.Name {
						t.Errorf("%s: origin %q", e.Name(), d.Origin)
					}
					b.WriteString(show(t, d, nil))
				}
				b.WriteString(show(t, nil, layer.Diagnostics)[len("no definition\n"):] + "\n")
			}
			golden(t, "products-"+p.Name+".golden", b.String())
		})
	}
}

// TestProductTables: what the tables say is complete and leads somewhere.
func TestProductTables(t *testing.T) {
	names := map[string]bool{}
	for _, p := range agents.Products() {
		if names[p.Name] || p.Name == agents.Native || p.Title == "" || len(p.Places) == 0 || len(p.Tools) == 0 || p.Twice == "" || p.AbsentTools == "" || p.EmptyTools == "" {
			t.Errorf("%s: the table is not complete: %+v", p.Name, p)
		}
		names[p.Name] = true
		home, workspace := false, false
		for _, place := range p.Places {
			home = home || place.Level == agents.LayerHome
			workspace = workspace || place.Level == agents.LayerWorkspace
			file := place.Path
			if !strings.HasSuffix(file, ".json") && !strings.HasSuffix(file, ".jsonc") {
				file += "/x." + map[string]string{"markdown": "md", "toml": "toml"}[p.Format]
			}
			if got := agents.ProductOf("/somewhere/" + file); got != p.Name {
				t.Errorf("%s belongs to %q, want %q", file, got, p.Name)
			}
		}
		if !home || !workspace {
			t.Errorf("%s: no place under the home directory, or none under the workspace", p.Name)
		}
		keys := map[string]bool{}
		for _, f := range p.Fields {
			for _, key := range append([]string{f.Key}, f.Also...) {
				if keys[key] {
					t.Errorf("%s: the key %s is there twice", p.Name, key)
				}
				keys[key] = true
			}
			if f.About == "" {
				t.Errorf("%s: %s has no description", p.Name, f.Key)
			}
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	}
	for _, file := range []string{"agents/x.md", ".synapse/agents/x.md", "x.toml", ".claude/agents/x.toml", ".claude/commands/x.md", ".claude/agents"} {
		if got := agents.ProductOf(file); got != "" {
			t.Errorf("%s belongs to %q", file, got)
		}
	}
	if got := agents.ProductOf("agents/x.agent.md"); got != "copilot" {
		t.Errorf("x.agent.md belongs to %q", got)
	}
}

// TestSilenceMeansAll: a file that says nothing of tools has all of them with
// every product, and an empty list none.
func TestSilenceMeansAll(t *testing.T) {
	for _, p := range agents.Products() {
		text := func(tools string) []byte {
			if p.Format == "toml" {
				if tools != "" {
					tools = "tools = " + tools + "\n"
				}
				return []byte("name = 'x'\ndescription = 'd'\n" + tools + "developer_instructions = 'p'\n")
			}
			if tools != "" {
				tools = "tools: " + tools + "\n"
			}
			return []byte("---\nname: x\ndescription: d\n" + tools + "---\np\n")
		}
		for tools, want := range map[string][]string{"": {"*"}, "[]": nil, `["*"]`: {"*"}} {
			d, diags := agents.Parse("x", text(tools), agents.ParseOptions{Origin: p.Name})
			if d.Broken || d.Tools.Mode != agents.ToolsExact || !slices.Equal(d.Tools.Names, want) {
				t.Errorf("%s: tools %q are %+v, want %q: %v", p.Name, tools, d.Tools, want, diags)
			}
		}
	}
}
