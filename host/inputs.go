package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// inputs are the files and directories that an assembly was made from, each with
// what it looked like just before it was read. A file that changes while it is
// read looks different afterwards, so that no change is lost.
type inputs struct {
	mu    sync.Mutex
	seen  map[string]stamp
	taken time.Time // when the first one was looked at
}

// stamp is what a path looks like without reading it.
type stamp struct {
	link         string // where a symlink leads
	mode         fs.FileMode
	size         int64
	modified     time.Time
	missing, dir bool
}

// settled is how old a change must be for its time to tell it from the next one:
// file systems keep times as coarse as two seconds.
const settled = 2 * time.Second

func newInputs() *inputs { return &inputs{seen: map[string]stamp{}, taken: time.Now()} }

// readSettings notes the files that settings come from.
func (h *Host) readSettings() *inputs {
	in := newInputs()
	for _, file := range h.sources().Files() {
		in.note(file)
	}
	return in
}

func look(path string) stamp {
	var s stamp
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		s.link, _ = os.Readlink(path)
	}
	info, err := os.Stat(path)
	if err != nil {
		s.missing = true
		return s
	}
	s.mode, s.modified, s.dir = info.Mode(), info.ModTime(), info.IsDir()
	if !s.dir {
		s.size = info.Size()
	}
	return s
}

// note remembers a path. It is called before the path is read.
func (in *inputs) note(path string) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, known := in.seen[abs]; !known {
		in.seen[abs] = look(abs)
	}
}

// noteDir remembers a directory and what lies in it.
func (in *inputs) noteDir(dir string) {
	in.note(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		in.note(filepath.Join(dir, e.Name()))
	}
}

// changed reports whether anything looks different now. With doubt it also
// reports what was changed so shortly before it was read that a further change
// might not show.
func (in *inputs) changed(doubt bool) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for path, before := range in.seen {
		if look(path) != before || doubt && !before.missing && before.modified.After(in.taken.Add(-settled)) {
			return true
		}
	}
	return false
}

// paths calls fn with every path and whether it was a directory.
func (in *inputs) paths(fn func(path string, dir bool)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for path, s := range in.seen {
		fn(path, s.dir)
	}
}

func (in *inputs) has(path string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, ok := in.seen[path]
	return ok
}
