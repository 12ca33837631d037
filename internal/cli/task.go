package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/trace"
)

// mailPatience is how long a signal may take to reach its run. Runs look for mail
// several times a second.
const mailPatience = 10 * time.Second

func (a *app) taskCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "task",
		Short: "Follow, steer and stop what goes on, also in other processes",
		Long: `Shows the main agents and sub-agents that are running in any process of yours, and
tells them something. ID is a run's id or the beginning of one.

What is sent joins the conversation of that agent at its next turn. A paused agent
begins no further turn until it is told to continue, or something is sent to it.`,
		Args: noArgs,
		RunE: group,
	}
	c.AddCommand(a.taskListCommand(),
		a.taskSignalCommand(synapse.SignalStop, "stop ID", "Stop an agent: it ends as cancelled, and its parent is told"),
		a.taskSignalCommand(synapse.SignalSend, "send ID TEXT", "Tell an agent something"),
		a.taskSignalCommand(synapse.SignalPause, "pause ID", "Hold an agent after its present turn"),
		a.taskSignalCommand(synapse.SignalContinue, "continue ID", "Let a paused agent go on"),
	)
	return c
}

// A liveRun is a run that goes on, as `task list --json` shows it.
type liveRun struct {
	ID      string           `json:"task_id"`
	Trace   string           `json:"trace_id"`
	Parent  string           `json:"parent_id,omitempty"`
	Agent   string           `json:"agent"`
	State   string           `json:"state"` // running, asking, waiting, paused
	Turns   int              `json:"turns"`
	Tokens  int64            `json:"tokens"` // of this run alone
	Elapsed synapse.Duration `json:"elapsed"`
	Doing   string           `json:"doing,omitempty"` // the call that is open
	Prompt  string           `json:"prompt"`
	Where   string           `json:"workspace,omitempty"`
	depth   int
}

// live lists the runs that go on, each request's from the top.
func (a *app) live(ctx context.Context, j trace.Journal) ([]liveRun, error) {
	var all []liveRun
	for s, err := range j.Traces(ctx, trace.TraceQuery{Open: true}) {
		if err != nil {
			return nil, err
		}
		if !host.IsLive(host.Options{Home: a.p.Home, Environ: a.p.Environ}, s.Trace) {
			continue
		}
		paused := map[string]bool{}
		events, err := trace.Collect(j.Events(ctx, trace.Query{Trace: s.Trace}))
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if sig, ok := e.Body.(*synapse.Signalled); ok {
				paused[e.Run] = sig.Signal.Kind == synapse.SignalPause
			}
		}
		tree, err := trace.Build(trace.Of(events...))
		if err != nil {
			return nil, err
		}
		for _, root := range tree.Runs {
			root.Walk(func(r *trace.Run, depth int) {
				if !r.Open() {
					return
				}
				l := liveRun{
					ID: r.ID, Trace: s.Trace, Parent: r.Parent, Agent: r.Agent, State: "running", Turns: r.Turns, Tokens: r.Usage.Tokens(),
					Elapsed: synapse.Duration(time.Since(r.Started).Round(time.Second)), Prompt: r.Prompt, Where: s.Workspace, depth: depth,
				}
				if r.Description != "" {
					l.Prompt = r.Description
				}
				for _, c := range r.Calls {
					if c.State != trace.CallOpen {
						continue
					}
					l.Doing = c.Tool
					if c.Child != "" {
						l.State = "waiting"
					}
				}
				switch {
				case len(r.Questions) > 0:
					l.State = "asking"
				case paused[r.ID]:
					l.State = "paused"
				}
				all = append(all, l)
			})
		}
	}
	return all, nil
}

func (a *app) taskListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the agents that are running",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list := []liveRun{}
			err := a.journal(cmd.Context(), func(j trace.Journal) error {
				all, err := a.live(cmd.Context(), j)
				list = append(list, all...)
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, map[string]any{"tasks": list})
			}
			if len(list) == 0 {
				fmt.Fprintln(a.p.Stderr, "synapse: nothing is running")
				return nil
			}
			var t table
			t.row("ID", "AGENT", "STATE", "TURNS", "TOKENS", "TIME", "DOING", "TASK")
			for _, l := range list {
				t.row(l.ID, strings.Repeat("  ", l.depth)+l.Agent, l.State, fmt.Sprint(l.Turns), number(l.Tokens), l.Elapsed.String(), l.Doing, l.Prompt)
			}
			return t.write(a.p.Stdout, a.width())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func (a *app) taskSignalCommand(kind synapse.SignalKind, use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case kind == synapse.SignalSend && (len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], " ")) == ""):
				return usagef("`%s` takes an ID and what to tell it", cmd.CommandPath())
			case kind != synapse.SignalSend && len(args) != 1:
				return usagef("`%s` takes an ID", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.signalTask(cmd.Context(), args[0], synapse.Signal{Kind: kind, Text: strings.Join(args[1:], " ")})
		},
	}
}

// signalTask leaves a signal for a run and waits until that has it.
func (a *app) signalTask(ctx context.Context, id string, sig synapse.Signal) error {
	j, err := host.EditJournal(ctx, host.Options{Home: a.p.Home, Environ: a.p.Environ})
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("nothing has been run yet")
	}
	if err != nil {
		return err
	}
	defer j.Close()
	all, err := a.live(ctx, j)
	if err != nil {
		return err
	}
	var found []liveRun
	for _, l := range all {
		if l.ID == id {
			found = []liveRun{l}
			break
		}
		if id != "" && strings.HasPrefix(strings.ToLower(l.ID), strings.ToLower(id)) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("no running agent %q: `synapse task list` shows those there are", id)
	case 1:
	default:
		return fmt.Errorf("%q could be %s or %s; write more of it", id, found[0].ID, found[1].ID)
	}
	to := found[0]
	sig.ID = rand.Text()
	if err := j.Post(ctx, trace.Mail{Trace: to.Trace, Run: to.ID, Time: time.Now(), Signal: sig}); err != nil {
		return err
	}
	deadline := time.Now().Add(mailPatience)
	for taken := false; !taken; {
		select {
		case <-ctx.Done():
			_ = j.Taken(context.WithoutCancel(ctx), sig.ID)
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
		mail, err := j.Mail(ctx, to.Trace)
		if err != nil {
			return err
		}
		taken = true
		for _, m := range mail {
			taken = taken && m.ID != sig.ID
		}
		switch {
		case taken:
		case !host.IsLive(host.Options{Home: a.p.Home, Environ: a.p.Environ}, to.Trace):
			_ = j.Taken(ctx, sig.ID)
			return fmt.Errorf("%s %s has ended", to.Agent, to.ID)
		case time.Now().After(deadline):
			// A run takes it when its present turn is over, which may be long.
			fmt.Fprintf(a.p.Stderr, "synapse: left for %s %s, which takes it at its next turn\n", to.Agent, to.ID)
			return nil
		}
	}
	fmt.Fprintf(a.p.Stderr, "synapse: %s %s: %s\n", to.Agent, to.ID, map[synapse.SignalKind]string{
		synapse.SignalStop: "stopped", synapse.SignalSend: "told", synapse.SignalPause: "paused", synapse.SignalContinue: "goes on",
	}[sig.Kind])
	return nil
}
