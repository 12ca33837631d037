package trace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks a SQLite file as a journal ("SynJ").
const applicationID = 0x53796e4a

// migrations lead from one version of the schema to the next: the first makes
// version 1 of an empty file. They are only ever added to.
var migrations = []string{
	// events: what happened. Bodies are in the table rather than its index,
	// so that an event of some kilobytes stays on its page.
	// blobs: specs, by the SHA-256 of their content.
	// runs: by each run's first event; for subtrees.
	// traces: one summary each, as JSON, kept up to date with the events.
	`CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	format     INTEGER NOT NULL,
	trace      TEXT NOT NULL,
	seq        INTEGER NOT NULL,
	v          INTEGER NOT NULL,
	time       INTEGER,
	run        TEXT NOT NULL,
	parent     TEXT NOT NULL,
	agent      TEXT NOT NULL,
	spawned_by TEXT NOT NULL,
	kind       TEXT NOT NULL,
	spec       BLOB,
	body       BLOB NOT NULL
);
CREATE UNIQUE INDEX events_trace_seq ON events (trace, seq);
CREATE TABLE blobs (
	hash BLOB PRIMARY KEY,
	data BLOB NOT NULL
);
CREATE TABLE runs (
	trace  TEXT NOT NULL,
	run    TEXT NOT NULL,
	parent TEXT NOT NULL,
	PRIMARY KEY (trace, run)
) WITHOUT ROWID;
CREATE INDEX runs_run ON runs (run);
CREATE INDEX runs_parent ON runs (parent, trace);
CREATE TABLE traces (
	trace   TEXT PRIMARY KEY,
	started INTEGER NOT NULL,
	open    INTEGER NOT NULL,
	format  INTEGER NOT NULL,
	summary BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX traces_started ON traces (started);
`,
	// sessions: the names that people give to conversations.
	// signals: what people tell runs of other processes, until it has reached them.
	`CREATE TABLE sessions (
	session TEXT PRIMARY KEY,
	name    TEXT NOT NULL UNIQUE
) WITHOUT ROWID;
CREATE TABLE signals (
	id    TEXT PRIMARY KEY,
	trace TEXT NOT NULL,
	run   TEXT NOT NULL,
	time  INTEGER NOT NULL,
	kind  TEXT NOT NULL,
	text  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX signals_trace ON signals (trace);
`,
}

// schemaVersion is the version that this program reads and writes.
var schemaVersion = len(migrations)

// A fileState is what a file says it is.
type fileState struct {
	version int // 0: nothing is in it yet
	wal     bool
}

// probe looks at a file without being able to write to it.
func probe(ctx context.Context, path string, busy time.Duration) (fileState, error) {
	db, err := openDB(path, "ro", busy)
	if err != nil {
		return fileState{}, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fileState{}, err
	}
	defer conn.Close()
	return stateOf(ctx, conn)
}

// querier is what a connection and a pool have in common.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func stateOf(ctx context.Context, db querier) (fileState, error) {
	var s fileState
	var id, objects int
	var mode string
	// One statement sees one state of the file: another process may be making its
	// tables just now. To count them parses the schema: damage in it shows here.
	if err := db.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&s.version, &id, &objects); err != nil {
		return s, err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return s, err
	}
	s.wal = mode == "wal"
	switch {
	case id != applicationID && (objects > 0 || s.version != 0):
		return s, errors.New("the file is a SQLite database, but not a journal of this program; name another file")
	case s.version > schemaVersion:
		return s, fmt.Errorf("its format is version %d, this program's is %d: %w", s.version, schemaVersion, ErrNewer)
	case s.version < 0, s.version > 0 && objects == 0:
		return s, fmt.Errorf("%w: format version %d with %d tables and indexes", ErrDamaged, s.version, objects)
	}
	if s.version == schemaVersion {
		// A table that has lost a column fails here and not at the first event.
		for _, q := range []string{"SELECT " + eventColumns + " FROM events", "SELECT hash, data FROM blobs",
			"SELECT trace, run, parent FROM runs", "SELECT trace, started, open, format, summary FROM traces",
			"SELECT session, name FROM sessions", "SELECT id, trace, run, time, kind, text FROM signals"} {
			var n int
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM ("+q+" LIMIT 0)").Scan(&n); err != nil {
				if code(err) == sqlite3.SQLITE_ERROR { // no such table, no such column
					err = fmt.Errorf("%w: %w", ErrDamaged, err)
				}
				return s, err
			}
		}
	}
	return s, nil
}

// migrate brings a file up to date on the writer's connection. Other processes
// may be doing the same.
func migrate(ctx context.Context, conn *sql.Conn, busy time.Duration) error {
	state, err := stateOf(ctx, conn)
	if err != nil {
		return err
	}
	if !state.wal {
		if err := enterWAL(ctx, conn, busy); err != nil {
			return err
		}
	}
	if state.version == schemaVersion {
		return nil
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = func() error {
		state, err := stateOf(ctx, conn) // again, under the lock
		if err != nil {
			return err
		}
		for v := state.version; v < schemaVersion; v++ {
			if _, err := conn.ExecContext(ctx, migrations[v]); err != nil {
				return fmt.Errorf("bring its format from version %d to %d: %w", v, v+1, err)
			}
		}
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
		return err
	}()
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, endErr := conn.ExecContext(context.WithoutCancel(ctx), end)
	if err == nil {
		err = endErr
	}
	return err
}

// enterWAL switches the file to write-ahead logging, which lasts. SQLite does
// not wait for other connections here in every case, so this does.
func enterWAL(ctx context.Context, conn *sql.Conn, busy time.Duration) error {
	for deadline := time.Now().Add(busy); ; {
		var mode string
		err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file system does not allow write-ahead logging (journal mode %s)", mode)
		case code(err) != sqlite3.SQLITE_BUSY || time.Now().After(deadline):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// code returns SQLite's primary result code of an error, 0 if it has none.
func code(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code() & 0xff
	}
	return 0
}
