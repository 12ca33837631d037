package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/trace"
)

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume [ID]",
		Short: "Go on with a request that was cut off",
		Long: `Goes on with a request whose process has died, where it was: what was done is not
done again. A tool call that was in flight runs again only if it reads, or if its
tool knows that it is the same call; otherwise the agent is told that its outcome
is unknown. Sub-agents go on with the definition, tools, model and limits that they
had, in the directory that they had.

ID is a trace's or a conversation's id, the beginning of one, a conversation's name,
or "last". Without it, the last request that was cut off in this workspace is taken.`,
		Example: `  synapse resume
  synapse trace list        # "not ended": cut off, or going on somewhere
  synapse resume K3QV`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("`%s` takes one ID at most", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"model", "effort", "agent", "agents", "output-schema", "max-turns", "max-tokens", "max-cost-usd", "timeout", "resume", "continue", "fork"} {
				if cmd.Flags().Changed(name) {
					return usagef("--%s has no meaning here: a request goes on with what it began with", name)
				}
			}
			var from *earlier
			var err error
			if len(args) == 0 {
				from, err = a.lastCutOff(cmd.Context())
			} else {
				from, err = a.findEarlier(cmd.Context(), args[0])
			}
			if err != nil {
				return err
			}
			return a.resumeOnly(cmd.Context(), from)
		},
	}
}

// resumeOnly goes on with a request to its end.
func (a *app) resumeOnly(ctx context.Context, from *earlier) error {
	if !from.cutOff {
		return fmt.Errorf("request %s has ended (%s): say more with `synapse run --resume %s PROMPT`", from.trace, words(from.status), from.trace)
	}
	view := a.newView()
	h, err := a.open(ctx, func(o *host.Options) {
		o.Ask = view.asker()
		from.place(o)
	})
	if err != nil {
		return err
	}
	defer h.Close()
	out, err := a.follow(view, a.resume(ctx, h, nil, from), h.Past(ctx, from.trace))
	if err != nil {
		return err
	}
	return a.ended(out)
}

// resume says what is taken up and returns its events. Session may be nil.
func (a *app) resume(ctx context.Context, h *host.Host, session *host.Session, from *earlier) eventStream {
	fmt.Fprintf(a.p.Stderr, "synapse: going on with request %s, which was cut off: %s\n", from.trace, clean(from.prompt))
	if session != nil {
		return session.Resume(ctx)
	}
	return h.Resume(ctx, from.trace)
}

// earlier is a request of before, and its conversation.
type earlier struct {
	trace, session string
	workspace      string
	prompt         string
	status         synapse.Status
	cutOff         bool
	chosen         bool // the user has named another workspace
}

// place opens the host where the request was made. A nil receiver changes nothing.
func (e *earlier) place(o *host.Options) {
	if e != nil && e.workspace != "" && !e.chosen {
		o.Workspace = e.workspace
	}
}

// earlier reports whether the flags name a conversation of before.
func (f *flags) earlier() bool { return f.resume != "" || f.goOn }

// earlier finds what --resume or --continue names; nil without either.
func (a *app) earlier(ctx context.Context) (*earlier, error) {
	f := &a.flags
	switch {
	case f.resume != "" && f.goOn:
		return nil, usagef("--resume and --continue can't both be given")
	case f.fork && !f.earlier():
		return nil, usagef("--fork needs --resume or --continue: it begins with what was said in that conversation")
	case f.resume != "":
		return a.findEarlier(ctx, f.resume)
	case f.goOn:
		return a.lastSession(ctx)
	}
	return nil, nil
}

// session returns the conversation that the flags name, a new one without them.
func (a *app) session(ctx context.Context, h *host.Host, from *earlier) (*host.Session, error) {
	if from == nil {
		return h.NewSession(), nil
	}
	if from.session == "" {
		if a.flags.prompt != "" || !from.cutOff {
			return nil, fmt.Errorf("request %s belongs to no conversation: it can only be resumed", from.trace)
		}
		return nil, nil
	}
	s, err := h.OpenSession(ctx, from.session)
	if err != nil {
		return nil, err
	}
	if a.flags.fork {
		from.cutOff = false // that stays as it is
		return s.Fork(), nil
	}
	return s, nil
}

// earlierOf makes it of a summary.
func (a *app) earlierOf(s *trace.Summary) (*earlier, error) {
	e := &earlier{
		trace: s.Trace, session: s.Session, workspace: s.Workspace, prompt: s.Prompt, status: s.Status,
		cutOff: s.Status == trace.StatusOpen, chosen: a.flags.set.Changed("workspace"),
	}
	if e.cutOff && host.IsLive(host.Options{Home: a.p.Home, Environ: a.p.Environ}, s.Trace) {
		return nil, fmt.Errorf("request %s: %w; `synapse task list` shows it", s.Trace, host.ErrLive)
	}
	return e, nil
}

// findEarlier finds the request that the user means.
func (a *app) findEarlier(ctx context.Context, id string) (*earlier, error) {
	var found *earlier
	err := a.journal(ctx, func(j trace.Journal) error {
		sessions, err := trace.Sessions(ctx, j)
		if err != nil {
			return err
		}
		session, err := matchSession(sessions, id)
		if err != nil {
			return err
		}
		name := ""
		if session != nil {
			name = session.Last
		} else if name, err = find(ctx, j, id); err != nil {
			return err
		}
		for s, err := range j.Traces(ctx, trace.TraceQuery{Trace: name}) {
			if err != nil {
				return err
			}
			found, err = a.earlierOf(s)
			return err
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("nothing has been run yet")
	}
	return found, err
}

// matchSession finds a session by its id, its name or the beginning of its id;
// nil when none is meant.
func matchSession(all []*trace.Session, id string) (*trace.Session, error) {
	var near []*trace.Session
	for _, s := range all {
		switch {
		case s.ID == id, s.Name == id && id != "":
			return s, nil
		case len(id) > 2 && strings.HasPrefix(s.ID, id):
			near = append(near, s)
		}
	}
	if len(near) > 1 {
		return nil, fmt.Errorf("%q could be %s or %s; write more of it", id, near[0].ID, near[1].ID)
	}
	if len(near) == 1 {
		return near[0], nil
	}
	return nil, nil
}

// lastCutOff finds the last request in this workspace that was cut off.
func (a *app) lastCutOff(ctx context.Context) (*earlier, error) {
	return a.lastOf(ctx, trace.TraceQuery{Open: true}, "nothing was cut off in this workspace; `synapse trace list` shows every request, and `synapse resume ID` takes one of another workspace",
		func(s *trace.Summary) bool {
			return !host.IsLive(host.Options{Home: a.p.Home, Environ: a.p.Environ}, s.Trace)
		})
}

// lastSession finds the last conversation in this workspace.
func (a *app) lastSession(ctx context.Context) (*earlier, error) {
	return a.lastOf(ctx, trace.TraceQuery{}, "there is no conversation in this workspace yet; `synapse sessions list --all` shows those of others",
		func(s *trace.Summary) bool { return s.Session != "" })
}

func (a *app) lastOf(ctx context.Context, q trace.TraceQuery, none string, fits func(*trace.Summary) bool) (*earlier, error) {
	workspace, err := filepath.Abs(a.flags.workspace)
	if err != nil {
		return nil, err
	}
	var found *earlier
	err = a.journal(ctx, func(j trace.Journal) error {
		for s, err := range j.Traces(ctx, q) {
			if err != nil {
				return err
			}
			if s.Workspace == workspace && fits(s) {
				found, err = a.earlierOf(s)
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("nothing has been run yet")
	case err == nil && found == nil:
		return nil, errors.New(none)
	}
	return found, err
}

// resumeArgs lets --resume stand without an ID, which means the last.
func resumeArgs(args []string) []string {
	out := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if arg == "--resume" && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
			arg = "--resume=last"
		}
		out = append(out, arg)
	}
	return out
}
