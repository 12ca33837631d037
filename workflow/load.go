package workflow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/agents"
)

// Load reads the workflow files in a folder below dir. Nothing outside dir is
// read, whatever links say. A folder that is not there has none.
func Load(dir, folder string) (defs []*Definition, diags []agents.Diagnostic) {
	failed := func(err error) {
		diags = append(diags, agents.Diagnostic{
			Pos: agents.Pos{File: filepath.Join(dir, folder)}, Severity: agents.Error, Code: CodeSyntax, Message: "read workflows: " + err.Error(),
		})
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			failed(err)
		}
		return nil, diags
	}
	defer root.Close()
	files := root.FS()
	entries, err := fs.ReadDir(files, path.Clean(filepath.ToSlash(folder)))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			failed(err)
		}
		return nil, diags
	}
	byName := map[string]*Definition{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		name := path.Join(filepath.ToSlash(folder), e.Name())
		data, err := readFile(files, name)
		if err != nil {
			failed(err)
			continue
		}
		d, found := Parse(filepath.Join(dir, filepath.FromSlash(name)), data)
		diags = append(diags, found...)
		switch first := byName[d.Name]; {
		case agents.HasErrors(found):
		case first != nil:
			diags = append(diags, agents.Diagnostic{Pos: d.at("name", 0), Severity: agents.Error, Code: CodeDuplicate,
				Message: fmt.Sprintf("the workflow %q is in %s too, which is the one that counts", d.Name, first.File)})
		default:
			byName[d.Name] = d
			defs = append(defs, d)
		}
	}
	return defs, diags
}

func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Merge joins layers of workflows, low to high: a later one replaces an earlier
// one of its name.
func Merge(layers ...[]*Definition) []*Definition {
	byName := map[string]*Definition{}
	for _, layer := range layers {
		for _, d := range layer {
			byName[d.Name] = d
		}
	}
	out := make([]*Definition, 0, len(byName))
	for _, d := range byName {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}
