package run

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
)

//go:embed run_workflow.md
var workflowText string

var workflowSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"name":{"type":"string","description":"of the workflow"},` +
	`"input":{"type":"object","description":"what it is started with"},` +
	`"background":{"type":"boolean"}},` +
	`"required":["name"]}`)

type workflowArgs struct {
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input"`
	Background bool            `json:"background"`
}

// workflowLines lists the workflows a model may run, each with what it takes.
func workflowLines(flows []callee, budget int) string {
	lines := func(limit int) string {
		var b strings.Builder
		b.WriteString(strings.TrimSpace(workflowText) + "\n\nWorkflows:")
		for _, f := range flows {
			fmt.Fprintf(&b, "\n- %s: %s", oneLine(f.spec.Agent), shorten(oneLine(f.spec.Description), limit))
			if schema := f.spec.Flow.Input; len(schema) > 0 {
				fmt.Fprintf(&b, " (input: %s)", schema)
			}
		}
		return b.String()
	}
	text := lines(1 << 20)
	for limit := 400; len(text) > budget && limit > 20; limit /= 2 {
		text = lines(limit)
	}
	return text
}

// workflowInput makes what a workflow starts with of a call's arguments. It
// refuses the call if they make none.
func (l *loop) workflowInput(s *step) (in ChildInput, err error) {
	var args workflowArgs
	if err := json.Unmarshal(s.v.args, &args); err != nil {
		l.refuse(s, err.Error(), "")
		return in, nil
	}
	spec, ok := find(l.ps.flows, args.Name)
	if !ok {
		names := make([]string, len(l.ps.flows))
		for i, f := range l.ps.flows {
			names[i] = f.spec.Agent
		}
		l.refuse(s, fmt.Sprintf("unknown workflow %q: there are: %s", args.Name, strings.Join(names, ", ")), "")
		return in, nil
	}
	if slices.Contains(l.in.Within, spec.ID) {
		l.refuse(s, fmt.Sprintf("you work within the workflow %q: it can't run itself", spec.Agent), "")
		return in, nil
	}
	if _, err := l.p.specs[spec.ID].flow.readInput(string(args.Input)); err != nil {
		l.refuse(s, fmt.Sprintf("the workflow %q was not started: %v\nIts input must fit this schema: %s", spec.Agent, err, spec.Flow.Input), "")
		return in, nil
	}
	text := string(args.Input)
	if text == "" {
		text = "{}"
	}
	return ChildInput{
		Task: l.taskID(s.key), Spec: spec, Depth: l.in.Depth + 1, CallID: s.call.ID, Description: "workflow " + spec.Agent,
		Background: args.Background, Input: []synapse.Message{synapse.UserText(text)},
	}, nil
}
