package synapse

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventVersion is the version of the event format that this package writes.
const EventVersion = 1

// An Event is one thing that happened in a run. The stream a program ranges
// over, the JSON lines a script reads, the journal and the screen all hold the
// same events.
type Event struct {
	V    int       `json:"v"`
	Seq  int64     `json:"seq"` // within the trace, from 1, without gaps among stored events and their deltas
	Time time.Time `json:"time"`
	// Trace is the tree of runs that one user request caused, Run the run
	// that this event belongs to.
	Trace     string    `json:"trace_id"`
	Run       string    `json:"run_id"`
	ParentRun string    `json:"parent_run_id,omitempty"`
	Agent     string    `json:"agent_definition"`
	SpawnedBy string    `json:"spawned_by_tool,omitempty"` // the parent's call id
	Kind      EventKind `json:"kind"`
	Body      Body      `json:"body"`
}

// EventKind names what happened; it is decided by the event's body.
type EventKind string

// The kinds of events. Text, Reasoning and ToolOutput are for whoever watches
// and are not stored.
const (
	KindRunStarted       EventKind = "run_started"
	KindModelRequested   EventKind = "model_requested"
	KindText             EventKind = "text"
	KindReasoning        EventKind = "reasoning"
	KindModelReplied     EventKind = "model_replied"
	KindToolStarted      EventKind = "tool_started"
	KindToolOutput       EventKind = "tool_output"
	KindToolFinished     EventKind = "tool_finished"
	KindApprovalAsked    EventKind = "approval_asked"
	KindApprovalAnswered EventKind = "approval_answered"
	KindChildStarted     EventKind = "child_started"
	KindChildFinished    EventKind = "child_finished"
	KindSignalled        EventKind = "signalled"
	KindCompacted        EventKind = "compacted"
	KindWarning          EventKind = "warning"
	KindRetry            EventKind = "retry"
	KindConclusion       EventKind = "conclusion"
	KindRunFinished      EventKind = "run_finished"
)

// Stored reports whether events of this kind belong in a journal.
func (k EventKind) Stored() bool {
	return k != KindText && k != KindReasoning && k != KindToolOutput
}

// Known reports whether there are events of this kind.
func (k EventKind) Known() bool {
	switch k {
	case KindRunStarted, KindModelRequested, KindText, KindReasoning, KindModelReplied, KindToolStarted, KindToolOutput, KindToolFinished,
		KindApprovalAsked, KindApprovalAnswered, KindChildStarted, KindChildFinished, KindSignalled, KindCompacted, KindWarning, KindRetry, KindConclusion, KindRunFinished,
		KindNodeStarted, KindNodeFinished, KindStateChanged, KindHandedOff:
		return true
	}
	return false
}

// Body is what an event says beyond its envelope: one of the pointer types
// below, one for each kind.
type Body interface{ Kind() EventKind }

// RunStarted opens a run, or opens it again when Resumed.
type RunStarted struct {
	Spec  *Spec `json:"spec"`
	Depth int   `json:"depth"` // 0 for the main agent
	// Input are the messages this start adds to the conversation; the last
	// one is the task prompt.
	Input       []Message `json:"input"`
	Description string    `json:"description,omitempty"`
	Background  bool      `json:"background,omitempty"`
	Resumed     bool      `json:"resumed,omitempty"`
	Limits      Limits    `json:"limits"` // in force, after the parent's are applied
	// Of a main run: the directory worked in, absolute; the conversation that the
	// request belongs to; and the trace whose main run has what was said before,
	// which is not in Input.
	Workspace string `json:"workspace,omitempty"`
	Session   string `json:"session,omitempty"`
	After     string `json:"after,omitempty"`
}

// ModelRequested says that a request goes out.
type ModelRequested struct {
	Turn     int      `json:"turn"` // from 1
	Model    ModelRef `json:"model"`
	Messages int      `json:"messages"`
	Tools    int      `json:"tools"`
	Final    bool     `json:"final,omitempty"` // the last turn: no tools
	// Limit is the limit that makes it the last one, besides that of turns, and
	// Cause what is said of it.
	Limit string `json:"limit,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Fixes counts the corrections of a result that does not fit its schema.
	Fixes int `json:"fixes,omitempty"`
	// Added are the messages that joined the conversation since the last
	// reply, besides tool results: what the loop told the model.
	Added []Message `json:"added,omitempty"`
}

// Text is a piece of a reply as it streams.
type Text struct {
	Text string `json:"text"`
}

// Reasoning is a piece of reasoning as it streams.
type Reasoning struct {
	Text string `json:"text"`
}

// ModelReplied carries a whole reply.
type ModelReplied struct {
	Turn int `json:"turn"`
	Reply
}

// ToolStarted is written before a tool runs.
type ToolStarted struct {
	Call   ToolCall `json:"call"`
	Intent string   `json:"intent,omitempty"`
	Key    string   `json:"key"`
	Effect Effect   `json:"effect"`
}

// ToolOutput is what a running tool prints.
type ToolOutput struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
}

// ToolFinished carries a result: a tool's, or the guard's refusal, for which
// no ToolStarted was written.
type ToolFinished struct {
	Result  ToolResult `json:"result"`
	Elapsed Duration   `json:"elapsed"`
	// Denied is the policy's reason when the call was refused.
	Denied string `json:"denied,omitempty"`
}

// ApprovalAsked puts a question to the user.
type ApprovalAsked struct {
	Ask Ask `json:"ask"`
}

// ApprovalAnswered carries the answer.
type ApprovalAnswered struct {
	ID     string `json:"id"`
	Answer Answer `json:"answer"`
}

// ChildStarted says that this run has started a sub-agent.
type ChildStarted struct {
	Task        string `json:"task_id"` // the child's run id
	Agent       string `json:"agent"`
	Description string `json:"description,omitempty"`
	CallID      string `json:"call_id"`
	Key         string `json:"key,omitempty"` // of the call
	Background  bool   `json:"background,omitempty"`
	Resumed     bool   `json:"resumed,omitempty"`
	// Again says that it was started before the parent was cut off.
	Again bool `json:"again,omitempty"`
}

// ChildFinished says how a sub-agent of this run ended.
type ChildFinished struct {
	Task   string `json:"task_id"`
	Agent  string `json:"agent"`
	CallID string `json:"call_id"`
	Outcome
}

// SignalKind says what somebody wants of a run that goes on.
type SignalKind string

// The signals.
const (
	SignalSend     SignalKind = "send"     // the text joins the conversation at the next turn
	SignalPause    SignalKind = "pause"    // no turn begins until it is told to continue
	SignalContinue SignalKind = "continue" // or until something is sent
	SignalStop     SignalKind = "stop"     // the run is cancelled
)

// A Signal tells a run something from outside: a user who steers it.
type Signal struct {
	ID   string     `json:"id,omitempty"` // of the sender's; two of the same are one
	Kind SignalKind `json:"kind"`
	Text string     `json:"text,omitempty"`
}

// Signalled says that a signal has reached the run.
type Signalled struct {
	Signal
}

// Compacted says that the conversation was made smaller, since it came near the
// model's window: old results were folded, or a summary took the place of all but
// the first Head messages, the one at Prompt and the last Tail ones.
type Compacted struct {
	Before int `json:"before"` // about how many tokens it had
	After  int `json:"after"`
	// Folded are the calls whose results were folded.
	Folded  []string `json:"folded,omitempty"`
	Summary string   `json:"summary,omitempty"`
	Head    int      `json:"head,omitempty"`
	Prompt  int      `json:"prompt,omitempty"`
	Tail    int      `json:"tail,omitempty"`
	// Usage is what the summary took, Model who wrote it; nil where no model did.
	Usage *Usage `json:"usage,omitempty"`
	Model string `json:"model,omitempty"`
}

// Warning is something the user should know that ends nothing.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Retry says that a model request failed and another attempt follows. What the
// turn had streamed so far is void.
type Retry struct {
	Turn    int      `json:"turn"`
	Attempt int      `json:"attempt"` // the one that failed, from 1
	Error   string   `json:"error"`
	After   Duration `json:"after"`
	Model   ModelRef `json:"model"` // who is asked next
	// ErrorKind says what kind of failure it was, where the provider's told.
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
}

// Conclusion is the main agent's final answer.
type Conclusion struct {
	Content string `json:"content"`
}

// RunFinished ends a run. Every started run has exactly one.
type RunFinished struct {
	Outcome
}

// Status says how a run ended.
type Status string

// The ends of a run.
const (
	StatusCompleted Status = "completed"
	StatusPartial   Status = "partial"   // a limit was reached; Text holds what there was
	StatusCancelled Status = "cancelled" // somebody stopped it
	StatusTimedOut  Status = "timed_out" // its time was up
	StatusFailed    Status = "failed"
)

// An Outcome is what a run came to.
type Outcome struct {
	Status Status `json:"status"`
	// Text is the last non-empty assistant text, or the JSON where the spec
	// has an output schema.
	Text  string `json:"text"`
	Cause string `json:"cause,omitempty"` // why it is not completed
	Limit string `json:"limit,omitempty"` // which limit, when partial: turns, tokens, cost_usd, tool_calls
	Turns int    `json:"turns"`
	Usage Usage  `json:"usage"` // of this run alone
	Total Usage  `json:"total"` // with every run below it
	// Model is the model that gave the last reply.
	Model string `json:"model,omitempty"`
	// ErrorKind is set when a provider's failure ended the run.
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	// Failed counts the children of this run that did not complete.
	Failed int `json:"failed_children,omitempty"`
}

// An Ask is a question to the user: may this agent do that?
type Ask struct {
	ID      string          `json:"id"`
	Run     string          `json:"run_id"`
	Agent   string          `json:"agent"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Intent  string          `json:"intent,omitempty"`
	Subject string          `json:"subject,omitempty"` // the command, path or URL that the rule matched
	Reason  string          `json:"reason"`            // which rule asks, and where it is set
}

// An Answer is the user's. Reason, where given, goes to the agent.
type Answer struct {
	Allow  bool   `json:"allow"`
	Reason string `json:"reason,omitempty"`
}

func (*RunStarted) Kind() EventKind       { return KindRunStarted }
func (*ModelRequested) Kind() EventKind   { return KindModelRequested }
func (*Text) Kind() EventKind             { return KindText }
func (*Reasoning) Kind() EventKind        { return KindReasoning }
func (*ModelReplied) Kind() EventKind     { return KindModelReplied }
func (*ToolStarted) Kind() EventKind      { return KindToolStarted }
func (*ToolOutput) Kind() EventKind       { return KindToolOutput }
func (*ToolFinished) Kind() EventKind     { return KindToolFinished }
func (*ApprovalAsked) Kind() EventKind    { return KindApprovalAsked }
func (*ApprovalAnswered) Kind() EventKind { return KindApprovalAnswered }
func (*ChildStarted) Kind() EventKind     { return KindChildStarted }
func (*ChildFinished) Kind() EventKind    { return KindChildFinished }
func (*Signalled) Kind() EventKind        { return KindSignalled }
func (*Compacted) Kind() EventKind        { return KindCompacted }
func (*Warning) Kind() EventKind          { return KindWarning }
func (*Retry) Kind() EventKind            { return KindRetry }
func (*Conclusion) Kind() EventKind       { return KindConclusion }
func (*RunFinished) Kind() EventKind      { return KindRunFinished }

// NewBody returns an empty body of the kind, for decoding into; nil if there is
// no such kind.
func NewBody(kind EventKind) Body {
	switch kind {
	case KindRunStarted:
		return new(RunStarted)
	case KindModelRequested:
		return new(ModelRequested)
	case KindText:
		return new(Text)
	case KindReasoning:
		return new(Reasoning)
	case KindModelReplied:
		return new(ModelReplied)
	case KindToolStarted:
		return new(ToolStarted)
	case KindToolOutput:
		return new(ToolOutput)
	case KindToolFinished:
		return new(ToolFinished)
	case KindApprovalAsked:
		return new(ApprovalAsked)
	case KindApprovalAnswered:
		return new(ApprovalAnswered)
	case KindChildStarted:
		return new(ChildStarted)
	case KindChildFinished:
		return new(ChildFinished)
	case KindSignalled:
		return new(Signalled)
	case KindCompacted:
		return new(Compacted)
	case KindWarning:
		return new(Warning)
	case KindRetry:
		return new(Retry)
	case KindConclusion:
		return new(Conclusion)
	case KindRunFinished:
		return new(RunFinished)
	case KindNodeStarted:
		return new(NodeStarted)
	case KindNodeFinished:
		return new(NodeFinished)
	case KindStateChanged:
		return new(StateChanged)
	case KindHandedOff:
		return new(HandedOff)
	}
	return nil
}

// UnmarshalJSON reads an event and its body by the event's kind. An event of a
// newer version or of an unknown kind is an error: a reader that guesses would
// show a history that never was.
func (e *Event) UnmarshalJSON(data []byte) error {
	type envelope Event // without this method
	var raw struct {
		envelope
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	if raw.V > EventVersion {
		return fmt.Errorf("event %d: version %d is newer than this program's %d", raw.Seq, raw.V, EventVersion)
	}
	*e = Event(raw.envelope)
	if e.Body = NewBody(e.Kind); e.Body == nil {
		return fmt.Errorf("event %d: unknown kind %q", e.Seq, e.Kind)
	}
	if err := json.Unmarshal(raw.Body, e.Body); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return nil
}
