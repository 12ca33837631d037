package remote_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	synapse "github.com/synapse-agents/synapse"
)

// The decoders of the test read a recording in the plainest way: line by line
// into a map. They share nothing with the package.

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

func dataLines(t *testing.T, body string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("recording: %v in %s", err, data)
		}
		out = append(out, m)
	}
	return out
}

// unframe writes Amazon's binary frames as the events that they hold: total
// length, length of the headers, a checksum; headers; payload; a checksum.
func unframe(t *testing.T, body string) string {
	t.Helper()
	var out strings.Builder
	for rest := []byte(body); len(rest) > 0; {
		total, headers := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		var payload struct {
			Bytes string `json:"bytes"`
		}
		if err := json.Unmarshal(rest[12+headers:total-4], &payload); err != nil {
			t.Fatalf("recording: frame: %v", err)
		}
		data, err := base64.StdEncoding.DecodeString(payload.Bytes)
		if err != nil {
			t.Fatalf("recording: frame: %v", err)
		}
		out.WriteString("data: " + string(data) + "\n\n")
		rest = rest[total:]
	}
	return out.String()
}

func plainChat(t *testing.T, body string) said {
	var s said
	finish := ""
	for _, m := range dataLines(t, body) {
		if v := str(m["model"]); v != "" {
			s.Model = v
		}
		if u := obj(m, "usage"); u != nil {
			s.Input, s.Output = num(u["prompt_tokens"]), num(u["completion_tokens"])
			s.Cached = num(obj(u, "prompt_tokens_details")["cached_tokens"])
			s.Written = num(obj(u, "prompt_tokens_details")["cache_write_tokens"])
			s.Thought = num(obj(u, "completion_tokens_details")["reasoning_tokens"])
			if s.Thought > 0 && num(u["total_tokens"]) == s.Input+s.Output+s.Thought {
				s.Output += s.Thought // xAI counts it beside the rest
			}
			s.Thought = min(s.Thought, s.Output) // it is a part of that, whatever is said
			s.Cost = real(u["cost"])
		}
		for _, c := range list(m["choices"]) {
			choice := obj(c)
			if f := str(choice["finish_reason"]); f != "" {
				finish = f
			}
			d := obj(choice, "delta")
			s.Text += str(d["content"])
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
	s.Stop = map[string]synapse.StopReason{"stop": synapse.StopEnd, "length": synapse.StopLength, "tool_calls": synapse.StopCalls, "": synapse.StopUnknown}[finish]
	if (finish == "" || finish == "stop") && len(s.Calls) > 0 { // gpt-audio says nothing but [DONE]
		s.Stop = synapse.StopCalls
	}
	return s
}

func plainResponses(t *testing.T, body string) said {
	s := said{Stop: synapse.StopEnd}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "response.output_text.delta":
			s.Text += str(m["delta"])
		case "response.reasoning_summary_text.delta":
			s.Reasoning += str(m["delta"])
		case "response.output_item.done":
			switch item := obj(m, "item"); item["type"] {
			case "function_call":
				s.Calls = append(s.Calls, synapse.ToolCall{ID: str(item["call_id"]), Name: str(item["name"]), Args: str(item["arguments"])})
				s.Stop = synapse.StopCalls
			case "reasoning":
				if v := str(item["encrypted_content"]); v != "" {
					s.Signed = append(s.Signed, v)
				}
			}
		case "response.completed", "response.incomplete":
			r := obj(m, "response")
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
	}
	return s
}

func plainAnthropic(t *testing.T, body string) said {
	var s said
	reason := ""
	calls := map[int64]int{}
	var fresh, read, written int64
	usage := func(u map[string]any) {
		for name, to := range map[string]*int64{"input_tokens": &fresh, "cache_read_input_tokens": &read, "cache_creation_input_tokens": &written, "output_tokens": &s.Output} {
			if v, ok := u[name].(float64); ok {
				*to = int64(v)
			}
		}
		if v, ok := obj(u, "output_tokens_details")["thinking_tokens"].(float64); ok {
			s.Thought = int64(v)
		}
	}
	for _, m := range dataLines(t, body) {
		switch m["type"] {
		case "message_start":
			s.Model = str(obj(m, "message")["model"])
			usage(obj(m, "message", "usage"))
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
			usage(obj(m, "usage"))
		}
	}
	for i := range s.Calls {
		if s.Calls[i].Args == "" {
			s.Calls[i].Args = "{}"
		}
	}
	s.Input, s.Cached, s.Written = fresh+read+written, read, written
	s.Stop = map[string]synapse.StopReason{"end_turn": synapse.StopEnd, "stop_sequence": synapse.StopEnd, "tool_use": synapse.StopCalls,
		"max_tokens": synapse.StopLength, "pause_turn": synapse.StopUnknown, "refusal": synapse.StopFilter}[reason]
	return s
}

func plainGemini(t *testing.T, body string) said {
	var s said
	finish := ""
	for _, m := range dataLines(t, body) {
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
			if f := str(obj(c)["finishReason"]); f != "" {
				finish = f
			}
			for _, p := range list(obj(c, "content")["parts"]) {
				part := obj(p)
				if v := str(part["thoughtSignature"]); v != "" {
					s.Signed = append(s.Signed, v)
				}
				if call := obj(part, "functionCall"); call != nil {
					args, err := json.Marshal(call["args"])
					if err != nil {
						t.Fatal(err)
					}
					s.Calls = append(s.Calls, synapse.ToolCall{ID: str(call["id"]), Name: str(call["name"]), Args: string(args)})
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
