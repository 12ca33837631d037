package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/synapse-agents/synapse"
)

// HandlerFunc calls a function node: *FuncInput → any.
// HandlerApprove asks the user: *synapse.Ask → synapse.Answer, or ErrNobody.
const (
	HandlerFunc    = "func"
	HandlerApprove = "approve"
)

// FuncInput calls a function of the program.
type FuncInput struct {
	Name  string
	Input synapse.NodeInput
}

// ToolApprove is the tool that a workflow's question names; nothing is run.
const ToolApprove = "approve"

// ErrNobody says that nobody is there to answer a question.
var ErrNobody = errors.New("nobody is there to ask")

// A visit is a node that has been entered in the step.
type visit struct {
	node  *preparedNode
	jobs  []*job
	open  int
	joins []any // what joins the state
	done  *synapse.NodeFinished
}

// A job is one node's work, or one item's of it.
type job struct {
	v       *visit
	item    int // from 1; 0 without for_each
	value   any // the element
	key     string
	attempt int
	future  Future
	ask     *synapse.Ask
	task    string
	call    string // the key of the attempt
	// What it has come to.
	over   bool
	output any
	status synapse.Status
	cause  string
	err    error // the end of the whole run
}

// enter opens a node's visit: what it has to do is put in line, but for what has
// been done before the workflow was cut off.
func (s *scheduler) enter(n *preparedNode) *visit {
	v := &visit{node: n}
	if d := s.st.Done[FlowKey{n.Name, 0}]; d != nil {
		v.done = d
		s.rejoin(v)
		return v
	}
	started := &synapse.NodeStarted{Step: s.st.Step, Node: n.Name, Type: n.Kind, Use: n.Use, Visit: s.st.Visits[n.Name]}
	key := "n" + strconv.Itoa(s.st.Step) + "/" + n.Name
	if n.forEach == nil {
		s.emit(started)
		v.jobs = []*job{{v: v, key: key}}
	} else {
		list, err := n.forEach.Elements(&s.vars)
		started.Items = len(list)
		s.emit(started)
		if err != nil {
			s.finish(v, &synapse.NodeFinished{Status: synapse.StatusFailed, Cause: "for_each: " + err.Error()})
			return v
		}
		v.jobs = make([]*job, len(list))
		block := make([]job, len(list))
		for i, value := range list {
			block[i] = job{v: v, item: i + 1, value: value, key: key + "/" + strconv.Itoa(i+1)}
			v.jobs[i] = &block[i]
		}
	}
	for _, j := range v.jobs {
		if d := s.st.Done[FlowKey{n.Name, j.item}]; d != nil && j.item > 0 {
			j.over, j.output, j.status, j.cause, j.attempt = true, d.Output, d.Status, d.Cause, d.Attempts
			continue
		}
		v.open++
		s.ready = append(s.ready, j)
	}
	if v.open == 0 {
		s.conclude(v)
	}
	return v
}

// work runs the step's jobs to their ends. A node that fails the workflow stops
// the others.
func (s *scheduler) work() (out synapse.Outcome) {
	var futures []Future
	running := map[*visit]int{}
	for {
		waiting := s.ready[:0]
		for _, j := range s.ready {
			if limit := j.v.node.MaxParallel; limit > 0 && running[j.v] >= limit {
				waiting = append(waiting, j)
				continue
			}
			s.begin(j)
			if j.over {
				if out := s.ended(j); out.Status != "" {
					return out
				}
				continue
			}
			running[j.v]++
			s.jobs = append(s.jobs, j)
		}
		s.ready = waiting
		if len(s.jobs) == 0 {
			if len(s.ready) == 0 {
				return synapse.Outcome{}
			}
			continue
		}
		open := s.jobs[:0]
		var settled []*job
		for _, j := range s.jobs {
			if j.future.Ready() {
				settled = append(settled, j)
			} else {
				open = append(open, j)
			}
		}
		clear(s.jobs[len(open):])
		s.jobs = open
		for i, j := range settled {
			running[j.v]--
			s.settle(j)
			if !j.over { // it is tried again
				s.ready = append(s.ready, j)
				continue
			}
			s.jobs = append(open, settled[i+1:]...) // who ends the step looks after them too
			if out := s.ended(j); out.Status != "" {
				return out
			}
			s.jobs = open
		}
		if len(settled) == 0 {
			futures = futures[:0]
			for _, j := range s.jobs {
				futures = append(futures, j.future)
			}
			s.rt.Await(futures...)
		}
	}
}

// ended notes a job's end. Its outcome, if any, is the workflow's.
func (s *scheduler) ended(j *job) synapse.Outcome {
	if j.err != nil {
		return s.broken(j)
	}
	v := j.v
	if j.item > 0 {
		s.emit(&synapse.NodeFinished{
			Step: s.st.Step, Node: v.node.Name, Item: j.item, Status: j.status, Output: j.output, Cause: j.cause, Attempts: j.attempt,
		})
	}
	v.open--
	fails := failed(j.status) && (v.node.Then == "" || v.node.Then == synapse.ThenFail)
	if v.open == 0 || fails {
		s.conclude(v)
	}
	if fails {
		return failure(fmt.Sprintf("node %s: %s", v.node.Name, v.done.Cause))
	}
	return synapse.Outcome{}
}

func failed(status synapse.Status) bool {
	return status != synapse.StatusCompleted && status != synapse.StatusPartial
}

// conclude makes a node's end out of those of its jobs.
func (s *scheduler) conclude(v *visit) {
	d := &synapse.NodeFinished{Status: synapse.StatusCompleted}
	list := make([]any, 0, len(v.jobs))
	failures := 0
	for _, j := range v.jobs {
		if !j.over {
			continue
		}
		d.Attempts = max(d.Attempts, j.attempt)
		switch {
		case failed(j.status):
			failures++
			if d.Cause == "" || !failed(d.Status) {
				d.Cause = j.cause
				if j.item > 0 {
					d.Cause = fmt.Sprintf("item %d: %s", j.item, j.cause)
				}
			}
			d.Status = j.status
			continue
		case j.status == synapse.StatusPartial && d.Status == synapse.StatusCompleted:
			d.Status, d.Cause = j.status, j.cause
		}
		list = append(list, j.output)
	}
	if v.node.forEach != nil {
		d.Output = list
		if n := len(v.jobs); failures > 1 {
			d.Cause = fmt.Sprintf("%d of %d items failed, the first with %s", failures, n, d.Cause)
		}
	} else if len(list) == 1 {
		d.Output = list[0]
	}
	s.finish(v, d)
}

// finish ends a node's visit.
func (s *scheduler) finish(v *visit, d *synapse.NodeFinished) {
	d.Step, d.Node = s.st.Step, v.node.Name
	if failed(d.Status) {
		d.Then, d.Goto = v.node.Then, v.node.Goto
		if d.Then == "" {
			d.Then = synapse.ThenFail
		}
	}
	v.done = d
	s.rejoin(v)
	s.emit(d)
}

// rejoin finds what of a node's output joins the state. The items of a for_each
// join one by one, but for a key that is replaced.
func (s *scheduler) rejoin(v *visit) {
	d := v.done
	if v.node.key == nil || failed(d.Status) && v.node.forEach == nil {
		return
	}
	if v.node.forEach == nil {
		v.joins = []any{d.Output}
		return
	}
	list, _ := d.Output.([]any)
	switch v.node.key.Reduce {
	case synapse.ReduceAppend, synapse.ReduceMerge:
		v.joins = list
	default:
		if list == nil {
			list = []any{}
		}
		v.joins = []any{list}
	}
}

// begin sets a job going, for the first time or again.
func (s *scheduler) begin(j *job) {
	n := j.v.node
	j.attempt++
	key := j.key
	if j.attempt > 1 {
		key += "/again" + strconv.Itoa(j.attempt-1)
	}
	s.vars.Item = j.value
	var err error
	switch n.Kind {
	case synapse.NodeAgent:
		err = s.beginAgent(j, key)
	case synapse.NodeWorkflow:
		err = s.beginWorkflow(j, key)
	case synapse.NodeFunction:
		in := &FuncInput{Name: n.Use, Input: synapse.NodeInput{
			Node: n.Name, Step: s.st.Step, Visit: s.st.Visits[n.Name], Key: s.in.Run + "/" + j.key,
			Input: s.input, State: s.vars.State, Item: j.value,
		}}
		effect := synapse.EffectKeyed
		if n.fn.Pure {
			effect = synapse.EffectRead
		}
		j.future = s.rt.Call(key, HandlerFunc, in, s.options(effect))
	case synapse.NodeApprove:
		err = s.beginApprove(j, key)
	}
	if err != nil {
		s.fail(j, err.Error(), false)
	}
}

func (s *scheduler) options(effect synapse.Effect) CallOptions {
	return CallOptions{Effect: effect, Deadline: s.in.Deadline}
}

func (s *scheduler) beginAgent(j *job, key string) error {
	prompt, err := j.v.node.prompt.Text(&s.vars)
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if strings.TrimSpace(prompt) == "" {
		return errors.New("the prompt is empty")
	}
	spec := j.v.node.spec.spec
	if spec.NoTools != "" {
		return errors.New(spec.NoTools)
	}
	return s.spawn(j, key, spec, append(append([]synapse.Message(nil), spec.Preload...), synapse.UserText(prompt)))
}

func (s *scheduler) beginWorkflow(j *job, key string) error {
	var input any = map[string]any{}
	if tree := j.v.node.input; tree != nil {
		var err error
		if input, err = tree.Value(&s.vars); err != nil {
			return fmt.Errorf("input: %w", err)
		}
	}
	text, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return s.spawn(j, key, j.v.node.spec.spec, []synapse.Message{synapse.UserText(string(text))})
}

// spawn starts a sub-agent's run for a job, or takes up the one that it had
// before the workflow was cut off.
func (s *scheduler) spawn(j *job, key string, spec *synapse.Spec, input []synapse.Message) error {
	what := j.v.node.Name
	if j.item > 0 {
		what += " " + strconv.Itoa(j.item)
	}
	in := ChildInput{Spec: spec, Depth: s.in.Depth + 1, CallID: key, Description: what, Input: input}
	if c := s.before(key); c != nil {
		in.Task, in.Again = c.Task, true
		if st := c.State; st != nil {
			if st.Ended {
				j.task, j.call, j.future = c.Task, key, settled{out: st.Outcome}
				return nil
			}
			in.State, in.Input = st, nil
			in.Spec = s.p.narrowed(st.Spec, spec)
		}
	} else {
		in.Task = s.taskID(key)
	}
	j.task, j.call = in.Task, key
	j.future = s.rt.Spawn(key, in)
	if j.future.Ready() {
		var out synapse.Outcome
		if err := j.future.Get(&out); err != nil && !isEnd(err) {
			return fmt.Errorf("%s was not started: %w", spec.Agent, err)
		}
	}
	return nil
}

// before returns the sub-agent that a job had when the workflow was cut off.
func (s *scheduler) before(key string) *Child {
	if s.in.State == nil {
		return nil
	}
	c := s.in.State.Children[s.st.Tasks[key]]
	if c == nil || c.Done {
		return nil
	}
	return c
}

// taskID derives a run's id from its place. A place that had a run before the
// workflow was cut off gets another.
func (s *scheduler) taskID(key string) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(s.in.Trace + "/" + s.in.Run + "/" + key + strings.Repeat("+", n)))
		id := "t-" + hex.EncodeToString(sum[:5])
		if s.in.State == nil || s.in.State.Children[id] == nil {
			return id
		}
	}
}

func (s *scheduler) beginApprove(j *job, key string) error {
	id := s.in.Run + "/" + key
	if answer, ok := s.st.Answers[id]; ok {
		if s.st.Asked[id] != nil { // it was given while nobody ran
			s.emit(&synapse.ApprovalAnswered{ID: id, Answer: answer})
		}
		s.approved(j, answer)
		return nil
	}
	question, err := j.v.node.prompt.Text(&s.vars)
	if err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	args, err := json.Marshal(map[string]string{"question": question})
	if err != nil {
		return err
	}
	j.ask = &synapse.Ask{
		ID: id, Run: s.in.Run, Agent: s.in.Spec.Agent, Tool: ToolApprove, Args: args, Subject: question,
		Reason: "node " + j.v.node.Name + " of the workflow asks",
	}
	if s.st.Asked[id] == nil {
		s.emit(&synapse.ApprovalAsked{Ask: *j.ask})
	}
	j.future = s.rt.Call(key, HandlerApprove, j.ask, s.options(synapse.EffectRead))
	return nil
}

// approved takes an answer. With an output the edges decide what it means;
// without, a no is the node's failure.
func (s *scheduler) approved(j *job, answer synapse.Answer) {
	j.over, j.status = true, synapse.StatusCompleted
	if key := j.v.node.key; key != nil {
		out := map[string]any{"ok": answer.Allow, "reason": answer.Reason}
		j.output = out
		if key.schema != nil && key.schema.Schema().Type == "boolean" {
			j.output = answer.Allow
		}
		if err := key.fits(j.output); err != nil {
			j.status, j.cause = synapse.StatusFailed, err.Error()
		}
		return
	}
	if !answer.Allow {
		j.status, j.cause = synapse.StatusFailed, "the user said no"
		if answer.Reason != "" {
			j.cause += ": " + answer.Reason
		}
	}
}

// settle takes the value of a job's future.
func (s *scheduler) settle(j *job) {
	switch j.v.node.Kind {
	case synapse.NodeFunction:
		var value any
		if err := j.future.Get(&value); err != nil {
			s.call(j, err)
			return
		}
		value, err := jsonValue(value)
		if err == nil {
			err = j.v.node.key.fits(value)
		}
		if err != nil {
			s.fail(j, err.Error(), true)
			return
		}
		j.over, j.status, j.output = true, synapse.StatusCompleted, value
	case synapse.NodeApprove:
		var answer synapse.Answer
		if err := j.future.Get(&answer); err != nil {
			s.call(j, err)
			return
		}
		s.emit(&synapse.ApprovalAnswered{ID: j.ask.ID, Answer: answer})
		s.approved(j, answer)
	default:
		var out synapse.Outcome
		if err := j.future.Get(&out); err != nil {
			s.call(j, err)
			return
		}
		spec := j.v.node.spec.spec
		s.emit(&synapse.ChildFinished{Task: j.task, Agent: spec.Agent, CallID: j.call, Outcome: out})
		s.outcome(j, spec, out)
	}
}

// outcome takes what a sub-agent came to.
func (s *scheduler) outcome(j *job, spec *synapse.Spec, out synapse.Outcome) {
	if failed(out.Status) || out.Text == "" {
		cause := out.Cause
		if cause == "" {
			cause = "it came to nothing"
		}
		s.fail(j, fmt.Sprintf("%s %s: %s", spec.Agent, wordOf(out.Status), cause), true)
		return
	}
	value, err := j.v.node.key.read(out.Text, spec.Output != nil)
	if err != nil {
		s.fail(j, fmt.Sprintf("the output of %s: %v", spec.Agent, err), true)
		return
	}
	j.over, j.output, j.status, j.cause = true, value, out.Status, out.Cause
}

func wordOf(status synapse.Status) string {
	return strings.ReplaceAll(string(status), "_", " ")
}

// call takes the error of a future.
func (s *scheduler) call(j *job, err error) {
	if isEnd(err) || errors.Is(err, ErrNobody) {
		j.over, j.err = true, err
		return
	}
	s.fail(j, err.Error(), true)
}

// fail notes a failure: the job is tried again while it may be.
func (s *scheduler) fail(j *job, cause string, again bool) {
	j.future = nil
	if again && j.attempt <= j.v.node.Retry {
		s.emit(&synapse.Warning{Code: "node-retry", Message: fmt.Sprintf("node %s: attempt %d failed: %s", j.v.node.Name, j.attempt, cause)})
		return
	}
	j.over, j.status, j.cause = true, synapse.StatusFailed, cause
}

// broken makes the workflow's end out of an error that ends the run.
func (s *scheduler) broken(j *job) synapse.Outcome {
	out := synapse.Outcome{Status: synapse.StatusCancelled, Cause: "cancelled", Text: s.lastText()}
	switch {
	case errors.Is(j.err, ErrDeadline):
		out.Status, out.Cause, out.Limit = synapse.StatusTimedOut, ErrDeadline.Error(), "time"
	case errors.Is(j.err, ErrNobody):
		out.Status, out.Limit = synapse.StatusPartial, LimitApproval
		out.Cause = "it waits for an answer: " + oneLine(j.ask.Subject)
		if len(s.jobs) > 0 { // the others of the step come to their ends first
			s.pause()
		}
	}
	return out
}

// pause lets the jobs end that run beside an unanswered question, so that they
// need not run again.
func (s *scheduler) pause() {
	for _, j := range s.jobs {
		s.settle(j)
		if j.over && j.err == nil {
			s.ended(j)
		}
	}
	s.jobs = nil
}

// abandon stops what still runs when the workflow ends.
func (s *scheduler) abandon() {
	for _, j := range s.jobs {
		j.future.Cancel()
	}
	for _, j := range s.jobs {
		switch j.v.node.Kind {
		case synapse.NodeAgent, synapse.NodeWorkflow:
			var out synapse.Outcome
			if err := j.future.Get(&out); err == nil {
				s.emit(&synapse.ChildFinished{Task: j.task, Agent: j.v.node.spec.spec.Agent, CallID: j.call, Outcome: out})
			}
		default:
			_ = j.future.Get(nil) // its value is nobody's any more
		}
	}
	s.jobs, s.ready = nil, nil
}
