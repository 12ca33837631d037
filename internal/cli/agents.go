package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/host"
)

func (a *app) agentsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "agents",
		Short: "List, explain, check and write agent definitions",
		Args:  noArgs,
		RunE:  group,
	}
	c.AddCommand(
		a.agentsListCommand(), a.agentsShowCommand(), a.agentsExplainCommand(), a.agentsValidateCommand(), a.agentsNewCommand(),
		a.agentsConvertCommand(), a.agentsImportCommand(),
		a.agentsSwitchCommand("enable", "Switch an agent on again", true),
		a.agentsSwitchCommand("disable", "Switch an agent off, in every workspace", false),
	)
	return c
}

// inspect opens a host to look at, not to run anything.
func (a *app) inspect(ctx context.Context) (*host.Host, error) {
	return a.open(ctx, func(o *host.Options) { o.Inspect = true })
}

// listedAgent is one entry of `agents list --json`.
type listedAgent struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Mode        agents.Mode      `json:"mode"`
	Ownership   agents.Ownership `json:"ownership"`
	Enabled     bool             `json:"enabled"`
	Layer       agents.LayerKind `json:"layer"`
	Origin      string           `json:"origin"`
	Path        string           `json:"path"` // "" where there is no file
	Model       string           `json:"model"`
	Effort      string           `json:"reasoning_effort"` // "" is the provider's default
	Shadows     []string         `json:"shadows"`
	Also        []string         `json:"also,omitempty"` // further names that reach it
}

type agentList struct {
	Agents      []listedAgent       `json:"agents"`
	Diagnostics []agents.Diagnostic `json:"diagnostics"`
}

func (a *app) agentsListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the agents, and what is wrong with their files",
		Long: `Lists every agent with the layer its definition comes from, the model and
reasoning effort it would run with, and the definitions it shadows; then what is
wrong with definition files. Notes without consequences are shown with -v.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			list, err := listAgents(h)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, list)
			}
			return a.writeAgents(a.p.Stdout, list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func listAgents(h *host.Host) (*agentList, error) {
	list := &agentList{Agents: []listedAgent{}, Diagnostics: []agents.Diagnostic{}}
	compiled := map[string]*synapse.Spec{}
	specs := h.Graph().Specs
	for i := range specs {
		if s := &specs[i]; s.ID != h.Graph().Entry && compiled[s.Agent] == nil {
			compiled[s.Agent] = s
		}
	}
	for _, d := range h.Registry().All() {
		l := listedAgent{
			Name: d.Name, Description: d.Description, Mode: d.Mode, Ownership: d.Ownership, Enabled: !d.Disabled,
			Layer: d.Layer, Origin: d.Origin, Path: d.Pos.File, Shadows: []string{},
		}
		if s := compiled[d.Name]; s != nil {
			l.Model, l.Effort = s.Model.String(), string(s.Effort)
		} else { // one that nobody can delegate to: what it would run with
			e, err := h.Explain(d.Name)
			if err != nil {
				return nil, err
			}
			l.Model, l.Effort = e.Model.Value, e.Effort.Value
		}
		l.Shadows = append(l.Shadows, h.Registry().Shadows(d.Name)...)
		l.Also = h.Registry().Aliases(d.Name)
		list.Agents = append(list.Agents, l)
	}
	list.Diagnostics = append(list.Diagnostics, h.Diagnostics()...)
	return list, nil
}

func (a *app) writeAgents(w io.Writer, list *agentList) error {
	var t table
	t.row("NAME", "LAYER", "MODEL · EFFORT", "DESCRIPTION")
	for _, l := range list.Agents {
		about := l.Description
		switch {
		case !l.Enabled:
			about = "(off) " + about
		case l.Mode == agents.ModePrimary:
			about = "(main agent only) " + about
		case l.Ownership == agents.OwnershipHandoff:
			about = "(handoff) " + about
		}
		layer := string(l.Layer)
		if l.Origin != agents.Native {
			layer += " (" + l.Origin + ")"
		}
		t.row(l.Name, layer, cmp.Or(l.Model, "unknown")+" · "+cmp.Or(l.Effort, "default"), about)
		if len(l.Also) > 0 {
			t.note("  also " + cleanLine(strings.Join(l.Also, ", ")))
		}
		for _, path := range l.Shadows {
			t.note("  shadows " + cleanLine(path))
		}
	}
	if err := t.write(w, a.width()); err != nil {
		return err
	}
	var shown []agents.Diagnostic
	hidden := 0
	for _, d := range list.Diagnostics {
		if d.Severity == agents.Info && !a.flags.verbose {
			hidden++
			continue
		}
		shown = append(shown, d)
	}
	if len(shown) > 0 {
		fmt.Fprintln(w)
	}
	for _, d := range shown {
		fmt.Fprintln(w, cleanLine(d.String()))
	}
	if hidden > 0 {
		fmt.Fprintf(w, "\n%s: -v shows them\n", count(int64(hidden), "note"))
	}
	return nil
}

// listAgents shows a conversation's user which agents there are.
func (a *app) listAgents(h *host.Host) {
	list, err := listAgents(h)
	if err == nil {
		err = a.writeAgents(a.p.Stderr, list)
	}
	if err != nil {
		fmt.Fprintln(a.p.Stderr, "synapse:", clean(err.Error()))
	}
}

// shownAgent is `agents show --json`.
type shownAgent struct {
	Path       string             `json:"path"`
	Layer      agents.LayerKind   `json:"layer"`
	Origin     string             `json:"origin"`
	Enabled    bool               `json:"enabled"`
	Shadows    []string           `json:"shadows"`
	Definition *agents.Definition `json:"definition"`
}

func (a *app) agentsShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Print an agent's definition",
		Long: `Prints a definition in the native format, whatever it was written in, with the
keys that mean nothing here. Where it comes from stands in a comment.`,
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := a.options()
			if err != nil {
				return err
			}
			r, _, err := host.LoadRegistry(opt)
			if err != nil {
				return err
			}
			d, err := named(r, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, shownAgent{
					Path: d.Pos.File, Layer: d.Layer, Origin: d.Origin, Enabled: !d.Disabled,
					Shadows: append([]string{}, r.Shadows(d.Name)...), Definition: d,
				})
			}
			return a.showAgent(d, r.Shadows(d.Name))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// named finds an agent by its name, one that is switched off included.
func named(r *agents.Registry, name string) (*agents.Definition, error) {
	if d, ok := r.Get(name); ok {
		return d, nil
	}
	d, err := r.Lookup(name)
	var miss *agents.LookupError
	if errors.As(err, &miss) && miss.Disabled != "" {
		if d, ok := r.Get(miss.Disabled); ok {
			return d, nil
		}
	}
	return d, err
}

func (a *app) showAgent(d *agents.Definition, shadows []string) error {
	text, err := d.Markdown()
	if err != nil {
		return fmt.Errorf("show agent %q: %w", d.Name, err)
	}
	from := "# " + cleanLine(d.Place())
	if d.Pos.File != "" {
		from += " (" + string(d.Layer) + " layer)"
	}
	if d.Disabled {
		from += ", switched off"
	}
	for _, s := range shadows {
		from += "\n# shadows " + cleanLine(s)
	}
	text = bytes.Replace(text, []byte("---\n"), []byte("---\n"+from+"\n"), 1)
	out := string(text)
	if isTerminal(a.p.Stdout) {
		out = clean(out)
	}
	_, err = io.WriteString(a.p.Stdout, out)
	return err
}

func (a *app) agentsExplainCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain [NAME]",
		Short: "Say what an agent may do, and why",
		Long: `Says of every tool whether the agent has it, and if not for what reason and where
that was set; with which model, reasoning effort and limits it runs and where they
come from; which permission rules judge its calls; and what is odd about it.
Without a name, or with "main", it explains the main agent.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("`%s` takes one NAME; see `%s --help`", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			e, err := explain(h, name)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, e)
			}
			a.writeExplanation(e)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// explain finds the agent of a name; the main agent goes by none, and by its
// own as long as no definition has that.
func explain(h *host.Host, name string) (*compile.Explanation, error) {
	if name == "" {
		return h.Explain("")
	}
	d, err := named(h.Registry(), name)
	switch {
	case err == nil:
		return h.Explain(d.Name)
	case name == compile.MainName:
		return h.Explain("")
	}
	return nil, err
}

func (a *app) writeExplanation(e *compile.Explanation) {
	w := a.p.Stdout
	place := e.Path
	if place == "" {
		place = "no file"
	}
	fmt.Fprintf(w, "%s: %s, %s layer", cleanLine(e.Name), cleanLine(place), e.Layer)
	if e.Origin != agents.Native {
		fmt.Fprintf(w, ", written for %s", cleanLine(e.Origin))
	}
	fmt.Fprintln(w)
	if e.NotOffered != "" {
		fmt.Fprintf(w, "nobody can delegate to it: %s\n", cleanLine(e.NotOffered))
	}
	fmt.Fprintln(w)
	var t table
	t.row("model", cmp.Or(e.Model.Value, "unknown"), cmp.Or(e.Model.Origin, "-"))
	t.row("reasoning effort", cmp.Or(e.Effort.Value, "the provider's default"), cmp.Or(e.Effort.Origin, "-"))
	t.row("limits", limits(e.Limits))
	t.write(w, 0)
	fmt.Fprintln(w, "\ntools")
	t = table{}
	for _, name := range e.Tools.Allowed {
		t.indented(2, mark(synapse.StatusCompleted)+" "+name, "allowed")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Tools.Denied)) {
		t.indented(2, mark(synapse.StatusFailed)+" "+name, string(e.Tools.Denied[name]), e.Tools.DeniedAt[name])
	}
	for _, name := range e.Tools.Unresolved {
		t.indented(2, "? "+name, "no such tool")
	}
	t.write(w, 0)
	if len(e.Permissions) > 0 {
		fmt.Fprintln(w, "\npermission rules; the strictest outcome of the sources wins, within a source the last rule that matches")
		for _, s := range e.Permissions {
			fmt.Fprintf(w, "  %s\n", cleanLine(s.Origin))
			t = table{}
			for _, r := range s.Rules {
				line := ""
				if r.Line > 0 {
					line = fmt.Sprintf("line %d", r.Line)
				}
				t.indented(4, string(r.Action), r.Tool, r.Pattern, line)
			}
			t.write(w, 0)
		}
	}
	if len(e.Diagnostics) > 0 {
		fmt.Fprintln(w, "\nwarnings")
		for _, d := range e.Diagnostics {
			fmt.Fprintf(w, "  %s\n", cleanLine(d.String()))
		}
	}
}

// limits says in words what bounds a run.
func limits(l synapse.Limits) string {
	var parts []string
	add := func(set bool, format string, v any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	if l.Turns > 0 {
		parts = append(parts, count(int64(l.Turns), "turn"))
	}
	if l.Tokens > 0 {
		parts = append(parts, count(l.Tokens, "token"))
	}
	add(l.CostUSD > 0, "$%g", l.CostUSD)
	add(l.Time > 0, "%s", l.Time)
	if l.ToolCalls > 0 {
		parts = append(parts, count(int64(l.ToolCalls), "tool call"))
	}
	if l.Spawns > 0 {
		parts = append(parts, count(int64(l.Spawns), "sub-agent"))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " · ")
}

func (a *app) agentsSwitchCommand(verb, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Long: short + `. The switch is kept for this user in
~/.synapse/disabled.json and holds from the next request on. An agent that is off
can't be reached in any way.`,
		Args:              exactArgs("NAME"),
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.inspect(cmd.Context())
			if err != nil {
				return err
			}
			defer h.Close()
			d, err := named(h.Registry(), args[0])
			if err != nil {
				return err
			}
			if d.Disabled != on {
				fmt.Fprintf(a.p.Stdout, "%s is %s already\n", cleanLine(d.Name), onOff(on))
				return nil
			}
			if err := h.Switch(cmd.Context(), d.Name, on); err != nil {
				return err
			}
			fmt.Fprintf(a.p.Stdout, "%s is %s, for this user in every workspace\n", cleanLine(d.Name), onOff(on))
			return nil
		},
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
