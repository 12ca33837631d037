//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	nouns "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

// killsEnv says how many moments TestKill tries. `make kill` tries a hundred and
// more; every run of the tests some.
const killsEnv = "SYNAPSE_KILLS"

// dynasty is an endpoint whose main agent has two children, each with a child and
// a grandchild. Everybody writes, and what is said depends on the conversation
// alone, so that a request that is made again gets the same answer.
func dynasty(t *testing.T) *httptest.Server {
	say := func(text string) []chatCall { return []chatCall{{"", text}} }
	call := func(name string, args map[string]any) chatCall {
		args["intent"] = "to test"
		data, _ := json.Marshal(args)
		return chatCall{name, string(data)}
	}
	write := func(file string) chatCall {
		return call("write_file", map[string]any{"path": file, "content": file + "\n"})
	}
	task := func(agent, prompt string) chatCall {
		return call("task", map[string]any{"subagent_type": agent, "description": "next generation", "prompt": prompt})
	}
	replies := func(agent, prompt string) [][]chatCall {
		switch agent {
		case "OUTER":
			return [][]chatCall{{write("outer-" + prompt)}, {task("middle", prompt)}, say("outer is done")}
		case "MIDDLE":
			return [][]chatCall{{call("execute", map[string]any{"command": "echo " + prompt + " >> log"})}, {task("inner", prompt)}, say("middle is done")}
		case "INNER":
			return [][]chatCall{{write("inner-" + prompt)}, say("inner is done")}
		}
		return [][]chatCall{{task("outer", "one"), task("outer", "two")}, {write("main")}, {write("main-too")}, say("all is done")}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req chatRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			refuse(w, 400, "invalid_request_error", "%v", err)
			return
		}
		if err := req.check(); err != nil {
			t.Errorf("the endpoint refuses: %v", err)
			refuse(w, 400, "invalid_request_error", "%v", err)
			return
		}
		agent, prompt, turn := "", "", 0
		for _, m := range req.Messages {
			switch m.Role {
			case "system":
				for _, name := range []string{"OUTER", "MIDDLE", "INNER"} {
					if strings.Contains(m.text(), "You are "+name) {
						agent = name
					}
				}
			case "user":
				prompt = m.text()
			case "assistant":
				turn++
			}
		}
		list := replies(agent, prompt)
		reply := list[min(turn, len(list)-1)]
		delta, stop := map[string]any{"role": "assistant"}, "tool_calls"
		if reply[0].name == "" {
			delta["content"], stop = reply[0].args, "stop"
		} else {
			var calls []any
			for i, c := range reply {
				calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("call_%d_%d", turn, i), "type": "function",
					"function": map[string]any{"name": c.name, "arguments": c.args}})
			}
			delta["tool_calls"] = calls
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range []any{
			map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}},
			map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": stop}}},
			map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}},
		} {
			data, _ := json.Marshal(chunk)
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server
}

// A victim is a home and a workspace in which processes are killed.
type victim struct {
	t        *testing.T
	root, ws string
	server   *httptest.Server
}

func newVictim(t *testing.T, server *httptest.Server) *victim {
	v := &victim{t: t, root: t.TempDir(), server: server}
	v.ws = filepath.Join(v.root, "ws")
	for name, text := range map[string]string{
		"outer":  "can_spawn_subagent: true\n---\nYou are OUTER",
		"middle": "can_spawn_subagent: true\n---\nYou are MIDDLE",
		"inner":  "---\nYou are INNER",
	} {
		v.write("ws/.synapse/agents/"+name+".md", "---\nname: "+name+"\ndescription: a generation\n"+text+", and you work.\n")
	}
	v.write("home/.synapse/settings.json", `{"probe_local": false}`)
	return v
}

func (v *victim) write(name, text string) {
	v.t.Helper()
	path := filepath.Join(v.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// run starts the program and kills it once it has printed so many events; 0 lets
// it come to its end. It returns how many it has printed.
func (v *victim) run(kill int, args ...string) (events int, last string) {
	v.t.Helper()
	cmd := exec.Command("synapse", append(args, "--output-format", "stream-json")...)
	cmd.Dir = v.ws
	cmd.Env = []string{
		"HOME=" + filepath.Join(v.root, "home"), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
		"OPENAI_BASE_URL=" + v.server.URL + "/v1", "OPENAI_API_KEY=k", "AGENT_MODEL=openai:mock-large",
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		events++
		last = lines.Text()
		if events == kill {
			cmd.Process.Kill() // SIGKILL
		}
	}
	err = cmd.Wait()
	if kill == 0 && err != nil {
		v.t.Fatalf("synapse %v: %v\n%s", args, err, stderr.String())
	}
	return events, last
}

// journal opens what the processes have left.
func (v *victim) journal() *trace.SQLite {
	v.t.Helper()
	j, err := trace.OpenSQLite(v.t.Context(), filepath.Join(v.root, "home/.local/state/synapse/journal.db"), trace.SQLiteOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { j.Close() })
	return j
}

// check: every run has ended once, nothing was written twice, and the answer is
// the one that an undisturbed run gives.
func (v *victim) check(at string) {
	v.t.Helper()
	j := v.journal()
	for _, p := range trace.Verify(j.Events(v.t.Context(), trace.Query{})) {
		v.t.Errorf("%s: %s", at, p)
	}
	ends, answer := map[string]int{}, ""
	for e, err := range j.Events(v.t.Context(), trace.Query{}) {
		if err != nil {
			v.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case *nouns.RunFinished:
			ends[e.Run]++
			if b.Status != nouns.StatusCompleted {
				v.t.Errorf("%s: run %s (%s) is %s: %s", at, e.Run, e.Agent, b.Status, b.Cause)
			}
		case *nouns.Conclusion:
			answer = b.Content
		}
	}
	if len(ends) != 7 || answer != "all is done" {
		v.t.Errorf("%s: %d runs, answer %q", at, len(ends), answer)
	}
	for run, n := range ends {
		if n != 1 {
			v.t.Errorf("%s: run %s has %d ends", at, run, n)
		}
	}
	for _, name := range []string{"main", "main-too", "outer-one", "outer-two", "inner-one", "inner-two"} {
		if data, err := os.ReadFile(filepath.Join(v.ws, name)); err != nil || string(data) != name+"\n" {
			v.t.Errorf("%s: %s holds %q, %v", at, name, data, err)
		}
	}
	// A shell command has no key: the one that was in flight may be missing.
	data, _ := os.ReadFile(filepath.Join(v.ws, "log"))
	lines := strings.Fields(string(data))
	if len(lines) > 2 || len(lines) == 2 && lines[0] == lines[1] {
		v.t.Errorf("%s: the commands ran as %q", at, lines)
	}
}

// TestKill kills the program with SIGKILL at moments all over a request of seven
// runs in four generations, resumes it, kills that too, and resumes it to its end.
func TestKill(t *testing.T) {
	kills := 10
	if s := os.Getenv(killsEnv); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s=%q: want a number", killsEnv, s)
		}
	}
	server := dynasty(t)
	whole := newVictim(t, server)
	events, _ := whole.run(0, "run", "go")
	whole.check("undisturbed")
	if events < 100 || t.Failed() {
		t.Fatalf("%d events", events)
	}
	for i := range kills {
		at := 1 + i*(events-1)/kills
		v := newVictim(t, server)
		name := fmt.Sprintf("killed after %d of %d events", at, events)
		v.run(at, "run", "go")
		rng := rand.New(rand.NewPCG(uint64(at), 1))
		for lives := 1; v.open(); lives++ {
			kill := 0
			if lives%3 != 0 {
				kill = 10 + rng.IntN(events/2)
			}
			name += fmt.Sprintf(", again after %d", kill)
			v.run(kill, "resume")
		}
		v.check(name)
		if t.Failed() {
			return
		}
	}
}

// open reports whether a request was cut off.
func (v *victim) open() bool {
	v.t.Helper()
	j := v.journal()
	for _, err := range j.Traces(v.t.Context(), trace.TraceQuery{Open: true}) {
		if err != nil {
			v.t.Fatal(err)
		}
		return true
	}
	return false
}
