package trace_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

func openSQLite(t testing.TB, path string, opt trace.SQLiteOptions) *trace.SQLite {
	t.Helper()
	j, err := trace.OpenSQLite(context.Background(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

func TestMemory(t *testing.T) {
	tracetest.TestJournal(t, func(*testing.T) trace.Journal { return new(trace.Memory) })
}

func TestSQLite(t *testing.T) {
	tracetest.TestJournal(t, func(t *testing.T) trace.Journal {
		return openSQLite(t, filepath.Join(t.TempDir(), "journal.db"), trace.SQLiteOptions{})
	})
}
