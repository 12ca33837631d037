package tool

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// junk are directories and files that nobody looks for by a pattern. A path
// argument that names one is walked all the same.
var junk = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".DS_Store": true,
	"node_modules": true, "__pycache__": true, ".venv": true, ".tox": true,
	".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true,
}

// maxWalk is how many entries one walk looks at.
const maxWalk = 500_000

// A walk is what a walk over a tree has come to.
type walk struct {
	seen       int // entries looked at
	unreadable int // directories that could not be listed
	full       bool
}

var errFull = errors.New("too many entries")

// walkTree calls visit for every file and directory below the directory p that
// neither .gitignore files nor junk leave out, the start not included, each
// directory before what is in it. It follows no symbolic link.
func (w *Workspace) walkTree(ctx context.Context, p place, visit func(p place, d fs.DirEntry)) (walk, error) {
	var st walk
	ignore := p.ignoreAbove()
	err := st.dir(ctx, p, ignore, visit)
	if errors.Is(err, errFull) {
		st.full, err = true, nil
	}
	return st, err
}

func (st *walk) dir(ctx context.Context, p place, ignore *ignoreFile, visit func(place, fs.DirEntry)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := p.list()
	if err != nil {
		st.unreadable++
		return nil
	}
	if slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == ".gitignore" }) {
		ignore = p.ignoreHere(ignore)
	}
	for _, d := range entries {
		if st.seen++; st.seen > maxWalk {
			return errFull
		}
		name := d.Name()
		if junk[name] || strings.HasPrefix(name, tempPrefix) {
			continue
		}
		child := p.at(path.Join(p.rel, name))
		if ignore.ignored(child.rel, d.IsDir()) {
			continue
		}
		visit(child, d)
		if d.IsDir() {
			if err := st.dir(ctx, child, ignore, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the entries of the directory p by name.
func (p place) list() ([]fs.DirEntry, error) {
	f, err := p.root.Open(filepath.FromSlash(p.rel))
	if err != nil {
		return nil, plainError(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, plainError(err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// ignoreAbove returns the rules of the directories above p, p not included.
func (p place) ignoreAbove() *ignoreFile {
	var ignore *ignoreFile
	top := p.at(".")
	exclude := top.at(".git/info/exclude")
	if data, ok := exclude.readIgnore(); ok {
		ignore = parseIgnore("", data, nil)
	}
	if p.rel == "." {
		return ignore
	}
	ignore = top.ignoreHere(ignore)
	for i, c := range p.rel {
		if c == '/' {
			ignore = p.at(p.rel[:i]).ignoreHere(ignore)
		}
	}
	return ignore
}

// ignoreHere adds the rules of the .gitignore in the directory p.
func (p place) ignoreHere(above *ignoreFile) *ignoreFile {
	data, ok := p.at(path.Join(p.rel, ".gitignore")).readIgnore()
	if !ok {
		return above
	}
	scope := p.rel
	if scope == "." {
		scope = ""
	}
	return parseIgnore(scope, data, above)
}

func (p place) readIgnore() ([]byte, bool) {
	f, info, err := p.open()
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if info.IsDir() || info.Size() > maxIgnoreFile {
		return nil, false
	}
	data, err := readUpTo(f, info.Size(), maxIgnoreFile)
	return data, err == nil
}
