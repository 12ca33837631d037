package agents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
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
	if strings.HasPrefix(row.tools, "map:") && d.Origin == "opencode" {
		// To opencode a map takes away and grants nothing: what it denies is in
		// the rules.
		denies := slices.ContainsFunc(d.Permissions, func(r policy.Rule) bool { return r.Action == policy.Deny })
		if d.ListedTools() == nil && (denies || strings.HasSuffix(row.tools, "-0")) {
			return row.tools
		}
		return fmt.Sprintf("%q with %v", d.ListedTools(), d.Permissions)
	}
	if strings.HasPrefix(row.tools, "map:") {
		return fmt.Sprintf("map:+%d-%d", len(d.ListedTools()), len(d.DisallowedTools))
	}
	if d.ListedTools() == nil {
		return "null"
	}
	return fmt.Sprint(len(d.ListedTools()))
}

// originOf is the product whose file a file of the corpus is: that of the place
// it lies in, and for the TOML files that were taken out of theirs the one that
// has such files.
func originOf(file string) string {
	if origin := agents.ProductOf(file); origin != "" || !strings.EqualFold(filepath.Ext(file), ".toml") {
		return origin
	}
	return "codex"
}

// share counts what one reader made of its files.
type share struct{ Files, Loads, Clean, Refused int }

// TestCorpus reads every file of the corpus with its own product's reader, and
// compares with expected.tsv, rows that depend on a choice included: the
// choices hold here. What share of the files loads is kept in a golden file,
// from which the documentation is made.
func TestCorpus(t *testing.T) {
	dir, rows := readCorpus(t)
	hard, choice := 0, 0
	shares := map[string]*share{}
	for _, row := range rows {
		if row.policy == "" {
			hard++
		} else {
			choice++
		}
		origin := originOf(row.path)
		key := origin
		if key == "" {
			key = "no product's place"
		}
		if shares[key] == nil {
			shares[key] = &share{}
		}
		count := shares[key]
		t.Run(row.path, func(t *testing.T) {
			file := filepath.Join(dir, row.path)
			if target, ok := symlinkText(t, file); ok {
				file = relink(t, dir, row.path, target)
			}
			layer := agents.LoadFile(file, agents.LayerProject, agents.LoadOptions{StemName: true, Origin: origin})
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
			count.Files++
			switch {
			case !offered:
				count.Refused++
			case warned:
				count.Loads++
			default:
				count.Loads++
				count.Clean++
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
			if data, err := os.ReadFile(file); err == nil {
				checkFix(t, file, data, origin)
				agents.LintFile(file, data, origin)
			}
			checkConversions(t, d)
		})
	}
	t.Logf("%d rows without and %d rows with a choice checked", hard, choice)
	if hard < 300 || choice < 60 {
		t.Errorf("only %d and %d rows were checked: is this the corpus?", hard, choice)
	}
	var b strings.Builder
	for _, name := range append(agents.ProductNames(), "no product's place") {
		if s := shares[name]; s != nil {
			fmt.Fprintf(&b, "%s\t%d\t%d\t%d\t%d\n", name, s.Files, s.Loads, s.Clean, s.Refused)
		}
	}
	golden(t, "corpus-share.golden", b.String())
}

// checkConversions: no conversion of a definition widens it.
func checkConversions(t *testing.T, d *agents.Definition) {
	t.Helper()
	for _, target := range agents.ConvertTargets() {
		data, name, _, err := agents.Convert(d, target, agents.ConvertOptions{})
		var wide *agents.WideningError
		if errors.As(err, &wide) {
			continue
		}
		if err != nil {
			t.Errorf("convert to %s: %v", target, err)
			continue
		}
		back, diags := agents.Parse(name, data, agents.ParseOptions{Origin: target})
		if back == nil || back.Broken {
			t.Errorf("convert to %s: does not load: %v", target, diags)
			continue
		}
		if w := widened(back, d); len(w) > 0 {
			t.Errorf("convert to %s: %v", target, w)
		}
	}
}

// TestCorpusJSON reads the JSON files of the corpus: all that are agents are
// found, and nothing else is taken for one.
func TestCorpusJSON(t *testing.T) {
	dir, _ := readCorpus(t)
	data, err := os.ReadFile(filepath.Join(dir, "expected_json.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		cols := strings.Split(line, "\t")
		if i == 0 || len(cols) < 5 {
			continue
		}
		rows++
		t.Run(cols[0], func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, cols[0]))
			if err != nil {
				t.Fatal(err)
			}
			origin := agents.ProductOf(cols[0])
			if cols[1] != "opencode-config" {
				origin = ""
			}
			defs, diags := agents.ParseJSON(cols[0], text, agents.ParseOptions{
				StemName: true, Origin: origin,
				ReadFile: func(string) ([]byte, error) { return []byte("The prompt, which the corpus does not have."), nil },
			})
			prompts, passed := 0, 0
			var names []string
			for _, d := range defs {
				names = append(names, d.Name)
				if d.Prompt != "" {
					prompts++
				}
				if d.Broken == (d.Prompt != "" && d.Description != "") {
					t.Errorf("%s: broken is %t: %v", d.Name, d.Broken, diags)
				}
			}
			for _, d := range diags {
				if d.Code == agents.CodeProductAgent {
					passed++
				}
			}
			switch cols[1] {
			case "not-agents", "plugin-manifest(paths)", "index-not-definitions":
				if len(defs) > 0 || !agents.HasErrors(diags) {
					t.Errorf("is taken for agents: %q, %v", names, diags)
				}
				return
			}
			if got := fmt.Sprint(len(defs) + passed); got != cols[2] {
				t.Errorf("%s agents, want %s: %v", got, cols[2], diags)
			}
			if got := fmt.Sprint(prompts); got != cols[3] {
				t.Errorf("%s have a prompt, want %s", got, cols[3])
			}
			for _, name := range strings.Split(cols[4], " | ") {
				if name != "" && !slices.Contains(names, name) && passed == 0 {
					t.Errorf("no agent %q among %q", name, names)
				}
			}
		})
	}
	if rows < 11 {
		t.Errorf("only %d rows", rows)
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
