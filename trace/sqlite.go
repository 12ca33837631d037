package trace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite is a [Journal] in a SQLite file. Several journals, in one process or
// in many, may have the same file open and write to it at the same time.
//
// Appends that come together share one transaction, and one sync of the disk if
// any of them needs it: see [Durable].
type SQLite struct {
	path  string
	write *writer // nil when read-only
	read  *sql.DB

	mu     sync.Mutex
	closed bool
	side   *sql.DB // for what people change; nil until it is needed
}

var (
	_ Journal   = (*SQLite)(nil)
	_ io.Closer = (*SQLite)(nil)
)

// SQLiteOptions are the options of [OpenSQLite]. The zero value is the default.
type SQLiteOptions struct {
	// ReadOnly opens a file that exists and never writes to it. A file that
	// does not exist is [fs.ErrNotExist].
	ReadOnly bool
	// BusyTimeout is how long a write waits for another process's; default 30 s.
	BusyTimeout time.Duration
	// MaxBytes bounds the size of the file. An Append that would pass it fails
	// and leaves nothing. 0 means no bound.
	MaxBytes int64
}

const defaultBusyTimeout = 30 * time.Second

// Engine names the database library and its version.
func Engine() string { return "SQLite " + sqlite3.SQLITE_VERSION }

// OpenSQLite opens the journal at path. A file that does not exist is created,
// for its owner alone, with the directories above it. A file of an older
// version is brought up to date.
//
// A file that is damaged ([ErrDamaged]), that belongs to another program or
// that a newer version of this one wrote ([ErrNewer]) is an error and stays as
// it is.
func OpenSQLite(ctx context.Context, path string, opt SQLiteOptions) (*SQLite, error) {
	if path == "" {
		return nil, errors.New("open journal: no path given")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	if opt.BusyTimeout <= 0 {
		opt.BusyTimeout = defaultBusyTimeout
	}
	s := &SQLite{path: abs}
	if err := s.open(ctx, opt); err != nil {
		s.Close()
		return nil, s.failed("open journal", err)
	}
	return s, nil
}

func (s *SQLite) open(ctx context.Context, opt SQLiteOptions) error {
	if opt.ReadOnly {
		if _, err := os.Stat(s.path); err != nil {
			return err
		}
	} else if err := create(s.path); err != nil {
		return err
	}
	state, err := probe(ctx, s.path, opt.BusyTimeout)
	if err != nil {
		return err
	}
	if opt.ReadOnly && state.version != schemaVersion {
		return fmt.Errorf("its format (version %d) is older than this program's (%d): open it for writing once", state.version, schemaVersion)
	}
	if !opt.ReadOnly {
		if s.write, err = openWriter(ctx, s.path, opt); err != nil {
			return err
		}
	}
	mode := ""
	if opt.ReadOnly {
		mode = "ro"
	}
	if s.read, err = openDB(s.path, mode, opt.BusyTimeout, "query_only(1)"); err != nil {
		return err
	}
	s.read.SetMaxIdleConns(4)
	return s.read.PingContext(ctx)
}

// Close waits for the appends that have been accepted and closes the file. It
// may be called more than once.
func (s *SQLite) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	side := s.side
	s.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	if side != nil {
		errs = append(errs, side.Close())
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil { // last: the last connection to go checkpoints the log
		errs = append(errs, s.write.close())
	}
	if err := errors.Join(errs...); err != nil {
		return s.failed("close journal", err)
	}
	return nil
}

// Path returns the absolute path of the file.
func (s *SQLite) Path() string { return s.path }

// Check reads the whole file and returns [ErrDamaged] with what is wrong, nil
// if nothing is. It takes time in proportion to the file's size.
func (s *SQLite) Check(ctx context.Context) error {
	rows, err := s.read.QueryContext(ctx, "PRAGMA integrity_check(10)")
	if err != nil {
		return s.failed("check journal", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return s.failed("check journal", err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		return s.failed("check journal", err)
	}
	if len(found) > 0 {
		return s.failed("check journal", fmt.Errorf("%w: %s", ErrDamaged, strings.Join(found, "; ")))
	}
	return nil
}

// failed wraps an error with what was being done and, where there is one, the
// way out.
func (s *SQLite) failed(op string, err error) error {
	var hint string
	var damaged, closed bool
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			damaged = !errors.Is(err, ErrDamaged)
		case sqlite3.SQLITE_FULL:
			hint = "the disk is full, or the journal has reached its size limit"
		case sqlite3.SQLITE_BUSY:
			hint = "another process has kept it locked"
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
			hint = "check the permissions of the file and its directory"
		}
	}
	if s.isClosed() && (errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "database is closed")) {
		closed = true
	}
	switch {
	case closed:
		return fmt.Errorf("%s %s: %w", op, s.path, ErrClosed)
	case damaged:
		return fmt.Errorf("%s %s: %w: %w; move the file away to start a new one", op, s.path, ErrDamaged, err)
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%s %s: %w; move the file away to start a new one", op, s.path, err)
	case errors.Is(err, ErrNewer):
		return fmt.Errorf("%s %s: %w; update this program, or name another file", op, s.path, err)
	case hint != "":
		return fmt.Errorf("%s %s: %w (%s)", op, s.path, err, hint)
	}
	return fmt.Errorf("%s %s: %w", op, s.path, err)
}

func (s *SQLite) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// create makes an empty file for its owner alone, unless there is a file.
//
// The file gets its place by a link, after it has been closed. To close a file
// is to give up every POSIX lock that this process has on it, those of another
// journal in the process included, which may have opened it in between.
func create(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links: the plain way.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err == nil {
			return f.Close()
		}
	}
	// The name must survive a crash as well as the content. Not every system
	// can sync a directory; then there is nothing more to be done.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// openDB prepares a pool of connections; it opens none yet. Mode is SQLite's:
// "ro" never creates or writes.
func openDB(path, mode string, busy time.Duration, pragmas ...string) (*sql.DB, error) {
	q := url.Values{}
	if mode != "" {
		q.Set("mode", mode)
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") { // C:/…
		name = "/" + name
	}
	u := url.URL{Scheme: "file", Path: name, RawQuery: q.Encode()}
	connector, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
