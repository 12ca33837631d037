package run

import (
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
)

// maxQueued is how many events may wait for the reader. Deltas join the one
// before them, so a slow screen costs no memory; a run that is this far ahead
// of its journal waits.
const maxQueued = 4096

// A queue carries the events of all runs of a trace to the one reader, in the
// order of their sequence numbers, and tells the writers how far it has read.
type queue struct {
	now     func() time.Time
	mu      sync.Mutex
	cond    *sync.Cond // flushed or failed has changed, or there is room
	wake    chan struct{}
	pending []*synapse.Event
	joined  int // deltas in the last pending event, besides its first
	spare   []*synapse.Event
	seq     int64
	flushed int64
	failed  bool
	closed  bool
}

func newQueue(now func() time.Time) *queue {
	q := &queue{now: now, wake: make(chan struct{}, 1)}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// put stamps an event and queues it, unless its run has ended: what work that
// was given up still has to say is dropped. ended belongs to that run, and to
// this queue's lock.
func (q *queue) put(e *synapse.Event, ended *bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) >= maxQueued && !q.closed {
		q.cond.Wait()
	}
	if q.closed || *ended || q.merge(e) {
		return
	}
	q.joined = 0
	*ended = e.Kind == synapse.KindRunFinished
	q.seq++
	e.Seq, e.Time = q.seq, q.now()
	q.pending = append(q.pending, e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// last returns the number of the event that was queued last.
func (q *queue) last() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seq
}

// maxJoined is how many deltas join: each costs a copy of those before it.
const maxJoined = 64

// merge appends a delta to the last waiting event, if that is a delta of the
// same kind and run.
func (q *queue) merge(e *synapse.Event) bool {
	if e.Kind.Stored() || len(q.pending) == 0 {
		return false
	}
	last := q.pending[len(q.pending)-1]
	if last.Run != e.Run || last.Kind != e.Kind || q.joined >= maxJoined {
		return false
	}
	switch b := e.Body.(type) {
	case *synapse.Text:
		last.Body = &synapse.Text{Text: last.Body.(*synapse.Text).Text + b.Text}
	case *synapse.Reasoning:
		last.Body = &synapse.Reasoning{Text: last.Body.(*synapse.Reasoning).Text + b.Text}
	case *synapse.ToolOutput:
		prev := last.Body.(*synapse.ToolOutput)
		if prev.CallID != b.CallID {
			return false
		}
		last.Body = &synapse.ToolOutput{CallID: b.CallID, Text: prev.Text + b.Text}
	}
	q.joined++
	return true
}

// take waits for events and returns all that are there; nil when the queue is
// closed and empty. The slice is the reader's until its next take.
func (q *queue) take() []*synapse.Event {
	for {
		q.mu.Lock()
		if len(q.pending) > 0 {
			batch := q.pending
			q.pending, q.spare = q.spare[:0], batch
			q.cond.Broadcast()
			q.mu.Unlock()
			return batch
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil
		}
		<-q.wake
	}
}

// flush says that everything up to seq has been read and written.
func (q *queue) flush(seq int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushed = seq
	q.cond.Broadcast()
}

// fail says that nothing more will be written: whoever waits for it gives up.
func (q *queue) fail() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = true
	q.cond.Broadcast()
}

// wait returns when everything up to seq has been written; false when it won't be.
func (q *queue) wait(seq int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.flushed < seq && !q.failed {
		q.cond.Wait()
	}
	return !q.failed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
