package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A receipt notes what an edit is about to do, under the key of its call: the
// hashes of the file before and after. When the call runs again after a crash,
// the file's hash tells whether the edit took place.
type receipt struct {
	Path   string `json:"path"`
	Before string `json:"before"` // SHA-256, hex
	After  string `json:"after"`
	// Files are those of a patch, instead of the fields above.
	Files []receipt `json:"files,omitempty"`
}

// absent is the hash of a file that isn't there.
const absent = "absent"

// file returns what a patch's receipt says of one file.
func (r receipt) file(path string) (receipt, bool) {
	for _, f := range r.Files {
		if f.Path == path {
			return f, true
		}
	}
	return receipt{}, false
}

// receipts keep what is noted, in a directory or in memory.
type receipts struct {
	dir string // "": in memory

	mu  sync.Mutex
	mem map[string]receipt
}

// staleReceipt is the age at which a receipt is thrown away: no run is resumed
// after so long.
const staleReceipt = 30 * 24 * time.Hour

func openReceipts(dir string) (*receipts, error) {
	r := &receipts{dir: dir, mem: make(map[string]receipt)}
	if dir == "" {
		return r, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("receipts of edits: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("receipts of edits: %w", err)
	}
	for _, d := range entries {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleReceipt {
			_ = os.Remove(filepath.Join(dir, d.Name())) // tried again at the next start
		}
	}
	return r, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// find returns what was noted under key.
func (r *receipts) find(key string) (receipt, bool, error) {
	if key == "" {
		return receipt{}, false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir == "" {
		note, ok := r.mem[key]
		return note, ok, nil
	}
	b, err := os.ReadFile(r.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return receipt{}, false, nil
	}
	if err != nil {
		return receipt{}, false, fmt.Errorf("receipt of this edit: %w", err)
	}
	var note receipt
	if err := json.Unmarshal(b, &note); err != nil {
		// Cut off while it was written: then the edit had not begun.
		return receipt{}, false, nil
	}
	return note, true, nil
}

// put notes what is about to be done under key. It is durable against the
// death of this process when it returns.
func (r *receipts) put(key string, note receipt) error {
	if key == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir == "" {
		r.mem[key] = note
		return nil
	}
	b, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("receipt of this edit: %w", err)
	}
	if err := os.WriteFile(r.file(key), b, 0o600); err != nil {
		return fmt.Errorf("receipt of this edit: %w", err)
	}
	return nil
}

func (r *receipts) file(key string) string {
	return filepath.Join(r.dir, hash([]byte(key)))
}
