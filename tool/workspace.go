package tool

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
)

// Options are what a workspace's tools need to know beyond its directory. The
// zero value is usable.
type Options struct {
	// Mounts are directories outside the workspace that can be read, never
	// written, at a virtual place in it: "/.synapse/results" → a directory.
	// One that doesn't exist yet is looked for again at each use.
	Mounts map[string]string
	// Environ is the environment of the commands that execute runs, as
	// "NAME=value". Without a PATH in it a usual one is taken.
	Environ []string
	// HideEnv are the names that are removed from Environ before a command
	// sees it; a "*" in them matches any characters ("*_API_KEY").
	HideEnv []string
	// Skills are what the skill tool offers, see [LoadSkills].
	Skills []Skill
	// Receipts is a directory where edits note what they are about to do, so
	// that one cut off by a crash is known to be done when it runs again with
	// its key. Empty: they are noted in memory, for this process only.
	Receipts string
	// AllowPrivate lets fetch_url reach what is not on the public net: this
	// machine, private networks, other protocols' ports.
	AllowPrivate bool
	// UseProxy sends web requests through the proxies that Environ names. What
	// a proxy connects to in the end is the proxy's own affair: only what the
	// URL says is judged then.
	UseProxy bool
	// Lookup resolves the host names of web requests; nil asks the system. It
	// may be called from several goroutines at once.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// WebSearch is the service behind web_search, which is only among the
	// tools when Kind is set.
	WebSearch WebSearch
}

// A Workspace is a directory tree that the file tools can't leave: neither ".."
// nor a symbolic link nor a link swapped in between check and use leads out,
// since every access goes through [os.Root]. Paths are written from the
// workspace's root: "/a/b", "a/b" and "./a/b" are the same file, and a path of
// the host that lies inside the workspace is understood too. Only regular
// files and directories are opened; a device, a pipe or a socket is refused
// without being opened.
//
// What this can't see: a hard link to a file outside looks like any other
// file, and reading it reads that file. Writing replaces the link instead of
// the file it shares. The execute tool is not confined: it runs programs with
// the rights of this process.
//
// A Workspace may be used from several goroutines at once.
type Workspace struct {
	dir     string // absolute, as given
	realDir string // with symbolic links resolved
	root    *os.Root
	mounts  []*mount // longest prefix first
	opt     Options
	notes   *receipts

	// Writes of one file go one after another. Two files that share a lock
	// wait for each other without need, which costs nothing that matters.
	locks [64]sync.Mutex
	seed  maphash.Seed
}

// A mount is a read-only directory at a virtual place.
type mount struct {
	prefix string // ".synapse/results"
	dir    string
	mu     sync.Mutex
	root   *os.Root // nil until the directory exists
}

// Open opens the workspace at dir, which must be a directory that exists.
func Open(dir string, opt Options) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	realDir, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{dir: abs, realDir: realDir, root: root, opt: opt, seed: maphash.MakeSeed()}
	for prefix, target := range opt.Mounts {
		p := virtual(prefix)
		if p == "." {
			root.Close()
			return nil, fmt.Errorf("open workspace: mount %q: want a place below the root", prefix)
		}
		w.mounts = append(w.mounts, &mount{prefix: p, dir: target})
	}
	for _, s := range opt.Skills {
		// A user's skill lives outside, yet the model may want the files
		// beside its text.
		if _, inside := w.hostPath(s.Dir); !inside && s.Dir != "" {
			w.mounts = append(w.mounts, &mount{prefix: skillPlace(s.Name), dir: s.Dir})
		}
	}
	slices.SortFunc(w.mounts, func(a, b *mount) int {
		if d := len(b.prefix) - len(a.prefix); d != 0 {
			return d
		}
		return strings.Compare(a.prefix, b.prefix)
	})
	if err := opt.WebSearch.check(); err != nil {
		root.Close()
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if w.notes, err = openReceipts(opt.Receipts); err != nil {
		root.Close()
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return w, nil
}

// Close releases the workspace. Its tools fail afterwards.
func (w *Workspace) Close() error {
	err := w.root.Close()
	for _, m := range w.mounts {
		m.mu.Lock()
		if m.root != nil {
			err = errors.Join(err, m.root.Close())
			m.root = nil
		}
		m.mu.Unlock()
	}
	return err
}

// Dir returns the workspace's directory, absolute.
func (w *Workspace) Dir() string { return w.dir }

// Tools returns the built-in tools on this workspace, always in this order:
// read_file, find_files, search_files, write_file, edit_file, patch, execute,
// fetch_url, web_search (where a service is set), write_todos, skill.
func (w *Workspace) Tools() []synapse.Tool {
	tools := []synapse.Tool{
		w.readFile(), w.findFiles(), w.searchFiles(), w.writeFile(), w.editFile(),
		w.patch(), w.execute(), w.fetchURL(),
	}
	if w.opt.WebSearch.Kind != "" {
		tools = append(tools, w.webSearch())
	}
	return append(tools, writeTodos(), w.skill())
}

// A place is a path that has been understood.
type place struct {
	root *os.Root
	rel  string // within root, slash-separated, "." for the root itself
	name string // within the workspace, as people and rules know it; "." for its root
	// readOnly is set below a mount.
	readOnly bool
	prefix   string // of the mount, "" in the workspace itself
}

// at returns the place of a path within the same root.
func (p place) at(rel string) place {
	p.rel = path.Clean(rel)
	p.name = path.Join(p.prefix, p.rel)
	return p
}

// show returns the path for a message: "/" for the root, else without a
// leading slash.
func (p place) show() string { return showPath(p.name) }

func showPath(name string) string {
	if name == "." || name == "" {
		return "/"
	}
	return name
}

// virtual cleans a path written from the workspace's root the way permission
// rules do.
func virtual(arg string) string {
	rel := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(arg)), "/")
	if rel == "" {
		return "."
	}
	return rel
}

// leaves reports whether a path climbs above its start at any point.
func leaves(arg string) bool {
	depth := 0
	for elem := range strings.SplitSeq(filepath.ToSlash(arg), "/") {
		switch elem {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// hostPath maps an absolute path of the host into the workspace.
func (w *Workspace) hostPath(arg string) (rel string, inside bool) {
	if !filepath.IsAbs(arg) {
		return "", false
	}
	clean := filepath.Clean(arg)
	for _, dir := range []string{w.dir, w.realDir} {
		if dir == string(filepath.Separator) {
			continue // every path is below it, as it is already
		}
		if clean == dir {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(clean, dir+string(filepath.Separator)); ok {
			return filepath.ToSlash(rest), true
		}
	}
	return "", false
}

// maxPath bounds a path in bytes, as most systems do, and maxDepth the
// directories in it: each costs a step for every one above it.
const (
	maxPath  = 4096
	maxDepth = 200
)

// locate understands a path argument without looking at the last symbolic
// link. It fails when the path leads out.
func (w *Workspace) locate(arg string) (place, error) {
	if strings.ContainsRune(arg, 0) {
		return place{}, fmt.Errorf("path %q holds a NUL byte", arg)
	}
	if len(arg) > maxPath {
		return place{}, fmt.Errorf("the path has %d bytes; at most %d are taken", len(arg), maxPath)
	}
	name := virtual(arg)
	if strings.Count(name, "/") >= maxDepth {
		return place{}, fmt.Errorf("the path goes down more than %d directories", maxDepth)
	}
	if host, ok := w.hostPath(arg); ok {
		// "/app/x" in the workspace /app, which may hold a folder app too.
		if _, err := w.root.Lstat(filepath.FromSlash(name)); err != nil {
			name = host
		}
	} else if leaves(arg) {
		return place{}, fmt.Errorf("path %q leads out of the workspace; / is its root", arg)
	}
	for _, m := range w.mounts {
		rel, ok := "", false
		if name == m.prefix {
			rel, ok = ".", true
		} else {
			rel, ok = strings.CutPrefix(name, m.prefix+"/")
		}
		if !ok {
			continue
		}
		root, err := m.open()
		if err != nil {
			return place{}, fmt.Errorf("%s: %w", showPath(name), plainError(err))
		}
		return place{root: root, rel: rel, name: name, readOnly: true, prefix: m.prefix}, nil
	}
	return place{root: w.root, rel: name, name: name}, nil
}

func (m *mount) open() (*os.Root, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.root == nil {
		root, err := os.OpenRoot(m.dir)
		if err != nil {
			return nil, err
		}
		m.root = root
	}
	return m.root, nil
}

// maxLinks is how many symbolic links a path may go through.
const maxLinks = 40

// follow resolves the symbolic links of p, so that rules judge, and writes
// replace, the file itself. What it returns may not exist. A link swapped
// afterwards can at worst lead elsewhere within the root.
func (w *Workspace) follow(p place) (place, error) {
	todo := strings.Split(p.rel, "/")
	done := "."
	for links := 0; len(todo) > 0; {
		elem := todo[0]
		todo = todo[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return place{}, fmt.Errorf("%s: a symbolic link leads out of the workspace", p.show())
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, elem)
		info, err := p.root.Lstat(filepath.FromSlash(next))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if err != nil {
			return place{}, fmt.Errorf("%s: %w", p.show(), plainError(err))
		}
		if links++; links > maxLinks {
			return place{}, fmt.Errorf("%s: too many symbolic links, or a loop of them", p.show())
		}
		target, err := p.root.Readlink(filepath.FromSlash(next))
		if err != nil {
			return place{}, fmt.Errorf("%s: %w", p.show(), plainError(err))
		}
		if filepath.IsAbs(target) {
			rel, ok := w.hostPath(target)
			if !ok || p.root != w.root {
				return place{}, fmt.Errorf("%s: the symbolic link %s leads out of the workspace", p.show(), p.at(next).show())
			}
			done, target = ".", rel
		}
		todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
	}
	return p.at(done), nil
}

// resolve understands a path argument, follows its links and asks the caller's
// rules about the file that it turns out to be.
func (w *Workspace) resolve(in *synapse.Invocation, arg string) (place, error) {
	p, err := w.locate(arg)
	if err != nil {
		return place{}, err
	}
	p, err = w.follow(p)
	if err != nil {
		return place{}, err
	}
	// The guard has judged the path as it was written. A host path or a link
	// has another name for the file, and the rules hold for that one too.
	if p.name != virtual(arg) && !permits(in, p.name) {
		return place{}, fmt.Errorf("permission denied: %s is %s; do not retry", arg, p.show())
	}
	return p, nil
}

func permits(in *synapse.Invocation, subject string) bool {
	return in.Permits == nil || in.Permits(subject)
}

// stat returns what is at p, refusing what is neither a regular file nor a
// directory.
func (p place) stat() (fs.FileInfo, error) {
	info, err := p.root.Stat(filepath.FromSlash(p.rel))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	if what := special(info.Mode()); what != "" {
		return nil, fmt.Errorf("%s is %s, not a regular file", p.show(), what)
	}
	return info, nil
}

// special names what is neither a regular file nor a directory, else "".
func special(m fs.FileMode) string {
	switch {
	case m.IsRegular(), m.IsDir():
		return ""
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	default:
		return "a special file"
	}
}

// open opens the regular file or directory at p for reading. It looks first,
// opens without blocking, and looks again at what it opened: a pipe swapped in
// between can't hang it.
func (p place) open() (*os.File, fs.FileInfo, error) {
	if _, err := p.stat(); err != nil {
		return nil, nil, err
	}
	return p.openChecked()
}

// openChecked is open for a file that a directory listing called regular.
func (p place) openChecked() (*os.File, fs.FileInfo, error) {
	f, err := p.root.OpenFile(filepath.FromSlash(p.rel), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	if what := special(info.Mode()); what != "" {
		f.Close()
		return nil, nil, fmt.Errorf("%s is %s, not a regular file", p.show(), what)
	}
	return f, info, nil
}

// plainError drops the path and the system call from an error, which its
// message names already, and says what os.Root means by an escape.
func plainError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if err != nil && strings.Contains(err.Error(), "path escapes from parent") {
		return errEscape
	}
	return err
}

var errEscape = errors.New("the path leads out of the workspace")

// lock serialises writes of the file at p and returns what ends that.
func (w *Workspace) lock(p place) (unlock func()) {
	mu := &w.locks[maphash.String(w.seed, p.name)%uint64(len(w.locks))]
	mu.Lock()
	return mu.Unlock
}

// ended returns ctx's error every so often; walks and scans call it for each
// step.
func ended(ctx context.Context, step int) error {
	if step%64 == 0 {
		return ctx.Err()
	}
	return nil
}
