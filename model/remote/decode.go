package remote

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"

	synapse "github.com/synapse-agents/synapse"
)

var errNoEnd = errors.New("the stream ended without saying how the reply ended")

// decoder turns the stream parts of one reply into deltas.
type decoder struct {
	m     *model
	x     *exchange
	req   *synapse.Request
	calls map[string]bool // the ids of those so far
}

// part returns the delta of a part, nil if it has none, and whether it is the
// last one.
func (d *decoder) part(p fantasy.StreamPart) (*synapse.Delta, bool, error) {
	switch p.Type {
	case fantasy.StreamPartTypeWarnings:
		return nil, false, d.warnings(p.Warnings)
	case fantasy.StreamPartTypeTextDelta:
		if p.Delta != "" {
			return &synapse.Delta{Kind: synapse.DeltaText, Text: p.Delta}, false, nil
		}
	case fantasy.StreamPartTypeReasoningDelta:
		if p.Delta != "" {
			return &synapse.Delta{Kind: synapse.DeltaReasoning, Text: p.Delta}, false, nil
		}
	case fantasy.StreamPartTypeReasoningEnd:
		if opaque := sealed(d.signed(p.ProviderMetadata)); opaque != nil {
			return &synapse.Delta{Kind: synapse.DeltaReasoning, Opaque: opaque}, false, nil
		}
	case fantasy.StreamPartTypeToolCall:
		if p.ProviderExecuted {
			return nil, false, nil // none was offered
		}
		id := p.ID
		if id == "" || d.calls[id] { // results are matched to calls by id
			id = newCallID()
		}
		if d.calls == nil {
			d.calls = map[string]bool{}
		}
		d.calls[id] = true
		args := p.ToolCallInput
		if exact, ok := d.x.facts().args[p.ID]; ok {
			args = exact
		}
		return &synapse.Delta{
			Kind:   synapse.DeltaCall,
			Call:   &synapse.ToolCall{ID: id, Name: p.ToolCallName, Args: args},
			Opaque: sealed(p.ProviderMetadata),
		}, false, nil
	case fantasy.StreamPartTypeError:
		return nil, true, p.Error
	case fantasy.StreamPartTypeFinish:
		if d.x.failed != nil { // the layer below takes a stream that just stops for one that ended
			return nil, true, d.x.failed
		}
		return d.end(), true, nil
	}
	return nil, false, nil
}

// newCallID returns an id for a call that came without a usable one.
func newCallID() string { return "call_" + strings.ToLower(rand.Text()) }

// signed returns what a provider says about a thought, nil if that is nothing
// that could go back. OpenAI encrypts a thought when it begins and again when it
// has ended; the layer below keeps the first.
func (d *decoder) signed(metadata fantasy.ProviderMetadata) fantasy.ProviderMetadata {
	if data := google.GetReasoningMetadata(fantasy.ProviderOptions(metadata)); data != nil && data.Signature == "" {
		return nil
	}
	if data := openai.GetReasoningMetadata(fantasy.ProviderOptions(metadata)); data != nil {
		if last, ok := d.x.facts().encrypted[data.ItemID]; ok {
			data.EncryptedContent = &last
		}
	}
	return metadata
}

// warnings looks for the one that may not pass: thinking was to be off, and
// the layer below has dropped that.
func (d *decoder) warnings(list []fantasy.CallWarning) error {
	for _, w := range list {
		if d.req.Effort == synapse.EffortOff && strings.EqualFold(w.Setting, "reasoningEffort") {
			return &synapse.ProviderError{
				Kind:    synapse.ErrorUnsupported,
				Message: fmt.Sprintf("thinking can't be switched off for %s over the %s wire", d.req.Model, d.x.wire),
			}
		}
	}
	return nil
}

// end builds the last delta out of what the exchange saw go by: the layer below
// has overwritten a reply's end with "tool calls" wherever there are any.
func (d *decoder) end() *synapse.Delta {
	f := d.x.facts()
	stop := f.stop
	switch {
	case len(d.calls) > 0 && (stop == synapse.StopEnd || stop == synapse.StopUnknown):
		stop = synapse.StopCalls
	case len(d.calls) == 0 && stop == synapse.StopCalls:
		stop = synapse.StopUnknown
	}
	usage := f.usage
	usage.Requests = 1
	if usage.CostUSD = f.cost; f.cost == nil {
		usage.CostUSD = d.m.cost(d.req.Model, usage)
	}
	name := f.model
	if name == "" {
		name = d.req.Model
	}
	return &synapse.Delta{Kind: synapse.DeltaEnd, Stop: stop, Usage: usage, Model: name}
}
