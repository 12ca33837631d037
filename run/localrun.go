package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/synapse-agents/synapse"
)

// localRun is the Runtime of one run in this process.
type localRun struct {
	t        *localTrace
	ctx      context.Context
	cancel   context.CancelCauseFunc
	acct     *account
	deadline time.Time
	who      synapse.Event // the envelope of this run's events
	wake     chan struct{} // a future of this run has become ready
	ended    bool          // run_finished has been emitted; the queue's lock guards it
	stop     func() bool   // of the watch below

	mu   sync.Mutex
	open map[*future]struct{}
}

// newRun makes the runtime of a run with a deadline, zero for none, below a run
// whose deadline is outer.
func (t *localTrace) newRun(ctx context.Context, who *synapse.Event, acct *account, deadline, outer time.Time) *localRun {
	r := &localRun{t: t, acct: acct, deadline: deadline, who: *who, wake: make(chan struct{}, 1), open: map[*future]struct{}{}}
	r.who.V, r.who.Trace = synapse.EventVersion, t.id
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.ctx = ctx
	// A deadline that is the parent's comes with the parent's context: with a
	// timer of its own, the child could end a moment before its parent does.
	if !deadline.IsZero() && !deadline.Equal(outer) {
		var stop context.CancelFunc
		r.ctx, stop = context.WithTimeoutCause(ctx, deadline.Sub(r.Now()), ErrDeadline)
		cancel := r.cancel
		r.cancel = func(cause error) { cancel(cause); stop() }
	}
	r.stop = context.AfterFunc(r.ctx, r.giveUpLater)
	return r
}

// loop runs the loop to its end. The loop's own failure is an end like any
// other: a run that has started finishes, whatever happens.
func (r *localRun) loop(in Start) (out synapse.Outcome) {
	defer r.cancel(ErrCancelled)
	defer r.stop()
	defer func() {
		if p := recover(); p != nil {
			r.t.l.log().Error("the loop panicked", "run", r.who.Run, "agent", r.who.Agent, "panic", p, "stack", string(debug.Stack()))
			out = synapse.Outcome{Status: synapse.StatusFailed, Cause: fmt.Sprintf("internal error: %v", p)}
			out.Usage, out.Total = r.acct.sums()
			r.Emit(&synapse.RunFinished{Outcome: out})
		}
	}()
	return Loop(r, r.t.p, in)
}

// Emit hands the event to the reader of the trace. Nothing follows a run's end.
func (r *localRun) Emit(body synapse.Body) {
	e := r.who
	e.Kind, e.Body = body.Kind(), body
	r.t.events.put(&e, &r.ended)
}

// Now is the clock.
func (r *localRun) Now() time.Time { return r.t.l.now() }

// Await blocks until one of the futures is ready.
func (r *localRun) Await(futures ...Future) int {
	for {
		for i, f := range futures {
			if f.Ready() {
				return i
			}
		}
		<-r.wake
	}
}

// Call starts a handler in a goroutine of its own.
func (r *localRun) Call(key, handler string, in any, opt CallOptions) Future {
	f := r.newFuture(false)
	ctx, cancel := context.WithCancelCause(r.ctx)
	if !opt.Deadline.IsZero() && !opt.Deadline.Equal(r.deadline) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, opt.Deadline.Sub(r.Now()), ErrDeadline)
		inner := cancel
		cancel = func(cause error) { inner(cause); stop() }
	}
	f.cancel = cancel
	seq := r.t.events.last()
	go func() {
		var v any
		err := errors.New("it ended its goroutine")
		defer func() {
			if err != nil && ctx.Err() != nil {
				err = endOf(ctx)
			}
			cancel(nil)
			f.complete(v, err)
		}()
		v, err = r.handle(ctx, handler, in, opt.Effect, seq)
	}()
	return f
}

// handle runs one handler. A panic in it is its error.
func (r *localRun) handle(ctx context.Context, handler string, in any, effect synapse.Effect, seq int64) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.t.l.log().Error("a handler panicked", "handler", handler, "run", r.who.Run, "agent", r.who.Agent, "panic", p, "stack", string(debug.Stack()))
			v, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	if effect != synapse.EffectRead && !r.t.events.wait(seq) {
		return nil, errors.New("the journal can't be written")
	}
	if ctx.Err() != nil {
		return nil, endOf(ctx)
	}
	switch handler {
	case HandlerModel:
		return r.model(ctx, in.(ModelInput))
	case HandlerTool:
		return r.tool(ctx, in.(ToolInput))
	case HandlerAsk:
		return r.ask(ctx, in.(synapse.Ask))
	case HandlerKeep:
		k := in.(KeepInput)
		if r.t.l.Keep == nil {
			return "", errors.New("there is no place to keep it")
		}
		path, err := r.t.l.Keep(ctx, k.Name, k.Text)
		return path, foreign(err)
	case HandlerHistory:
		return r.history(ctx, in.(string), seq)
	case HandlerSleep:
		timer := time.NewTimer(in.(time.Duration))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, endOf(ctx)
		}
	}
	return nil, fmt.Errorf("there is no handler %q", handler)
}

// Spawn starts the run of a sub-agent in a goroutine of its own.
func (r *localRun) Spawn(_ string, in ChildInput) Future {
	f := r.newFuture(true)
	if r.ctx.Err() != nil {
		f.complete(nil, endOf(r.ctx))
		return f
	}
	if !r.t.l.enter(in.Task) {
		f.complete(nil, errRunning)
		return f
	}
	if err := r.acct.admitSpawn(); err != nil {
		r.t.l.leave(in.Task)
		f.complete(nil, err)
		return f
	}
	limits := in.Spec.Limits.Min(r.acct.left())
	deadline := deadlineOf(r.deadline, limits.Time, r.Now())
	who := &synapse.Event{Run: in.Task, ParentRun: r.who.Run, Agent: in.Spec.Agent, SpawnedBy: in.CallID}
	child := r.t.newRun(r.ctx, who, r.acct.child(in.Spec.Agent, limits), deadline, r.deadline)
	f.cancel = child.cancel
	start := Start{
		Run: in.Task, Trace: r.t.id, Spec: in.Spec, Depth: in.Depth, Description: in.Description,
		Background: in.Background, Input: in.Input, State: in.State, Limits: limits, Deadline: deadline,
	}
	go func() {
		out := child.loop(start)
		r.t.l.leave(in.Task)
		f.complete(out, nil)
	}()
	return f
}

// errRunning is why a sub-agent can't be continued while it runs.
var errRunning = errors.New("it is running already")

// endOf says why a context has ended, in the loop's words.
func endOf(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrDeadline) {
		return ErrDeadline
	}
	return ErrCancelled
}

// foreign makes an error from outside safe to return from a handler: one of the
// loop's own sentinels, which a tool that runs agents may pass on, says nothing
// about this run.
func foreign(err error) error {
	var limit *LimitError
	if errors.Is(err, ErrCancelled) || errors.Is(err, ErrDeadline) || errors.As(err, &limit) {
		return errors.New(err.Error())
	}
	return err
}

// giveUpLater lets go of calls that don't stop though their run has ended: one
// that hangs must not withhold the results of the others. Children are not given
// up: they do the same with their own calls, and then end.
func (r *localRun) giveUpLater() {
	time.AfterFunc(r.t.l.grace(), func() {
		r.mu.Lock()
		hung := make([]*future, 0, len(r.open))
		for f := range r.open {
			if !f.child {
				hung = append(hung, f)
			}
		}
		r.mu.Unlock()
		for _, f := range hung {
			f.complete(nil, endOf(r.ctx))
		}
	})
}

// future is the value of a call or a child in this process.
type future struct {
	r      *localRun
	cancel context.CancelCauseFunc
	child  bool
	once   sync.Once
	ready  atomic.Bool
	value  any
	err    error
}

func (r *localRun) newFuture(child bool) *future {
	f := &future{r: r, child: child}
	r.t.runs.Add(1) // before anybody can complete it
	r.mu.Lock()
	r.open[f] = struct{}{}
	r.mu.Unlock()
	return f
}

// complete sets the value, once: work that was given up may still come back.
func (f *future) complete(v any, err error) {
	f.once.Do(func() {
		f.value, f.err = v, err
		f.ready.Store(true)
		f.r.mu.Lock()
		delete(f.r.open, f)
		f.r.mu.Unlock()
		select {
		case f.r.wake <- struct{}{}:
		default:
		}
		f.r.t.runs.Done()
	})
}

// Ready reports whether the value is there.
func (f *future) Ready() bool { return f.ready.Load() }

// Cancel asks the work to stop.
func (f *future) Cancel() {
	if f.cancel != nil {
		f.cancel(ErrCancelled)
	}
}

// Get waits for the value and stores it in out.
func (f *future) Get(out any) error {
	for !f.ready.Load() {
		<-f.r.wake
	}
	if f.err != nil {
		return f.err
	}
	if f.value != nil && out != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(f.value))
	}
	return nil
}
