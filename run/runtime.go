// Package run executes compiled graphs: the loop of one agent, the guard in
// front of its tools, delegation to sub-agents, limits and ends.
//
// The loop ([Loop]) is a pure function of its input and of what its futures
// return. It touches the world only through the small [Runtime] port, so the
// same loop runs in this process ([Local]) and can run as a workflow of a
// durable engine. The files of the loop hold no clock, no randomness, no
// goroutine and no I/O; a test keeps it so. Those live in the files of the
// local runtime: local.go, localrun.go, driver.go, queue.go, account.go, handler.go and
// throttle.go.
package run

import (
	"fmt"
	"time"

	"github.com/synapse-agents/synapse"
)

// Runtime is all that the loop of one run may know of the outside. A Runtime
// belongs to one run and is used by one goroutine.
type Runtime interface {
	// Call starts a registered handler: a name and an input that can be
	// written as JSON, never a closure, since a closure can't move to another
	// process. The key ("t3/tool/2", and "s2/t3/tool/2" after the run has been
	// continued once) is unique within the run. A call whose effect is not EffectRead starts
	// only after every event emitted before it is durable.
	Call(key, handler string, in any, opt CallOptions) Future
	// Spawn starts the run of a sub-agent, after it has emitted child_started.
	// Its future's value is a synapse.Outcome; the error of Get is for a run that
	// could not start, of which nothing is emitted.
	Spawn(key string, in ChildInput) Future
	// Await blocks until one of the futures is ready and returns the index of
	// the first that is.
	Await(futures ...Future) int
	// Signal is the next thing that somebody outside tells the run, a
	// synapse.Signal. Its Get fails when the run is ending. A stop does not come
	// this way: it ends the run.
	Signal() Future
	// Emit records what happened. Events are durable in the order in which
	// they were emitted.
	Emit(body synapse.Body)
	// Now is the runtime's clock.
	Now() time.Time
}

// A Future is the pending value of a call or of a child's run.
type Future interface {
	// Get waits, then stores the value in out, a pointer to the handler's
	// output type. The errors that mean something to the loop are
	// ErrCancelled, ErrDeadline and *LimitError.
	Get(out any) error
	// Ready reports whether Get would return at once.
	Ready() bool
	// Cancel asks the work to stop. The future becomes ready when it has.
	Cancel()
}

// CallOptions say how a call may be treated.
type CallOptions struct {
	Effect synapse.Effect
	// Deadline is when the call is given up with ErrDeadline; zero: never.
	Deadline time.Time
}

// The names of the handlers, with the types of their inputs and outputs.
const (
	HandlerModel   = "model"   // *ModelInput → *synapse.Reply
	HandlerTool    = "tool"    // *ToolInput → *synapse.ToolResult
	HandlerAsk     = "ask"     // *synapse.Ask → synapse.Answer
	HandlerKeep    = "keep"    // *KeepInput → string, the path for read_file
	HandlerHistory = "history" // string, a run's id → *State
	HandlerSleep   = "sleep"   // time.Duration → nothing
)

// ModelInput asks a model for a reply, trying the fallbacks when it is out. Its
// request is for Model; for a fallback it is copied.
type ModelInput struct {
	Turn     int
	Model    synapse.ModelRef
	Fallback []synapse.ModelRef
	Request  *synapse.Request
}

// ToolInput runs a tool. The arguments have passed the guard.
type ToolInput struct {
	Name string
	Call synapse.Invocation // Trace, Run, Agent, Output are filled in by the handler
}

// KeepInput stores a text that is too long for a message.
type KeepInput struct {
	Name string
	Text string
}

// ChildInput starts, or continues, a sub-agent.
type ChildInput struct {
	Task        string // the child's run id
	Spec        *synapse.Spec
	Depth       int
	CallID      string
	Description string
	Background  bool
	Input       []synapse.Message
	// State is where a continued child takes up; nil for a new one.
	State *State
	// Again says that the child was started before its parent was cut off: it
	// is announced and counted already, and starts even if the run is ending, so
	// that it comes to its end.
	Again bool
}

// Errors that a future's Get may return.
var (
	// ErrCancelled: somebody stopped the run, or the program around it.
	ErrCancelled = fmt.Errorf("cancelled")
	// ErrDeadline: the run's time is up.
	ErrDeadline = fmt.Errorf("time limit reached")
)

// A LimitError says that a limit of this run, or of one above it, leaves
// nothing for the call.
type LimitError struct {
	Limit string // tokens, cost_usd, tool_calls, spawns
	Agent string // whose limit it is
	Cause string
}

// Error names the limit and its owner.
func (e *LimitError) Error() string { return e.Cause }

// State is where a run stands: what a loop starts from, and what [Fold] makes
// of a run's events.
type State struct {
	Spec        *synapse.Spec
	Depth       int
	ParentRun   string
	Description string
	Messages    []synapse.Message
	Starts      int // how often it has been started, or continued
	Turns       int
	// Children are the sub-agents this run has started, by task id.
	Children map[string]*Child
	// Flow is where a workflow stands, nil for an agent.
	Flow    *FlowState
	Ended   bool // the last start has finished
	Outcome synapse.Outcome
	// Progress is how far the last start had come when it was cut off, for a
	// loop that goes on with it. Nil for one that starts anew.
	Progress *Progress
}

// Progress is what a loop has in hand in the middle of a start.
type Progress struct {
	Limits  synapse.Limits // in force
	Elapsed time.Duration  // since the start, while somebody worked on it
	Base    int            // how many messages there were when it started, its input included
	Turn    int
	// Requested says that the request of this turn has gone out and no reply has come.
	Requested bool
	Final     bool   // the last turn has been announced
	Limit     string // which makes it the last, besides that of turns
	Cause     string // what is said of that limit
	Fixes     int
	// Reply is the last reply, if no request has followed it, and Results are the
	// results that its calls have, by the call's id. The other maps tell of the
	// calls without one: those that had begun, and the user's answers by the
	// question's id.
	Reply   *synapse.Reply
	Results map[string]*synapse.ToolResult
	Began   map[string]bool
	Answers map[string]synapse.Answer
	Model   string        // who gave the last reply
	Usage   synapse.Usage // of this run
	Total   synapse.Usage // with the children that have ended
	Calls   int           // tool calls of this run
	// Spent is what this run and everything below it have used of its limits.
	Spent Spent
	// Sent are the messages that the user has sent since the last request, and
	// Paused says that he wants no further one.
	Sent   []synapse.Message
	Paused bool
}

// Spent is what a run and everything below it have used of its limits.
type Spent struct {
	Usage     synapse.Usage
	ToolCalls int
	Spawns    int
}

// A Child is a sub-agent as its parent knows it.
type Child struct {
	Task        string
	Agent       string
	Description string
	CallID      string
	Background  bool
	Done        bool
	// Told says that the parent's model has seen the outcome.
	Told    bool
	Outcome synapse.Outcome
	// Key is the place of the call that started it, and State where it stands if
	// it has begun and the parent has not heard of its end: both for a parent
	// that was cut off.
	Key    string
	State  *State
	own    bool // of the parent's last start
	future Future
}

// Start is the input of [Loop].
type Start struct {
	Run         string
	Trace       string
	Spec        *synapse.Spec
	Depth       int
	Description string
	Background  bool
	Input       []synapse.Message
	State       *State // nil for a new run
	// Before is the conversation that a new main run goes on with, nil for none;
	// After names the trace it is from.
	Before    *State
	After     string
	Session   string
	Workspace string
	Limits    synapse.Limits
	Deadline  time.Time // zero: none
	// Window is how many tokens the model takes; 0 is unknown.
	Window int
	// Within are the ids of the workflows that this run is part of.
	Within []string
}
