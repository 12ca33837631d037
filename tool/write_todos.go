package tool

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
)

//go:embed write_todos.md
var writeTodosWords string

const (
	maxTodos    = 100
	maxTodoText = 500 // bytes of one
)

// todoStatus is how far a step is.
type todoStatus string

const (
	todoPending    todoStatus = "pending"
	todoInProgress todoStatus = "in_progress"
	todoCompleted  todoStatus = "completed"
)

func (todoStatus) values() []any { return []any{"pending", "in_progress", "completed"} }

type todo struct {
	Content string     `json:"content"`
	Status  todoStatus `json:"status"`
}

// writeTodosArgs are also the details of the result.
type writeTodosArgs struct {
	Todos []todo `json:"todos"`
}

// writeTodos keeps nothing: the list lives in the conversation, so that the
// lists of parallel agents can't meet.
func writeTodos() synapse.Tool {
	t := must(New("write_todos", writeTodosWords, runWriteTodos))
	t.ReadOnly, t.Parallel = true, true
	return t
}

func runWriteTodos(_ context.Context, _ *synapse.Invocation, args writeTodosArgs) (*synapse.ToolResult, error) {
	if len(args.Todos) > maxTodos {
		return nil, fmt.Errorf("%d todos; at most %d are taken: join small steps", len(args.Todos), maxTodos)
	}
	if len(args.Todos) == 0 {
		return &synapse.ToolResult{Text: "[the list is empty]", Details: details(args)}, nil
	}
	var out strings.Builder
	byStatus := make(map[todoStatus]int)
	for i, t := range args.Todos {
		text := strings.Join(strings.Fields(t.Content), " ")
		switch {
		case text == "":
			return nil, fmt.Errorf("todo %d: content is empty", i+1)
		case len(text) > maxTodoText:
			return nil, fmt.Errorf("todo %d: content has %d bytes; at most %d are taken", i+1, len(text), maxTodoText)
		case !slices.Contains(t.Status.values(), any(string(t.Status))):
			return nil, fmt.Errorf("todo %d: status %q: want pending, in_progress or completed", i+1, t.Status)
		}
		byStatus[t.Status]++
		fmt.Fprintf(&out, "%s %s\n", todoMarks[t.Status], text)
	}
	switch n, open := byStatus[todoInProgress], byStatus[todoPending]; {
	case n > 1:
		fmt.Fprintf(&out, "[%d steps are in_progress; one at a time is clearer]\n", n)
	case n == 0 && open > 0:
		out.WriteString("[no step is in_progress; mark the one you work on]\n")
	case n == 0:
		out.WriteString("[all completed]\n")
	}
	return &synapse.ToolResult{Text: strings.TrimSuffix(out.String(), "\n"), Details: details(args)}, nil
}

var todoMarks = map[todoStatus]string{todoPending: "[ ]", todoInProgress: "[>]", todoCompleted: "[x]"}
