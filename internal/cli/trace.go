package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/display"
	"github.com/synapse-agents/synapse/trace"
)

func (a *app) traceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Look at what past requests did",
		Long: `Shows the journal: every request with the runs it caused. ID is a trace's id, the
beginning of one that no other has, or "last".`,
		Args: noArgs,
		RunE: group,
	}
	c.AddCommand(a.traceListCommand(), a.traceShowCommand(), a.traceExportCommand(), a.traceViewCommand())
	return c
}

func (a *app) traceListCommand() *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List past requests, the latest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usagef("--limit can't be negative")
			}
			list := []*trace.Summary{}
			err := a.journal(cmd.Context(), func(j trace.Journal) error {
				for s, err := range j.Traces(cmd.Context(), trace.TraceQuery{Limit: limit}) {
					if err != nil {
						return err
					}
					list = append(list, s)
				}
				return nil
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, map[string]any{"traces": list})
			}
			return a.writeTraces(list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().IntVar(&limit, "limit", 0, "at most `n` requests")
	return c
}

func (a *app) writeTraces(list []*trace.Summary) error {
	if len(list) == 0 {
		fmt.Fprintln(a.p.Stderr, "synapse: nothing has been run yet")
		return nil
	}
	var t table
	t.row("ID", "STARTED", "TIME", "STATUS", "RUNS", "TOKENS", "COST", "MODEL", "PROMPT")
	for _, s := range list {
		elapsed := "-"
		if !s.Ended.IsZero() {
			elapsed = seconds(s.Ended.Sub(s.Started))
		}
		t.row(s.Trace, s.Started.Local().Format("2006-01-02 15:04:05"), elapsed, words(s.Status), fmt.Sprint(s.Runs),
			number(s.Usage.Tokens()), cost(s.Usage), s.Model, s.Prompt)
	}
	return t.write(a.p.Stdout, a.width())
}

// words is a status for people.
func words(s synapse.Status) string {
	if s == trace.StatusOpen {
		return "not ended"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

func cost(u synapse.Usage) string { return display.Cost(u) }

// journal opens the journal for a command that reads it.
func (a *app) journal(ctx context.Context, read func(trace.Journal) error) error {
	j, err := host.OpenJournal(ctx, host.Options{Home: a.p.Home, Environ: a.p.Environ})
	if err != nil {
		return err
	}
	defer j.Close()
	return read(j)
}

// find returns the id of the trace that the user means.
func find(ctx context.Context, j trace.Journal, id string) (string, error) {
	var found []string
	for s, err := range j.Traces(ctx, trace.TraceQuery{}) {
		if err != nil {
			return "", err
		}
		if id == "last" || s.Trace == id {
			return s.Trace, nil
		}
		if id != "" && strings.HasPrefix(strings.ToUpper(s.Trace), strings.ToUpper(id)) {
			found = append(found, s.Trace)
		}
	}
	switch len(found) {
	case 0:
		if id == "last" {
			return "", errors.New("nothing has been run yet")
		}
		return "", fmt.Errorf("no trace %q: `synapse trace list` shows those there are", id)
	case 1:
		return found[0], nil
	}
	shown, more := found, ""
	if len(found) > 5 {
		shown, more = found[:5], ", …"
	}
	return "", fmt.Errorf("%q could be %s%s; write more of it", id, strings.Join(shown, ", "), more)
}

// withTrace opens the journal and finds a trace in it.
func (a *app) withTrace(ctx context.Context, id string, read func(j trace.Journal, id string) error) error {
	err := a.journal(ctx, func(j trace.Journal) error {
		id, err := find(ctx, j, id)
		if err != nil {
			return err
		}
		return read(j, id)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("nothing has been run yet")
	}
	return err
}

func (a *app) traceShowCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Draw the tree of a request's runs",
		Long: `Draws the runs of a request as a tree. Each has its status, model, turns, time and
tokens (with "in all" for those of the runs below it too), its tool calls with what
each was for, and what was denied and why. With -v also the arguments.`,
		Args:              exactArgs("ID"),
		ValidArgsFunction: a.completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTrace(cmd.Context(), args[0], func(j trace.Journal, id string) error {
				tree, err := trace.Build(j.Events(cmd.Context(), trace.Query{Trace: id}))
				if err != nil {
					return err
				}
				if asJSON {
					return trace.WriteJSON(a.p.Stdout, tree)
				}
				return a.writeTree(tree)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// writeTree draws the runs of a trace.
func (a *app) writeTree(t *trace.Tree) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · %s · %s · %s · cost %s\n", cleanLine(t.Trace), words(t.Status), t.Started.Local().Format("2006-01-02 15:04:05"),
		count(t.Usage.Tokens(), "token"), cost(t.Usage))
	for _, r := range t.Runs {
		a.writeRun(&b, r, "", "")
	}
	if t.Conclusion != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(clean(t.Conclusion), "\n"))
	}
	if _, err := fmt.Fprint(a.p.Stdout, b.String()); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

// writeRun draws a run: a line for itself, one for each call, and below the call
// that started it each child.
func (a *app) writeRun(b *strings.Builder, r *trace.Run, head, tail string) {
	fmt.Fprintf(b, "%s%s %s", head, runMark(r.Status), cleanLine(r.Agent))
	if r.Description != "" {
		fmt.Fprintf(b, ": %s", cleanLine(r.Description))
	} else if r.Prompt != "" {
		fmt.Fprintf(b, ": %s", cleanLine(r.Prompt))
	}
	b.WriteByte('\n')
	under := tail + "│ "
	if len(r.Calls) == 0 && len(r.Children) == 0 {
		under = tail + "  "
	}
	fmt.Fprintf(b, "%s%s\n", under, strings.Join(a.facts(r), " · "))
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "%s! %s\n", under, cleanLine(w.Message))
	}
	if r.Outcome != nil && r.Outcome.Cause != "" {
		fmt.Fprintf(b, "%s%s\n", under, cleanLine(r.Outcome.Cause))
	}
	for _, q := range r.Questions {
		fmt.Fprintf(b, "%s? %s has no answer: %s\n", under, cleanLine(q.Tool), cleanLine(q.Reason))
	}
	children := map[string]*trace.Run{}
	for _, c := range r.Children {
		children[c.ID] = c
	}
	var branches []func(head, tail string)
	for _, c := range r.Calls {
		branches = append(branches, func(head, tail string) { a.writeCall(b, c, head) })
		if child := children[c.Child]; child != nil {
			delete(children, c.Child)
			branches = append(branches, func(head, tail string) { a.writeRun(b, child, head, tail) })
		}
	}
	for _, c := range r.Children { // continued by another call, or by none that is known
		if children[c.ID] != nil {
			branches = append(branches, func(head, tail string) { a.writeRun(b, c, head, tail) })
		}
	}
	for i, draw := range branches {
		if i == len(branches)-1 {
			draw(tail+"└─ ", tail+"   ")
		} else {
			draw(tail+"├─ ", tail+"│  ")
		}
	}
}

func (a *app) facts(r *trace.Run) []string {
	facts := []string{words(r.Status)}
	if r.Model != "" {
		model := cleanLine(r.Model)
		if r.Effort != "" {
			model += " (" + cleanLine(r.Effort) + ")"
		}
		facts = append(facts, model)
	}
	facts = append(facts, count(int64(r.Turns), "turn"), tokens(r.Usage))
	if len(r.Children) > 0 {
		facts = append(facts, "in all "+tokens(r.Total), "cost "+cost(r.Total))
	} else {
		facts = append(facts, "cost "+cost(r.Usage))
	}
	facts = append(facts, seconds(time.Duration(r.Elapsed)))
	if r.Waiting > 0 {
		facts = append(facts, seconds(time.Duration(r.Waiting))+" of it waiting for an answer")
	}
	if r.Background {
		facts = append(facts, "in the background")
	}
	if r.Starts > 1 {
		facts = append(facts, fmt.Sprintf("continued %d×", r.Starts-1))
	}
	if r.Retries > 0 {
		facts = append(facts, count(int64(r.Retries), "failed request"))
	}
	return append(facts, cleanLine(r.ID))
}

// tokens says how many went in and came out.
func tokens(u synapse.Usage) string {
	return number(u.InputTokens) + " in / " + number(u.OutputTokens) + " out"
}

func (a *app) writeCall(b *strings.Builder, c *trace.Call, head string) {
	sign, what := "·", ""
	switch c.State {
	case trace.CallFailed:
		sign, what = "✗", "failed"
	case trace.CallDenied:
		sign, what = "✗", "denied: "+cleanLine(c.Denied)
	case trace.CallOpen:
		sign, what = "…", "no result: it goes on, or its outcome is unknown"
	}
	fmt.Fprintf(b, "%s%s %s", head, sign, cleanLine(c.Tool))
	if c.Intent != "" {
		fmt.Fprintf(b, ": %s", cleanLine(c.Intent))
	}
	if what != "" {
		fmt.Fprintf(b, " · %s", what)
	}
	if c.Elapsed > 0 && c.State != trace.CallDenied {
		fmt.Fprintf(b, " · %s", seconds(time.Duration(c.Elapsed)))
	}
	if a.flags.verbose && c.Args != "" {
		fmt.Fprintf(b, " · %s", cleanLine(c.Args))
	}
	b.WriteByte('\n')
}

func runMark(s synapse.Status) string {
	if s == trace.StatusOpen {
		return "…"
	}
	return mark(s)
}
