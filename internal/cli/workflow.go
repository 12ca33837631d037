package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/workflow"
)

func (a *app) workflowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "workflow",
		Short: "List, check, draw and run workflows",
		Args:  noArgs,
		RunE:  group,
	}
	c.AddCommand(a.workflowListCommand(), a.workflowValidateCommand(), a.workflowRunCommand(), a.workflowResumeCommand(), a.workflowGraphCommand())
	return c
}

// listedWorkflow is one entry of `workflow list --json`.
type listedWorkflow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Path        string          `json:"path"` // "" where there is no file
	Input       json.RawMessage `json:"input"`
	Nodes       []string        `json:"nodes"`
}

type workflowList struct {
	Workflows   []listedWorkflow    `json:"workflows"`
	Diagnostics []agents.Diagnostic `json:"diagnostics"`
}

func (a *app) workflowListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the workflows, and what is wrong with their files",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			list := workflowList{Workflows: []listedWorkflow{}, Diagnostics: append([]agents.Diagnostic{}, h.WorkflowDiagnostics()...)}
			for _, d := range h.Workflows() {
				w := listedWorkflow{Name: d.Name, Description: d.Description, Path: d.File, Input: d.Flow.Input, Nodes: []string{}}
				for _, n := range d.Flow.Nodes {
					w.Nodes = append(w.Nodes, n.Name)
				}
				list.Workflows = append(list.Workflows, w)
			}
			if asJSON {
				return printJSON(a.p.Stdout, list)
			}
			for _, w := range list.Workflows {
				fmt.Fprintf(a.p.Stdout, "%s\t%s\n", cleanLine(w.Name), cleanLine(w.Description))
			}
			if len(list.Workflows) == 0 {
				fmt.Fprintln(a.p.Stderr, "synapse: there are no workflows: they are files in .synapse/workflows")
			}
			for _, d := range list.Diagnostics {
				fmt.Fprintln(a.p.Stderr, clean(d.String()))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// validatedWorkflow is one file of `workflow validate --json`.
type validatedWorkflow struct {
	Path        string              `json:"path"`
	Loads       bool                `json:"loads"`
	Name        string              `json:"name"`
	Diagnostics []agents.Diagnostic `json:"diagnostics"`
}

func (a *app) workflowValidateCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate [FILE…]",
		Short: "Check workflow files, and change nothing",
		Long: `Checks workflow files against the agents and workflows there are: every name,
every expression and every path. Without files it checks those of the workspace
and of the user. It exits with 1 when one of them can't run.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			files, err := validateWorkflows(h, args)
			if err != nil {
				return err
			}
			bad := 0
			for _, f := range files {
				if !f.Loads {
					bad++
				}
			}
			if asJSON {
				err = printJSON(a.p.Stdout, struct {
					Files []validatedWorkflow `json:"files"`
				}{files})
			} else {
				for _, f := range files {
					for _, d := range f.Diagnostics {
						fmt.Fprintln(a.p.Stdout, clean(d.String()))
					}
					if f.Loads {
						fmt.Fprintf(a.p.Stdout, "%s: %s can run\n", cleanLine(f.Path), cleanLine(f.Name))
					}
				}
			}
			if err == nil && bad > 0 {
				err = &codedError{code: exitFailed, err: fmt.Errorf("%d of %d workflows can't run", bad, len(files))}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func validateWorkflows(h *host.Host, paths []string) ([]validatedWorkflow, error) {
	files := []validatedWorkflow{}
	if len(paths) == 0 {
		for _, d := range h.Workflows() {
			files = append(files, validatedWorkflow{Path: d.File, Loads: true, Name: d.Name, Diagnostics: []agents.Diagnostic{}})
		}
		for _, d := range h.WorkflowDiagnostics() {
			i := slices.IndexFunc(files, func(f validatedWorkflow) bool { return f.Path == d.File })
			if i < 0 {
				i = len(files)
				files = append(files, validatedWorkflow{Path: d.File})
			}
			files[i].Diagnostics = append(files[i].Diagnostics, d)
			files[i].Loads = files[i].Loads && d.Severity != agents.Error
		}
		return files, nil
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("%v", err)
		}
		d, diags := workflow.Parse(path, data)
		f := validatedWorkflow{Path: path, Name: d.Name}
		if !agents.HasErrors(diags) {
			all := append([]*workflow.Definition{d}, slices.DeleteFunc(slices.Clone(h.Workflows()), func(o *workflow.Definition) bool { return o.Name == d.Name })...)
			_, more := compile.CheckWorkflows(all, h.Registry().All())
			for _, m := range more {
				if m.File == path {
					diags = append(diags, m)
				}
			}
		}
		f.Loads, f.Diagnostics = !agents.HasErrors(diags), append([]agents.Diagnostic{}, diags...)
		files = append(files, f)
	}
	return files, nil
}

func (a *app) workflowGraphCommand() *cobra.Command {
	format := "mermaid"
	c := &cobra.Command{
		Use:   "graph NAME",
		Short: "Draw a workflow, as Mermaid or SVG",
		Args:  exactArgs("the name of a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			d, err := h.Workflow(args[0])
			if err != nil {
				return err
			}
			switch format {
			case "mermaid":
				_, err = fmt.Fprint(a.p.Stdout, workflow.Mermaid(d))
			case "svg":
				_, err = fmt.Fprint(a.p.Stdout, workflow.SVG(d))
			default:
				return usagef("--format %q: want mermaid or svg", format)
			}
			return err
		},
	}
	c.Flags().StringVar(&format, "format", format, "`format` of the drawing: mermaid or svg")
	return c
}

func (a *app) workflowRunCommand() *cobra.Command {
	var pairs []string
	var file string
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Run a workflow",
		Long: `Runs a workflow. What it comes to goes to standard output, its progress to
standard error. Exit codes are those of synapse run; 3 means as well that it waits
for an answer: synapse workflow resume goes on from there.`,
		Example: `  synapse workflow run fix-and-review --input goal="the parser hangs on an empty file"
  synapse workflow run audit --input-file input.json --output-format stream-json`,
		Args: exactArgs("the name of a workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := readInput(pairs, file)
			if err != nil {
				return err
			}
			view := a.newView()
			h, err := a.open(cmd.Context(), func(o *host.Options) { o.SeedAgents, o.Ask = true, view.asker() })
			if err != nil {
				return err
			}
			defer h.Close()
			d, err := h.Workflow(args[0])
			if err != nil {
				return err
			}
			if err := typeInput(d, input); err != nil {
				return err
			}
			return a.flow(view, h, h.RunWorkflow(cmd.Context(), d.Name, input))
		},
	}
	c.Flags().StringArrayVar(&pairs, "input", nil, "a `key=value` of the input; values are read as the schema says")
	c.Flags().StringVar(&file, "input-file", "", "the input as a JSON `file`")
	return c
}

// flow follows a workflow to its end.
func (a *app) flow(view *view, h *host.Host, events eventStream) error {
	a.sayModel(h)
	trace := ""
	out, err := a.follow(view, func(yield func(*synapse.Event, error) bool) {
		for e, err := range events {
			if e != nil {
				trace = e.Trace
			}
			if !yield(e, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if out.Limit == run.LimitApproval {
		fmt.Fprintf(a.p.Stderr, "synapse: answer with `synapse workflow resume %s --answer yes`, or no\n", trace)
	}
	return a.ended(out)
}

func (a *app) workflowResumeCommand() *cobra.Command {
	var answer, reason string
	c := &cobra.Command{
		Use:   "resume TRACE",
		Short: "Go on with a workflow that was cut off, or that waits for an answer",
		Args:  exactArgs("the id of a trace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var given *synapse.Answer
			switch strings.ToLower(answer) {
			case "":
				if reason != "" {
					return usagef("--reason goes with --answer")
				}
			case "yes", "y":
				given = &synapse.Answer{Allow: true, Reason: reason}
			case "no", "n":
				given = &synapse.Answer{Reason: reason}
			default:
				return usagef("--answer %q: want yes or no", answer)
			}
			view := a.newView()
			h, err := a.open(cmd.Context(), func(o *host.Options) { o.Ask = view.asker() })
			if err != nil {
				return err
			}
			defer h.Close()
			return a.flow(view, h, h.ResumeWorkflow(cmd.Context(), args[0], given))
		},
	}
	c.Flags().StringVar(&answer, "answer", "", "the `answer` to what it asks: yes or no; without it, it asks again")
	c.Flags().StringVar(&reason, "reason", "", "why, for the workflow to read")
	return c
}

// readInput makes the input of a workflow of its flags.
func readInput(pairs []string, file string) (map[string]any, error) {
	input := map[string]any{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("--input-file: %v", err)
		}
		if err := json.Unmarshal(data, &input); err != nil {
			return nil, usagef("--input-file %s: %s", filepath.Base(file), jsonProblem(data, err))
		}
	}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usagef("--input %q: want key=value", pair)
		}
		input[key] = typedText(value)
	}
	return input, nil
}

// typedText is a value as it was typed on the command line; what it means is
// decided by the schema.
type typedText string

// typeInput reads typed values as the workflow's schema says: text where it wants
// text, else JSON.
func typeInput(d *workflow.Definition, input map[string]any) error {
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	if len(d.Flow.Input) > 0 {
		if err := json.Unmarshal(d.Flow.Input, &schema); err != nil {
			return fmt.Errorf("workflow %s: input: %w", d.Name, err)
		}
	}
	for key, value := range input {
		text, ok := value.(typedText)
		if !ok {
			continue
		}
		input[key] = string(text)
		property, declared := schema.Properties[key]
		if !declared || property.Type == nil || property.Type == "string" {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return usagef("--input %s=%s: the schema wants %v, written as JSON", key, text, property.Type)
		}
		input[key] = v
	}
	return nil
}
