package main

import (
	"context"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

// openEino runs the world with eino's ADK: a chat model agent whose sub-agent is
// an agent tool, streaming, with its defaults.
func openEino(w *world) (func(context.Context) (string, error), error) {
	ctx := context.Background()
	agent := func(name string, tools ...tool.BaseTool) (*adk.ChatModelAgent, error) {
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: name, Description: "works", Instruction: name, Model: einoModel{w}, MaxIterations: 1000,
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}},
		})
	}
	worker, err := agent(spawn, einoRead{w})
	if err != nil {
		return nil, err
	}
	main, err := agent("main", einoRead{w}, einoBoom{}, adk.NewAgentTool(ctx, worker))
	if err != nil {
		return nil, err
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: main, EnableStreaming: true})
	return func(ctx context.Context) (string, error) { return lastText(runner.Query(ctx, "go")) }, nil
}

// lastText reads events to their end and returns the last text without calls.
func lastText(events *adk.AsyncIterator[*adk.AgentEvent]) (string, error) {
	text := ""
	for {
		e, ok := events.Next()
		if !ok {
			return text, nil
		}
		if e.Err != nil {
			return "", e.Err
		}
		if e.Output == nil || e.Output.MessageOutput == nil {
			continue
		}
		msg, err := e.Output.MessageOutput.GetMessage()
		if err != nil {
			return "", err
		}
		if msg.Role == schema.Assistant && len(msg.ToolCalls) == 0 {
			text = msg.Content
		}
	}
}

type einoModel struct{ w *world }

func (m einoModel) Generate(ctx context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	main, prompt, turn := false, "", 0
	for _, msg := range in {
		switch msg.Role {
		case schema.System:
			main = msg.Content == "main"
		case schema.User:
			prompt = msg.Content
		case schema.Assistant:
			turn++
		}
	}
	r, err := m.w.next(ctx, main, prompt, turn)
	if err != nil {
		return nil, err
	}
	out := &schema.Message{Role: schema.Assistant, Content: r.text}
	for i, c := range r.calls {
		args := c.args
		if c.name == spawn {
			args = `{"request":"` + c.prompt + `"}`
		}
		out.ToolCalls = append(out.ToolCalls, schema.ToolCall{Index: &i, ID: c.id, Type: "function", Function: schema.FunctionCall{Name: c.name, Arguments: args}})
	}
	return out, nil
}

func (m einoModel) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	msg, err := m.Generate(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{msg}), nil
}

type einoRead struct{ w *world }

func (einoRead) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "read_file", Desc: "reads a file", ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{
		"path": {Type: schema.String, Required: true}, "offset": {Type: schema.Integer},
	})}, nil
}

func (t einoRead) InvokableRun(_ context.Context, args string, _ ...tool.Option) (string, error) {
	return t.w.read(args)
}

type einoBoom struct{}

func (einoBoom) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: "boom", Desc: "panics"}, nil
}

func (einoBoom) InvokableRun(context.Context, string, ...tool.Option) (string, error) { panic("boom") }
