package remote

import (
	"encoding/json"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// anthropicStream reads Anthropic's Messages. A reply is a list of blocks that
// open, grow and close; a call is whole when its block has closed. What a limit
// cut off closes as well, and only the end of the reply says that it was cut,
// so calls are held back until then.
//
// Upwards each piece of text belongs to a block that never began: the SDK adds
// up the text of those that have, at a cost that grows with the square of the
// reply, and nobody reads the sum.
type anthropicStream struct {
	seen    facts
	stop    string // why the reply ended, empty until it says so
	started bool
	spoke   bool
	ended   bool
	begun   bool // message_start went up
	count   int  // of blocks that went up
	blocks  map[int64]*anthropicBlock
	calls   []*anthropicBlock
}

// anthropicBlock is a block that has begun.
type anthropicBlock struct {
	kind      string
	id, name  string
	input     json.RawMessage // as the block began
	args      strings.Builder
	signature string
	redacted  string
}

// noBlock is the index of a block that never begins.
const noBlock = 1 << 30

func newAnthropicStream() *anthropicStream {
	return &anthropicStream{seen: facts{args: map[string]string{}}, blocks: map[int64]*anthropicBlock{}}
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

func (s *anthropicStream) tally(u *anthropicUsage) {
	if u == nil {
		return
	}
	now := s.seen.usage
	fresh := now.InputTokens - now.CacheReadTokens - now.CacheWriteTokens
	set := func(to *int64, from *count) {
		if from != nil {
			*to = int64(*from)
		}
	}
	set(&fresh, u.Input)
	set(&now.CacheWriteTokens, u.Write)
	set(&now.CacheReadTokens, u.Read)
	set(&now.OutputTokens, u.Output)
	set(&now.ReasoningTokens, u.Details.Thinking)
	now.InputTokens = fresh + now.CacheReadTokens + now.CacheWriteTokens
	s.seen.usage = within(now)
}

func (s *anthropicStream) event(name string, data []byte) ([]byte, *synapse.ProviderError) {
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
		s.tally(ev.Message.Usage.v)
	case "content_block_start":
		s.started = true
		return s.begin(&ev), nil
	case "content_block_delta":
		return s.grow(&ev, data)
	case "content_block_stop":
		return s.close(ev.Index), nil
	case "message_delta":
		s.started = true
		if ev.Delta.StopReason.text != "" {
			s.stop = ev.Delta.StopReason.text
		}
		s.tally(ev.Usage.v)
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

func (s *anthropicStream) begin(ev *anthropicEvent) []byte {
	b := &ev.Block
	s.blocks[ev.Index] = &anthropicBlock{
		kind: b.Type.text, id: b.ID.text, name: b.Name.text, input: b.Input, signature: b.Signature.text, redacted: b.Data.text,
	}
	switch b.Type.text { // usually empty yet
	case "text":
		return s.say("text_delta", "text", b.Text.text)
	case "thinking":
		return s.say("thinking_delta", "thinking", b.Thinking.text)
	}
	return nil
}

func (s *anthropicStream) grow(ev *anthropicEvent, data []byte) ([]byte, *synapse.ProviderError) {
	block := s.blocks[ev.Index]
	if block == nil {
		return nil, malformed("an event belongs to a block that has not begun: %s", excerpt(data))
	}
	switch ev.Delta.Type.text {
	case "text_delta":
		return s.say("text_delta", "text", ev.Delta.Text.text), nil
	case "thinking_delta":
		return s.say("thinking_delta", "thinking", ev.Delta.Thinking.text), nil
	case "signature_delta":
		block.signature += ev.Delta.Signature.text
	case "input_json_delta":
		block.args.WriteString(ev.Delta.Partial.text)
	}
	return nil, nil
}

// say writes a piece of text.
func (s *anthropicStream) say(kind, field, text string) []byte {
	if text == "" {
		return nil
	}
	s.spoke = true
	return s.write(nil, "content_block_delta", map[string]any{"index": noBlock, "delta": map[string]any{"type": kind, field: text}})
}

// close ends a block: what signs a thought goes up in a block of its own.
func (s *anthropicStream) close(index int64) []byte {
	block := s.blocks[index]
	if block == nil {
		return nil
	}
	delete(s.blocks, index)
	switch {
	case block.kind == "tool_use":
		s.spoke = true
		s.calls = append(s.calls, block)
	case block.kind == "thinking" && block.signature != "":
		return s.whole(nil, map[string]any{"type": "thinking", "thinking": "", "signature": block.signature})
	case block.kind == "redacted_thinking" && block.redacted != "":
		s.spoke = true
		return s.whole(nil, map[string]any{"type": "redacted_thinking", "data": block.redacted})
	}
	return nil
}

// whole appends a block that begins and ends.
func (s *anthropicStream) whole(out []byte, block map[string]any) []byte {
	out = s.write(out, "content_block_start", map[string]any{"index": s.count, "content_block": block})
	out = s.write(out, "content_block_stop", map[string]any{"index": s.count})
	s.count++
	return out
}

// write appends one event in canonical form, after the one that opens a reply.
func (s *anthropicStream) write(out []byte, kind string, fields map[string]any) []byte {
	if !s.begun {
		s.begun = true
		out = s.write(out, "message_start", map[string]any{"message": map[string]any{
			"id": "m", "type": "message", "role": "assistant", "content": []any{}, "usage": map[string]any{},
		}})
	}
	fields["type"] = kind
	data, err := json.Marshal(fields)
	if err != nil { // strings and numbers always marshal
		return out
	}
	return append(append(append(out, "event: "+kind+"\ndata: "...), data...), "\n\n"...)
}

func (s *anthropicStream) end() ([]byte, *synapse.ProviderError) {
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
	var out []byte
	for i, c := range s.calls {
		if c.name == "" {
			return nil, malformed("tool call %d of the reply has no name", i+1)
		}
		args := c.args.String()
		if args == "" {
			args = argumentText(c.input)
		}
		out = s.whole(out, map[string]any{"type": "tool_use", "id": s.seen.keep(c.id, args), "name": c.name, "input": map[string]any{}})
	}
	out = s.write(out, "message_delta", map[string]any{"delta": map[string]any{"stop_reason": "end_turn"}, "usage": map[string]any{"output_tokens": 0}})
	return s.write(out, "message_stop", map[string]any{}), nil
}

// keep stores a call's arguments as they came and returns the id under which
// they are: the layers above would write numbers and names anew, and refuse
// what is no JSON, which the model has to be told instead. Results are matched
// to calls by id, so that a missing or a used one is replaced.
func (f *facts) keep(id, args string) string {
	if _, used := f.args[id]; id == "" || used {
		id = newCallID()
	}
	if args == "" {
		args = "{}"
	}
	f.args[id] = args
	return id
}
