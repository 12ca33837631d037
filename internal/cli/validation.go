package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/host"
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
	// Elsewhere says what other products would do with the file, where that is
	// asked for; Fixed what has been mended.
	Elsewhere []agents.Fate       `json:"elsewhere,omitempty"`
	Fixed     []checkedDiagnostic `json:"fixed,omitempty"`

	origin string
}

type checkedDiagnostic struct {
	Severity agents.Severity `json:"severity"`
	Code     string          `json:"code"`
	Line     int             `json:"line"`
	Column   int             `json:"column"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint"`
}

func (d checkedDiagnostic) at(path string) string {
	return agents.Pos{File: path, Line: d.Line, Column: d.Column}.String()
}

// descriptionsCost is what the descriptions take of every prompt.
type descriptionsCost struct {
	Agents int `json:"agents"`
	Tokens int `json:"tokens"`
	Budget int `json:"budget"`
}

// A validation is one check of files.
type validation struct {
	*app
	as, stdinName string
	levels        map[string]agents.Severity // what codes count for, "" for nothing
	elsewhere     bool
	budget        int

	texts    map[string][]byte // of the files, by path
	stdin    []byte            // what standard input held, when it was read
	stdinOut bool              // and whether it goes on, mended
	fixed    map[string][]checkedDiagnostic

	layers []agents.Layer
	named  []string // files that were named, and are reported whatever is in them
	files  []checkedFile
	cost   descriptionsCost
}

// read reads what is at the paths, and without any the whole workspace.
func (v *validation) read(paths []string) error {
	v.layers, v.named = nil, nil
	if len(paths) == 0 {
		return v.readWorkspace()
	}
	for _, path := range paths {
		if err := v.readPath(path); err != nil {
			return err
		}
	}
	return nil
}

// options of reading files: by where they lie, or as --as says.
func (v *validation) loadOptions() agents.LoadOptions {
	if v.as != "" {
		return agents.LoadOptions{Origin: v.as, StemName: v.as != agents.Native, Hidden: true}
	}
	return agents.LoadOptions{Detect: true, Hidden: true}
}

func (v *validation) readPath(path string) error {
	if path == "-" {
		return v.readStdin()
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		layer := agents.LoadDir(path, agents.LayerProject, v.loadOptions())
		if len(layer.Defs) == 0 && !agents.HasErrors(layer.Diagnostics) {
			fmt.Fprintf(v.p.Stderr, "synapse: %s: there is no definition in it\n", cleanLine(path))
		}
		v.layers = append(v.layers, layer)
		return nil
	case err != nil && strings.ContainsAny(path, "*?[{"):
		found, err := doublestar.FilepathGlob(path, doublestar.WithFilesOnly())
		if err != nil {
			return usagef("the pattern %q can't be read: %v", path, err)
		}
		if len(found) == 0 {
			return usagef("no file fits the pattern %q", path)
		}
		slices.Sort(found)
		for _, file := range found {
			v.readFile(file)
		}
		return nil
	}
	v.readFile(path)
	return nil
}

func (v *validation) readFile(path string) {
	v.layers = append(v.layers, agents.LoadFile(path, agents.LayerProject, v.loadOptions()))
	v.named = append(v.named, path)
}

func (v *validation) readStdin() error {
	if v.stdin == nil {
		data, err := io.ReadAll(io.LimitReader(v.p.Stdin, agents.MaxJSONSize+1))
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		v.stdin = append([]byte{}, data...)
	}
	file := v.stdinName
	opt := agents.ParseOptions{Layer: agents.LayerProject, Origin: v.as, StemName: v.as != "" && v.as != agents.Native}
	if v.as == "" {
		opt.Origin, opt.StemName = agents.Detect(file)
	}
	layer := agents.Layer{Kind: agents.LayerProject, Name: file}
	if strings.EqualFold(filepath.Ext(file), ".json") || strings.EqualFold(filepath.Ext(file), ".jsonc") {
		layer.Defs, layer.Diagnostics = agents.ParseJSON(file, v.stdin, opt)
	} else {
		d, diags := agents.Parse(file, v.stdin, opt)
		layer.Diagnostics = diags
		if d != nil {
			layer.Defs = append(layer.Defs, d)
		}
	}
	v.layers = append(v.layers, layer)
	v.named = append(v.named, file)
	v.texts[file] = v.stdin
	return nil
}

// readWorkspace reads what a session in the workspace would: its own
// definitions, and those of other products in it.
func (v *validation) readWorkspace() error {
	opt, err := v.app.options()
	if err != nil {
		return err
	}
	layers, err := host.LoadLayers(opt)
	if err != nil {
		return err
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	found := 0
	for _, layer := range layers {
		switch layer.Kind {
		case agents.LayerWorkspace, agents.LayerProject, agents.LayerCustomDir, agents.LayerCustomJSON:
			found += len(layer.Defs)
			v.layers = append(v.layers, relativeLayer(layer, here))
		}
	}
	if found == 0 {
		fmt.Fprintln(v.p.Stderr, "synapse: there is no definition in this workspace")
	}
	return nil
}

// relativeLayer names the files of a layer as seen from a directory.
func relativeLayer(layer agents.Layer, here string) agents.Layer {
	short := func(file string) string { return relativePath(file, here) }
	out := layer
	out.Defs, out.Diagnostics = nil, nil
	for _, d := range layer.Defs {
		c := d.Clone()
		c.Pos.File = short(d.Pos.File)
		out.Defs = append(out.Defs, c)
	}
	for _, d := range layer.Diagnostics {
		d.File = short(d.File)
		out.Diagnostics = append(out.Diagnostics, d)
	}
	return out
}

// relativePath names a file as seen from a directory, where it lies below it.
func relativePath(file, here string) string {
	if rel, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// judge looks at what was read as a whole, and makes of it what is reported.
func (v *validation) judge() {
	var all agents.Layer
	seen := map[string]bool{}
	turn := map[string]int{} // in which the files were named
	groups := map[string][]*agents.Definition{}
	for i, layer := range v.layers {
		// The same file may be named twice.
		fresh := map[string]bool{}
		isFresh := func(file string) bool {
			if seen[file] && !fresh[file] {
				return false
			}
			if !seen[file] {
				turn[file] = i
			}
			seen[file], fresh[file] = true, true
			return true
		}
		for _, d := range layer.Defs {
			if isFresh(d.Pos.File) {
				all.Defs = append(all.Defs, d)
				root := agents.PlaceRoot(d.Pos.File)
				groups[root] = append(groups[root], d)
			}
		}
		for _, d := range layer.Diagnostics {
			if isFresh(d.File) {
				all.Diagnostics = append(all.Diagnostics, d)
			}
		}
	}
	v.cost.Budget = v.budget
	for _, defs := range groups {
		all.Diagnostics = append(all.Diagnostics, v.lint(defs)...)
	}
	slices.SortStableFunc(all.Diagnostics, func(x, y agents.Diagnostic) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), cmp.Compare(x.Code, y.Code), cmp.Compare(x.Message, y.Message))
	})
	v.files = v.checked(all)
	slices.SortStableFunc(v.files, func(x, y checkedFile) int { return cmp.Compare(turn[x.Path], turn[y.Path]) })
}

// lint looks at the definitions of one workspace, or of none: what is defined
// twice, and what is odd. Those that another one replaces are judged alone.
func (v *validation) lint(defs []*agents.Definition) []agents.Diagnostic {
	byOrigin := map[string]*agents.Layer{}
	for _, d := range defs {
		if byOrigin[d.Origin] == nil {
			byOrigin[d.Origin] = &agents.Layer{Kind: d.Layer}
		}
		byOrigin[d.Origin].Defs = append(byOrigin[d.Origin].Defs, d)
	}
	var layers []agents.Layer
	for _, origin := range slices.Backward(agents.ProductNames()) {
		if layer := byOrigin[origin]; layer != nil {
			layers = append(layers, *layer)
		}
	}
	if layer := byOrigin[agents.Native]; layer != nil {
		layers = append(layers, *layer)
	}
	r, diags := agents.Merge(layers...)
	opt := agents.LintOptions{Budget: v.budget}
	together := r.All()
	diags = append(diags, agents.Lint(together, opt)...)
	n, tokens := agents.DescriptionCost(together)
	v.cost.Agents, v.cost.Tokens = v.cost.Agents+n, v.cost.Tokens+tokens
	judged := map[agents.Pos]bool{}
	for _, d := range together {
		judged[d.Pos] = true
	}
	for _, d := range defs {
		if !judged[d.Pos] {
			diags = append(diags, agents.Lint([]*agents.Definition{d}, opt)...)
		}
	}
	return diags
}

// checked reports the definitions of each file by place. A file that was named is
// reported even when there is no definition in it; in a directory such files are
// passed over, but for those that should have been one.
func (v *validation) checked(all agents.Layer) []checkedFile {
	byFile := map[string][]*agents.Definition{}
	diags := map[string][]agents.Diagnostic{}
	names := slices.Clone(v.named)
	for _, d := range all.Defs {
		byFile[d.Pos.File] = append(byFile[d.Pos.File], d)
		names = append(names, d.Pos.File)
	}
	for _, d := range all.Diagnostics {
		diags[d.File] = append(diags[d.File], d)
		if d.Severity == agents.Error {
			names = append(names, d.File)
		}
	}
	slices.Sort(names)
	files := []checkedFile{}
	for _, file := range slices.Compact(names) {
		if _, read := v.texts[file]; !read {
			v.texts[file] = readText(file)
		}
		defs := byFile[file]
		slices.SortStableFunc(defs, func(a, b *agents.Definition) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
		if len(defs) == 0 {
			f := checkedFile{Path: file, Diagnostics: v.weigh(diags[file])}
			f.origin, _ = agents.Detect(file)
			files = append(files, f)
			continue
		}
		for i, d := range defs {
			f := checkedFile{
				Path: file, Loads: !d.Broken, Name: d.Name, Description: d.Description, Tools: d.ListedTools(), Model: d.Model,
				origin: d.Origin,
			}
			// Of a file with several definitions each gets what is said of its
			// lines, and the first what is said of the file.
			own := slices.DeleteFunc(slices.Clone(diags[file]), func(g agents.Diagnostic) bool {
				return i > 0 && g.Line < d.Pos.Line || i+1 < len(defs) && g.Line >= defs[i+1].Pos.Line
			})
			if i == 0 {
				f.Fixed = v.fixed[file]
				if v.elsewhere && len(v.texts[file]) > 0 && !isJSON(file) {
					f.Elsewhere = agents.Elsewhere(file, v.texts[file], d.Origin)
					own = append(own, agents.LintFile(file, v.texts[file], d.Origin)...)
				}
			}
			f.Diagnostics = v.weigh(own)
			files = append(files, f)
		}
	}
	return files
}

func isJSON(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".json" || ext == ".jsonc"
}

// weigh gives what was found the severity that the user wants of it.
func (v *validation) weigh(diags []agents.Diagnostic) []checkedDiagnostic {
	out := []checkedDiagnostic{}
	for _, d := range diags {
		severity, set := v.levels[d.Code]
		switch {
		case !set:
			severity = d.Severity
		case severity == "":
			continue
		}
		out = append(out, checkedDiagnostic{severity, d.Code, d.Line, d.Column, d.Message, d.Hint})
	}
	return out
}
