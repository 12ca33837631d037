package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// FuzzStream feeds whatever bytes a server may send to either wire: there must
// be a whole reply or one typed error, and an end.
func FuzzStream(f *testing.F) {
	for _, body := range []string{
		"", "\n\n", "data:", "data: [DONE]\n\n", ": hi\n\n", "<html>", "{}", "[]", "null", `{"error":{"message":"x","code":429}}`, `{"error":"x"}`,
		okStream,
		events(text("a"), call(0, "c", "x", `{"n":1}`), finish("tool_calls"), usageChunk, done),
		events(call(-5, "", "", "x"), call(1<<40, "c", "", "y"), finish("length")),
		events(delta(`{"content":[{"type":"text","text":"a"}],"reasoning_content":3,"tool_calls":[null,{}]}`), finish("stop")),
		events(`{"choices":null}`, `{"choices":[null]}`, `{"choices":[{"index":1e3}]}`),
		events(`{"choices":[{"delta":{"content":"a"},"finish_reason":"error"}],"error":{"code":"x"}}`),
		"event: error\ndata: boom\n\n", "error: {\"code\":500}\n\n",
		events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning"}}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs","summary_index":3,"delta":"x"}`, `{"type":"response.completed","response":{}}`),
		events(`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"x"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"c","name":"x","arguments":{"a":1}}}`,
			`{"type":"response.completed","response":{"usage":{"input_tokens":-1,"output_tokens":"x"}}}`),
		events(`{"type":"response.failed","response":{"error":null}}`), events(`{"type":"error"}`), events(`{"type":"response.output_text.delta","error":[1],"delta":5}`),
	} {
		f.Add([]byte(body), "text/event-stream", 200, false)
		f.Add([]byte(body), "application/json", 200, true)
	}
	f.Add([]byte(`{"error":{"message":null}}`), "text/html", 429, true)
	f.Add([]byte("\xff\xfe<p"), "", 302, true)

	f.Fuzz(checkStream)
}

// checkStream plays an answer to either wire and checks what must hold for
// any: a whole reply or one typed error, last.
func checkStream(t *testing.T, body []byte, contentType string, status int, small bool) {
	t.Helper()
	for _, wire := range []remote.Wire{remote.WireChat, remote.WireResponses} {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			var src io.Reader = bytes.NewReader(body)
			if small {
				src = iotest.OneByteReader(src)
			}
			return &http.Response{
				StatusCode: 200 + ((status-200)%400+400)%400, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(src),
			}, nil
		})}
		m, err := remote.New(remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1", HTTPClient: client, Wire: wire})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		after, ends := 0, 0
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
				if d.Call == nil || d.Call.ID == "" && wire == remote.WireChat || d.Call.Name == "" && wire == remote.WireChat {
					t.Errorf("call %+v", d.Call)
				}
			}
		}
		cancel()
		var typed *synapse.ProviderError
		if failed != nil && (!errors.As(failed, &typed) || typed.Kind == "" || strings.ContainsAny(typed.Message, "\n\x1b")) {
			t.Errorf("error %v (%T): want a ProviderError of one line", failed, failed)
		}
		if after > 0 || ends > 1 || (failed == nil) == (ends == 0) {
			t.Errorf("%d ends, error %v, %d after that: want one of the two, last", ends, failed, after)
		}
	}
}

// wholeChat and wholeResponses are replies with all there is to a reply.
var (
	wholeChat = events(delta(`{"role":"assistant","content":""}`), delta(`{"reasoning_content":"hm"}`), text("Look: 世界."), call(0, "a", "x", `{"n":`), call(0, "", "", `1}`),
		call(1, "b", "y", `{}`), finish("tool_calls"), usageChunk, done)
	wholeResponses = events(`{"type":"response.created","response":{"id":"r","model":"m1-2026"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"f","type":"function_call","call_id":"a","name":"x","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f","delta":"{\"n\":1}"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"f","type":"function_call","call_id":"a","name":"x","arguments":"{\"n\":1}"}}`,
		`{"type":"response.completed","response":{"id":"r","model":"m1-2026","usage":{"input_tokens":1,"output_tokens":1}}}`)
)

// canned returns a model whose provider sends the body, then ends as end says.
func canned(t *testing.T, wire remote.Wire, body string, end error) synapse.Model {
	t.Helper()
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var src io.Reader = strings.NewReader(body)
		if end != nil {
			src = io.MultiReader(src, iotest.ErrReader(end))
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(src), Request: r}, nil
	})}
	m, err := remote.New(remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1", HTTPClient: client, Wire: wire})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A reply that breaks off is an error at whatever byte it does, and the calls
// that came out before it are whole.
func TestEveryCut(t *testing.T) {
	for wire, whole := range map[remote.Wire]string{remote.WireChat: wholeChat, remote.WireResponses: wholeResponses} {
		// What is needed of the body: all of it but the closing empty line, and
		// in a chat up to the reason it ended with, if the body ends by itself.
		needed := len(whole) - 2
		if wire == remote.WireChat {
			needed = strings.Index(whole, "[DONE]") + len("[DONE]")
		}
		for n := range len(whole) + 1 {
			for _, end := range []error{nil, io.ErrUnexpectedEOF} {
				calls, ended := 0, false
				var failed error
				for d, err := range canned(t, wire, whole[:n], end).Generate(t.Context(), hello()) {
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
					if n >= len(whole) || n > needed && end == nil {
						t.Fatalf("%s of %d bytes: %v", wire, n, failed)
					}
				case end != nil && n < needed:
					t.Fatalf("%s broke off at %d of %d and counts as whole", wire, n, len(whole))
				case wire == remote.WireResponses && n < needed, wire == remote.WireChat && !strings.Contains(whole[:n], `"tool_calls"}`):
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
	for range 1000 {
		body := []byte(wholeChat)
		if rng.IntN(2) == 0 {
			body = []byte(wholeResponses)
		}
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
		checkStream(t, body, "text/event-stream", 200, false)
		if t.Failed() {
			t.Fatalf("body:\n%s", body)
		}
	}
}

// FuzzRequest sends whatever a model and a tool may have said before: the body
// must be JSON, and every call in it must carry JSON.
func FuzzRequest(f *testing.F) {
	f.Add("system", "text", "a", "x", `{"n":1}`, "result", true)
	f.Add("", "", "", "", "", "", false)
	f.Add("\xff", "\x00", "\"", "\\", `{"n":`, "\u2028", true)
	f.Fuzz(func(t *testing.T, system, said, id, name, args, result string, isError bool) {
		var sent []byte
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			var err error
			if sent, err = io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(okStream)), Request: r}, nil
		})}
		m, err := remote.New(remote.Config{Provider: "openaicompat", BaseURL: "http://127.0.0.1:9/v1", HTTPClient: client})
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
		var body struct {
			Messages []struct {
				Calls []struct {
					Function struct {
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(sent, &body); err != nil {
			t.Fatalf("body is no JSON: %v\n%s", err, sent)
		}
		calls := 0
		for _, m := range body.Messages {
			for _, c := range m.Calls {
				calls++
				var object map[string]any
				if err := json.Unmarshal([]byte(c.Function.Arguments), &object); err != nil || object == nil {
					t.Errorf("arguments %q: want a JSON object", c.Function.Arguments)
				}
			}
		}
		if calls != 1 {
			t.Errorf("%d calls on the wire, want one", calls)
		}
	})
}
