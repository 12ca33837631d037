package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/expr"
)

// LimitApproval is the limit of a workflow that ended because nobody was there
// to answer its question: it goes on from there when somebody has.
const LimitApproval = "approval"

// A scheduler runs one workflow to its end. Like the loop it is a pure function
// of its input and of what its futures return.
type scheduler struct {
	rt Runtime
	p  *Program
	pf *preparedFlow
	in Start
	st *FlowState

	input any
	vars  expr.Vars
	jobs  []*job // that have not ended, in the order of nodes and items
	ready []*job // that wait for their turn
}

// Schedule runs a workflow and returns the outcome. It emits run_started first
// and run_finished last, each once, as [Loop] does; in between, each super-step
// ends with a state_changed, from which it can be taken up again.
func Schedule(rt Runtime, p *Program, in Start) synapse.Outcome {
	s := &scheduler{rt: rt, p: p, in: in}
	rt.Emit(&synapse.RunStarted{
		Spec: in.Spec, Depth: in.Depth, Input: in.Input, Description: in.Description,
		Background: in.Background, Resumed: in.State != nil, Limits: in.Limits,
	})
	messages := in.Input
	if in.State != nil {
		s.st = in.State.Flow
		messages = append(slices.Clone(in.State.Messages), in.Input...)
	}
	fresh := s.st == nil
	if fresh {
		s.st = newFlowState()
	}
	defer func() { // a panic is the runtime's to report; what runs ends first
		if len(s.jobs) > 0 {
			s.abandon()
		}
	}()
	out := s.prepare(messages)
	if out.Status == "" {
		out = s.steps(fresh)
	}
	s.abandon()
	out.Turns = max(0, s.st.Step-1)
	out.Total = s.st.Total
	out.Failed = s.st.Failed
	if in.Depth == 0 && out.Text != "" {
		rt.Emit(&synapse.Conclusion{Content: out.Text})
	}
	rt.Emit(&synapse.RunFinished{Outcome: out})
	return out
}

// prepare reads the workflow and what it is started with.
func (s *scheduler) prepare(messages []synapse.Message) synapse.Outcome {
	ps, err := s.p.prepared(s.in.Spec)
	if err == nil {
		s.pf = ps.flow
		text := ""
		if len(messages) > 0 {
			text = messages[0].Text()
		}
		s.input, err = s.pf.readInput(text)
	}
	if err != nil {
		return failure(err.Error())
	}
	s.vars = expr.Vars{Input: s.input, State: s.st.Values, Visits: s.st.Visits}
	return synapse.Outcome{}
}

func failure(cause string) synapse.Outcome {
	return synapse.Outcome{Status: synapse.StatusFailed, Cause: cause}
}

// readInput reads what a workflow is started with and checks it.
func (pf *preparedFlow) readInput(text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	var input any
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return nil, fmt.Errorf("the workflow's input is not JSON: %w", err)
	}
	if _, ok := input.(map[string]any); !ok {
		return nil, errors.New("the workflow's input is not a JSON object")
	}
	if pf.input != nil {
		if err := pf.input.Validate(input); err != nil {
			return nil, fmt.Errorf("the workflow's input does not fit its schema: %w", err)
		}
	}
	return input, nil
}

// emit records what happened, in the state as well.
func (s *scheduler) emit(body synapse.Body) {
	s.st.add(body)
	s.rt.Emit(body)
}

// steps goes from super-step to super-step until none is left.
func (s *scheduler) steps(fresh bool) synapse.Outcome {
	if fresh {
		opening := &synapse.StateChanged{}
		for _, key := range s.pf.flow.State {
			if value, ok := initial(key); ok {
				opening.Changes = append(opening.Changes, synapse.StateChange{Key: key.Name, Value: value})
			}
		}
		s.merge(opening)
		next := newFrontier(s)
		if err := next.follow(s.pf.first); err != nil {
			return failure(err.Error())
		}
		next.into(opening)
		s.st.advance(opening)
		s.rt.Emit(opening)
	}
	limit := s.pf.flow.Steps
	if limit == 0 {
		limit = synapse.DefaultFlowSteps
	}
	for len(s.st.Active) > 0 {
		if s.st.Step > limit {
			return synapse.Outcome{
				Status: synapse.StatusPartial, Limit: "steps", Text: s.lastText(),
				Cause: fmt.Sprintf("stopped after %d steps, with %s still to run", limit, strings.Join(s.st.Active, ", ")),
			}
		}
		if out := s.step(); out.Status != "" {
			return out
		}
	}
	return s.end()
}

// initial is what a key holds before anything has joined it.
func initial(key synapse.StateKey) (any, bool) {
	var s struct{ Default json.RawMessage }
	if len(key.Schema) > 0 && json.Unmarshal(key.Schema, &s) == nil && len(s.Default) > 0 {
		var v any
		if json.Unmarshal(s.Default, &v) == nil {
			return v, true
		}
	}
	switch key.Reduce {
	case synapse.ReduceAppend:
		return []any{}, true
	case synapse.ReduceMerge:
		return map[string]any{}, true
	}
	return nil, false
}

// step runs the active nodes, all at once, merges what they came to in the order
// of the nodes, and finds the next ones.
func (s *scheduler) step() synapse.Outcome {
	visits := make([]*visit, 0, len(s.st.Active))
	for _, name := range s.st.Active {
		n := s.pf.byName[name]
		if n == nil {
			return failure(fmt.Sprintf("the workflow has no node %q any more", name))
		}
		visits = append(visits, s.enter(n))
	}
	if out := s.work(); out.Status != "" {
		return out
	}
	changed := &synapse.StateChanged{Step: s.st.Step}
	for _, v := range visits { // in the order of the nodes
		d := v.done
		if d.Then == synapse.ThenFail {
			return failure(fmt.Sprintf("node %s: %s", v.node.Name, d.Cause))
		}
		if v.node.Output == "" || len(v.joins) == 0 {
			continue
		}
		for _, value := range v.joins {
			changed.Changes = append(changed.Changes, synapse.StateChange{Key: v.node.Output, Reduce: v.node.key.Reduce, Value: value})
		}
	}
	s.merge(changed) // edges are judged on the merged state
	next := newFrontier(s)
	for _, v := range visits {
		if v.done.Then == synapse.ThenGoto {
			next.enter(s.pf.byName[v.done.Goto])
			continue
		}
		if err := next.follow(v.node.out); err != nil {
			return failure(fmt.Sprintf("after node %s: %v", v.node.Name, err))
		}
	}
	next.into(changed)
	s.st.advance(changed)
	s.rt.Emit(changed)
	return synapse.Outcome{}
}

// merge lets the outputs of a step join the state.
func (s *scheduler) merge(c *synapse.StateChanged) {
	s.st.merge(c.Changes)
	s.vars.State = s.st.Values
}

// end says how a workflow without any active node has ended.
func (s *scheduler) end() synapse.Outcome {
	if !s.st.Ended {
		cause := "no edge led on"
		if len(s.st.Last) > 0 {
			names := make([]string, len(s.st.Last))
			for i, d := range s.st.Last {
				names[i] = d.Node
			}
			cause += " from " + strings.Join(names, ", ")
		}
		cause += " and none had led to the end"
		for _, n := range s.pf.nodes {
			if came := s.st.Waiting[n.Name]; len(came) > 0 {
				cause += fmt.Sprintf("; %s waits for all of %s, and only %s came", n.Name, strings.Join(n.sources, ", "), strings.Join(came, ", "))
			}
		}
		out := failure(cause)
		out.Text = s.lastText()
		return out
	}
	out := synapse.Outcome{Status: synapse.StatusCompleted}
	if s.pf.result != nil {
		text, err := s.pf.result.Text(&s.vars)
		if err != nil {
			return failure("result: " + err.Error())
		}
		out.Text = text
	} else {
		out.Text = s.lastText()
	}
	if s.st.Partial != "" {
		out.Status, out.Limit, out.Cause = synapse.StatusPartial, "node", s.st.Partial
	}
	return out
}

// lastText is what the last step's nodes came to: the one's output, or those of
// several under their names.
func (s *scheduler) lastText() string {
	var parts []string
	var only string
	for _, d := range s.st.Last {
		if d.Output == nil {
			continue
		}
		text, err := expr.Text(d.Output)
		if err != nil || strings.TrimSpace(text) == "" {
			continue
		}
		only = text
		parts = append(parts, d.Node+":\n"+text)
	}
	if len(parts) == 1 {
		return only
	}
	return strings.Join(parts, "\n\n")
}

// A frontier gathers the nodes of the next super-step.
type frontier struct {
	s       *scheduler
	next    map[*preparedNode]bool
	waiting map[string][]string
	ended   bool
}

func newFrontier(s *scheduler) *frontier {
	f := &frontier{s: s, next: map[*preparedNode]bool{}, waiting: map[string][]string{}, ended: s.st.Ended}
	for name, came := range s.st.Waiting {
		f.waiting[name] = slices.Clone(came)
	}
	return f
}

// follow follows the edges whose conditions hold.
func (f *frontier) follow(edges []*preparedEdge) error {
	for _, e := range edges {
		if e.when != nil {
			holds, err := e.when.Holds(&f.s.vars)
			if err != nil {
				return err
			}
			if !holds {
				continue
			}
		}
		switch {
		case e.to == nil:
			f.ended = true
		case !e.to.WaitAll:
			f.next[e.to] = true
		default:
			came := f.waiting[e.to.Name]
			if !slices.Contains(came, e.from) {
				came = append(came, e.from)
			}
			f.waiting[e.to.Name] = came
			if len(came) == len(e.to.sources) {
				f.enter(e.to)
			}
		}
	}
	return nil
}

// enter makes a node one of the next, whatever it waits for; nil is the end.
func (f *frontier) enter(n *preparedNode) {
	if n == nil {
		f.ended = true
		return
	}
	f.next[n] = true
	delete(f.waiting, n.Name)
}

// into writes the frontier down.
func (f *frontier) into(c *synapse.StateChanged) {
	nodes := make([]*preparedNode, 0, len(f.next))
	for n := range f.next {
		nodes = append(nodes, n)
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].index < nodes[j].index })
	c.Next = make([]string, len(nodes))
	for i, n := range nodes {
		c.Next[i] = n.Name
	}
	for _, came := range f.waiting {
		sort.Strings(came)
	}
	if len(f.waiting) > 0 {
		c.Waiting = f.waiting
	}
	c.Ended = f.ended
}
