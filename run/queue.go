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
	block   []synapse.Event // where the next events come from: they are made several at a time
	asleep  bool            // the reader waits for the next event, however long that takes
	hurry   bool            // somebody waits for the events that are there
	pause   *time.Timer     // the reader's
	seq     int64
	flushed int64
	failed  bool
	closed  bool
}

// readerPause is how long the reader lets events gather. Runs at work emit one
// every few microseconds; to wake the reader costs more than to emit, and a batch
// of the journal's more than an event in it. Who needs an event written does not
// wait for that: see wait.
const readerPause = time.Millisecond

func newQueue(now func() time.Time) *queue {
	q := &queue{now: now, wake: make(chan struct{}, 1)}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// put stamps an event of a run and queues it, unless that has ended: what work
// that was given up still has to say is dropped.
func (q *queue) put(r *localRun, body synapse.Body) {
	kind := body.Kind()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) >= maxQueued && !q.closed {
		q.press()
	}
	if q.closed || r.finished || q.merge(r.who.Run, kind, body) {
		return
	}
	if len(q.block) == 0 {
		q.block = make([]synapse.Event, 16)
	}
	e := &q.block[0]
	q.block = q.block[1:]
	q.seq++
	*e = r.who
	e.Seq, e.Time, e.Kind, e.Body = q.seq, q.now(), kind, body
	q.joined = 0
	r.finished = kind == synapse.KindRunFinished
	if h, ok := body.(*synapse.HandedOff); ok {
		r.who.Agent = h.To // from the next event on
	}
	q.pending = append(q.pending, e)
	if q.asleep {
		q.asleep = false
		q.rouse()
	}
}

// press has the reader take what is there, and waits until it has gone on.
func (q *queue) press() {
	q.hurry = len(q.pending) > 0 // else it is being read
	q.rouse()
	q.cond.Wait()
}

// rouse wakes the reader.
func (q *queue) rouse() {
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
func (q *queue) merge(run string, kind synapse.EventKind, body synapse.Body) bool {
	if kind.Stored() || len(q.pending) == 0 {
		return false
	}
	last := q.pending[len(q.pending)-1]
	if last.Run != run || last.Kind != kind || q.joined >= maxJoined {
		return false
	}
	switch b := body.(type) {
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

// take waits for events, lets more gather unless somebody is in a hurry, and
// returns all that are there; nil when the queue is closed and empty. The slice is
// the reader's until its next take.
func (q *queue) take() []*synapse.Event {
	var gathering <-chan time.Time
	for gathered := false; ; {
		q.mu.Lock()
		waiting := len(q.pending) > 0
		if waiting && (gathered || q.hurry) || q.closed {
			defer q.mu.Unlock()
			if !waiting {
				return nil
			}
			batch := q.pending
			clear(q.spare) // the reader has them, and may let them go
			q.pending, q.spare = q.spare[:0], batch
			q.hurry = false
			q.cond.Broadcast()
			return batch
		}
		q.asleep = !waiting
		q.mu.Unlock()
		if waiting && gathering == nil {
			if q.pause == nil {
				q.pause = time.NewTimer(readerPause)
			} else {
				q.pause.Reset(readerPause)
			}
			gathering = q.pause.C
		}
		select {
		case <-q.wake:
		case <-gathering:
			gathered = true
		}
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
		q.press()
	}
	return !q.failed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
	q.rouse()
}
