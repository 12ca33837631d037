package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// Any bytes that a server may send are a whole reply or one typed error, and
// an end: on every wire, and in Amazon's framing.

func FuzzChat(f *testing.F) {
	fuzzWire(f, remote.WireChat,
		"data: [DONE]\n\n", okStream,
		events(text("a"), call(0, "c", "x", `{"n":1}`), finish("tool_calls"), usageChunk, done),
		events(call(-5, "", "", "x"), call(1<<40, "c", "", "y"), finish("length")),
		events(delta(`{"content":[{"type":"text","text":"a"}],"reasoning_content":3,"tool_calls":[null,{}]}`), finish("stop")),
		events(`{"choices":null}`, `{"choices":[null]}`, `{"choices":[{"index":1e3}]}`),
		events(`{"choices":[{"delta":{"content":"a"},"finish_reason":"error"}],"error":{"code":"x"}}`),
		events(delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a"},{"type":"reasoning.text","index":0,"text":"b","signature":"s"},null]}`), finish("stop")),
		"event: error\ndata: boom\n\n", "error: {\"code\":500}\n\n")
}

func FuzzResponses(f *testing.F) {
	fuzzWire(f, remote.WireResponses, wholeResponses,
		events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning"}}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":3,"delta":"x"}`, `{"type":"response.completed","response":{}}`),
		events(`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"x"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"x","arguments":{"a":1}}}`,
			`{"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":"x"}}}`),
		events(`{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"x","summary":{"a":1}}}`, `{"type":"response.completed"}`),
		events(`{"type":"response.failed","response":{"error":null}}`), events(`{"type":"error"}`), events(`{"type":"response.output_text.delta","error":[1],"delta":5}`))
}

func FuzzAnthropic(f *testing.F) {
	fuzzWire(f, remote.WireAnthropic, wholeAnthropic,
		events(`{"type":"message_start"}`, `{"type":"message_stop"}`),
		events(`{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","input":{"a":1}}}`, `{"type":"content_block_stop","index":-1}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`),
		events(`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"moon"},"usage":{"output_tokens":-3}}`),
		"event: error\n"+events(`{"type":"error","error":{"type":"overloaded_error"}}`), "event: error\ndata: boom\n\n")
}

func FuzzGemini(f *testing.F) {
	fuzzWire(f, remote.WireGemini, wholeGemini,
		events(`{"promptFeedback":{"blockReason":"SAFETY"}}`), events(`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"x\n\u001b"}]}`),
		events(`{"candidates":[{"content":{"parts":[{"functionCall":null},{"functionCall":{"args":"x"}},{"functionCall":{"name":"x"},"thoughtSignature":"s"},{"text":"after"}]},"finishReason":"STOP"}]}`),
		events(`{"error":{"code":429,"details":[{"retryDelay":"1.5s"},{"retryDelay":"-1e999s"},7]}}`), events(`{"error":"x"}`, `{"candidates":[null]}`))
}

func fuzzWire(f *testing.F, wire remote.Wire, seeds ...string) {
	for _, body := range append(seeds, "", "\n\n", "data:", ": hi\n\n", "<html>", "{}", "[]", "null", `{"error":{"message":"x","code":429}}`, `{"error":"x"}`, `{"message":"x"}`) {
		f.Add([]byte(body), "text/event-stream", 200, false)
		f.Add([]byte(body), "application/json", 200, true)
	}
	f.Add([]byte(`{"error":{"message":null}}`), "text/html", 429, true)
	f.Add([]byte("\xff\xfe<p"), "", 302, true)
	f.Fuzz(func(t *testing.T, body []byte, contentType string, status int, small bool) {
		checkStream(t, wire, body, contentType, status, small)
	})
}

// FuzzFrames feeds Amazon's framing: frames around what is found, and what is
// found as frames.
func FuzzFrames(f *testing.F) {
	for line := range strings.Lines(wholeAnthropic) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			f.Add([]byte(strings.TrimSpace(data)), "chunk", true)
		}
	}
	f.Add([]byte(`{"message":"Too many requests","originalStatusCode":429}`), "throttlingException", true)
	f.Add(amazonFrame("event", "chunk", []byte(`{"bytes":"e30="}`)), "", false)
	f.Add([]byte("\x00\x00\x00\x10\x00\x00\x00\x00"), "", false)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"), "", false)
	f.Fuzz(func(t *testing.T, data []byte, kind string, framed bool) {
		body := data
		switch {
		case !framed:
		case kind == "chunk":
			chunk, err := json.Marshal(map[string][]byte{"bytes": data})
			if err != nil {
				t.Fatal(err)
			}
			body = amazonFrame("event", kind, chunk)
		default:
			if len(kind) > 200 {
				return
			}
			body = amazonFrame("exception", kind, data)
		}
		checkStream(t, remote.WireAnthropic, body, "application/vnd.amazon.eventstream", 200, false)
	})
}

// amazonFrame writes one of Amazon's frames.
func amazonFrame(message, kind string, payload []byte) []byte {
	var headers []byte
	header := func(name, value string) {
		headers = append(headers, byte(len(name)))
		headers = append(headers, name...)
		headers = append(headers, 7, byte(len(value)>>8), byte(len(value)))
		headers = append(headers, value...)
	}
	header(":message-type", message)
	header(map[string]string{"event": ":event-type", "exception": ":exception-type"}[message], kind)
	out := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, headers...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// configFor is a provider that speaks the wire at an address that nobody asks.
func configFor(wire remote.Wire) remote.Config {
	cfg := remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1", Wire: wire}
	switch wire {
	case remote.WireAnthropic:
		cfg.Provider = "anthropic"
	case remote.WireGemini:
		cfg.Provider = "gemini"
	}
	return cfg
}

// checkStream plays an answer and checks what must hold for any: a whole reply
// or one typed error, last.
func checkStream(t *testing.T, wire remote.Wire, body []byte, contentType string, status int, small bool) {
	t.Helper()
	cfg := configFor(wire)
	cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var src io.Reader = bytes.NewReader(body)
		if small {
			src = iotest.OneByteReader(src)
		}
		return &http.Response{
			StatusCode: 200 + ((status-200)%400+400)%400, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(src),
		}, nil
	})}
	m, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	after, ends := 0, 0
	ids := map[string]bool{}
	var failed error
	for d, err := range m.Generate(ctx, hello()) {
		if failed != nil || ends > 0 {
			after++
		}
		switch {
		case err != nil:
			failed = err
		case d.Kind == synapse.DeltaEnd:
			ends++
			u := d.Usage
			if d.Stop == "" || u.Requests != 1 || u.InputTokens < 0 || u.OutputTokens < 0 ||
				u.CacheReadTokens+u.CacheWriteTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens {
				t.Errorf("end %+v", d)
			}
		case d.Kind == synapse.DeltaCall:
			if d.Call == nil || d.Call.ID == "" || d.Call.Name == "" || ids[d.Call.ID] {
				t.Errorf("call %+v", d.Call)
			} else {
				ids[d.Call.ID] = true
			}
		}
		if d != nil && len(d.Opaque) > 0 && !json.Valid(d.Opaque) {
			t.Errorf("opaque data is no JSON: %s", d.Opaque)
		}
	}
	var typed *synapse.ProviderError
	if failed != nil && (!errors.As(failed, &typed) || typed.Kind == "" || typed.RetryAfter < 0 || strings.ContainsAny(typed.Message, "\n\x1b")) {
		t.Errorf("error %v (%T): want a ProviderError of one line", failed, failed)
	}
	if after > 0 || ends > 1 || (failed == nil) == (ends == 0) {
		t.Errorf("%d ends, error %v, %d after that: want one of the two, last", ends, failed, after)
	}
}

// Replies with all there is to a reply.
var (
	wholeChat = events(delta(`{"role":"assistant","content":""}`), delta(`{"reasoning_content":"hm"}`), text("Look: 世界."), call(0, "a", "x", `{"n":`), call(0, "", "", `1}`),
		call(1, "b", "y", `{}`), finish("tool_calls"), usageChunk, done)
	wholeResponses = events(`{"type":"response.created","response":{"id":"r","model":"m1-2026"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"a","name":"x","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f","delta":"{\"n\":1}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"a","name":"x","arguments":"{\"n\":1}"}}`,
		`{"type":"response.completed","response":{"id":"r","model":"m1-2026","usage":{"input_tokens":1,"output_tokens":1}}}`)
	wholeAnthropic = events(`{"type":"message_start","message":{"model":"m1-2026","usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	wholeGemini = events(`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}],"modelVersion":"m1-2026"}`,
		`{"candidates":[{"content":{"parts":[{"text":"Look: 世界."},{"functionCall":{"name":"x","args":{"n":1}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"b","name":"y"}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":2}}`)
)

// canned returns a model whose provider sends the body, then ends as end says.
func canned(t *testing.T, cfg remote.Config, body string, end error) synapse.Model {
	t.Helper()
	cfg.BaseURL = "http://127.0.0.1:9/v1"
	cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var src io.Reader = strings.NewReader(body)
		if end != nil {
			src = io.MultiReader(src, iotest.ErrReader(end))
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(src), Request: r}, nil
	})}
	m, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A reply that breaks off is an error at whatever byte it does, and the calls
// that came out before it are whole.
func TestEveryCut(t *testing.T) {
	for wire, whole := range map[remote.Wire]string{
		remote.WireChat: wholeChat, remote.WireResponses: wholeResponses, remote.WireAnthropic: wholeAnthropic, remote.WireGemini: wholeGemini,
	} {
		// What is needed of a body that the connection's end cuts: all of it but
		// the closing empty line, in a chat up to [DONE]. A body that ends by
		// itself is whole once the reply has said why it ended.
		needed := len(whole) - 2
		if wire == remote.WireChat {
			needed = strings.Index(whole, "[DONE]") + len("[DONE]")
		}
		said := map[remote.Wire]string{remote.WireChat: `"tool_calls"}`, remote.WireResponses: `"output_tokens":1}}}`, remote.WireAnthropic: `"output_tokens":9}}`, remote.WireGemini: `"thoughtsTokenCount":2}}`}[wire]
		for n := range len(whole) + 1 {
			for _, end := range []error{nil, io.ErrUnexpectedEOF} {
				calls, ended := 0, false
				var failed error
				for d, err := range canned(t, configFor(wire), whole[:n], end).Generate(t.Context(), hello()) {
					switch {
					case err != nil:
						failed = err
					case d.Kind == synapse.DeltaCall:
						calls++
						if !json.Valid([]byte(d.Call.Args)) {
							t.Fatalf("%s cut at %d: half a call, %+v", wire, n, d.Call)
						}
					case d.Kind == synapse.DeltaEnd:
						ended = true
					}
				}
				if ended == (failed != nil) {
					t.Fatalf("%s cut at %d: ended %v, error %v", wire, n, ended, failed)
				}
				switch {
				case failed != nil:
					wantKind(t, failed, synapse.ErrorStream)
					if end == nil && n > needed || end != nil && n >= len(whole) && wire != remote.WireGemini {
						t.Fatalf("%s of %d bytes: %v", wire, n, failed)
					}
				case end != nil && (n < needed || wire == remote.WireGemini):
					t.Fatalf("%s broke off at %d of %d and counts as whole", wire, n, len(whole))
				case !strings.Contains(whole[:n], said):
					t.Fatalf("%s ended at %d of %d and counts as whole", wire, n, len(whole))
				}
			}
		}
	}
}

// A body with bytes changed is still a reply or an error.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"null", "-1", "1e309", "{}", "[]", "\"", "\n\n", "data: ", "[DONE]", `"error":`, `"index":`, "\xff", "}", "999999999999"}
	wholes := []struct {
		wire remote.Wire
		body string
	}{{remote.WireChat, wholeChat}, {remote.WireResponses, wholeResponses}, {remote.WireAnthropic, wholeAnthropic}, {remote.WireGemini, wholeGemini}}
	for i := range 2000 {
		whole := wholes[i%len(wholes)]
		body := []byte(whole.body)
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(body))
			switch rng.IntN(3) {
			case 0:
				body[at] = byte(rng.IntN(256))
			case 1:
				body = slices.Delete(body, at, min(at+1+rng.IntN(12), len(body)))
			default:
				body = slices.Insert(body, at, []byte(pieces[rng.IntN(len(pieces))])...)
			}
		}
		checkStream(t, whole.wire, body, "text/event-stream", 200, false)
		if t.Failed() {
			t.Fatalf("%s body:\n%s", whole.wire, body)
		}
	}
}

// FuzzRequest sends whatever a model and a tool may have said before: on every
// wire the body must be JSON that holds one call, whose arguments are an object.
func FuzzRequest(f *testing.F) {
	f.Add("system", "text", "a", "x", `{"n":1}`, "result", true)
	f.Add("", "", "", "", "", "", false)
	f.Add("\xff", "\x00", "\"", "\\", `{"n":`, "\u2028", true)
	f.Add("s", "t", "functions.read:0", "x", "{}\n{}", " ", false)
	f.Fuzz(func(t *testing.T, system, said, id, name, args, result string, isError bool) {
		for _, wire := range []remote.Wire{remote.WireChat, remote.WireResponses, remote.WireAnthropic, remote.WireGemini} {
			var sent []byte
			cfg := configFor(wire)
			cfg.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				var err error
				if sent, err = io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(okFor(wire).body)), Request: r}, nil
			})}
			m, err := remote.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			req := &synapse.Request{Model: "m", System: system, Messages: []synapse.Message{
				synapse.UserText(said),
				{Role: synapse.RoleAssistant, Parts: []synapse.Part{thought(said), textPart(said), callPart(id, name, args)}},
				{Role: synapse.RoleTool, Parts: []synapse.Part{{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: id, Name: name, Text: result, IsError: isError}}}},
			}}
			if _, err := synapse.Collect(m.Generate(t.Context(), req), nil); err != nil {
				t.Fatal(err)
			}
			var body any
			if err := json.Unmarshal(sent, &body); err != nil {
				t.Fatalf("%s: body is no JSON: %v\n%s", wire, err, sent)
			}
			calls := 0
			each(body, func(m map[string]any) {
				var object any
				switch {
				case wire == remote.WireChat && m["function"] != nil:
					object = obj(m, "function")["arguments"]
				case wire == remote.WireResponses && m["type"] == "function_call":
					object = m["arguments"]
				case wire == remote.WireAnthropic && m["type"] == "tool_use":
					object = m["input"]
				case wire == remote.WireGemini && m["functionCall"] != nil:
					object = obj(m, "functionCall")["args"]
				default:
					return
				}
				calls++
				if text, ok := object.(string); ok && json.Unmarshal([]byte(text), &object) != nil {
					object = nil
				}
				if _, ok := object.(map[string]any); !ok {
					t.Errorf("%s: arguments %v: want a JSON object", wire, object)
				}
			})
			if calls != 1 {
				t.Errorf("%s: %d calls on the wire, want one: %s", wire, calls, sent)
			}
		}
	})
}

// each calls f with every object there is.
func each(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			each(e, f)
		}
	case map[string]any:
		f(v)
		for _, e := range v {
			each(e, f)
		}
	}
}
