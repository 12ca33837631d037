package remote_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	synapse "github.com/synapse-agents/synapse"
)

// said is what a reply comes to, whoever decoded it.
type said struct {
	Text, Reasoning string
	Calls           []synapse.ToolCall
	Signed          []string // what the provider wants back unchanged
	Stop            synapse.StopReason
	Model           string
	Input, Output   int64
	Cached, Written int64
	Thought         int64
	Cost            float64 // where the provider says it
}

// What follows reads recordings in the plainest way, into maps, and shares
// nothing with the package. There is a reader for streams and one for whole
// replies of each wire.

func obj(v any, path ...string) map[string]any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any   { l, _ := v.([]any); return l }
func str(v any) string   { s, _ := v.(string); return s }
func num(v any) int64    { f, _ := v.(float64); return int64(f) }
func real(v any) float64 { f, _ := v.(float64); return f }

func parsed(t *testing.T, data string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		t.Fatalf("recording: %v in %s", err, data)
	}
	return m
}

func dataLines(t *testing.T, body string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if data = strings.TrimSpace(data); ok && data != "[DONE]" {
			out = append(out, parsed(t, data))
		}
	}
	return out
}

// Chat Completions.

func (s *said) chatUsage(u map[string]any) {
	if u == nil {
		return
	}
	s.Input, s.Output = num(u["prompt_tokens"]), num(u["completion_tokens"])
	s.Cached = max(num(obj(u, "prompt_tokens_details")["cached_tokens"]), num(u["prompt_cache_hit_tokens"])) // DeepSeek says both
	s.Written = max(num(obj(u, "prompt_tokens_details")["cache_write_tokens"]), num(u["cache_creation_input_tokens"]))
	s.Thought = num(obj(u, "completion_tokens_details")["reasoning_tokens"])
	if s.Thought > 0 && num(u["total_tokens"]) == s.Input+s.Output+s.Thought {
		s.Output += s.Thought // xAI counts it beside the rest
	}
	s.Thought = min(s.Thought, s.Output) // it is a part of that, whatever is said
	s.Cost = real(u["cost"])
}

// chatPiece adds a message, or a piece of one.
func (s *said) chatPiece(d map[string]any) {
	s.Text += str(d["content"]) + str(d["refusal"])
	if r := str(d["reasoning_content"]); r != "" {
		s.Reasoning += r
	} else {
		s.Reasoning += str(d["reasoning"])
	}
	for _, detail := range list(d["reasoning_details"]) {
		for _, field := range []string{"signature", "data"} {
			if v := str(obj(detail)[field]); v != "" {
				s.Signed = append(s.Signed, v)
			}
		}
	}
}

func (s *said) chatStop(finish string) {
	s.Stop = map[string]synapse.StopReason{"stop": synapse.StopEnd, "length": synapse.StopLength, "tool_calls": synapse.StopCalls, "": synapse.StopUnknown,
		"function_call": synapse.StopUnknown}[finish] // of the functions before there were tools, which nobody offers here
	if (finish == "" || finish == "stop") && len(s.Calls) > 0 { // gpt-audio says nothing but [DONE]
		s.Stop = synapse.StopCalls
	}
}

func chatStreamed(t *testing.T, body string) said {
	var s said
	finish := ""
	for _, m := range dataLines(t, body) {
		if v := str(m["model"]); v != "" {
			s.Model = v
		}
		s.chatUsage(obj(m, "usage"))
		for _, c := range list(m["choices"]) {
			if f := str(obj(c)["finish_reason"]); f != "" {
				finish = f
			}
			d := obj(c, "delta")
			s.chatPiece(d)
			for _, tc := range list(d["tool_calls"]) {
				call := obj(tc)
				i := int(num(call["index"]))
				for len(s.Calls) <= i {
					s.Calls = append(s.Calls, synapse.ToolCall{})
				}
				if s.Calls[i].ID == "" {
					s.Calls[i].ID = str(call["id"])
				}
				s.Calls[i].Name += str(obj(call, "function")["name"])
				s.Calls[i].Args += str(obj(call, "function")["arguments"])
			}
		}
	}
	s.chatStop(finish)
	return s
}

func chatWhole(t *testing.T, body string) said {
	m := parsed(t, body)
	s := said{Model: str(m["model"])}
	s.chatUsage(obj(m, "usage"))
	choice := obj(list(m["choices"])[0])
	message := obj(choice, "message")
	s.chatPiece(message)
	for _, tc := range list(message["tool_calls"]) {
		f := obj(tc, "function")
		s.Calls = append(s.Calls, synapse.ToolCall{ID: str(obj(tc)["id"]), Name: str(f["name"]), Args: str(f["arguments"])})
	}
	s.chatStop(str(choice["finish_reason"]))
	return s
}

// Responses.

func (s *said) responsesItem(item map[string]any) {
	switch item["type"] {
	case "function_call":
		s.Calls = append(s.Calls, synapse.ToolCall{ID: str(item["call_id"]), Name: str(item["name"]), Args: str(item["arguments"])})
		s.Stop = synapse.StopCalls
	case "reasoning":
		if v := str(item["encrypted_content"]); v != "" {
			s.Signed = append(s.Signed, v)
		}
	}
}

func (s *said) responsesEnd(r map[string]any) {
	s.Model = str(r["model"])
	u := obj(r, "usage")
	s.Input, s.Output = num(u["input_tokens"]), num(u["output_tokens"])
	s.Cached = num(obj(u, "input_tokens_details")["cached_tokens"])
	s.Written = num(obj(u, "input_tokens_details")["cache_write_tokens"])
	s.Thought = num(obj(u, "output_tokens_details")["reasoning_tokens"])
	if obj(r, "incomplete_details")["reason"] == "max_output_tokens" {
		s.Stop = synapse.StopLength
	}
}

func responsesStreamed(t *testing.T, body string) said {
	s := said{Stop: synapse.StopEnd}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "response.output_text.delta":
			s.Text += str(m["delta"])
		case "response.reasoning_summary_text.delta":
			s.Reasoning += str(m["delta"])
		case "response.output_item.done":
			s.responsesItem(obj(m, "item"))
		case "response.completed", "response.incomplete":
			s.responsesEnd(obj(m, "response"))
		}
	}
	return s
}

func responsesWhole(t *testing.T, body string) said {
	s := said{Stop: synapse.StopEnd}
	r := parsed(t, body)
	for _, i := range list(r["output"]) {
		item := obj(i)
		s.responsesItem(item)
		for _, p := range list(item["content"]) {
			s.Text += str(obj(p)["text"])
		}
		for _, p := range list(item["summary"]) {
			s.Reasoning += str(obj(p)["text"])
		}
	}
	s.responsesEnd(r)
	return s
}

// Messages.

// anthropicCount is a usage whose input is what the cache had no part in.
type anthropicCount struct{ fresh, read, written, out, thought int64 }

func (c *anthropicCount) add(u map[string]any) {
	for name, to := range map[string]*int64{"input_tokens": &c.fresh, "cache_read_input_tokens": &c.read, "cache_creation_input_tokens": &c.written, "output_tokens": &c.out} {
		if v, ok := u[name].(float64); ok {
			*to = int64(v)
		}
	}
	if v, ok := obj(u, "output_tokens_details")["thinking_tokens"].(float64); ok {
		c.thought = int64(v)
	}
}

func (s *said) anthropicEnd(c anthropicCount, reason string) {
	for i := range s.Calls {
		if s.Calls[i].Args == "" {
			s.Calls[i].Args = "{}"
		}
	}
	s.Input, s.Cached, s.Written, s.Output, s.Thought = c.fresh+c.read+c.written, c.read, c.written, c.out, c.thought
	s.Stop = map[string]synapse.StopReason{"end_turn": synapse.StopEnd, "stop_sequence": synapse.StopEnd, "tool_use": synapse.StopCalls,
		"max_tokens": synapse.StopLength, "pause_turn": synapse.StopUnknown, "refusal": synapse.StopFilter}[reason]
}

func anthropicStreamed(t *testing.T, body string) said {
	var s said
	var count anthropicCount
	reason := ""
	calls := map[int64]int{}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "message_start":
			s.Model = str(obj(m, "message")["model"])
			count.add(obj(m, "message", "usage"))
		case "content_block_start":
			switch b := obj(m, "content_block"); b["type"] {
			case "tool_use":
				calls[num(m["index"])] = len(s.Calls)
				s.Calls = append(s.Calls, synapse.ToolCall{ID: str(b["id"]), Name: str(b["name"])})
			case "redacted_thinking":
				s.Signed = append(s.Signed, str(b["data"]))
			}
		case "content_block_delta":
			switch d := obj(m, "delta"); d["type"] {
			case "text_delta":
				s.Text += str(d["text"])
			case "thinking_delta":
				s.Reasoning += str(d["thinking"])
			case "signature_delta":
				s.Signed = append(s.Signed, str(d["signature"]))
			case "input_json_delta":
				if i, ok := calls[num(m["index"])]; ok {
					s.Calls[i].Args += str(d["partial_json"])
				}
			}
		case "message_delta":
			if r := str(obj(m, "delta")["stop_reason"]); r != "" {
				reason = r
			}
			count.add(obj(m, "usage"))
		}
	}
	s.anthropicEnd(count, reason)
	return s
}

func anthropicWhole(t *testing.T, body string) said {
	m := parsed(t, body)
	s := said{Model: str(m["model"])}
	var count anthropicCount
	count.add(obj(m, "usage"))
	for _, c := range list(m["content"]) {
		switch b := obj(c); b["type"] {
		case "text":
			s.Text += str(b["text"])
		case "thinking":
			s.Reasoning += str(b["thinking"])
			s.Signed = append(s.Signed, str(b["signature"]))
		case "redacted_thinking":
			s.Signed = append(s.Signed, str(b["data"]))
		case "tool_use":
			s.Calls = append(s.Calls, synapse.ToolCall{ID: str(b["id"]), Name: str(b["name"]), Args: written(t, b["input"])})
		}
	}
	s.anthropicEnd(count, str(m["stop_reason"]))
	return s
}

// Gemini, whose whole replies are events of a stream that has one.

func geminiStreamed(t *testing.T, body string) said {
	return gemini(t, dataLines(t, body))
}

func geminiWhole(t *testing.T, body string) said {
	if !strings.HasPrefix(strings.TrimSpace(body), "[") {
		return gemini(t, []map[string]any{parsed(t, body)})
	}
	var events []map[string]any
	if err := json.Unmarshal([]byte(body), &events); err != nil {
		t.Fatal(err)
	}
	return gemini(t, events)
}

func gemini(t *testing.T, events []map[string]any) said {
	var s said
	finish := ""
	for _, m := range events {
		if v := str(m["modelVersion"]); v != "" {
			s.Model = v
		}
		if u := obj(m, "usageMetadata"); u != nil {
			s.Input = num(u["promptTokenCount"]) + num(u["toolUsePromptTokenCount"])
			s.Thought = num(u["thoughtsTokenCount"])
			s.Output = num(u["candidatesTokenCount"]) + s.Thought
			s.Cached = num(u["cachedContentTokenCount"])
		}
		for _, c := range list(m["candidates"]) {
			switch f := obj(c)["finishReason"].(type) {
			case string:
				finish = f
			case float64: // one client asks for the enumeration's numbers
				finish = []string{"", "STOP", "MAX_TOKENS"}[int(f)]
			}
			for _, p := range list(obj(c, "content")["parts"]) {
				part := obj(p)
				if v := str(part["thoughtSignature"]); v != "" {
					s.Signed = append(s.Signed, v)
				}
				if call := obj(part, "functionCall"); call != nil {
					s.Calls = append(s.Calls, synapse.ToolCall{ID: str(call["id"]), Name: str(call["name"]), Args: written(t, call["args"])})
				} else if part["thought"] == true {
					s.Reasoning += str(part["text"])
				} else {
					s.Text += str(part["text"])
				}
			}
		}
	}
	s.Stop = map[string]synapse.StopReason{"STOP": synapse.StopEnd, "MAX_TOKENS": synapse.StopLength}[finish]
	if len(s.Calls) > 0 && s.Stop == synapse.StopEnd {
		s.Stop = synapse.StopCalls
	}
	return s
}

// written writes a value in one form.
func written(t *testing.T, v any) string {
	t.Helper()
	if v == nil {
		return "{}"
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// flat writes a reply in the same form.
func flat(t *testing.T, r *synapse.Reply) said {
	t.Helper()
	s := said{Stop: r.Stop, Model: r.Model, Input: r.Usage.InputTokens, Output: r.Usage.OutputTokens,
		Cached: r.Usage.CacheReadTokens, Written: r.Usage.CacheWriteTokens, Thought: r.Usage.ReasoningTokens}
	if r.Usage.CostUSD != nil {
		s.Cost = *r.Usage.CostUSD
	}
	for _, p := range r.Message.Parts {
		switch p.Kind {
		case synapse.PartText:
			s.Text += p.Text
		case synapse.PartReasoning:
			s.Reasoning += p.Text
		case synapse.PartCall:
			s.Calls = append(s.Calls, *p.Call)
		}
	}
	return s
}

// failure returns the failure that an answer of success reports within, and
// whether there is one.
func failure(events []map[string]any) (string, bool) {
	i := slices.IndexFunc(events, func(m map[string]any) bool { return obj(m, "error") != nil || m["type"] == "response.failed" })
	if i < 0 {
		return "", false
	}
	if e := obj(events[i], "error"); e != nil {
		return str(e["message"]), true
	}
	return str(obj(events[i], "response", "error")["message"]), true
}
