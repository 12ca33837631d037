package run

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// maxFixes is how often a result that does not fit its schema goes back to the
// model.
const maxFixes = 3

// Messages that the loop adds to a conversation.
const (
	finishText = "This is your last turn: the limit of this task is reached and no tools are available any more. " +
		"Answer now with what you have, and say what is missing."
)

// loop is the state of one run between its first message and its end.
type loop struct {
	rt Runtime
	p  *Program
	ps *preparedSpec
	in Start
	st *State

	turn      int    // of this start
	at        string // this turn's place, where the keys of its calls begin
	toolCalls int
	fixes     int
	ids       map[string]bool     // of the calls of the conversation
	added     []synapse.Message   // since the last reply, besides tool results
	replied   bool                // the reply of this turn is there: only a resumed run begins so
	requested bool                // this turn's request went out before the run was cut off
	past      *Progress           // how far the last reply's calls had come when the run was cut off
	cut       bool                // the last turn has been announced
	paused    bool                // the user wants no further turn
	base      int                 // where this start's own messages begin
	reply     *synapse.Reply      // the last one
	got       *synapse.ToolResult // where the value of a future goes
	waiting   []*step             // for collect, which is called at every turn
	futures   []Future
	members   []member // for guard
	model     string   // who gave the last reply
	counted   int      // tokens of the conversation at the last reply
	countedAt int      // how many messages that were; 0: nothing was counted
	usage     synapse.Usage
	total     synapse.Usage
	moving    *synapse.HandedOff // to be done when the calls of the reply are
	handed    []handing          // since the user's message
	whole     synapse.Limits     // of the request, whoever owns it
	// spent names the limit that takes the tools away at the next turn.
	spent string
	cause string
}

// Loop runs one agent to its end and returns the outcome. It emits run_started
// first and run_finished last, each once.
func Loop(rt Runtime, p *Program, in Start) synapse.Outcome {
	l := &loop{rt: rt, p: p, in: in, st: in.State}
	if l.st == nil {
		l.st = &State{Spec: in.Spec, Depth: in.Depth, Description: in.Description}
		l.st.follow(in.Before)
	}
	if l.st.Children == nil {
		l.st.Children = map[string]*Child{}
	}
	resuming := l.st.Progress != nil
	if !resuming {
		for _, c := range l.st.Children {
			c.own = false
			if !c.Done { // a state has no futures: whatever ran in it has died
				c.Done, c.Outcome = true, synapse.Outcome{Status: synapse.StatusFailed, Cause: "it was cut off: the process it ran in has ended"}
			}
		}
	}
	rt.Emit(&synapse.RunStarted{
		Spec: in.Spec, Depth: in.Depth, Input: in.Input, Description: in.Description,
		Background: in.Background, Resumed: in.State != nil, Limits: in.Limits,
		Workspace: in.Workspace, Session: in.Session, After: in.After,
	})
	if !resuming {
		l.st.Starts++
		l.st.Messages = append(l.st.Messages, in.Input...)
		l.base = len(l.st.Messages)
	}
	l.ids = map[string]bool{}
	for _, m := range l.st.Messages {
		for _, c := range m.Calls() {
			l.ids[c.ID] = true
		}
	}

	ended := false
	defer func() {
		if !ended { // a panic, which is the runtime's to report; the children end first
			l.closeChildren()
		}
	}()
	var out synapse.Outcome
	ps, err := p.prepared(in.Spec)
	if err != nil {
		out = synapse.Outcome{Status: synapse.StatusFailed, Cause: err.Error()}
	} else {
		l.ps = ps
		if resuming {
			l.goOn()
		}
		out = l.turns()
	}
	l.closeChildren()
	out.Turns, out.Usage, out.Total, out.Failed = l.turn, l.usage, l.total, l.failed()
	if out.Model == "" {
		out.Model = l.model
	}
	if in.Depth == 0 && out.Text != "" {
		rt.Emit(&synapse.Conclusion{Content: out.Text})
	}
	rt.Emit(&synapse.RunFinished{Outcome: out})
	ended = true
	return out
}

// turns goes from reply to reply until one ends the run.
func (l *loop) turns() synapse.Outcome {
	for {
		if !l.replied {
			if err := l.request(); err != nil {
				return l.broken(err)
			}
		}
		l.replied = false
		if out := l.react(); out != nil {
			return *out
		}
	}
}

// request takes one turn to its reply.
func (l *loop) request() error {
	if err := l.heed(); err != nil {
		return err
	}
	l.turn++
	key := l.place() + "/model"
	l.at = strings.TrimSuffix(key, "/model")
	if l.lastTurn() {
		l.cut = true
		l.waitForAll()
	}
	if _, err := l.compact(false); err != nil {
		return err
	}
	added := append(l.added, l.announcements()...)
	l.added = nil
	if l.cut && l.fixes == 0 && !l.requested {
		added = append(added, synapse.UserText(finishText))
	}
	l.requested = false
	l.st.Messages = append(l.st.Messages, added...)
	tools := l.offered()
	l.rt.Emit(&synapse.ModelRequested{
		Turn: l.turn, Model: l.ps.spec.Model, Messages: len(l.st.Messages), Tools: len(tools), Final: l.cut, Limit: l.spent, Cause: l.cause,
		Fixes: l.fixes, Added: added,
	})

	err := l.ask(key, tools)
	for again := 1; tooLong(err) && again <= 2; again++ { // folded, then summed up
		changed, failed := l.compact(true)
		switch {
		case failed != nil:
			return failed
		case !changed:
			return err
		}
		err = l.ask(key+"/again"+strconv.Itoa(again), tools)
	}
	if err != nil {
		return err
	}
	reply := l.reply
	l.nameCalls(reply)
	l.model = reply.Model
	l.usage = l.usage.Add(reply.Usage)
	l.total = l.total.Add(reply.Usage)
	l.rt.Emit(&synapse.ModelReplied{Turn: l.turn, Reply: *reply})
	l.st.Messages = append(l.st.Messages, reply.Message)
	if n := int(reply.Usage.Tokens()); n > 0 {
		l.counted, l.countedAt = n, len(l.st.Messages)
	}
	return nil
}

// tooLong reports whether a provider has refused a conversation that does not fit:
// the window is smaller than was thought, or the guess was wrong.
func tooLong(err error) bool {
	if err == nil { // at every turn: nothing is allocated for it
		return false
	}
	var refused *synapse.ProviderError
	return errors.As(err, &refused) && refused.Kind == synapse.ErrorContext
}

// ask sends the conversation to the model.
func (l *loop) ask(key string, tools []synapse.ToolDef) error {
	return l.rt.Call(key, HandlerModel, l.modelInput(tools), l.options(synapse.EffectRead)).Get(&l.reply)
}

// offered returns the tools of this turn.
func (l *loop) offered() []synapse.ToolDef {
	if l.cut || l.fixes > 0 {
		return nil
	}
	return l.ps.defs
}

// react does what the last reply asks for, and returns the outcome if that is
// the end.
func (l *loop) react() *synapse.Outcome {
	reply := l.reply
	calls := reply.Message.Calls()
	if len(calls) > 0 && len(l.offered()) > 0 {
		err := l.batch(calls, reply.Stop)
		l.past = nil
		if err != nil {
			return end(l.broken(err))
		}
		if l.moving != nil {
			if err := l.handOver(); err != nil {
				return end(l.broken(err))
			}
		}
		return nil
	}
	if len(calls) > 0 {
		// Forged: nothing was offered. The calls get their refusals, so that
		// the history stays whole.
		l.refuseAll(calls)
		l.past = nil
		switch {
		case l.ps.output != nil:
			return l.correct(errors.New("it calls tools, and none are available"))
		case l.cut || l.in.Limits.Turns > 0 && l.turn >= l.in.Limits.Turns:
			return end(l.partial(l.spentLimit()))
		}
		return nil
	}
	if l.waitForOne() || l.spokenTo() {
		return nil
	}
	if l.ps.output != nil {
		text, err := structured(l.ps.output, reply.Message.Text())
		if err != nil {
			return l.correct(err)
		}
		return end(l.finish(text))
	}
	switch reply.Stop {
	case synapse.StopLength:
		return end(l.partial("output_tokens"))
	case synapse.StopFilter:
		return end(synapse.Outcome{Status: synapse.StatusFailed, Text: l.lastText(), Cause: "the provider's filter refused the reply"})
	}
	return end(l.finish(l.lastText()))
}

func end(out synapse.Outcome) *synapse.Outcome { return &out }

// place names this turn within the run. A run's first start has nothing before
// the turn; a later one counts its turns anew, and its calls are others.
func (l *loop) place() string {
	at := "t" + strconv.Itoa(l.turn)
	if l.st.Starts > 1 {
		at = "s" + strconv.Itoa(l.st.Starts) + "/" + at
	}
	return at
}

// correct has the model told about a result that does not fit the output schema.
// After too many of them that is the end.
func (l *loop) correct(misfit error) *synapse.Outcome {
	if l.fixes == maxFixes {
		return end(l.broken(fmt.Errorf("the result does not fit the output schema after %d corrections: %w", maxFixes, misfit)))
	}
	l.fixes++
	l.added = append(l.added, synapse.UserText(fmt.Sprintf(
		"The result does not fit the output schema: %v\nAnswer again with one JSON value that does, and nothing else. The schema: %s",
		misfit, l.ps.spec.Output)))
	return nil
}

// nameCalls gives every call of a reply an id that no other call of the
// conversation has: some models leave them out or use one twice, and a result
// must find its call.
func (l *loop) nameCalls(reply *synapse.Reply) {
	for i, p := range reply.Message.Parts {
		if p.Call == nil {
			continue
		}
		if p.Call.ID == "" || l.ids[p.Call.ID] {
			call := *p.Call
			name := fmt.Sprintf("call_%d_%d", l.turn, i+1)
			call.ID = name
			for n := 2; l.ids[call.ID]; n++ {
				call.ID = name + "_" + strconv.Itoa(n)
			}
			reply.Message.Parts[i].Call = &call
		}
		l.ids[reply.Message.Parts[i].Call.ID] = true
	}
}

// finish ends a run that has its answer.
func (l *loop) finish(text string) synapse.Outcome {
	switch {
	case text == "":
		return synapse.Outcome{Status: synapse.StatusFailed, Cause: "the model ended its reply without saying anything"}
	case l.cut:
		out := l.partial(l.spentLimit())
		out.Text = text
		return out
	}
	return synapse.Outcome{Status: synapse.StatusCompleted, Text: text}
}

// lastTurn reports whether the coming turn is the last one. A model that is
// offered no tools anyway can't be cut short by that.
func (l *loop) lastTurn() bool {
	if l.cut || len(l.ps.defs) == 0 || l.fixes > 0 {
		return false
	}
	if l.spent == "" && l.in.Limits.ToolCalls > 0 && l.toolCalls >= l.in.Limits.ToolCalls {
		l.spent, l.cause = "tool_calls", fmt.Sprintf("%d tool calls were made", l.toolCalls)
	}
	return l.spent != "" || l.in.Limits.Turns > 0 && l.turn >= l.in.Limits.Turns
}

func (l *loop) spentLimit() string {
	if l.spent != "" {
		return l.spent
	}
	return "turns"
}

// partial ends a run that a limit cut short: it returns what it has.
func (l *loop) partial(limit string) synapse.Outcome {
	cause := l.cause
	if cause == "" {
		switch limit {
		case "turns":
			cause = fmt.Sprintf("stopped after %d turns", l.turn)
		case "output_tokens":
			cause = "the reply was cut off by the model's output limit"
		default:
			cause = limit + " limit reached"
		}
	}
	return synapse.Outcome{Status: synapse.StatusPartial, Limit: limit, Cause: cause, Text: l.lastText()}
}

// broken maps an error of a future to the end of the run.
func (l *loop) broken(err error) synapse.Outcome {
	var limit *LimitError
	var provider *synapse.ProviderError
	out := synapse.Outcome{Status: synapse.StatusFailed, Cause: err.Error(), Text: l.lastText()}
	switch {
	case errors.Is(err, ErrCancelled):
		out.Status, out.Cause = synapse.StatusCancelled, "cancelled"
	case errors.Is(err, ErrDeadline):
		out.Status, out.Cause, out.Limit = synapse.StatusTimedOut, ErrDeadline.Error(), "time"
	case errors.As(err, &limit):
		l.cause = limit.Cause
		out = l.partial(limit.Limit)
	case errors.As(err, &provider):
		out.ErrorKind = provider.Kind
	}
	return out
}

// lastText is the last assistant text of this start that is not empty. What an
// earlier start said is not this one's answer.
func (l *loop) lastText() string {
	for i := len(l.st.Messages) - 1; i >= l.base; i-- {
		m := l.st.Messages[i]
		if m.Role != synapse.RoleAssistant {
			continue
		}
		if text := strings.TrimSpace(m.Text()); text != "" {
			return text
		}
	}
	return ""
}

func (l *loop) modelInput(tools []synapse.ToolDef) *ModelInput {
	s := l.ps.spec
	in := new(struct { // made together, since they go together
		ModelInput
		req synapse.Request
	})
	in.req = synapse.Request{
		Model: s.Model.Name, System: s.System, Messages: l.st.Messages[:len(l.st.Messages):len(l.st.Messages)], Tools: tools,
		Effort: s.Effort, Temperature: s.Temperature, TopP: s.TopP,
	}
	in.ModelInput = ModelInput{Turn: l.turn, Model: s.Model, Fallback: s.Fallback, Request: &in.req}
	return &in.ModelInput
}

func (l *loop) options(effect synapse.Effect) CallOptions {
	return CallOptions{Effect: effect, Deadline: l.in.Deadline}
}

// elapsed is the time since start.
func (l *loop) elapsed(start time.Time) synapse.Duration {
	return synapse.Duration(l.rt.Now().Sub(start))
}
