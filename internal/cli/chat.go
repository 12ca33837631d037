package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/host"
)

func (a *app) chatCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chat",
		Short: "Converse, a line at a time",
		Long: `Reads prompts line by line and answers each within one conversation. A line
that ends in \ goes on with the next. /agents lists the sub-agents, /quit ends.
Ctrl+C stops what is going on.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.chat(cmd.Context()) },
	}
}

// chat answers prompts from standard input until it ends.
func (a *app) chat(ctx context.Context) error {
	v := a.newView()
	var lines <-chan string
	if v.ask != nil {
		lines = v.ask.lines
	} else {
		lines = readLines(a.p.Stdin)
	}
	h, err := a.open(ctx, func(o *host.Options) { o.SeedAgents, o.Ask = true, v.asker() })
	if err != nil {
		return err
	}
	defer h.Close()
	a.sayModel(h)
	session := h.NewSession()
	interactive := isTerminal(a.p.Stdin)
	var last error
	for {
		prompt, ok := a.readPrompt(ctx, lines, interactive)
		if !ok {
			if ctx.Err() != nil {
				return &codedError{code: exitInterrupted, err: context.Cause(ctx), quiet: true}
			}
			return last
		}
		switch prompt {
		case "":
			continue
		case "/quit", "/exit":
			return nil
		case "/agents":
			a.listAgents(h)
			continue
		}
		if strings.HasPrefix(prompt, "/") && !strings.Contains(prompt, " ") {
			fmt.Fprintf(a.p.Stderr, "unknown command %s: there are /agents and /quit\n", clean(prompt))
			continue
		}
		out, err := a.follow(ctx, v, session.Send(ctx, prompt))
		if err != nil {
			return err
		}
		// What failed is said; the conversation goes on, and the last end is
		// the program's where nobody sits in front of it.
		last = a.ended(ctx, out)
		if interactive {
			last = nil
		}
		if ctx.Err() != nil {
			return &codedError{code: exitInterrupted, err: context.Cause(ctx), quiet: true}
		}
	}
}

// readPrompt reads one prompt; false when there are no more.
func (a *app) readPrompt(ctx context.Context, lines <-chan string, interactive bool) (string, bool) {
	var prompt strings.Builder
	for mark := "> "; ; mark = ". " {
		if interactive {
			fmt.Fprint(a.p.Stderr, mark)
		}
		select {
		case <-ctx.Done():
			return "", false
		case line, ok := <-lines:
			if !ok {
				return strings.TrimSpace(prompt.String()), prompt.Len() > 0
			}
			more, goesOn := strings.CutSuffix(line, `\`)
			prompt.WriteString(more)
			if !goesOn {
				return strings.TrimSpace(prompt.String()), true
			}
			prompt.WriteByte('\n')
		}
	}
}
