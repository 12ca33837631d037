package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/display"
)

// A runState is what a run is at.
type runState string

// The states of a run that goes on. An ended run's state is its status.
const (
	runWaiting runState = "waiting" // to begin
	runRunning runState = "running"
	runBlocked runState = "blocked" // on sub-agents
	runAsking  runState = "asking"  // the user
	runPaused  runState = "paused"
)

// A run is one agent's run, as its events tell of it.
type run struct {
	id         string
	parent     *run
	agent      string
	what       string // the description of its task
	prompt     string
	model      string // who answers
	effort     synapse.Effort
	spec       *synapse.Spec
	background bool
	began      bool
	status     synapse.Status // empty while it goes on
	outcome    synapse.Outcome
	retrying   string
	paused     bool

	begin, end time.Time
	asked      time.Time     // since when a question is open
	waited     time.Duration // for answers: that is not work
	asking     int
	turns      int
	usage      synapse.Usage // its own
	calls      map[string]*item
	order      []string // of calls that go on
	children   []*run
	script     *transcript
	reply      *item // that is still coming
	thought    *item
	replyFrom  int // the first item of the turn that goes on
}

// state says what the run is at.
func (r *run) state() runState {
	switch {
	case r.status != "":
		return runState(r.status)
	case !r.began:
		return runWaiting
	case r.asking > 0:
		return runAsking
	case r.paused:
		return runPaused
	case r.blockedOn() > 0:
		return runBlocked
	}
	return runRunning
}

// ended reports whether it has come to an end.
func (r *run) ended() bool { return r.status != "" }

// blockedOn counts the children that it waits for.
func (r *run) blockedOn() int {
	n := 0
	for _, c := range r.children {
		if !c.ended() && !c.background {
			n++
		}
	}
	return n
}

// now says what it is doing, in a few words.
func (r *run) now() string {
	switch s := r.state(); s {
	case runWaiting:
		return "waiting"
	case runAsking:
		return "asks for permission"
	case runPaused:
		return "paused"
	case runBlocked:
		return "waiting for " + display.Count(int64(r.blockedOn()), "sub-agent")
	case runRunning:
		if r.retrying != "" {
			return r.retrying
		}
		if n := len(r.order); n > 0 {
			it := r.calls[r.order[n-1]]
			if it.intent != "" {
				return oneLine(it.call.Name) + ": " + it.intent
			}
			return strings.TrimSpace(oneLine(it.call.Name) + " " + it.subject())
		}
		if r.reply != nil {
			return "answering"
		}
		return "thinking"
	case runState(synapse.StatusCompleted):
		return ""
	default:
		if r.outcome.Cause != "" {
			return strings.ReplaceAll(string(s), "_", " ") + ": " + oneLine(r.outcome.Cause)
		}
		return strings.ReplaceAll(string(s), "_", " ")
	}
}

// sign is the mark of the run's state, in the frame of a number.
func (r *run) sign(frame int, th *theme) (string, style) {
	switch r.state() {
	case runWaiting:
		return "○", th.faint
	case runAsking:
		return "?", th.warn
	case runBlocked:
		return "◷", th.accent
	case runPaused:
		return "‖", th.warn
	case runRunning:
		return display.Spinner(frame), th.accent
	case runState(synapse.StatusCompleted):
		return display.Mark(r.status), th.good
	case runState(synapse.StatusFailed):
		return display.Mark(r.status), th.bad
	}
	return display.Mark(r.status), th.warn
}

// worked is how long it has worked, without the time in which it waited for
// answers.
func (r *run) worked(now time.Time) time.Duration {
	if r.begin.IsZero() {
		return 0
	}
	if r.ended() {
		now = r.end
	}
	d := now.Sub(r.begin) - r.waited
	if r.asking > 0 {
		d -= now.Sub(r.asked)
	}
	return max(0, d)
}

// figures says how much it has taken so far.
func (r *run) figures(now time.Time) string {
	s := fmt.Sprintf("%s · %s tok", display.Count(int64(r.turns), "turn"), short(r.usage.Tokens()))
	if r.usage.CostUSD != nil && *r.usage.CostUSD > 0 {
		s += " · " + display.Cost(r.usage)
	}
	return s + " · " + display.Seconds(r.worked(now))
}

// short writes a count in few columns.
func short(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprint(n)
}

// A ledger folds events into runs.
type ledger struct {
	runs  map[string]*run
	main  *run // of the request that goes on, or of the last one
	conv  *transcript
	past  bool          // events of before are taken in: what the user said is among them alone
	usage synapse.Usage // of everything since the program began
	// context is the tokens of the main agent\'s last request and the reply to it.
	context int64
}

func newLedger() *ledger { return &ledger{runs: map[string]*run{}, conv: newTranscript()} }

// get returns a run, which it makes up where no event has told of its beginning.
func (l *ledger) get(id, parent, agent string) *run {
	if r := l.runs[id]; r != nil {
		return r
	}
	r := &run{id: id, agent: oneLine(agent), calls: map[string]*item{}}
	if p := l.runs[parent]; p != nil && parent != "" {
		r.parent, r.script = p, newTranscript()
		p.children = append(p.children, r)
	} else if parent == "" {
		r.script = l.conv
	} else {
		r.script = newTranscript()
	}
	l.runs[id] = r
	return r
}

// apply takes an event in.
func (l *ledger) apply(e *synapse.Event) {
	r := l.get(e.Run, e.ParentRun, e.Agent)
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		l.started(r, e, b)
	case *synapse.ModelRequested:
		r.turns, r.retrying = b.Turn, ""
		r.model = oneLine(b.Model.String())
		r.replyFrom = len(r.script.items)
	case *synapse.Text:
		l.thoughtEnds(r)
		if r.reply == nil {
			r.reply = r.script.add(&item{kind: itemText, live: &stream{}})
		}
		r.reply.live.add(foreign(b.Text))
		r.reply.changed()
	case *synapse.Reasoning:
		if r.thought == nil {
			r.thought = r.script.add(&item{kind: itemReasoning, live: &stream{}})
		}
		r.thought.live.add(foreign(b.Text))
		r.thought.changed()
	case *synapse.ModelReplied:
		l.replied(r, b)
	case *synapse.Retry:
		r.script.items = r.script.items[:min(r.replyFrom, len(r.script.items))] // what the turn had streamed is void
		r.reply, r.thought = nil, nil
		r.retrying = fmt.Sprintf("trying %s again", oneLine(b.Model.String()))
		r.notice("↻", (*theme).faintStyle, fmt.Sprintf("attempt %d failed: %s; %s is next, in %s", b.Attempt, oneLine(b.Error), oneLine(b.Model.String()), display.Seconds(time.Duration(b.After))))
		r.replyFrom = len(r.script.items)
	case *synapse.ToolStarted:
		it := r.call(&b.Call)
		it.intent = oneLine(b.Intent)
		r.order = append(r.order, b.Call.ID)
		it.changed()
	case *synapse.ToolOutput:
		if it := r.calls[b.CallID]; it != nil && it.result == nil {
			it.output.add(b.Text)
			it.changed()
		}
	case *synapse.ToolFinished:
		l.finished(r, b)
	case *synapse.ApprovalAsked:
		if r.asking++; r.asking == 1 {
			r.asked = e.Time
		}
	case *synapse.ApprovalAnswered:
		if r.asking--; r.asking == 0 {
			r.waited += e.Time.Sub(r.asked)
		}
	case *synapse.ChildStarted:
		c := l.get(b.Task, e.Run, b.Agent)
		c.background, c.status = b.Background, ""
		c.what = cmp.Or(oneLine(b.Description), c.what)
		if it := r.calls[b.CallID]; it != nil {
			it.child = c
			it.changed()
		}
	case *synapse.ChildFinished:
		if c := l.runs[b.Task]; c != nil && !c.ended() { // one that never began
			c.status, c.outcome, c.end = b.Status, b.Outcome, e.Time
		}
	case *synapse.Signalled:
		r.signalled(b)
	case *synapse.Compacted:
		r.notice("≡", (*theme).faintStyle, fmt.Sprintf("the conversation was made smaller: from about %s tokens to %s", short(int64(b.Before)), short(int64(b.After))))
		if b.Usage != nil {
			r.usage, l.usage = r.usage.Add(*b.Usage), l.usage.Add(*b.Usage)
		}
	case *synapse.Warning:
		r.notice("!", (*theme).warnStyle, oneLine(b.Message))
	case *synapse.RunFinished:
		l.ended(r, e, b)
	}
}

func (l *ledger) started(r *run, e *synapse.Event, b *synapse.RunStarted) {
	r.status, r.began, r.background, r.paused = "", true, b.Background, false
	r.what = cmp.Or(oneLine(b.Description), r.what)
	if r.begin.IsZero() || r.ended() {
		r.begin = e.Time
	}
	if b.Spec != nil {
		r.spec, r.effort, r.model = b.Spec, b.Spec.Effort, oneLine(b.Spec.Model.String())
	}
	if n := len(b.Input); n > 0 {
		r.prompt = foreign(b.Input[n-1].Text())
		if r.parent != nil || l.past { // otherwise the user's own words stand there already
			r.script.add(&item{kind: itemUser, text: strings.TrimSpace(r.prompt)})
		}
	}
	if e.ParentRun == "" {
		l.main = r
	}
}

// signalled takes in what a user has told the run.
func (r *run) signalled(s *synapse.Signalled) {
	switch s.Signal.Kind {
	case synapse.SignalPause:
		r.paused = true
	case synapse.SignalContinue:
		r.paused = false
	case synapse.SignalSend:
		r.paused = false
		r.script.add(&item{kind: itemUser, text: foreign(s.Text)})
	}
}

// call returns the item of a call.
func (r *run) call(c *synapse.ToolCall) *item {
	it := r.calls[c.ID]
	if it == nil || it.result != nil { // ids come again in other turns
		it = r.script.add(&item{kind: itemCall, call: c, turn: r.turns})
		r.calls[c.ID] = it
	}
	return it
}

func (l *ledger) thoughtEnds(r *run) {
	if it := r.thought; it != nil {
		it.text, it.live = it.whole(), nil
		it.changed()
		r.thought = nil
	}
}

// replied puts the whole reply in the place of what has streamed of it.
func (l *ledger) replied(r *run, b *synapse.ModelReplied) {
	l.thoughtEnds(r)
	if r.reply != nil {
		r.reply.text, r.reply.live = r.reply.whole(), nil
		r.reply.changed()
	}
	streamed := r.script.items[min(r.replyFrom, len(r.script.items)):]
	if len(streamed) == 0 { // nobody has watched: reasoning is in the reply alone
		for _, p := range b.Message.Parts {
			if p.Kind == synapse.PartReasoning && strings.TrimSpace(p.Text) != "" {
				r.script.add(&item{kind: itemReasoning, text: foreign(p.Text)})
			}
		}
	}
	text := ""
	for _, it := range streamed {
		if it.kind == itemText {
			text += it.text
		}
	}
	if whole := foreign(b.Message.Text()); text == "" && strings.TrimSpace(whole) != "" {
		r.script.add(&item{kind: itemText, text: whole})
	}
	r.reply = nil
	for _, c := range b.Message.Calls() {
		r.call(c)
	}
	r.usage = r.usage.Add(b.Usage)
	l.usage = l.usage.Add(b.Usage)
	if r.parent == nil {
		l.context = b.Usage.Tokens()
	}
	if b.Model != "" {
		r.model = oneLine(b.Model)
	}
}

func (l *ledger) finished(r *run, b *synapse.ToolFinished) {
	it := r.calls[b.Result.CallID]
	if it == nil {
		it = r.call(&synapse.ToolCall{ID: b.Result.CallID, Name: b.Result.Name})
	}
	result := b.Result
	it.result, it.took, it.denied = &result, time.Duration(b.Elapsed), oneLine(b.Denied)
	it.changed()
	r.order = slices.DeleteFunc(r.order, func(id string) bool { return id == b.Result.CallID })
}

func (l *ledger) ended(r *run, e *synapse.Event, b *synapse.RunFinished) {
	l.thoughtEnds(r)
	if r.reply != nil {
		r.reply.text, r.reply.live = r.reply.whole(), nil
		r.reply.changed()
		r.reply = nil
	}
	r.status, r.outcome, r.end, r.turns = b.Status, b.Outcome, e.Time, b.Turns
	if r.asking > 0 {
		r.waited += e.Time.Sub(r.asked)
		r.asking = 0
	}
	for _, id := range r.order { // what was going on when it was cut off
		if it := r.calls[id]; it.result == nil {
			it.result = &synapse.ToolResult{CallID: id, Name: it.call.Name, IsError: true, Text: "cut off"}
			it.changed()
		}
	}
	r.order = nil
	for _, c := range r.children { // a child does not outlive its parent, though it may never have begun
		if !c.ended() {
			c.status, c.outcome.Cause, c.end = synapse.StatusCancelled, "", e.Time
		}
	}
	switch b.Status {
	case synapse.StatusCompleted:
	case synapse.StatusFailed:
		r.notice(display.Mark(b.Status), (*theme).badStyle, r.now())
	default:
		r.notice(display.Mark(b.Status), (*theme).warnStyle, r.now())
	}
}

func (r *run) notice(sign string, st func(*theme) style, text string) {
	r.script.add(&item{kind: itemNotice, sign: sign, style: st, text: text})
}

func (t *theme) faintStyle() style { return t.faint }
func (t *theme) warnStyle() style  { return t.warn }
func (t *theme) badStyle() style   { return t.bad }

// running counts the sub-agents below that go on; background counts those of
// them that nobody waits for.
func (r *run) running() (n, background int) {
	for _, c := range r.children {
		if !c.ended() {
			n++
			if c.background {
				background++
			}
		}
		a, b := c.running()
		n, background = n+a, background+b
	}
	return n, background
}
