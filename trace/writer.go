package trace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/synapse-agents/synapse"
)

// Bounds of one transaction. They keep one writer from holding the lock for
// long; a single append may be larger than both.
const (
	maxGroupEvents = 1024
	maxGroupBytes  = 8 << 20
)

// maxKnown bounds the writer's memory of what is stored already. Forgetting
// costs an insertion that changes nothing.
const maxKnown = 16384

// A pending is one Append on its way to the file.
type pending struct {
	events  []*synapse.Event
	rows    []row
	specs   [][]byte // by row, nil where there is none
	bytes   int
	durable bool
	taken   bool // under writer.mu: being written, too late to withdraw
	done    chan error
}

// A writer has the one connection that writes, and a goroutine that serves
// the queue: what has queued up while it wrote becomes the next transaction.
type writer struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*pending
	closed bool
	exited chan struct{}

	// What follows belongs to the goroutine.
	db   *sql.DB
	conn *sql.Conn
	stmt statements
	open []*sql.Stmt         // those of stmt
	full bool                // PRAGMA synchronous is FULL
	runs map[runKey]struct{} // known to be in the table
	blob map[string]struct{}

	before func(appends int) // tests watch the groups here; nil otherwise
}

type runKey struct{ trace, run string }

// statements are prepared once.
type statements struct {
	begin, commit, rollback *sql.Stmt
	event, blob, run        *sql.Stmt
	summary, setSummary     *sql.Stmt
}

const eventColumns = "format, trace, seq, v, time, run, parent, agent, spawned_by, kind, spec, body"

func openWriter(ctx context.Context, path string, opt SQLiteOptions) (*writer, error) {
	db, err := openDB(path, "rw", opt.BusyTimeout, "fullfsync(1)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	w := &writer{
		db:     db,
		exited: make(chan struct{}),
		runs:   make(map[runKey]struct{}),
		blob:   make(map[string]struct{}),
	}
	w.wake = sync.NewCond(&w.mu)
	if err := w.prepare(ctx, opt); err != nil {
		w.release()
		return nil, err
	}
	go w.serve()
	return w, nil
}

func (w *writer) prepare(ctx context.Context, opt SQLiteOptions) (err error) {
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return err
	}
	// The schema, too, is on the disk before the journal is used.
	if _, err = w.conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
		return err
	}
	w.full = true
	if err = migrate(ctx, w.conn, opt.BusyTimeout); err != nil {
		return err
	}
	if opt.MaxBytes > 0 {
		var pageSize int64
		if err = w.conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&pageSize); err != nil {
			return err
		}
		if _, err = w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", max(1, opt.MaxBytes/pageSize))); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.stmt.begin, "BEGIN IMMEDIATE"},
		{&w.stmt.commit, "COMMIT"},
		{&w.stmt.rollback, "ROLLBACK"},
		{&w.stmt.event, "INSERT INTO events (" + eventColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&w.stmt.blob, "INSERT OR IGNORE INTO blobs (hash, data) VALUES (?, ?)"},
		{&w.stmt.run, "INSERT OR IGNORE INTO runs (trace, run, parent) VALUES (?, ?, ?)"},
		{&w.stmt.summary, "SELECT format, summary FROM traces WHERE trace = ?"},
		{&w.stmt.setSummary, "INSERT OR REPLACE INTO traces (trace, started, open, format, summary) VALUES (?, ?, ?, ?, ?)"},
	} {
		if *p.stmt, err = w.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
		w.open = append(w.open, *p.stmt)
	}
	return nil
}

// Append implements [Journal].
func (s *SQLite) Append(ctx context.Context, events ...*synapse.Event) error {
	if err := ctx.Err(); err != nil {
		return s.failed("append to journal", err)
	}
	if s.write == nil {
		if s.isClosed() {
			return s.failed("append to journal", ErrClosed)
		}
		return s.failed("append to journal", errors.New("it is open for reading only"))
	}
	kept, err := stored(events)
	if err != nil {
		return s.failed("append to journal", err)
	}
	if len(kept) == 0 {
		return nil
	}
	p := &pending{
		events: kept,
		rows:   make([]row, len(kept)),
		specs:  make([][]byte, len(kept)),
		done:   make(chan error, 1),
	}
	for i, e := range kept {
		if p.rows[i], p.specs[i], err = encodeRow(e); err != nil {
			return s.failed("append to journal", err)
		}
		p.bytes += len(p.rows[i].body) + len(p.specs[i])
		p.durable = p.durable || Durable(e)
	}
	if err := s.write.do(ctx, p); err != nil {
		return s.failed("append to journal", err)
	}
	return nil
}

// do queues an append and waits for its end.
func (w *writer) do(ctx context.Context, p *pending) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, p)
	w.mu.Unlock()
	w.wake.Signal()

	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
	}
	w.mu.Lock()
	if !p.taken {
		for i := range w.queue {
			if w.queue[i] == p {
				w.queue = append(w.queue[:i], w.queue[i+1:]...)
				break
			}
		}
		w.mu.Unlock()
		return ctx.Err()
	}
	w.mu.Unlock()
	return <-p.done
}

// close refuses further appends, waits for the queue to empty, and closes the
// connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake.Signal()
	<-w.exited
	return w.release()
}

// release closes the connection. A statement that is left open would keep
// SQLite from closing the file for good and folding its log into it.
func (w *writer) release() error {
	var errs []error
	for _, s := range w.open {
		errs = append(errs, s.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(append(errs, w.db.Close())...)
}

func (w *writer) serve() {
	defer close(w.exited)
	for {
		group := w.next()
		if group == nil {
			return
		}
		w.commit(group)
	}
}

// next waits for work and takes as much of it as fits into one transaction. It
// returns nil when the writer is closed and has nothing left.
func (w *writer) next() []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.closed {
			return nil
		}
		w.wake.Wait()
	}
	n, events, bytes := 0, 0, 0
	for _, p := range w.queue {
		events, bytes = events+len(p.rows), bytes+p.bytes
		if n > 0 && (events > maxGroupEvents || bytes > maxGroupBytes) {
			break
		}
		p.taken = true
		n++
	}
	group := append([]*pending(nil), w.queue[:n]...)
	w.queue = append(w.queue[:0], w.queue[n:]...)
	clear(w.queue[len(w.queue) : len(w.queue)+n])
	return group
}

// commit writes a group and answers each of its appends. When it fails, every
// append gets its own transaction, so that one with a duplicate does not take
// the others with it.
func (w *writer) commit(group []*pending) {
	err := w.transact(group)
	if err == nil || len(group) == 1 {
		for _, p := range group {
			p.done <- err
		}
		return
	}
	for _, p := range group {
		p.done <- w.transact([]*pending{p})
	}
}

// transact writes all of a group in one transaction, or nothing. No context
// reaches it: a transaction that has begun is finished.
func (w *writer) transact(group []*pending) error {
	ctx := context.Background()
	if w.before != nil {
		w.before(len(group))
	}
	durable := false
	for _, p := range group {
		durable = durable || p.durable
	}
	// In WAL mode, FULL syncs the log at each commit, and with it all that was
	// committed without a sync before; NORMAL leaves that to the checkpoints.
	if durable != w.full {
		level := "NORMAL"
		if durable {
			level = "FULL"
		}
		if _, err := w.conn.ExecContext(ctx, "PRAGMA synchronous = "+level); err != nil {
			return err
		}
		w.full = durable
	}
	if _, err := w.stmt.begin.ExecContext(ctx); err != nil {
		return err
	}
	t := transaction{w: w}
	err := t.insert(ctx, group)
	if err == nil {
		_, err = w.stmt.commit.ExecContext(ctx)
	}
	if err != nil {
		// After some errors SQLite has rolled back by itself, and says so here.
		_, _ = w.stmt.rollback.ExecContext(ctx)
		return err
	}
	t.remember()
	return nil
}

// A transaction collects what may be remembered once it is committed.
type transaction struct {
	w         *writer
	runs      []runKey
	blobs     []string
	summaries []*Summary // of the traces that change
}

func (t *transaction) insert(ctx context.Context, group []*pending) error {
	for _, p := range group {
		for i, e := range p.events {
			if err := t.event(ctx, e, &p.rows[i], p.specs[i]); err != nil {
				return err
			}
		}
	}
	for _, s := range t.summaries {
		data, err := encodeJSON(s)
		if err != nil {
			return err
		}
		var started int64
		if !s.Started.IsZero() {
			started = s.Started.UnixNano()
		}
		if _, err := t.w.stmt.setSummary.ExecContext(ctx, s.Trace, started, s.Status == StatusOpen, rowFormat, data); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) event(ctx context.Context, e *synapse.Event, r *row, spec []byte) error {
	_, err := t.w.stmt.event.ExecContext(ctx, r.format, r.trace, r.seq, r.v, r.time, r.run, r.parent, r.agent, r.spawnedBy, r.kind, r.spec, r.body)
	if err != nil {
		if code(err) == sqlite3.SQLITE_CONSTRAINT {
			return duplicate(e)
		}
		return err
	}
	if hash := string(r.spec); spec != nil && !known(t.w.blob, t.blobs, hash) {
		if _, err := t.w.stmt.blob.ExecContext(ctx, r.spec, spec); err != nil {
			return err
		}
		t.blobs = append(t.blobs, hash)
	}
	key := runKey{e.Trace, e.Run}
	first := !known(t.w.runs, t.runs, key)
	if first {
		if _, err := t.w.stmt.run.ExecContext(ctx, e.Trace, e.Run, e.ParentRun); err != nil {
			return err
		}
		t.runs = append(t.runs, key)
	}
	if first || summarizes(e) {
		s, err := t.summary(ctx, e.Trace)
		if err != nil {
			return err
		}
		s.add(e)
	}
	return nil
}

// summary returns the trace's summary as this transaction has it so far.
func (t *transaction) summary(ctx context.Context, trace string) (*Summary, error) {
	for _, s := range t.summaries {
		if s.Trace == trace {
			return s, nil
		}
	}
	s := new(Summary)
	var format int
	var data []byte
	switch err := t.w.stmt.summary.QueryRowContext(ctx, trace).Scan(&format, &data); {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return nil, err
	case format > rowFormat:
		return nil, fmt.Errorf("summary of trace %q has format %d: %w", trace, format, ErrNewer)
	default:
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("summary of trace %q: %w: %w", trace, ErrDamaged, err)
		}
	}
	t.summaries = append(t.summaries, s)
	return s, nil
}

func known[K comparable](stored map[K]struct{}, staged []K, key K) bool {
	if _, ok := stored[key]; ok {
		return true
	}
	for _, k := range staged {
		if k == key {
			return true
		}
	}
	return false
}

// remember keeps in mind what is now in the file.
func (t *transaction) remember() {
	if len(t.w.runs) > maxKnown {
		clear(t.w.runs)
	}
	if len(t.w.blob) > maxKnown {
		clear(t.w.blob)
	}
	for _, k := range t.runs {
		t.w.runs[k] = struct{}{}
	}
	for _, k := range t.blobs {
		t.w.blob[k] = struct{}{}
	}
}
