package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// Breaking out of the range ends the request at the server as well.
func TestBreakEndsTheRequest(t *testing.T) {
	s := serve(t, always(answer{body: events(text("one"), text("two")), hold: true}))
	m := s.open(remote.Config{})
	for d, err := range m.Generate(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind != synapse.DeltaText {
			t.Fatalf("delta %+v: want text first", d)
		}
		break
	}
	s.left()
}

func TestCancel(t *testing.T) {
	reason := errors.New("the user pressed stop")
	tests := map[string]answer{
		"while it streams":    {body: events(text("one")), hold: true},
		"before it answers":   {hold: true},
		"within a call":       {body: events(call(0, "a", "x", `{"pa`)), hold: true},
		"after it has ended":  {body: events(text("one"), finish("stop")), hold: true},
		"in a refusal's body": {status: 500, body: "x", hold: true},
	}
	for name, a := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := serve(t, func(int) answer { // once the request is there
				time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
				return a
			})
			start := time.Now()
			var last error
			for d, err := range s.open(remote.Config{}).Generate(ctx, hello()) {
				if last = err; err == nil && d.Kind == synapse.DeltaCall {
					t.Errorf("a call came out of half a reply: %+v", d.Call)
				}
			}
			if !errors.Is(last, reason) {
				t.Errorf("error %v: want the cause of the cancel", last)
			}
			var typed *synapse.ProviderError
			if errors.As(last, &typed) {
				t.Errorf("error %v: a cancel is not the provider's failure", last)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			s.left()
		})
	}
}

func TestCancelledBeforeItStarts(t *testing.T) {
	s := serve(t, always(answer{body: okStream}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := synapse.Collect(s.open(remote.Config{}).Generate(ctx, hello()), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v: want context.Canceled", err)
	}
	if requests, _ := s.seen(); len(requests) != 0 {
		t.Errorf("%d requests went out", len(requests))
	}
}

// A server that keeps the connection open after [DONE] must not hold the reply.
func TestDoneIsTheEnd(t *testing.T) {
	s := serve(t, always(answer{body: okStream, hold: true}))
	start := time.Now()
	got, err := collect(t, s.open(remote.Config{}), hello())
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Text() != "ok" {
		t.Errorf("text %q", got.Message.Text())
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	s.left()
}

// Replies one after the other share a connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	s := serve(t, always(answer{body: okStream, pieces: 40}))
	m := s.open(remote.Config{})
	for range 10 {
		if _, err := collect(t, m, hello()); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns > 2 {
		t.Errorf("%d connections for ten requests", s.conns)
	}
}

// Nothing of a request outlives it, however it ended.
func TestNothingIsLeft(t *testing.T) {
	answers := []answer{
		{body: okStream}, {body: events(text("a")), cut: true}, {status: 500}, {drop: true},
		{body: okStream, hold: true}, {header: map[string]string{"Content-Type": "text/html"}, body: "<p>"},
	}
	s := serve(t, func(n int) answer { return answers[n%len(answers)] })
	m := s.open(remote.Config{})
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 48 {
		wg.Go(func() {
			for _, err := range m.Generate(t.Context(), hello()) {
				_ = err
			}
		})
	}
	wg.Wait()
	// The pool keeps idle connections, two goroutines on either side; a request
	// that was left behind would wait for its server for ever.
	s.Close()
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// echo answers with the last message's text, one byte a write.
type echo struct{ s *server }

func (e echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	e.s.say(w, r, answer{body: events(text(body.Messages[len(body.Messages)-1].Content), finish("stop"), done), pieces: 1})
}

// Concurrent requests of one model don't see each other.
func TestConcurrent(t *testing.T) {
	s := serve(t, always(answer{}))
	s.Config.Handler = echo{s}
	m := s.open(remote.Config{})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			word := strings.Repeat(string(rune('a'+i%26)), i+1)
			req := hello()
			req.Messages = []synapse.Message{synapse.UserText(word)}
			got, err := collect(t, m, req)
			if err != nil {
				t.Error(err)
			} else if got.Message.Text() != word {
				t.Errorf("got %q, want %q", got.Message.Text(), word)
			}
		})
	}
	wg.Wait()
}
