package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/tui"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/trace"
)

// hasScreen reports whether the screen can be shown: the user sits at a terminal
// that can be drawn on, and asks for nothing else.
func (a *app) hasScreen() bool {
	return isTerminal(a.p.Stdin) && isTerminal(a.p.Stdout) && a.p.env("TERM") != "dumb" && a.p.env("TERM") != "" &&
		!a.flags.plain && !a.flags.verbose && a.flags.format == formatText && onScreen(a.p.Stdout)
}

// screen shows the conversation on the whole terminal.
func (a *app) screen(ctx context.Context) error {
	opt, err := a.options()
	if err != nil {
		return err
	}
	from, err := a.earlier(ctx)
	if err != nil {
		return err
	}
	from.place(&opt)
	a.flags.workspace = opt.Workspace
	b := &backend{app: a}
	if b.workspace, err = filepath.Abs(opt.Workspace); err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	var grants tui.Grants
	if opt.Home != "" {
		b.grants = &grantFile{path: filepath.Join(opt.Home, ".synapse", "approvals.json"), workspace: b.workspace}
		grants = b.grants
	}
	questions := tui.NewQuestions(grants)
	opt.SeedAgents, opt.Ask, opt.Log = true, questions.Ask, slog.New(slog.DiscardHandler)
	if b.host, err = host.Open(ctx, opt); err != nil {
		return err
	}
	defer b.host.Close()
	conv, err := b.conversation(ctx, from, a.flags.fork)
	if err != nil {
		return err
	}
	goodbye, err := tui.Run(ctx, tui.Terminal{In: a.p.Stdin, Out: a.p.Stdout, Environ: a.p.Environ}, tui.Options{
		Conversation:  conv,
		Conversations: b,
		Status:        b.status,
		Questions:     questions,
		Agents:        b,
		Models:        b,
		Drafts:        b,
		Traces:        b,
		Config:        b,
		Files:         b,
		Memory:        b,
		Trust:         b,
		Controls:      b.controls(),
		Theme:         b.theme(),
		NoColor:       a.flags.noColor || a.p.env("NO_COLOR") != "",
		Goodbye:       func(id string) string { return "Go on with: synapse --resume " + id },
	})
	if err != nil {
		if errors.Is(err, context.Cause(ctx)) {
			return &codedError{code: exitInterrupted, err: err, quiet: true}
		}
		return err
	}
	if goodbye != "" {
		if _, err := io.WriteString(a.p.Stdout, goodbye+"\n"); err != nil {
			return fmt.Errorf("write to the terminal: %w", err)
		}
	}
	return nil
}

// status is what the next request will be answered with.
func (b *backend) status(context.Context) tui.Status {
	m := b.host.Main()
	s := tui.Status{Agent: m.Agent, Model: m.Model.String(), Effort: string(m.Effort), Window: b.host.Size(m.Model).Window, Workspace: b.host.Workspace(), Notes: b.host.Warnings()}
	if m.Model.Provider == offline.Provider {
		s.Model = offline.Label
		s.Notes = append(s.Notes, "Answering with "+offline.Label+": connect a model with OPENAI_API_KEY, OPENAI_BASE_URL or -m provider:model.")
	}
	return s
}

// conversation is the one that begins, or the one that an earlier request belongs
// to, with what was said in it.
func (b *backend) conversation(ctx context.Context, from *earlier, fork bool) (tui.Conversation, error) {
	if from == nil {
		s := b.host.NewSession()
		return tui.Conversation{ID: s.ID(), Session: s}, nil
	}
	traces := []string{from.trace}
	if from.session == "" { // a request by itself: what is said after it begins a conversation
		s := b.host.NewSession()
		c := tui.Conversation{ID: s.ID(), Session: s, Past: b.past(traces)}
		if from.cutOff {
			c.Resume = func(ctx context.Context) tui.Events { return b.host.Resume(ctx, from.trace) }
		}
		return c, nil
	}
	s, err := b.host.OpenSession(ctx, from.session)
	if err != nil {
		return tui.Conversation{}, err
	}
	all, err := trace.Sessions(ctx, b.host.Journal())
	if err != nil {
		return tui.Conversation{}, err
	}
	for _, k := range all {
		if k.ID == from.session {
			traces = k.Traces
		}
	}
	resume := s.Resume
	if fork {
		s = s.Fork()
	}
	c := tui.Conversation{ID: s.ID(), Session: s, Past: b.past(traces)}
	if from.cutOff && !fork {
		c.Resume = func(ctx context.Context) tui.Events { return resume(ctx) }
	}
	return c, nil
}

// past returns the events of requests, one after the other.
func (b *backend) past(traces []string) func(context.Context) tui.Events {
	return func(ctx context.Context) tui.Events {
		return func(yield func(*synapse.Event, error) bool) {
			for _, id := range traces {
				for e, err := range b.host.Past(ctx, id) {
					if !yield(e, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

// Conversations lists those of the workspace.
func (b *backend) Conversations(ctx context.Context) ([]tui.Kept, error) {
	all, err := trace.Sessions(ctx, b.host.Journal())
	if err != nil {
		return nil, err
	}
	var out []tui.Kept
	for _, s := range all {
		if s.Workspace == b.workspace {
			out = append(out, tui.Kept{
				ID: s.ID, Name: s.Name, Updated: s.Updated.Local().Format("2006-01-02 15:04:05"), Prompt: s.Prompt, Status: words(s.Status),
				Cost: cost(s.Usage), Requests: len(s.Traces), Tokens: s.Usage.Tokens(),
			})
		}
	}
	return out, nil
}

// Open goes on with a conversation of this workspace.
func (b *backend) Open(ctx context.Context, id string) (tui.Conversation, error) {
	var from *earlier
	var err error
	if id == "" {
		from, err = b.lastSession(ctx)
	} else {
		from, err = b.findEarlier(ctx, id)
	}
	if err != nil {
		return tui.Conversation{}, err
	}
	if from.workspace != "" && from.workspace != b.workspace {
		return tui.Conversation{}, fmt.Errorf("that is a conversation of %s: open it with `synapse --resume %s`", from.workspace, id)
	}
	return b.conversation(ctx, from, false)
}

// controls are what can be done to a sub-agent that runs.
func (b *backend) controls() tui.Controls {
	tell := func(kind synapse.SignalKind) func(context.Context, string) error {
		return func(_ context.Context, run string) error { return b.tell(run, synapse.Signal{Kind: kind}) }
	}
	return tui.Controls{
		Stop: tell(synapse.SignalStop), Pause: tell(synapse.SignalPause), Resume: tell(synapse.SignalContinue),
		Steer: func(_ context.Context, run, text string) error {
			return b.tell(run, synapse.Signal{Kind: synapse.SignalSend, Text: text})
		},
	}
}

// tell tells a run something.
func (b *backend) tell(run string, s synapse.Signal) error {
	if !b.host.Signal(run, s) {
		return errors.New("it has ended")
	}
	return nil
}

// theme is the theme that the user has chosen.
func (b *backend) theme() string {
	for _, r := range b.host.Config() {
		if r.Key == themeKey {
			return r.Text()
		}
	}
	return ""
}
