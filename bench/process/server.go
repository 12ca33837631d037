package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A server speaks Chat Completions, as streams, on loopback. To the main agent's
// first request it answers with a call of task for each child, or at once when
// there are none; a child reads files, one a turn, and then answers.
type server struct {
	children, reads int
	delay           time.Duration

	url   string
	close func() error

	mu      sync.Mutex
	first   time.Time // when the first request came
	firstOf map[string]int
	prompts []string
}

func serve(children, reads int, delay time.Duration) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{children: children, reads: reads, delay: delay, firstOf: map[string]int{}}
	s.url = "http://" + l.Addr().String() + "/v1"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"bench","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	srv := &http.Server{Handler: mux}
	go srv.Serve(l) // until close
	s.close = srv.Close
	return s, nil
}

type request struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools json.RawMessage `json:"tools"`
}

func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	body, err := io.ReadAll(r.Body)
	var req request
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who, turn := "main", 0
	for _, m := range req.Messages {
		switch {
		case m.Role == "assistant":
			turn++
		case m.Role == "user" && strings.Contains(string(m.Content), "[part "):
			who = "child"
		}
	}
	s.note(who, arrived, len(body), &req)

	timer := time.NewTimer(s.delay - time.Since(arrived))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case who == "main" && turn == 0 && s.children > 0:
		var calls []any
		for i := range s.children {
			calls = append(calls, toolCall(i, "task", map[string]any{
				"intent": "share the work", "subagent_type": "explore", "description": "one part",
				"prompt": fmt.Sprintf("[part %d] Read the files of this part and say what they hold.", i),
			}))
		}
		send(w, map[string]any{"tool_calls": calls}, "tool_calls")
	case who == "child" && turn < s.reads:
		call := toolCall(0, "read_file", map[string]any{"intent": "see what is in it", "path": fmt.Sprintf("file-%d.txt", turn)})
		send(w, map[string]any{"tool_calls": []any{call}}, "tool_calls")
	default:
		send(w, map[string]any{"content": "The files hold lines of text."}, "stop")
	}
}

// note keeps what is measured about a request. What takes time is done later:
// the machine is busy with what is measured.
func (s *server) note(who string, arrived time.Time, size int, req *request) {
	// What a provider's cache sees: the tools, then the conversation.
	prompt := append([]byte(nil), req.Tools...)
	for _, m := range req.Messages {
		prompt = append(append(prompt, m.Role...), m.Content...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first.IsZero() {
		s.first = arrived
	}
	if _, ok := s.firstOf[who]; !ok {
		s.firstOf[who] = size
	}
	s.prompts = append(s.prompts, string(prompt))
}

// shared returns the bytes of all prompts, and how many of them an earlier
// prompt begins with as well.
func (s *server) shared() (bytes, repeated int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, prompt := range s.prompts {
		longest := 0
		for _, earlier := range s.prompts[:i] {
			n := 0
			for n < len(earlier) && n < len(prompt) && earlier[n] == prompt[n] {
				n++
			}
			longest = max(longest, n)
		}
		bytes += len(prompt)
		repeated += longest
	}
	return bytes, repeated
}

func toolCall(i int, name string, args map[string]any) any {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // strings and numbers
	}
	return map[string]any{"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function", "function": map[string]any{"name": name, "arguments": string(raw)}}
}

// send streams a reply of one delta.
func send(w io.Writer, delta map[string]any, finish string) {
	chunk := func(choices []any, usage any) {
		raw, err := json.Marshal(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": choices, "usage": usage,
		})
		if err != nil {
			panic(err) // strings and numbers
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	delta["role"] = "assistant"
	chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}, nil)
	chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
	chunk([]any{}, map[string]any{"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
