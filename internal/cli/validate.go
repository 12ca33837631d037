package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/agents"
)

// checkedFile is one entry of `agents validate --json`: a definition, or a file
// that holds none.
type checkedFile struct {
	Path        string              `json:"path"`
	Loads       bool                `json:"loads"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Tools       []string            `json:"tools"` // null: the field names none
	Model       string              `json:"model"` // as written
	Diagnostics []checkedDiagnostic `json:"diagnostics"`
}

type checkedDiagnostic struct {
	Severity agents.Severity `json:"severity"`
	Code     string          `json:"code"`
	Line     int             `json:"line"`
	Column   int             `json:"column"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint"`
}

func (a *app) agentsValidateCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check definition files",
		Long: `Checks definition files, and those in directories. A file that lies where another
product keeps its agents (.claude/agents, .opencode/agent, …) is read as that
product reads it; a file below any other directory that begins with a dot needs no
name, since it can go by its own.
The exit code is 0 when all of them load and 1 when one does not; warnings alone
do not count.`,
		Example: `  synapse agents validate .synapse/agents
  synapse agents validate reviewer.md --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`%s` takes files and directories; see `%s --help`", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(args, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func (a *app) validate(paths []string, asJSON bool) error {
	files := []checkedFile{}
	for _, path := range paths {
		found := check(path)
		if len(found) == 0 {
			fmt.Fprintf(a.p.Stderr, "synapse: %s: there is no definition in it\n", cleanLine(path))
		}
		files = append(files, found...)
	}
	bad := 0
	for _, f := range files {
		if !f.Loads {
			bad++
		}
	}
	if asJSON {
		if err := printJSON(a.p.Stdout, map[string]any{"files": files}); err != nil {
			return err
		}
	} else {
		a.writeChecked(a.p.Stdout, files)
	}
	if bad > 0 {
		return &codedError{code: exitFailed, err: fmt.Errorf("%d of %s not load", bad, countDo(len(files), "definition")), quiet: asJSON}
	}
	return nil
}

func countDo(n int, what string) string {
	if n == 1 {
		return count(1, what) + " does"
	}
	return count(int64(n), what) + " do"
}

// check reads what is at a path.
func check(path string) []checkedFile {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		opt := agents.LoadOptions{Detect: true, StemName: foreign(path)}
		if agents.ProductOf(path) == "" && strings.EqualFold(filepath.Ext(path), ".toml") {
			opt = agents.LoadOptions{Origin: "codex"} // nobody else writes agents in TOML
		}
		return checked(path, agents.LoadFile(path, agents.LayerProject, opt))
	}
	// Native files must have a name and other products' need not, and a
	// directory may hold both.
	native := agents.LoadDir(path, agents.LayerProject, agents.LoadOptions{Detect: true, Hidden: true})
	other := agents.LoadDir(path, agents.LayerProject, agents.LoadOptions{Detect: true, Hidden: true, StemName: true})
	layer := agents.Layer{Kind: native.Kind, Name: native.Name, Root: native.Root}
	for _, from := range []struct {
		agents.Layer
		foreign bool
	}{{native, false}, {other, true}} {
		for _, d := range from.Defs {
			if foreign(d.Pos.File) == from.foreign {
				layer.Defs = append(layer.Defs, d)
			}
		}
		for _, d := range from.Diagnostics {
			if foreign(d.File) == from.foreign {
				layer.Diagnostics = append(layer.Diagnostics, d)
			}
		}
	}
	_, layer.Diagnostics = agents.Merge(layer) // says what is defined twice
	return checked("", layer)
}

// foreign reports whether a file is another product's, one of those that package
// agents knows or not: it lies below a directory whose name begins with a dot, as
// theirs do, and is not ours.
func foreign(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(abs); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if name := filepath.Base(dir); strings.HasPrefix(name, ".") {
			return name != ".synapse"
		}
	}
	return false
}

// checked reports the definitions of a layer by file and place. A file that was
// named is reported even when there is no definition in it; in a directory such
// files are passed over, but for those that should have been one.
func checked(path string, layer agents.Layer) []checkedFile {
	byFile := map[string][]*agents.Definition{}
	diags := map[string][]agents.Diagnostic{}
	var names []string
	note := func(file string) {
		if !slices.Contains(names, file) {
			names = append(names, file)
		}
	}
	for _, d := range layer.Defs {
		byFile[d.Pos.File] = append(byFile[d.Pos.File], d)
		note(d.Pos.File)
	}
	for _, d := range layer.Diagnostics {
		diags[d.File] = append(diags[d.File], d)
		if d.Severity == agents.Error {
			note(d.File)
		}
	}
	if path != "" && len(names) == 0 {
		note(path)
	}
	slices.Sort(names)
	var files []checkedFile
	for _, file := range names {
		defs := byFile[file]
		if len(defs) == 0 {
			files = append(files, checkedFile{Path: file, Diagnostics: checkedDiagnostics(diags[file])})
			continue
		}
		slices.SortStableFunc(defs, func(a, b *agents.Definition) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
		for i, d := range defs {
			f := checkedFile{
				Path: file, Loads: !d.Broken, Name: d.Name, Description: d.Description, Tools: d.ListedTools(), Model: d.Model,
			}
			// Of a file with several definitions each gets what is said of its
			// lines, and the first what is said of the file.
			f.Diagnostics = checkedDiagnostics(slices.DeleteFunc(slices.Clone(diags[file]), func(g agents.Diagnostic) bool {
				return i > 0 && g.Line < d.Pos.Line || i+1 < len(defs) && g.Line >= defs[i+1].Pos.Line
			}))
			files = append(files, f)
		}
	}
	return files
}

func checkedDiagnostics(diags []agents.Diagnostic) []checkedDiagnostic {
	out := []checkedDiagnostic{}
	for _, d := range diags {
		out = append(out, checkedDiagnostic{d.Severity, d.Code, d.Line, d.Column, d.Message, d.Hint})
	}
	return out
}

// writeChecked prints a line for each definition, and under it what is wrong,
// with the line of the file.
func (a *app) writeChecked(w io.Writer, files []checkedFile) {
	lines := map[string][]string{}
	for _, f := range files {
		sign := "✓"
		if !f.Loads {
			sign = "✗"
		}
		fmt.Fprintf(w, "%s %s", sign, cleanLine(f.Path))
		if f.Name != "" {
			fmt.Fprintf(w, ": %s", cleanLine(f.Name))
		}
		fmt.Fprintln(w)
		for _, d := range f.Diagnostics {
			if d.Severity == agents.Info && f.Loads && !a.flags.verbose {
				continue
			}
			at := agents.Pos{File: f.Path, Line: d.Line, Column: d.Column}
			fmt.Fprintf(w, "  %s: %s: %s [%s]\n", cleanLine(at.String()), d.Severity, cleanLine(d.Message), d.Code)
			if _, read := lines[f.Path]; !read {
				lines[f.Path] = readLinesOf(f.Path)
			}
			writeSnippet(w, lines[f.Path], d.Line, d.Column)
			if d.Hint != "" {
				fmt.Fprintf(w, "    way out: %s\n", cleanLine(d.Hint))
			}
		}
	}
}

// snippetWidth is how much of a line is shown.
const snippetWidth = 100

// writeSnippet shows a line of a file with a mark under the column.
func writeSnippet(w io.Writer, lines []string, line, column int) {
	if line < 1 || line > len(lines) {
		return
	}
	number := fmt.Sprintf("%5d | ", line)
	runes := []rune(strings.ReplaceAll(clean(strings.TrimRight(lines[line-1], "\r")), "\t", " "))
	at := min(max(column-1, 0), len(runes))
	from := 0
	if at > snippetWidth*3/4 { // keep the place in sight
		from = at - snippetWidth/2
	}
	lead := ""
	if from > 0 {
		lead = "…"
	}
	fmt.Fprintln(w, ansi.Truncate(number+lead+string(runes[from:]), len(number)+snippetWidth, "…"))
	if column > 0 {
		fmt.Fprintln(w, strings.Repeat(" ", len(number)-2)+"| "+strings.Repeat(" ", ansi.StringWidth(lead+string(runes[from:at])))+"^")
	}
}

// readLinesOf returns the lines of a file for snippets, none where there is no
// such file or where it is too large for a definition anyway.
func readLinesOf(path string) []string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > agents.MaxJSONSize {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	text := strings.TrimPrefix(strings.ToValidUTF8(string(data), "\uFFFD"), "\uFEFF")
	return strings.Split(text, "\n")
}
