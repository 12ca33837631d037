package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// TestSQLiteRefuses opens files that are not a journal of this version.
func TestSQLiteRefuses(t *testing.T) {
	overwrite := func(at int, with string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			data := contents(t, path)
			copy(data[at:], with)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(statements ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { rawExec(t, path, statements...) }
	}
	truncate := func(size int64) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, path string)
		is     error
		want   string
	}{
		{"newer", run("PRAGMA user_version = 99"), trace.ErrNewer, "its format is version 99, this program's is 2"},
		{"newer, with other tables", run("PRAGMA user_version = 99", "DROP TABLE events"), trace.ErrNewer, "update this program"},
		{"header", overwrite(0, "This is not SQLite"), trace.ErrDamaged, "move the file away"},
		{"text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("{}\n", 2000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, trace.ErrDamaged, "move the file away"},
		{"short text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, trace.ErrDamaged, "move the file away"},
		{"schema page", overwrite(100, strings.Repeat("\xff", 3000)), trace.ErrDamaged, "move the file away"},
		{"cut short", truncate(4096), trace.ErrDamaged, "move the file away"},
		{"cut within a page", truncate(5000), trace.ErrDamaged, "move the file away"},
		{"table is gone", run("DROP TABLE runs"), trace.ErrDamaged, "no such table: runs"},
		{"column is gone", run("ALTER TABLE events DROP COLUMN spawned_by"), trace.ErrDamaged, "spawned_by"},
		{"all tables are gone", run("DROP TABLE events", "DROP TABLE runs", "DROP TABLE traces", "DROP TABLE blobs", "DROP TABLE sessions", "DROP TABLE signals"), trace.ErrDamaged, "0 tables"},
		{"other program", run("PRAGMA application_id = 42"), nil, "not a journal of this program"},
		{"no program", run("PRAGMA application_id = 0", "PRAGMA user_version = 0"), nil, "not a journal of this program"},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %t", tt.name, readOnly), func(t *testing.T) {
				path := filled(t)
				tt.damage(t, path)
				before := contents(t, path)
				j, err := trace.OpenSQLite(t.Context(), path, trace.SQLiteOptions{ReadOnly: readOnly})
				if err == nil {
					j.Close()
					t.Fatal("it opens")
				}
				if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("got error %v\nwant one with %q and the path", err, tt.want)
				}
				if !bytes.Equal(before, contents(t, path)) {
					t.Error("the file has changed")
				}
			})
		}
	}
}

func TestSQLiteRefusesDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := trace.OpenSQLite(t.Context(), dir, trace.SQLiteOptions{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory: got error %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.OpenSQLite(t.Context(), filepath.Join(file, "journal.db"), trace.SQLiteOptions{}); err == nil || !strings.Contains(err.Error(), "journal.db") {
		t.Errorf("below a file: got error %v", err)
	}
	// An empty file is one that nothing has been written to yet.
	mustAppend(t, openSQLite(t, file, trace.SQLiteOptions{}), tracetest.Conversation("t")...)
}

// TestSQLiteDamagedRows finds damage that shows only when a row is read.
func TestSQLiteDamagedRows(t *testing.T) {
	for _, tt := range []struct {
		name, statement string
		is              error
		want            string
		before          int // events that come before the error
	}{
		{"kind of a newer program", "UPDATE events SET kind = 'teleported' WHERE seq = 5", trace.ErrNewer, "event 5 (teleported)", 4},
		{"event of a newer version", "UPDATE events SET v = 2 WHERE seq = 5", trace.ErrNewer, "event version 2", 4},
		{"row of a newer format", "UPDATE events SET format = 2 WHERE seq = 5", trace.ErrNewer, "row format 2", 4},
		{"row of no format", "UPDATE events SET format = 0 WHERE seq = 5", trace.ErrDamaged, "row format 0", 4},
		{"half a body", "UPDATE events SET body = substr(body, 1, 9) WHERE seq = 5", trace.ErrDamaged, "event 5", 4},
		{"empty body", "UPDATE events SET body = x'' WHERE seq = 5", trace.ErrDamaged, "event 5", 4},
		{"body of another type", "UPDATE events SET body = '[1]' WHERE seq = 5", trace.ErrDamaged, "event 5", 4},
		{"spec is gone", "DELETE FROM blobs", trace.ErrDamaged, "is missing", 0},
		{"spec has changed", "UPDATE blobs SET data = replace(data, 'small', 'large')", trace.ErrDamaged, "other content", 0},
		{"spec on another event", "UPDATE events SET spec = (SELECT hash FROM blobs) WHERE seq = 5", trace.ErrDamaged, "event 5", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t)
			rawExec(t, path, tt.statement)
			j := openSQLite(t, path, trace.SQLiteOptions{})
			events, err := trace.Collect(j.Events(t.Context(), trace.Query{Trace: "t"}))
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v\nwant one with %q and the path", err, tt.want)
			}
			if len(events) != tt.before {
				t.Errorf("%d events before the error, want %d", len(events), tt.before)
			}
		})
	}
	for _, statement := range []string{"UPDATE traces SET summary = '{'", "UPDATE traces SET format = 2"} {
		path := filled(t)
		rawExec(t, path, statement)
		j := openSQLite(t, path, trace.SQLiteOptions{})
		for s, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
			if !errors.Is(err, trace.ErrDamaged) && !errors.Is(err, trace.ErrNewer) {
				t.Errorf("%s: got summary %+v, error %v", statement, s, err)
			}
		}
		// What can't be understood is not written over either.
		run := tracetest.Run{Trace: "t", ID: "new"}
		if err := j.Append(t.Context(), run.Start(50, "x")); err == nil {
			t.Errorf("%s: an append goes on", statement)
		}
	}
}

// TestSQLiteDamagedPage overwrites pages in the middle of a large file.
func TestSQLiteDamagedPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	run := tracetest.Run{Trace: "t", ID: "r"}
	for i := range 200 {
		mustAppend(t, j, run.Event(int64(i+1), &synapse.Warning{Message: strings.Repeat("x", 3000)}))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data := contents(t, path)
	for i := len(data) / 2; i < len(data)/2+20*4096; i++ {
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	j = openSQLite(t, path, trace.SQLiteOptions{})
	if err := j.Check(t.Context()); !errors.Is(err, trace.ErrDamaged) {
		t.Errorf("check: got error %v", err)
	}
	events, err := trace.Collect(j.Events(t.Context(), trace.Query{Trace: "t"}))
	if !errors.Is(err, trace.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("read: got %d events and error %v", len(events), err)
	}
}
