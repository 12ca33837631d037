package remote_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

func reply(stop synapse.StopReason, parts ...synapse.Part) *synapse.Reply {
	return &synapse.Reply{
		Message: synapse.Message{Role: synapse.RoleAssistant, Parts: parts},
		Stop:    stop, Model: "m1-2026", Usage: synapse.Usage{Requests: 1},
	}
}

func textPart(s string) synapse.Part { return synapse.Part{Kind: synapse.PartText, Text: s} }
func thought(s string) synapse.Part  { return synapse.Part{Kind: synapse.PartReasoning, Text: s} }
func callPart(id, name, args string) synapse.Part {
	return synapse.Part{Kind: synapse.PartCall, Call: &synapse.ToolCall{ID: id, Name: name, Args: args}}
}

func TestDecode(t *testing.T) {
	tests := []struct {
		name string
		body string
		want *synapse.Reply
	}{
		{
			name: "text with usage",
			body: events(delta(`{"role":"assistant","content":""}`), text("Hel"), text("lo, 世界 🎉"), finish("stop"), usageChunk, done),
			want: func() *synapse.Reply {
				r := reply(synapse.StopEnd, textPart("Hello, 世界 🎉"))
				r.Usage = synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 64, ReasoningTokens: 7}
				return r
			}(),
		},
		{
			name: "carriage returns, comments, a byte order mark, several data lines",
			body: "\ufeff: warming up\r\n\r\ndata: " + strings.Replace(text("ab"), `,"choices"`, ",\r\ndata: \"choices\"", 1) + "\r\n\r\n: ping\r\n\r\nevent: chunk\r\nid: 7\r\ndata:" + finish("stop") + "\r\n\r\ndata: [DONE]\r\n\r\n",
			want: reply(synapse.StopEnd, textPart("ab")),
		},
		{
			name: "the last event without its empty line",
			body: events(text("ab")) + "data: " + finish("stop"),
			want: reply(synapse.StopEnd, textPart("ab")),
		},
		{
			name: "no [DONE], the end of the body is enough",
			body: events(text("ab"), finish("stop")),
			want: reply(synapse.StopEnd, textPart("ab")),
		},
		{
			name: "what comes after [DONE] does not count",
			body: events(text("ab"), finish("stop"), done, text("cd"), "no json"),
			want: reply(synapse.StopEnd, textPart("ab")),
		},
		{
			name: "parallel calls in pieces",
			body: events(text("Look."), call(0, "call_a", "read_file", ""), call(0, "", "", `{"pa`), call(0, "", "", `th":"a"}`),
				call(1, "call_b", "read_file", `{"path":`), call(1, "", "", `"b"}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, textPart("Look."), callPart("call_a", "read_file", `{"path":"a"}`), callPart("call_b", "read_file", `{"path":"b"}`)),
		},
		{
			name: "pieces of parallel calls mixed",
			body: events(call(0, "a", "x", `{"n":`), call(1, "b", "y", `{"n":`), call(0, "", "", `1}`), call(1, "", "", `2}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":1}`), callPart("b", "y", `{"n":2}`)),
		},
		{
			name: "calls that all have index 0",
			body: events(call(0, "a", "x", `{"n":1}`), call(0, "b", "x", `{"n":2}`), call(0, "", "", ``), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":1}`), callPart("b", "x", `{"n":2}`)),
		},
		{
			name: "one call whose every piece has another id",
			body: events(call(0, "a", "x", `{"n`), call(0, "b", "", `":1`), call(0, "c", "", `}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":1}`)),
		},
		{
			name: "calls without an index",
			body: events(delta(`{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{\"n\":"}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`),
				delta(`{"tool_calls":[{"id":"b","function":{"name":"x","arguments":"{}"}}]}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":1}`), callPart("b", "x", `{}`)),
		},
		{
			name: "an index that would fill the memory",
			body: events(call(2000000000, "a", "x", `{}`), call(-1, "b", "y", `{}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{}`), callPart("b", "y", `{}`)),
		},
		{
			name: "the id comes before the name",
			body: events(delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"arguments":""}}]}`), call(0, "", "x", ""), call(0, "", "", `{}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{}`)),
		},
		{
			name: "arguments as an object",
			body: events(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":{"n":[1,"é"]}}}]}`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":[1,"é"]}`)),
		},
		{
			name: "calls in a reply that says stop",
			body: events(call(0, "a", "x", `{}`), finish("stop"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{}`)),
		},
		{
			name: "malformed arguments go through as they are",
			body: events(call(0, "a", "x", `{"n": tru`), finish("tool_calls"), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n": tru`)),
		},
		{
			name: "cut off by the output limit within a call",
			body: events(call(0, "a", "write_file", `{"content":"half`), finish("length"), done),
			want: reply(synapse.StopLength, callPart("a", "write_file", `{"content":"half`)),
		},
		{
			name: "cut off by the output limit within text",
			body: events(text("half"), finish("length"), done),
			want: reply(synapse.StopLength, textPart("half")),
		},
		{
			name: "refused by a filter",
			body: events(text("I"), finish("content_filter"), done),
			want: reply(synapse.StopFilter, textPart("I")),
		},
		{
			name: "refused in the model's own words",
			body: events(delta(`{"refusal":"I can't."}`), finish("stop"), done),
			want: reply(synapse.StopFilter, textPart("I can't.")),
		},
		{
			name: "an unknown reason",
			body: events(text("x"), finish("moon_phase"), done),
			want: reply(synapse.StopUnknown, textPart("x")),
		},
		{
			name: "tool calls announced and none there",
			body: events(text("x"), finish("tool_calls"), done),
			want: reply(synapse.StopUnknown, textPart("x")),
		},
		{
			name: "[DONE] and no reason",
			body: events(text("x"), done),
			want: reply(synapse.StopUnknown, textPart("x")),
		},
		{
			name: "[DONE] and no reason after whole calls",
			body: events(call(0, "a", "x", `{"n":1}`), done),
			want: reply(synapse.StopCalls, callPart("a", "x", `{"n":1}`)),
		},
		{
			name: "reasoning_content, null where there is none",
			body: events(delta(`{"content":null,"reasoning_content":"Let me "}`), delta(`{"content":null,"reasoning_content":"think."}`),
				delta(`{"content":"42","reasoning_content":null}`), finish("stop"), done),
			want: reply(synapse.StopEnd, thought("Let me think."), textPart("42")),
		},
		{
			name: "reasoning and text in one chunk",
			body: events(delta(`{"content":"42","reasoning":"hm"}`), finish("stop"), done),
			want: reply(synapse.StopEnd, thought("hm"), textPart("42")),
		},
		{
			name: "content in typed parts",
			body: events(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"42"}]}`), finish("stop"), done),
			want: reply(synapse.StopEnd, thought("hm"), textPart("42")),
		},
		{
			name: "an error that is null is none",
			body: events(strings.Replace(text("ok"), `"object"`, `"error":null,"object"`, 1), finish("stop"), done),
			want: reply(synapse.StopEnd, textPart("ok")),
		},
		{
			name: "a second choice that nobody asked for",
			body: events(text("one"), strings.Replace(text("two"), `"index":0`, `"index":900000000`, 1), finish("stop"), done),
			want: reply(synapse.StopEnd, textPart("one")),
		},
		{
			name: "usage before the end, in running totals, without a total",
			body: events(`{"model":"m1-2026","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`,
				`{"model":"m1-2026","choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, finish("stop"), done),
			want: func() *synapse.Reply {
				r := reply(synapse.StopEnd, textPart("ab"))
				r.Usage.InputTokens, r.Usage.OutputTokens = 9, 2
				return r
			}(),
		},
		{
			name: "reasoning counted beside the completion",
			body: events(text("a"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}`, done),
			want: func() *synapse.Reply {
				r := reply(synapse.StopEnd, textPart("a"))
				r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.ReasoningTokens = 10, 105, 100
				return r
			}(),
		},
		{
			name: "counts that are no counts",
			body: events(text("a"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":-3,"completion_tokens":"many","total_tokens":1e300,"prompt_tokens_details":{"cached_tokens":12},"completion_tokens_details":null}}`, done),
			want: reply(synapse.StopEnd, textPart("a")),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// One byte a write puts a boundary at every awkward place there is;
			// the other sizes catch what depends on the size of the buffer.
			for _, pieces := range []int{1, 7, 0} {
				s := serve(t, always(answer{body: tt.body, pieces: pieces}))
				got, err := collect(t, s.open(remote.Config{}), hello())
				if err != nil {
					t.Fatalf("in pieces of %d: %v", pieces, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", pieces, diff)
				}
				s.Close()
			}
		})
	}
}

// Results are matched to calls by id, so every call of a reply needs one of
// its own.
func TestDecodeGivesEveryCallAnID(t *testing.T) {
	s := serve(t, always(answer{body: events(call(0, "", "x", `{}`), call(1, "same", "y", `{}`), call(2, "same", "z", `{}`), finish("tool_calls"), done)}))
	got, err := collect(t, s.open(remote.Config{}), hello())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range got.Message.Calls() {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("call %s has id %q, seen: %v", c.Name, c.ID, ids)
		}
		ids[c.ID] = true
	}
	if len(ids) != 3 || !ids["same"] {
		t.Errorf("ids %v: want three, one of them the server's own", ids)
	}
}

// A call is yielded once, whole, and not before the reply has ended.
func TestDecodeOrder(t *testing.T) {
	s := serve(t, always(answer{pieces: 3, body: events(delta(`{"reasoning_content":"r"}`), text("t"), call(0, "a", "x", `{"n":`), call(0, "", "", `1}`), finish("tool_calls"), usageChunk, done)}))
	var kinds []string
	_, err := synapse.Collect(s.open(remote.Config{}).Generate(within(t, 20*time.Second), hello()), func(d *synapse.Delta) {
		kinds = append(kinds, string(d.Kind))
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"reasoning", "text", "call", "end"}, kinds); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestDecodeResponses(t *testing.T) {
	ev := func(list ...string) string {
		var b strings.Builder
		for _, data := range list {
			var head struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(data), &head); err != nil {
				t.Fatal(err)
			}
			b.WriteString("event: " + head.Type + "\ndata: " + data + "\n\n")
		}
		return b.String()
	}
	const (
		created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"m1-2026","error":null}}`
		message   = `{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`
		began     = `{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"x","arguments":""}}`
		piece     = `{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"{\"n\":"}`
		ended     = `{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"x","arguments":"{\"n\":1}"}}`
		completed = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m1-2026","incomplete_details":null,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":120}}}`
		tooLong   = `{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","model":"m1-2026","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":100,"output_tokens":20}}}`
	)
	say := func(s string) string {
		return `{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","delta":"` + s + `"}`
	}
	full := synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 64, ReasoningTokens: 7}
	half := synapse.Usage{Requests: 1, InputTokens: 100, OutputTokens: 20}
	with := func(u synapse.Usage, r *synapse.Reply) *synapse.Reply { r.Usage = u; return r }

	tests := []struct {
		name string
		body string
		want *synapse.Reply
		kind synapse.ErrorKind
	}{
		{name: "text", body: ev(created, message, say("Hel"), say("lo"), completed), want: with(full, reply(synapse.StopEnd, textPart("Hello")))},
		{name: "call", body: ev(created, message, say("Look."), began, piece, ended, completed), want: with(full, reply(synapse.StopCalls, textPart("Look."), callPart("call_a", "x", `{"n":1}`)))},
		{name: "length within a call", body: ev(created, message, say("Look."), began, piece, tooLong), want: with(half, reply(synapse.StopLength, textPart("Look.")))},
		{name: "refusal", body: ev(created, message, `{"type":"response.refusal.delta","item_id":"msg_1","delta":"No."}`, completed), want: with(full, reply(synapse.StopFilter, textPart("No.")))},
		{name: "cut within a call", body: ev(created, began, piece), kind: synapse.ErrorStream},
		{name: "completed within a call", body: ev(created, began, piece, completed), kind: synapse.ErrorStream},
		{name: "a call that ends unbegun", body: ev(created, ended, completed), kind: synapse.ErrorMalformed},
		{name: "empty", body: "", kind: synapse.ErrorStream},
		{name: "failed", body: ev(created, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"boom"}}}`), kind: synapse.ErrorStream},
		{name: "failed by rate", body: ev(created, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}}`), kind: synapse.ErrorRateLimit},
		{name: "error event", body: ev(created, `{"type":"error","code":"context_length_exceeded","message":"too long","param":null}`), kind: synapse.ErrorContext},
		{name: "negative summary index", body: ev(created, `{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning"}}`, `{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":-1,"delta":"x"}`), kind: synapse.ErrorMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, pieces := range []int{1, 13, 0} {
				s := serve(t, always(answer{body: tt.body, pieces: pieces}))
				got, err := collect(t, s.open(remote.Config{Wire: remote.WireResponses}), hello())
				if tt.kind != "" {
					wantKind(t, err, tt.kind)
				} else if err != nil {
					t.Fatal(err)
				} else if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", pieces, diff)
				}
				s.Close()
			}
		})
	}
}

// A provider's own data about its reasoning comes back to it, and is nothing
// to any other.
func TestReasoningOpaque(t *testing.T) {
	s := serve(t, always(answer{body: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n" +
		events(`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"c2VjcmV0","summary":[]}}`,
			`{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Thinking."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"c2VjcmV0"}}`,
			`{"type":"response.output_text.delta","item_id":"m","output_index":1,"delta":"42"}`,
			`{"type":"response.completed","response":{"id":"r","model":"m1-2026"}}`)}))
	m := s.open(remote.Config{Wire: remote.WireResponses})
	got, err := collect(t, m, hello())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Message.Parts) != 2 || !strings.Contains(got.Message.Parts[0].Text, "Thinking.") || !strings.Contains(string(got.Message.Parts[0].Opaque), "c2VjcmV0") {
		t.Fatalf("reply %+v: want signed reasoning and text", got.Message.Parts)
	}
	req := hello()
	req.Messages = append(req.Messages, got.Message, synapse.UserText("Again"))
	if _, err := collect(t, m, req); err != nil {
		t.Fatalf("with its own reasoning in the history: %v", err)
	}
	req.Messages[1].Parts[0].Opaque = json.RawMessage(`{"somebody":{"type":"else","data":{}}}`)
	if _, err := collect(t, m, req); err != nil {
		t.Fatalf("with another provider's reasoning in the history: %v", err)
	}
}

func TestCost(t *testing.T) {
	stream := events(text("ok"), finish("stop"), usageChunk, done)
	usd := func(f float64) *float64 { return &f }
	priced := func(p remote.Price) func(string) (remote.Price, bool) {
		return func(model string) (remote.Price, bool) { return p, model == "m1" }
	}
	tests := []struct {
		name string
		cfg  remote.Config
		req  string
		want *float64
	}{
		{"nobody knows", remote.Config{}, "m1", nil},
		{"a local server is free", remote.Config{Provider: "ollama"}, "m1", usd(0)},
		{"what it passes on is not", remote.Config{Provider: "ollama"}, "gpt-oss:120b-cloud", nil},
		{"openai on loopback is a proxy of something", remote.Config{Provider: "openai", APIKey: "k"}, "m1", nil},
		// 36 fresh at 2, 64 from the cache at 0.5, 20 out at 10, of a million each.
		{"by price", remote.Config{Price: priced(remote.Price{Input: 2, Output: 10, CacheRead: 0.5})}, "m1", usd((36*2 + 64*0.5 + 20*10) / 1e6)},
		{"cache without a price of its own", remote.Config{Price: priced(remote.Price{Input: 2, Output: 10})}, "m1", usd((100*2 + 20*10) / 1e6)},
		{"a price for another model", remote.Config{Price: priced(remote.Price{Input: 2})}, "m2", nil},
		{"a price wins over local", remote.Config{Provider: "ollama", Price: priced(remote.Price{Output: 1e6})}, "m1", usd(20)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(answer{body: stream}))
			req := hello()
			req.Model = tt.req
			got, err := collect(t, s.open(tt.cfg), req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Usage.CostUSD); diff != "" {
				t.Errorf("cost (-want +got):\n%s", diff)
			}
		})
	}
}
