package trace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/synapse-agents/synapse"
)

// Bounds of one read. Between two reads nothing is held, so a slow reader
// keeps neither a connection nor the log from being checkpointed.
const (
	chunkEvents = 256
	chunkBytes  = 1 << 20
)

// Events implements [Journal].
func (s *SQLite) Events(ctx context.Context, q Query) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		if err := s.events(ctx, q, yield); err != nil && !errors.Is(err, errBreak) {
			yield(nil, s.failed("read journal", err))
		}
	}
}

// errBreak says that the reader has had enough.
var errBreak = errors.New("break")

func (s *SQLite) events(ctx context.Context, q Query, yield func(*synapse.Event, error) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return ErrClosed
	}
	traces, err := s.tracesOf(ctx, q)
	if err != nil {
		return err
	}
	specs := specCache{s: s}
	for _, trace := range traces {
		after := q.AfterSeq
		for more := true; more; {
			var rows []row
			if rows, more, err = s.chunk(ctx, trace, after, q); err != nil {
				return err
			}
			for i := range rows {
				if err := ctx.Err(); err != nil {
					return err
				}
				e, err := rows[i].decode(func(hash []byte) (*synapse.Spec, error) { return specs.get(ctx, hash) })
				if err != nil {
					return err
				}
				after = e.Seq
				rows[i] = row{} // the body may be large, and the loop slow
				if !yield(e, nil) {
					return errBreak
				}
			}
		}
	}
	return nil
}

// tracesOf returns the traces that a query is about, the earliest started first.
func (s *SQLite) tracesOf(ctx context.Context, q Query) ([]string, error) {
	if q.Trace != "" {
		return []string{q.Trace}, nil
	}
	query, args := "SELECT trace FROM traces ORDER BY started, trace", []any(nil)
	if q.Run != "" {
		query, args = "SELECT trace FROM traces WHERE trace IN (SELECT trace FROM runs WHERE run = ?1 OR parent = ?1) ORDER BY started, trace", []any{q.Run}
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var traces []string
	for rows.Next() {
		var trace string
		if err := rows.Scan(&trace); err != nil {
			return nil, err
		}
		traces = append(traces, trace)
	}
	return traces, rows.Err()
}

// chunk reads the next rows of a trace and reports whether there may be more.
func (s *SQLite) chunk(ctx context.Context, trace string, after int64, q Query) (chunk []row, more bool, err error) {
	var text strings.Builder
	var args []any
	if q.Run != "" && q.Subtree {
		text.WriteString(`WITH RECURSIVE subtree (run) AS (
			SELECT ? UNION SELECT runs.run FROM subtree JOIN runs ON runs.parent = subtree.run AND runs.trace = ?) `)
		args = append(args, q.Run, trace)
	}
	text.WriteString("SELECT " + eventColumns + " FROM events WHERE trace = ? AND seq > ?")
	args = append(args, trace, after)
	switch {
	case q.Run != "" && q.Subtree:
		text.WriteString(" AND run IN subtree")
	case q.Run != "":
		text.WriteString(" AND run = ?")
		args = append(args, q.Run)
	}
	for i, kind := range q.Kinds {
		if i == 0 {
			text.WriteString(" AND kind IN (?")
		} else {
			text.WriteString(", ?")
		}
		args = append(args, string(kind))
	}
	if len(q.Kinds) > 0 {
		text.WriteString(")")
	}
	text.WriteString(" ORDER BY seq LIMIT ?")
	args = append(args, chunkEvents)

	rows, err := s.read.QueryContext(ctx, text.String(), args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for bytes := 0; bytes < chunkBytes && rows.Next(); {
		var r row
		if err := rows.Scan(&r.format, &r.trace, &r.seq, &r.v, &r.time, &r.run, &r.parent, &r.agent, &r.spawnedBy, &r.kind, &r.spec, &r.body); err != nil {
			return nil, false, fmt.Errorf("after event %d of trace %q: %w", after, trace, err)
		}
		bytes += len(r.body)
		chunk = append(chunk, r)
		more = len(chunk) == chunkEvents || bytes >= chunkBytes
	}
	return chunk, more, rows.Err()
}

// maxSpecs bounds how many specs a reader keeps.
const maxSpecs = 64

// A specCache reads each spec once, so that the runs of one spec share it.
type specCache struct {
	s     *SQLite
	specs map[string]*synapse.Spec
}

func (c *specCache) get(ctx context.Context, hash []byte) (*synapse.Spec, error) {
	if spec := c.specs[string(hash)]; spec != nil {
		return spec, nil
	}
	var data []byte
	err := c.s.read.QueryRowContext(ctx, "SELECT data FROM blobs WHERE hash = ?", hash).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: the spec %x is missing", ErrDamaged, hash)
	}
	if err != nil {
		return nil, err
	}
	spec, err := decodeSpec(hash, data)
	if err != nil {
		return nil, err
	}
	if c.specs == nil || len(c.specs) >= maxSpecs {
		c.specs = make(map[string]*synapse.Spec)
	}
	c.specs[string(hash)] = spec
	return spec, nil
}

// Traces implements [Journal]. It reads the list before it yields the first.
func (s *SQLite) Traces(ctx context.Context, q TraceQuery) iter.Seq2[*Summary, error] {
	return func(yield func(*Summary, error) bool) {
		all, err := s.summaries(ctx, q)
		if err == nil {
			for _, sum := range all {
				if err = ctx.Err(); err != nil {
					break
				}
				if !yield(sum, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, s.failed("list traces of journal", err))
		}
	}
}

func (s *SQLite) summaries(ctx context.Context, q TraceQuery) ([]*Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, ErrClosed
	}
	limit := q.Limit
	if limit <= 0 {
		limit = -1
	}
	rows, err := s.read.QueryContext(ctx, `SELECT trace, format, summary, (SELECT count(*) FROM runs WHERE runs.trace = traces.trace)
		FROM traces WHERE (?1 = '' OR trace = ?1) AND (NOT ?2 OR open) ORDER BY started DESC, trace DESC LIMIT ?3`, q.Trace, q.Open, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []*Summary
	for rows.Next() {
		var trace string
		var format, runs int
		var data []byte
		if err := rows.Scan(&trace, &format, &data, &runs); err != nil {
			return nil, err
		}
		if format > rowFormat {
			return nil, fmt.Errorf("summary of trace %q has format %d: %w", trace, format, ErrNewer)
		}
		sum := new(Summary)
		if err := json.Unmarshal(data, sum); err != nil {
			return nil, fmt.Errorf("summary of trace %q: %w: %w", trace, ErrDamaged, err)
		}
		sum.Runs = runs
		all = append(all, sum)
	}
	return all, rows.Err()
}
