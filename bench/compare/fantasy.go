package main

import (
	"context"
	"encoding/json"
	"errors"

	"charm.land/fantasy"
)

// openFantasy runs the world with fantasy's agent, streaming. It has no
// sub-agents of its own: they are a tool that runs another agent, as programs
// that stand on it do.
func openFantasy(w *world) (func(context.Context) (string, error), error) {
	type readArgs struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
	}
	read := func() fantasy.AgentTool {
		return fantasy.NewParallelAgentTool("read_file", "reads a file", func(_ context.Context, in readArgs, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
			text, err := w.read(call.Input)
			if err != nil {
				return fantasy.NewTextErrorResponse(err.Error()), nil
			}
			return fantasy.NewTextResponse(text), nil
		})
	}
	agent := func(name string, tools ...fantasy.AgentTool) fantasy.Agent {
		return fantasy.NewAgent(fantasyModel{w}, fantasy.WithSystemPrompt(name), fantasy.WithTools(tools...), fantasy.WithMaxRetries(0))
	}
	worker := agent("worker", read())
	type taskArgs struct {
		Prompt string `json:"prompt"`
	}
	task := fantasy.NewParallelAgentTool(spawn, "starts a sub-agent", func(ctx context.Context, in taskArgs, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		out, err := worker.Stream(ctx, fantasy.AgentStreamCall{Prompt: in.Prompt})
		if err != nil {
			return fantasy.NewTextErrorResponse(err.Error()), nil
		}
		return fantasy.NewTextResponse(out.Response.Content.Text()), nil
	})
	boom := fantasy.NewAgentTool("boom", "panics", func(context.Context, struct{}, fantasy.ToolCall) (fantasy.ToolResponse, error) { panic("boom") })
	main := agent("main", read(), task, boom)
	return func(ctx context.Context) (string, error) {
		out, err := main.Stream(ctx, fantasy.AgentStreamCall{Prompt: "go"})
		if err != nil {
			return "", err
		}
		return out.Response.Content.Text(), nil
	}, nil
}

type fantasyModel struct{ w *world }

func (fantasyModel) Provider() string { return "bench" }
func (fantasyModel) Model() string    { return "m" }

func (m fantasyModel) Stream(ctx context.Context, in fantasy.Call) (fantasy.StreamResponse, error) {
	main, prompt, turn := false, "", 0
	for _, msg := range in.Prompt {
		switch msg.Role {
		case fantasy.MessageRoleSystem:
			main = textOf(msg) == "main"
		case fantasy.MessageRoleUser:
			prompt = textOf(msg)
		case fantasy.MessageRoleAssistant:
			turn++
		}
	}
	r, err := m.w.next(ctx, main, prompt, turn)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		finish := fantasy.FinishReasonStop
		if r.text != "" {
			for _, p := range []fantasy.StreamPart{
				{Type: fantasy.StreamPartTypeTextStart, ID: "0"}, {Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: r.text}, {Type: fantasy.StreamPartTypeTextEnd, ID: "0"},
			} {
				if !yield(p) {
					return
				}
			}
		}
		for _, c := range r.calls {
			finish = fantasy.FinishReasonToolCalls
			args := c.args
			if c.name == spawn {
				raw, _ := json.Marshal(map[string]string{"prompt": c.prompt})
				args = string(raw)
			}
			if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: c.id, ToolCallName: c.name, ToolCallInput: args}) {
				return
			}
		}
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: finish, Usage: fantasy.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}})
	}, nil
}

func textOf(msg fantasy.Message) string {
	for _, p := range msg.Content {
		if t, ok := fantasy.AsMessagePart[fantasy.TextPart](p); ok {
			return t.Text
		}
	}
	return ""
}

var errUnused = errors.New("not used here")

func (fantasyModel) Generate(context.Context, fantasy.Call) (*fantasy.Response, error) {
	return nil, errUnused
}

func (fantasyModel) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errUnused
}

func (fantasyModel) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errUnused
}
