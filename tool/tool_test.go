package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/tool"
)

func ExampleNew() {
	type place struct {
		City string `json:"city" jsonschema:"in English"`
		Days int    `json:"days,omitempty" jsonschema:"default 3"`
	}
	weather, err := tool.New("weather", "Forecasts the weather of a city.",
		func(_ context.Context, _ *synapse.Invocation, p place) (*synapse.ToolResult, error) {
			if p.City == "" {
				return nil, errors.New("no city given")
			}
			return synapse.TextResult(p.City + ": rain"), nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	weather.ReadOnly, weather.Parallel = true, true
	fmt.Println(string(weather.Schema))
	r, err := weather.Run(context.Background(), &synapse.Invocation{Args: json.RawMessage(`{"city":"Bergen"}`)})
	fmt.Println(r.Text, err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"in English"},"days":{"type":"integer","description":"default 3"}},"required":["city"]}
	// Bergen: rain <nil>
}

func TestNewSchemas(t *testing.T) {
	type inner struct {
		A []string          `json:"a"`
		B *int              `json:"b,omitempty"`
		C map[string]string `json:"c,omitempty"`
	}
	type outer struct {
		In []inner `json:"in"`
	}
	x, err := tool.New("x", "does x", func(context.Context, *synapse.Invocation, outer) (*synapse.ToolResult, error) {
		return synapse.TextResult(""), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"in":{"type":"array","items":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"integer"},"c":{"type":"object","additionalProperties":{"type":"string"}}},"required":["a"]}}},"required":["in"]}`
	if string(x.Schema) != want {
		t.Errorf("schema\n got %s\nwant %s", x.Schema, want)
	}
	if x.ReadOnly || x.Keyed || x.Parallel {
		t.Errorf("a tool of which nothing is known: %+v", x)
	}
}

type empty struct{}

func TestNewRefuses(t *testing.T) {
	run := func(context.Context, *synapse.Invocation, empty) (*synapse.ToolResult, error) { return nil, nil }
	for _, name := range []string{"", "a b", "a.b", strings.Repeat("x", 65)} {
		if _, err := tool.New(name, "d", run); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	if _, err := tool.New("a", " ", run); err == nil {
		t.Error("an empty description was taken")
	}
	if _, err := tool.New[empty]("a", "d", nil); err == nil {
		t.Error("a nil function was taken")
	}
	if _, err := tool.New("a", "d", func(context.Context, *synapse.Invocation, string) (*synapse.ToolResult, error) { return nil, nil }); err == nil {
		t.Error("arguments that are no struct were taken")
	}
	type cycle struct {
		Next *cycle `json:"next"`
	}
	if _, err := tool.New("a", "d", func(context.Context, *synapse.Invocation, cycle) (*synapse.ToolResult, error) { return nil, nil }); err == nil {
		t.Error("a type without a finite schema was taken")
	}
}

func TestNewErrors(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type a struct {
		N int `json:"n"`
	}
	x, err := tool.New("x", "does x", func(_ context.Context, _ *synapse.Invocation, in a) (*synapse.ToolResult, error) {
		switch in.N {
		case 1:
			return nil, boom
		case 2:
			return nil, nil
		case 3:
			cancel()
			return nil, boom
		}
		return synapse.TextResult("fine"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(raw string) (*synapse.ToolResult, error) {
		return x.Run(ctx, &synapse.Invocation{Args: json.RawMessage(raw)})
	}
	if r, err := run(""); err != nil || r.Text != "fine" {
		t.Errorf("no arguments: %v %v", r, err)
	}
	if r, err := run(`{"n":1}`); err != nil || !r.IsError || r.Text != "x: boom" {
		t.Errorf("an error of the tool: %v %v", r, err)
	}
	if r, err := run(`{"n":"1"}`); err != nil || !r.IsError || r.Text != `x: argument "n": got a JSON string, want a value for int` {
		t.Errorf("a wrong type: %v %v", r, err)
	}
	if r, err := run(`{"n":2}`); err == nil {
		t.Errorf("neither result nor error: %v", r)
	}
	if _, err := run(`{"n":3}`); !errors.Is(err, boom) {
		t.Errorf("an error after the context ended: %v", err)
	}
}

func TestWriteTodos(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	todo := func(content, status string) any { return args{"content": content, "status": status} }
	for _, test := range []struct {
		todos []any
		want  string
	}{
		{[]any{todo("look", "completed"), todo(" fix\nit ", "in_progress"), todo("test", "pending")}, "[x] look\n[>] fix it\n[ ] test"},
		{[]any{todo("a", "in_progress"), todo("b", "in_progress")}, "[>] a\n[>] b\n[2 steps are in_progress; one at a time is clearer]"},
		{[]any{todo("a", "pending")}, "[ ] a\n[no step is in_progress; mark the one you work on]"},
		{[]any{todo("a", "completed")}, "[x] a\n[all completed]"},
		{[]any{}, "[the list is empty]"},
	} {
		if got := b.ok("write_todos", args{"todos": test.todos}); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	b.fails("write_todos", args{"todos": []any{todo("a", "done")}}, `todo 1: status "done": want pending, in_progress or completed`)
	b.fails("write_todos", args{"todos": []any{todo("a", "pending"), todo(" ", "pending")}}, "todo 2: content is empty")
	b.fails("write_todos", args{"todos": []any{todo(strings.Repeat("x", 501), "pending")}}, "at most 500")
	many := make([]any, 101)
	for i := range many {
		many[i] = todo("x", "pending")
	}
	b.fails("write_todos", args{"todos": many}, "101 todos; at most 100")
	var d struct {
		Todos []struct{ Content, Status string }
	}
	r := b.run("write_todos", args{"todos": []any{todo("a", "pending")}})
	if err := json.Unmarshal(r.Details, &d); err != nil || len(d.Todos) != 1 || d.Todos[0].Status != "pending" {
		t.Errorf("details %s: %v", r.Details, err)
	}
}
