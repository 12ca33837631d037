package host

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/internal/spelling"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/workflow"
)

// workflowFolder is where workflows lie below a workspace, and below the home
// directory.
const workflowFolder = "workflows"

// workflowDirs are the directories that workflows are read from.
func (h *Host) workflowDirs(set *settings.Settings) []string {
	dirs := []string{filepath.Join(h.opt.Workspace, ".synapse", workflowFolder)}
	if dir := set.UserDir(); dir != "" {
		dirs = append(dirs, filepath.Join(dir, workflowFolder))
	}
	return dirs
}

// loadWorkflows reads the workflows of every layer, and checks them.
func (h *Host) loadWorkflows(a *assembly) {
	var user, project []*workflow.Definition
	var found []agents.Diagnostic
	if dir := a.settings.UserDir(); dir != "" {
		user, found = workflow.Load(dir, workflowFolder)
		a.workflowDiagnostics = append(a.workflowDiagnostics, found...)
	}
	project, found = workflow.Load(h.opt.Workspace, filepath.Join(".synapse", workflowFolder))
	a.workflowDiagnostics = append(a.workflowDiagnostics, found...)
	all := workflow.Merge(user, project, h.opt.Workflows)
	var diags []agents.Diagnostic
	a.workflows, diags = compile.CheckWorkflows(all, a.registry.All())
	a.workflowDiagnostics = append(a.workflowDiagnostics, diags...)
	if n := len(a.workflowDiagnostics); n > 0 && agents.HasErrors(a.workflowDiagnostics) {
		a.warnings = append(a.warnings, settings.Warning{Code: "workflow-errors",
			Message: fmt.Sprintf("%d workflow problems: `synapse workflow validate` shows them", n)})
	}
}

// nodeFuncs are the functions of the workflows that the program has built.
func nodeFuncs(defs []*workflow.Definition) map[string]synapse.NodeFunc {
	funcs := map[string]synapse.NodeFunc{}
	for _, d := range defs {
		for name, f := range d.Funcs {
			funcs[compile.FuncName(d.Name, name)] = f
		}
	}
	return funcs
}

// Workflows returns the workflows that can run, by name.
func (h *Host) Workflows() []*workflow.Definition { return h.current().workflows }

// WorkflowDiagnostics returns what is wrong with workflows.
func (h *Host) WorkflowDiagnostics() []agents.Diagnostic { return h.current().workflowDiagnostics }

// Workflow returns the workflow of a name. The error says which there are.
func (h *Host) Workflow(name string) (*workflow.Definition, error) {
	var names []string
	for _, d := range h.Workflows() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	for _, d := range h.WorkflowDiagnostics() {
		if base := filepath.Base(d.File); d.Severity == agents.Error && strings.TrimSuffix(base, filepath.Ext(base)) == name {
			return nil, configErrorf("the workflow %q has errors: %s", name, d)
		}
	}
	switch near := spelling.Nearest(name, names); {
	case near != "":
		return nil, configErrorf("there is no workflow %q: did you mean %q?", name, near)
	case len(names) == 0:
		return nil, configErrorf("there is no workflow %q, nor any other: they are files in .synapse/workflows", name)
	}
	return nil, configErrorf("there is no workflow %q: there are: %s", name, strings.Join(names, ", "))
}

// RunWorkflow runs a workflow and yields its events and those of its agents, as
// [Host.Run] does. The input fits the workflow's schema; nil is an empty object.
func (h *Host) RunWorkflow(ctx context.Context, name string, input map[string]any) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		d, err := h.Workflow(name)
		if err != nil {
			yield(nil, err)
			return
		}
		if input == nil {
			input = map[string]any{}
		}
		text, err := json.Marshal(input)
		if err != nil {
			yield(nil, fmt.Errorf("run workflow %s: input: %w", name, err))
			return
		}
		a := h.current()
		if a.settings != nil && !a.settings.EnableSubagents.V {
			yield(nil, configErrorf("workflows run sub-agents, and enable_subagents is off (%s)", a.settings.EnableSubagents.Origin))
			return
		}
		in := run.Input{Prompt: string(text), Spec: compile.WorkflowID(d.Name), Limits: h.opt.Limits}
		h.stream(ctx, a.program, in)(yield)
	}
}

// PausedWorkflow returns where a workflow waits, with its open questions.
func (h *Host) PausedWorkflow(ctx context.Context, id string) (*run.Checkpoint, error) {
	at, err := h.checkpoint(ctx, id)
	if err != nil {
		return nil, err
	}
	if at.State.Flow == nil {
		return nil, fmt.Errorf("trace %s is not a workflow", id)
	}
	return at, nil
}

// ResumeWorkflow lets a workflow go on where it was cut off or waits. Every open
// question gets the answer; nil asks again.
func (h *Host) ResumeWorkflow(ctx context.Context, id string, answer *synapse.Answer) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		at, err := h.PausedWorkflow(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		if answer != nil {
			for _, q := range at.State.Flow.Questions() {
				at.State.Flow.Answers[q.ID] = *answer
			}
		}
		h.stream(ctx, h.current().program, run.Input{From: at})(yield)
	}
}
