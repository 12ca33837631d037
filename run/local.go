package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
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
	// Size says how much a model takes. Nil: nothing is known of any model. It
	// may be called from several goroutines at once.
	Size func(synapse.ModelRef) synapse.ModelSize
	// Ask puts a question to the user. Several may be open at once, told apart
	// by their id. Nil: nobody is there, and every question is a denial.
	Ask func(context.Context, synapse.Ask) (synapse.Answer, error)
	// Append writes a batch of events ahead: what they announce begins only
	// after it has returned. It is called by one goroutine at a time for each
	// trace, and must not keep the slice. An error cancels the trace. Nil: events
	// are not kept.
	Append func(context.Context, []*synapse.Event) error
	// History returns the events of a run, for continuing a sub-agent. Nil: no
	// sub-agent can be continued.
	History func(ctx context.Context, run string) iter.Seq2[*synapse.Event, error]
	// Keep stores a text that is too long for a message and returns the path
	// under which read_file finds it.
	Keep func(ctx context.Context, name, text string) (path string, err error)
	// Intercept, if not nil, stands between the runs and their models; see
	// [Intercept].
	Intercept Intercept
	// Now is the clock, time.Now when nil. It must not wait for a run.
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
	running   map[string]*localRun // by run id; nil for one that is about to start
}

// An Intercept answers a model request in its own way, or has the models asked: ask
// does that, with all attempts and fallbacks, and is called at most once. It may be
// called from several goroutines at once. Its reply is the run's to change.
type Intercept func(ctx context.Context, req *ModelRequest, ask AskModel) (*synapse.Reply, error)

// AskModel has the models answer.
type AskModel func(ctx context.Context) (*synapse.Reply, error)

// ModelRequest is a turn's request with its place in the trace. Whoever gets it
// doesn't change it.
type ModelRequest struct {
	Trace, Run, ParentRun, Agent string
	// Key is the place of the call in the parent's run that started this one, "" for
	// the main agent's.
	Key string
	// Path names the run by how it came about, the same in every trace that takes
	// the same course: "main > explore@t1/tool/2".
	Path     string
	Turn     int // from 1, of this start
	Model    synapse.ModelRef
	Fallback []synapse.ModelRef
	Request  *synapse.Request
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
	// Before is the conversation before the prompt, as the state of the main run
	// of the trace After; both or neither. The prompt then goes on with it, and what
	// its sub-agents are is known.
	Before *State
	After  string
	// Session is the conversation's name, and Workspace the directory worked in:
	// the main run's first event has them.
	Session, Workspace string
	// Spec is the id of the spec that answers, or of the workflow that runs, with
	// its input as the prompt, a JSON object; empty: the entry.
	Spec string
	// From resumes a trace that was cut off; see [Restore]. Everything else in
	// the input is then left out: the request is the one that is in the trace.
	From *Checkpoint
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
		if in.Prompt == "" && in.From == nil {
			yield(nil, errors.New("run: the prompt is empty"))
			return
		}
		if _, err := p.entry(in); err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		t := l.newTrace(p, in)
		go t.main(ctx, in)

		r := &reader{t: t, ctx: context.WithoutCancel(ctx), cancel: cancel, yield: yield}
		// When the loop body panics or ends its goroutine, the runs still come to
		// their ends, and those are written. After a whole read this does nothing.
		defer r.read()
		r.read()
		if r.err != nil && r.yield != nil {
			yield(nil, r.err)
		}
	}
}

// A reader takes the events of a trace to the journal, then to whoever ranges
// over them.
type reader struct {
	t      *localTrace
	ctx    context.Context // for the journal: it outlives the trace's
	cancel context.CancelCauseFunc
	yield  func(*synapse.Event, error) bool // nil once nobody listens
	err    error                            // the journal's
}

// read reads to the end of the trace.
func (r *reader) read() {
	for batch := r.t.events.take(); batch != nil; batch = r.t.events.take() {
		r.pass(batch)
	}
}

// pass writes a batch, yields it, and then lets begin what it announces.
func (r *reader) pass(batch []*synapse.Event) {
	passed := false
	defer func() {
		if !passed {
			r.leave()
		}
		r.t.events.flush(batch[len(batch)-1].Seq)
	}()
	if r.t.l.Append != nil && r.err == nil {
		if r.err = r.write(batch); r.err != nil {
			r.cancel(r.err)
			r.t.events.fail()
		}
	}
	for _, e := range batch {
		if r.yield != nil && !r.yield(e, nil) {
			r.leave()
		}
	}
	passed = true
}

// leave cancels the trace because nobody listens any more.
func (r *reader) leave() {
	r.yield = nil
	r.cancel(ErrCancelled)
}

// write appends a batch to the journal. A panic in there is its error.
func (r *reader) write(batch []*synapse.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.t.l.log().Error("the journal panicked", "trace", r.t.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("run: write the journal: panic: %v", p)
		}
	}()
	stored := storedOf(batch)
	if len(stored) == 0 {
		return nil
	}
	if err := r.t.l.Append(r.ctx, stored); err != nil {
		return fmt.Errorf("run: write the journal: %w", err)
	}
	return nil
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
	work   chan *future  // to a worker that waits
	over   chan struct{} // closed when the trace has ended
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
	t := &localTrace{l: l, p: p, id: in.Trace, events: newQueue(l.now), work: make(chan *future), over: make(chan struct{}), models: make(chan struct{}, slots), tools: make(chan struct{}, slots)}
	if in.From != nil {
		t.id = in.From.Trace
		t.events.seq, t.events.flushed = in.From.Seq, in.From.Seq
	}
	if t.id == "" {
		t.id = l.newID()
	}
	return t
}

// main runs the entry, then waits for everything it has started.
func (t *localTrace) main(ctx context.Context, in Input) {
	spec, _ := t.p.entry(in) // Run has seen that it is there
	start := Start{Run: t.id, Trace: t.id, Spec: spec, Session: in.Session, Workspace: in.Workspace}
	if in.From != nil {
		start.State = in.From.State
		start.Spec, start.Description = t.p.narrowed(start.State.Spec, start.Spec), start.State.Description
	} else {
		start.Limits = start.Spec.Limits.Min(in.Limits)
		start.Before, start.After = in.Before, in.After
		start.Input = append(start.Input, in.Messages...)
		if in.Before == nil || in.Before.Spec.Digest != start.Spec.Digest {
			start.Input = append(start.Input, start.Spec.Preload...)
		}
		start.Input = append(start.Input, synapse.UserText(in.Prompt))
	}
	acct := &account{mu: &t.mu, agent: start.Spec.Agent}
	r := t.newRun(ctx, &synapse.Event{Run: t.id, Agent: start.Spec.Agent}, acct, &start, time.Time{})
	r.path = spec.Agent
	t.l.enter(t.id)
	t.l.entered(t.id, r)
	r.drive(start, func(synapse.Outcome) {
		t.runs.Wait()
		t.l.leave(t.id)
		close(t.over)
		t.events.close()
	})
}

// Signal tells a run that goes on something, and reports whether there is one of
// that id.
func (l *Local) Signal(run string, sig synapse.Signal) bool {
	r := l.runOf(run)
	if r == nil {
		return false
	}
	return r.signal(sig)
}

// enter notes that a run begins; false when it runs already. One child is one
// conversation, whoever continues it.
func (l *Local) enter(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.running[run]; ok {
		return false
	}
	if l.running == nil {
		l.running = map[string]*localRun{}
	}
	l.running[run] = nil
	return true
}

// entered says where a run can be told something.
func (l *Local) entered(run string, r *localRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[run] = r
}

// leave notes that a run has ended.
func (l *Local) leave(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, run)
}

// runOf returns a run that goes on, nil if there is none.
func (l *Local) runOf(run string) *localRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[run]
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
