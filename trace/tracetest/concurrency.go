package tracetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

func testConcurrent(t *testing.T, j trace.Journal) {
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			own := Run{Trace: fmt.Sprint("own", w), ID: fmt.Sprint("r", w)}
			shared := Run{Trace: "shared", ID: fmt.Sprint("r", w)}
			for i := range each {
				err := j.Append(t.Context(),
					own.Event(int64(i+1), &synapse.Warning{}),
					shared.Event(int64(w+i*writers+1), &synapse.ToolStarted{Effect: synapse.EffectUnsafe}))
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				// One writer's duplicate is its own affair.
				if err := j.Append(t.Context(), own.Event(int64(i+1), &synapse.Warning{})); !errors.Is(err, trace.ErrDuplicate) {
					t.Errorf("writer %d: duplicate: got error %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		if got := read(t, j, trace.Query{Trace: fmt.Sprint("own", w)}); len(got) != each {
			t.Errorf("trace of writer %d has %d events, want %d", w, len(got), each)
		}
	}
	got := seqs(read(t, j, trace.Query{Trace: "shared"}))
	if len(got) != writers*each {
		t.Fatalf("shared trace has %d events, want %d", len(got), writers*each)
	}
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("shared trace: place %d has seq %d", i, seq)
		}
	}
	for _, s := range list(t, j, trace.TraceQuery{Trace: "shared"}) {
		if s.Runs != writers {
			t.Errorf("shared trace has %d runs, want %d", s.Runs, writers)
		}
	}
}

func testReadWhileWriting(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			if err := j.Append(context.WithoutCancel(t.Context()), run.Event(int64(i+1), &synapse.Warning{})); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	}()
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true
		default:
		}
		var last int64
		for e, err := range j.Events(t.Context(), trace.Query{Trace: "t"}) {
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			if e.Seq != last+1 { // one writer, in order: a reader never sees a gap
				t.Fatalf("event %d follows %d", e.Seq, last)
			}
			last = e.Seq
		}
		if finished && last != 300 {
			t.Errorf("after the last append, the last event is %d", last)
		}
	}
}

func testAppendInside(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	for i := range 5 {
		appendAll(t, j, run.Event(int64(i+1), &synapse.Warning{}))
	}
	i := int64(0)
	for e, err := range j.Events(t.Context(), trace.Query{Trace: "t", AfterSeq: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 5 {
			break // whether these are seen is the journal's choice
		}
		i++
		appendAll(t, j, run.Event(100+i, &synapse.Warning{}))
		if got := read(t, j, trace.Query{Trace: "t", AfterSeq: 100}); int64(len(got)) != i {
			t.Fatalf("inside the loop, %d of %d new events are there", len(got), i)
		}
	}
	if got := read(t, j, trace.Query{Trace: "t"}); len(got) != 10 {
		t.Errorf("%d events, want 10", len(got))
	}
}

func testBreak(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	var batch []*synapse.Event
	for i := range 1000 {
		batch = append(batch, run.Event(int64(i+1), &synapse.Warning{}))
	}
	appendAll(t, j, batch...)
	for range 50 { // a connection lost to each break would be felt by now
		n := 0
		for _, err := range j.Events(t.Context(), trace.Query{Trace: "t"}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 3 {
				break
			}
		}
		for range j.Traces(t.Context(), trace.TraceQuery{}) {
			break
		}
	}
	events := j.Events(t.Context(), trace.Query{Trace: "t", AfterSeq: 990})
	for range 2 { // a sequence may be ranged over again
		if got, err := trace.Collect(events); err != nil || len(got) != 10 {
			t.Errorf("got %d events and error %v, want 10", len(got), err)
		}
	}
	next, stop := iter.Pull2(events)
	next()
	stop()
}

func testCancel(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := j.Append(ctx, run.Event(1, &synapse.Warning{}), run.Event(2, &synapse.Warning{})); err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for _, err := range j.Events(ctx, trace.Query{}) {
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if n != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled at the first event: %d events, error %v", n, last)
	}
	if err := j.Append(ctx, run.Event(3, &synapse.Warning{})); !errors.Is(err, context.Canceled) {
		t.Errorf("append: got error %v, want context.Canceled", err)
	}
	for _, err := range j.Events(ctx, trace.Query{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read: got error %v, want context.Canceled", err)
		}
	}
	for _, err := range j.Traces(ctx, trace.TraceQuery{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("list: got error %v, want context.Canceled", err)
		}
	}
	if diff := cmp.Diff([]int64{1, 2}, seqs(read(t, j, trace.Query{}))); diff != "" {
		t.Errorf("after a cancelled append (-want +got):\n%s", diff)
	}
	// An answer is true: an append that says it failed has left nothing, one
	// that says it worked has left all.
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		seq := int64(10 + 2*i)
		err := j.Append(ctx, run.Event(seq, &synapse.Conclusion{}), run.Event(seq+1, &synapse.Warning{}))
		got := len(read(t, j, trace.Query{AfterSeq: seq - 1}))
		if err == nil && got != 2 || err != nil && got != 0 {
			t.Errorf("append returned %v and left %d of 2 events", err, got)
		}
		cancel()
	}
}

func testCallersSlice(t *testing.T, j trace.Journal) {
	run := Run{Trace: "t", ID: "r"}
	batch := []*synapse.Event{run.Event(1, &synapse.Warning{}), run.Event(2, &synapse.Warning{})}
	appendAll(t, j, batch...)
	batch[0], batch[1] = nil, nil // the slice is the caller's again
	if got := seqs(read(t, j, trace.Query{})); len(got) != 2 {
		t.Errorf("stored %v", got)
	}
}
