package synapse

import (
	"context"
	"encoding/json"

	"github.com/synapse-agents/synapse/policy"
)

// A Tool is something a model may ask to have done: the words and the schema
// the model reads, what the policy must know to judge a call, and the code.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object. It does not hold
	// the "intent" property: the loop adds that when it offers the tool and
	// removes it before the tool runs.
	Schema json.RawMessage
	// ReadOnly says that running the tool changes nothing anywhere. It may
	// then be offered under a read-only policy and run again after a crash.
	ReadOnly bool
	// Keyed says that a second run with the same [Invocation.Key] and
	// arguments has no second effect.
	Keyed bool
	// Parallel says that calls of this tool may run at the same time as other
	// calls of the same batch.
	Parallel bool
	// Subject says what permission rules are matched against. The zero value
	// has no subject: only rules for the whole tool apply.
	Subject policy.Subject
	// Subjects finds the subjects in a call's arguments, for a tool whose
	// arguments don't hold each as a value of its own (a patch names its
	// files in its text). When it is set, the guard calls it instead of
	// looking at Subject.Args; Subject.Kind still says how they are matched.
	// The arguments have passed the schema. It must name everything that the
	// call may touch; an error refuses the call. None at all means that only
	// rules for the whole tool apply. It must be pure, and safe for use by
	// several goroutines.
	Subjects func(args json.RawMessage) ([]string, error)
	Run      ToolFunc
}

// Effect classifies what a second run of a call would do; it decides what may
// happen to a call that was in flight when the process died.
type Effect string

// The effects, from harmless to never again.
const (
	EffectRead   Effect = "read"   // may run again
	EffectKeyed  Effect = "keyed"  // may run again with its key
	EffectUnsafe Effect = "unsafe" // never again: its outcome is reported as unknown
)

// Effect returns the tool's effect class.
func (t *Tool) Effect() Effect {
	switch {
	case t.ReadOnly:
		return EffectRead
	case t.Keyed:
		return EffectKeyed
	default:
		return EffectUnsafe
	}
}

// ToolFunc runs one call. It must honour ctx: when that ends, the tool stops
// what it started, processes included. A returned error becomes a result that
// the model reads as an error; a panic does too. It may be called from several
// goroutines at once.
type ToolFunc func(ctx context.Context, in *Invocation) (*ToolResult, error)

// An Invocation is one call as a tool sees it.
type Invocation struct {
	CallID string
	// Key is the idempotency key of this call: the same after a resume,
	// different for every other call.
	Key               string
	Trace, Run, Agent string
	// Args is a JSON object that has passed the tool's schema, without "intent".
	Args json.RawMessage
	// Permits reports whether the caller's rules let this tool touch a further
	// subject, for tools that walk (a search leaves out what is denied). It is
	// never nil when the loop calls.
	Permits func(subject string) bool
	// Output streams what the tool prints while it runs, to whoever watches.
	// It is never nil when the loop calls, and never blocks for long.
	Output func(text string)
}

// A ToolDef is a tool as a model is offered it.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}
