package synapse

import (
	"context"
	"encoding/json"
)

// A Flow is a workflow as the scheduler runs it: nodes that read and write a
// shared state, and the edges along which work goes on. It is plain data; its
// conditions and templates are texts that package expr reads.
type Flow struct {
	// Input is the JSON Schema of what the workflow is started with, nil for
	// an object of any kind.
	Input json.RawMessage `json:"input,omitempty"`
	State []StateKey      `json:"state,omitempty"`
	Nodes []FlowNode      `json:"nodes"`
	Edges []FlowEdge      `json:"edges"`
	// Result is the template of what the workflow comes to; empty: what its
	// last nodes came to.
	Result string `json:"result,omitempty"`
	// Steps is how many super-steps there may be; 0 means DefaultFlowSteps.
	Steps int `json:"steps,omitempty"`
}

// DefaultFlowSteps is how many super-steps a workflow may take that names no
// limit of its own.
const DefaultFlowSteps = 100

// The names that edges use for where a workflow begins and where a path of it
// is done.
const (
	FlowStart = "start"
	FlowEnd   = "end"
)

// Reduce says how an output joins what a state key holds.
type Reduce string

// The reducers. The zero value is ReduceReplace.
const (
	ReduceReplace Reduce = "replace"
	ReduceAppend  Reduce = "append" // to a list; a list is appended element by element
	ReduceMerge   Reduce = "merge"  // into an object, member by member
)

// Apply returns what a key holds after a value has joined it. It may extend
// old's memory, but changes nothing that old can see.
func (r Reduce) Apply(old, value any) any {
	switch r {
	case ReduceAppend:
		list, _ := old.([]any)
		if more, ok := value.([]any); ok {
			return append(list, more...)
		}
		return append(list, value)
	case ReduceMerge:
		was, _ := old.(map[string]any)
		more, ok := value.(map[string]any)
		if !ok {
			return value
		}
		sum := make(map[string]any, len(was)+len(more))
		for k, v := range was {
			sum[k] = v
		}
		for k, v := range more {
			sum[k] = v
		}
		return sum
	}
	return value
}

// A StateKey is one value of a workflow's state.
type StateKey struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"` // of the value; nil for any
	Reduce Reduce          `json:"reduce,omitempty"`
}

// NodeKind says what a node does when it is entered.
type NodeKind string

// The kinds of nodes.
const (
	NodeAgent    NodeKind = "agent"    // runs an agent with Prompt
	NodeWorkflow NodeKind = "workflow" // runs a workflow with Input
	NodeApprove  NodeKind = "approve"  // asks the user, with Prompt
	NodeFunction NodeKind = "func"     // calls a function of the program's
)

// A FlowNode is one node of a workflow.
type FlowNode struct {
	Name string   `json:"name"`
	Kind NodeKind `json:"kind"`
	// Use names the agent, the workflow or the function.
	Use string `json:"use,omitempty"`
	// Spec is the ID of the agent's or workflow's spec; the compiler fills it in.
	Spec string `json:"spec,omitempty"`
	// Prompt is the template of an agent's task, or of a question.
	Prompt string `json:"prompt,omitempty"`
	// Input is what a workflow is started with; its strings are templates.
	Input json.RawMessage `json:"input,omitempty"`
	// Output is the state key that the node's output joins; empty: none.
	Output string `json:"output,omitempty"`
	// ForEach is an expression for a list: the node runs once for each element,
	// which expressions know by the name As, MaxParallel at a time (0: all).
	ForEach     string `json:"for_each,omitempty"`
	As          string `json:"as,omitempty"`
	MaxParallel int    `json:"max_parallel,omitempty"`
	// WaitAll makes the node wait until every one of its sources has led to it.
	WaitAll bool `json:"wait_all,omitempty"`
	// Retry is how often a failure is tried again; Then is what happens after.
	Retry int  `json:"retry,omitempty"`
	Then  Then `json:"then,omitempty"`
	// Goto is the node that ThenGoto means.
	Goto string `json:"goto,omitempty"`
}

// Then says what a node's failure leads to.
type Then string

// What a failure leads to. The zero value is ThenFail.
const (
	ThenFail     Then = "fail"     // the workflow fails
	ThenContinue Then = "continue" // it goes on without the node's output
	ThenGoto     Then = "goto"     // it goes on at another node
)

// A FlowEdge leads from one node to another when the condition holds.
type FlowEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	When string `json:"when,omitempty"` // empty: always
}

// A NodeFunc is a plain function as a node of a workflow. Its output is made a
// JSON value. A function that is not Pure is called only after the journal has
// the node's start.
type NodeFunc struct {
	Run  func(context.Context, *NodeInput) (any, error)
	Pure bool
}

// NodeInput is what a function sees of its workflow. It must change nothing of
// it.
type NodeInput struct {
	Node  string
	Step  int
	Visit int    // how often the node has been entered, this time included
	Key   string // the same for a call that is made again after a crash
	Input any    // of the workflow
	State map[string]any
	Item  any // of for_each
}

// The kinds of events that workflows and handoffs bring.
const (
	KindNodeStarted  EventKind = "node_started"
	KindNodeFinished EventKind = "node_finished"
	KindStateChanged EventKind = "state_changed"
	KindHandedOff    EventKind = "handed_off"
)

// NodeStarted says that a node of a workflow has been entered.
type NodeStarted struct {
	Step  int      `json:"step"` // the super-step, from 1
	Node  string   `json:"node"`
	Type  NodeKind `json:"type"`
	Use   string   `json:"use,omitempty"`
	Visit int      `json:"visit"`
	Items int      `json:"items,omitempty"` // of for_each
}

// NodeFinished says what a node came to, or one item of it.
type NodeFinished struct {
	Step int    `json:"step"`
	Node string `json:"node"`
	// Item counts the elements of for_each from 1; 0 is the node as a whole.
	Item   int    `json:"item,omitempty"`
	Status Status `json:"status"`
	Output any    `json:"output,omitempty"` // a JSON value
	Cause  string `json:"cause,omitempty"`
	// Attempts is how often it was tried.
	Attempts int `json:"attempts,omitempty"`
	// Then is what its failure leads to, Goto the node that is meant.
	Then Then   `json:"then,omitempty"`
	Goto string `json:"goto,omitempty"`
}

// A StateChange is one output that joined the state.
type StateChange struct {
	Key    string `json:"key"`
	Reduce Reduce `json:"reduce,omitempty"`
	Value  any    `json:"value"`
}

// StateChanged ends a super-step: it is the checkpoint from which a workflow
// goes on. The one of step 0 opens the workflow.
type StateChanged struct {
	Step    int           `json:"step"`
	Changes []StateChange `json:"changes,omitempty"`
	// Next are the nodes of the next super-step, in order; none: the workflow is
	// over.
	Next []string `json:"next"`
	// Waiting are the joins that some of their sources have led to.
	Waiting map[string][]string `json:"waiting,omitempty"`
	Ended   bool                `json:"ended,omitempty"` // a path has led to the end
}

// HandedOff says that another agent owns the conversation from here on.
type HandedOff struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
	CallID string `json:"call_id"`
	Spec   *Spec  `json:"spec"` // the new owner's
	// Messages are the conversation that the owner begins with; nil: all of it.
	Messages []Message `json:"messages,omitempty"`
	Count    int       `json:"count"` // of handoffs since the user's last message
}

// Kind is KindNodeStarted.
func (*NodeStarted) Kind() EventKind { return KindNodeStarted }

// Kind is KindNodeFinished.
func (*NodeFinished) Kind() EventKind { return KindNodeFinished }

// Kind is KindStateChanged.
func (*StateChanged) Kind() EventKind { return KindStateChanged }

// Kind is KindHandedOff.
func (*HandedOff) Kind() EventKind { return KindHandedOff }
