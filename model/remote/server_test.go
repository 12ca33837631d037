package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// answer is what a test's server says to one request.
type answer struct {
	status int // 0: 200
	header map[string]string
	body   string
	pieces int  // bytes per write; 0: all at once
	cut    bool // end the connection without ending the body
	drop   bool // end the connection without a byte
	hold   bool // keep the body open until the client goes
	noType bool // no Content-Type at all
}

// server is a provider on loopback that says what it is told to and keeps what
// it was asked.
type server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	conns    int
	gone     chan struct{} // one value for each held request whose client left
}

func serve(t *testing.T, say func(n int) answer) *server {
	t.Helper()
	s := &server{t: t, gone: make(chan struct{}, 16)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, r)
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		s.say(w, r, say(n))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *server) say(w http.ResponseWriter, r *http.Request, a answer) {
	if a.drop {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if a.noType {
		w.Header()["Content-Type"] = nil
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	rc := http.NewResponseController(w)
	if a.pieces == 0 {
		a.pieces = len(a.body) + 1
	}
	for rest := a.body; len(rest) > 0; {
		n := min(a.pieces, len(rest))
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			return
		}
		rest = rest[n:]
		_ = rc.Flush()
	}
	switch {
	case a.hold:
		_ = rc.Flush()
		<-r.Context().Done()
		s.gone <- struct{}{}
	case a.cut:
		_ = rc.Flush()
		panic(http.ErrAbortHandler)
	}
}

func (s *server) seen() ([]*http.Request, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.bodies
}

// left waits until a held request's client has gone.
func (s *server) left() {
	s.t.Helper()
	select {
	case <-s.gone:
	case <-time.After(30 * time.Second):
		s.t.Fatal("the server still has the connection after 5 s")
	}
}

// open returns a model of the provider at the server.
func (s *server) open(cfg remote.Config) synapse.Model {
	s.t.Helper()
	if cfg.Provider == "" {
		cfg.Provider = "openaicompat"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = s.URL + "/v1"
	}
	m, err := remote.New(cfg)
	if err != nil {
		s.t.Fatalf("New: %v", err)
	}
	return m
}

func always(a answer) func(int) answer { return func(int) answer { return a } }

func hello() *synapse.Request {
	return &synapse.Request{Model: "m1", System: "Be brief.", Messages: []synapse.Message{synapse.UserText("Hello")}}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func collect(t *testing.T, m synapse.Model, req *synapse.Request) (*synapse.Reply, error) {
	t.Helper()
	return synapse.Collect(m.Generate(within(t, 20*time.Second), req), nil)
}

// events writes server-sent events of the given data.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// delta is one chunk of a chat completion.
func delta(fields string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m1-2026","choices":[{"index":0,"delta":` + fields + `,"logprobs":null,"finish_reason":null}],"usage":null}`
}

func text(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return delta(`{"content":` + string(data) + `}`)
}

func finish(reason string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m1-2026","choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":null}`, reason)
}

func call(index int, id, name, args string) string {
	f := map[string]any{"index": index, "function": map[string]any{"arguments": args}}
	if id != "" {
		f["id"], f["type"] = id, "function"
	}
	if name != "" {
		f["function"] = map[string]any{"name": name, "arguments": args}
	}
	data, err := json.Marshal(map[string]any{"tool_calls": []any{f}})
	if err != nil {
		panic(err)
	}
	return delta(string(data))
}

const usageChunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,"model":"m1-2026","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":7}}}`

const done = "[DONE]"
