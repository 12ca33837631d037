package trace

import (
	"fmt"
	"iter"
	"slices"

	"github.com/synapse-agents/synapse"
)

// A Problem is a promise that a history breaks.
type Problem struct {
	Trace string `json:"trace_id,omitempty"`
	Run   string `json:"run_id,omitempty"`
	// Seq is the event at which it shows, 0 when it shows at the end.
	Seq     int64  `json:"seq,omitempty"`
	Message string `json:"message"`
}

// String returns the problem in one line.
func (p Problem) String() string {
	at := "at the end"
	if p.Seq > 0 {
		at = fmt.Sprintf("event %d", p.Seq)
	}
	if p.Run == "" {
		return fmt.Sprintf("trace %s, %s: %s", p.Trace, at, p.Message)
	}
	return fmt.Sprintf("trace %s, %s, run %s: %s", p.Trace, at, p.Run, p.Message)
}

// Verify checks events, whole traces in their order, against what every history
// promises:
//
//   - seq ascends within a trace, and every event fits its kind
//   - a run begins with run_started and ends with exactly one run_finished,
//     after which nothing follows but a resume
//   - a call that began gets exactly one result before its run ends; a call
//     that never began gets none but an error
//   - a reply follows its request, and no request goes out before the calls of
//     the last reply have their results
//   - every run but the main one was announced by its parent's child_started,
//     and child_finished says the same as the child's run_finished
//   - an answer follows its question
//   - the main run concludes at most once each time it starts, no other run does
//   - what a run says it used is what its replies used, and its total is not
//     less than that and its children's together
//
// Events that are not stored may be among them. A run without an end is a
// problem: a trace that goes on, or was cut off, is not a whole one. An error
// of the stream ends the check and is a problem too.
func Verify(events iter.Seq2[*synapse.Event, error]) []Problem {
	v := verifier{traces: map[string]*verifiedTrace{}}
	for e, err := range events {
		if err != nil {
			v.problems = append(v.problems, Problem{Message: err.Error()})
			break
		}
		if e == nil {
			v.problems = append(v.problems, Problem{Message: "an event is nil"})
			continue
		}
		v.event(e)
	}
	for _, t := range v.order {
		for _, r := range t.order {
			v.end(t, r)
		}
	}
	return v.problems
}

type verifier struct {
	problems []Problem
	traces   map[string]*verifiedTrace
	order    []*verifiedTrace
}

type verifiedTrace struct {
	name  string
	seq   int64
	runs  map[string]*verifiedRun
	order []*verifiedRun
}

type verifiedRun struct {
	id, parent, spawnedBy string

	starts, ends int
	open         bool
	asked        int // turns requested and not replied to
	calls        []synapse.ToolCall
	running      map[string]inFlight // calls that began and have no result
	questions    map[string]bool
	conclusions  int
	children     map[childKey]*verifiedChild
	childOrder   []*verifiedChild
	since        synapse.Usage // of the replies since it was given its last prompt
	outcome      *synapse.Outcome
}

// inFlight says whether a call's start is of this process, or of one that
// was cut off: only the latter may be started again.
type inFlight struct{ cutOff bool }

type childKey struct{ task, call string }

type verifiedChild struct {
	childKey
	seq    int64 // of child_started
	open   bool
	cutOff bool             // started before the run itself was cut off and resumed
	last   *synapse.Outcome // since the run started last
}

func (v *verifier) report(e *synapse.Event, format string, args ...any) {
	v.problems = append(v.problems, Problem{Trace: e.Trace, Run: e.Run, Seq: e.Seq, Message: fmt.Sprintf(format, args...)})
}

func (v *verifier) event(e *synapse.Event) {
	t := v.traces[e.Trace]
	if t == nil {
		t = &verifiedTrace{name: e.Trace, runs: map[string]*verifiedRun{}}
		v.traces[e.Trace] = t
		v.order = append(v.order, t)
	}
	if e.Seq <= t.seq {
		v.report(e, "seq does not ascend: it follows %d", t.seq)
	}
	t.seq = max(t.seq, e.Seq)
	if err := check(e); err != nil {
		v.report(e, "%v", err)
		if e.Body == nil || e.Run == "" {
			return
		}
	}
	r := t.runs[e.Run]
	if r == nil {
		r = &verifiedRun{
			id: e.Run, parent: e.ParentRun, spawnedBy: e.SpawnedBy,
			running: map[string]inFlight{}, questions: map[string]bool{}, children: map[childKey]*verifiedChild{},
		}
		t.runs[e.Run] = r
		t.order = append(t.order, r)
	}
	if e.ParentRun != r.parent {
		v.report(e, "its parent was %q and is now %q", r.parent, e.ParentRun)
	}
	if started, ok := e.Body.(*synapse.RunStarted); ok {
		v.start(t, r, e, started)
		return
	}
	switch {
	case r.starts == 0:
		v.report(e, "%s before run_started", e.Kind)
	case !r.open:
		v.report(e, "%s after run_finished", e.Kind)
	}
	v.body(t, r, e)
}

func (v *verifier) start(t *verifiedTrace, r *verifiedRun, e *synapse.Event, b *synapse.RunStarted) {
	if r.starts > 0 && !b.Resumed {
		v.report(e, "run_started again, and not as a resume")
	}
	if b.Spec == nil {
		v.report(e, "run_started without a spec")
	}
	if (e.ParentRun == "") != (b.Depth == 0) {
		v.report(e, "depth %d with parent %q", b.Depth, e.ParentRun)
	}
	if e.ParentRun != "" {
		parent := t.runs[e.ParentRun]
		if parent == nil || !parent.announced(r.id) {
			v.report(e, "run_started without a child_started of its parent %q", e.ParentRun)
		}
	}
	r.starts++
	r.open, r.asked, r.conclusions, r.outcome = true, 0, 0, nil
	anew := !b.Resumed || len(b.Input) > 0 // rather than where it was cut off
	if anew {
		r.since = synapse.Usage{}
	}
	for id := range r.running {
		r.running[id] = inFlight{cutOff: true}
	}
	for _, c := range r.childOrder {
		c.cutOff = c.open
		if anew {
			c.last = nil
		}
	}
	clear(r.questions) // they are asked again
}

// announced reports whether the run has started a child of that id that has not
// finished.
func (r *verifiedRun) announced(task string) bool {
	return slices.ContainsFunc(r.childOrder, func(c *verifiedChild) bool { return c.task == task && c.open })
}

func (v *verifier) body(t *verifiedTrace, r *verifiedRun, e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.ModelRequested:
		for _, c := range r.calls {
			v.report(e, "model_requested while call %q (%s) has no result", c.ID, c.Name)
		}
		r.calls = nil
		r.asked = b.Turn
	case *synapse.ModelReplied:
		if r.asked != b.Turn {
			v.report(e, "model_replied of turn %d without its request", b.Turn)
		}
		r.asked = 0
		r.since = r.since.Add(b.Usage)
		r.calls = nil
		if b.Stop != synapse.StopLength { // calls of a truncated reply are never run
			for _, c := range b.Message.Calls() {
				r.calls = append(r.calls, *c)
			}
		}
	case *synapse.Compacted:
		if b.Usage != nil {
			r.since = r.since.Add(*b.Usage)
		}
	case *synapse.ToolStarted:
		if c, ok := r.running[b.Call.ID]; ok && !c.cutOff {
			v.report(e, "tool_started of call %q again, without a result in between", b.Call.ID)
		}
		r.running[b.Call.ID] = inFlight{}
	case *synapse.ToolFinished:
		id := b.Result.CallID
		if _, ok := r.running[id]; !ok && b.Denied == "" && !b.Result.IsError {
			v.report(e, "tool_finished of call %q (%s) without tool_started", id, b.Result.Name)
		}
		delete(r.running, id)
		if i := slices.IndexFunc(r.calls, func(c synapse.ToolCall) bool { return c.ID == id }); i >= 0 {
			r.calls = slices.Delete(r.calls, i, i+1)
		}
	case *synapse.ApprovalAsked:
		if r.questions[b.Ask.ID] {
			v.report(e, "approval_asked %q again", b.Ask.ID)
		}
		r.questions[b.Ask.ID] = true
	case *synapse.ApprovalAnswered:
		if !r.questions[b.ID] {
			v.report(e, "approval_answered %q without a question", b.ID)
		}
		delete(r.questions, b.ID)
	case *synapse.ChildStarted:
		key := childKey{b.Task, b.CallID}
		if c := r.children[key]; c != nil && c.open && !c.cutOff {
			v.report(e, "child_started of %q again, before it finished", b.Task)
		}
		c := &verifiedChild{childKey: key, seq: e.Seq, open: true}
		if r.children[key] == nil {
			r.childOrder = append(r.childOrder, c)
		} else {
			r.childOrder[slices.Index(r.childOrder, r.children[key])] = c
		}
		r.children[key] = c
	case *synapse.ChildFinished:
		v.childFinished(t, r, e, b)
	case *synapse.Conclusion:
		if r.conclusions++; r.conclusions > 1 {
			v.report(e, "a second conclusion")
		}
		if r.parent != "" {
			v.report(e, "a sub-agent's run concludes")
		}
	case *synapse.RunFinished:
		v.finish(r, e, b)
	}
}

func (v *verifier) childFinished(t *verifiedTrace, r *verifiedRun, e *synapse.Event, b *synapse.ChildFinished) {
	c := r.children[childKey{b.Task, b.CallID}]
	switch {
	case c == nil:
		v.report(e, "child_finished of %q (call %q) without child_started", b.Task, b.CallID)
		return
	case !c.open:
		v.report(e, "child_finished of %q (call %q) again", b.Task, b.CallID)
		return
	}
	c.open, c.last = false, &b.Outcome
	child := t.runs[b.Task]
	switch {
	case child == nil || child.starts == 0:
		v.report(e, "child_finished of %q, which never started", b.Task)
	case child.outcome == nil:
		v.report(e, "child_finished of %q, which has not finished", b.Task)
	case child.outcome.Status != b.Status:
		v.report(e, "child_finished says that %q is %s, its run_finished says %s", b.Task, b.Status, child.outcome.Status)
	case child.outcome.Total.Tokens() != b.Total.Tokens():
		v.report(e, "child_finished says that %q used %d tokens, its run_finished says %d", b.Task, b.Total.Tokens(), child.outcome.Total.Tokens())
	}
}

func (v *verifier) finish(r *verifiedRun, e *synapse.Event, b *synapse.RunFinished) {
	r.ends++
	r.open, r.outcome = false, &b.Outcome
	switch b.Status {
	case synapse.StatusCompleted, synapse.StatusPartial, synapse.StatusCancelled, synapse.StatusTimedOut, synapse.StatusFailed:
	default:
		v.report(e, "run_finished with status %q", b.Status)
	}
	for _, id := range sortedKeys(r.running) {
		v.report(e, "run_finished while call %q has no tool_finished", id)
	}
	clear(r.running)
	if b.Status == synapse.StatusCompleted || b.Status == synapse.StatusPartial {
		for _, id := range sortedKeys(r.questions) {
			v.report(e, "run_finished while question %q has no answer", id)
		}
	}
	clear(r.questions) // a run that was stopped leaves its questions behind
	r.calls = nil

	// Money is a float that is added up in some order; tokens are exact.
	if !sameTokens(b.Usage, r.since) {
		v.report(e, "run_finished says %d input and %d output tokens, its replies say %d and %d",
			b.Usage.InputTokens, b.Usage.OutputTokens, r.since.InputTokens, r.since.OutputTokens)
	}
	below := b.Usage.Tokens()
	for _, task := range r.tasks() {
		below += task.Total.Tokens()
	}
	if b.Total.Tokens() < below {
		v.report(e, "run_finished says %d tokens in total, with its children it used %d", b.Total.Tokens(), below)
	}
}

func sameTokens(a, b synapse.Usage) bool {
	return a.InputTokens == b.InputTokens && a.OutputTokens == b.OutputTokens
}

// tasks returns how each child ended last since the run started last: a child
// that was continued counts once, as its last outcome may include the others.
func (r *verifiedRun) tasks() []*synapse.Outcome {
	at := map[string]int{}
	var all []*synapse.Outcome
	for _, c := range r.childOrder {
		if c.last == nil {
			continue
		}
		if i, ok := at[c.task]; ok {
			all[i] = c.last
			continue
		}
		at[c.task] = len(all)
		all = append(all, c.last)
	}
	return all
}

// end reports what a run still owes when the events are over.
func (v *verifier) end(t *verifiedTrace, r *verifiedRun) {
	report := func(format string, args ...any) {
		v.problems = append(v.problems, Problem{Trace: t.name, Run: r.id, Message: fmt.Sprintf(format, args...)})
	}
	if r.open {
		report("run_started without run_finished: it goes on, or was cut off")
	}
	for _, c := range r.childOrder {
		if c.open {
			report("child_started of %q (event %d) without child_finished", c.task, c.seq)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
