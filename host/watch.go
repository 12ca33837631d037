package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long nothing must happen before a change is looked at: editors
// write a file in several steps. A change waits no longer than patience.
const (
	quiet    = 80 * time.Millisecond
	patience = time.Second
)

// Update reads settings and definitions again if any of their files has changed,
// as [Host.Refresh] does, and says what is different. Where nothing has changed
// it reads nothing.
func (h *Host) Update(ctx context.Context) (Change, error) {
	h.updating.Lock()
	defer h.updating.Unlock()
	before := h.current()
	h.mu.Lock()
	w := h.watcher
	h.mu.Unlock()
	// What has been seen happening counts even where it left no trace.
	seen := w != nil && w.dirty.Swap(false)
	if !seen && !before.read.changed(true) {
		return Change{}, nil
	}
	if err := h.Refresh(ctx); err != nil {
		if seen {
			w.dirty.Store(true)
		}
		return Change{}, err
	}
	return compare(before, h.current()), nil
}

// Watch looks out for changes of definitions and settings until the host is
// closed. The channel holds something when [Host.Update] is worth calling; many
// changes at once are one. Every call returns the same channel. The error says
// that the system can't watch; Update finds changes all the same.
func (h *Host) Watch() (<-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errors.New("watch: the host is closed")
	case h.watcher != nil:
		return h.watcher.found, nil
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &watcher{host: h, events: events, found: make(chan struct{}, 1), again: make(chan struct{}, 1), on: map[string]bool{}}
	w.again <- struct{}{}
	h.watcher = w
	w.done.Go(w.run)
	return w.found, nil
}

// A watcher tells of changes below the directories that an assembly was read
// from. It watches directories and not files: an editor puts a new file in the
// place of the old one. Where a directory is not there yet, the nearest that is
// there is watched.
type watcher struct {
	host   *Host
	events *fsnotify.Watcher
	found  chan struct{} // something has changed
	again  chan struct{} // what is to be watched may be something else
	dirty  atomic.Bool   // a change has been seen that no one has read yet
	done   sync.WaitGroup

	on map[string]bool // the directories that are watched
}

func (w *watcher) close() error {
	err := w.events.Close()
	w.done.Wait()
	return err
}

// lookAgain has the watcher look which directories are to be watched now.
func (w *watcher) lookAgain() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

func (w *watcher) run() {
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	var since time.Time // the first event that has not been looked at
	later := func() {
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		timer.Reset(max(0, min(quiet, time.Until(since.Add(patience)))))
	}
	for {
		select {
		case e, ok := <-w.events.Events:
			if !ok {
				return
			}
			if w.concerns(e) {
				later()
			}
		case _, ok := <-w.events.Errors:
			if !ok {
				return
			}
			w.dirty.Store(true) // events may have been dropped
			later()
		case <-w.again:
			w.place()
			// What happened before a directory was watched has no event.
			if w.host.current().read.changed(false) {
				later()
			}
		case <-timer.C:
			since = time.Time{}
			w.place()
			if w.dirty.Load() || w.host.current().read.changed(false) {
				select {
				case w.found <- struct{}{}:
				default:
				}
			}
		}
	}
}

// concerns reports whether an event may be about an input, and remembers that
// one was written. Something that appears where nothing was may lead to one.
func (w *watcher) concerns(e fsnotify.Event) bool {
	const contents = fsnotify.Write | fsnotify.Create | fsnotify.Remove | fsnotify.Rename
	name := filepath.Clean(e.Name)
	if w.host.current().read.has(name) {
		if e.Op&contents != 0 {
			w.dirty.Store(true)
		}
		return true
	}
	return e.Op&(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) != 0
}

// place watches what the present assembly was read from, and no more.
func (w *watcher) place() {
	want := map[string]bool{}
	w.host.current().read.paths(func(path string, dir bool) {
		if dir {
			want[path] = true
		}
		for at := filepath.Dir(path); ; at = filepath.Dir(at) {
			if info, err := os.Stat(at); err == nil && info.IsDir() {
				want[at] = true
				return
			}
			if at == filepath.Dir(at) {
				return
			}
		}
	})
	for dir := range w.on {
		if !want[dir] {
			_ = w.events.Remove(dir) // it may be gone
			delete(w.on, dir)
		}
	}
	for dir := range want {
		// A directory that was removed and made again is a new one, so each is
		// added even where it seems to be watched.
		if w.events.Add(dir) == nil {
			w.on[dir] = true
		}
	}
}
