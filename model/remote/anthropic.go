package remote

import (
	"encoding/json"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// anthropicStream reads Anthropic's Messages. A reply is a list of blocks that
// open, grow and close; a call is whole when its block has closed. What a limit
// cut off closes as well, and only the end of the reply says that it was cut,
// so everything from the first call on is held back until then.
type anthropicStream struct {
	seen    facts
	stop    string // why the reply ended, empty until it says so
	started bool
	spoke   bool
	ended   bool
	blocks  map[int64]*anthropicOpen
	held    []*synapse.Delta
}

// anthropicOpen is a block that has begun and not closed.
type anthropicOpen struct {
	kind      string
	id, name  string
	input     json.RawMessage // as the block began
	args      strings.Builder
	signature string
	redacted  string
}

func newAnthropicStream() *anthropicStream {
	return &anthropicStream{blocks: map[int64]*anthropicOpen{}}
}

func (s *anthropicStream) facts() *facts { return &s.seen }
func (s *anthropicStream) done() bool    { return s.ended }

type anthropicEvent struct {
	Type    loose `json:"type"`
	Index   int64 `json:"index"`
	Message struct {
		Model loose                   `json:"model"`
		Usage lenient[anthropicUsage] `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      loose           `json:"type"`
		Text      loose           `json:"text"`
		Thinking  loose           `json:"thinking"`
		Signature loose           `json:"signature"`
		Data      loose           `json:"data"`
		ID        loose           `json:"id"`
		Name      loose           `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       loose `json:"type"`
		Text       loose `json:"text"`
		Thinking   loose `json:"thinking"`
		Signature  loose `json:"signature"`
		Partial    loose `json:"partial_json"`
		StopReason loose `json:"stop_reason"`
	} `json:"delta"`
	Usage lenient[anthropicUsage] `json:"usage"`
}

// anthropicUsage counts input that was neither read from the cache nor written
// to it beside that which was. What is said later counts; what is left out then
// is as it was.
type anthropicUsage struct {
	Input   *count `json:"input_tokens"`
	Write   *count `json:"cache_creation_input_tokens"`
	Read    *count `json:"cache_read_input_tokens"`
	Output  *count `json:"output_tokens"`
	Details struct {
		Thinking *count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (s *anthropicStream) count(u *anthropicUsage) {
	if u == nil {
		return
	}
	now := s.seen.usage
	fresh := now.InputTokens - now.CacheReadTokens - now.CacheWriteTokens
	for from, to := range map[*count]*int64{u.Input: &fresh, u.Write: &now.CacheWriteTokens, u.Read: &now.CacheReadTokens,
		u.Output: &now.OutputTokens, u.Details.Thinking: &now.ReasoningTokens} {
		if from != nil {
			*to = int64(*from)
		}
	}
	now.InputTokens = fresh + now.CacheReadTokens + now.CacheWriteTokens
	s.seen.usage = within(now)
}

func (s *anthropicStream) event(name string, data []byte) ([]*synapse.Delta, *synapse.ProviderError) {
	if isDone(data) {
		return nil, nil // not of this format, but proxies add it
	}
	var ev anthropicEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		if name == "error" {
			return nil, apiError{message: excerpt(data)}.fault(0)
		}
		return nil, malformed("an event of the stream is not of the Messages format (%v): %s", err, excerpt(data))
	}
	switch ev.Type.text {
	case "message_start":
		s.started = true
		s.seen.model = ev.Message.Model.text
		s.count(ev.Message.Usage.v)
	case "content_block_start":
		s.started = true
		return s.hold(s.begin(&ev))
	case "content_block_delta":
		return s.grow(&ev, data)
	case "content_block_stop":
		return s.hold(s.close(ev.Index))
	case "message_delta":
		s.started = true
		if ev.Delta.StopReason.text != "" {
			s.stop = ev.Delta.StopReason.text
		}
		s.count(ev.Usage.v)
	case "message_stop":
		s.ended = true
	default:
		if e, ok := parseError(data); ok || name == "error" {
			if !ok {
				e.message = excerpt(data)
			}
			return nil, e.fault(0)
		}
	}
	return nil, nil
}

// hold keeps deltas back once there is a call among them.
func (s *anthropicStream) hold(deltas []*synapse.Delta) ([]*synapse.Delta, *synapse.ProviderError) {
	s.spoke = s.spoke || len(deltas) > 0
	if len(s.held) == 0 && (len(deltas) == 0 || deltas[0].Kind != synapse.DeltaCall) {
		return deltas, nil
	}
	s.held = append(s.held, deltas...)
	return nil, nil
}

func (s *anthropicStream) begin(ev *anthropicEvent) []*synapse.Delta {
	b := &ev.Block
	s.blocks[ev.Index] = &anthropicOpen{
		kind: b.Type.text, id: b.ID.text, name: b.Name.text, input: b.Input, signature: b.Signature.text, redacted: b.Data.text,
	}
	switch b.Type.text { // usually empty yet
	case "text":
		return said(textDelta(b.Text.text))
	case "thinking":
		return said(reasoningDelta(b.Thinking.text))
	}
	return nil
}

func (s *anthropicStream) grow(ev *anthropicEvent, data []byte) ([]*synapse.Delta, *synapse.ProviderError) {
	block := s.blocks[ev.Index]
	if block == nil {
		return nil, malformed("an event belongs to a block that has not begun: %s", excerpt(data))
	}
	switch ev.Delta.Type.text {
	case "text_delta":
		return s.hold(said(textDelta(ev.Delta.Text.text)))
	case "thinking_delta":
		return s.hold(said(reasoningDelta(ev.Delta.Thinking.text)))
	case "signature_delta":
		block.signature += ev.Delta.Signature.text
	case "input_json_delta":
		block.args.WriteString(ev.Delta.Partial.text)
	}
	return nil, nil
}

func (s *anthropicStream) close(index int64) []*synapse.Delta {
	block := s.blocks[index]
	if block == nil {
		return nil
	}
	delete(s.blocks, index)
	thought := anthropicThought{Signature: block.signature}
	switch block.kind {
	case "tool_use":
		args := block.args.String()
		if args == "" {
			args = argumentText(block.input)
		}
		return []*synapse.Delta{callDelta(block.id, block.name, args)}
	case "redacted_thinking":
		thought = anthropicThought{Redacted: block.redacted}
	case "thinking":
	default: // a tool of the provider's own: none was offered
		return nil
	}
	if thought == (anthropicThought{}) {
		return nil
	}
	return []*synapse.Delta{{Kind: synapse.DeltaReasoning, Opaque: seal(opaqueAnthropic, thought)}}
}

func (s *anthropicStream) end() ([]*synapse.Delta, *synapse.ProviderError) {
	switch {
	case !s.started:
		return nil, brokeOff(replyEmpty)
	case s.stop == "" && !(s.ended && s.spoke):
		return nil, brokeOff(replyUnended)
	}
	switch s.stop {
	case "end_turn", "stop_sequence":
		s.seen.stop = synapse.StopEnd
	case "tool_use":
		s.seen.stop = synapse.StopCalls
	case "max_tokens", "model_context_window_exceeded":
		s.seen.stop = synapse.StopLength
	case "refusal", "content_filtered", "guardrail_intervened": // the latter two are Bedrock's
		s.seen.stop = synapse.StopFilter
	default:
		s.seen.stop = synapse.StopUnknown
	}
	for _, block := range s.blocks {
		if block.kind == "tool_use" && s.seen.stop != synapse.StopLength && s.seen.stop != synapse.StopFilter {
			return nil, brokeOff(replyHalfCall)
		}
	}
	held := s.held
	s.held = nil
	return held, nil
}
