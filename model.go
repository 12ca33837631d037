package synapse

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Model answers requests. Streaming is the only way: a caller that wants the
// whole reply uses [Collect].
//
// Generate yields deltas in the order in which they come, ending with one of
// kind [DeltaEnd], or with one error, last. Breaking out of the range cancels
// the request and waits until it is gone. A Model does not retry: its caller
// does. It may be used from several goroutines at once.
type Model interface {
	Generate(ctx context.Context, req *Request) iter.Seq2[*Delta, error]
}

// A Request is all that a model gets to see.
type Request struct {
	Model       string    `json:"model"` // the name within its provider
	System      string    `json:"system"`
	Messages    []Message `json:"messages"`
	Tools       []ToolDef `json:"tools,omitempty"`
	Effort      Effort    `json:"effort,omitempty"` // empty: the provider's default
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	MaxTokens   int64     `json:"max_tokens,omitempty"` // of output; 0: the provider's default
}

// DeltaKind says which field of a [Delta] carries its content.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText      DeltaKind = "text"      // Text
	DeltaReasoning DeltaKind = "reasoning" // Text, Opaque
	DeltaCall      DeltaKind = "call"      // Call, complete: a call is never yielded in halves
	DeltaEnd       DeltaKind = "end"       // Stop, Usage, Model
)

// A Delta is one step of a streamed reply.
type Delta struct {
	Kind   DeltaKind
	Text   string
	Call   *ToolCall
	Opaque json.RawMessage
	Stop   StopReason
	Usage  Usage
	Model  string // the model that answered, where the provider names it
}

// StopReason says why a reply ended.
type StopReason string

// The stop reasons.
const (
	StopEnd     StopReason = "end"     // the model was done
	StopCalls   StopReason = "calls"   // it waits for tool results
	StopLength  StopReason = "length"  // cut off by the output limit
	StopFilter  StopReason = "filter"  // refused by the provider's filter
	StopUnknown StopReason = "unknown" // the provider did not say
)

// A Reply is a whole answer: the message and how it came to an end.
type Reply struct {
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop"`
	Usage   Usage      `json:"usage"`
	Model   string     `json:"model,omitempty"`
}

// Collect reads a stream of deltas to its end and returns the reply. Each delta
// goes to each as well, unless that is nil. A stream that ends without
// [DeltaEnd] is a [ProviderError] of kind [ErrorStream].
func Collect(deltas iter.Seq2[*Delta, error], each func(*Delta)) (*Reply, error) {
	c := &collector{Reply: Reply{Message: Message{Role: RoleAssistant}}, each: each}
	deltas(c.next) // a range over it would cost four allocations more a reply
	if c.err != nil {
		return nil, c.err
	}
	if !c.ended {
		return nil, &ProviderError{Kind: ErrorStream, Message: "the stream ended before the reply did"}
	}
	c.flush()
	return &c.Reply, nil
}

// A collector puts a reply together. Pieces of one kind that follow each other
// are one part.
type collector struct {
	Reply
	kind  PartKind // of what is open: text, reasoning or nothing
	first string   // its first piece, which often is the only one
	more  strings.Builder
	ended bool
	err   error
	each  func(*Delta)
}

// next takes the next delta of the stream, or the error that ends it.
func (c *collector) next(d *Delta, err error) bool {
	if err != nil {
		c.err = err
	}
	if c.err != nil {
		return false
	}
	if c.each != nil {
		c.each(d)
	}
	c.add(d)
	return true
}

func (c *collector) add(d *Delta) {
	switch d.Kind {
	case DeltaText:
		c.append(PartText, d.Text)
	case DeltaReasoning:
		c.append(PartReasoning, d.Text)
		if len(d.Opaque) > 0 { // a signature closes the block it signs
			c.close(d.Opaque)
		}
	case DeltaCall:
		c.flush()
		c.Message.Parts = append(c.Message.Parts, Part{Kind: PartCall, Call: d.Call, Opaque: d.Opaque})
	case DeltaEnd:
		c.ended = true
		c.Stop, c.Usage, c.Model = d.Stop, d.Usage, d.Model
	}
}

// append adds a piece to what is open, or opens another part.
func (c *collector) append(kind PartKind, text string) {
	if c.kind != kind {
		c.flush()
		c.kind = kind
	}
	switch {
	case c.first == "":
		c.first = text
	case c.more.Len() == 0:
		c.more.WriteString(c.first)
		fallthrough
	default:
		c.more.WriteString(text)
	}
}

// flush closes what is open. A part without text is none.
func (c *collector) flush() {
	if c.first != "" {
		c.close(nil)
	}
	c.kind = ""
}

// close makes a part of what is open.
func (c *collector) close(opaque json.RawMessage) {
	text := c.first
	if c.more.Len() > 0 {
		text = c.more.String()
	}
	c.Message.Parts = append(c.Message.Parts, Part{Kind: c.kind, Text: text, Opaque: opaque})
	c.kind, c.first = "", ""
	c.more.Reset()
}

// A ModelRef names a model of a provider, written "provider:name".
type ModelRef struct {
	Provider string
	Name     string
}

// ParseModelRef reads "provider:name". The name may hold further colons.
func ParseModelRef(s string) (ModelRef, error) {
	provider, name, ok := strings.Cut(strings.TrimSpace(s), ":")
	if !ok || provider == "" || name == "" {
		return ModelRef{}, fmt.Errorf("model %q: want provider:model, for example openai:gpt-5", s)
	}
	return ModelRef{Provider: provider, Name: name}, nil
}

// String returns "provider:name", or "" for the zero value.
func (r ModelRef) String() string {
	if r == (ModelRef{}) {
		return ""
	}
	return r.Provider + ":" + r.Name
}

// MarshalText writes the form that [ParseModelRef] reads.
func (r ModelRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (r *ModelRef) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = ModelRef{}
		return nil
	}
	ref, err := ParseModelRef(string(text))
	*r = ref
	return err
}

// ModelSize is how much a model takes in and gives out, in tokens. 0 is unknown.
type ModelSize struct {
	Window    int64 `json:"window,omitempty"`     // of a request and its reply together
	MaxOutput int64 `json:"max_output,omitempty"` // of one reply
}

// Effort is how much a model is asked to reason.
type Effort string

// The efforts. EffortOff is a value (thinking off), not silence; EffortInherit
// says that the layer it stands in says nothing.
const (
	EffortOff     Effort = "off"
	EffortMinimal Effort = "minimal"
	EffortLow     Effort = "low"
	EffortMedium  Effort = "medium"
	EffortHigh    Effort = "high"
	EffortMax     Effort = "max"
	EffortInherit Effort = "inherit"
)

// Efforts lists every word that is an effort, EffortInherit last.
func Efforts() []Effort {
	return []Effort{EffortOff, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortMax, EffortInherit}
}

// ParseEffort reads an effort; empty means EffortInherit.
func ParseEffort(s string) (Effort, error) {
	if s == "" {
		return EffortInherit, nil
	}
	if e := Effort(s); slices.Contains(Efforts(), e) {
		return e, nil
	}
	return "", fmt.Errorf("reasoning effort %q: want one of off, minimal, low, medium, high, max, inherit", s)
}
