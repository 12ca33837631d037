package run

import (
	"maps"
	"slices"

	"github.com/synapse-agents/synapse"
)

// FlowState is where a workflow stands: what the scheduler starts from, and what
// [Fold] makes of a workflow's events. Its values are shared and never changed
// in place.
type FlowState struct {
	Values map[string]any
	Visits map[string]int
	Step   int      // the super-step that Active is
	Active []string // the nodes of the step, in order
	// Waiting are the sources that have led to a join so far.
	Waiting map[string][]string
	Ended   bool // a path has led to the end
	// Done is what nodes of the step, and items of them, have come to already.
	Done map[FlowKey]*synapse.NodeFinished
	// Answers are the user's, by the question's id.
	Answers map[string]synapse.Answer
	// Asked are the questions without an answer.
	Asked map[string]*synapse.Ask
	// Tasks are the sub-agents that nodes of the step have started, by call id.
	Tasks map[string]string
	// Last is what the nodes of the last step came to, in order.
	Last []*synapse.NodeFinished
	// Partial is why a node's answer is not whole, Failed how many nodes failed
	// that the workflow went on without.
	Partial string
	Failed  int
	Total   synapse.Usage // of the sub-agents that have ended
}

// FlowKey names a node of a step, or an item of it (from 1).
type FlowKey struct {
	Node string
	Item int
}

func newFlowState() *FlowState {
	return &FlowState{
		Values: map[string]any{}, Visits: map[string]int{},
		Done: map[FlowKey]*synapse.NodeFinished{}, Answers: map[string]synapse.Answer{},
		Asked: map[string]*synapse.Ask{}, Tasks: map[string]string{},
	}
}

// add takes an event of the workflow in. The scheduler's own state comes of the
// same events, so that it is the same after a restart.
func (s *FlowState) add(body synapse.Body) {
	switch b := body.(type) {
	case *synapse.NodeFinished:
		s.Done[FlowKey{b.Node, b.Item}] = b
		if b.Item > 0 {
			return
		}
		switch b.Status {
		case synapse.StatusPartial:
			s.Partial = "node " + b.Node + ": " + b.Cause
		case synapse.StatusCompleted:
		default:
			s.Failed++
		}
	case *synapse.StateChanged:
		s.merge(b.Changes)
		s.advance(b)
	case *synapse.ApprovalAsked:
		s.Asked[b.Ask.ID] = &b.Ask
	case *synapse.ApprovalAnswered:
		s.Answers[b.ID] = b.Answer
		delete(s.Asked, b.ID)
	case *synapse.ChildStarted:
		s.Tasks[b.CallID] = b.Task
	case *synapse.ChildFinished:
		s.Total = s.Total.Add(b.Total)
	}
}

// merge lets outputs join the values. Whoever holds the old values keeps them.
func (s *FlowState) merge(changes []synapse.StateChange) {
	if len(changes) == 0 {
		return
	}
	s.Values = maps.Clone(s.Values)
	for _, c := range changes {
		s.Values[c.Key] = c.Reduce.Apply(s.Values[c.Key], c.Value)
	}
}

// advance goes on to the next super-step.
func (s *FlowState) advance(b *synapse.StateChanged) {
	if b.Step > 0 {
		last := make([]*synapse.NodeFinished, 0, len(s.Active))
		for _, name := range s.Active {
			if d := s.Done[FlowKey{name, 0}]; d != nil {
				last = append(last, d)
			}
		}
		s.Last = last
	}
	s.Step, s.Active, s.Ended = b.Step+1, b.Next, b.Ended
	clear(s.Done)
	clear(s.Tasks)
	s.Waiting = b.Waiting
	for _, name := range b.Next {
		s.Visits[name]++
	}
}

// Questions returns the workflow's questions that nobody has answered, by id.
func (s *FlowState) Questions() []*synapse.Ask {
	return slices.SortedFunc(maps.Values(s.Asked), func(a, b *synapse.Ask) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
}

// addFlow keeps the state of a workflow among a run's.
func (st *State) addFlow(body synapse.Body) {
	if st.Spec == nil || st.Spec.Flow == nil {
		return
	}
	if st.Flow == nil {
		st.Flow = newFlowState()
	}
	st.Flow.add(body)
}
