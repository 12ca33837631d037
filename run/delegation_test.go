package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// taskIDs returns the ids of the children that main has started, in order.
func taskIDs(r *record) []string {
	var ids []string
	for _, c := range bodies[*synapse.ChildStarted](r, "main") {
		ids = append(ids, c.Task)
	}
	return ids
}

// idIn takes the task id out of a report.
func idIn(text string) string {
	_, rest, _ := strings.Cut(text, "Task: ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

func background(agent, prompt string) synapse.ToolCall {
	return script.Call("task", map[string]any{"subagent_type": agent, "description": "a test", "prompt": prompt, "background": true})
}

func TestReport(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "do it")}}, {Text: "told"}},
		"worker": {{Text: "first", Calls: []synapse.ToolCall{read("a")}}, {Text: "the answer"}},
	}))
	b.child("worker", "read")
	r := b.run(t.Context(), "go")
	id := taskIDs(r)[0]
	want := fmt.Sprintf("Agent \"worker\" completed.\nTokens: 20 in / 10 out\nTask: %s\n\nthe answer", id)
	if got := r.results("main")[0]; got != want {
		t.Errorf("the parent reads\n%s\nwant\n%s", got, want)
	}
	// Every token is in the sum of whoever caused it, once.
	if out := r.outcome("main"); out.Usage.InputTokens != 20 || out.Total.InputTokens != 40 || out.Total.OutputTokens != 20 {
		t.Errorf("main's usage = %+v, total = %+v", out.Usage, out.Total)
	}
	// The child's events name their place.
	for _, e := range r.events {
		if e.Agent == "worker" && (e.Run != id || e.ParentRun != "trace-1" || e.SpawnedBy != "call-1-1" || e.Trace != "trace-1") {
			t.Fatalf("event %+v is not where it belongs", e)
		}
	}
}

// TestFreshContext: a child sees its prompt and nothing of the conversation.
func TestFreshContext(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main": {{Text: "secret plans", Calls: []synapse.ToolCall{task("worker", "do it")}}, {Text: "told"}},
		"worker": {{Text: "ok", Check: func(req *synapse.Request) error {
			if len(req.Messages) != 1 || req.Messages[0].Text() != "do it" || req.System != "You are worker." {
				return fmt.Errorf("the child sees %+v", req.Messages)
			}
			if len(req.Tools) != 1 || req.Tools[0].Name != "read" {
				return fmt.Errorf("the child is offered %+v", req.Tools)
			}
			return nil
		}}},
	}))
	b.child("worker", "read")
	r := b.input(t.Context(), run.Input{Prompt: "go", Messages: []synapse.Message{synapse.UserText("before"), synapse.AssistantText("yes")}})
	if out := r.outcome("worker"); out.Status != synapse.StatusCompleted {
		t.Errorf("worker ended as %+v", out)
	}
}

func TestNamesOfAgents(t *testing.T) {
	tests := []struct{ name, want string }{
		{"code-reviewer", "ran"}, {"Code Reviewer", "ran"}, {"code_reviewer", "ran"}, {"general", "general"}, {"", "general"},
		{"nobody", `unknown subagent_type "nobody": there are: code-reviewer, general-purpose`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := map[string]any{"description": "a test", "prompt": "do it"}
			if tt.name != "" {
				args["subagent_type"] = tt.name
			}
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main":            {{Calls: []synapse.ToolCall{script.Call("task", args)}}, {Text: "told"}},
				"code-reviewer":   {{Text: "ran"}},
				"general-purpose": {{Text: "general"}},
			}))
			b.child("code-reviewer", "read")
			b.edge("main", "general-purpose", "general-purpose", "general", "")
			b.spec("general-purpose", "read")
			if got := b.run(t.Context(), "go").results("main")[0]; !strings.HasSuffix(got, tt.want) {
				t.Errorf("result = %q, want …%q", got, tt.want)
			}
		})
	}
}

func TestAgentWithoutTools(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main": {{Calls: []synapse.ToolCall{task("empty", "do it")}}, {Text: "told"}},
	}))
	b.child("empty").NoTools = "its tool list is empty"
	r := b.run(t.Context(), "go")
	if got := r.results("main")[0]; got != `the agent "empty" can't work: its tool list is empty` {
		t.Errorf("result = %q", got)
	}
	if len(taskIDs(r)) != 0 {
		t.Error("it was started")
	}
}

// TestOneFailureTouchesNobodyElse: siblings of a failing child go on.
func TestOneFailureTouchesNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main": {{Calls: []synapse.ToolCall{task("bad", "1"), task("good", "2")}}, {Text: "told"}},
			"bad":  {{Err: fmt.Errorf("broken")}},
			"good": {{Delay: time.Second, Text: "fine"}},
		}))
		b.child("bad", "read")
		b.child("good", "read")
		r := b.run(t.Context(), "go")
		if out := r.outcome("good"); out.Text != "fine" {
			t.Errorf("good ended as %+v", out)
		}
		if out := r.outcome("main"); out.Text != "told" || out.Failed != 1 {
			t.Errorf("main ended as %+v", out)
		}
	})
}

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main": {
				{Calls: []synapse.ToolCall{background("slow", "do it")}},
				{Text: "Meanwhile."}, // it would end here, but its child still runs
				{Text: "All done.", Check: func(req *synapse.Request) error {
					last := req.Messages[len(req.Messages)-1]
					if last.Role != synapse.RoleUser || !strings.Contains(last.Text(), `Agent "slow" completed.`) || !strings.Contains(last.Text(), "worth the wait") {
						return fmt.Errorf("the model was told %q", last.Text())
					}
					return nil
				}},
			},
			"slow": {{Delay: 50 * time.Second, Text: "worth the wait"}},
		}))
		b.child("slow", "read")
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Text != "All done." || out.Total.Requests != 4 {
			t.Errorf("main ended as %+v", out)
		}
		if got := r.results("main")[0]; !strings.Contains(got, "runs in the background") || !strings.Contains(got, taskIDs(r)[0]) {
			t.Errorf("result = %q", got)
		}
	})
}

// TestBackgroundByDefinition: the definition says background, the call may say
// otherwise.
func TestBackgroundByDefinition(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main": {
			{Calls: []synapse.ToolCall{script.Call("task", map[string]any{"subagent_type": "slow", "description": "d", "prompt": "p", "background": false})}},
			{Text: "told"},
		},
		"slow": {{Text: "now"}},
	}))
	b.child("slow", "read").Background = true
	if got := b.run(t.Context(), "go").results("main")[0]; !strings.HasSuffix(got, "now") {
		t.Errorf("result = %q", got)
	}
}

func TestTaskOutputAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := func(req *synapse.Request) string { return script.Results(req) }
		var id string
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			if strings.Contains(req.System, "slow") {
				return script.Turn{Text: "half of it", Delay: 10 * time.Second, Calls: []synapse.ToolCall{read("x")}}
			}
			switch n {
			case 0:
				return script.Turn{Calls: []synapse.ToolCall{background("slow", "do it")}}
			case 1:
				id = idIn(last(req))
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_output", map[string]any{"task_id": id})}}
			case 2:
				if !strings.Contains(last(req), "still running") {
					return script.Turn{Err: fmt.Errorf("status is %q", last(req))}
				}
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_output", map[string]any{"task_id": id, "wait": 15})}}
			case 3:
				if !strings.Contains(last(req), "still running") {
					return script.Turn{Err: fmt.Errorf("status after a wait is %q", last(req))}
				}
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_stop", map[string]any{"task_id": id})}}
			case 4:
				if !strings.Contains(last(req), `Agent "slow" was cancelled.`) || !strings.Contains(last(req), "half of it") {
					return script.Turn{Err: fmt.Errorf("report of the stop is %q", last(req))}
				}
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_output", map[string]any{"task_id": "t-none"})}}
			default:
				if want := `there is no task "t-none": there are: ` + id; last(req) != want {
					return script.Turn{Err: fmt.Errorf("result is %q", last(req))}
				}
				return script.Turn{Text: "ok"}
			}
		})
		b := newBench(t, m)
		b.child("slow", "read")
		start := time.Now()
		r := b.run(t.Context(), "go")
		if out := r.outcome("main"); out.Text != "ok" {
			t.Errorf("main ended as %+v", out)
		}
		if took := time.Since(start); took != 15*time.Second {
			t.Errorf("took %s: the wait was to last 15s", took)
		}
	})
}

// TestContinue: a child takes up where it stopped, with its context, its spec
// and its policy, though the definition has changed since.
func TestContinue(t *testing.T) {
	m := byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "remember 7")}}, {Text: "told"}},
		"worker": {{Calls: []synapse.ToolCall{read("notes")}}, {Text: "7 it is"}},
	})
	b := newBench(t, m)
	b.child("worker", "read")
	id := taskIDs(b.run(t.Context(), "go"))[0]

	// A later request of the same conversation. The definition is another now.
	b.local.NewID = func() string { return "trace-2" }
	b.graph.Specs = slices.Clone(b.graph.Specs)
	worker := &b.graph.Specs[1]
	old := *worker
	worker.System, worker.Digest, worker.Policy.Allow = "You are changed.", "new", []string{"read", "write"}
	m2 := script.Play(func(n int, req *synapse.Request) script.Turn {
		if strings.Contains(req.System, "main") {
			if n == 0 {
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task", map[string]any{"task_id": id, "description": "again", "prompt": "what was it?"})}}
			}
			return script.Turn{Text: script.Results(req)}
		}
		var texts []string
		for _, msg := range req.Messages {
			texts = append(texts, string(msg.Role)+":"+msg.Text())
		}
		if want := []string{"user:remember 7", "assistant:", "tool:", "assistant:7 it is", "user:what was it?"}; !slices.Equal(texts, want) {
			return script.Turn{Err: fmt.Errorf("the child remembers %q", texts)}
		}
		if req.System != old.System || len(req.Tools) != 1 {
			return script.Turn{Err: fmt.Errorf("the child is another: %q with %d tools", req.System, len(req.Tools))}
		}
		return script.Turn{Text: "it was 7"}
	})
	b.local.Model = func(synapse.ModelRef) (synapse.Model, error) { return m2, nil }
	r := b.run(t.Context(), "again")
	if out := r.outcome("main"); !strings.HasSuffix(out.Text, "it was 7") || !strings.Contains(out.Text, "Task: "+id) {
		t.Errorf("main ended as %+v", out)
	}
}

func TestContinueRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cont := func(id, agent string) synapse.ToolCall {
			args := map[string]any{"task_id": id, "description": "again", "prompt": "more"}
			if agent != "" {
				args["subagent_type"] = agent
			}
			return script.Call("task", args)
		}
		var id string
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			switch {
			case strings.Contains(req.System, "slow"):
				return script.Turn{Delay: time.Hour, Text: "x"}
			case n == 0:
				return script.Turn{Calls: []synapse.ToolCall{background("slow", "do it")}}
			case n == 1:
				id = idIn(script.Results(req))
				return script.Turn{Calls: []synapse.ToolCall{cont(id, ""), cont("t-none", ""), cont("trace-1", "")}}
			case n == 2:
				return script.Turn{Calls: []synapse.ToolCall{script.Call("task_stop", map[string]any{"task_id": id})}}
			case n == 3:
				return script.Turn{Calls: []synapse.ToolCall{cont(id, "other")}}
			}
			return script.Turn{Text: "ok"}
		})
		b := newBench(t, m)
		b.child("slow", "read")
		b.child("other", "read")
		r := b.run(t.Context(), "go")
		got := r.results("main")
		for i, want := range map[int]string{
			1: "is still running",
			2: "task t-none can't be continued: there is no run t-none",
			3: "task trace-1 is not a sub-agent of yours",
			5: `is of the agent "slow"`,
		} {
			if !strings.Contains(got[i], want) {
				t.Errorf("result %d = %q, want …%q…", i, got[i], want)
			}
		}
	})
}

// TestNesting: a child of a child, and the edge that isn't there.
func TestNesting(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("middle", "1")}}, {Text: "told"}},
		"middle": {{Calls: []synapse.ToolCall{task("leaf", "2")}}, {Text: "leaf said so"}},
		"leaf":   {{Calls: []synapse.ToolCall{task("leaf", "3"), task("middle", "4")}}, {Text: "alone"}},
	}))
	b.child("middle", "read", "task")
	b.edge("middle", "leaf", "leaf")
	b.spec("leaf", "read")
	r := b.run(t.Context(), "go")
	if out := r.outcome("main"); out.Text != "told" || out.Total.Requests != 6 || out.Usage.Requests != 2 {
		t.Errorf("main ended as %+v", out)
	}
	if out := r.outcome("middle"); out.Total.Requests != 4 {
		t.Errorf("middle ended as %+v", out)
	}
	for _, got := range r.results("leaf") {
		if !strings.HasPrefix(got, "permission denied: task:") {
			t.Errorf("leaf delegated: %q", got)
		}
	}
	started := bodies[*synapse.RunStarted](r, "leaf")
	if len(started) != 1 || started[0].Depth != 2 {
		t.Errorf("leaf started %+v", started)
	}
}

// TestSharedLimits: what parallel children use is one budget of their parent's.
func TestSharedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		m := script.Play(func(n int, req *synapse.Request) script.Turn {
			if strings.Contains(req.System, "main") {
				if n > 0 {
					return script.Turn{Text: "told"}
				}
				return script.Turn{Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2"), background("worker", "3")}}
			}
			requests.Add(1)
			return script.Turn{Delay: time.Second, Text: "more", Calls: []synapse.ToolCall{read("x")}}
		})
		b := newBench(t, m)
		b.child("worker", "read")
		b.graph.Specs[0].Limits.Tokens = 150 // ten requests of 15
		r := b.run(t.Context(), "go")
		if got := requests.Load(); got < 9 || got > 12 {
			t.Errorf("%d requests were made of a budget for nine", got)
		}
		for _, c := range bodies[*synapse.ChildFinished](r, "main") {
			// The one in the background may be stopped by its parent's end first.
			if c.Limit != "tokens" && c.Status != synapse.StatusCancelled {
				t.Errorf("child: %+v", c.Outcome)
			}
		}
		if out := r.outcome("main"); out.Status != synapse.StatusPartial || out.Limit != "tokens" {
			t.Errorf("main ended as %+v", out)
		}
	})
}

func TestSpawnLimit(t *testing.T) {
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "1"), task("worker", "2"), task("worker", "3")}}, {Text: "told"}},
		"worker": {{Text: "ok"}, {Text: "ok"}, {Text: "ok"}},
	}))
	b.child("worker", "read")
	b.graph.Specs[0].Limits.Spawns = 2
	r := b.run(t.Context(), "go")
	var refused int
	for _, got := range r.results("main") {
		if strings.Contains(got, "main may start no more than 2 sub-agents") {
			refused++
		}
	}
	if refused != 1 || len(taskIDs(r)) != 2 {
		t.Errorf("%d refused, %d started", refused, len(taskIDs(r)))
	}
}

// TestTimeLimitCoversTheWholeLife: the parent's limit ends the child too, and a
// child's own time includes what its tools take.
func TestTimeLimitCoversTheWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, byAgent(map[string][]script.Turn{
			"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "never"}},
			"worker": {{Text: "half", Calls: []synapse.ToolCall{script.Call("sleep", nil)}}},
		}))
		b.tools = append(b.tools, synapse.Tool{Name: "sleep", Run: func(ctx context.Context, _ *synapse.Invocation) (*synapse.ToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		b.child("worker", "sleep")
		b.graph.Specs[0].Limits.Time = synapse.Duration(time.Minute)
		start := time.Now()
		r := b.run(t.Context(), "go")
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %s", took)
		}
		for _, agent := range []string{"worker", "main"} {
			if out := r.outcome(agent); out.Status != synapse.StatusTimedOut {
				t.Errorf("%s ended as %+v", agent, out)
			}
		}
	})
}

// TestLongReport: a report that is too long is kept whole, and shortened in the
// parent's conversation.
func TestLongReport(t *testing.T) {
	long := strings.Repeat("many words ", 20_000)
	b := newBench(t, byAgent(map[string][]script.Turn{
		"main":   {{Calls: []synapse.ToolCall{task("worker", "1")}}, {Text: "told"}},
		"worker": {{Text: long}},
	}))
	b.child("worker", "read")
	var kept string
	b.local.Keep = func(_ context.Context, name, text string) (string, error) {
		kept = text
		return "/kept/" + name, nil
	}
	r := b.run(t.Context(), "go")
	got := r.results("main")[0]
	if kept != strings.TrimSpace(long) {
		t.Errorf("%d bytes were kept of %d", len(kept), len(long))
	}
	if len(got) > 81_000 || !strings.Contains(got, "the whole of it is in /kept/"+taskIDs(r)[0]) {
		t.Errorf("the parent reads %d bytes ending in %q", len(got), got[len(got)-100:])
	}
}

func TestDescriptionBudget(t *testing.T) {
	b := newBench(t, script.New(script.Turn{Text: "ok"}))
	for i := range 150 {
		b.child(fmt.Sprintf("agent-%03d", i), "read").Description = strings.Repeat("use it when something is to be done. ", 40)
	}
	b.opt.DescriptionBudget = 4000
	for _, def := range b.program().Offered("main") {
		if def.Name != "task" {
			continue
		}
		if len(def.Description) > 4000*4+1500 {
			t.Errorf("the task tool's text has %d bytes", len(def.Description))
		}
		for i := range 150 {
			if !strings.Contains(def.Description, fmt.Sprintf("- agent-%03d: use it", i)) {
				t.Errorf("agent-%03d was dropped", i)
			}
		}
	}
}
