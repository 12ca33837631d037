package synapse

import (
	"encoding/json"
	"time"

	"github.com/synapse-agents/synapse/policy"
)

// A Spec is one agent, compiled: all that the loop must know to run it. It is
// plain data, so it can be compared, hashed, stored with a run and shipped to
// another process.
type Spec struct {
	// ID names the spec within its graph. It is the agent's name, with the
	// depth appended ("coder@2") where an agent differs by depth.
	ID          string `json:"id"`
	Agent       string `json:"agent"` // the definition's name
	Description string `json:"description"`
	// Digest is the SHA-256 (hex) of everything that decides how a run of
	// this spec behaves; a run keeps the spec of the digest it started with.
	Digest      string   `json:"digest"`
	System      string   `json:"system"`
	Model       ModelRef `json:"model"`
	ModelOrigin string   `json:"model_origin"`
	// Fallback are the models tried in order when Model is out of service.
	Fallback     []ModelRef `json:"fallback,omitempty"`
	Effort       Effort     `json:"effort,omitempty"`
	EffortOrigin string     `json:"effort_origin,omitempty"`
	Temperature  *float64   `json:"temperature,omitempty"`
	TopP         *float64   `json:"top_p,omitempty"`
	// Policy is the only judge of tools: what it allows is what is offered.
	Policy policy.Policy `json:"policy"`
	Limits Limits        `json:"limits"`
	// Preload stands in the conversation before the task prompt: skills, as
	// pairs of a user and an assistant message.
	Preload []Message `json:"preload,omitempty"`
	// Output is the JSON Schema of the result, nil for free text.
	Output     json.RawMessage `json:"output,omitempty"`
	Background bool            `json:"background,omitempty"`
	// Origin says where the definition came from: a path, or "built-in".
	Origin string `json:"origin"`
	// NoTools is why this agent can do nothing, empty if it can: its tool list
	// ended up empty though the definition asked for tools. Delegating to it
	// fails with this reason.
	NoTools string `json:"no_tools,omitempty"`
	// Flow makes this a workflow: the scheduler runs it instead of the loop.
	Flow *Flow `json:"flow,omitempty"`
	// History is what of a conversation the agent sees that takes it over.
	History HandoffHistory `json:"history,omitempty"`
}

// HandoffHistory says what of a conversation its new owner sees.
type HandoffHistory string

// The histories. The zero value is HistoryFull.
const (
	HistoryFull    HandoffHistory = "full"
	HistoryLast    HandoffHistory = "last"    // the user's last message
	HistorySummary HandoffHistory = "summary" // a digest of what was said, and the user's last message
)

// Limits bound a run and everything below it. Zero means no limit.
type Limits struct {
	Turns     int      `json:"turns,omitempty"`      // of this run alone
	Tokens    int64    `json:"tokens,omitempty"`     // input plus output, of the subtree
	CostUSD   float64  `json:"cost_usd,omitempty"`   // of the subtree
	Time      Duration `json:"time,omitempty"`       // from start to end, waiting included
	ToolCalls int      `json:"tool_calls,omitempty"` // of the subtree
	Spawns    int      `json:"spawns,omitempty"`     // of the subtree
}

// Min returns for every limit the smaller of the two that are set.
func (l Limits) Min(m Limits) Limits {
	return Limits{
		Turns:     least(l.Turns, m.Turns),
		Tokens:    least(l.Tokens, m.Tokens),
		CostUSD:   least(l.CostUSD, m.CostUSD),
		Time:      least(l.Time, m.Time),
		ToolCalls: least(l.ToolCalls, m.ToolCalls),
		Spawns:    least(l.Spawns, m.Spawns),
	}
}

func least[N ~int | ~int64 | ~float64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Duration is a time.Duration whose text form is Go's ("1m30s").
type Duration time.Duration

// String returns Go's form of the duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns Go's form of the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Go's form of a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// A Graph is what the compilers produce and the scheduler runs: specs, and the
// edges along which one may start another.
type Graph struct {
	// Entry is the ID of the spec that answers the user.
	Entry string `json:"entry"`
	Specs []Spec `json:"specs"`
	Edges []Edge `json:"edges,omitempty"`
}

// EdgeKind says what following an edge means.
type EdgeKind string

// EdgeCall lets the spec at From call the one at To as a sub-agent, through the
// task tool, and get its result back.
const EdgeCall EdgeKind = "call"

// EdgeTransfer lets the spec at From hand the conversation over to the one at
// To, through the tool that is the edge's second name. EdgeFlow lets From run the
// workflow at To, through the run_workflow tool.
const (
	EdgeTransfer EdgeKind = "transfer"
	EdgeFlow     EdgeKind = "flow"
)

// An Edge joins two specs by their IDs.
type Edge struct {
	Kind EdgeKind `json:"kind"`
	From string   `json:"from"`
	To   string   `json:"to"`
	// Names are what the caller may write to mean To, the agent's own name
	// first. The first edge of a caller that has the name "" is its default.
	Names []string `json:"names"`
}
