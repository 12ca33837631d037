package trace

import (
	"fmt"
	"iter"
	"time"

	"github.com/synapse-agents/synapse"
)

// A Tree is what the events of one trace add up to: its runs, and what became
// of each.
type Tree struct {
	Trace   string    `json:"trace_id"`
	Started time.Time `json:"started"` // the first event
	Ended   time.Time `json:"ended"`   // the last event
	// Status is the last main run's, [StatusOpen] while any run is open.
	Status synapse.Status `json:"status"`
	// Conclusion is the main agent's final answer, empty until there is one.
	Conclusion string        `json:"conclusion,omitempty"`
	Usage      synapse.Usage `json:"usage"` // of all runs
	Events     int           `json:"events"`
	// Runs are the runs without a parent among these events, in the order in
	// which they began: one, as a rule.
	Runs []*Run `json:"runs"`
}

// A Run is one run of a [Tree].
type Run struct {
	ID        string `json:"run_id"`
	Parent    string `json:"parent_run_id,omitempty"`
	SpawnedBy string `json:"spawned_by_tool,omitempty"` // the parent's call id
	Agent     string `json:"agent"`
	// Model is the one that answered last, else the one that the spec names.
	Model       string `json:"model,omitempty"`
	Effort      string `json:"reasoning_effort,omitempty"`
	Description string `json:"description,omitempty"`
	Prompt      string `json:"prompt,omitempty"` // first line of the task, at most 200 bytes
	Background  bool   `json:"background,omitempty"`
	Depth       int    `json:"depth"`
	// Status is how the run ended, [StatusOpen] when it has no end.
	Status synapse.Status `json:"status"`
	// Outcome is the run's own word about its end, nil while it is open.
	Outcome *synapse.Outcome `json:"outcome,omitempty"`
	Starts  int              `json:"starts"` // 1, and one for each resume
	Turns   int              `json:"turns"`  // replies
	// Usage is the sum over this run's replies, Total that of its subtree.
	Usage synapse.Usage `json:"usage"`
	Total synapse.Usage `json:"total"`

	Started time.Time `json:"started"`
	// Ended is when the run ended, for an open run the time of its last event.
	Ended time.Time `json:"ended"`
	// Elapsed is the time from start to end, without the pauses between an end
	// or a crash and a resume. Waiting is how much of it at least one
	// question to the user was open: it is not work.
	Elapsed synapse.Duration `json:"elapsed"`
	Waiting synapse.Duration `json:"waiting"`

	Calls    []*Call           `json:"calls,omitempty"` // in the order in which they began
	Warnings []synapse.Warning `json:"warnings,omitempty"`
	Retries  int               `json:"retries,omitempty"`
	// Questions are the questions to the user that have no answer yet.
	Questions []synapse.Ask `json:"questions,omitempty"`
	Children  []*Run        `json:"children,omitempty"` // in the order in which they began

	begun, last time.Time // of the start that is open
	waitingFrom time.Time
	open        map[string]*Call
}

// CallState says what became of a tool call.
type CallState string

// The states of a call.
const (
	CallDone   CallState = "done"
	CallFailed CallState = "failed" // the result is an error
	CallDenied CallState = "denied" // the policy or the user refused it
	// CallOpen is a call that began and has no result: it goes on, or its
	// outcome is unknown.
	CallOpen CallState = "open"
)

// A Call is a tool call of a [Run].
type Call struct {
	ID     string         `json:"id"`
	Tool   string         `json:"tool"`
	Intent string         `json:"intent,omitempty"`
	Args   string         `json:"args,omitempty"` // as the model wrote them
	Key    string         `json:"key,omitempty"`
	Effect synapse.Effect `json:"effect,omitempty"`
	State  CallState      `json:"state"`
	Denied string         `json:"denied,omitempty"` // why
	Child  string         `json:"child,omitempty"`  // the run that the call started
	// ResultBytes is the size of the result: its text and its media.
	ResultBytes int              `json:"result_bytes"`
	Started     time.Time        `json:"started"`
	Elapsed     synapse.Duration `json:"elapsed"`
}

// Open reports whether the run has no end.
func (r *Run) Open() bool { return r.Status == StatusOpen }

// Walk calls visit for the run and every run below it, parents first. Depth
// counts from 0.
func (r *Run) Walk(visit func(r *Run, depth int)) { r.walk(visit, 0) }

func (r *Run) walk(visit func(*Run, int), depth int) {
	visit(r, depth)
	for _, c := range r.Children {
		c.walk(visit, depth+1)
	}
}

// Open returns the runs that began and have no end, parents first.
func (t *Tree) Open() []*Run {
	var open []*Run
	for _, root := range t.Runs {
		root.Walk(func(r *Run, _ int) {
			if r.Open() {
				open = append(open, r)
			}
		})
	}
	return open
}

// Run returns the run of that id, nil if there is none.
func (t *Tree) Run(id string) *Run {
	var found *Run
	for _, root := range t.Runs {
		root.Walk(func(r *Run, _ int) {
			if r.ID == id {
				found = r
			}
		})
	}
	return found
}

// Build folds the events of one trace, in their order, into a tree. It needs
// not be the whole trace: the events of a subtree make the tree of that. Build
// does not judge; [Verify] does. Its errors are those of the events, and events
// of several traces.
func Build(events iter.Seq2[*synapse.Event, error]) (*Tree, error) {
	t := &Tree{Status: StatusOpen, Runs: []*Run{}}
	runs := map[string]*Run{}
	var order []*Run
	for e, err := range events {
		if err != nil {
			return nil, fmt.Errorf("build trace: %w", err)
		}
		if t.Events == 0 {
			t.Trace, t.Started = e.Trace, e.Time
		} else if e.Trace != t.Trace {
			return nil, fmt.Errorf("build trace: events of two traces, %q and %q", t.Trace, e.Trace)
		}
		t.Events++
		t.Ended = e.Time
		r := runs[e.Run]
		if r == nil {
			r = &Run{ID: e.Run, Parent: e.ParentRun, SpawnedBy: e.SpawnedBy, Agent: e.Agent, Status: StatusOpen,
				Started: e.Time, begun: e.Time, last: e.Time, open: map[string]*Call{}}
			runs[e.Run] = r
			order = append(order, r)
		}
		r.add(e)
		if c, ok := e.Body.(*synapse.Conclusion); ok {
			t.Conclusion = c.Content
		}
	}
	t.assemble(order, runs)
	return t, nil
}

// assemble joins runs into a tree and adds up what they used.
func (t *Tree) assemble(order []*Run, runs map[string]*Run) {
	for _, r := range order {
		r.settle()
		// A run whose ancestors lead back to itself has no place; it is shown
		// at the top rather than not at all.
		if parent := runs[r.Parent]; parent != nil && !leadsTo(runs, parent, r) {
			parent.Children = append(parent.Children, r)
		} else {
			t.Runs = append(t.Runs, r)
		}
	}
	for _, r := range t.Runs {
		t.Usage = t.Usage.Add(r.total())
		t.Status = r.Status
	}
	if len(t.Open()) > 0 {
		t.Status = StatusOpen
	}
}

func leadsTo(runs map[string]*Run, from, to *Run) bool {
	for range len(runs) {
		if from == to {
			return true
		}
		if from = runs[from.Parent]; from == nil {
			return false
		}
	}
	return true
}

func (r *Run) total() synapse.Usage {
	r.Total = r.Usage
	for _, c := range r.Children {
		r.Total = r.Total.Add(c.total())
	}
	return r.Total
}

func (r *Run) add(e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		if r.Starts > 0 {
			r.settle()
			r.begun, r.Questions, r.waitingFrom = e.Time, nil, time.Time{}
		}
		r.Starts++
		r.Status, r.Outcome = StatusOpen, nil
		r.Depth, r.Background = b.Depth, b.Background
		if r.Description == "" {
			r.Description = b.Description
		}
		if r.Prompt == "" {
			r.Prompt = firstLine(promptOf(b))
		}
		if b.Spec != nil {
			r.Effort = string(b.Spec.Effort)
			if r.Model == "" {
				r.Model = b.Spec.Model.String()
			}
		}
	case *synapse.ModelReplied:
		r.Turns++
		r.Usage = r.Usage.Add(replyUsage(b))
		if b.Model != "" {
			r.Model = b.Model
		}
	case *synapse.ToolStarted:
		if r.open[b.Call.ID] != nil { // again, after it was cut off
			break
		}
		c := &Call{ID: b.Call.ID, Tool: b.Call.Name, Intent: b.Intent, Args: b.Call.Args, Key: b.Key, Effect: b.Effect, State: CallOpen, Started: e.Time}
		r.Calls = append(r.Calls, c)
		r.open[c.ID] = c
	case *synapse.ToolFinished:
		r.finish(e, b)
	case *synapse.ApprovalAsked:
		if len(r.Questions) == 0 {
			r.waitingFrom = e.Time
		}
		r.Questions = append(r.Questions, b.Ask)
	case *synapse.ApprovalAnswered:
		r.answer(e, b.ID)
	case *synapse.ChildStarted:
		if c := r.open[b.CallID]; c != nil {
			c.Child = b.Task
		}
	case *synapse.Compacted:
		if b.Usage != nil {
			r.Usage = r.Usage.Add(*b.Usage)
		}
	case *synapse.Warning:
		r.Warnings = append(r.Warnings, *b)
	case *synapse.Retry:
		r.Retries++
	case *synapse.RunFinished:
		r.last = e.Time
		r.settle()
		outcome := b.Outcome
		r.Status, r.Outcome = b.Status, &outcome
		r.Questions, r.waitingFrom = nil, time.Time{}
		if b.Model != "" {
			r.Model = b.Model
		}
	}
	r.last, r.Ended = e.Time, e.Time
}

func (r *Run) finish(e *synapse.Event, b *synapse.ToolFinished) {
	c := r.open[b.Result.CallID]
	if c == nil { // refused before it began
		c = &Call{ID: b.Result.CallID, Tool: b.Result.Name, Started: e.Time}
		r.Calls = append(r.Calls, c)
	}
	delete(r.open, b.Result.CallID)
	c.Elapsed, c.Denied = b.Elapsed, b.Denied
	c.ResultBytes = len(b.Result.Text)
	for _, m := range b.Result.Media {
		c.ResultBytes += len(m.Data)
	}
	switch {
	case b.Denied != "":
		c.State = CallDenied
	case b.Result.IsError:
		c.State = CallFailed
	default:
		c.State = CallDone
	}
}

func (r *Run) answer(e *synapse.Event, id string) {
	for i := range r.Questions {
		if r.Questions[i].ID != id {
			continue
		}
		r.Questions = append(r.Questions[:i:i], r.Questions[i+1:]...)
		if len(r.Questions) == 0 {
			r.Waiting += synapse.Duration(e.Time.Sub(r.waitingFrom))
			r.waitingFrom = time.Time{}
		}
		return
	}
}

// settle adds the time from the open start to the run's last event to its
// totals.
func (r *Run) settle() {
	if r.Outcome != nil {
		return
	}
	r.Elapsed += synapse.Duration(r.last.Sub(r.begun))
	if !r.waitingFrom.IsZero() {
		r.Waiting += synapse.Duration(r.last.Sub(r.waitingFrom))
	}
	r.begun = r.last
}
