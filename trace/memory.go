package trace

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/synapse-agents/synapse"
)

// Memory is a [Journal] that lives and dies with the process. Its zero value is
// ready for use. It keeps the events it is given and copies nothing.
type Memory struct {
	mu     sync.RWMutex
	traces map[string]*memoryTrace
	names  map[string]string // of sessions
	mail   []Mail
}

var _ Journal = (*Memory)(nil)

type memoryTrace struct {
	events  []*synapse.Event  // by seq; what is in the array never changes place, so readers need no lock
	parents map[string]string // run → parent, by the run's first event
	summary Summary
}

// Append implements [Journal].
func (m *Memory) Append(ctx context.Context, events ...*synapse.Event) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("journal: append: %w", err)
	}
	kept, err := stored(events)
	if err != nil {
		return fmt.Errorf("journal: append: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range kept { // all or none: look before anything changes
		if t := m.traces[e.Trace]; t != nil && t.has(e.Seq) {
			return fmt.Errorf("journal: append: %w", duplicate(e))
		}
	}
	for _, e := range kept {
		t := m.traces[e.Trace]
		if t == nil {
			if m.traces == nil {
				m.traces = make(map[string]*memoryTrace)
			}
			t = &memoryTrace{parents: make(map[string]string)}
			m.traces[e.Trace] = t
		}
		t.add(e)
	}
	return nil
}

func (t *memoryTrace) has(seq int64) bool {
	if n := len(t.events); n == 0 || t.events[n-1].Seq < seq {
		return false
	}
	_, found := t.find(seq)
	return found
}

// find returns the index of the event, or where it would stand.
func (t *memoryTrace) find(seq int64) (int, bool) {
	return slices.BinarySearchFunc(t.events, seq, func(e *synapse.Event, seq int64) int {
		return cmp.Compare(e.Seq, seq)
	})
}

func (t *memoryTrace) add(e *synapse.Event) {
	if n := len(t.events); n == 0 || t.events[n-1].Seq < e.Seq {
		t.events = append(t.events, e)
	} else { // a reader may be on the array: leave it as it is
		i, _ := t.find(e.Seq)
		t.events = slices.Concat(t.events[:i], []*synapse.Event{e}, t.events[i:])
	}
	if _, known := t.parents[e.Run]; !known {
		t.parents[e.Run] = e.ParentRun
		t.summary.add(e)
	} else if summarizes(e) {
		t.summary.add(e)
	}
}

// under reports whether run is top or below it.
func (t *memoryTrace) under(run, top string) bool {
	for range len(t.parents) + 1 { // a cycle ends too
		if run == top {
			return true
		}
		parent, ok := t.parents[run]
		if !ok {
			return false
		}
		run = parent
	}
	return false
}

// Events implements [Journal]. It yields what is there when the range begins.
func (m *Memory) Events(ctx context.Context, q Query) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		for _, name := range m.tracesOf(q) {
			if !m.trace(ctx, name, q, yield) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, fmt.Errorf("journal: read: %w", err))
		}
	}
}

// tracesOf returns the traces that a query is about, the earliest started first.
func (m *Memory) tracesOf(q Query) []string {
	if q.Trace != "" {
		return []string{q.Trace}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := make([]string, 0, len(m.traces))
	for name := range m.traces {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(m.traces[a].summary.Started.Compare(m.traces[b].summary.Started), cmp.Compare(a, b))
	})
	return names
}

// trace yields the events of one trace and reports whether to go on.
func (m *Memory) trace(ctx context.Context, name string, q Query, yield func(*synapse.Event, error) bool) bool {
	m.mu.RLock()
	t := m.traces[name]
	if t == nil {
		m.mu.RUnlock()
		return true
	}
	events := t.events
	var runs map[string]bool // the subtree, decided for each run once
	if q.Run != "" && q.Subtree {
		runs = make(map[string]bool, len(t.parents))
		for run := range t.parents {
			runs[run] = t.under(run, q.Run)
		}
	}
	m.mu.RUnlock()

	for _, e := range events {
		switch {
		case e.Seq <= q.AfterSeq,
			runs != nil && !runs[e.Run],
			runs == nil && q.Run != "" && e.Run != q.Run,
			len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind):
			continue
		}
		if ctx.Err() != nil {
			return true // Events says why
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

// Traces implements [Journal].
func (m *Memory) Traces(ctx context.Context, q TraceQuery) iter.Seq2[*Summary, error] {
	return func(yield func(*Summary, error) bool) {
		for _, s := range m.summaries(q) {
			if ctx.Err() != nil {
				break
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, fmt.Errorf("journal: list traces: %w", err))
		}
	}
}

func (m *Memory) summaries(q TraceQuery) []*Summary {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []*Summary
	for name, t := range m.traces {
		if q.Trace != "" && name != q.Trace || q.Open && t.summary.Status != StatusOpen {
			continue
		}
		s := t.summary
		s.Runs = len(t.parents)
		all = append(all, &s)
	}
	slices.SortFunc(all, func(a, b *Summary) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Trace, a.Trace))
	})
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[:q.Limit]
	}
	return all
}
