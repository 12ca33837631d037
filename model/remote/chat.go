package remote

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"charm.land/fantasy/providers/openrouter"

	synapse "github.com/synapse-agents/synapse"
)

// chatStream reads Chat Completions as many servers speak it and rewrites it
// into the form that the published API has.
//
// Text and reasoning go on at once. Tool calls are held back until the reply
// has ended by its own account, and then go on whole: the decoder behind takes
// a stream that just stops for a reply that is complete as soon as a call has
// begun, joins the arguments of calls that a server gave one index to, and
// copies all arguments so far for every piece.
type chatStream struct {
	seen    facts
	finish  string // the finish reason, empty until there is one
	ended   bool   // [DONE]
	started bool   // anything at all has come
	chunks  int
	calls   []*chatCall
	byIndex map[int]*chatCall
	spoke   bool // text or reasoning has come
	filter  bool // the model refused in words of its own
	// routed says that OpenRouter is asked: thoughts go up in the field that is
	// its own, and what it says about them goes back as it came.
	routed  bool
	details []detail
}

type chatCall struct {
	id, name string
	args     strings.Builder
}

func newChatStream(routed bool) *chatStream {
	return &chatStream{byIndex: map[int]*chatCall{}, routed: routed}
}

func (s *chatStream) facts() *facts { return &s.seen }
func (s *chatStream) done() bool    { return s.ended }

func isDone(data []byte) bool { return bytes.HasPrefix(data, []byte("[DONE]")) }

type chatChunk struct {
	Model   loose `json:"model"`
	Choices []struct {
		Index        int       `json:"index"`
		Delta        chatDelta `json:"delta"`
		FinishReason loose     `json:"finish_reason"`
	} `json:"choices"`
	Usage lenient[chatUsage] `json:"usage"`
}

type chatDelta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          loose           `json:"refusal"`
	ReasoningContent loose           `json:"reasoning_content"`
	Reasoning        loose           `json:"reasoning"`
	Details          json.RawMessage `json:"reasoning_details"` // OpenRouter
	ToolCalls        []chatCallDelta `json:"tool_calls"`
}

type chatCallDelta struct {
	Index    *int  `json:"index"`
	ID       loose `json:"id"`
	Function struct {
		Name      loose           `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	CacheHit   count `json:"prompt_cache_hit_tokens"` // DeepSeek
	// OpenRouter says what a reply cost, in dollars; with a key of the user's
	// own at a provider, what that costs is beside it.
	Cost        json.RawMessage `json:"cost"`
	OwnKey      json.RawMessage `json:"is_byok"`
	CostDetails json.RawMessage `json:"cost_details"`
	Details     struct {
		Cached count `json:"cached_tokens"`
		Write  count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count is a number of tokens; a value that cannot be one is 0.
type count int64

// UnmarshalJSON never fails: a strange count is not worth an answer.
func (c *count) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || !(f > 0) || f > 1<<50 {
		f = 0
	}
	*c = count(f)
	return nil
}

// lenient takes a value of another shape than expected as none.
type lenient[T any] struct{ v *T }

// UnmarshalJSON never fails: counts of a strange shape are not worth an answer.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	var v *T
	if json.Unmarshal(data, &v) == nil {
		l.v = v
	}
	return nil
}

func (u *chatUsage) usage() synapse.Usage {
	out := synapse.Usage{
		InputTokens:      int64(u.Prompt),
		OutputTokens:     int64(u.Completion),
		CacheReadTokens:  int64(max(u.Details.Cached, u.CacheHit)),
		CacheWriteTokens: int64(u.Details.Write),
		ReasoningTokens:  int64(u.Output.Reasoning),
	}
	// Some count reasoning beside the completion instead of within it; their
	// total gives them away.
	if u.Output.Reasoning > 0 && u.Total == u.Prompt+u.Completion+u.Output.Reasoning {
		out.OutputTokens += out.ReasoningTokens
	}
	return within(out)
}

// within keeps the parts of a usage no larger than what they are parts of.
func within(u synapse.Usage) synapse.Usage {
	u.CacheReadTokens = min(u.CacheReadTokens, u.InputTokens)
	u.CacheWriteTokens = min(u.CacheWriteTokens, u.InputTokens-u.CacheReadTokens)
	u.ReasoningTokens = min(u.ReasoningTokens, u.OutputTokens)
	return u
}

// dollars returns the cost that the provider states, nil where it states none.
func (u *chatUsage) dollars() *float64 {
	var sum *float64
	if json.Unmarshal(u.Cost, &sum) != nil || sum == nil || *sum < 0 {
		return nil
	}
	if string(u.OwnKey) == "true" {
		var details struct {
			Upstream *float64 `json:"upstream_inference_cost"`
		}
		if json.Unmarshal(u.CostDetails, &details) != nil || details.Upstream == nil {
			return nil
		}
		*sum += *details.Upstream
	}
	return sum
}

func (s *chatStream) event(name string, data []byte) ([]byte, *synapse.ProviderError) {
	if isDone(data) {
		s.ended = true
		return nil, nil
	}
	if e, ok := parseError(data); ok && (name == "error" || !bytes.Contains(data, []byte(`"choices"`)) || errorSet(data)) {
		return nil, e.fault(0)
	}
	if name == "error" {
		return nil, apiError{message: excerpt(data)}.fault(0)
	}
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return nil, malformed("an event of the stream is not a chat completion chunk (%v): %s", err, excerpt(data))
	}
	s.started = true
	if chunk.Model.text != "" {
		s.seen.model = chunk.Model.text
	}
	if chunk.Usage.v != nil { // the last word counts: some send running totals
		s.seen.usage = chunk.Usage.v.usage()
		if s.routed {
			s.seen.cost = chunk.Usage.v.dollars()
		}
	}
	var out []byte
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // only one was asked for
		}
		d := &choice.Delta
		text, thought := contentOf(d.Content)
		thought += d.ReasoningContent.text
		if d.ReasoningContent.text == "" {
			thought += d.Reasoning.text
		}
		if d.Refusal.text != "" {
			s.filter = true
			text += d.Refusal.text
		}
		s.spoke = s.spoke || text != "" || thought != ""
		// Reasoning precedes what it is about; together in one chunk the
		// decoder would take it the other way round.
		switch {
		case thought == "":
		case s.routed:
			out = s.chunk(out, map[string]any{"reasoning_details": []any{map[string]any{
				"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": thought,
			}}}, nil)
		default:
			out = s.chunk(out, map[string]any{"reasoning_content": thought}, nil)
		}
		if s.routed {
			s.detail(d.Details)
		}
		if text != "" {
			out = s.chunk(out, map[string]any{"content": text}, nil)
		}
		for i := range d.ToolCalls {
			s.call(&d.ToolCalls[i])
		}
		if reason := choice.FinishReason.text; reason != "" {
			if reason == "error" || reason == "insufficient_system_resource" {
				return nil, apiError{message: "the provider ended the reply with " + reason, words: []string{reason}}.fault(0)
			}
			s.finish = reason
		}
	}
	return out, nil
}

// errorSet reports whether an event has an error beside its choices; a null
// one is none.
func errorSet(data []byte) bool {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &body) == nil && !isNull(body.Error)
}

// contentOf reads a delta's content: text, or a list of typed parts.
func contentOf(raw json.RawMessage) (text, thought string) {
	if isNull(raw) {
		return "", ""
	}
	if raw[0] != '[' {
		var l loose
		if json.Unmarshal(raw, &l) == nil && raw[0] == '"' {
			text = l.text
		}
		return text, ""
	}
	var parts []struct {
		Type     loose           `json:"type"`
		Text     loose           `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		text += p.Text.text
		if !isNull(p.Thinking) {
			inner, _ := contentOf(p.Thinking)
			thought += inner
		}
	}
	return text, thought
}

// call adds a piece of a tool call to the call it belongs to. That is the one
// of its index, except that a piece with a name and another id begins a call
// of its own: servers have sent every call under index 0, or without any.
func (s *chatStream) call(d *chatCallDelta) {
	var c *chatCall
	switch {
	case d.Index != nil:
		c = s.byIndex[*d.Index]
	case d.ID.text == "" && d.Function.Name.text == "" && len(s.calls) > 0:
		c = s.calls[len(s.calls)-1]
	default:
		for _, other := range s.calls {
			if d.ID.text != "" && other.id == d.ID.text {
				c = other
			}
		}
	}
	if c != nil && c.name != "" && d.Function.Name.text != "" && d.ID.text != "" && d.ID.text != c.id {
		c = nil
	}
	args := argumentText(d.Function.Arguments)
	if c == nil {
		if d.ID.text == "" && d.Function.Name.text == "" && args == "" {
			return // some servers open with an empty call
		}
		c = &chatCall{}
		s.calls = append(s.calls, c)
		if d.Index != nil {
			s.byIndex[*d.Index] = c
		}
	}
	if c.id == "" {
		c.id = d.ID.text
	}
	if c.name == "" {
		c.name = d.Function.Name.text
	}
	c.args.WriteString(args)
}

// argumentText reads a piece of arguments: text, or from some servers the
// object itself.
func argumentText(raw json.RawMessage) string {
	if isNull(raw) {
		return ""
	}
	if raw[0] == '"' {
		var l loose
		_ = l.UnmarshalJSON(raw)
		return l.text
	}
	return string(raw)
}

// chunk appends one event in canonical form. Every chunk has another id: the
// SDK below adds up the text of all chunks of one id, at a cost that grows
// with the square of the reply, and nobody reads the sum.
func (s *chatStream) chunk(out []byte, delta map[string]any, finish any) []byte {
	s.chunks++
	data, err := json.Marshal(map[string]any{
		"id": strconv.Itoa(s.chunks), "object": "chat.completion.chunk", "created": 0, "model": "",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	if err != nil { // strings and numbers always marshal
		return out
	}
	out = append(out, "data: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// detail is a piece of what a model thought as OpenRouter hands it out and
// wants it back: text with a signature, a summary, or something encrypted.
type detail map[string]json.RawMessage

// detail adds pieces. Those of one index and type are one detail: their texts
// are joined, and everything else is as the last of them has it.
func (s *chatStream) detail(raw json.RawMessage) {
	var pieces []detail
	if isNull(raw) || json.Unmarshal(raw, &pieces) != nil {
		return
	}
	for _, piece := range pieces {
		if n := len(s.details); n > 0 && piece != nil && string(s.details[n-1]["type"]) == string(piece["type"]) &&
			string(s.details[n-1]["index"]) == string(piece["index"]) && isNull(piece["data"]) {
			joinDetail(s.details[n-1], piece)
		} else if piece != nil {
			s.details = append(s.details, piece)
		}
	}
}

func joinDetail(to, piece detail) {
	for name, value := range piece {
		var before, after string
		switch {
		case isNull(value):
		case (name == "text" || name == "summary") && json.Unmarshal(to[name], &before) == nil && json.Unmarshal(value, &after) == nil:
			to[name], _ = marshal(before + after) // a string always marshals
		default:
			to[name] = value
		}
	}
}

// lengthReason reports whether a finish reason says that the reply hit a limit.
func lengthReason(reason string) bool {
	return reason == "length" || reason == "max_tokens" || reason == "model_length"
}

// complete reports whether a reply that never said why it ended is whole all
// the same. There are models (OpenAI's own that speak) which end with no more
// than [DONE]; that is an end only if there is a reply, and no call of it is
// half a one.
func (s *chatStream) complete() bool {
	for _, c := range s.calls {
		if !json.Valid([]byte(c.args.String())) {
			return false
		}
	}
	return s.ended && (s.spoke || len(s.calls) > 0 || s.seen.usage.OutputTokens > 0)
}

func (s *chatStream) end() ([]byte, *synapse.ProviderError) {
	if s.finish == "" && !s.complete() {
		if !s.started {
			return nil, brokeOff(replyEmpty)
		}
		return nil, brokeOff(replyUnended)
	}
	var out []byte
	used := map[string]bool{}
	var list []any
	for i, c := range s.calls {
		if c.name == "" {
			if lengthReason(s.finish) {
				continue // cut off before its name: there is nothing to answer
			}
			return nil, malformed("tool call %d of the reply has no name", i+1)
		}
		if c.id == "" || used[c.id] { // results are matched to calls by id
			c.id = newCallID()
		}
		used[c.id] = true
		list = append(list, map[string]any{
			"index": len(list), "id": c.id, "type": "function",
			"function": map[string]any{"name": c.name, "arguments": c.args.String()},
		})
	}
	if list != nil {
		out = s.chunk(out, map[string]any{"tool_calls": list}, nil)
	}
	switch {
	case s.finish == "stop", s.finish == "eos":
		s.seen.stop = synapse.StopEnd
	case s.finish == "tool_calls", s.finish == "function_call":
		s.seen.stop = synapse.StopCalls
	case lengthReason(s.finish):
		s.seen.stop = synapse.StopLength
	case s.finish == "content_filter":
		s.seen.stop = synapse.StopFilter
	default:
		s.seen.stop = synapse.StopUnknown
	}
	if s.filter && s.seen.stop == synapse.StopEnd {
		s.seen.stop = synapse.StopFilter
	}
	if len(s.details) > 0 {
		s.seen.opaque, _ = marshal(map[string]any{openrouter.Name: s.details}) // what was JSON is
	}
	out = s.chunk(out, map[string]any{}, "stop")
	return append(out, "data: [DONE]\n\n"...), nil
}
