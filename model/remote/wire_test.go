package remote_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// dialect writes the events of one wire format by hand. What no recording
// holds (a busy provider, a broken connection, a reply that is nonsense) is
// made of these: it is synthetic, in the form that the providers document.
type dialect struct {
	cfg     remote.Config
	begin   string
	text    func(s string) string
	thought func(s, signature string) string
	call    func(id, name, args string) string
	half    string            // a call that breaks off in its arguments
	ends    map[string]string // by reason: end, calls, length, filter
	fail    func(kind, message string) string
	refusal func(kind, message string) string // the body of one
	wrong   []string                          // events of the wrong shape
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func dialects() map[remote.Wire]dialect {
	responsesUsage := `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":7}}`
	anthropicEnd := func(reason string) string {
		return "event: message_delta\n" + events(`{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":20,"output_tokens_details":{"thinking_tokens":7}}}`) +
			"event: message_stop\n" + events(`{"type":"message_stop"}`)
	}
	geminiEvent := func(parts, finish string) string {
		end := ""
		if finish != "" {
			end = `,"finishReason":"` + finish + `"`
		}
		return events(`{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + end + `,"index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":64,"candidatesTokenCount":13,"thoughtsTokenCount":7,"totalTokenCount":120},"modelVersion":"m1-2026"}`)
	}
	item := 0
	return map[remote.Wire]dialect{
		remote.WireChat: {
			cfg:     remote.Config{Provider: "openaicompat"},
			text:    func(s string) string { return events(text(s)) },
			thought: func(s, _ string) string { return events(delta(`{"reasoning_content":` + quote(s) + `}`)) },
			call: func(id, name, args string) string {
				item++
				return events(call(item, id, name, args[:len(args)/2]), call(item, "", "", args[len(args)/2:]))
			},
			half: events(call(0, "call_half", "x", `{"path":"/half`)),
			ends: map[string]string{"end": events(finish("stop"), usageChunk, done), "calls": events(finish("tool_calls"), usageChunk, done),
				"length": events(finish("length"), usageChunk, done), "filter": events(finish("content_filter"), usageChunk, done)},
			fail:    func(kind, message string) string { return events(openAIError(message, kind, "")) },
			refusal: func(kind, message string) string { return openAIError(message, kind, "") },
			wrong:   []string{`{"choices":"none"}`, `{"choices":[7]}`, `{"choices":[{"delta":[]}]}`, `[1]`, `"text"`},
		},
		remote.WireResponses: {
			cfg:   remote.Config{Provider: "openai", Wire: remote.WireResponses},
			begin: events(`{"type":"response.created","response":{"id":"r","model":"m1-2026","error":null}}`),
			text: func(s string) string {
				return events(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":` + quote(s) + `}`)
			},
			thought: func(s, signature string) string {
				return events(`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning"}}`,
					`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":`+quote(s)+`}`,
					`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":`+quote(signature)+`,"summary":[{"type":"summary_text","text":`+quote(s)+`}]}}`)
			},
			call: func(id, name, args string) string {
				item++
				return events(fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"id":"fc","type":"function_call","call_id":%q,"name":%q,"arguments":""}}`, item, id, name),
					fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"id":"fc","type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%s}}`, item, id, name, quote(args)))
			},
			half: events(`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc","type":"function_call","call_id":"call_half","name":"x","arguments":""}}`,
				`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc","delta":"{\"path\":\"/half"}`),
			ends: map[string]string{
				"end":    events(`{"type":"response.completed","response":{"id":"r","model":"m1-2026",` + responsesUsage + `}}`),
				"calls":  events(`{"type":"response.completed","response":{"id":"r","model":"m1-2026",` + responsesUsage + `}}`),
				"length": events(`{"type":"response.incomplete","response":{"id":"r","model":"m1-2026","incomplete_details":{"reason":"max_output_tokens"},` + responsesUsage + `}}`),
				"filter": events(`{"type":"response.incomplete","response":{"id":"r","model":"m1-2026","incomplete_details":{"reason":"content_filter"},` + responsesUsage + `}}`),
			},
			fail: func(kind, message string) string {
				return events(`{"type":"error","code":` + quote(kind) + `,"message":` + quote(message) + `,"param":null}`)
			},
			refusal: func(kind, message string) string { return openAIError(message, kind, "") },
			wrong:   []string{`{"type":5}`, `{"type":"response.output_item.done","item":"x"}`, `{"type":"response.completed","response":[]}`, `[1]`, `"text"`},
		},
		remote.WireAnthropic: {
			cfg: remote.Config{Provider: "anthropic"},
			begin: "event: message_start\n" + events(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m1-2026","content":[],"stop_reason":null,"usage":{"input_tokens":30,"cache_creation_input_tokens":6,"cache_read_input_tokens":64,"output_tokens":1}}}`) +
				"event: ping\n" + events(`{"type": "ping"}`),
			text: func(s string) string {
				item++
				return events(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, item),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`, item, quote(s)),
					fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, item))
			},
			thought: func(s, signature string) string {
				item++
				return events(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"thinking","thinking":"","signature":""}}`, item),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"thinking_delta","thinking":%s}}`, item, quote(s)),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, item, quote(signature)),
					fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, item))
			},
			call: func(id, name, args string) string {
				item++
				return events(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, item, id, name),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":""}}`, item),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, item, quote(args[:len(args)/2])),
					fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, item, quote(args[len(args)/2:])),
					fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, item))
			},
			half: events(`{"type":"content_block_start","index":900,"content_block":{"type":"tool_use","id":"call_half","name":"x","input":{}}}`,
				`{"type":"content_block_delta","index":900,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"/half"}}`),
			ends: map[string]string{"end": anthropicEnd("end_turn"), "calls": anthropicEnd("tool_use"), "length": anthropicEnd("max_tokens"), "filter": anthropicEnd("refusal")},
			fail: func(kind, message string) string {
				return "event: error\n" + events(`{"type":"error","error":{"type":`+quote(kind)+`,"message":`+quote(message)+`}}`)
			},
			refusal: func(kind, message string) string {
				return `{"type":"error","error":{"type":` + quote(kind) + `,"message":` + quote(message) + `},"request_id":"req_1"}`
			},
			wrong: []string{`{"type":"content_block_start","index":"one"}`, `{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}`,
				`{"type":"message_start","message":[]}`, `[1]`, `"text"`},
		},
		remote.WireGemini: {
			cfg:  remote.Config{Provider: "gemini"},
			text: func(s string) string { return geminiEvent(`{"text":`+quote(s)+`}`, "") },
			thought: func(s, signature string) string {
				return geminiEvent(`{"text":`+quote(s)+`,"thought":true},{"text":"","thoughtSignature":`+quote(signature)+`}`, "")
			},
			call: func(id, name, args string) string {
				return geminiEvent(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, id, name, args), "")
			},
			half: `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":{"path":"/half`,
			ends: map[string]string{"end": geminiEvent(`{"text":""}`, "STOP"), "calls": geminiEvent(`{"text":""}`, "STOP"),
				"length": geminiEvent(`{"text":""}`, "MAX_TOKENS"), "filter": geminiEvent("", "SAFETY")},
			fail: func(kind, message string) string {
				return events(`{"error":{"code":503,"message":` + quote(message) + `,"status":` + quote(kind) + `}}`)
			},
			refusal: func(kind, message string) string {
				return `{"error":{"code":400,"message":` + quote(message) + `,"status":` + quote(kind) + `}}`
			},
			wrong: []string{`{"candidates":7}`, `{"candidates":[{"content":{"parts":{}}}]}`, `[1]`, `"text"`},
		},
	}
}

// open returns a model that asks the server in the dialect.
func (d dialect) open(s *server) synapse.Model { return s.open(d.cfg) }

// The same reply is the same, whatever the wire.
func TestEveryWireSaysTheSame(t *testing.T) {
	const odd = "Look: 世界 🎉 \"quoted\" <b>&\u2028"
	usage := synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 64, ReasoningTokens: 7}
	for wire, d := range dialects() {
		for _, pieces := range []int{1, 5, 0} {
			t.Run(fmt.Sprintf("%s in pieces of %d", wire, pieces), func(t *testing.T) {
				body := d.begin + d.thought("hm", "c2lnbmVk") + d.text(odd) + d.call("call_a", "read_file", `{"path":"ä/1"}`) +
					d.call("call_b", "read_file", `{"n":9007199254740993}`) + d.ends["calls"]
				s := serve(t, always(answer{body: body, pieces: pieces}))
				got, err := collect(t, d.open(s), hello())
				if err != nil {
					t.Fatal(err)
				}
				for i := range got.Message.Parts {
					p := &got.Message.Parts[i]
					if p.Kind == synapse.PartReasoning && strings.Contains(string(p.Opaque), "c2lnbmVk") == (wire == remote.WireChat) {
						t.Errorf("reasoning with %s", p.Opaque)
					}
					p.Opaque = nil
				}
				want := reply(synapse.StopCalls, thought("hm"), textPart(odd), callPart("call_a", "read_file", `{"path":"ä/1"}`), callPart("call_b", "read_file", `{"n":9007199254740993}`))
				want.Usage = usage
				if wire == remote.WireAnthropic {
					want.Usage.CacheWriteTokens = 6
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestEveryWireStops(t *testing.T) {
	for wire, d := range dialects() {
		for name, tt := range map[string]struct {
			body string
			want synapse.StopReason
		}{
			"end":    {d.text("x") + d.ends["end"], synapse.StopEnd},
			"calls":  {d.call("a", "x", `{"n":1}`) + d.ends["calls"], synapse.StopCalls},
			"length": {d.text("x") + d.ends["length"], synapse.StopLength},
			"filter": {d.text("x") + d.ends["filter"], synapse.StopFilter},
			// A reply that ends its turn and still carries calls has them run.
			"end with calls": {d.call("a", "x", `{"n":1}`) + d.ends["end"], synapse.StopCalls},
			"calls without":  {d.text("x") + d.ends["calls"], map[bool]synapse.StopReason{true: synapse.StopUnknown, false: synapse.StopEnd}[wire == remote.WireChat || wire == remote.WireAnthropic]},
		} {
			t.Run(string(wire)+" "+name, func(t *testing.T) {
				s := serve(t, always(answer{body: d.begin + tt.body}))
				got, err := collect(t, d.open(s), hello())
				if err != nil {
					t.Fatal(err)
				}
				if got.Stop != tt.want {
					t.Errorf("stop %s, want %s", got.Stop, tt.want)
				}
			})
		}
	}
}

// What no provider has been recorded doing. Every failure is typed, comes once
// and last, no call comes out before it, and the request goes out once.
func TestEveryWireFails(t *testing.T) {
	jsonType := map[string]string{"Content-Type": "application/json"}
	html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
	type failure struct {
		name   string
		answer answer
		kind   synapse.ErrorKind
		after  time.Duration
		says   string
	}
	for wire, d := range dialects() {
		refuse := func(status int, kind, message string, more ...string) answer {
			a := answer{status: status, header: map[string]string{"Content-Type": "application/json"}, body: d.refusal(kind, message)}
			for i := 0; i < len(more); i += 2 {
				a.header[more[i]] = more[i+1]
			}
			return a
		}
		said := d.begin + d.text("Let me look.")
		whole := d.call("call_a", "x", `{"n":1}`)
		tests := []failure{
			{"429", refuse(429, "rate_limit_error", "slow down", "Retry-After", "7"), synapse.ErrorRateLimit, 7 * time.Second, "slow down"},
			{"529", refuse(529, "overloaded_error", "Overloaded", "Retry-After", "2"), synapse.ErrorOverloaded, 2 * time.Second, "Overloaded"},
			{"503", refuse(503, "UNAVAILABLE", "busy"), synapse.ErrorOverloaded, 0, "busy"},
			{"500", refuse(500, "api_error", "boom"), synapse.ErrorServer, 0, "boom"},
			{"401", refuse(401, "authentication_error", "invalid x-api-key"), synapse.ErrorAuth, 0, "invalid"},
			{"403", refuse(403, "permission_error", "not yours"), synapse.ErrorAuth, 0, ""},
			{"404", refuse(404, "not_found_error", "model: m1"), synapse.ErrorNotFound, 0, "model: m1"},
			{"400", refuse(400, "invalid_request_error", "messages: bad"), synapse.ErrorRequest, 0, "messages: bad"},
			{"413", refuse(413, "request_too_large", "Request exceeds the maximum size"), synapse.ErrorContext, 0, ""},
			{"too long, Anthropic", refuse(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), synapse.ErrorContext, 0, "210000"},
			{"too long together", refuse(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length"), synapse.ErrorContext, 0, ""},
			{"too long, Gemini", refuse(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), synapse.ErrorContext, 0, ""},
			{"too long, OpenAI", refuse(400, "invalid_request_error", "Your input exceeds the context window of this model."), synapse.ErrorContext, 0, ""},
			{"page with 502", answer{status: 502, header: html, body: "<html><h1>502 Bad Gateway</h1></html>"}, synapse.ErrorServer, 0, "502 Bad Gateway"},
			{"page with 200", answer{header: html, body: "<!doctype html><title>Log in</title>"}, synapse.ErrorMalformed, 0, "text/html: Log in"},
			{"JSON with 200", answer{header: jsonType, body: `{"id":"x","choices":[]}`}, synapse.ErrorMalformed, 0, "application/json"},
			{"nothing", answer{header: jsonType}, synapse.ErrorStream, 0, "empty"},
			{"an empty stream", answer{}, synapse.ErrorStream, 0, "empty"},
			{"a stream of comments", answer{body: ": a\n\n: b\n\n"}, synapse.ErrorStream, 0, "empty"},
			{"dropped", answer{drop: true}, synapse.ErrorNetwork, 0, ""},
			{"no JSON", answer{body: said + events("hello")}, synapse.ErrorMalformed, 0, ""},
			{"half JSON", answer{body: said + events(`{"type":"content_block_delta","candidates":[`)}, synapse.ErrorMalformed, 0, ""},
			{"cut within text", answer{body: said, cut: true}, synapse.ErrorStream, 0, ""},
			{"ended within text", answer{body: said}, synapse.ErrorStream, 0, ""},
			{"cut in a call's arguments", answer{body: said + d.half, cut: true}, synapse.ErrorStream, 0, ""},
			{"ended in a call's arguments", answer{body: said + d.half}, synapse.ErrorStream, 0, ""},
			{"cut in the second call", answer{body: said + whole + d.half, cut: true}, synapse.ErrorStream, 0, ""},
			{"overloaded mid-stream", answer{body: said + d.fail("overloaded_error", "Overloaded")}, synapse.ErrorOverloaded, 0, "Overloaded"},
			{"a call without a name", answer{body: said + d.call("call_a", "", `{"n":1}`) + d.ends["calls"]}, synapse.ErrorMalformed, 0, "no name"},
		}
		if wire != remote.WireGemini { // whose events carry a status as well, which decides
			tests = append(tests,
				failure{"rate limit mid-stream", answer{body: said + d.fail("rate_limit_error", "slow down")}, synapse.ErrorRateLimit, 0, "slow down"},
				failure{"failure mid-stream", answer{body: said + d.fail("api_error", "boom")}, synapse.ErrorStream, 0, "boom"},
				failure{"bad request mid-stream", answer{body: said + d.fail("invalid_request_error", "no")}, synapse.ErrorRequest, 0, "no"},
				failure{"ended within a call, by its own account", answer{body: said + d.half + d.ends["calls"]}, synapse.ErrorStream, 0, ""},
			)
			if wire == remote.WireChat { // there the reply is what says that a call is whole
				tests = tests[:len(tests)-1]
			}
		}
		for i, wrong := range d.wrong {
			tests = append(tests, failure{fmt.Sprintf("wrong shape %d", i), answer{body: said + events(wrong)}, synapse.ErrorMalformed, 0, ""})
		}
		for _, tt := range tests {
			t.Run(string(wire)+" "+tt.name, func(t *testing.T) {
				s := serve(t, always(tt.answer))
				calls, ends, after := 0, 0, 0
				var failed error
				for delta, err := range d.open(s).Generate(within(t, 20*time.Second), hello()) {
					if failed != nil {
						after++
					}
					switch {
					case err != nil:
						failed = err
					case delta.Kind == synapse.DeltaCall && !json.Valid([]byte(delta.Call.Args)):
						t.Errorf("half a call: %+v", delta.Call)
					case delta.Kind == synapse.DeltaCall && wire != remote.WireResponses:
						calls++
					case delta.Kind == synapse.DeltaEnd:
						ends++
					}
				}
				got := wantKind(t, failed, tt.kind)
				if got.RetryAfter != tt.after {
					t.Errorf("retry after %v, want %v", got.RetryAfter, tt.after)
				}
				if !strings.Contains(got.Message, tt.says) {
					t.Errorf("message %q: want it to say %q", got.Message, tt.says)
				}
				if calls+ends+after > 0 {
					t.Errorf("%d calls, %d ends, %d after the error: want none", calls, ends, after)
				}
				if requests, _ := s.seen(); len(requests) != 1 {
					t.Errorf("%d requests: want one, retries are not this layer's", len(requests))
				}
			})
		}
	}
}

// What a limit cuts off is said to be cut off, and no half call is whole.
func TestEveryWireCutOff(t *testing.T) {
	for wire, d := range dialects() {
		if wire == remote.WireGemini {
			continue // its calls come whole or not at all
		}
		closed := ""
		if wire == remote.WireAnthropic { // the block closes all the same
			closed = events(`{"type":"content_block_stop","index":900}`)
		}
		s := serve(t, always(answer{body: d.begin + d.text("x") + d.half + closed + d.ends["length"]}))
		got, err := collect(t, d.open(s), hello())
		if err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		if got.Stop != synapse.StopLength {
			t.Errorf("%s: stop %s", wire, got.Stop)
		}
		for _, c := range got.Message.Calls() {
			if json.Valid([]byte(c.Args)) {
				t.Errorf("%s: the half call %q looks whole", wire, c.Args)
			}
		}
	}
}

func TestEveryWireTakesLargeArguments(t *testing.T) {
	args := `{"content":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`
	for wire, d := range dialects() {
		s := serve(t, always(answer{body: d.begin + d.call("call_a", "write_file", args) + d.ends["calls"], pieces: 8191}))
		got, err := collect(t, d.open(s), hello())
		if err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		if calls := got.Message.Calls(); len(calls) != 1 || calls[0].Args != args {
			t.Errorf("%s: %d calls", wire, len(calls))
		}
	}
}

// An event without an end must not fill the memory.
func TestEveryWireBoundsAnEvent(t *testing.T) {
	for wire := range dialects() {
		client := canned(t, configFor(wire), "data: "+strings.Repeat("x", 40<<20), nil)
		_, err := synapse.Collect(client.Generate(t.Context(), hello()), nil)
		if got := wantKind(t, err, synapse.ErrorMalformed); !strings.Contains(got.Message, "32 MiB") {
			t.Errorf("%s: %v", wire, got)
		}
	}
}

// Counts that are no counts, and fields of another type, are not worth an answer.
func TestEveryWireForgivesCounts(t *testing.T) {
	bodies := map[remote.Wire]string{
		remote.WireChat: events(text("ok"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":-1,"prompt_tokens_details":7,"cost":{"total":1}}}`, done),
		remote.WireResponses: events(`{"type":"response.output_text.delta","delta":"ok"}`,
			`{"type":"response.completed","response":{"model":7,"incomplete_details":{"reason":false},"usage":{"input_tokens":-1,"output_tokens":"x","input_tokens_details":[]}}}`),
		remote.WireAnthropic: events(`{"type":"message_start","message":{"model":null,"usage":[]}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1e300,"input_tokens":null,"output_tokens_details":"x"}}`),
		remote.WireGemini: events(`{"candidates":[{"content":{"parts":[{"text":"ok","thought":"no"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":{},"thoughtsTokenCount":-4},"modelVersion":3}`),
	}
	for wire, d := range dialects() {
		s := serve(t, always(answer{body: bodies[wire]}))
		got, err := collect(t, d.open(s), hello())
		if err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		if u := got.Usage; got.Message.Text() != "ok" || u.InputTokens != 0 || u.OutputTokens != 0 || u.ReasoningTokens != 0 || u.CostUSD != nil {
			t.Errorf("%s: %q, %+v", wire, got.Message.Text(), got.Usage)
		}
	}
}

// A connection that breaks while the server still holds the reply is left.
func TestEveryWireCanBeLeft(t *testing.T) {
	for wire, d := range dialects() {
		s := serve(t, always(answer{body: d.begin + d.text("one"), hold: true}))
		for delta, err := range d.open(s).Generate(t.Context(), hello()) {
			if err != nil || delta.Text != "one" {
				t.Fatalf("%s: %+v, %v", wire, delta, err)
			}
			break
		}
		s.left()
	}
}
