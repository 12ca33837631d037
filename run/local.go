package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/synapse-agents/synapse"
)

// Local is the runtime in this process. Its fields are set before its first use
// and not changed after; it may run any number of traces at once, which share
// its provider throttles.
type Local struct {
	// Model returns the model of a reference.
	Model func(synapse.ModelRef) (synapse.Model, error)
	// Ask puts a question to the user. Several may be open at once, told apart
	// by their id. Nil: nobody is there, and every question is a denial.
	Ask func(context.Context, synapse.Ask) (synapse.Answer, error)
	// Append writes a batch of events ahead: what they announce begins only
	// after it has returned. It is called by one goroutine at a time for each
	// trace. An error cancels the trace. Nil: events are not kept.
	Append func(context.Context, []*synapse.Event) error
	// History returns the events of a run, for continuing a sub-agent. Nil: no
	// sub-agent can be continued.
	History func(ctx context.Context, run string) iter.Seq2[*synapse.Event, error]
	// Keep stores a text that is too long for a message and returns the path
	// under which read_file finds it.
	Keep func(ctx context.Context, name, text string) (path string, err error)
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// NewID makes the ids of traces, random when nil.
	NewID func() string
	// Log gets what is nobody's result: the stack of a panic. Nil: discarded.
	Log *slog.Logger
	// MaxParallel bounds the model requests, and as well the tool calls, in
	// flight at once within a trace. 0 means 64.
	MaxParallel int
	Retry       Retry
	// IdleTimeout is how long a stream may be silent before it counts as
	// broken. 0 means 60 s.
	IdleTimeout time.Duration
	// Grace is how long cancelled work gets to stop before it is given up. 0
	// means 5 s.
	Grace time.Duration

	mu        sync.Mutex
	throttles map[string]*throttle // by provider
}

// Input is one user request.
type Input struct {
	Prompt string
	// Messages is the conversation before the prompt.
	Messages []synapse.Message
	// Trace is the id of the new trace; empty: one is made.
	Trace string
	// Limits narrow those of the entry's spec.
	Limits synapse.Limits
}

// Run runs the program's entry with a prompt and yields the events of the whole
// trace, sub-agents included, in order. The loop body of the caller's range
// runs before anything that an event announces begins.
//
// There is at most one error, last: the journal's, or that there is no prompt.
// How the run itself ended is told by its run_finished event. Breaking out of
// the range, or the end of ctx, cancels the trace; Run returns when every run of
// it has ended, and the journal has their ends too.
func (l *Local) Run(ctx context.Context, p *Program, in Input) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		if in.Prompt == "" {
			yield(nil, errors.New("run: the prompt is empty"))
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		t := l.newTrace(p, in)
		go func() {
			defer t.events.close()
			t.main(ctx, in)
		}()

		var appendErr error
		gone := false // the caller has stopped listening
		for batch := t.events.take(); batch != nil; batch = t.events.take() {
			if l.Append != nil && appendErr == nil {
				if stored := storedOf(batch); len(stored) > 0 {
					if err := l.Append(context.WithoutCancel(ctx), stored); err != nil {
						appendErr = fmt.Errorf("run: write the journal: %w", err)
						t.events.fail()
						cancel(appendErr)
					}
				}
			}
			for _, e := range batch {
				if !gone && !yield(e, nil) {
					gone = true
					cancel(ErrCancelled)
				}
			}
			t.events.flush(batch[len(batch)-1].Seq)
		}
		if appendErr != nil && !gone {
			yield(nil, appendErr)
		}
	}
}

// storedOf returns the events of a batch that belong in a journal.
func storedOf(batch []*synapse.Event) []*synapse.Event {
	n := 0
	for _, e := range batch {
		if e.Kind.Stored() {
			n++
		}
	}
	if n == len(batch) {
		return batch
	}
	stored := make([]*synapse.Event, 0, n)
	for _, e := range batch {
		if e.Kind.Stored() {
			stored = append(stored, e)
		}
	}
	return stored
}

// localTrace is one user request on its way: what its runs share.
type localTrace struct {
	l      *Local
	p      *Program
	id     string
	events *queue
	models chan struct{} // slots
	tools  chan struct{}
	runs   sync.WaitGroup // runs and calls that have not ended
	mu     sync.Mutex     // of all accounts
}

func (l *Local) newTrace(p *Program, in Input) *localTrace {
	slots := l.MaxParallel
	if slots <= 0 {
		slots = 64
	}
	t := &localTrace{l: l, p: p, id: in.Trace, events: newQueue(), models: make(chan struct{}, slots), tools: make(chan struct{}, slots)}
	if t.id == "" {
		t.id = l.newID()
	}
	return t
}

// main runs the entry, then waits for everything it has started.
func (t *localTrace) main(ctx context.Context, in Input) {
	spec := t.p.Entry()
	limits := spec.Limits.Min(in.Limits)
	acct := &account{mu: &t.mu, agent: spec.Agent, limits: limits}
	deadline := deadlineOf(time.Time{}, limits.Time, t.l.now())
	r := t.newRun(ctx, &synapse.Event{Run: t.id, Agent: spec.Agent}, acct, deadline, time.Time{})
	input := append(append(append([]synapse.Message(nil), in.Messages...), spec.Preload...), synapse.UserText(in.Prompt))
	r.loop(Start{
		Run: t.id, Trace: t.id, Spec: spec, Input: input, Limits: limits, Deadline: deadline,
	})
	t.runs.Wait()
}

func (l *Local) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

func (l *Local) newID() string {
	if l.NewID != nil {
		return l.NewID()
	}
	return rand.Text()[:16]
}

func (l *Local) log() *slog.Logger {
	if l.Log != nil {
		return l.Log
	}
	return slog.New(slog.DiscardHandler)
}

func (l *Local) grace() time.Duration {
	if l.Grace > 0 {
		return l.Grace
	}
	return 5 * time.Second
}
