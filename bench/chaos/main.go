// Command chaos runs many sub-agents at once against a model server that fails in
// every way it knows, and checks what must hold all the same: every run ends
// exactly once, the usage adds up to what the server says it has sent, memory stays within
// bounds, and no goroutine is left.
//
//	go run ./chaos -children 1000
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

func main() {
	children := flag.Int("children", 1000, "sub-agents at once")
	seed := flag.Uint64("seed", 1, "of the faults")
	limit := flag.Int("rss", 200, "MiB of memory that are too many")
	only := flag.Bool("serve", false, "serve, and do nothing else")
	flag.Parse()
	if *only {
		fmt.Println(serve(*children, *seed).URL)
		select {} // until it is stopped
	}
	url, stop, err := start(*children, *seed)
	var r *report
	if err == nil {
		r, err = chaos(context.Background(), *children, url)
		stop()
	}
	if err == nil {
		r.print()
		err = r.check(*limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// A report is what one run came to.
type report struct {
	children   int
	did        map[string]int
	ends       map[synapse.Status]int // of sub-agents
	started    map[string]int         // by run
	finished   map[string]int
	told       map[string]int // how often the parent heard of a child's end
	main       synapse.Outcome
	replies    synapse.Usage // the sum over all replies
	in, out    int64         // what the server says it sent
	retries    int
	elapsed    time.Duration
	peak       int // MiB resident; 0 where it is not known
	goroutines int // more than before
	left       string
}

func chaos(ctx context.Context, children int, url string) (*report, error) {
	before := runtime.NumGoroutine()
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r, err := work(ctx, children, url, dir)
	if err != nil {
		return nil, err
	}
	r.peak = peakMiB()
	for range 100 { // connections that were closed take a moment to go
		if r.goroutines = runtime.NumGoroutine() - before; r.goroutines <= 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if r.goroutines > 0 {
		buf := make([]byte, 64<<10)
		r.left = string(buf[:runtime.Stack(buf, true)])
	}
	return r, nil
}

func work(ctx context.Context, children int, url, dir string) (*report, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	journal, err := trace.OpenSQLite(ctx, filepath.Join(dir, "journal.db"), trace.SQLiteOptions{})
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	program, err := program()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	models := map[string]synapse.Model{}
	for _, name := range []string{"main", "child"} {
		if models[name], err = remote.New(remote.Config{Provider: name, BaseURL: url + "/" + name, HTTPClient: &http.Client{Transport: transport}}); err != nil {
			return nil, err
		}
	}
	l := run.Local{
		Model:       func(ref synapse.ModelRef) (synapse.Model, error) { return models[ref.Provider], nil },
		Append:      func(ctx context.Context, events []*synapse.Event) error { return journal.Append(ctx, events...) },
		Retry:       run.Retry{Base: time.Millisecond, Cap: 20 * time.Millisecond},
		IdleTimeout: 2 * time.Second,
	}
	r := &report{children: children, ends: map[synapse.Status]int{}, started: map[string]int{}, finished: map[string]int{}, told: map[string]int{}}
	begun := time.Now()
	for e, err := range l.Run(ctx, program, run.Input{Prompt: "go"}) {
		if err != nil {
			return nil, err
		}
		r.add(e)
	}
	r.elapsed = time.Since(begun)
	st, err := statsOf(url)
	if err != nil {
		return nil, err
	}
	http.DefaultClient.CloseIdleConnections()
	r.did, r.in, r.out = st.Did, st.In, st.Out
	return r, nil
}

func (r *report) add(e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		r.started[e.Run]++
	case *synapse.RunFinished:
		r.finished[e.Run]++
		if e.ParentRun == "" {
			r.main = b.Outcome
		} else {
			r.ends[b.Status]++
		}
	case *synapse.ChildFinished:
		r.told[b.Task]++
	case *synapse.ModelReplied:
		r.replies = r.replies.Add(b.Usage)
	case *synapse.Retry:
		r.retries++
	}
}

func program() (*run.Program, error) {
	spec := func(name, provider string, turns int, tools ...string) synapse.Spec {
		return synapse.Spec{
			ID: name, Agent: name, Description: "works", Digest: name, System: name, Model: synapse.ModelRef{Provider: provider, Name: "m"},
			Policy: policy.Policy{Allow: tools}, Limits: synapse.Limits{Turns: turns},
		}
	}
	graph := &synapse.Graph{
		Entry: "main", Specs: []synapse.Spec{spec("main", "main", 0, "task"), spec("worker", "child", 8, "note")},
		Edges: []synapse.Edge{{Kind: synapse.EdgeCall, From: "main", To: "worker", Names: []string{"worker"}}},
	}
	note := synapse.Tool{
		Name: "note", Description: "takes a note", ReadOnly: true, Parallel: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			return synapse.TextResult(fmt.Sprintf("noted %d bytes", len(in.Args))), nil
		},
	}
	return run.NewProgram(graph, []synapse.Tool{note}, run.ProgramOptions{})
}

// check says what should have held and did not.
func (r *report) check(maxMiB int) error {
	var bad []error
	fail := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	if len(r.started) != r.children+1 {
		fail("%d runs started, want %d", len(r.started), r.children+1)
	}
	for id, n := range r.started {
		if n != 1 || r.finished[id] != 1 {
			fail("run %s started %d times and ended %d times", id, n, r.finished[id])
		}
	}
	for id, n := range r.finished {
		if r.started[id] == 0 {
			fail("run %s ended %d times and never started", id, n)
		}
	}
	if len(r.told) != r.children {
		fail("the parent heard of %d ends, want %d", len(r.told), r.children)
	}
	for id, n := range r.told {
		if n != 1 {
			fail("the parent heard %d times of the end of %s", n, id)
		}
	}
	if r.main.Status != synapse.StatusCompleted {
		fail("the main agent: %s: %s", r.main.Status, r.main.Cause)
	}
	for name, u := range map[string]synapse.Usage{"all replies": r.replies, "the main run's total": r.main.Total} {
		if u.InputTokens != r.in || u.OutputTokens != r.out {
			fail("%s: %d tokens in and %d out, and the server sent %d and %d", name, u.InputTokens, u.OutputTokens, r.in, r.out)
		}
	}
	if r.peak > maxMiB {
		fail("%d MiB resident, want at most %d", r.peak, maxMiB)
	}
	if r.goroutines > 0 {
		fail("%d goroutines are left:\n%s", r.goroutines, r.left)
	}
	return errors.Join(bad...)
}

func (r *report) print() {
	row := func(what string, value any) { fmt.Printf("%-28s %v\n", what, value) }
	row("sub-agents", r.children)
	for _, status := range []synapse.Status{synapse.StatusCompleted, synapse.StatusPartial, synapse.StatusFailed, synapse.StatusTimedOut, synapse.StatusCancelled} {
		if n := r.ends[status]; n > 0 {
			row("  "+string(status), n)
		}
	}
	row("requests of sub-agents", "")
	var names []string
	for name := range r.did {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row("  "+name, r.did[name])
	}
	row("attempts again", r.retries)
	row("tokens in, by the server", r.in)
	row("tokens in, by the run", r.main.Total.InputTokens)
	row("tokens out, by the server", r.out)
	row("tokens out, by the run", r.main.Total.OutputTokens)
	row("time", r.elapsed.Round(time.Millisecond))
	if r.peak > 0 {
		row("memory", fmt.Sprintf("%d MiB", r.peak))
	}
	row("goroutines left", max(r.goroutines, 0))
}

// peakMiB is the most memory that this process has had resident, 0 where the
// system does not say.
func peakMiB() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb >> 10
		}
	}
	return 0
}
