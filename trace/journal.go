// Package trace keeps the events of runs and reads them back: a [Journal] that
// is written ahead of every effect, in memory ([Memory]) or in a SQLite file
// ([SQLite]); a fold of events into a tree of runs ([Build]); a check that a
// history keeps its promises ([Verify]); and the exchange format ([WriteJSONL],
// [ReadJSONL]).
//
// A writer appends an event before it acts on it:
//
//	for ev, err := range runner.Run(ctx, graph, input) {
//		if err != nil {
//			return err
//		}
//		if err := journal.Append(ctx, ev); err != nil {
//			return err
//		}
//	}
//
// The loop goes on only when the body of that range has returned, so an event
// that announces an effect is durable before the effect begins.
package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/synapse-agents/synapse"
)

// A Journal stores events and yields them again. Its methods may be called from
// several goroutines at once. An implementation that holds resources is also an
// [io.Closer].
//
// Events handed to a journal, and events that it yields, are shared: nobody may
// change them afterwards.
type Journal interface {
	// Append stores the events in their order, all of them or none. When it
	// returns and [Durable] holds for any of them, they and everything that
	// was appended before survive a crash of the machine; otherwise they
	// survive a crash of the process.
	//
	// Events whose kind is not stored (see [synapse.EventKind.Stored]) are
	// left out. A pair of trace and seq that is there already is
	// [ErrDuplicate], never overwritten. A ctx that ends before writing has
	// begun leaves nothing written; once it has begun, Append waits for it, so
	// that its answer is true. To record the end of a cancelled run, pass
	// [context.WithoutCancel].
	Append(ctx context.Context, events ...*synapse.Event) error

	// Events yields what matches, trace by trace, the earliest started first,
	// and within a trace by seq; at most one error, last. The body of the loop may append and query. Whether events that are
	// appended meanwhile are yielded is not defined.
	Events(ctx context.Context, q Query) iter.Seq2[*synapse.Event, error]

	// Traces yields summaries, the latest started first; at most one error, last.
	Traces(ctx context.Context, q TraceQuery) iter.Seq2[*Summary, error]
}

// A Query selects events. Every field that is set narrows it; the zero value
// selects all events there are.
type Query struct {
	Trace string
	Run   string
	// Subtree adds to Run every run below it.
	Subtree bool
	// AfterSeq leaves out events whose seq is not greater.
	AfterSeq int64
	Kinds    []synapse.EventKind
}

// A TraceQuery selects traces. The zero value selects all.
type TraceQuery struct {
	Trace string
	Open  bool // only those whose main run has no end
	Limit int  // at most so many; 0 means all
}

// The errors of a journal that a caller may want to tell apart.
var (
	// ErrDuplicate says that an event's trace and seq are taken.
	ErrDuplicate = errors.New("an event with this trace and seq is already stored")
	// ErrClosed says that the journal has been closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrDamaged says that a journal's file, or a row in it, is not what this
	// package wrote.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrNewer says that a newer version of the program wrote it.
	ErrNewer = errors.New("the journal was written by a newer version of this program")
)

// Durable reports whether an event must be on the disk, not just on its way
// there, before the writer goes on. That holds for every event which something
// irrevocable follows, and for every end that has been announced:
//
//   - run_started: tokens are spent from here on, and a run that nobody knows
//     of cannot be resumed
//   - tool_started of a call with an effect, that is, unless it only reads
//   - approval_answered: the call it allows comes next
//   - child_started: the child's run comes next
//   - conclusion and run_finished: the user has been told
//   - any kind that this function does not know
//
// The others cost nothing but time when a power failure takes them: a model
// request goes out again; a question is asked again; the result of a call whose
// start is known is what a resume treats as an unknown outcome; a child's end
// is in the child's own run_finished. They are written in order all the same, so
// a durable event is never there without its predecessors, and a crash of the
// process alone loses nothing.
func Durable(e *synapse.Event) bool {
	switch e.Kind {
	case synapse.KindToolStarted:
		started, ok := e.Body.(*synapse.ToolStarted)
		return !ok || started.Effect != synapse.EffectRead
	case synapse.KindModelRequested, synapse.KindModelReplied, synapse.KindCompacted, synapse.KindRetry, synapse.KindWarning,
		synapse.KindToolFinished, synapse.KindApprovalAsked, synapse.KindChildFinished:
		return false
	}
	return e.Kind.Stored()
}

// Of yields the events, for functions that read a stream.
func Of(events ...*synapse.Event) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Collect reads a stream of events to its end. With an error it returns the
// events that came before.
func Collect(events iter.Seq2[*synapse.Event, error]) ([]*synapse.Event, error) {
	var all []*synapse.Event
	for e, err := range events {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// stored returns the events that belong in a journal, in order, after checking
// that each can be read back: a journal takes no event that it could not yield.
// It never changes the caller's slice.
func stored(events []*synapse.Event) ([]*synapse.Event, error) {
	kept := events
	for i, e := range events {
		if e == nil {
			return nil, fmt.Errorf("event %d of %d is nil", i+1, len(events))
		}
		if !e.Kind.Stored() {
			if len(kept) == len(events) {
				kept = slices.Clone(events[:i])
			}
			continue
		}
		if err := check(e); err != nil {
			return nil, err
		}
		if len(kept) != len(events) {
			kept = append(kept, e)
		}
	}
	if len(kept) > 1 {
		if err := distinct(kept); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// distinct finds an event that is twice in one batch.
func distinct(events []*synapse.Event) error {
	ascending := true
	for i := 1; i < len(events) && ascending; i++ {
		ascending = events[i-1].Trace == events[i].Trace && events[i-1].Seq < events[i].Seq
	}
	if ascending {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(events), func(a, b *synapse.Event) int {
		return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Seq, b.Seq))
	})
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; a.Trace == b.Trace && a.Seq == b.Seq {
			return duplicate(b)
		}
	}
	return nil
}

// check refuses an event that a reader could not make sense of.
func check(e *synapse.Event) error {
	switch {
	case e.Trace == "":
		return fmt.Errorf("event %d (%s) names no trace", e.Seq, e.Kind)
	case e.Run == "":
		return fmt.Errorf("event %d (%s) of trace %q names no run", e.Seq, e.Kind, e.Trace)
	case e.Seq < 1:
		return fmt.Errorf("event %d (%s) of trace %q: seq counts from 1", e.Seq, e.Kind, e.Trace)
	case e.V < 1 || e.V > synapse.EventVersion:
		return fmt.Errorf("event %d (%s) of trace %q has version %d, want 1 to %d", e.Seq, e.Kind, e.Trace, e.V, synapse.EventVersion)
	case !e.Kind.Known():
		return fmt.Errorf("event %d of trace %q: unknown kind %q", e.Seq, e.Trace, e.Kind)
	case e.Body == nil:
		return fmt.Errorf("event %d (%s) of trace %q has no body", e.Seq, e.Kind, e.Trace)
	case e.Body.Kind() != e.Kind:
		return fmt.Errorf("event %d (%s) of trace %q has the body of a %s", e.Seq, e.Kind, e.Trace, e.Body.Kind())
	case !e.Time.IsZero() && (e.Time.Before(earliest) || e.Time.After(latest)):
		return fmt.Errorf("event %d (%s) of trace %q: time %s is out of range", e.Seq, e.Kind, e.Trace, e.Time)
	}
	return nil
}

// The times that fit into 64 bits of nanoseconds, rounded to whole years.
var (
	earliest = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

func duplicate(e *synapse.Event) error {
	return fmt.Errorf("event %d (%s) of trace %q: %w", e.Seq, e.Kind, e.Trace, ErrDuplicate)
}
