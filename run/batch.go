package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// maxResult bounds a tool result's text, in bytes. A message travels by value,
// and engines that run the loop elsewhere refuse larger ones: checked here, a
// local run fails the same way.
const maxResult = 256 << 10

// A step is one call of a batch on its way to its result.
type step struct {
	call    *synapse.ToolCall
	key     string
	in      ToolInput // for the tool
	v       verdict
	asked   Future // the user's answer, while it is awaited
	future  Future
	child   *Child // the sub-agent that the future is, for task
	wrap    func(*step) *synapse.ToolResult
	started time.Time
	denied  string
	result  *synapse.ToolResult
}

// batch runs the calls of one reply: all at once when every tool of the batch
// allows that, one after the other otherwise. The results join the conversation
// in the order of the calls.
func (l *loop) batch(calls []*synapse.ToolCall, stop synapse.StopReason) error {
	steps := make([]step, len(calls))
	parallel := true
	for i, call := range calls {
		s := &steps[i]
		s.call = call
		s.in.Call.Key = l.in.Run + "/" + l.at + "/tool/" + strconv.Itoa(i+1)
		s.key = s.in.Call.Key[len(l.in.Run)+1:]
		parallel = parallel && l.parallel(call.Name)
	}
	var err error
	if parallel {
		for i := range steps {
			if err = l.begin(&steps[i], stop); err != nil {
				break
			}
		}
		if err == nil {
			err = l.collect(steps)
		}
	} else {
		for i := range steps {
			if err = l.begin(&steps[i], stop); err != nil {
				break
			}
			if err = l.collect(steps[i : i+1]); err != nil {
				break
			}
		}
	}
	if err != nil {
		l.abandon(steps)
	}
	l.record(steps)
	return err
}

// abandon gives every call without a result one, when the run ends in the middle
// of a batch: the history stays whole, and what was started is stopped.
func (l *loop) abandon(steps []step) {
	for i := range steps {
		s := &steps[i]
		if s.result != nil {
			continue
		}
		if s.asked != nil {
			s.asked.Cancel()
			l.unanswered(s, "the run was ending")
		}
		if s.future != nil {
			s.future.Cancel()
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.result != nil {
			continue
		}
		if s.future != nil {
			l.settle(s)
			continue
		}
		l.refuse(s, "not run: the run was ending", "")
	}
}

// record adds the results to the conversation.
func (l *loop) record(steps []step) {
	parts := make([]synapse.Part, len(steps))
	for i := range steps {
		parts[i] = synapse.Part{Kind: synapse.PartResult, Result: steps[i].result}
	}
	l.st.Messages = append(l.st.Messages, synapse.Message{Role: synapse.RoleTool, Parts: parts})
}

// refuseAll answers calls that were made though no tool was offered.
func (l *loop) refuseAll(calls []*synapse.ToolCall) {
	steps := make([]step, len(calls))
	for i, call := range calls {
		steps[i].call = call
		if l.before(&steps[i]) {
			continue
		}
		l.refuse(&steps[i], "permission denied: "+call.Name+": no tools are available in this turn; do not retry", "no tools in this turn")
	}
	l.record(steps)
}

// parallel reports whether calls of the tool may run beside others. An unknown
// tool runs nothing, so it holds nobody up.
func (l *loop) parallel(name string) bool {
	if isDelegation(name) {
		return true
	}
	t, ok := l.p.tools[name]
	return !ok || t.Parallel
}

// begin takes a call as far as it gets without waiting: refused, asked about, or
// started. Its error ends the run.
func (l *loop) begin(s *step, stop synapse.StopReason) error {
	if l.before(s) {
		return nil
	}
	if stop == synapse.StopLength {
		if !json.Valid([]byte(s.call.Args)) { // and nothing at all is cut off before its arguments
			l.refuse(s, "not run: the reply was cut off by the output limit in the middle of this call; make the call again, with less in it", "")
			return nil
		}
	}
	s.v = l.guard(s.call, s.key)
	switch {
	case s.v.refusal != nil:
		l.finished(s, s.v.refusal, s.v.denied)
		return nil
	case l.began(s):
		return l.startAgain(s)
	case s.v.ask != nil:
		if answer, ok := l.answerBefore(s.v.ask.ID); ok {
			return l.obey(s, answer)
		}
		l.rt.Emit(&synapse.ApprovalAsked{Ask: *s.v.ask})
		s.asked = l.rt.Call(s.key+"/ask", HandlerAsk, s.v.ask, l.options(synapse.EffectRead))
		return nil
	}
	return l.start(s)
}

// start sets a permitted call going.
func (l *loop) start(s *step) error {
	s.started = l.rt.Now()
	if isDelegation(s.call.Name) {
		return l.delegate(s)
	}
	t := l.p.tools[s.call.Name]
	l.toolCalls++
	effect := t.Effect()
	l.rt.Emit(&synapse.ToolStarted{Call: *s.call, Intent: s.v.intent, Key: s.key, Effect: effect})
	s.in.Name = t.Name
	s.in.Call.CallID, s.in.Call.Args, s.in.Call.Permits = s.call.ID, s.v.args, l.permits(t, s.v.asks)
	s.future = l.rt.Call(s.key, HandlerTool, &s.in, l.options(effect))
	return nil
}

// collect waits for the steps as they become ready. Answers start calls, and
// calls that are done get their results.
func (l *loop) collect(steps []step) error {
	for {
		open, futures := l.waiting[:0], l.futures[:0]
		for i := range steps {
			s := &steps[i]
			switch {
			case s.result != nil:
			case s.asked != nil:
				open, futures = append(open, s), append(futures, s.asked)
			case s.future != nil:
				open, futures = append(open, s), append(futures, s.future)
			}
		}
		l.waiting, l.futures = open, futures
		if len(open) == 0 {
			return nil
		}
		s := open[l.rt.Await(futures...)]
		if s.asked != nil {
			if err := l.answered(s); err != nil {
				return err
			}
			continue
		}
		if err := l.settle(s); err != nil {
			return err
		}
	}
}

// answered takes the user's answer to an ask and starts or refuses the call.
func (l *loop) answered(s *step) error {
	var answer synapse.Answer
	err := s.asked.Get(&answer)
	s.asked = nil
	if isEnd(err) {
		l.unanswered(s, err.Error())
		return err
	}
	if err != nil {
		answer = synapse.Answer{Reason: err.Error()}
	}
	l.rt.Emit(&synapse.ApprovalAnswered{ID: s.v.ask.ID, Answer: answer})
	return l.obey(s, answer)
}

// obey starts or refuses a call as the user has answered.
func (l *loop) obey(s *step, answer synapse.Answer) error {
	if !answer.Allow {
		reason := "the user did not allow it"
		if answer.Reason != "" {
			reason += ": " + answer.Reason
		}
		l.refuse(s, fmt.Sprintf("permission denied: %s: %s; do not retry", s.call.Name, reason), reason)
		return nil
	}
	return l.start(s)
}

// unanswered closes a question that the run's end has overtaken.
func (l *loop) unanswered(s *step, reason string) {
	l.rt.Emit(&synapse.ApprovalAnswered{ID: s.v.ask.ID, Answer: synapse.Answer{Reason: reason}})
}

// settle turns a ready future into the step's result. Only an end of the whole
// run is an error; whatever else goes wrong with a call is told to the model.
func (l *loop) settle(s *step) error {
	if s.wrap != nil {
		l.finished(s, s.wrap(s), s.denied)
		return nil
	}
	l.got = nil
	err := s.future.Get(&l.got)
	result := l.got
	if err == nil && result == nil {
		err = errors.New("the tool returned nothing")
	}
	if err != nil {
		result = synapse.ErrorResult(s.call.Name + " failed: " + err.Error())
		if t := l.p.tools[s.call.Name]; isEnd(err) && t.Effect() != synapse.EffectRead {
			result.Text += ": check what it has done before you do it again"
		}
		var limit *LimitError
		if errors.As(err, &limit) {
			l.spent, l.cause = limit.Limit, limit.Cause
		}
	}
	l.finished(s, result, "")
	if isEnd(err) {
		return err
	}
	return nil
}

// isEnd reports whether an error ends the run rather than one call.
func isEnd(err error) bool {
	return errors.Is(err, ErrCancelled) || errors.Is(err, ErrDeadline)
}

func (l *loop) refuse(s *step, text, denied string) {
	l.finished(s, synapse.ErrorResult(text), denied)
}

// finished gives the step its result and tells of it.
func (l *loop) finished(s *step, result *synapse.ToolResult, denied string) {
	e := &synapse.ToolFinished{Result: *result, Denied: denied}
	r := &e.Result
	r.CallID, r.Name = s.call.ID, s.call.Name
	r.Text = strings.ToValidUTF8(r.Text, "\ufffd")
	if !s.started.IsZero() && !isDelegation(s.call.Name) {
		l.kept(s, r)
	}
	if len(r.Text) > maxResult {
		cut := shorten(r.Text, maxResult)
		r.Text = fmt.Sprintf("%s\n[%d bytes of this result were left out]", cut, len(r.Text)-len(cut))
	}
	s.result = r
	if !s.started.IsZero() {
		e.Elapsed = l.elapsed(s.started)
	}
	l.rt.Emit(e)
}
