package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
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
	key      string        // of the parent's call that started it
	path     string        // see ModelRequest
	wake     chan struct{} // a future of this run has become ready
	finished bool          // run_finished has been emitted; the queue's lock guards it
	stop     func() bool   // of the wait for ctx's end
	watch    *watch        // of the model request; there is one at a time
	within   []string      // the workflows it is part of, itself included
	named    synapse.ModelRef
	name     string // of that one, whole

	step   func() (*future, bool) // lets the loop go on to the next call that the driver is to run
	inline func(*future) bool     // the loop's side of step
	held   *future                // the loop's: a call that nobody runs yet
	out    synapse.Outcome        // of the loop
	ended  func(synapse.Outcome)  // what follows its end

	mu      sync.Mutex
	open    []*future        // the calls that have not ended
	signals []synapse.Signal // that the loop has not taken
}

// newRun makes the runtime of a run, below one whose deadline is outer, zero for
// none. It gives the start its deadline. A start that goes on after it was cut off
// has the limits that it had, and what is left of its time.
func (t *localTrace) newRun(ctx context.Context, who *synapse.Event, acct *account, start *Start, outer time.Time) *localRun {
	worked := time.Duration(0)
	if st := start.State; st != nil && st.Progress != nil {
		start.Limits, worked = st.Progress.Limits, st.Progress.Elapsed
		acct.restore(st.Progress)
	}
	acct.limits = start.Limits
	left := start.Limits.Time
	if left > 0 {
		left = max(left-synapse.Duration(worked), 1)
	}
	deadline := deadlineOf(outer, left, t.l.now())
	start.Deadline = deadline
	if t.l.Size != nil {
		start.Window = int(t.l.Size(start.Spec.Model).Window)
	}
	r := &localRun{t: t, acct: acct, deadline: deadline, who: *who, wake: make(chan struct{}, 1)}
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
func (r *localRun) loop(in Start) {
	defer r.cancel(ErrCancelled)
	defer r.stop()
	defer r.dispatch() // what nobody has waited for
	over := false
	defer func() {
		p := recover()
		if over {
			return
		}
		if p == nil {
			p = errGone
		}
		r.t.l.log().Error("the loop panicked", "run", r.who.Run, "agent", r.who.Agent, "panic", p, "stack", string(debug.Stack()))
		r.out = synapse.Outcome{Status: synapse.StatusFailed, Cause: fmt.Sprintf("internal error: %v", p)}
		r.out.Usage, r.out.Total = r.acct.sums()
		r.Emit(&synapse.RunFinished{Outcome: r.out})
	}()
	r.within = in.Within
	if in.Spec.Flow != nil {
		r.within = append(slices.Clip(r.within), in.Spec.ID)
		r.out = Schedule(r, r.t.p, in)
	} else {
		r.out = Loop(r, r.t.p, in)
	}
	over = true
}

// Emit hands the event to the reader of the trace. Nothing follows a run's end.
func (r *localRun) Emit(body synapse.Body) { r.t.events.put(r, body) }

// Now is the clock.
func (r *localRun) Now() time.Time { return r.t.l.now() }

// Await blocks until one of the futures is ready.
func (r *localRun) Await(futures ...Future) int {
	if len(futures) == 1 {
		if f, ok := futures[0].(*future); ok {
			r.await(f)
			return 0
		}
	}
	for {
		for i, f := range futures {
			if f.Ready() {
				return i
			}
		}
		r.wait()
	}
}

// wait blocks until a future of this run has become ready.
func (r *localRun) wait() {
	r.dispatch()
	<-r.wake
}

// rouse wakes the loop.
func (r *localRun) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Signal is what somebody tells the run next.
func (r *localRun) Signal() Future { return (*mailbox)(r) }

// signal takes a signal for the run; false when it is over.
func (r *localRun) signal(sig synapse.Signal) bool {
	if r.ctx.Err() != nil {
		return false
	}
	if sig.Kind == synapse.SignalStop {
		r.Emit(&synapse.Signalled{Signal: sig})
		r.cancel(ErrCancelled)
		return true
	}
	r.mu.Lock()
	r.signals = append(r.signals, sig)
	r.mu.Unlock()
	r.rouse()
	return true
}

// A mailbox is a run as the future of its next signal.
type mailbox localRun

// Ready reports whether there is a signal.
func (m *mailbox) Ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.signals) > 0
}

// Get waits for a signal, or for the run's end, which is its error.
func (m *mailbox) Get(out any) error {
	r := (*localRun)(m)
	for !m.Ready() {
		if r.ctx.Err() != nil {
			return endOf(r.ctx)
		}
		r.wait()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	*out.(*synapse.Signal) = m.signals[0]
	m.signals = m.signals[1:]
	return nil
}

// Cancel does nothing: a signal is somebody else's.
func (*mailbox) Cancel() {}

// Call has a handler run, by the driver or by a worker. A call ends with its run;
// one that the loop may stop apart has a context of its own.
func (r *localRun) Call(key, handler string, in any, opt CallOptions) Future {
	f := &future{r: r, handler: handler, in: in, effect: opt.Effect, after: r.t.events.last(), ctx: r.ctx}
	if handler == HandlerAsk || handler == HandlerSleep || handler == HandlerApprove || handler == HandlerFunc {
		f.ctx, f.cancel = context.WithCancelCause(r.ctx)
	}
	if !opt.Deadline.IsZero() && !opt.Deadline.Equal(r.deadline) {
		ctx, stop := context.WithTimeoutCause(f.ctx, opt.Deadline.Sub(r.Now()), ErrDeadline)
		inner := f.cancel
		f.ctx, f.cancel = ctx, func(cause error) {
			stop()
			if inner != nil {
				inner(cause)
			}
		}
	}
	r.t.runs.Add(1) // before anybody can complete it
	r.mu.Lock()
	r.open = append(r.open, f)
	r.mu.Unlock()
	r.hold(f)
	return f
}

// do hands a call to a worker that waits for one, or to a new one. A goroutine
// for each call would grow its stack anew each time.
func (t *localTrace) do(f *future) {
	select {
	case t.work <- f:
	default:
		go t.worker(f)
	}
}

// worker runs calls until the trace has ended.
func (t *localTrace) worker(f *future) {
	growStack()
	for {
		f.run()
		select {
		case f = <-t.work:
		case <-t.over:
			return
		}
	}
}

// growStack makes a goroutine's stack large enough for most of what is to come.
// Growing it step by step, in the depth of a call, copies it several times: with
// a hundred children that was a fifth of their processor time.
//
//go:noinline
func growStack() {
	var room [12 << 10]byte
	runtime.KeepAlive(&room)
}

// run runs the call; false when it was given up meanwhile.
func (f *future) run() (mine bool) {
	var v any
	err := errGone
	defer func() {
		if err != nil && f.ctx.Err() != nil {
			err = endOf(f.ctx)
		}
		f.Cancel()
		mine = f.complete(v, err)
	}()
	v, err = f.r.handle(f)
	return
}

// errGone is what a call comes to whose goroutine has ended under it.
var errGone = errors.New("it ended its goroutine")

// handle runs one handler. A panic in it is its error.
func (r *localRun) handle(f *future) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.t.l.log().Error("a handler panicked", "handler", f.handler, "run", r.who.Run, "agent", r.who.Agent, "panic", p, "stack", string(debug.Stack()))
			v, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	ctx := f.ctx
	if f.effect != synapse.EffectRead && !r.t.events.wait(f.after) {
		return nil, errors.New("the journal can't be written")
	}
	if ctx.Err() != nil {
		return nil, endOf(ctx)
	}
	switch f.handler {
	case HandlerModel:
		return r.model(ctx, f.in.(*ModelInput))
	case HandlerTool:
		return r.tool(ctx, f.in.(*ToolInput))
	case HandlerAsk:
		return r.ask(ctx, f.in.(*synapse.Ask))
	case HandlerFunc:
		return r.nodeFunc(ctx, f.in.(*FuncInput))
	case HandlerApprove:
		return r.approve(ctx, f.in.(*synapse.Ask))
	case HandlerKeep:
		k := f.in.(*KeepInput)
		if r.t.l.Keep == nil {
			return "", errors.New("there is no place to keep it")
		}
		path, err := r.t.l.Keep(ctx, k.Name, k.Text)
		return path, foreign(err)
	case HandlerHistory:
		return r.history(ctx, f.in.(string), f.after)
	case HandlerSleep:
		timer := time.NewTimer(f.in.(time.Duration))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, endOf(ctx)
		}
	}
	return nil, fmt.Errorf("there is no handler %q", f.handler)
}

// Spawn starts the run of a sub-agent in a goroutine of its own.
func (r *localRun) Spawn(key string, in ChildInput) Future {
	r.dispatch()
	f := &future{r: r}
	r.t.runs.Add(1)
	if r.ctx.Err() != nil && !in.Again {
		f.complete(nil, endOf(r.ctx))
		return f
	}
	if !r.t.l.enter(in.Task) {
		f.complete(nil, errRunning)
		return f
	}
	if !in.Again {
		if err := r.acct.admitSpawn(); err != nil {
			r.t.l.leave(in.Task)
			f.complete(nil, err)
			return f
		}
	}
	r.Emit(&synapse.ChildStarted{
		Task: in.Task, Agent: in.Spec.Agent, Description: in.Description, CallID: in.CallID, Key: key,
		Background: in.Background, Resumed: in.State != nil, Again: in.Again,
	})
	start := Start{
		Run: in.Task, Trace: r.t.id, Spec: in.Spec, Depth: in.Depth, Description: in.Description,
		Background: in.Background, Input: in.Input, State: in.State, Limits: in.Spec.Limits.Min(r.acct.left()),
		Within: r.within,
	}
	who := &synapse.Event{Run: in.Task, ParentRun: r.who.Run, Agent: in.Spec.Agent, SpawnedBy: in.CallID}
	child := r.t.newRun(r.ctx, who, r.acct.child(in.Spec.Agent), &start, r.deadline)
	child.key, child.path = key, r.path+" > "+in.Spec.Agent+"@"+key
	r.t.l.entered(in.Task, child)
	f.cancel = child.cancel
	go child.drive(start, func(out synapse.Outcome) {
		r.t.l.leave(in.Task)
		f.complete(out, nil)
	})
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
	if err == nil {
		return nil
	}
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
	r.rouse() // a run that is paused
	time.AfterFunc(r.t.l.grace(), func() {
		r.mu.Lock()
		hung := slices.Clone(r.open)
		r.mu.Unlock()
		for _, f := range hung {
			f.giveUp(endOf(r.ctx))
		}
	})
}

// future is the value of a call or a child in this process.
type future struct {
	r      *localRun
	cancel context.CancelCauseFunc // nil when it ends with its run only
	// What is to be done, for a call.
	handler string
	in      any
	effect  synapse.Effect
	after   int64 // the event that must be written before an effect begins
	ctx     context.Context

	state atomic.Int32
	ready atomic.Bool
	value any
	err   error
}

// The states of a future.
const (
	futureOpen   int32 = iota
	futureDriven       // the driver runs it
	futureDone
)

// giveUp completes a call that does not stop. If it has the driver, the loop gets
// another one.
func (f *future) giveUp(err error) {
	if was := f.state.Swap(futureDone); was != futureDone {
		f.set(nil, err)
		if was == futureDriven {
			go f.r.steps()
		}
	}
}

// complete sets the value, unless the call was given up: its work may still come
// back.
func (f *future) complete(v any, err error) bool {
	if f.state.Swap(futureDone) == futureDone {
		return false
	}
	f.set(v, err)
	return true
}

func (f *future) set(v any, err error) {
	r := f.r
	f.value, f.err = v, err
	f.ready.Store(true)
	r.mu.Lock()
	if i := slices.Index(r.open, f); i >= 0 {
		r.open = slices.Delete(r.open, i, i+1)
	}
	r.mu.Unlock()
	r.rouse()
	r.t.runs.Done()
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
	f.r.await(f)
	if f.err != nil {
		return f.err
	}
	switch out := out.(type) { // the frequent ones, without reflection
	case **synapse.Reply:
		*out = f.value.(*synapse.Reply)
	case **synapse.ToolResult:
		*out = f.value.(*synapse.ToolResult)
	case *synapse.Outcome:
		*out = f.value.(synapse.Outcome)
	default:
		if f.value != nil && out != nil {
			reflect.ValueOf(out).Elem().Set(reflect.ValueOf(f.value))
		}
	}
	return nil
}
