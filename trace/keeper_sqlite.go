package trace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

var (
	_ Keeper  = (*SQLite)(nil)
	_ Mailbox = (*SQLite)(nil)
	_ Keeper  = (*Memory)(nil)
	_ Mailbox = (*Memory)(nil)
)

// alter runs a change in one transaction, on a connection of its own: what people
// change is rare, and must not wait behind events.
func (s *SQLite) alter(ctx context.Context, op string, change func(tx *sql.Tx) error) error {
	db, err := s.sideDB()
	if err != nil {
		return s.failed(op, err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(op, err)
	}
	if err = change(tx); err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback()
	}
	if err != nil {
		return s.failed(op, err)
	}
	return nil
}

// sideDB returns the connection for what people change.
func (s *SQLite) sideDB() (*sql.DB, error) {
	if s.write == nil {
		return nil, errors.New("it is open for reading only")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.side == nil {
		db, err := openDB(s.path, "rw", defaultBusyTimeout)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		s.side = db
	}
	return s.side, nil
}

// Name implements [Keeper].
func (s *SQLite) Name(ctx context.Context, session, name string) error {
	return s.alter(ctx, "name a session in journal", func(tx *sql.Tx) error {
		if name == "" {
			_, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE session = ?", session)
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO sessions (session, name) VALUES (?1, ?2) ON CONFLICT (session) DO UPDATE SET name = ?2", session, name)
		if code(err) == sqlite3.SQLITE_CONSTRAINT {
			return fmt.Errorf("%q: %w", name, ErrNameTaken)
		}
		return err
	})
}

// Names implements [Keeper].
func (s *SQLite) Names(ctx context.Context) (map[string]string, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT session, name FROM sessions")
	if err != nil {
		return nil, s.failed("read the names of journal", err)
	}
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, s.failed("read the names of journal", err)
		}
		names[id] = name
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("read the names of journal", err)
	}
	return names, nil
}

// Delete implements [Keeper]. Specs stay: other traces share them, and writers
// in other processes count on them.
func (s *SQLite) Delete(ctx context.Context, traces ...string) error {
	return s.alter(ctx, "delete from journal", func(tx *sql.Tx) error {
		for _, name := range traces {
			for _, table := range []string{"events", "runs", "traces", "signals"} {
				if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE trace = ?", name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Shrink gives the space of what was deleted back to the file system. It takes
// time in proportion to the file's size, and waits for other processes.
func (s *SQLite) Shrink(ctx context.Context) error {
	if s.write == nil {
		return s.failed("shrink journal", errors.New("it is open for reading only"))
	}
	db, err := openDB(s.path, "rw", defaultBusyTimeout)
	if err != nil {
		return s.failed("shrink journal", err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM"); err != nil {
		return s.failed("shrink journal", err)
	}
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return s.failed("shrink journal", err)
	}
	return nil
}

// Post implements [Mailbox].
func (s *SQLite) Post(ctx context.Context, m Mail) error {
	if err := checkMail(m); err != nil {
		return s.failed("post in journal", err)
	}
	return s.alter(ctx, "post in journal", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO signals (id, trace, run, time, kind, text) VALUES (?, ?, ?, ?, ?, ?)",
			m.ID, m.Trace, m.Run, m.Time.UnixNano(), string(m.Kind), m.Text)
		if code(err) == sqlite3.SQLITE_CONSTRAINT {
			return fmt.Errorf("there is mail with the id %q", m.ID)
		}
		return err
	})
}

// Mail implements [Mailbox].
func (s *SQLite) Mail(ctx context.Context, trace string) ([]Mail, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT id, run, time, kind, text FROM signals WHERE trace = ? ORDER BY time, id", trace)
	if err != nil {
		return nil, s.failed("read the mail of journal", err)
	}
	defer rows.Close()
	var all []Mail
	for rows.Next() {
		m := Mail{Trace: trace}
		var ns int64
		if err := rows.Scan(&m.ID, &m.Run, &ns, &m.Kind, &m.Text); err != nil {
			return nil, s.failed("read the mail of journal", err)
		}
		m.Time = time.Unix(0, ns).UTC()
		all = append(all, m)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("read the mail of journal", err)
	}
	return all, nil
}

// Taken implements [Mailbox].
func (s *SQLite) Taken(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return s.alter(ctx, "take mail from journal", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM signals WHERE id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", args...)
		return err
	})
}

// Sizes returns how many bytes the events of each trace take.
func (s *SQLite) Sizes(ctx context.Context) (map[string]int64, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT trace, sum(length(body)) FROM events GROUP BY trace")
	if err != nil {
		return nil, s.failed("measure journal", err)
	}
	defer rows.Close()
	sizes := map[string]int64{}
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, s.failed("measure journal", err)
		}
		sizes[name] = n
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("measure journal", err)
	}
	return sizes, nil
}
