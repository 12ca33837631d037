package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
)

// convertFlags are the flags of `agents convert`.
type convertFlags struct {
	to, as, stdinName, output       string
	write, overwrite, widen, dryRun bool
	asJSON                          bool
}

// What becomes of a definition that is converted.
const (
	convertedShown   = "shown" // on standard output
	convertedWritten = "written"
	convertedWould   = "would be written"
	convertedRefused = "refused" // a restriction can't be said
	convertedExists  = "exists"
	convertedBroken  = "broken"
)

// convertedFile is one entry of `agents convert --json`.
type convertedFile struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Output string `json:"output,omitempty"`
	Text   string `json:"text,omitempty"` // where it is written nowhere
	Why    string `json:"why,omitempty"`  // of what was not converted
	// Diagnostics say what the format can't say.
	Diagnostics []checkedDiagnostic `json:"diagnostics"`
}

func (a *app) agentsConvertCommand() *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "convert --to PRODUCT PATH|NAME…",
		Short: "Write definitions in another product's format",
		Long: `Writes definitions in the format of another product, or with --to synapse in the
native one. What is converted are files, those in directories and those that a pattern
fits, standard input ("-"), or agents by name. The body is kept to the byte and the
comments of the frontmatter are kept too.

What the format can't say is reported. Where that is a restriction, so that the agent
could do more there, the definition is not converted, unless --allow-widening says that
this is meant. What is written is read again to be sure.

Without -o and --write the result goes to standard output, which takes one definition.
--write puts the files where the product keeps its agents in the workspace. A file that
is there is left alone, unless --overwrite is given.

The exit code is 1 when one was not converted.`,
		Example: `  synapse agents convert --to cursor .claude/agents/reviewer.md
  synapse agents convert --to opencode .claude/agents --write
  synapse agents convert --to synapse claude:reviewer -o reviewer.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`%s` takes files, directories or names of agents; see `%s --help`", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.convert(args, &f) },
	}
	set := c.Flags()
	set.StringVar(&f.to, "to", "", "the `product` whose format is written: "+strings.Join(agents.ConvertTargets(), ", "))
	set.StringVar(&f.as, "as", "", "read the files as those of this `product`, wherever they lie")
	set.StringVar(&f.stdinName, "stdin-name", "stdin.md", "the `path` that standard input is taken to lie at")
	set.StringVarP(&f.output, "output", "o", "", "the `file` to write, or the directory for several")
	set.BoolVar(&f.write, "write", false, "write into the product's directory in the workspace")
	set.BoolVar(&f.overwrite, "overwrite", false, "replace files that are there")
	set.BoolVar(&f.widen, "allow-widening", false, "convert even where a restriction is lost")
	set.BoolVar(&f.dryRun, "dry-run", false, "write nothing, and say what would be written")
	set.BoolVar(&f.asJSON, "json", false, "the report as JSON")
	must(c.RegisterFlagCompletionFunc("to", oneOf(agents.ConvertTargets()...)))
	must(c.RegisterFlagCompletionFunc("as", oneOf(readable()...)))
	return c
}

func (a *app) convert(args []string, f *convertFlags) error {
	switch {
	case f.to == "":
		return usagef("--to is missing: want %s", strings.Join(agents.ConvertTargets(), ", "))
	case f.output != "" && f.write:
		return usagef("choose one of -o and --write")
	}
	if err := checkProduct("to", f.to, agents.ConvertTargets()); err != nil {
		return err
	}
	if f.as != "" {
		if err := checkProduct("as", f.as, readable()); err != nil {
			return err
		}
	}
	defs, texts, err := a.convertible(args, f)
	if err != nil {
		return err
	}
	c := &conversion{app: a, convertFlags: f, taken: map[string]string{}, files: []convertedFile{}}
	if err := c.place(len(defs)); err != nil {
		return err
	}
	for i, d := range defs {
		if err := c.convert(d, texts[i]); err != nil {
			return err
		}
	}
	return c.report()
}

// convertible reads what is to be converted, each definition with its file's
// text.
func (a *app) convertible(args []string, f *convertFlags) (defs []*agents.Definition, texts [][]byte, err error) {
	v := &validation{app: a, as: f.as, stdinName: f.stdinName, texts: map[string][]byte{}}
	add := func(d *agents.Definition, text []byte) {
		if !slices.ContainsFunc(defs, func(o *agents.Definition) bool { return o.Pos == d.Pos && o.Name == d.Name && d.Pos.File != "" }) {
			defs, texts = append(defs, d), append(texts, text)
		}
	}
	for _, arg := range args {
		if _, err := os.Stat(arg); arg != "-" && err != nil && !strings.ContainsAny(arg, "*?[{") {
			d, lookup := a.byName(arg)
			if lookup != nil {
				return nil, nil, usagef("%s: no such file, and %v", arg, lookup)
			}
			add(d, readText(d.Pos.File))
			continue
		}
		v.layers, v.named = nil, nil
		if err := v.readPath(arg); err != nil {
			return nil, nil, err
		}
		for _, layer := range v.layers {
			for _, d := range layer.Defs {
				text, known := v.texts[d.Pos.File]
				if !known {
					text = readText(d.Pos.File)
				}
				add(d, text)
			}
		}
	}
	if len(defs) == 0 {
		return nil, nil, errors.New("there is no definition to convert")
	}
	return defs, texts, nil
}

// byName finds an agent by its name, and reads its file anew: the user's switch
// is no part of what is converted.
func (a *app) byName(name string) (*agents.Definition, error) {
	opt, err := a.options()
	if err != nil {
		return nil, err
	}
	r, _, err := host.LoadRegistry(opt)
	if err != nil {
		return nil, err
	}
	d, err := named(r, name)
	if err != nil || d.Pos.File == "" || d.Layer == agents.LayerBuiltin {
		return d, err
	}
	layer := agents.LoadFile(d.Pos.File, d.Layer, agents.LoadOptions{Origin: d.Origin, StemName: d.Origin != agents.Native})
	for _, own := range layer.Defs {
		if own.Pos == d.Pos {
			return own, nil
		}
	}
	return d, nil
}

// A conversion writes definitions.
type conversion struct {
	*app
	*convertFlags
	dir   string            // to write into, "" for one file or none
	taken map[string]string // the definitions by the files that they go to
	files []convertedFile
}

// place chooses where n definitions go.
func (c *conversion) place(n int) error {
	switch info, err := os.Stat(c.output); {
	case c.write:
		opt, err := c.options()
		if err != nil {
			return err
		}
		c.dir = filepath.Join(opt.Workspace, filepath.FromSlash(agents.PlaceDir(c.to, agents.LayerWorkspace)))
	case c.output == "" && n > 1 && !c.asJSON:
		return usagef("standard output takes one definition, and there are %d: give -o DIR or --write", n)
	case c.output != "" && (n > 1 || strings.HasSuffix(c.output, "/") || err == nil && info.IsDir()):
		c.dir = c.output
	}
	return nil
}

// convert converts one definition, and keeps what came of it for the report.
// The error is one of writing.
func (c *conversion) convert(d *agents.Definition, text []byte) error {
	out := convertedFile{Path: d.Place(), Name: d.Name, Diagnostics: []checkedDiagnostic{}}
	fail := func(status, format string, args ...any) error {
		out.Status, out.Why = status, fmt.Sprintf(format, args...)
		c.files = append(c.files, out)
		return nil
	}
	if d.Broken {
		return fail(convertedBroken, "it does not load: `synapse agents validate` says why")
	}
	data, name, diags, err := agents.Convert(d, c.to, agents.ConvertOptions{Source: text, Force: c.widen})
	for _, g := range diags {
		out.Diagnostics = append(out.Diagnostics, checkedDiagnostic{g.Severity, g.Code, g.Line, g.Column, g.Message, g.Hint})
	}
	var wide *agents.WideningError
	switch {
	case errors.As(err, &wide):
		return fail(convertedRefused, "the agent could do more there; --allow-widening converts it all the same")
	case err != nil:
		return fail(convertedRefused, "%v", err)
	}
	file := c.output
	if c.dir != "" {
		file = filepath.Join(c.dir, name)
	}
	if file == "" {
		out.Status, out.Text = convertedShown, string(data)
		c.files = append(c.files, out)
		return nil
	}
	out.Output = file
	if other, ok := c.taken[file]; ok {
		return fail(convertedExists, "%s goes to the same file", other)
	}
	c.taken[file] = d.Place()
	_, err = os.Lstat(file)
	switch there := err == nil; {
	case there && !c.overwrite:
		return fail(convertedExists, "it is there already; --overwrite replaces it")
	case c.dryRun:
		out.Status = convertedWould
	case there:
		if err := replaceFile(file, data); err != nil {
			return err
		}
		out.Status = convertedWritten
	default:
		if err := writeNew(file, data); err != nil {
			return err
		}
		out.Status = convertedWritten
	}
	c.files = append(c.files, out)
	return nil
}

// report says what came of all of them.
func (c *conversion) report() error {
	bad := 0
	for _, f := range c.files {
		if f.Why != "" {
			bad++
		}
	}
	if c.asJSON {
		if err := printJSON(c.p.Stdout, map[string]any{"to": c.to, "files": c.files}); err != nil {
			return err
		}
	} else {
		for _, f := range c.files {
			c.say(f)
		}
	}
	if bad > 0 {
		return &codedError{code: exitFailed, quiet: c.asJSON, err: fmt.Errorf("%d of %s not converted", bad, countWere(len(c.files), "definition"))}
	}
	return nil
}

func countWere(n int, what string) string {
	if n == 1 {
		return count(1, what) + " was"
	}
	return count(int64(n), what) + " were"
}

// say prints one entry: files and text on standard output, all else beside.
func (c *conversion) say(f convertedFile) {
	for _, d := range f.Diagnostics {
		word := string(d.Severity)
		if d.Code == agents.CodeWidened && f.Why == "" {
			word = "widened"
		}
		fmt.Fprintf(c.p.Stderr, "%s: %s: %s [%s]\n", cleanLine(d.at(f.Path)), word, cleanLine(d.Message), d.Code)
	}
	switch {
	case f.Why != "":
		at := f.Path
		if f.Output != "" {
			at += " → " + f.Output
		}
		fmt.Fprintf(c.p.Stderr, "%s: not converted: %s\n", cleanLine(at), cleanLine(f.Why))
	case f.Status == convertedShown:
		text := f.Text
		if isTerminal(c.p.Stdout) {
			text = clean(text)
		}
		io.WriteString(c.p.Stdout, text)
	case f.Status == convertedWould:
		fmt.Fprintf(c.p.Stdout, "would write %s\n", cleanLine(f.Output))
	default:
		fmt.Fprintln(c.p.Stdout, cleanLine(f.Output))
	}
}
