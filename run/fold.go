package run

import (
	"fmt"
	"iter"

	"github.com/synapse-agents/synapse"
)

// Fold makes the state of a run out of its events: what the loop had in hand
// when they end. It is how a child is continued after its parent has ended, or
// in another process.
func Fold(events iter.Seq2[*synapse.Event, error], run string) (*State, error) {
	f := folder{st: &State{Children: map[string]*Child{}}}
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
	f.flush()
	return f.st, nil
}

// folder collects the results of a batch until the next message shows that the
// batch is over: results are recorded as they come, and join the conversation in
// the order of the calls.
type folder struct {
	st      *State
	calls   []*synapse.ToolCall
	results map[string]*synapse.ToolResult
}

func (f *folder) add(e *synapse.Event) {
	st := f.st
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		f.flush()
		st.Starts++
		st.Spec, st.Depth, st.ParentRun, st.Description, st.Ended = b.Spec, b.Depth, e.ParentRun, b.Description, false
		st.Messages = append(st.Messages, b.Input...)
	case *synapse.ModelRequested:
		f.flush()
		st.Messages = append(st.Messages, b.Added...)
		for _, c := range st.Children {
			c.Told = c.Told || c.Done // in a result, or in what was added
		}
	case *synapse.ModelReplied:
		st.Turns++
		st.Messages = append(st.Messages, b.Message)
		f.calls, f.results = b.Message.Calls(), map[string]*synapse.ToolResult{}
	case *synapse.ToolFinished:
		if f.results != nil { // a result without a reply is nobody's
			r := b.Result
			f.results[r.CallID] = &r
		}
	case *synapse.ChildStarted:
		st.Children[b.Task] = &Child{Task: b.Task, Agent: b.Agent, Description: b.Description, CallID: b.CallID, Background: b.Background}
	case *synapse.ChildFinished:
		if c := st.Children[b.Task]; c != nil {
			c.Done, c.Told, c.Outcome = true, !c.Background, b.Outcome
		}
	case *synapse.RunFinished:
		f.flush()
		st.Ended, st.Outcome = true, b.Outcome
	}
}

// flush closes a batch. A call without a result was in flight when the events
// end: the model is told that its outcome is unknown.
func (f *folder) flush() {
	if len(f.calls) == 0 {
		return
	}
	parts := make([]synapse.Part, len(f.calls))
	for i, call := range f.calls {
		r := f.results[call.ID]
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
	text := "the outcome of this call is unknown: the run was cut off while it was in flight; check before you do it again"
	for _, c := range f.st.Children {
		if c.CallID == call.ID {
			text += "\nTask: " + c.Task + " (set task_id to continue it)"
		}
	}
	return &synapse.ToolResult{CallID: call.ID, Name: call.Name, IsError: true, Text: text}
}
