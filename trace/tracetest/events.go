package tracetest

import (
	"encoding/json"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// Start is the time of an event with seq 0; each seq is a second later.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

// A Run makes events that belong to it.
type Run struct{ Trace, ID, Parent, Agent, SpawnedBy string }

// Event returns an event of the run. Its time follows from its seq.
func (r Run) Event(seq int64, body synapse.Body) *synapse.Event {
	return &synapse.Event{
		V:         synapse.EventVersion,
		Seq:       seq,
		Time:      Start.Add(time.Duration(seq) * time.Second),
		Trace:     r.Trace,
		Run:       r.ID,
		ParentRun: r.Parent,
		Agent:     r.Agent,
		SpawnedBy: r.SpawnedBy,
		Kind:      body.Kind(),
		Body:      body,
	}
}

// Start returns the run's first event, with a prompt.
func (r Run) Start(seq int64, prompt string) *synapse.Event {
	body := &synapse.RunStarted{
		Spec:  &synapse.Spec{ID: r.Agent, Agent: r.Agent, Model: synapse.ModelRef{Provider: "script", Name: "small"}},
		Input: []synapse.Message{synapse.UserText(prompt)},
	}
	if r.Parent != "" {
		body.Depth = 1
	}
	return r.Event(seq, body)
}

// End returns the run's last event.
func (r Run) End(seq int64, status synapse.Status) *synapse.Event {
	return r.Event(seq, &synapse.RunFinished{Outcome: synapse.Outcome{Status: status}})
}

// Raw returns v as JSON.
func Raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test's own fault
	}
	return data
}

func usage(requests int64) synapse.Usage {
	cost := 0.25 * float64(requests)
	return synapse.Usage{Requests: requests, InputTokens: 100 * requests, OutputTokens: 10 * requests, CostUSD: &cost}
}

func reply(turn int, text string, calls ...synapse.ToolCall) *synapse.ModelReplied {
	b := &synapse.ModelReplied{Turn: turn, Reply: synapse.Reply{
		Message: synapse.Message{Role: synapse.RoleAssistant},
		Stop:    synapse.StopEnd,
		Usage:   usage(1),
		Model:   "script:large",
	}}
	if text != "" {
		b.Message = synapse.AssistantText(text)
	}
	for _, c := range calls {
		b.Stop = synapse.StopCalls
		b.Message.Parts = append(b.Message.Parts, synapse.Part{Kind: synapse.PartCall, Call: &c})
	}
	return b
}

// Conversation returns a whole trace in which all is well: a main run that
// delegates once, waits for an approval, is denied a tool and concludes.
func Conversation(trace string) []*synapse.Event {
	main := Run{Trace: trace, ID: trace + "-main", Agent: "main"}
	child := Run{Trace: trace, ID: trace + "-child", Parent: main.ID, Agent: "explore", SpawnedBy: "c1"}
	model := synapse.ModelRef{Provider: "script", Name: "small"}
	task := synapse.ToolCall{ID: "c1", Name: "task", Args: `{"prompt":"look"}`}
	shell := synapse.ToolCall{ID: "c2", Name: "execute", Args: `{"command":"make"}`}
	write := synapse.ToolCall{ID: "c3", Name: "write_file", Args: `{"path":"/etc/passwd"}`}
	grep := synapse.ToolCall{ID: "g1", Name: "grep", Args: `{"pattern":"bug"}`}
	found := synapse.Outcome{Status: synapse.StatusCompleted, Text: "it is in a.go", Turns: 2, Usage: usage(2), Total: usage(2), Model: "script:large"}
	done := synapse.Outcome{Status: synapse.StatusCompleted, Text: "fixed", Turns: 2, Usage: usage(2), Total: usage(4), Model: "script:large"}

	var events []*synapse.Event
	seq := int64(0)
	add := func(r Run, body synapse.Body) {
		seq++
		events = append(events, r.Event(seq, body))
	}
	add(main, main.Start(0, "Find the bug\nand fix it").Body)
	add(main, &synapse.ModelRequested{Turn: 1, Model: model, Messages: 1, Tools: 4})
	add(main, reply(1, "on it", task, shell, write))
	add(main, &synapse.ToolStarted{Call: task, Intent: "have it found", Key: "t1/tool/0", Effect: synapse.EffectUnsafe})
	add(main, &synapse.ChildStarted{Task: child.ID, Agent: child.Agent, Description: "find the bug", CallID: "c1"})
	add(child, &synapse.RunStarted{
		Spec: &synapse.Spec{ID: "explore", Agent: "explore", Model: model}, Depth: 1,
		Input: []synapse.Message{synapse.UserText("look")}, Description: "find the bug"})
	add(child, &synapse.ModelRequested{Turn: 1, Model: model, Messages: 1, Tools: 1})
	add(child, reply(1, "", grep))
	add(child, &synapse.ToolStarted{Call: grep, Intent: "search", Key: "t1/tool/0", Effect: synapse.EffectRead})
	add(child, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "g1", Name: "grep", Text: "a.go:1: bug"}, Elapsed: synapse.Duration(time.Second)})
	add(child, &synapse.ModelRequested{Turn: 2, Model: model, Messages: 3, Tools: 1})
	add(child, reply(2, "it is in a.go"))
	add(child, &synapse.RunFinished{Outcome: found})
	add(main, &synapse.ChildFinished{Task: child.ID, Agent: child.Agent, CallID: "c1", Outcome: found})
	add(main, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c1", Name: "task", Text: found.Text}, Elapsed: synapse.Duration(10 * time.Second)})
	add(main, &synapse.ApprovalAsked{Ask: synapse.Ask{ID: "q1", Run: main.ID, Agent: "main", Tool: "execute", Args: Raw(map[string]string{"command": "make"}), Subject: "make", Reason: "user settings"}})
	add(main, &synapse.ApprovalAnswered{ID: "q1", Answer: synapse.Answer{Allow: true}})
	add(main, &synapse.ToolStarted{Call: shell, Intent: "build", Key: "t1/tool/1", Effect: synapse.EffectUnsafe})
	add(main, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c2", Name: "execute", Text: "ok"}, Elapsed: synapse.Duration(time.Second)})
	add(main, &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c3", Name: "write_file", Text: "permission denied: write_file: outside the workspace; do not retry", IsError: true}, Denied: "outside the workspace"})
	add(main, &synapse.ModelRequested{Turn: 2, Model: model, Messages: 5, Tools: 4})
	add(main, reply(2, "fixed"))
	add(main, &synapse.Conclusion{Content: "fixed"})
	add(main, &synapse.RunFinished{Outcome: done})
	return events
}

// Every returns one event of every kind that is stored, with every field set
// that an event can have.
func Every(trace string) []*synapse.Event {
	cost, temperature, topP := 0.0125, 0.0, 0.95
	model := synapse.ModelRef{Provider: "openai", Name: "gpt:5"}
	limits := synapse.Limits{Turns: 9, Tokens: 1 << 40, CostUSD: 1.5, Time: synapse.Duration(90 * time.Second), ToolCalls: 3, Spawns: 2}
	call := synapse.ToolCall{ID: "c1", Name: "edit", Args: `{"path": malformed`}
	use := synapse.Usage{Requests: 1, InputTokens: 2, OutputTokens: 3, CacheReadTokens: 4, CacheWriteTokens: 5, ReasoningTokens: 6, CostUSD: &cost}
	media := []synapse.Media{{Name: "a.png", Type: "image/png", Data: []byte{0, 1, 2, 0xff}}}
	result := synapse.ToolResult{CallID: "c1", Name: "edit", Text: "done", IsError: true, Media: media, Details: Raw(map[string]int{"exit": 1})}
	message := synapse.Message{Role: synapse.RoleAssistant, Parts: []synapse.Part{
		{Kind: synapse.PartReasoning, Text: "hm", Opaque: Raw("signature==")},
		{Kind: synapse.PartText, Text: "hello"},
		{Kind: synapse.PartCall, Call: &call},
		{Kind: synapse.PartResult, Result: &result},
		{Kind: synapse.PartMedia, Media: &media[0]},
	}}
	outcome := synapse.Outcome{Status: synapse.StatusPartial, Text: "half", Cause: "turns", Limit: "turns", Turns: 9, Usage: use, Total: use.Add(use), Model: model.String(), ErrorKind: synapse.ErrorRateLimit, Failed: 1}
	bodies := []synapse.Body{
		&synapse.RunStarted{
			Spec: &synapse.Spec{
				ID: "coder@2", Agent: "coder", Description: "codes", Digest: "abc", System: "be <good> & brief",
				Model: model, ModelOrigin: "settings", Fallback: []synapse.ModelRef{{Provider: "a", Name: "b"}},
				Effort: synapse.EffortOff, EffortOrigin: "file", Temperature: &temperature, TopP: &topP,
				Policy: policy.Policy{
					Allow: []string{"edit"},
					Block: map[string]policy.Reason{"execute": {Code: policy.ReadOnly, Origin: "flag"}},
					Rules: []policy.Source{{Origin: "user", Rules: []policy.Rule{{Tool: "edit", Pattern: "*", Action: policy.Ask, Line: 3}}}},
				},
				Limits: limits, Preload: []synapse.Message{message}, Output: Raw(map[string]string{"type": "object"}),
				Background: true, Origin: "built-in", NoTools: "none left",
			},
			Depth: 2, Input: []synapse.Message{message, synapse.UserText("go")}, Description: "codes it", Background: true, Resumed: true, Limits: limits,
		},
		&synapse.ModelRequested{Turn: 1, Model: model, Messages: 2, Tools: 3, Final: true},
		&synapse.ModelReplied{Turn: 1, Reply: synapse.Reply{Message: message, Stop: synapse.StopLength, Usage: use, Model: "gpt"}},
		&synapse.ToolStarted{Call: call, Intent: "why", Key: "t1/tool/0", Effect: synapse.EffectKeyed},
		&synapse.ToolFinished{Result: result, Elapsed: synapse.Duration(1234567), Denied: "no"},
		&synapse.ApprovalAsked{Ask: synapse.Ask{ID: "q", Run: "r", Agent: "coder", Tool: "edit", Args: Raw([]int{1}), Intent: "why", Subject: "a.go", Reason: "rule"}},
		&synapse.ApprovalAnswered{ID: "q", Answer: synapse.Answer{Allow: true, Reason: "fine"}},
		&synapse.ChildStarted{Task: "r2", Agent: "explore", Description: "looks", CallID: "c2", Background: true, Resumed: true},
		&synapse.ChildFinished{Task: "r2", Agent: "explore", CallID: "c2", Outcome: outcome},
		&synapse.Warning{Code: "skill_missing", Message: "no such skill"},
		&synapse.Retry{Turn: 1, Attempt: 2, Error: "HTTP 529", After: synapse.Duration(time.Second), Model: model},
		&synapse.Conclusion{Content: "all done"},
		&synapse.RunFinished{Outcome: outcome},
	}
	run := Run{Trace: trace, ID: "r", Parent: "p", Agent: "coder", SpawnedBy: "c0"}
	var events []*synapse.Event
	for i, b := range bodies {
		events = append(events, run.Event(int64(i+1), b))
	}
	events[1].Time = time.Time{}
	events[2].Time = events[2].Time.In(time.FixedZone("", 3*3600))
	return events
}
