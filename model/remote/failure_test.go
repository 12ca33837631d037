package remote_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

func wantKind(t *testing.T, err error, kind synapse.ErrorKind) *synapse.ProviderError {
	t.Helper()
	var typed *synapse.ProviderError
	if !errors.As(err, &typed) {
		t.Fatalf("error %v (%T): want a ProviderError of kind %s", err, err, kind)
	}
	if typed.Kind != kind {
		t.Fatalf("error %v: kind %s, want %s", err, typed.Kind, kind)
	}
	if typed.Provider == "" || typed.Model == "" || typed.Message == "" {
		t.Errorf("error %+v: want provider, model and message", typed)
	}
	if strings.ContainsAny(typed.Error(), "\n\r\x1b") {
		t.Errorf("error %q: want one line without control characters", typed.Error())
	}
	return typed
}

func openAIError(message, kind, code string) string {
	return `{"error":{"message":"` + message + `","type":"` + kind + `","param":null,"code":"` + code + `"}}`
}

func TestFailures(t *testing.T) {
	jsonType := map[string]string{"Content-Type": "application/json"}
	with := func(k, v string) map[string]string {
		return map[string]string{"Content-Type": "application/json", k: v}
	}
	html := map[string]string{"Content-Type": "text/html; charset=utf-8"}
	tests := []struct {
		name   string
		answer answer
		kind   synapse.ErrorKind
		status int
		after  time.Duration
		says   string
	}{
		{name: "wrong key", answer: answer{status: 401, header: jsonType, body: openAIError("Incorrect API key provided", "invalid_request_error", "invalid_api_key")}, kind: synapse.ErrorAuth, status: 401, says: "Incorrect API key"},
		{name: "not allowed", answer: answer{status: 403, header: jsonType, body: openAIError("no access to this model", "permission_error", "")}, kind: synapse.ErrorAuth, status: 403},
		{name: "nothing left to pay with", answer: answer{status: 402, header: jsonType, body: openAIError("Insufficient Balance", "unknown_error", "invalid_request_error")}, kind: synapse.ErrorAuth, status: 402},
		{name: "quota used up, which no wait will mend", answer: answer{status: 429, header: jsonType, body: openAIError("You exceeded your current quota", "insufficient_quota", "insufficient_quota")}, kind: synapse.ErrorAuth, status: 429},
		{name: "bad request", answer: answer{status: 400, header: jsonType, body: openAIError("Unsupported value: 'none'", "invalid_request_error", "unsupported_value")}, kind: synapse.ErrorRequest, status: 400, says: "Unsupported value"},
		{name: "unknown model", answer: answer{status: 404, header: jsonType, body: openAIError("The model does not exist", "invalid_request_error", "model_not_found")}, kind: synapse.ErrorNotFound, status: 404},
		{name: "wrong address", answer: answer{status: 404, header: html, body: "<html><head><title>404 Not Found</title></head><body>nginx</body></html>"}, kind: synapse.ErrorNotFound, status: 404, says: "404 Not Found nginx"},
		{name: "validation", answer: answer{status: 422, header: jsonType, body: `{"detail":[{"loc":["body","tools"],"msg":"extra fields not permitted"}]}`}, kind: synapse.ErrorRequest, status: 422, says: "extra fields"},
		{name: "detail as text", answer: answer{status: 400, header: jsonType, body: `{"detail":"no such thing"}`}, kind: synapse.ErrorRequest, status: 400, says: "no such thing"},
		{name: "too long, by code", answer: answer{status: 400, header: jsonType, body: openAIError("This is more than I can read", "invalid_request_error", "context_length_exceeded")}, kind: synapse.ErrorContext, status: 400},
		{name: "too long, by words", answer: answer{status: 400, header: jsonType, body: openAIError("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "invalid_request_error", "")}, kind: synapse.ErrorContext, status: 400},
		{name: "too long, llama.cpp", answer: answer{status: 400, header: jsonType, body: `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`}, kind: synapse.ErrorContext, status: 400},
		{name: "too large", answer: answer{status: 413, body: "Request Entity Too Large"}, kind: synapse.ErrorContext, status: 413},
		{name: "rate limit, seconds", answer: answer{status: 429, header: with("Retry-After", "7"), body: openAIError("slow down", "requests", "rate_limit_exceeded")}, kind: synapse.ErrorRateLimit, status: 429, after: 7 * time.Second},
		{name: "rate limit, a fraction", answer: answer{status: 429, header: with("Retry-After", "0.25"), body: `{}`}, kind: synapse.ErrorRateLimit, status: 429, after: 250 * time.Millisecond},
		{name: "rate limit, milliseconds", answer: answer{status: 429, header: with("Retry-After-Ms", "1500"), body: `{}`}, kind: synapse.ErrorRateLimit, status: 429, after: 1500 * time.Millisecond},
		{name: "rate limit, a date against the server's clock", answer: answer{status: 429, header: map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}}, kind: synapse.ErrorRateLimit, status: 429, after: 30 * time.Second},
		{name: "rate limit, a date gone by", answer: answer{status: 429, header: map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:27:00 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}}, kind: synapse.ErrorRateLimit, status: 429},
		{name: "rate limit, no number", answer: answer{status: 429, header: with("Retry-After", "-5")}, kind: synapse.ErrorRateLimit, status: 429},
		{name: "rate limit, absurd", answer: answer{status: 429, header: with("Retry-After", "1e300")}, kind: synapse.ErrorRateLimit, status: 429, after: 100 * 365 * 24 * time.Hour},
		{name: "overloaded", answer: answer{status: 503, header: with("Retry-After", "2"), body: openAIError("The engine is overloaded", "server_error", "")}, kind: synapse.ErrorOverloaded, status: 503, after: 2 * time.Second},
		{name: "overloaded, 529", answer: answer{status: 529, header: jsonType, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, kind: synapse.ErrorOverloaded, status: 529, says: "Overloaded"},
		{name: "server", answer: answer{status: 500, header: jsonType, body: openAIError("boom", "server_error", "")}, kind: synapse.ErrorServer, status: 500, says: "boom"},
		{name: "gateway page", answer: answer{status: 502, header: html, body: "<html>\n<body>\x1b[31m<h1>502   Bad Gateway</h1></body></html>"}, kind: synapse.ErrorServer, status: 502, says: "502 Bad Gateway"},
		{name: "server without a word", answer: answer{status: 504}, kind: synapse.ErrorServer, status: 504, says: "gateway timeout"},
		{name: "timeout of the request", answer: answer{status: 408}, kind: synapse.ErrorServer, status: 408},
		{name: "no content", answer: answer{status: 204}, kind: synapse.ErrorMalformed, status: 204},
		{name: "redirect to nowhere", answer: answer{status: 304}, kind: synapse.ErrorMalformed, status: 304},
		{name: "dropped before any byte", answer: answer{drop: true}, kind: synapse.ErrorNetwork},

		{name: "HTML with 200", answer: answer{header: html, body: "<!doctype html><html><title>Log in</title></html>"}, kind: synapse.ErrorMalformed, status: 200, says: "text/html: Log in"},
		{name: "JSON with 200", answer: answer{header: jsonType, body: `{"id":"x","object":"chat.completion","choices":[]}`}, kind: synapse.ErrorMalformed, status: 200, says: "application/json"},
		{name: "an error with 200", answer: answer{header: jsonType, body: openAIError("slow down", "rate_limit_error", "")}, kind: synapse.ErrorRateLimit},
		{name: "nothing with 200", answer: answer{header: jsonType}, kind: synapse.ErrorStream, status: 200, says: "empty"},
		{name: "an empty stream", answer: answer{}, kind: synapse.ErrorStream, says: "empty"},
		{name: "a stream of [DONE]", answer: answer{body: events(done)}, kind: synapse.ErrorStream, says: "empty"},
		{name: "a stream of comments", answer: answer{body: ": a\n\n: b\n\n"}, kind: synapse.ErrorStream, says: "empty"},
		{name: "bad JSON", answer: answer{body: events(text("a"), `{"choices":[`, finish("stop"), done)}, kind: synapse.ErrorMalformed},
		{name: "JSON of another shape", answer: answer{body: events(`{"choices":{"0":"a"}}`, done)}, kind: synapse.ErrorMalformed},
		{name: "not even JSON", answer: answer{body: events("hello", done)}, kind: synapse.ErrorMalformed},
		{name: "a call without a name", answer: answer{body: events(call(0, "a", "", `{}`), finish("tool_calls"), done)}, kind: synapse.ErrorMalformed},

		{name: "cut within text", answer: answer{body: events(text("a"), text("b")), cut: true}, kind: synapse.ErrorStream},
		{name: "cut within an event", answer: answer{body: events(text("a")) + `data: {"choi`, cut: true}, kind: synapse.ErrorStream},
		{name: "ended within an event", answer: answer{body: events(text("a")) + `data: {"choi`}, kind: synapse.ErrorStream},
		{name: "ended within text", answer: answer{body: events(text("a"))}, kind: synapse.ErrorStream},
		{name: "ended within a call", answer: answer{body: events(call(0, "a", "x", `{"path":"/`))}, kind: synapse.ErrorStream},
		{name: "ended after a call that looks whole", answer: answer{body: events(call(0, "a", "x", `{"path":"/"}`))}, kind: synapse.ErrorStream},
		{name: "[DONE] within a call", answer: answer{body: events(call(0, "a", "x", `{"path":"/`), done)}, kind: synapse.ErrorStream},
		{name: "[DONE] after nothing but an empty chunk", answer: answer{body: events(delta(`{"role":"assistant","content":""}`), done)}, kind: synapse.ErrorStream},
		{name: "error event", answer: answer{body: events(text("a"), openAIError("boom", "server_error", ""))}, kind: synapse.ErrorStream, says: "boom"},
		{name: "error event as text", answer: answer{body: events(text("a"), `{"error":"boom"}`)}, kind: synapse.ErrorStream, says: "boom"},
		{name: "error event by name", answer: answer{body: events(text("a")) + "event: error\ndata: boom\n\n"}, kind: synapse.ErrorStream, says: "boom"},
		{name: "error event of llama.cpp", answer: answer{body: events(text("a")) + "error: {\"code\":500,\"message\":\"boom\",\"type\":\"server_error\"}\n\n"}, kind: synapse.ErrorStream, says: "boom"},
		{name: "error event too long", answer: answer{body: events(openAIError("too long", "invalid_request_error", "context_length_exceeded"))}, kind: synapse.ErrorContext},
		{name: "error event overloaded", answer: answer{body: events(text("a"), openAIError("busy", "overloaded_error", ""))}, kind: synapse.ErrorOverloaded},
		{name: "error event with a status", answer: answer{body: events(text("a"), `{"error":{"message":"upstream","code":429}}`)}, kind: synapse.ErrorRateLimit},
		{name: "error beside choices", answer: answer{body: events(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"upstream"}}`)}, kind: synapse.ErrorStream, says: "upstream"},
		{name: "finish reason error", answer: answer{body: events(text("a"), finish("error"), done)}, kind: synapse.ErrorStream},
		{name: "finish reason out of resources", answer: answer{body: events(text("a"), finish("insufficient_system_resource"), done)}, kind: synapse.ErrorOverloaded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.answer))
			calls, ended := 0, false
			_, err := synapse.Collect(s.open(remote.Config{}).Generate(within(t, 20*time.Second), hello()), func(d *synapse.Delta) {
				calls += len(callsOf(d))
				ended = ended || d.Kind == synapse.DeltaEnd
			})
			got := wantKind(t, err, tt.kind)
			if got.Status != tt.status {
				t.Errorf("status %d, want %d", got.Status, tt.status)
			}
			if got.RetryAfter != tt.after {
				t.Errorf("retry after %v, want %v", got.RetryAfter, tt.after)
			}
			if !strings.Contains(got.Message, tt.says) {
				t.Errorf("message %q: want it to say %q", got.Message, tt.says)
			}
			if calls > 0 || ended {
				t.Errorf("%d calls, ended %v: want neither before an error", calls, ended)
			}
			if requests, _ := s.seen(); len(requests) != 1 {
				t.Errorf("%d requests: want one, retries are not this layer's", len(requests))
			}
		})
	}
}

func callsOf(d *synapse.Delta) []*synapse.ToolCall {
	if d.Kind != synapse.DeltaCall {
		return nil
	}
	return []*synapse.ToolCall{d.Call}
}

// Servers and proxies mislabel streams; what it is decides.
func TestMislabelledStream(t *testing.T) {
	for _, a := range []answer{{noType: true}, {header: map[string]string{"Content-Type": "text/plain"}}, {header: map[string]string{"Content-Type": "application/json"}}} {
		a.body, a.pieces = ": hi\n\n"+events(text("ok"), finish("stop"), done), 1
		s := serve(t, always(a))
		got, err := collect(t, s.open(remote.Config{}), hello())
		if err != nil {
			t.Fatalf("%v: %v", a.header, err)
		}
		if got.Message.Text() != "ok" {
			t.Errorf("%v: text %q", a.header, got.Message.Text())
		}
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	m, err := remote.New(remote.Config{Provider: "llamacpp", BaseURL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	_, err = collect(t, m, hello())
	got := wantKind(t, err, synapse.ErrorNetwork)
	if !strings.Contains(got.Message, address) {
		t.Errorf("message %q: want it to name %s", got.Message, address)
	}
	if !got.Retryable() {
		t.Error("want it to be worth another try")
	}
}

// A provider may quote the key that it did not like.
func TestKeyStaysOutOfErrors(t *testing.T) {
	const key = "sk-very-secret-123"
	for _, a := range []answer{
		{status: 401, body: openAIError("bad key "+key, "", "")},
		{status: 500, body: "debug: Bearer " + key},
		{body: events(openAIError("bad key "+key, "", ""))},
		{header: map[string]string{"Content-Type": "text/html"}, body: "<p>" + key + "</p>"},
	} {
		s := serve(t, always(a))
		_, err := collect(t, s.open(remote.Config{APIKey: key}), hello())
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("error %v: want one without the key", err)
		}
	}
}

// A conversation goes to the host that the user named, and no other.
func TestRedirect(t *testing.T) {
	elsewhere := serve(t, always(answer{body: okStream}))
	s := serve(t, always(answer{status: 307, header: map[string]string{"Location": elsewhere.URL + "/v1/chat/completions"}}))
	_, err := collect(t, s.open(remote.Config{APIKey: "k"}), hello())
	wantKind(t, err, synapse.ErrorMalformed)
	if requests, _ := elsewhere.seen(); len(requests) != 0 {
		t.Errorf("%d requests went elsewhere", len(requests))
	}
	same := serve(t, func(n int) answer {
		if n == 0 {
			return answer{status: 308, header: map[string]string{"Location": "/v2/chat/completions"}}
		}
		return answer{body: okStream}
	})
	if r, err := collect(t, same.open(remote.Config{}), hello()); err != nil || r.Message.Text() != "ok" {
		t.Errorf("on the same host: %+v, %v", r, err)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name string
		cfg  remote.Config
		says string
	}{
		{"no provider", remote.Config{}, "ollama"},
		{"unknown without address", remote.Config{Provider: "acme"}, `"acme"`},
		{"generic without address", remote.Config{Provider: "openaicompat"}, "base URL"},
		{"no key", remote.Config{Provider: "openai"}, "OPENAI_API_KEY"},
		{"no key, address spelled out", remote.Config{Provider: "openai", BaseURL: "https://api.openai.com/v1/"}, "OPENAI_API_KEY"},
		{"no scheme", remote.Config{Provider: "ollama", BaseURL: "127.0.0.1:11434/v1"}, "http"},
		{"other scheme", remote.Config{Provider: "ollama", BaseURL: "ftp://host/v1"}, "http://"},
		{"no host", remote.Config{Provider: "ollama", BaseURL: "http:///v1"}, "host"},
		{"query", remote.Config{Provider: "ollama", BaseURL: "http://host/v1?key=1"}, "query"},
		{"password", remote.Config{Provider: "ollama", BaseURL: "http://me:secret@host/v1"}, "host"},
		{"wire", remote.Config{Provider: "ollama", Wire: "smoke"}, "chat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := remote.New(tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("error %v: want one that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v: shows a password", err)
			}
		})
	}
	if _, err := remote.New(remote.Config{Provider: "acme", BaseURL: "https://llm.acme.example/v1"}); err != nil {
		t.Errorf("any name with an address: %v", err)
	}
	if _, err := remote.New(remote.Config{Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}); err != nil {
		t.Errorf("openai elsewhere needs no key: %v", err)
	}
}

// A request that can't be put on the wire is the caller's mistake, before
// anything is sent.
func TestRefusesBeforeSending(t *testing.T) {
	s := serve(t, always(answer{body: events(text("ok"), finish("stop"), done)}))
	m := s.open(remote.Config{})
	for name, change := range map[string]func(*synapse.Request){
		"schema": func(r *synapse.Request) { r.Tools = []synapse.ToolDef{{Name: "x", Schema: []byte(`[1]`)}} },
		"role":   func(r *synapse.Request) { r.Messages[0].Role = "narrator" },
		"part":   func(r *synapse.Request) { r.Messages[0].Parts[0].Kind = synapse.PartResult },
	} {
		req := hello()
		change(req)
		_, err := collect(t, m, req)
		if got := wantKind(t, err, synapse.ErrorRequest); got.Retryable() {
			t.Errorf("%s: %v is retryable", name, err)
		}
	}
	if requests, _ := s.seen(); len(requests) != 0 {
		t.Errorf("%d requests went out", len(requests))
	}
}
