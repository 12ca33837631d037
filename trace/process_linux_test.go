package trace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// playNobody gives up root's rights, which no permission holds back, and opens
// a journal where it may read and not write.
func playNobody(path string) error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			return err
		}
	}
	ctx := context.Background()
	if _, err := trace.OpenSQLite(ctx, filepath.Join(filepath.Dir(path), "new", "journal.db"), trace.SQLiteOptions{}); !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("a new file in a directory that is not ours: %v", err)
	}
	if _, err := trace.OpenSQLite(ctx, filepath.Join(filepath.Dir(path), "new.db"), trace.SQLiteOptions{}); !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("a new directory in one that is not ours: %v", err)
	}
	j, err := trace.OpenSQLite(ctx, path, trace.SQLiteOptions{})
	if err == nil {
		err = j.Append(ctx, tracetest.Conversation("u")...)
		j.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "check the permissions of the file and its directory") || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("a file that is not ours: %v", err)
	}
	return nil
}

func TestSQLiteWithoutPermission(t *testing.T) {
	path := filled(t)
	before := contents(t, path)
	dir := filepath.Dir(path)
	for name, mode := range map[string]fs.FileMode{filepath.Dir(dir): 0o755, dir: 0o555, path: 0o444} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	cmd, out := start(t, "nobody", path, "")
	text, err := io.ReadAll(out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	if string(contents(t, path)) != string(before) {
		t.Error("the file has changed")
	}
}
