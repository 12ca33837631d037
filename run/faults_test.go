package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
)

// hangTool ignores its context until release is closed.
func hangTool(release <-chan struct{}) synapse.Tool {
	return synapse.Tool{Name: "hang", Parallel: true, Run: func(context.Context, *synapse.Invocation) (*synapse.ToolResult, error) {
		<-release
		return synapse.TextResult("too late"), nil
	}}
}

// TestHungGrandchild: a tool that can't be stopped is given up by the run that
// made the call. The runs above that one wait for its end and don't invent one.
func TestHungGrandchild(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			ctx, cancel := context.WithCancel(t.Context())
			b := newBench(t, byAgent(map[string][]script.Turn{
				"main":   {{Calls: []synapse.ToolCall{task("middle", "1")}}},
				"middle": {{Text: "asking", Calls: []synapse.ToolCall{task("leaf", "3")}}},
				"leaf":   {{Text: "trying", Calls: []synapse.ToolCall{script.Call("hang", nil)}}},
			}))
			b.tools = append(b.tools, hangTool(release))
			b.child("middle", "task")
			b.edge("middle", "leaf", "leaf")
			b.spec("leaf", "hang")
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			r := b.run(ctx, "go")
			if took := time.Since(start); took != 65*time.Second {
				t.Errorf("took %s, want the cancel after a minute and five seconds of grace", took)
			}
			for _, agent := range []string{"leaf", "middle", "main"} {
				for _, end := range bodies[*synapse.RunFinished](r, agent) {
					if end.Status != synapse.StatusCancelled {
						t.Errorf("%s ended as %+v", agent, end.Outcome)
					}
				}
			}
			if out := r.outcome("main"); out.Total.Requests != 3 {
				t.Errorf("total = %+v", out.Total)
			}
		})
	}
}
