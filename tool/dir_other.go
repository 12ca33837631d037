//go:build !unix

package tool

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A dirHandle is an open directory that steps into it can't leave.
type dirHandle struct{ root *os.Root }

const direntBuffer = 0

// openDir opens the directory at p.
func openDir(p place) (dirHandle, error) {
	root, err := p.root.OpenRoot(filepath.FromSlash(p.rel))
	return dirHandle{root}, err
}

func (d dirHandle) close() { _ = d.root.Close() }

// dir opens a directory in d.
func (d dirHandle) dir(name string) (dirHandle, error) {
	root, err := d.root.OpenRoot(name)
	return dirHandle{root}, err
}

// list returns what is in d, in no order.
func (d dirHandle) list([]byte) ([]entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	entries := make([]entry, 0, len(list))
	for _, e := range list {
		entries = append(entries, entry{e.Name(), e.Type()})
	}
	return entries, err
}

// read returns the content of a regular file in d, in buf where it has room.
// The error is errHuge for more than max bytes.
func (d dirHandle) read(name string, buf []byte, max int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return buf, err
	}
	if !info.Mode().IsRegular() {
		return buf, fs.ErrInvalid
	}
	return readSized(buf, info.Size(), max, f.Read)
}
