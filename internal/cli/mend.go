package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/synapse-agents/synapse/agents"
)

// mend mends the files that were read, or with dry writes what it would do as
// differences, and returns how many files that changes.
func (v *validation) mend(dry bool, differences io.Writer) (changes int, err error) {
	v.fixed = map[string][]checkedDiagnostic{}
	origins := map[string]string{}
	var files []string
	for _, layer := range v.layers {
		for _, d := range layer.Defs {
			if _, known := origins[d.Pos.File]; !known {
				files = append(files, d.Pos.File)
			}
			origins[d.Pos.File] = d.Origin
		}
	}
	slices.Sort(files)
	for _, file := range files {
		data, isStdin := v.stdin, v.stdin != nil && file == v.stdinName
		if !isStdin {
			data = readText(file)
		}
		fixed, applied := agents.Fix(file, data, origins[file])
		if bytes.Equal(fixed, data) {
			continue
		}
		changes++
		switch {
		case dry:
			if _, err := differences.Write(diff.Diff(file, data, file, fixed)); err != nil {
				return changes, fmt.Errorf("write the result: %w", err)
			}
			continue
		case isStdin:
			v.stdin = fixed
		default:
			if err := replaceFile(file, fixed); err != nil {
				return changes, err
			}
		}
		for _, d := range applied {
			v.fixed[file] = append(v.fixed[file], checkedDiagnostic{d.Severity, d.Code, d.Line, d.Column, d.Message, d.Hint})
		}
	}
	if v.stdin != nil && !dry {
		v.stdinOut = true
		if _, err := v.p.Stdout.Write(v.stdin); err != nil {
			return changes, fmt.Errorf("write the result: %w", err)
		}
	}
	return changes, nil
}

// replaceFile puts data in a file's place, whole or not at all, with the rights
// that it had. Of a symlink the file it leads to is replaced.
func replaceFile(path string, data []byte) error {
	fail := func(err error) error { return fmt.Errorf("write %s: %w", path, err) }
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fail(err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fail(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), target)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}
