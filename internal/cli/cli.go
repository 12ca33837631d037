// Package cli is the command line: the commands, their flags and what they
// print. It reads nothing of the process but what a [Process] hands it, so that
// tests run whole commands in memory or in a binary alike.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/host"
)

// A Process is what a command gets of its surroundings.
type Process struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Home           string // "" when the user has none
	ExeDir         string // of the binary
}

// env looks a variable up in the process's environment.
func (p *Process) env(name string) string {
	value := ""
	for _, e := range p.Environ {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// Main runs the command that the arguments name and returns its exit code.
// SIGINT and SIGTERM cancel it; a second signal ends the process at once.
func Main(ctx context.Context, p *Process) int {
	ctx, stop := withSignals(ctx)
	defer stop()
	a := &app{p: p}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	return a.exit(ctx, err)
}

// Root returns the command tree, for generating documentation.
func Root() *cobra.Command { return (&app{p: &Process{}}).root() }

// app is one execution of the program.
type app struct {
	p     *Process
	flags flags
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "synapse",
		Short: "Delegate work to sub-agents you can trust",
		Long: `Synapse runs a main agent that delegates bounded work to sub-agents. Each has
its own context, model, tools and limits, and hands back a result.

Without a command it starts a conversation. With -p it answers one prompt.`,
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.flags.prompt != "" {
				return a.run(cmd.Context(), []string{a.flags.prompt})
			}
			if !isTerminal(a.p.Stdin) {
				return usagef("no command and no terminal: give a prompt with -p, or see `synapse --help`")
			}
			return a.chat(cmd.Context())
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v; see `%s --help`", err, cmd.CommandPath())
	})
	a.flags.register(root.PersistentFlags())
	root.Flags().StringVarP(&a.flags.prompt, "prompt", "p", "", "answer this prompt and exit")
	root.AddCommand(
		a.runCommand(), a.chatCommand(), a.agentsCommand(), a.traceCommand(), a.configCommand(), a.trustCommand(), a.versionCommand(),
	)
	a.registerCompletions(root)
	return root
}

// open assembles the host for a command.
func (a *app) open(ctx context.Context, edit ...func(*host.Options)) (*host.Host, error) {
	opt, err := a.options()
	if err != nil {
		return nil, err
	}
	for _, e := range edit {
		e(&opt)
	}
	h, err := host.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	for _, w := range h.Warnings() {
		fmt.Fprintln(a.p.Stderr, "synapse: warning:", clean(w))
	}
	return h, nil
}

// log is where what is nobody's result goes: with -v to standard error.
func (a *app) log() *slog.Logger {
	if !a.flags.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.p.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return "stopped by " + e.signal.String() }

// withSignals ends the context at the first SIGINT or SIGTERM. After that the
// signals do what they do by default, so that a second one ends the process.
func withSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(signalError{s})
		case <-done:
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		close(done)
		cancel(nil)
	}
}

// noArgs refuses arguments as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		msg := fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			msg += fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
		}
		return usagef("%s; see `%s --help`", msg, cmd.CommandPath())
	}
	return nil
}

// exactArgs wants the arguments that names names, as a usage error.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s; see `%s --help`", cmd.CommandPath(), strings.Join(names, " and "), cmd.CommandPath())
		}
		return nil
	}
}

func usagef(format string, args ...any) error {
	return &codedError{code: exitUsage, err: fmt.Errorf(format, args...)}
}
