package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

// corpusRow is a line of expected.tsv.
type corpusRow struct {
	path, loads, name, description, tools, model, tier, policy string
}

func readCorpus(t *testing.T) (dir string, rows []corpusRow) {
	t.Helper()
	shared := os.Getenv("SYNAPSE_SHARED")
	if shared == "" {
		t.Skip("SYNAPSE_SHARED is not set: the corpus of definition files is not at hand")
	}
	dir = filepath.Join(shared, "corpus")
	data, err := os.ReadFile(filepath.Join(dir, "expected.tsv"))
	if err != nil {
		t.Fatalf("SYNAPSE_SHARED is set, but the corpus can't be read: %v", err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		cols := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		if len(cols) != 10 {
			t.Fatalf("expected.tsv:%d: %d columns, want 10", i+1, len(cols))
		}
		rows = append(rows, corpusRow{cols[0], cols[1], cols[2], cols[3], cols[4], cols[5], cols[7], cols[8]})
	}
	return dir, rows
}

var blanks = regexp.MustCompile(`[\s\x{00a0}]+`)

// description60 is the form in which expected.tsv holds descriptions.
func description60(s string) string {
	s = strings.TrimSpace(blanks.ReplaceAllString(strings.ReplaceAll(s, `\n`, " "), " "))
	runes := []rune(s)
	return strings.TrimFunc(string(runes[:min(60, len(runes))]), unicode.IsSpace)
}

func toolsColumn(d *agents.Definition, row corpusRow) string {
	if strings.HasPrefix(row.tools, "map:") {
		return fmt.Sprintf("map:+%d-%d", len(d.ListedTools()), len(d.DisallowedTools))
	}
	if d.ListedTools() == nil {
		return "null"
	}
	return fmt.Sprint(len(d.ListedTools()))
}

// TestCorpus reads every Markdown file of the corpus and compares with
// expected.tsv, rows that depend on a choice included: the choices hold here.
func TestCorpus(t *testing.T) {
	dir, rows := readCorpus(t)
	hard, choice, left := 0, 0, map[string]int{}
	for _, row := range rows {
		if ext := strings.ToLower(filepath.Ext(row.path)); ext != ".md" {
			left[ext]++
			continue
		}
		if row.policy == "" {
			hard++
		} else {
			choice++
		}
		t.Run(row.path, func(t *testing.T) {
			file := filepath.Join(dir, row.path)
			if target, ok := symlinkText(t, file); ok {
				file = relink(t, dir, row.path, target)
			}
			layer := agents.LoadFile(file, agents.LayerProject, agents.LoadOptions{StemName: true})
			if n := len(layer.Defs); n > 1 {
				t.Fatalf("%d definitions in one file", n)
			}
			var d *agents.Definition
			if len(layer.Defs) == 1 {
				d = layer.Defs[0]
			}
			offered := d != nil && !d.Broken
			warned := false
			for _, diag := range layer.Diagnostics {
				if diag.File != file {
					t.Errorf("diagnostic names %q: %s", diag.File, diag)
				}
				warned = warned || diag.Severity == agents.Warn
			}
			if d != nil && offered == agents.HasErrors(layer.Diagnostics) {
				t.Errorf("offered is %t, with %v", offered, layer.Diagnostics)
			}
			switch row.loads {
			case "yes":
				if !offered {
					t.Errorf("does not load: %v", layer.Diagnostics)
				}
			case "with-warning":
				if !offered || !warned {
					t.Errorf("loads %t, warned %t: %v", offered, warned, layer.Diagnostics)
				}
			case "no":
				if offered {
					t.Errorf("is offered as %q", d.Name)
				}
				if len(layer.Diagnostics) == 0 {
					t.Error("no reason is given")
				}
			case "any":
			default:
				t.Fatalf("column loads holds %q", row.loads)
			}
			if !offered {
				return
			}
			got := []string{d.Name, description60(d.Description), toolsColumn(d, row), d.Model}
			want := []string{row.name, row.description, row.tools, row.model}
			if row.loads == "any" { // the model of custom-tag.md is not a value anyone must read
				got, want = got[:3], want[:3]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("name, description, tools, model (-want +got):\n%s\n%v", diff, layer.Diagnostics)
			}
		})
	}
	t.Logf("%d rows without and %d rows with a choice checked; left to the readers of other formats: %v", hard, choice, left)
	if hard < 200 || choice < 40 {
		t.Errorf("only %d and %d rows were checked: is this the corpus?", hard, choice)
	}
}

// symlinkText reports whether a file holds nothing but a path: the corpus keeps
// symlinks the way Git does where none can be made.
func symlinkText(t *testing.T, file string) (target string, ok bool) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.IsDir() || info.Size() > 200 {
		return "", false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	target = string(data)
	return target, strings.HasSuffix(target, ".md") && !strings.ContainsAny(target, "\n ")
}

// relink makes the symlink again, beside a copy of its target.
func relink(t *testing.T, dir, file, target string) string {
	t.Helper()
	root := t.TempDir()
	link := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symlinks here: %v", err)
	}
	rel := filepath.Join(filepath.Dir(file), target)
	if rel == file {
		return link
	}
	data, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, rel)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, rel), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return link
}
