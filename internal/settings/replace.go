package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// replaceFile gives a file new content, all of it or none: the content is
// written beside it, synced and renamed into its place. edit gets what the file
// holds now, and while it runs no other replaceFile, of this or another
// process, changes the file. A link is followed, not replaced. The mode of an
// existing file stays; dirMode and fileMode are for new ones.
func replaceFile(path string, dirMode, fileMode fs.FileMode, edit func(before []byte, exists bool) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("follow the link: %w", err)
		}
		path = target
	}
	dir := filepath.Dir(path)
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()

	before, err := readFile(path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := edit(before, exists)
	if err != nil {
		return err
	}
	if exists && bytes.Equal(before, after) {
		return nil
	}
	if exists {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		fileMode = info.Mode().Perm()
	}
	prefix := "." + filepath.Base(path) + "."
	removeLeftovers(dir, prefix)
	return writeBeside(dir, prefix, path, after, fileMode)
}

const tempSuffix = ".tmp"

// removeLeftovers deletes what a process that died while saving left behind.
// The lock is held, so nobody is writing there.
func removeLeftovers(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), tempSuffix) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next save tries again
		}
	}
}

func writeBeside(dir, prefix, path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(dir, prefix+"*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil { // not every system can sync a directory
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
