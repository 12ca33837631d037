package agents

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
	"syscall"
)

// LoadOptions says how files are read. The zero value reads native files.
type LoadOptions struct {
	// StemName and Origin are those of [ParseOptions].
	StemName bool
	Origin   string
	// Within, where set, is a directory that must contain the one that is
	// read, symlinks followed: a workspace that is not trusted yet must not
	// bring in files from elsewhere.
	Within string
	// Detect reads each file as [Detect] says of its path; Origin and StemName
	// are not looked at.
	Detect bool
	// Hidden descends into every directory: into those whose name begins with a
	// dot, and with a product as Origin also where the product does not look.
	// The directories of version control are left out all the same.
	Hidden bool
	// Note, where set, is called with each path that the result depends on,
	// before it is looked at, also with those where nothing is.
	Note func(path string)
}

func (o *LoadOptions) note(path string) {
	if o.Note != nil {
		o.Note(path)
	}
}

// LoadDir reads every definition below a directory: files whose name ends in
// ".md", in any letter case, but for those whose name begins with a dot; with a
// product as origin, the files that are definitions there.
// Symlinks are followed where they stay in the directory. Definitions and
// diagnostics are in byte order of the paths. A directory that does not exist
// is an empty layer.
func LoadDir(root string, kind LayerKind, opt LoadOptions) Layer {
	layer := Layer{Kind: kind, Name: root, Root: root}
	opt.note(root)
	real, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return layer
	}
	fail := func(code, hint, format string, args ...any) Layer {
		layer.Diagnostics = append(layer.Diagnostics, Diagnostic{
			Pos: Pos{File: root}, Severity: Error, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
		})
		return layer
	}
	if err != nil {
		return fail(linkCode(err), "", "can't read the directory: %v", cause(err))
	}
	if opt.Within != "" {
		limit, err := filepath.EvalSymlinks(opt.Within)
		if err != nil {
			return fail(CodeUnreadable, "", "can't tell whether the directory is within %s: %v", opt.Within, cause(err))
		}
		if _, ok := below(limit, real); !ok {
			return fail(CodeOutsideRoot, "", "the directory is a symlink to %s, outside %s", real, opt.Within)
		}
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() {
		return fail(CodeNotAFile, "", "a file, not a directory")
	}
	dir, err := os.OpenRoot(real)
	if err != nil {
		return fail(CodeUnreadable, "", "can't read the directory: %v", cause(err))
	}
	defer dir.Close()
	l := &loader{layer: &layer, opt: opt, product: findProduct(opt.Origin), dir: dir, real: real, seen: map[string]bool{}}
	l.walk(".", ".")
	// Symlinks come last, so that a file that is there anyway goes by its own
	// path. They may lead to more of them.
	for len(l.links) > 0 {
		rel := l.links[0]
		l.links = l.links[1:]
		l.link(rel)
	}
	slices.SortStableFunc(layer.Defs, func(a, b *Definition) int { return strings.Compare(a.Pos.File, b.Pos.File) })
	sortDiagnostics(layer.Diagnostics)
	return layer
}

// LoadFile reads the definitions of one file: JSON when its name ends in
// ".json" or ".jsonc", else Markdown, or the format of the product that is its
// origin. Unlike in a directory, a symlink may lead anywhere.
func LoadFile(file string, kind LayerKind, opt LoadOptions) Layer {
	layer := Layer{Kind: kind, Name: file, Root: filepath.Dir(file)}
	opt.note(file)
	fail := func(code, format string, args ...any) Layer {
		d := &Definition{Layer: kind, Pos: Pos{File: file}, Broken: true, Disabled: true}
		layer.Defs = []*Definition{d}
		layer.Diagnostics = []Diagnostic{{Pos: d.Pos, Severity: Error, Code: code, Message: fmt.Sprintf(format, args...)}}
		return layer
	}
	if strings.HasPrefix(filepath.Base(file), ".") {
		return fail(CodeHiddenFile, "a file whose name begins with a dot is no definition")
	}
	info, err := os.Stat(file)
	if err != nil {
		return fail(linkCode(err), "can't read the file: %v", cause(err))
	}
	if !info.Mode().IsRegular() {
		return fail(CodeNotAFile, "not a file, but %s", modeName(info.Mode()))
	}
	root := filepath.Dir(file)
	if opt.Within != "" {
		root = opt.Within
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return fail(linkCode(err), "can't read the file: %v", cause(err))
	}
	dir, err := os.OpenRoot(real)
	if err != nil {
		return fail(CodeUnreadable, "can't read the file: %v", cause(err))
	}
	defer dir.Close()
	abs, err := filepath.EvalSymlinks(file)
	if err != nil {
		return fail(linkCode(err), "can't read the file: %v", cause(err))
	}
	if _, ok := below(real, abs); !ok && opt.Within != "" {
		return fail(CodeOutsideRoot, "a symlink to %s, outside %s", abs, opt.Within)
	}
	f, err := os.Open(abs)
	if err != nil {
		return fail(CodeUnreadable, "can't read the file: %v", cause(err))
	}
	defer f.Close()
	limit := MaxFileSize
	isJSON := isJSONFile(file)
	if isJSON {
		limit = MaxJSONSize
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return fail(CodeUnreadable, "can't read the file: %v", cause(err))
	}
	rel, ok := below(real, abs)
	if !ok {
		rel = filepath.Base(file)
	}
	l := &loader{layer: &layer, opt: opt, product: findProduct(opt.Origin), dir: dir, real: real}
	l.parse(file, filepath.ToSlash(rel), data)
	return layer
}

// loader reads one directory.
type loader struct {
	layer   *Layer
	opt     LoadOptions
	product *product // nil for native files
	dir     *os.Root
	real    string          // of dir, absolute or relative, symlinks followed
	seen    map[string]bool // directories and files by their real path below dir
	links   []string        // symlinks not yet followed
}

// show returns a path for people: the layer's root as it was named, and what
// is below it.
func (l *loader) show(rel string) string { return filepath.Join(l.layer.Root, filepath.FromSlash(rel)) }

// at is a path below the directory as the system knows it.
func (l *loader) at(rel string) string { return filepath.Join(l.real, filepath.FromSlash(rel)) }

func (l *loader) report(rel string, sev Severity, code, format string, args ...any) {
	l.layer.Diagnostics = append(l.layer.Diagnostics, Diagnostic{
		Pos: Pos{File: l.show(rel)}, Severity: sev, Code: code, Message: fmt.Sprintf(format, args...),
	})
}

// broken reports a file that could not be read, and keeps its place: it may
// have been meant to replace another definition.
func (l *loader) broken(rel, code, format string, args ...any) {
	l.report(rel, Error, code, format, args...)
	l.layer.Defs = append(l.layer.Defs, &Definition{
		Layer: l.layer.Kind, Pos: Pos{File: l.show(rel)}, Broken: true, Disabled: true,
	})
}

// walk reads a directory. It is named twice: as it is shown, and where it
// really is, which differs below symlinks.
func (l *loader) walk(rel, real string) {
	l.seen[real] = true
	l.opt.note(l.at(real))
	f, err := l.dir.Open(real)
	if err != nil {
		l.report(rel, Error, CodeUnreadable, "can't read the directory: %v", cause(err))
		return
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil { // what was read before the error is used
		l.report(rel, Error, CodeUnreadable, "can't read the directory: %v", cause(err))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := e.Name()
		at, realAt := path.Join(rel, name), path.Join(real, name)
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			l.links = append(l.links, at)
		case e.IsDir():
			l.subdir(at, realAt)
		case l.wants(at):
			l.file(at, realAt, e.Type())
		}
	}
}

func (l *loader) subdir(rel, real string) {
	name := path.Base(rel)
	if l.product != nil && !l.product.Nested && !l.opt.Hidden {
		return
	}
	if strings.HasPrefix(name, ".") && (!l.opt.Hidden || slices.Contains([]string{".git", ".hg", ".svn"}, name)) {
		return
	}
	if l.wants(rel) {
		l.report(rel, Info, CodeNotAFile, "a directory, though its name ends like a file's; what is in it is read")
	}
	if !l.seen[real] {
		l.walk(rel, real)
	}
}

func (l *loader) file(rel, real string, mode fs.FileMode) {
	if l.seen[real] {
		return
	}
	l.seen[real] = true
	switch p := l.product; {
	case strings.HasPrefix(path.Base(rel), "."):
		l.report(rel, Info, CodeHiddenFile, "passed over: a file whose name begins with a dot is no definition")
		return
	case p != nil && p.PassOver != "" && strings.HasPrefix(path.Base(rel), p.PassOver):
		l.report(rel, Info, CodeHiddenFile, "passed over, as %s does with a name that begins with “%s”", p.Title, p.PassOver)
		return
	case !mode.IsRegular(): // opening a pipe would wait for a writer
		l.broken(rel, CodeNotAFile, "not a file, but %s", modeName(mode))
		return
	}
	limit := int64(MaxFileSize)
	if isJSONFile(rel) {
		limit = MaxJSONSize
	}
	data, err := l.read(real, limit)
	if err != nil {
		l.broken(rel, CodeUnreadable, "can't read the file: %v", cause(err))
		return
	}
	l.parse(l.show(rel), real, data)
}

// read reads a file up to one byte more than limit.
func (l *loader) read(real string, limit int64) ([]byte, error) {
	l.opt.note(l.at(real))
	f, err := l.dir.Open(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a file, but %s", modeName(info.Mode()))
	}
	data := make([]byte, 0, min(info.Size(), limit)+512)
	for {
		n, err := f.Read(data[len(data):min(int64(cap(data)), limit+1)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF || int64(len(data)) > limit:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = slices.Grow(data, len(data))
		}
	}
}

func (l *loader) parse(file, real string, data []byte) {
	opt := l.parseOptions(real)
	if l.opt.Detect {
		opt.Origin, opt.StemName = Detect(absolute(file))
	}
	if p := findProduct(opt.Origin); p != nil && p.PathNames {
		opt.Stem = p.pathName(absolute(file))
	}
	if isJSONFile(file) {
		defs, diags := ParseJSON(file, data, opt)
		l.layer.Defs = append(l.layer.Defs, defs...)
		l.layer.Diagnostics = append(l.layer.Diagnostics, diags...)
		return
	}
	d, diags := Parse(file, data, opt)
	if d != nil {
		l.layer.Defs = append(l.layer.Defs, d)
	}
	l.layer.Diagnostics = append(l.layer.Diagnostics, diags...)
}

// parseOptions are those for the file at real: what it points to is read below
// the loader's directory only.
func (l *loader) parseOptions(real string) ParseOptions {
	return ParseOptions{
		StemName: l.opt.StemName, Layer: l.layer.Kind, Origin: l.opt.Origin,
		ReadFile: func(name string) ([]byte, error) {
			rel := path.Join(path.Dir(real), name)
			if !filepath.IsLocal(filepath.FromSlash(rel)) {
				return nil, fmt.Errorf("outside %s", l.layer.Root)
			}
			data, err := l.read(rel, MaxFileSize)
			switch {
			case err != nil:
				return nil, cause(err)
			case len(data) > MaxFileSize:
				return nil, errors.New("larger than 1 MiB")
			}
			return data, nil
		},
	}
}

// link follows one symlink.
func (l *loader) link(rel string) {
	l.opt.note(l.at(rel))
	target, err := filepath.EvalSymlinks(l.at(rel))
	if err != nil {
		if l.wants(rel) {
			l.broken(rel, linkCode(err), "can't follow the symlink: %v", cause(err))
		}
		return
	}
	real, ok := below(l.real, target)
	info, err := os.Stat(target)
	if err != nil || !info.IsDir() && !l.wants(rel) {
		return
	}
	switch {
	case !ok && info.IsDir():
		l.report(rel, Warn, CodeOutsideRoot, "a symlink to %s, outside %s; not followed", target, l.layer.Root)
	case !ok:
		l.broken(rel, CodeOutsideRoot, "a symlink to %s, outside %s; not followed", target, l.layer.Root)
	case info.IsDir():
		real = filepath.ToSlash(real)
		if real == "." || strings.HasPrefix(rel, real+"/") {
			l.report(rel, Warn, CodeSymlinkLoop, "a symlink to the directory it is in; not followed")
			return
		}
		l.subdir(rel, real)
	default:
		l.file(rel, filepath.ToSlash(real), info.Mode().Type())
	}
}

// wants reports whether a file's name is that of a definition.
func (l *loader) wants(rel string) bool {
	switch {
	case l.opt.Detect && !isMarkdown(rel):
		return isOneOfDefinitions(absolute(l.show(rel)))
	case l.product != nil:
		return l.product.reads(rel)
	}
	return isMarkdown(rel)
}

// absolute makes a path absolute: which product's place it lies in may be told
// by directories above the one that was named.
func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}

func isMarkdown(name string) bool { return strings.EqualFold(path.Ext(name), ".md") }

func isJSONFile(name string) bool {
	ext := filepath.Ext(name)
	return strings.EqualFold(ext, ".json") || strings.EqualFold(ext, ".jsonc")
}

// below returns target relative to root, if it is in it.
func below(root, target string) (string, bool) {
	rootAbs, err1 := filepath.Abs(root)
	targetAbs, err2 := filepath.Abs(target)
	if err1 != nil || err2 != nil {
		return "", false
	}
	rel, err := filepath.Rel(rootAbs, targetAbs)
	return rel, err == nil && filepath.IsLocal(rel)
}

// linkCode is the code for a path that can't be followed.
func linkCode(err error) string {
	if errors.Is(err, syscall.ELOOP) || strings.Contains(err.Error(), "too many links") {
		return CodeSymlinkLoop
	}
	return CodeUnreadable
}

// cause is the error without the operation and the path, which a diagnostic
// names anyway.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// modeName says what a path is that is no file.
func modeName(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
