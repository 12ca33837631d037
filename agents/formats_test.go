package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse/agents"
)

// TestFormatsPage keeps docs/formats.md what the tables say. With -update it is
// written anew.
func TestFormatsPage(t *testing.T) {
	file := filepath.Join("..", "docs", "formats.md")
	page := formatsPage(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(page, "\n")); diff != "" {
		t.Errorf("docs/formats.md is not what the tables say; run the test with -update (-page +tables):\n%s", diff)
	}
}

// cell makes text fit into a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ")
}

func code(list ...string) string {
	var out []string
	for _, s := range list {
		out = append(out, "`"+cell(s)+"`")
	}
	return strings.Join(out, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// page is a Markdown page that grows.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) table(head ...string) {
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|%s", strings.Repeat(" --- |", len(head)))
}

func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

func formatsPage(t *testing.T) string {
	var p page
	p.line("# Agent files of other products\n")
	p.line("<!-- Made from the tables in package agents. Don't edit: go test ./agents -run TestFormatsPage -update -->\n")
	p.line("Synapse reads the agent files of %d other products where they lie. A file means what it means in its own", len(agents.Products()))
	p.line("product; where that can't be had here, the agent gets less than there and never more, and a warning says so. No file lifts")
	p.line("the user's own rules.\n")

	p.line("Our own format, and every code of a message, is in [definitions.md](definitions.md).\n")

	p.line("## Who wins\n")
	p.line("On each level (home directory, workspace) a native file wins over every other product's. Of two products the one that comes")
	p.line("first in this list wins:\n")
	for i, product := range agents.Products() {
		p.line("%d. %s (`%s`)", i+1, product.Title, product.Name)
	}
	p.line("\nThe plain name goes to the winner. What another product defines is reached as `product:name` as well (`claude:reviewer`), also")
	p.line("where something else has the plain name, and is then listed under that name. Files that are the same agent in all but where")
	p.line("they lie are one agent. The setting `import_sources` names the products that are read: all without it, none with `[]`.\n")

	for _, product := range agents.Products() {
		p.product(t, product)
	}
	p.conversions(t)
	p.shares(t)
	return p.String()
}

func (p *page) product(t *testing.T, product agents.Product) {
	p.line("## %s\n", product.Title)
	p.line("Name: `%s`. Format: %s.\n", product.Name, map[string]string{"markdown": "Markdown with YAML frontmatter", "toml": "TOML"}[product.Format])
	p.table("", "")
	var home, workspace []string
	for _, place := range product.Places {
		if place.Level == agents.LayerHome {
			home = append(home, "~/"+place.Path)
		} else {
			workspace = append(workspace, place.Path)
		}
	}
	p.row("in the home directory", code(home...))
	p.row("in the workspace", code(workspace...))
	p.row("directories below", map[bool]string{true: "are read too", false: "are not read"}[product.Nested])
	if product.PassOver != "" {
		p.row("passed over", "files whose name begins with "+code(product.PassOver))
	}
	if product.Suffix != "" {
		p.row("known anywhere", "by the ending "+code(product.Suffix))
	}
	if product.PathNames {
		p.row("without a name", "a file goes by its path below the directory")
	} else {
		p.row("without a name", "a file goes by its stem, with a warning")
	}
	p.row("no `tools`", cell(product.AbsentTools))
	p.row("an empty list of tools", cell(product.EmptyTools))
	p.row("two of one name", cell(product.Twice))
	p.line("")
	p.table("key", "also", "becomes", "restricts", "about")
	for _, f := range product.Fields {
		as := code(strings.FieldsFunc(f.As, func(c rune) bool { return c == ',' || c == ' ' })...)
		if f.As == "" {
			as = "nothing"
		}
		p.row(code(f.Key), code(f.Also...), as, yesNo(f.Restricts), cell(f.About))
	}
	p.line("\nOur own fields count in such a file too, with a warning, as they restrict nothing in %s.\n", product.Title)
	p.table("tool", "also", "grants", "denied, takes")
	for _, tool := range product.Tools {
		grants, covers := code(tool.Grants...), code(tool.Covers...)
		if len(tool.Grants) == 0 {
			grants = "nothing"
		}
		if covers == grants {
			covers = "the same"
		}
		if len(tool.Covers) == 0 {
			covers = "nothing"
		}
		p.row(code(tool.Name), code(tool.Also...), grants, covers)
	}
	p.line("")
	for _, d := range product.Differs {
		p.line("- %s", d)
	}
	p.line("")
}

// conversions shows what becomes of one definition that has everything.
func (p *page) conversions(t *testing.T) {
	p.line("## Conversion\n")
	p.line("A definition can be written in the format of %s. The body stays what it is to the byte, and comments of", code(agents.ConvertTargets()...))
	p.line("the frontmatter stay; in front of which key they stand may change. What a format can't say is reported. What restricts the")
	p.line("agent is not left out unless that is asked for: the conversion fails instead. What was written is read again to be sure.\n")
	p.line("What a definition with one thing beside name, description and body becomes:\n")
	probes := []struct{ name, header string }{
		{"nothing else", "tools: '*'"},
		{"`tools` absent in our format", ""},
		{"`tools: [read_file, search_files]`", "tools: [read_file, search_files]"},
		{"`tools: none`", "tools: none"},
		{"`disallowed_tools: [write_file, edit_file, patch]`", "tools: '*'\ndisallowed_tools: [write_file, edit_file, patch]"},
		{"the same with `execute`", "tools: '*'\ndisallowed_tools: [write_file, edit_file, patch, execute]"},
		{"`permissions: {execute: {\"*\": ask, \"git *\": allow}}`", "tools: '*'\npermissions: {execute: {'*': ask, 'git *': allow}}"},
		{"`max_turns`", "tools: '*'\nmax_turns: 9"},
		{"`limits: {time: 10m}`", "tools: '*'\nlimits: {time: 10m}"},
		{"`limits: {tokens: 1000}`", "tools: '*'\nlimits: {tokens: 1000}"},
		{"`mode: primary`", "tools: '*'\nmode: primary"},
		{"`enabled: false`", "tools: '*'\nenabled: false"},
		{"`reasoning_effort: high`", "tools: '*'\nreasoning_effort: high"},
		{"`temperature`", "tools: '*'\ntemperature: 0.3"},
		{"`skills`", "tools: '*'\nskills: [go]"},
		{"`background: true`", "tools: '*'\nbackground: true"},
		{"`can_spawn_subagent: true`", "tools: '*'\ncan_spawn_subagent: true"},
		{"`output_schema`", "tools: '*'\noutput_schema: {type: object}"},
	}
	targets := agents.ConvertTargets()
	p.table(append([]string{""}, targets...)...)
	for _, probe := range probes {
		d, diags := agents.Parse("x.md", []byte("---\nname: x\ndescription: d\n"+probe.header+"\n---\nbody\n"), agents.ParseOptions{})
		if d.Broken {
			t.Fatal(probe.name, diags)
		}
		cells := []string{probe.name}
		for _, target := range targets {
			_, _, diags, err := agents.Convert(d, target, agents.ConvertOptions{})
			word := "said"
			for _, diag := range diags {
				switch diag.Code {
				case agents.CodeNotSaid:
					word = "left out"
				case agents.CodeNarrowed:
					word = "less"
				}
			}
			if err != nil {
				word = "**refused**"
			}
			cells = append(cells, word)
		}
		p.row(cells...)
	}
	p.line("\n“less”: the agent can do less there, and is told what. “left out”: it restricts nothing, and is reported.\n")
}

// shares shows what share of files from public repositories loads.
func (p *page) shares(t *testing.T) {
	data, err := os.ReadFile("testdata/corpus-share.golden")
	if err != nil {
		t.Fatal(err)
	}
	p.line("## How much of what there is loads\n")
	p.line("Agent files from public repositories, and some made to be difficult, each read by the reader of the place it lies in. Those that")
	p.line("are refused have no frontmatter, description or body, or a restriction that can't be read; plain documentation is among them.\n")
	p.table("reader", "files", "load", "of them without a warning", "refused")
	for line := range strings.Lines(string(data)) {
		cols := strings.Split(strings.TrimSpace(line), "\t")
		var files, loads, clean, refused int
		if _, err := fmt.Sscan(strings.Join(cols[1:], " "), &files, &loads, &clean, &refused); err != nil {
			t.Fatal(err)
		}
		p.row(cols[0], cols[1], fmt.Sprintf("%d (%d %%)", loads, 100*loads/files), fmt.Sprint(clean), fmt.Sprint(refused))
	}
	p.line("")
}
