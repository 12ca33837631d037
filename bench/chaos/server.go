package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The ways in which the server answers a sub-agent, with how many in a hundred
// requests get each. What is left is a call or an answer as they should be.
var faults = []struct {
	name  string
	share int
}{
	{"429", 10}, {"500", 8}, {"half a stream", 8}, {"silence", 2}, {"an empty answer", 4}, {"garbage", 6}, {"1 MB of arguments", 4},
}

// A server speaks Chat Completions, badly. The main agent has a root of its own,
// and is answered as it should be.
type server struct {
	*httptest.Server
	children int
	big      string // 1 MB of arguments

	mu      sync.Mutex
	rng     *rand.Rand
	did     map[string]int
	in, out int64 // tokens in the answers that were sent whole
	main    int   // requests of the main agent
}

// stats is what a server says of itself.
type stats struct {
	Did     map[string]int
	In, Out int64 // tokens in the answers that were sent whole
}

// start starts a server in a process of its own, so that what this one takes of
// memory is the sub-agents' alone. Stop ends it.
func start(children int, seed uint64) (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-serve", "-children", strconv.Itoa(children), "-seed", strconv.FormatUint(seed, 10))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server said nothing: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

func statsOf(url string) (st stats, err error) {
	resp, err := http.Get(url + "/stats")
	if err != nil {
		return st, err
	}
	defer resp.Body.Close()
	return st, json.NewDecoder(resp.Body).Decode(&st)
}

func serve(children int, seed uint64) *server {
	s := &server{children: children, rng: rand.New(rand.NewPCG(seed, 1)), did: map[string]int{}}
	s.big = `{\"text\":\"` + strings.Repeat("x", 1<<20) + `\",\"intent\":\"much\"}`
	mux := http.NewServeMux()
	mux.HandleFunc("POST /main/chat/completions", s.answerMain)
	mux.HandleFunc("POST /child/chat/completions", s.answerChild)
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		json.NewEncoder(w).Encode(stats{s.did, s.in, s.out})
	})
	s.Server = httptest.NewServer(mux)
	return s
}

func (s *server) answerMain(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	s.main++
	first := s.main == 1
	s.mu.Unlock()
	if !first {
		s.send(w, text("all are done"), "stop")
		return
	}
	var calls []string
	for i := range s.children {
		calls = append(calls, call(i, "task", fmt.Sprintf(`{\"subagent_type\":\"worker\",\"description\":\"part %d\",\"prompt\":\"part %d\",\"intent\":\"work\"}`, i, i)))
	}
	s.send(w, `"tool_calls":[`+strings.Join(calls, ",")+`]`, "tool_calls")
}

func (s *server) answerChild(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	n, what, short := s.rng.IntN(100), "", s.rng.IntN(100) < 40
	for _, f := range faults {
		if n < f.share {
			what = f.name
			break
		}
		n -= f.share
	}
	if what == "" {
		if what = "an answer"; short {
			what = "a call"
		}
	}
	s.did[what]++
	s.mu.Unlock()
	switch what {
	case "429":
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"error":{"message":"oops"}}`)
	case "half a stream":
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, text("half of what I wanted to"), "")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "silence":
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	case "an empty answer":
		w.Header().Set("Content-Type", "text/event-stream")
	case "garbage":
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\": [oh no\n\n")
	case "1 MB of arguments":
		s.send(w, `"tool_calls":[`+call(0, "note", s.big)+`]`, "tool_calls")
	case "a call":
		s.send(w, `"tool_calls":[`+call(0, "note", `{\"text\":\"x\",\"intent\":\"look\"}`)+`]`, "tool_calls")
	default:
		s.send(w, text("done"), "stop")
	}
}

func text(s string) string { return `"content":"` + s + `"` }

func call(i int, name, args string) string {
	return fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"%s","arguments":"%s"}}`, i, i, name, args)
}

func chunk(w io.Writer, delta, finish string) {
	if finish != "" {
		finish = `"` + finish + `"`
	} else {
		finish = "null"
	}
	fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",%s},\"finish_reason\":%s}]}\n\n", delta, finish)
}

// send sends a whole answer and counts what it says of its tokens.
func (s *server) send(w http.ResponseWriter, delta, finish string) {
	s.mu.Lock()
	in, out := 50+s.rng.Int64N(1000), 1+s.rng.Int64N(200)
	s.in += in
	s.out += out
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, delta, finish)
	fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n", in, out, in+out)
}
