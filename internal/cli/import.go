package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/agents"
)

// importFlags are the flags of `agents import`.
type importFlags struct {
	user, project, native, update, overwrite, dryRun, asJSON bool
	as, ref, below                                           string
	only                                                     []string
}

// What becomes of a definition that is imported.
const (
	importNew     = "new"
	importUpdated = "updated"
	importSame    = "unchanged"
	importEdited  = "edited"  // here, since it was imported
	importExists  = "exists"  // and was not imported from there
	importBroken  = "broken"  // it does not load
	importGone    = "gone"    // from the source
	importDeleted = "deleted" // here
)

// importedFile is one entry of `agents import --json`.
type importedFile struct {
	Name   string `json:"name"`
	From   string `json:"from"` // its path in the source
	Path   string `json:"path"` // where it goes
	Status string `json:"status"`
	Why    string `json:"why,omitempty"` // of what was not written
	// Diagnostics are what is odd about it as it is here.
	Diagnostics []checkedDiagnostic `json:"diagnostics"`

	refused, existed bool
	writes           bool // the file, or what is known of it
	before, data     []byte
	record           provenance
}

func (a *app) agentsImportCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import [SOURCE…]",
		Short: "Copy definitions from elsewhere, and follow them",
		Long: `Copies definitions from a directory, a file or a git repository (an address that git
can fetch), for the workspace or with --user for every workspace. Files of another
product go where that product's files are read, as they are to the byte; with --native
they are converted to the native format, as are those in JSON.

Where each comes from is kept in .synapse/imports.json beside them: source, commit,
digest and date. --update fetches the sources again, all of them or those that are
named, and takes over what has changed there. A file that has been edited here since is
left alone, unless --overwrite is given; so is one that was not imported from there.

The exit code is 1 when something could not be imported.`,
		Example: `  synapse agents import ../other-project
  synapse agents import https://example.com/team/agents.git --ref v2 --as claude --user
  synapse agents import --update --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.importAgents(cmd.Context(), args, &f) },
	}
	set := c.Flags()
	set.BoolVar(&f.user, "user", false, "for every workspace of this user")
	set.BoolVar(&f.project, "project", false, "for this workspace (the default)")
	set.StringVar(&f.as, "as", "", "read the files as those of this `product`, wherever they lie")
	set.StringVar(&f.ref, "ref", "", "the branch, tag or commit of a repository, instead of its default `branch`")
	set.StringVar(&f.below, "path", "", "import only what lies below this `directory` of the source")
	set.StringArrayVar(&f.only, "only", nil, "import only the agents of these `names`, comma-separated")
	set.BoolVar(&f.native, "native", false, "convert to the native format")
	set.BoolVar(&f.update, "update", false, "take over what has changed at the source")
	set.BoolVar(&f.overwrite, "overwrite", false, "replace files that have been edited here, or were not imported from there")
	set.BoolVar(&f.dryRun, "dry-run", false, "show what would change, and change nothing")
	set.BoolVar(&f.asJSON, "json", false, "the report as JSON")
	must(c.RegisterFlagCompletionFunc("as", oneOf(readable()...)))
	return c
}

func (a *app) importAgents(ctx context.Context, sources []string, f *importFlags) error {
	switch {
	case f.user && f.project:
		return usagef("choose one of --user and --project")
	case len(sources) == 0 && !f.update:
		return usagef("give a SOURCE to import from, or --update to follow those there are")
	case len(sources) == 0 && (f.ref != "" || f.as != "" || f.native || f.below != ""):
		return usagef("--update follows each source as it was imported: --ref, --as, --path and --native go with a SOURCE")
	case f.below != "" && !filepath.IsLocal(f.below):
		return usagef("--path %q: want a directory below the source", f.below)
	}
	if f.as != "" {
		if err := checkProduct("as", f.as, readable()); err != nil {
			return err
		}
	}
	opt, err := a.options()
	if err != nil {
		return err
	}
	imp := &importer{app: a, importFlags: f, level: agents.LayerWorkspace, now: time.Now().UTC().Format(time.RFC3339), files: []*importedFile{}}
	root := opt.Workspace
	if f.user {
		if opt.Home == "" {
			return errors.New("there is no home directory to import for every workspace into")
		}
		root, imp.level = opt.Home, agents.LayerHome
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return fmt.Errorf("import: %s is no directory", root)
	}
	if imp.known, err = readImports(root); err != nil {
		return err
	}
	if len(sources) == 0 {
		err = imp.followAll(ctx)
	} else {
		for _, source := range sources {
			if err = imp.from(ctx, source); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if err := imp.write(); err != nil {
		return err
	}
	return imp.report()
}

// An importer copies definitions to one level.
type importer struct {
	*app
	*importFlags
	level agents.LayerKind
	known *imports
	now   string
	files []*importedFile
}

// followAll looks at every source again, each as it was imported.
func (m *importer) followAll(ctx context.Context) error {
	type origin struct {
		source, ref, as string
		native          bool
	}
	var origins []origin
	for _, p := range m.known.List {
		if o := (origin{p.Source, p.Ref, p.As, p.Native}); !slices.Contains(origins, o) {
			origins = append(origins, o)
		}
	}
	if len(origins) == 0 {
		fmt.Fprintln(m.p.Stderr, "synapse: nothing has been imported here")
	}
	only := splitAll(m.only)
	for _, o := range origins {
		src, err := m.openSource(ctx, o.source, o.ref)
		if err != nil {
			return err
		}
		found, err := m.collect(src, o.as, o.native)
		if err != nil {
			src.remove()
			return err
		}
		for _, p := range m.known.List {
			if (origin{p.Source, p.Ref, p.As, p.Native}) != o || len(only) > 0 && !slices.Contains(only, p.Name) {
				continue
			}
			i := slices.IndexFunc(found, func(f *importedFile) bool {
				return f.From == p.Path && (f.Name == p.Name || !isJSON(p.Path))
			})
			if i < 0 {
				m.files = append(m.files, &importedFile{Name: p.Name, From: p.Path, Path: p.File, Status: importGone, Why: "it is not at the source any more; the copy stays", Diagnostics: []checkedDiagnostic{}})
				continue
			}
			m.judge(found[i])
			m.files = append(m.files, found[i])
		}
		src.remove()
	}
	return nil
}

// from imports what is at a source.
func (m *importer) from(ctx context.Context, source string) error {
	src, err := m.openSource(ctx, source, m.ref)
	if err != nil {
		return err
	}
	defer src.remove()
	found, err := m.collect(src, m.as, m.native)
	if err != nil {
		return err
	}
	only := splitAll(m.only)
	for _, f := range found {
		if len(only) > 0 && !slices.Contains(only, f.Name) {
			continue
		}
		if other := slices.IndexFunc(m.files, func(o *importedFile) bool { return o.Path == f.Path && !o.refused }); other >= 0 && !f.refused {
			f.refuse(importExists, "%s goes to the same file", m.files[other].From)
		}
		m.judge(f)
		m.files = append(m.files, f)
	}
	for _, name := range only {
		if !slices.ContainsFunc(found, func(f *importedFile) bool { return f.Name == name }) {
			return fmt.Errorf("import from %s: there is no agent %q", src.name, name)
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("import from %s: there is no definition in it", src.name)
	}
	return nil
}

// collect reads the definitions of a source, with where each goes.
func (m *importer) collect(src *importSource, as string, native bool) ([]*importedFile, error) {
	dir := filepath.Join(src.dir, m.below)
	v := &validation{app: m.app, as: as}
	var layer agents.Layer
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("import from %s: %w", src.name, err)
	case info.IsDir():
		layer = agents.LoadDir(dir, agents.LayerProject, v.loadOptions())
	default:
		layer = agents.LoadFile(dir, agents.LayerProject, v.loadOptions())
	}
	base := src.dir
	if !info.IsDir() && m.below == "" {
		base = filepath.Dir(src.dir)
	}
	var found []*importedFile
	for _, d := range layer.Defs {
		rel, err := filepath.Rel(base, d.Pos.File)
		if err != nil {
			return nil, fmt.Errorf("import from %s: %w", src.name, err)
		}
		var diags []agents.Diagnostic
		for _, g := range layer.Diagnostics {
			if g.File == d.Pos.File {
				g.File = filepath.ToSlash(rel)
				diags = append(diags, g)
			}
		}
		// A repository holds much Markdown that is no definition.
		if d.Broken && agents.PlaceRoot(d.Pos.File) == "" && (d.Name == "" || slices.ContainsFunc(diags, func(g agents.Diagnostic) bool { return g.Code == agents.CodeNoFrontmatter })) {
			continue
		}
		f := &importedFile{Name: d.Name, From: filepath.ToSlash(rel), Diagnostics: []checkedDiagnostic{}}
		f.record = provenance{
			Name: d.Name, Source: src.name, Path: f.From, Ref: src.ref, Commit: src.commit, Changed: src.changed, As: as, Native: native, Date: m.now,
		}
		if err := m.prepare(f, d, diags, native); err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

func (f *importedFile) refuse(status, format string, args ...any) {
	f.Status, f.Why, f.refused = status, fmt.Sprintf(format, args...), true
}

// prepare decides which file a definition goes to, and what that holds.
func (m *importer) prepare(f *importedFile, d *agents.Definition, diags []agents.Diagnostic, native bool) error {
	note := func(list []agents.Diagnostic) {
		for _, g := range list {
			f.Diagnostics = append(f.Diagnostics, checkedDiagnostic{g.Severity, g.Code, g.Line, g.Column, g.Message, g.Hint})
		}
	}
	note(diags)
	if d.Broken {
		f.refuse(importBroken, "it does not load")
		return nil
	}
	text := readText(d.Pos.File)
	f.record.SourceDigest = digestOf(text)
	copied := !native && !isJSON(d.Pos.File)
	if copied {
		// What the file points to does not come along.
		again, more := agents.Parse(d.Pos.File, text, agents.ParseOptions{Origin: d.Origin, StemName: true})
		copied = again != nil && !again.Broken && !slices.ContainsFunc(more, func(g agents.Diagnostic) bool { return g.Code == agents.CodeBadSchema })
	}
	if copied {
		f.data = text
		f.Path = agents.PlaceDir(d.Origin, m.level) + "/" + agents.PathInPlace(d.Pos.File)
	} else {
		data, name, more, err := agents.Convert(d, agents.Native, agents.ConvertOptions{Source: text})
		note(more)
		if err != nil {
			f.refuse(importBroken, "%v", err)
			return nil
		}
		f.data, f.Path = data, agents.PlaceDir(agents.Native, m.level)+"/"+name
	}
	f.record.File, f.record.Digest = f.Path, digestOf(f.data)
	return nil
}

// judge says what becomes of a file, from what is here and what is known of it.
func (m *importer) judge(f *importedFile) {
	if f.refused {
		return
	}
	old := m.known.find(f.Path)
	target := filepath.Join(m.known.root, filepath.FromSlash(f.Path))
	before, err := os.ReadFile(target)
	f.before, f.existed = before, err == nil
	switch edited := old != nil && f.existed && digestOf(before) != old.Digest; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		f.refuse(importExists, "%v", err)
	case !f.existed && old != nil && m.update:
		f.Status, f.Why = importDeleted, "it was deleted here, and stays so"
	case !f.existed:
		f.Status, f.writes = importNew, true
	case bytes.Equal(before, f.data):
		f.Status = importSame
		// It may have been edited to what it now is at the source, or come here
		// by other means: it is known from now on.
		f.writes = old == nil || old.Digest != f.record.Digest || old.Commit != f.record.Commit && m.update
	case edited && old.SourceDigest == f.record.SourceDigest && !m.overwrite:
		f.Status, f.Why = importEdited, "it has been edited here, and has not changed at the source"
	case edited && !m.overwrite:
		f.refuse(importEdited, "it has been edited here since it was imported; --overwrite replaces it")
	case old != nil && old.Source != f.record.Source && !m.overwrite:
		f.refuse(importExists, "it was imported from %s; --overwrite replaces it", old.Source)
	case old == nil && !m.overwrite:
		f.refuse(importExists, "it is there and was not imported; --overwrite replaces it")
	case !m.update && !m.overwrite:
		f.refuse(importExists, "it was imported before; --update takes over what has changed")
	default:
		f.Status, f.writes = importUpdated, true
	}
}

// write copies what is to be copied, each file with its record, so that what was
// written before something failed is known.
func (m *importer) write() error {
	if m.dryRun {
		return nil
	}
	for _, f := range m.files {
		if !f.writes {
			continue
		}
		target := filepath.Join(m.known.root, filepath.FromSlash(f.Path))
		var err error
		switch f.Status {
		case importNew:
			err = writeNew(target, f.data)
		case importUpdated:
			err = replaceFile(target, f.data)
		}
		if err != nil {
			return err
		}
		m.known.set(f.record)
		if err := m.known.save(); err != nil {
			return err
		}
	}
	return nil
}

// report says what came of all of them.
func (m *importer) report() error {
	refused := 0
	for _, f := range m.files {
		if f.refused {
			refused++
		}
	}
	if m.asJSON {
		if err := printJSON(m.p.Stdout, map[string]any{"files": m.files}); err != nil {
			return err
		}
	} else if err := m.say(); err != nil {
		return err
	}
	if refused > 0 {
		return &codedError{code: exitFailed, quiet: m.asJSON, err: fmt.Errorf("%d of %s not imported", refused, countWere(len(m.files), "definition"))}
	}
	return nil
}

func (m *importer) say() error {
	var t table
	for _, f := range m.files {
		if m.dryRun && f.writes && f.Status != importSame {
			from := f.Path
			if !f.existed {
				from = os.DevNull
			}
			text := string(diff.Diff(from, f.before, f.Path, f.data))
			if isTerminal(m.p.Stdout) {
				text = clean(text)
			}
			if _, err := m.p.Stdout.Write([]byte(text)); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		where := f.Path
		if where == "" || f.refused {
			where = f.From
		}
		t.row(f.Status, where, f.Why)
		for _, d := range f.Diagnostics {
			if d.Severity == agents.Info && !f.refused && !m.flags.verbose {
				continue
			}
			t.note("  " + cleanLine(d.at(f.From)) + ": " + string(d.Severity) + ": " + cleanLine(d.Message) + " [" + d.Code + "]")
		}
	}
	if err := t.write(m.p.Stdout, 0); err != nil {
		return err
	}
	if m.dryRun {
		fmt.Fprintln(m.p.Stderr, "synapse: nothing has been written (--dry-run)")
	}
	return nil
}
