package docgen_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/internal/cli"
	"github.com/synapse-agents/synapse/internal/docgen"
	"github.com/synapse-agents/synapse/policy"
)

var update = flag.Bool("update", false, "write the generated parts of the documentation anew")

// repository is the root of the repository.
const repository = "../.."

func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for _, name := range []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md"} {
		if _, err := os.Stat(filepath.Join(repository, name)); err == nil {
			found = append(found, filepath.Join(repository, name))
		}
	}
	return found
}

// TestPages fails when what is generated in a page is not what the program says
// now; -update writes it.
func TestPages(t *testing.T) {
	sources := docgen.Sources(cli.Root(), repository)
	used := map[string]bool{}
	for name, source := range sources {
		sources[name] = func(argument string) (string, error) {
			used[name] = true
			return source(argument)
		}
	}
	for _, page := range pages(t) {
		before, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		after, err := docgen.Fill(before, sources)
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if bytes.Equal(before, after) {
			continue
		}
		if *update {
			if err := os.WriteFile(page, after, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s is not up to date; `make docs` writes it (-page +program):\n%s", page, cmp.Diff(string(before), string(after)))
	}
	for name := range sources {
		if !used[name] {
			t.Errorf("no page has a marker %q: what it generates is not documented", name)
		}
	}
}

// TestLinks wants every link between the pages, and every path that they name in
// the repository, to lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			data, err := os.ReadFile(file)
			if info, statErr := os.Stat(file); statErr == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, m[1])
				continue
			}
			if anchor != "" && !hasHeading(string(data), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, file, anchor)
			}
		}
	}
}

// hasHeading reports whether a page has a heading of that anchor, as GitHub
// makes them.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r > 127 || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(title)))
		if slug == anchor {
			return true
		}
	}
	return false
}

func TestFill(t *testing.T) {
	sources := map[string]docgen.Source{
		"x": func(argument string) (string, error) { return "new " + argument + "\n\n", nil },
	}
	tests := []struct{ name, page, want, err string }{
		{"no markers", "a\nb\n", "a\nb\n", ""},
		{"filled", "a\n<!-- generated: x y z -->\nold\n<!-- /generated -->\nb\n", "a\n<!-- generated: x y z -->\nnew y z\n<!-- /generated -->\nb\n", ""},
		{"empty", "<!-- generated: x -->\n<!-- /generated -->", "<!-- generated: x -->\nnew \n<!-- /generated -->", ""},
		{"no end", "a\n<!-- generated: x -->\n", "", "the marker on line 2 has no end"},
		{"nested", "<!-- generated: x -->\n<!-- generated: x -->\n", "", "line 2: the marker on line 1 has no end"},
		{"end alone", "<!-- /generated -->\n", "", "line 1: an end without a marker"},
		{"unknown", "\n<!-- generated: y -->\n<!-- /generated -->\n", "", "line 2: <!-- generated: y -->: there is nothing of that name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := docgen.Fill([]byte(tt.page), sources)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Fatalf("error %v, want %q", err, tt.err)
			case tt.err == "" && string(got) != tt.want:
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestTables spot-checks that the tables hold what they are about.
func TestTables(t *testing.T) {
	sources := docgen.Sources(cli.Root(), repository)
	for _, tt := range []struct{ source, argument, want string }{
		{"fields", "", "| `name` |"},
		{"diagnostics", "", "| `tool-unresolved` | warning |"},
		{"settings", "", "| `excluded_tools` | `AGENT_EXCLUDED_TOOLS` |"},
		{"variables", "", "| `OPENAI_API_KEY` | openai | a key"},
		{"reasons", "", "| `" + string(policy.TodoIsolation) + "` | the to-do list belongs"},
		{"aliases", "", "| `execute` | `Bash`, `bash`, `shell`"},
		{"providers", "", "| `openai` | `OPENAI_API_KEY` |"},
		{"products", "", "| Claude Code | `claude` | `.claude/agents` |"},
		{"differences", "", "- Claude Code: "},
		{"commands", "", "### synapse agents explain\n"},
		{"flags", "", "| `-w, --workspace DIRECTORY` |"},
		{"file", "go.mod", "module github.com/synapse-agents/synapse\n"},
	} {
		got, err := sources[tt.source](tt.argument)
		if err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, %q is not in\n%s", tt.source, err, tt.want, got)
		}
	}
	for _, bad := range []struct{ source, argument string }{{"file", "../secret"}, {"file", "/etc/passwd"}, {"file", "nowhere"}, {"fields", "x"}} {
		if _, err := sources[bad.source](bad.argument); err == nil {
			t.Errorf("%s %q passed", bad.source, bad.argument)
		}
	}
}
