package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/host"
)

func (a *app) chatCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chat",
		Short: "Converse, a line at a time",
		Long: `Reads prompts line by line and answers each within one conversation. A line
that ends in \ goes on with the next. /agents lists the sub-agents, /quit ends.
Ctrl+C stops the request that is going on; while none is, it ends the program.

Where prompts are piped in, the exit code is that of the last request.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.chat(cmd.Context()) },
	}
}

// slash tells a command from a prompt that begins with a path.
var slash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[a-z-]+$`) })

// chat answers prompts from standard input until it ends.
func (a *app) chat(ctx context.Context) error {
	c := &conversation{app: a, view: a.newView(), interactive: a.tty != nil}
	from, err := a.earlier(ctx)
	if err != nil {
		return err
	}
	h, err := a.open(ctx, func(o *host.Options) {
		o.SeedAgents, o.Ask = true, c.view.asker()
		from.place(o)
	})
	if err != nil {
		return err
	}
	defer h.Close()
	a.sayModel(h)
	if c.view.ask != nil {
		c.lines = c.view.ask.lines()
	} else {
		c.lines = readLines(a.p.Stdin)
	}
	c.host = h
	if c.session, err = a.session(ctx, h, from); err != nil {
		return err
	}
	c.session.OnChange = c.sayChange
	if c.interactive { // who sits there is told at once, all others with their next request
		if c.changed, err = h.Watch(); err != nil {
			a.log().Warn("changes are noticed with the next request", "error", err)
		}
	}
	var last error
	if from != nil && from.cutOff {
		last = c.answer(ctx, func(ctx context.Context) eventStream { return a.resume(ctx, h, c.session, from) }, h.Past(ctx, from.trace))
	}
	for {
		prompt, ok := c.read(ctx)
		if !ok {
			if ctx.Err() != nil {
				return &codedError{code: exitInterrupted, err: context.Cause(ctx), quiet: true}
			}
			return last
		}
		switch {
		case prompt == "":
		case prompt == "/quit", prompt == "/exit":
			return nil
		case prompt == "/agents":
			if change, err := h.Update(ctx); err == nil && !change.Empty() {
				c.sayChange(change)
			}
			a.listAgents(h)
		case slash().MatchString(prompt):
			fmt.Fprintf(a.p.Stderr, "unknown command %s: there are /agents and /quit\n", clean(prompt))
		default:
			last = c.answer(ctx, func(ctx context.Context) eventStream { return c.session.Send(ctx, prompt) })
			if ctx.Err() != nil {
				return &codedError{code: exitInterrupted, err: context.Cause(ctx), quiet: true}
			}
		}
	}
}

// conversation is one execution of chat.
type conversation struct {
	*app
	view        *view
	host        *host.Host
	session     *host.Session
	lines       <-chan string
	changed     <-chan struct{} // definitions or settings may have; nil: nobody looks
	interactive bool
}

// sayChange says in one line what has changed in definitions and settings.
func (c *conversation) sayChange(change host.Change) {
	fmt.Fprintln(c.p.Stderr, "synapse:", cleanLine(change.String()))
}

// update takes over what has changed while the user thinks. What is wrong is said
// with the next request, which can't run like that.
func (c *conversation) update(ctx context.Context, mark string) {
	if change, err := c.host.Update(ctx); err == nil && !change.Empty() {
		fmt.Fprintln(c.p.Stderr)
		c.sayChange(change)
		io.WriteString(c.p.Stderr, mark)
	}
}

// answer makes a request, under the context that Ctrl+C ends, and shows it to its
// end. What failed is said, and the conversation goes on; a user who sits in front
// of it has seen it, so that then nothing is returned.
func (c *conversation) answer(ctx context.Context, request func(context.Context) eventStream, past ...eventStream) error {
	if c.interactive {
		var done func()
		ctx, done = c.interrupts.during(ctx)
		defer done()
	}
	out, err := c.follow(c.view, request(ctx), past...)
	if err == nil {
		err = c.ended(out)
	} else if c.interactive {
		fmt.Fprintln(c.p.Stderr, "synapse:", clean(err.Error()))
	}
	if c.interactive {
		return nil
	}
	return err
}

// read reads one prompt; false when there are no more.
func (c *conversation) read(ctx context.Context) (string, bool) {
	var prompt strings.Builder
	for mark := "> "; ; mark = ". " {
		if c.interactive {
			io.WriteString(c.p.Stderr, mark)
		}
		line, ok := c.next(ctx, mark)
		switch {
		case !ok && c.interactive:
			fmt.Fprintln(c.p.Stderr)
			fallthrough
		case !ok:
			return strings.TrimSpace(prompt.String()), ctx.Err() == nil && prompt.Len() > 0
		}
		more, goesOn := strings.CutSuffix(line, `\`)
		prompt.WriteString(more)
		if !goesOn {
			return strings.TrimSpace(prompt.String()), true
		}
		prompt.WriteByte('\n')
	}
}

// next waits for a line, and meanwhile for changes; false when there are no more.
func (c *conversation) next(ctx context.Context, mark string) (string, bool) {
	for {
		select {
		case <-ctx.Done():
			return "", false
		case <-c.changed:
			c.update(ctx, mark)
		case line, ok := <-c.lines:
			return line, ok
		}
	}
}
