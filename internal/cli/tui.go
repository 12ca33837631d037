package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/tui"
	"github.com/synapse-agents/synapse/model/offline"
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
	if from != nil && from.cutOff && !a.flags.fork {
		return usagef("request %s was cut off: finish it with `synapse resume %s` first", from.trace, from.trace)
	}
	from.place(&opt)
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
	b.main = b.host.Main().Agent
	session, err := a.session(ctx, b.host, from)
	if err != nil {
		return err
	}
	goodbye, err := tui.Run(ctx, tui.Terminal{In: a.p.Stdin, Out: a.p.Stdout, Environ: a.p.Environ}, tui.Options{
		Session:   session,
		Status:    b.status,
		Questions: questions,
		Agents:    b,
		Models:    b,
		Drafts:    b,
		Traces:    b,
		Config:    b,
		Files:     b,
		Memory:    b,
		Trust:     b,
		Theme:     b.theme(),
		NoColor:   a.flags.noColor || a.p.env("NO_COLOR") != "",
		Goodbye:   b.goodbye,
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
	s := tui.Status{Agent: m.Agent, Model: m.Model.String(), Effort: string(m.Effort), Workspace: b.host.Workspace(), Notes: b.host.Warnings()}
	if m.Model.Provider == offline.Provider {
		s.Model = offline.Label
		s.Notes = append(s.Notes, "Answering with "+offline.Label+": connect a model with OPENAI_API_KEY, OPENAI_BASE_URL or -m provider:model.")
	}
	return s
}

// goodbye says how to look again at what has been done.
func (b *backend) goodbye(traces []string) string {
	if len(traces) == 0 {
		return ""
	}
	return "The last request can be looked at with: synapse trace show " + traces[len(traces)-1]
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
