package tool

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// maxHandles is how deep a walk keeps the directories above it open. What is
// deeper is opened by its path.
const maxHandles = 100

// An entry is what a directory holds under one name. Of its mode only the type
// is set.
type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) isDir() bool { return e.mode.IsDir() }

// A walk is what a walk over a tree has come to.
type walk struct {
	seen       int // entries looked at
	unreadable int // directories that could not be listed
	full       bool
}

// A walker walks over a tree with several goroutines. They take directories
// from a queue, which they fill only while one of them has nothing to do:
// otherwise each goes on with what lies below, so that few are open at once.
type walker struct {
	ctx   context.Context
	limit int // entries
	visit func(p place, e entry)

	mu      sync.Mutex // for all that follows, and while visit runs
	changed sync.Cond
	queue   []walkJob
	busy    int
	idle    int
	stop    bool
	walk
}

// A walkJob is a directory that is to be walked.
type walkJob struct {
	h      dirHandle
	p      place
	ignore *ignoreFile
	depth  int
}

// walkTree calls visit for every file and directory below the directory p that
// neither .gitignore files nor junk leave out, the start not included, each
// directory before what is in it. It follows no symbolic link. One call of
// visit ends before the next begins; what is in different directories comes in
// any order.
func (w *Workspace) walkTree(ctx context.Context, p place, visit func(p place, e entry)) (walk, error) {
	return walkBelow(ctx, p, p.ignoreAbove(), maxWalk, min(runtime.GOMAXPROCS(0), 8), visit)
}

// walkBelow walks with that many goroutines; with one, in the order of names.
func walkBelow(ctx context.Context, p place, ignore *ignoreFile, limit, workers int, visit func(p place, e entry)) (walk, error) {
	w := &walker{ctx: ctx, limit: limit, visit: visit}
	w.changed.L = &w.mu
	h, err := openDir(p)
	if err != nil {
		return walk{unreadable: 1}, ctx.Err()
	}
	w.queue = []walkJob{{h, p, ignore, 0}}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(w.work)
	}
	wg.Wait()
	for _, job := range w.queue {
		job.h.close()
	}
	return w.walk, ctx.Err()
}

func (w *walker) work() {
	buf := make([]byte, direntBuffer)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 && w.busy > 0 && !w.stop {
			w.idle++
			w.changed.Wait()
			w.idle--
		}
		if len(w.queue) == 0 || w.stop {
			w.changed.Broadcast() // there is nothing for the others either
			return
		}
		last := len(w.queue) - 1
		job := w.queue[last]
		w.queue = w.queue[:last]
		w.busy++
		w.mu.Unlock()
		w.dir(job, buf)
		w.mu.Lock()
		w.busy--
	}
}

// dir walks over one directory and closes its handle.
func (w *walker) dir(job walkJob, buf []byte) {
	open := true
	shut := func() {
		if open {
			job.h.close()
		}
		open = false
	}
	defer shut()
	entries, err := job.h.list(buf)
	if err != nil || w.ctx.Err() != nil {
		w.mu.Lock()
		w.stop = w.stop || w.ctx.Err() != nil
		w.unreadable++
		w.mu.Unlock()
		return
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	ignore := job.ignore
	if slices.ContainsFunc(entries, func(e entry) bool { return e.name == ".gitignore" }) {
		ignore = job.p.ignoreHere(ignore)
	}
	dirs := w.show(job.p, entries, ignore)
	if job.depth >= maxHandles {
		shut()
	}
	for _, e := range dirs {
		child := walkJob{p: job.p.child(e.name), ignore: ignore, depth: job.depth + 1}
		if open {
			child.h, err = job.h.dir(e.name)
		} else {
			child.h, err = openDir(child.p)
		}
		w.mu.Lock()
		share := err == nil && w.idle > len(w.queue)
		switch {
		case w.stop:
			w.mu.Unlock()
			if err == nil {
				child.h.close()
			}
			return
		case err != nil:
			w.unreadable++
		case share:
			w.queue = append(w.queue, child)
			w.changed.Signal()
		}
		w.mu.Unlock()
		if err == nil && !share {
			w.dir(child, buf)
		}
	}
}

// show calls visit for what is not left out, and returns the directories among
// it.
func (w *walker) show(p place, entries []entry, ignore *ignoreFile) (dirs []entry) {
	kept := entries[:0]
	for _, e := range entries {
		if !junk[e.name] && !strings.HasPrefix(e.name, tempPrefix) && !ignore.ignored(p.child(e.name).rel, e.isDir()) {
			kept = append(kept, e)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range kept {
		if w.stop {
			return nil
		}
		if w.seen++; w.seen > w.limit {
			w.full, w.stop = true, true
			w.changed.Broadcast()
			return nil
		}
		w.visit(p.child(e.name), e)
		if e.isDir() {
			dirs = append(dirs, e)
		}
	}
	return dirs
}

var errHuge = errors.New("larger than what is read")

// readSized reads a file of about that size into buf, which grows as it must.
func readSized(buf []byte, size, max int64, read func([]byte) (int, error)) ([]byte, error) {
	if size > max {
		return buf, errHuge
	}
	buf = slices.Grow(buf[:0], int(size)+1)
	for {
		n, err := read(buf[len(buf):cap(buf)])
		if n > 0 {
			buf = buf[:len(buf)+n]
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && (n <= 0 || size > 0 && int64(len(buf)) == size):
			return buf, nil // the size was right, or is no more: either is a state of the file
		case err != nil:
			return buf, err
		case int64(len(buf)) > max: // it grew, or had no size, as in /proc
			return buf, errHuge
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// list returns the entries of the directory p by name.
func (p place) list() ([]entry, error) {
	h, err := openDir(p)
	if err != nil {
		return nil, plainError(err)
	}
	defer h.close()
	entries, err := h.list(make([]byte, direntBuffer))
	if err != nil {
		return nil, plainError(err)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// child returns the place of a name in the directory p.
func (p place) child(name string) place {
	if p.rel == "." {
		p.rel = name
	} else {
		p.rel += "/" + name
	}
	if p.prefix == "" {
		p.name = p.rel
	} else {
		p.name = p.prefix + "/" + p.rel
	}
	return p
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
