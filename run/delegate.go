package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// maxReport is how much of a sub-agent's report goes into the parent's
// conversation, in tokens of four bytes; a longer one is kept whole elsewhere.
const maxReport = 20_000

// maxCause is how much of a failure's cause goes there, in bytes: some providers
// answer with a page of HTML.
const maxCause = 1000

// delegate runs one of the tools that start, follow and stop sub-agents.
func (l *loop) delegate(s *step) error {
	l.rt.Emit(&synapse.ToolStarted{Call: *s.call, Intent: s.v.intent, Key: s.key, Effect: synapse.EffectKeyed})
	if isTransfer(s.call.Name) {
		return l.transfer(s)
	}
	switch s.call.Name {
	case toolTask, toolWorkflow:
		return l.task(s)
	case toolTaskOutput:
		return l.taskOutput(s)
	default:
		return l.taskStop(s)
	}
}

// task starts a sub-agent, or continues one.
func (l *loop) task(s *step) error {
	if c := l.startedBy(s.call.ID); c != nil {
		return l.follow(s, c)
	}
	in, err := l.childInput(s)
	if err != nil || s.result != nil {
		return err
	}
	child := &Child{
		Task: in.Task, Agent: in.Spec.Agent, Description: in.Description, CallID: s.call.ID, Background: in.Background,
		own: true, future: l.rt.Spawn(s.key, in),
	}
	if child.future.Ready() { // it could not even start
		var out synapse.Outcome
		if err := child.future.Get(&out); err != nil {
			if isEnd(err) {
				return err
			}
			l.refuse(s, "the sub-agent was not started: "+err.Error(), "")
			return nil
		}
	}
	l.st.Children[child.Task] = child
	return l.follow(s, child)
}

// follow makes a child's end the result of the call that started it, or says at
// once that it runs in the background.
func (l *loop) follow(s *step, child *Child) error {
	s.child = child
	if child.Background {
		l.finished(s, synapse.TextResult(fmt.Sprintf("Agent %q runs in the background.\nTask: %s\nYou are told when it ends.", child.Agent, child.Task)), "")
		return nil
	}
	if child.Done {
		child.Told = true
		l.finished(s, l.report(child, s.key), "")
		return nil
	}
	s.future = child.future
	s.wrap = func(s *step) *synapse.ToolResult {
		l.childEnded(s.child)
		s.child.Told = true
		return l.report(s.child, s.key)
	}
	return nil
}

// childInput makes what a child starts with of a call's arguments. It refuses the
// call if they make none.
func (l *loop) childInput(s *step) (in ChildInput, err error) {
	if s.call.Name == toolWorkflow {
		return l.workflowInput(s)
	}
	var args taskArgs
	if err := json.Unmarshal(s.v.args, &args); err != nil {
		l.refuse(s, err.Error(), "") // the schema has let it through, so this is about a number's range and the like
		return in, nil
	}
	if strings.TrimSpace(args.Prompt) == "" {
		l.refuse(s, "the prompt is empty: it is all that the sub-agent will know", "")
		return in, nil
	}
	in = ChildInput{CallID: s.call.ID, Description: args.Description, Depth: l.in.Depth + 1}
	if args.TaskID != "" {
		refusal, err := l.resume(s, &in, args)
		if err != nil {
			return in, err
		}
		if refusal != "" {
			l.refuse(s, refusal, "")
			return in, nil
		}
		if denied := l.judgeTask(in.Spec.Agent, s.v.asks); denied != "" {
			l.refuse(s, "permission denied: task: "+denied+"; do not retry", denied)
			return in, nil
		}
	} else {
		spec, ok := l.ps.find(args.Type)
		switch {
		case !ok && args.Type == "":
			l.refuse(s, "there is no default sub-agent: set subagent_type to one of: "+l.ps.agentNames(), "")
			return in, nil
		case !ok:
			l.refuse(s, fmt.Sprintf("unknown subagent_type %q: there are: %s", args.Type, l.ps.agentNames()), "")
			return in, nil
		case spec.NoTools != "":
			l.refuse(s, fmt.Sprintf("the agent %q can't work: %s", spec.Agent, spec.NoTools), "")
			return in, nil
		}
		in.Spec = spec
		in.Task = l.taskID(s.key)
		in.Input = append(append([]synapse.Message(nil), spec.Preload...), synapse.UserText(args.Prompt))
	}
	in.Background = in.Spec.Background
	if args.Background != nil {
		in.Background = *args.Background
	}
	return in, nil
}

// resume fills in a child that takes up where it stopped, with the definition
// and the policy it started with. It returns why that can't be, if it can't.
func (l *loop) resume(s *step, in *ChildInput, args taskArgs) (refusal string, err error) {
	if c, ok := l.st.Children[args.TaskID]; ok && !c.Done {
		if c.future != nil && !c.future.Ready() {
			return fmt.Sprintf("task %s is still running: wait for it with task_output, or stop it with task_stop", args.TaskID), nil
		}
		l.childEnded(c)
	}
	var st *State
	if err := l.rt.Call(s.key+"/history", HandlerHistory, args.TaskID, l.options(synapse.EffectRead)).Get(&st); err != nil {
		if isEnd(err) {
			return "", err
		}
		return fmt.Sprintf("task %s can't be continued: %v", args.TaskID, err), nil
	}
	spec, ok := l.ps.find(st.Spec.Agent)
	switch {
	case !ok || st.Depth != l.in.Depth+1 || spec.ID != st.Spec.ID || l.in.Depth > 0 && st.ParentRun != l.in.Run:
		// The main agent is another run at each request of a conversation.
		return fmt.Sprintf("task %s is not a sub-agent of yours", args.TaskID), nil
	case args.Type != "":
		if named, ok := l.ps.find(args.Type); !ok || named.ID != st.Spec.ID {
			return fmt.Sprintf("task %s is of the agent %q: leave subagent_type out to continue it", args.TaskID, st.Spec.Agent), nil
		}
	}
	in.Task, in.Spec, in.Depth, in.State = args.TaskID, l.p.narrowed(st.Spec, spec), st.Depth, st
	in.Input = []synapse.Message{synapse.UserText(args.Prompt)}
	return "", nil
}

// taskID derives a child's run id from its place, so that it is the same when
// the parent is resumed.
func (l *loop) taskID(key string) string { return TaskID(l.in.Trace, l.in.Run, key) }

// TaskID returns the id of the run that the call at key starts, within a run of a
// trace.
func TaskID(trace, run, key string) string {
	sum := sha256.Sum256([]byte(trace + "/" + run + "/" + key))
	return "t-" + hex.EncodeToString(sum[:5])
}

// taskOutput says how a task stands, after waiting for it if asked to.
func (l *loop) taskOutput(s *step) error {
	var args taskOutputArgs
	if err := json.Unmarshal(s.v.args, &args); err != nil {
		l.refuse(s, err.Error(), "")
		return nil
	}
	c, ok := l.st.Children[args.TaskID]
	if !ok {
		l.refuse(s, l.noSuchTask(args.TaskID), "")
		return nil
	}
	if !c.Done && args.Wait > 0 {
		// A batch may hold several waits: each is a step of its own that ends
		// with the child or with its time.
		wait := time.Duration(math.Min(args.Wait, 600) * float64(time.Second))
		s.future = &either{a: c.future, b: l.rt.Call(s.key+"/wait", HandlerSleep, wait, l.options(synapse.EffectRead))}
		s.wrap = func(s *step) *synapse.ToolResult {
			s.future.Cancel()
			return l.standing(c, s.key)
		}
		return nil
	}
	l.finished(s, l.standing(c, s.key), "")
	return nil
}

// standing says what a child's status is, never guessed.
func (l *loop) standing(c *Child, key string) *synapse.ToolResult {
	if !c.Done && c.future != nil && c.future.Ready() {
		l.childEnded(c)
	}
	if !c.Done {
		return synapse.TextResult(fmt.Sprintf("Agent %q is still running.\nTask: %s", c.Agent, c.Task))
	}
	c.Told = true
	return l.report(c, key)
}

// taskStop stops a task and reports what it had.
func (l *loop) taskStop(s *step) error {
	var args taskStopArgs
	if err := json.Unmarshal(s.v.args, &args); err != nil {
		l.refuse(s, err.Error(), "")
		return nil
	}
	c, ok := l.st.Children[args.TaskID]
	switch {
	case !ok:
		l.refuse(s, l.noSuchTask(args.TaskID), "")
		return nil
	case c.Done:
		l.finished(s, l.standing(c, s.key), "")
		return nil
	}
	c.future.Cancel()
	s.future = c.future
	s.wrap = func(s *step) *synapse.ToolResult { return l.standing(c, s.key) }
	return nil
}

func (l *loop) noSuchTask(id string) string {
	if len(l.st.Children) == 0 {
		return fmt.Sprintf("there is no task %q: none has been started", id)
	}
	ids := make([]string, 0, len(l.st.Children))
	for id := range l.st.Children {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return fmt.Sprintf("there is no task %q: there are: %s", id, strings.Join(ids, ", "))
}

// childEnded takes a child's outcome, once.
func (l *loop) childEnded(c *Child) {
	if c.Done || c.future == nil {
		return
	}
	var out synapse.Outcome
	if err := c.future.Get(&out); err != nil {
		out = synapse.Outcome{Status: synapse.StatusFailed, Cause: err.Error()}
	}
	c.Done, c.Outcome = true, out
	l.total = l.total.Add(out.Total)
	l.rt.Emit(&synapse.ChildFinished{Task: c.Task, Agent: c.Agent, CallID: c.CallID, Outcome: out})
}

// failed counts the children whose last word is a failure: one that was
// continued and then answered is none.
func (l *loop) failed() int {
	n := 0
	for _, c := range l.st.Children {
		if c.Done && c.own && (c.Outcome.Status == synapse.StatusFailed || c.Outcome.Status == synapse.StatusTimedOut) {
			n++
		}
	}
	return n
}

// open returns the children that run in the background, by task id.
func (l *loop) open() []*Child {
	var out []*Child
	for _, c := range l.st.Children {
		if !c.Done && c.future != nil {
			out = append(out, c)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Task < out[j].Task })
	return out
}

// announcements tells the model of background children that have ended since
// its last turn.
func (l *loop) announcements() []synapse.Message {
	for _, c := range l.open() {
		if c.future.Ready() {
			l.childEnded(c)
		}
	}
	var ended []*Child
	for _, c := range l.st.Children {
		if c.Done && c.Background && !c.Told {
			ended = append(ended, c)
		}
	}
	sort.Slice(ended, func(i, j int) bool { return ended[i].Task < ended[j].Task })
	var out []synapse.Message
	for _, c := range ended {
		c.Told = true
		r := l.report(c, l.at+"/told/"+c.Task)
		out = append(out, synapse.UserText("A background task has ended.\n\n"+r.Text))
	}
	return out
}

// waitForOne waits for the next background child to end, and reports whether
// there was one: an agent doesn't end before its children have.
func (l *loop) waitForOne() bool {
	children := l.open()
	if len(children) == 0 {
		return false
	}
	futures := make([]Future, len(children))
	for i, c := range children {
		futures[i] = c.future
	}
	l.childEnded(children[l.rt.Await(futures...)])
	return true
}

// waitForAll waits for every background child, before a last turn that can still
// tell of them.
func (l *loop) waitForAll() {
	for l.waitForOne() {
	}
}

// closeChildren stops what still runs when the run itself ends.
func (l *loop) closeChildren() {
	children := l.open()
	for _, c := range children {
		c.future.Cancel()
	}
	for _, c := range children {
		l.childEnded(c)
	}
}

// report writes what the parent's model reads of a child that has ended.
func (l *loop) report(c *Child, key string) *synapse.ToolResult {
	out := c.Outcome
	text := out.Text
	if size := len(text); size > maxReport*4 {
		path := ""
		sum := sha256.Sum256([]byte(text)) // a task that is continued has several reports
		name := c.Task + "-" + hex.EncodeToString(sum[:3]) + ".md"
		err := l.rt.Call(key+"/keep", HandlerKeep, &KeepInput{Name: name, Text: text}, l.options(synapse.EffectKeyed)).Get(&path)
		text = shorten(text, maxReport*4)
		if err != nil {
			text += fmt.Sprintf("\n[the report has %d bytes; the rest could not be kept: %v]", size, err)
		} else {
			text += fmt.Sprintf("\n[the report has %d bytes; the whole of it is in %s]", size, path)
		}
	}
	if text == "" {
		text = "(it said nothing)"
	}
	return &synapse.ToolResult{
		Text: fmt.Sprintf("Agent %q %s.\nTokens: %d in / %d out\nTask: %s\n\n%s",
			c.Agent, ending(out), out.Total.InputTokens, out.Total.OutputTokens, c.Task, text),
		IsError: out.Status == synapse.StatusFailed,
	}
}

// ending says in a few words how a run ended.
func ending(out synapse.Outcome) string {
	switch out.Status {
	case synapse.StatusCompleted:
		return "completed"
	case synapse.StatusPartial:
		if out.Limit == "turns" {
			return fmt.Sprintf("stopped after %d turns (partial)", out.Turns)
		}
		return fmt.Sprintf("stopped: %s reached (partial)", out.Limit)
	case synapse.StatusCancelled:
		return "was cancelled"
	case synapse.StatusTimedOut:
		return "timed out (partial)"
	default:
		return "failed: " + strings.TrimRight(shorten(oneLine(out.Cause), maxCause), ".")
	}
}

// either is ready when one of two futures is. It has no value.
type either struct{ a, b Future }

func (e *either) Ready() bool   { return e.a.Ready() || e.b.Ready() }
func (e *either) Cancel()       { e.b.Cancel() }
func (e *either) Get(any) error { return errors.New("either has no value") }
