package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Seeds lists the presets that [Seed] writes.
func Seeds() []string { return []string{"researcher", "tester", "reviewer"} }

// Seed writes the files of [Seeds] into a directory, which it makes if need be,
// and returns the paths of those it wrote. A file that is there already, a
// symlink that leads nowhere included, is left as it is. Files appear whole or
// not at all, also when several processes start at once.
func Seed(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("seed agents: %w", err)
	}
	var written []string
	for _, name := range Seeds() {
		file := filepath.Join(dir, name+".md")
		if _, err := os.Lstat(file); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return written, fmt.Errorf("seed agents: %w", err)
		}
		data, err := builtinFiles.ReadFile("builtin/" + name + ".md")
		if err != nil {
			return written, fmt.Errorf("seed agents: %w", err)
		}
		ok, err := writeNew(file, data)
		if err != nil {
			return written, fmt.Errorf("seed agents: %w", err)
		}
		if ok {
			written = append(written, file)
		}
	}
	return written, nil
}

// writeNew writes a file that must not be there yet. It reports false when
// someone else was faster.
func writeNew(file string, data []byte) (bool, error) {
	tmp, err := writeTemp(file, data, 0o644)
	if err != nil {
		return false, err
	}
	defer os.Remove(tmp)
	// A hard link, unlike a rename, never replaces what is there.
	err = os.Link(tmp, file)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err == nil, nil
	}
	// Some file systems have no hard links. Creating the file exclusively
	// keeps the promise not to overwrite, at the price of atomicity.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(file)
		return false, err
	}
	return true, nil
}

// writeTemp writes data durably to a new file beside the one it is for, and
// returns its path. Its name begins with a dot, so it is never read as a
// definition.
func writeTemp(file string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
