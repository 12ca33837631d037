package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// endpointKey is the only key that the endpoint takes.
const endpointKey = "test-key"

// endpoint is a Chat Completions server on loopback. It checks requests the way
// real ones do, and does what the markers in the prompt say:
//
//	[[say TEXT]]          answers with the text
//	[[call TOOL {ARGS}]]  calls a tool; several markers are one batch
//	[[task AGENT: TEXT]]  calls task; TEXT may hold ⟦markers⟧ for the sub-agent
//	[[again]]             does the same after every result, for ever
//	[[status CODE]]       fails each time; [[status CODE once]] fails once
//	[[slow DURATION]]     waits before it answers
//	[[hang]]              begins an answer and never ends it
//	[[cut]]               breaks the connection within an answer
//	[[bad JSON]]          answers first with text that is no JSON, then with it
//
// After the results of its calls it says "results:" with each of them.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	failed map[string]bool // prompts that [[status … once]] was done to
	seen   []chatRequest
}

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ReasoningEffort string `json:"reasoning_effort"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// text returns the content, which is a string or a list of parts.
func (m chatMessage) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func newEndpoint() *endpoint {
	e := &endpoint{failed: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mock-large","object":"model"},{"id":"mock-small","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", e.complete)
	mux.HandleFunc("POST /v1/v1/traces", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"partialSuccess":{}}`) })
	e.Server = httptest.NewServer(mux)
	return e
}

func refuse(w http.ResponseWriter, status int, kind, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "0")
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": fmt.Sprintf(format, args...), "type": kind}})
}

var marker = regexp.MustCompile(`\[\[(\w+)(?: ((?s:.*?)))?\]\]`)

func (e *endpoint) complete(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, 400, "invalid_request_error", "not JSON: %v", err)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+endpointKey {
		refuse(w, 401, "invalid_request_error", "Incorrect API key provided")
		return
	}
	if !strings.HasPrefix(req.Model, "mock-") {
		refuse(w, 404, "invalid_request_error", "The model %s does not exist", req.Model)
		return
	}
	if err := req.check(); err != nil {
		refuse(w, 400, "invalid_request_error", "%v", err)
		return
	}
	e.mu.Lock()
	e.seen = append(e.seen, req)
	e.mu.Unlock()
	e.answer(w, r, &req)
}

// check says what a real endpoint refuses.
func (req *chatRequest) check() error {
	if !req.Stream || !req.StreamOptions.IncludeUsage {
		return fmt.Errorf("this endpoint streams, with usage")
	}
	for _, t := range req.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters["type"] != "object" {
			return fmt.Errorf("tool %q has no object schema", t.Function.Name)
		}
	}
	var open []string
	for i, m := range req.Messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Errorf("messages[%d]: a tool result without its call", i)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages[%d]: calls %v have no result", i, open)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls %v have no result", open)
	}
	return nil
}

// order returns the last prompt that holds markers, and the results that have
// come since.
func (req *chatRequest) order() (prompt string, marks [][]string, results []string, replies int) {
	at := -1
	for i, m := range req.Messages {
		if m.Role == "user" && marker.MatchString(m.text()) {
			at = i
		}
	}
	if at < 0 {
		for i, m := range req.Messages {
			if m.Role == "user" {
				at = i
			}
		}
		if at < 0 {
			return "", nil, nil, 0
		}
	}
	prompt = req.Messages[at].text()
	for _, m := range req.Messages[at+1:] {
		switch m.Role {
		case "tool":
			results = append(results, m.text())
		case "assistant":
			replies++
		}
	}
	return prompt, marker.FindAllStringSubmatch(prompt, -1), results, replies
}

type chatCall struct{ name, args string }

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request, req *chatRequest) {
	prompt, marks, results, replies := req.order()
	text := fmt.Sprintf("You said %q.", prompt)
	var calls []chatCall
	again, hang, cut := false, false, false
	for _, m := range marks {
		switch verb, rest := m[1], m[2]; verb {
		case "say":
			text = rest
		case "call":
			name, args, _ := strings.Cut(rest, " ")
			calls = append(calls, chatCall{name, args})
		case "task":
			agent, task, _ := strings.Cut(rest, ": ")
			task = strings.NewReplacer("⟦", "[[", "⟧", "]]").Replace(task)
			args, _ := json.Marshal(map[string]string{
				"subagent_type": agent, "description": "ask " + agent, "prompt": task, "intent": "to delegate",
			})
			calls = append(calls, chatCall{"task", string(args)})
		case "again":
			again = true
		case "status":
			code, once, _ := strings.Cut(rest, " ")
			status, _ := strconv.Atoi(code)
			e.mu.Lock()
			done := e.failed[prompt]
			e.failed[prompt] = true
			e.mu.Unlock()
			if once == "" || !done {
				refuse(w, status, "server_error", "scripted failure")
				return
			}
		case "slow":
			d, _ := time.ParseDuration(rest)
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		case "hang":
			hang = true
		case "cut":
			cut = true
		case "bad":
			text = rest
			if replies == 0 {
				text = "That is hard to say."
			}
		}
	}
	if len(results) > 0 && !again {
		calls = nil
		text = "results:\n" + strings.Join(results, "\n")
	}
	if len(req.Tools) == 0 && len(calls) > 0 {
		calls, text = nil, "as far as I got"
	}
	s := &chatStream{w: w, model: req.Model}
	s.open()
	switch {
	case hang:
		s.chunk(map[string]any{"content": "One moment"}, "")
		<-r.Context().Done()
		return
	case cut:
		s.chunk(map[string]any{"content": "One mom"}, "")
		panic(http.ErrAbortHandler)
	case len(calls) > 0:
		for i, c := range calls {
			id := fmt.Sprintf("call_%d_%d", replies, i)
			half := len(c.args) / 2
			s.chunk(map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "id": id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.args[:half]},
			}}}, "")
			s.chunk(map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "function": map[string]any{"arguments": c.args[half:]},
			}}}, "")
		}
		s.chunk(map[string]any{}, "tool_calls")
	default:
		for word := range strings.SplitAfterSeq(text, " ") {
			s.chunk(map[string]any{"content": word}, "")
		}
		s.chunk(map[string]any{}, "stop")
	}
	s.end(100, 10)
}

// chatStream writes server-sent events.
type chatStream struct {
	w     http.ResponseWriter
	model string
}

func (s *chatStream) open() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.chunk(map[string]any{"role": "assistant", "content": ""}, "")
}

func (s *chatStream) chunk(delta map[string]any, finish string) {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	s.send(map[string]any{"choices": []any{choice}})
}

func (s *chatStream) end(in, out int) {
	s.send(map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
	}})
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}

func (s *chatStream) send(fields map[string]any) {
	fields["id"], fields["object"], fields["created"], fields["model"] = "chatcmpl-1", "chat.completion.chunk", 1, s.model
	data, _ := json.Marshal(fields)
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	s.w.(http.Flusher).Flush()
}
