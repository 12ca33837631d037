// Package cli is the command line: the commands, their flags and what they
// print. It reads nothing of the process but what a [Process] hands it, so that
// tests run whole commands in memory or in a binary alike.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/spelling"
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
	a := &app{p: p, tty: newTTY(p.Stdin)}
	a.interrupts.restore = a.tty.speak
	ctx, stop := a.interrupts.watch(ctx)
	defer stop()
	defer a.tty.speak()
	root := a.root()
	root.SetArgs(resumeArgs(p.Args))
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
	p          *Process
	flags      flags
	tty        *tty // where the user types; nil without a terminal
	interrupts interrupts
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "synapse",
		Short: "Delegate work to sub-agents you can trust",
		Long: `Synapse runs a main agent that delegates bounded work to sub-agents. Each has
its own context, model, tools and limits, and hands back a result.

Without a command it opens the screen of a conversation, or with --plain, and on
terminals that can't be drawn on, a conversation by lines. With -p it answers one
prompt.`,
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("prompt") {
				return a.run(cmd.Context(), []string{a.flags.prompt})
			}
			if !isTerminal(a.p.Stdin) {
				return usagef("no command and no terminal: give a prompt with -p, or see `synapse --help`")
			}
			if a.hasScreen() {
				return a.screen(cmd.Context())
			}
			return a.chat(cmd.Context())
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(flagError)
	a.flags.register(root.PersistentFlags())
	root.Flags().StringVarP(&a.flags.prompt, "prompt", "p", "", "answer this `prompt` and exit")
	root.AddCommand(
		a.runCommand(), a.chatCommand(), a.resumeCommand(), a.sessionsCommand(), a.taskCommand(), a.agentsCommand(), a.workflowCommand(), a.traceCommand(), a.configCommand(), a.trustCommand(), a.versionCommand(),
		a.modelsCommand(), a.doctorCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = noArgs, group
		case "help":
			c.Run, c.RunE = nil, func(cmd *cobra.Command, args []string) error { return help(root, args) }
		}
	}
	a.registerCompletions(root)
	return root
}

// group is what a command does that only holds others.
func group(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("`%s` takes a command: %s; see `%s --help`", cmd.CommandPath(), strings.Join(names, ", "), cmd.CommandPath())
}

// help prints the help of the command that the arguments name.
func help(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return usagef("%v", err)
	}
	if len(rest) > 0 && cmd.HasSubCommands() {
		return noArgs(cmd, rest)
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Help()
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

// noArgs refuses arguments as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return usagef("`%s` takes no arguments, but there is %q; see `%s --help`", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return usagef("unknown command %q%s; see `%s --help`", args[0], didYouMean(cmd, args[0]), cmd.CommandPath())
}

// didYouMean names the sub-commands that a word comes near to.
func didYouMean(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // cobra's own, which it sets only for the root
	near := cmd.SuggestionsFor(word)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
}

// flagError is the usage error for a flag that can't be read.
func flagError(cmd *cobra.Command, err error) error {
	near := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if flag := spelling.Nearest(unknown.GetSpecifiedName(), flags); flag != "" {
			near = fmt.Sprintf(" (did you mean --%s?)", flag)
		}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		name := invalid.GetFlag().Name
		return usagef("--%s %q: want %s; see `%s --help`", name, invalid.GetValue(), takes(invalid.GetFlag()), cmd.CommandPath())
	}
	return usagef("%v%s; see `%s --help`", err, near, cmd.CommandPath())
}

// takes says what a flag's value must be.
func takes(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "duration":
		return "a duration, such as 90s or 10m"
	}
	return "a " + f.Value.Type()
}

// exactArgs wants the arguments that names names, as a usage error.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("`%s` takes %s; see `%s --help`", cmd.CommandPath(), strings.Join(names, " and "), cmd.CommandPath())
		}
		return nil
	}
}

func usagef(format string, args ...any) error {
	return &codedError{code: exitUsage, err: fmt.Errorf(format, args...)}
}
