package run

import (
	"fmt"
	"iter"
	"time"

	"github.com/synapse-agents/synapse"
)

// Fold makes the state of a run out of its events: what the loop had in hand
// when they end. It is how a child is continued after its parent has ended, or
// in another process.
func Fold(events iter.Seq2[*synapse.Event, error], run string) (*State, error) {
	return fold(events, run, nil, false)
}

// FoldAfter is [Fold] for a main run that goes on with a conversation, as its
// run_started says in After.
func FoldAfter(before *State, events iter.Seq2[*synapse.Event, error], run string) (*State, error) {
	return fold(events, run, before, false)
}

// follow gives a new run the conversation that it goes on with, and the
// sub-agents that were started in it.
func (st *State) follow(before *State) {
	if before == nil {
		return
	}
	st.Messages = before.Messages[:len(before.Messages):len(before.Messages)]
	if st.Children == nil {
		st.Children = map[string]*Child{}
	}
	for id, c := range before.Children {
		child := *c
		child.own, child.future = false, nil
		st.Children[id] = &child
	}
}

// fold makes the state of a run. Before is what precedes its first event, nil for
// nothing. With open, a start that has not ended keeps its progress; otherwise it
// is closed, so that the run can be continued with another prompt.
func fold(events iter.Seq2[*synapse.Event, error], run string, before *State, open bool) (*State, error) {
	f := folder{st: &State{Children: map[string]*Child{}}}
	f.st.follow(before)
	for e, err := range events {
		if err != nil {
			return nil, fmt.Errorf("read the events of run %s: %w", run, err)
		}
		if e.Run == run {
			f.add(e)
		}
	}
	if f.st.Spec == nil {
		return nil, fmt.Errorf("there is no run %s", run)
	}
	if open && !f.st.Ended {
		f.at.Elapsed += f.last.Sub(f.begun)
		f.st.Progress = &f.at
		return f.st, nil
	}
	f.flush()
	return f.st, nil
}

// folder collects the results of a batch until the next message shows that the
// batch is over: results are recorded as they come, and join the conversation in
// the order of the calls.
type folder struct {
	st    *State
	at    Progress // of the last start
	calls []*synapse.ToolCall
	begun time.Time // since when somebody works on the last start
	last  time.Time
}

func (f *folder) add(e *synapse.Event) {
	st := f.st
	if b, ok := e.Body.(*synapse.RunStarted); ok {
		f.start(e, b)
	}
	f.last = e.Time
	st.addFlow(e.Body)
	switch b := e.Body.(type) {
	case *synapse.ModelRequested:
		f.flush()
		st.Messages = append(st.Messages, b.Added...)
		f.at.Sent = nil
		f.at.Turn, f.at.Requested, f.at.Final, f.at.Limit, f.at.Cause, f.at.Fixes = b.Turn, true, b.Final, b.Limit, b.Cause, b.Fixes
		for _, c := range st.Children {
			c.Told = c.Told || c.Done // in a result, or in what was added
		}
	case *synapse.ModelReplied:
		st.Turns++
		st.Messages = append(st.Messages, b.Message)
		f.calls = b.Message.Calls()
		reply := b.Reply
		f.at.Reply, f.at.Requested, f.at.Model = &reply, false, b.Model
		f.at.Results, f.at.Began, f.at.Answers = map[string]*synapse.ToolResult{}, map[string]bool{}, map[string]synapse.Answer{}
		f.at.Usage, f.at.Total = f.at.Usage.Add(b.Usage), f.at.Total.Add(b.Usage)
	case *synapse.ToolStarted:
		if f.at.Began != nil {
			if !f.at.Began[b.Call.ID] && !isDelegation(b.Call.Name) {
				f.at.Calls++
			}
			f.at.Began[b.Call.ID] = true
		}
	case *synapse.ToolFinished:
		if f.at.Results != nil { // a result without a reply is nobody's
			r := b.Result
			f.at.Results[r.CallID] = &r
		}
	case *synapse.ApprovalAnswered:
		if f.at.Answers != nil {
			f.at.Answers[b.ID] = b.Answer
		}
	case *synapse.Compacted:
		f.flush()
		st.Messages = compacted(st.Messages, b)
		if b.Summary != "" {
			f.at.Base = b.Head + 1
		}
		if b.Usage != nil {
			f.at.Usage, f.at.Total = f.at.Usage.Add(*b.Usage), f.at.Total.Add(*b.Usage)
		}
	case *synapse.Signalled:
		f.signalled(&b.Signal)
	case *synapse.ChildStarted:
		st.Children[b.Task] = &Child{
			Task: b.Task, Agent: b.Agent, Description: b.Description, CallID: b.CallID, Background: b.Background, Key: b.Key, own: true,
		}
	case *synapse.ChildFinished:
		if c := st.Children[b.Task]; c != nil {
			c.Done, c.Told, c.Outcome = true, !c.Background, b.Outcome
		}
		f.at.Total = f.at.Total.Add(b.Total)
	case *synapse.HandedOff:
		f.flush()
		st.handOver(b)
		if b.Messages != nil {
			f.at.Base = len(st.Messages)
		}
	case *synapse.RunFinished:
		if b.Limit == LimitApproval {
			return // it goes on when the question is answered
		}
		f.flush()
		st.Ended, st.Outcome = true, b.Outcome
	}
}

// signalled takes what the user has told the run, as the loop did.
func (f *folder) signalled(sig *synapse.Signal) {
	switch sig.Kind {
	case synapse.SignalPause:
		f.at.Paused = true
	case synapse.SignalContinue:
		f.at.Paused = false
	case synapse.SignalSend:
		f.at.Paused = false
		f.at.Sent = append(f.at.Sent, synapse.UserText(sig.Text))
	}
}

// start opens a start of the run, or goes on with one that was cut off.
func (f *folder) start(e *synapse.Event, b *synapse.RunStarted) {
	st := f.st
	if goesOn(b) && st.Spec != nil && !st.Ended {
		f.at.Elapsed += f.last.Sub(f.begun)
		f.begun = e.Time
		st.Spec = b.Spec
		return
	}
	f.flush()
	st.Starts++
	st.Spec, st.Depth, st.ParentRun, st.Description, st.Ended = b.Spec, b.Depth, e.ParentRun, b.Description, false
	st.Messages = append(st.Messages, b.Input...)
	for _, c := range st.Children {
		c.own = false
	}
	f.at = Progress{Limits: b.Limits, Base: len(st.Messages)}
	f.begun = e.Time
}

// flush closes a batch. A call without a result was in flight when the events
// end: the model is told that its outcome is unknown.
func (f *folder) flush() {
	results := f.at.Results
	f.at.Reply, f.at.Results, f.at.Began, f.at.Answers = nil, nil, nil, nil
	if len(f.calls) == 0 {
		return
	}
	parts := make([]synapse.Part, len(f.calls))
	for i, call := range f.calls {
		r := results[call.ID]
		if r == nil {
			r = f.lost(call)
		}
		parts[i] = synapse.Part{Kind: synapse.PartResult, Result: r}
	}
	f.st.Messages = append(f.st.Messages, synapse.Message{Role: synapse.RoleTool, Parts: parts})
	f.calls = nil
}

// lost is the result of a call that was in flight.
func (f *folder) lost(call *synapse.ToolCall) *synapse.ToolResult {
	r := unknown(call)
	for _, c := range f.st.Children {
		if c.CallID == call.ID {
			r.Text += "\nTask: " + c.Task + " (set task_id to continue it)"
		}
	}
	return r
}
