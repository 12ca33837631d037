package run

import (
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/synapse-agents/synapse"
)

// ErrEnded says that a trace has come to its end: there is nothing to resume.
var ErrEnded = errors.New("it has ended")

// A Checkpoint is where a trace was cut off: what [Local.Run] goes on from.
type Checkpoint struct {
	Trace string
	Seq   int64 // of the last event
	State *State
}

// Restore makes a checkpoint out of the events of a trace whose process has
// died, so that nothing that is done is done again: replies and results are
// taken from the events, and a call that was in flight runs again only if it
// reads or honours its key. Children that had not ended are restored below it.
//
// History yields the events of one run in every trace it was in: a child that
// was continued began in an earlier one. Before is the conversation before this
// trace, for a main agent that has one; nil otherwise.
//
// The error is [ErrEnded] for a trace that needs no resume.
func Restore(events iter.Seq2[*synapse.Event, error], history func(run string) iter.Seq2[*synapse.Event, error], before *State) (*Checkpoint, error) {
	r := restorer{runs: map[string]*restoredRun{}}
	for e, err := range events {
		if err != nil {
			return nil, fmt.Errorf("read the trace: %w", err)
		}
		r.add(e)
	}
	main := r.runs[r.trace]
	switch {
	case r.seq == 0:
		return nil, errors.New("there is no such trace")
	case main == nil || !main.started:
		return nil, fmt.Errorf("trace %s has no main run", r.trace)
	case main.ended:
		return nil, fmt.Errorf("resume trace %s: %w", r.trace, ErrEnded)
	}
	st, err := r.state(r.trace, history, before)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Trace: r.trace, Seq: r.seq, State: st}, nil
}

// restorer reads a trace for what its runs have spent, and which are open.
type restorer struct {
	trace string
	seq   int64
	runs  map[string]*restoredRun
}

// restoredRun is one run of the trace that is read.
type restoredRun struct {
	parent  *restoredRun
	started bool // since its parent last announced it
	ended   bool
	spent   Spent
}

func (r *restorer) add(e *synapse.Event) {
	r.trace, r.seq = e.Trace, e.Seq
	run := r.run(e.Run)
	if e.ParentRun != "" {
		run.parent = r.run(e.ParentRun)
	}
	var spend func(*Spent)
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		if !goesOn(b) {
			run.spent = Spent{}
		}
		run.started, run.ended = true, false
	case *synapse.RunFinished:
		run.ended = b.Limit != LimitApproval
	case *synapse.ModelReplied:
		spend = func(s *Spent) { s.Usage = s.Usage.Add(b.Usage) }
	case *synapse.Compacted:
		if b.Usage != nil {
			spend = func(s *Spent) { s.Usage = s.Usage.Add(*b.Usage) }
		}
	case *synapse.ToolStarted:
		if !isDelegation(b.Call.Name) {
			spend = func(s *Spent) { s.ToolCalls++ }
		}
	case *synapse.ChildStarted:
		child := r.run(b.Task)
		if !b.Again {
			child.started, child.ended = false, false
			spend = func(s *Spent) { s.Spawns++ }
		}
	}
	for depth := 0; run != nil && spend != nil && depth <= len(r.runs); depth++ {
		spend(&run.spent)
		run = run.parent
	}
}

func (r *restorer) run(id string) *restoredRun {
	run := r.runs[id]
	if run == nil {
		run = &restoredRun{}
		r.runs[id] = run
	}
	return run
}

// state folds a run and those below it that have not ended.
func (r *restorer) state(id string, history func(string) iter.Seq2[*synapse.Event, error], before *State) (*State, error) {
	st, err := fold(history(id), id, before, true)
	if err != nil {
		return nil, err
	}
	if st.Progress != nil {
		st.Progress.Spent = r.runs[id].spent
	}
	for _, c := range st.Children {
		run := r.runs[c.Task]
		if c.Done || run == nil || !run.started {
			continue
		}
		if c.State, err = r.state(c.Task, history, nil); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// goesOn reports whether a start takes up one that was cut off, rather than
// adding to the conversation.
func goesOn(b *synapse.RunStarted) bool { return b.Resumed && len(b.Input) == 0 }

// goOn puts the loop where the run was cut off.
func (l *loop) goOn() {
	p := l.st.Progress
	l.st.Progress = nil
	l.past = p
	l.turn, l.cut, l.fixes, l.base = p.Turn, p.Final, p.Fixes, p.Base
	l.usage, l.total, l.toolCalls, l.model = p.Usage, p.Total, p.Calls, p.Model
	l.spent, l.cause = p.Limit, p.Cause
	l.added, l.paused = p.Sent, p.Paused
	l.at = l.place()
	switch {
	case p.Reply != nil:
		l.reply, l.replied = p.Reply, true
	case p.Requested: // the same turn again
		l.turn--
		l.requested = true
	}
	var open []*Child
	for _, c := range l.st.Children {
		if !c.Done {
			open = append(open, c)
		}
	}
	sort.Slice(open, func(i, j int) bool { return open[i].Task < open[j].Task })
	for _, c := range open {
		l.revive(c)
	}
}

// revive lets a child go on that had not ended when the run was cut off.
func (l *loop) revive(c *Child) {
	in := ChildInput{
		Task: c.Task, Depth: l.in.Depth + 1, CallID: c.CallID, Description: c.Description, Background: c.Background, Again: true,
	}
	switch {
	case c.State == nil: // it was announced and never began
		s := l.madeBy(c)
		if s == nil {
			c.future = settled{err: errors.New("it was cut off before it began")}
			return
		}
		began, err := l.childInput(s)
		switch {
		case err != nil:
			c.future = settled{err: err}
			return
		case s.result != nil:
			c.future = settled{err: errors.New(s.result.Text)}
			return
		}
		in.Spec, in.Input, in.State = began.Spec, began.Input, began.State
	case c.State.Ended:
		c.future = settled{out: c.State.Outcome}
		return
	default:
		in.Spec, in.State, in.Depth = c.State.Spec, c.State, c.State.Depth
		if now, ok := l.p.specs[in.Spec.ID]; ok {
			in.Spec = l.p.narrowed(in.Spec, now.spec)
		}
		c.State = nil
	}
	c.future = l.rt.Spawn(c.Key, in)
}

// madeBy returns the call that started a child, as the guard sees it now.
func (l *loop) madeBy(c *Child) *step {
	for i := len(l.st.Messages) - 1; i >= 0; i-- {
		for _, call := range l.st.Messages[i].Calls() {
			if call.ID == c.CallID {
				s := &step{call: call, key: c.Key}
				if s.v = l.guard(call, c.Key); s.v.args == nil {
					return nil
				}
				return s
			}
		}
	}
	return nil
}

// startedBy returns the child that a call had started before the run was cut off.
func (l *loop) startedBy(callID string) *Child {
	if l.past == nil || !l.past.Began[callID] {
		return nil
	}
	for _, c := range l.st.Children {
		if c.CallID == callID {
			return c
		}
	}
	return nil
}

// before gives a step the result that its call had when the run was cut off.
func (l *loop) before(s *step) bool {
	if l.past == nil || l.past.Results[s.call.ID] == nil {
		return false
	}
	s.result = l.past.Results[s.call.ID]
	return true
}

// began reports whether a call was in flight when the run was cut off. The user
// had then allowed it, if that was asked.
func (l *loop) began(s *step) bool { return l.past != nil && l.past.Began[s.call.ID] }

// answerBefore returns the user's answer to a question, given before the run was
// cut off.
func (l *loop) answerBefore(ask string) (synapse.Answer, bool) {
	if l.past == nil {
		return synapse.Answer{}, false
	}
	answer, ok := l.past.Answers[ask]
	return answer, ok
}

// startAgain takes up a call that was in flight. It runs again if that can do no
// harm; otherwise nobody knows what it has done.
func (l *loop) startAgain(s *step) error {
	if t, ok := l.p.tools[s.call.Name]; ok && t.Effect() == synapse.EffectUnsafe {
		l.finished(s, unknown(s.call), "")
		return nil
	}
	return l.start(s)
}

// unknown is the result of a call that was in flight when its run was cut off.
func unknown(call *synapse.ToolCall) *synapse.ToolResult {
	return &synapse.ToolResult{CallID: call.ID, Name: call.Name, IsError: true,
		Text: "the outcome of this call is unknown: the run was cut off while it was in flight; check before you do it again"}
}

// settled is a future that is ready from the start.
type settled struct {
	out synapse.Outcome
	err error
}

// Get stores the outcome.
func (f settled) Get(out any) error {
	if o, ok := out.(*synapse.Outcome); ok {
		*o = f.out
	}
	return f.err
}

// Ready is true.
func (settled) Ready() bool { return true }

// Cancel has nothing to stop.
func (settled) Cancel() {}
