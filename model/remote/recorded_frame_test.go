package remote_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// What follows writes a whole reply as a stream of the same wire, so that
// recordings of clients that don't stream can be played to one that does.

// halves cuts a text in two, between characters.
func halves(s string) [2]string {
	runes := []rune(s)
	return [2]string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}

// framed writes events with their type as name, as the wires that have types do.
func framed(t *testing.T, list ...map[string]any) string {
	t.Helper()
	var out strings.Builder
	for _, m := range list {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if kind := str(m["type"]); kind != "" {
			out.WriteString("event: " + kind + "\n")
		}
		out.WriteString("data: " + string(data) + "\n\n")
	}
	return out.String()
}

type fields = map[string]any

func frameChat(t *testing.T, body string) string {
	m := parsed(t, body)
	choice := obj(list(m["choices"])[0])
	message := maps.Clone(obj(choice, "message"))
	text, calls := halves(str(message["content"])), list(message["tool_calls"])
	message["content"] = text[0]
	delete(message, "tool_calls")
	chunk := func(delta fields, finish any) fields {
		return fields{"id": m["id"], "object": "chat.completion.chunk", "model": m["model"], "usage": nil,
			"choices": []any{fields{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	out := []fields{chunk(message, nil), chunk(fields{"content": text[1]}, nil)}
	for i, c := range calls {
		f := obj(c, "function")
		args := halves(str(f["arguments"]))
		out = append(out, chunk(fields{"tool_calls": []any{fields{"index": i, "id": obj(c)["id"], "type": "function", "function": fields{"name": f["name"], "arguments": args[0]}}}}, nil),
			chunk(fields{"tool_calls": []any{fields{"index": i, "function": fields{"arguments": args[1]}}}}, nil))
	}
	out = append(out, chunk(fields{}, choice["finish_reason"]), fields{"id": m["id"], "object": "chat.completion.chunk", "model": m["model"], "choices": []any{}, "usage": m["usage"]})
	return framed(t, out...) + "data: [DONE]\n\n"
}

func frameResponses(t *testing.T, body string) string {
	r := parsed(t, body)
	begun := maps.Clone(r)
	begun["status"], begun["output"], begun["usage"], begun["incomplete_details"] = "in_progress", []any{}, nil, nil
	out := []fields{{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}}
	for i, v := range list(r["output"]) {
		item := obj(v)
		open := maps.Clone(item)
		for _, name := range []string{"content", "summary"} {
			if open[name] != nil {
				open[name] = []any{}
			}
		}
		if open["arguments"] != nil {
			open["arguments"] = ""
		}
		out = append(out, fields{"type": "response.output_item.added", "output_index": i, "item": open})
		piece := func(kind string, more fields) {
			more["type"], more["output_index"], more["item_id"] = kind, i, item["id"]
			out = append(out, more)
		}
		for j, p := range list(item["summary"]) {
			piece("response.reasoning_summary_part.added", fields{"summary_index": j, "part": fields{"type": "summary_text", "text": ""}})
			for _, half := range halves(str(obj(p)["text"])) {
				piece("response.reasoning_summary_text.delta", fields{"summary_index": j, "delta": half})
			}
			piece("response.reasoning_summary_part.done", fields{"summary_index": j, "part": p})
		}
		for j, p := range list(item["content"]) {
			piece("response.content_part.added", fields{"content_index": j, "part": fields{"type": "output_text", "text": ""}})
			for _, half := range halves(str(obj(p)["text"])) {
				piece("response.output_text.delta", fields{"content_index": j, "delta": half})
			}
			piece("response.content_part.done", fields{"content_index": j, "part": p})
		}
		if item["type"] == "function_call" {
			for _, half := range halves(str(item["arguments"])) {
				piece("response.function_call_arguments.delta", fields{"delta": half})
			}
			piece("response.function_call_arguments.done", fields{"arguments": item["arguments"]})
		}
		out = append(out, fields{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	return framed(t, append(out, fields{"type": "response." + str(r["status"]), "response": r})...)
}

func frameAnthropic(t *testing.T, body string) string {
	m := parsed(t, body)
	begun := maps.Clone(m)
	begun["content"], begun["stop_reason"] = []any{}, nil
	out := []fields{{"type": "message_start", "message": begun}, {"type": "ping"}}
	for i, c := range list(m["content"]) {
		block := obj(c)
		open := maps.Clone(block)
		var deltas []fields
		grow := func(kind, field, text string) {
			for _, half := range halves(text) {
				deltas = append(deltas, fields{"type": kind, field: half})
			}
		}
		switch block["type"] {
		case "text":
			open["text"] = ""
			grow("text_delta", "text", str(block["text"]))
		case "thinking":
			open["thinking"], open["signature"] = "", ""
			grow("thinking_delta", "thinking", str(block["thinking"]))
			deltas = append(deltas, fields{"type": "signature_delta", "signature": block["signature"]})
		case "tool_use", "server_tool_use":
			open["input"] = fields{}
			grow("input_json_delta", "partial_json", written(t, block["input"]))
		}
		out = append(out, fields{"type": "content_block_start", "index": i, "content_block": open})
		for _, d := range deltas {
			out = append(out, fields{"type": "content_block_delta", "index": i, "delta": d})
		}
		out = append(out, fields{"type": "content_block_stop", "index": i})
	}
	return framed(t, append(out, fields{"type": "message_delta", "delta": fields{"stop_reason": m["stop_reason"], "stop_sequence": m["stop_sequence"]}, "usage": m["usage"]},
		fields{"type": "message_stop"})...)
}

// frameGemini writes the events of a list, which a client gets that does not
// ask for them as server-sent events, and a whole reply as the only event. Where
// a client asked for numbers in place of names, the name is put back.
func frameGemini(t *testing.T, body string) string {
	var events []fields
	if !strings.HasPrefix(strings.TrimSpace(body), "[") {
		events = []fields{parsed(t, body)}
	} else if err := json.Unmarshal([]byte(body), &events); err != nil {
		t.Fatal(err)
	}
	for _, m := range events {
		for _, c := range list(m["candidates"]) {
			switch obj(c)["finishReason"] {
			case 1.0:
				obj(c)["finishReason"] = "STOP"
			case 2.0:
				obj(c)["finishReason"] = "MAX_TOKENS"
			}
		}
	}
	return framed(t, events...)
}
