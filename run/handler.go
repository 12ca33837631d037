package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/synapse-agents/synapse"
)

// Retry says how a failed model request is repeated. It wraps the request only,
// never a tool. The zero value means 6 attempts, starting at 1 s and doubling up
// to 60 s, with jitter.
type Retry struct {
	Attempts  int
	Base, Cap time.Duration
}

func (r Retry) attempts() int {
	if r.Attempts > 0 {
		return r.Attempts
	}
	return 6
}

// delay is how long to wait after the n-th failed attempt, from 1. What the
// provider asks for is honoured.
func (r Retry) delay(n int, after time.Duration) time.Duration {
	base, limit := r.Base, r.Cap
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = time.Minute
	}
	d := base
	for ; n > 1 && d < limit; n-- {
		d *= 2
	}
	d = min(d, limit)
	d = d/2 + rand.N(d/2+1)
	return max(d, after)
}

// model answers a request: with the models, or in the way of [Local.Intercept].
func (r *localRun) model(ctx context.Context, in *ModelInput) (*synapse.Reply, error) {
	intercept := r.t.l.Intercept
	if intercept == nil {
		return r.chain(ctx, in)
	}
	req := &ModelRequest{
		Trace: r.t.id, Run: r.who.Run, ParentRun: r.who.ParentRun, Agent: r.who.Agent, Key: r.key, Path: r.path,
		Turn: in.Turn, Model: in.Model, Fallback: in.Fallback, Request: in.Request,
	}
	asked := false
	reply, err := intercept(ctx, req, func(ctx context.Context) (*synapse.Reply, error) {
		asked = true
		return r.chain(ctx, in)
	})
	if err != nil || asked {
		return reply, foreign(err)
	}
	if err := r.acct.admitModel(); err != nil {
		return nil, err
	}
	for _, p := range reply.Message.Parts {
		switch {
		case p.Text == "":
		case p.Kind == synapse.PartText:
			r.Emit(&synapse.Text{Text: p.Text})
		case p.Kind == synapse.PartReasoning:
			r.Emit(&synapse.Reasoning{Text: p.Text})
		}
	}
	r.acct.charge(reply.Usage)
	return reply, nil
}

// chain answers a request with the first model of the chain that can, each with
// its own attempts.
func (r *localRun) chain(ctx context.Context, in *ModelInput) (*synapse.Reply, error) {
	reply, err := r.attempts(ctx, in.Model, in, in.Request)
	for _, ref := range in.Fallback {
		if err == nil || ctx.Err() != nil || !passing(err) {
			break
		}
		r.Emit(&synapse.Retry{Turn: in.Turn, Attempt: r.t.l.Retry.attempts(), Error: err.Error(), ErrorKind: kindOf(err), Model: ref})
		req := *in.Request
		req.Model = ref.Name
		reply, err = r.attempts(ctx, ref, in, &req)
	}
	return reply, err
}

// passing reports whether a failure may be over when the request is repeated.
func passing(err error) bool {
	var p *synapse.ProviderError
	return errors.As(err, &p) && p.Retryable()
}

// kindOf returns the kind of a provider's failure.
func kindOf(err error) synapse.ErrorKind {
	var p *synapse.ProviderError
	if errors.As(err, &p) {
		return p.Kind
	}
	return ""
}

// attempts asks one model until it answers, or its failures no longer look like
// passing ones.
func (r *localRun) attempts(ctx context.Context, ref synapse.ModelRef, in *ModelInput, req *synapse.Request) (*synapse.Reply, error) {
	if r.t.l.Model == nil {
		return nil, errors.New("the runtime has no models")
	}
	m, err := r.t.l.Model(ref)
	if err != nil {
		return nil, foreign(err)
	}
	retry := r.t.l.Retry
	for n := 1; ; n++ {
		reply, err := r.attempt(ctx, m, ref, req)
		if err == nil {
			if reply.Model == "" || reply.Model == ref.Name {
				reply.Model = r.nameOf(ref)
			}
			return reply, nil
		}
		if ctx.Err() != nil || !passing(err) || n == retry.attempts() {
			return nil, err
		}
		var p *synapse.ProviderError
		errors.As(err, &p) // it passes, so it is one
		if p.RetryAfter > maxPatience {
			return nil, fmt.Errorf("%w (it asks to wait %s)", err, p.RetryAfter.Round(time.Second))
		}
		wait := retry.delay(n, p.RetryAfter)
		if !r.deadline.IsZero() && r.Now().Add(wait).After(r.deadline) {
			return nil, fmt.Errorf("%w (no time is left to wait %s and try again)", err, wait.Round(time.Second))
		}
		r.Emit(&synapse.Retry{Turn: in.Turn, Attempt: n, Error: err.Error(), ErrorKind: p.Kind, After: synapse.Duration(wait), Model: ref})
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, endOf(ctx)
		}
	}
}

// maxPatience is how long a provider may ask to be left alone before it counts as
// out of service: a quota that comes back tomorrow is nothing to wait for.
const maxPatience = 10 * time.Minute

var errIdle = errors.New("idle")

// attempt makes one request. It holds a place at the provider and a slot of the
// trace only while it is in flight. The place comes first: a request that waits
// for a small quota must not hold the slot that another provider's could use.
func (r *localRun) attempt(ctx context.Context, m synapse.Model, ref synapse.ModelRef, req *synapse.Request) (reply *synapse.Reply, err error) {
	throttle := r.t.l.throttle(ref.Provider)
	epoch, err := throttle.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { throttle.release(epoch, err != nil && limited(err), reply != nil) }()
	select {
	case r.t.models <- struct{}{}:
		defer func() { <-r.t.models }()
	case <-ctx.Done():
		return nil, endOf(ctx)
	}
	if ctx.Err() != nil { // the slot and the cancel came together
		return nil, endOf(ctx)
	}
	if err := r.acct.admitModel(); err != nil {
		return nil, err
	}

	idle := r.t.l.IdleTimeout
	if idle <= 0 {
		idle = time.Minute
	}
	w := r.watched(ctx, idle)
	defer r.unwatch(w)
	reply, err = synapse.Collect(m.Generate(w.ctx, req), func(d *synapse.Delta) {
		w.timer.Stop() // the time it takes to pass a delta on is not the provider's
		switch {
		case d.Text == "":
		case d.Kind == synapse.DeltaText:
			r.Emit(&synapse.Text{Text: d.Text})
		case d.Kind == synapse.DeltaReasoning:
			r.Emit(&synapse.Reasoning{Text: d.Text})
		}
		w.timer.Reset(idle)
	})
	if err != nil {
		if errors.Is(context.Cause(w.ctx), errIdle) {
			err = &synapse.ProviderError{Provider: ref.Provider, Model: ref.Name, Kind: synapse.ErrorStream,
				Message: fmt.Sprintf("no token for %s", idle), Err: err}
		}
		return nil, foreign(err)
	}
	r.acct.charge(reply.Usage)
	return reply, nil
}

func limited(err error) bool {
	var p *synapse.ProviderError
	return errors.As(err, &p) && p.Kind == synapse.ErrorRateLimit
}

// A watch is the context of a run's model requests, which ends when a stream
// falls silent. One serves a run's requests one after the other until it is
// spent: the next turn needs the same again.
type watch struct {
	ctx    context.Context
	parent context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// watched returns a watch whose time begins.
func (r *localRun) watched(ctx context.Context, idle time.Duration) *watch {
	if w := r.watch; w != nil && w.parent == ctx {
		w.timer.Reset(idle)
		return w
	}
	w := &watch{parent: ctx}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(idle, func() { w.cancel(errIdle) })
	r.watch = w
	return w
}

// unwatch ends a request's time. A watch that has struck is not used again.
func (r *localRun) unwatch(w *watch) {
	if !w.timer.Stop() {
		w.cancel(nil)
		r.watch = nil
	}
}

// nameOf returns a model's full name, without making it anew at each turn.
func (r *localRun) nameOf(ref synapse.ModelRef) string {
	if r.named != ref {
		r.named, r.name = ref, ref.String()
	}
	return r.name
}

// tool runs one call that has passed the guard.
func (r *localRun) tool(ctx context.Context, in *ToolInput) (*synapse.ToolResult, error) {
	t, ok := r.t.p.tools[in.Name]
	if !ok {
		return nil, fmt.Errorf("there is no tool %q", in.Name)
	}
	select {
	case r.t.tools <- struct{}{}:
		defer func() { <-r.t.tools }()
	case <-ctx.Done():
		return nil, endOf(ctx)
	}
	if ctx.Err() != nil { // the slot and the cancel came together
		return nil, endOf(ctx)
	}
	if err := r.acct.admitTool(); err != nil {
		return nil, err
	}
	call := &in.Call
	call.Trace, call.Run, call.Agent = r.t.id, r.who.Run, r.who.Agent
	call.Output = func(text string) {
		if text != "" {
			r.Emit(&synapse.ToolOutput{CallID: call.CallID, Text: text})
		}
	}
	result, err := t.Run(ctx, call)
	return result, foreign(err)
}

// ask puts a question to the user; without one it is a denial.
func (r *localRun) ask(ctx context.Context, q *synapse.Ask) (synapse.Answer, error) {
	if r.t.l.Ask == nil {
		return synapse.Answer{Reason: "nobody is there to ask (" + q.Reason + ")"}, nil
	}
	answer, err := r.t.l.Ask(ctx, *q)
	if err != nil {
		return synapse.Answer{}, foreign(fmt.Errorf("ask the user: %w", err))
	}
	return answer, nil
}

// history folds the events of an earlier run, once they are all written.
func (r *localRun) history(ctx context.Context, run string, seq int64) (*State, error) {
	if r.t.l.History == nil {
		return nil, errors.New("no journal is kept")
	}
	if live := r.t.l.runOf(run); live != nil && live.who.ParentRun != "" {
		return nil, errRunning
	}
	if !r.t.events.wait(seq) {
		return nil, errors.New("the journal can't be written")
	}
	st, err := Fold(r.t.l.History(ctx, run), run)
	return st, foreign(err)
}

// nodeFunc calls a function of the program. A node takes a slot as a tool call
// does.
func (r *localRun) nodeFunc(ctx context.Context, in *FuncInput) (any, error) {
	f, ok := r.t.p.opt.Funcs[in.Name]
	if !ok {
		return nil, fmt.Errorf("there is no function %q", in.Name)
	}
	select {
	case r.t.tools <- struct{}{}:
		defer func() { <-r.t.tools }()
	case <-ctx.Done():
		return nil, endOf(ctx)
	}
	v, err := f.Run(ctx, &in.Input)
	return v, foreign(err)
}

// approve puts a workflow's question to the user.
func (r *localRun) approve(ctx context.Context, q *synapse.Ask) (synapse.Answer, error) {
	if r.t.l.Ask == nil {
		return synapse.Answer{}, ErrNobody
	}
	return r.ask(ctx, q)
}
