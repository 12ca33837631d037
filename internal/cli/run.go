package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/model/offline"
)

// maxStdin bounds what is read from standard input, in bytes.
const maxStdin = 10 << 20

func (a *app) runCommand() *cobra.Command {
	var t tape
	c := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Answer one prompt and exit",
		Long: `Answers one prompt. The answer goes to standard output, everything else to
standard error. What is piped in is appended to the prompt.

Exit codes: 0 done, 1 failed, 2 usage, 3 partial (a limit was reached), 4 a
sub-agent failed, 5 the model at hand can't do this, 75 the provider is out of
service, 78 configuration, 124 timed out, 130 interrupted, 143 terminated; and 6 when
a replay differs from its recording.

--record keeps what the models answer in a file, and --replay runs the request again
with these answers: no model is asked, tools run for real, nothing is written to the
journal. The replay fails at the first difference in what a model would be asked. The
prompt is the recorded one unless another is given.`,
		Example: `  synapse run "In parallel: list the packages, and count the tests"
  git diff | synapse run "Review this change" --agent reviewer --readonly
  synapse run "Which tests fail?" --output-format json --timeout 10m`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !isInput(a.p.Stdin) && !a.flags.earlier() && t.replay == "" {
				return usagef("a prompt is missing: synapse run \"…\"")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTaped(cmd.Context(), args, &t) },
	}
	t.register(c)
	return c
}

// run answers one prompt, or goes on with a request that was cut off.
func (a *app) run(ctx context.Context, args []string) error {
	from, err := a.earlier(ctx)
	if err != nil {
		return err
	}
	prompt, err := a.prompt(ctx, args, from != nil)
	switch {
	case err != nil:
		return err
	case prompt == "" && from == nil:
		return usagef("the prompt is empty")
	case prompt == "" && !from.cutOff:
		return usagef("a prompt is missing: request %s has ended (%s), so there is nothing to go on with but a new prompt", from.trace, words(from.status))
	}
	view := a.newView()
	h, err := a.open(ctx, func(o *host.Options) {
		o.SeedAgents, o.Ask = true, view.asker()
		from.place(o)
	})
	if err != nil {
		return err
	}
	defer h.Close()
	session, err := a.session(ctx, h, from)
	if err != nil {
		return err
	}
	if from != nil && from.cutOff {
		out, err := a.follow(view, a.resume(ctx, h, session, from), h.Past(ctx, from.trace))
		if err != nil || prompt == "" {
			return cmp.Or(err, a.ended(out))
		}
	}
	a.sayModel(h)
	out, err := a.follow(view, session.Send(ctx, prompt))
	if err != nil {
		return err
	}
	return a.ended(out)
}

// stdinPatience is how long a prompt that was given waits for something to be
// piped in. A program that starts this one may leave a pipe open for ever.
const stdinPatience = 3 * time.Second

// prompt joins the arguments with what is piped in. Without need, nothing has to be.
func (a *app) prompt(ctx context.Context, args []string, noNeed bool) (string, error) {
	prompt := strings.Join(args, " ")
	if isInput(a.p.Stdin) {
		data, err := a.readStdin(ctx, (noNeed || strings.TrimSpace(prompt) != "") && !isFile(a.p.Stdin))
		if err != nil {
			return "", err
		}
		if text := strings.TrimSpace(string(data)); text != "" {
			prompt = strings.TrimSpace(prompt + "\n\n" + text)
		}
	}
	if strings.TrimSpace(prompt) == "" {
		return "", nil
	}
	return prompt, nil
}

// readStdin reads what is piped in to its end. An impatient one gives up when
// nothing comes at all. A signal ends the wait.
func (a *app) readStdin(ctx context.Context, impatient bool) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	begun, ended := make(chan struct{}), make(chan read, 1)
	go func() { // stays behind when it is given up: a read can't be taken back
		in := bufio.NewReader(a.p.Stdin)
		_, _ = in.Peek(1) // an error comes up again
		close(begun)
		data, err := io.ReadAll(io.LimitReader(in, maxStdin+1))
		ended <- read{data, err}
	}()
	if impatient {
		select {
		case <-begun:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(stdinPatience):
			fmt.Fprintf(a.p.Stderr, "synapse: warning: standard input is open and nothing came in %s: going on without it; `</dev/null` says that there is none\n", stdinPatience)
			return nil, nil
		}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-ended:
		if r.err != nil {
			return nil, fmt.Errorf("read standard input: %w", r.err)
		}
		if len(r.data) > maxStdin {
			return nil, usagef("standard input is larger than %d MiB: write it to a file in the workspace and name that", maxStdin>>20)
		}
		return r.data, nil
	}
}

// sayModel says once when no language model answers.
func (a *app) sayModel(h *host.Host) {
	if h.Main().Model.Provider == offline.Provider {
		fmt.Fprintf(a.p.Stderr, "synapse: answering with %s; connect a model with OPENAI_API_KEY, OPENAI_BASE_URL or -m provider:model\n", offline.Label)
	}
}

// follow reads a request's events to the end and prints what the format asks for.
// Past are events of the same request that were shown before: they count, and are
// not shown again.
func (a *app) follow(view *view, events eventStream, past ...eventStream) (synapse.Outcome, error) {
	var out synapse.Outcome
	sum := newSummary()
	for _, events := range past {
		for e, err := range events {
			if err != nil {
				return out, err
			}
			sum.add(e)
		}
	}
	encoder := json.NewEncoder(a.p.Stdout)
	encoder.SetEscapeHTML(false)
	view.start()
	defer view.stop()
	for e, err := range events {
		if err != nil {
			return out, err
		}
		if a.flags.format == formatStream {
			if err := encoder.Encode(e); err != nil {
				return out, fmt.Errorf("write the events: %w", err)
			}
		}
		sum.add(e)
		view.show(e)
		if b, ok := e.Body.(*synapse.RunFinished); ok && e.ParentRun == "" {
			out = b.Outcome
		}
	}
	view.stop()
	if out.Status == "" {
		return out, errors.New("the request came to no end")
	}
	switch a.flags.format {
	case formatJSON:
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(sum.result()); err != nil {
			return out, fmt.Errorf("write the result: %w", err)
		}
	case formatText:
		if text := out.Text; text != "" {
			if isTerminal(a.p.Stdout) {
				text = clean(text)
			}
			if _, err := fmt.Fprintln(a.p.Stdout, text); err != nil {
				return out, fmt.Errorf("write the answer: %w", err)
			}
		}
	}
	return out, nil
}

// ended says why a request is not completed, and with which code the program ends.
func (a *app) ended(out synapse.Outcome) error {
	code := codeOf(out)
	if code == exitDone {
		return nil
	}
	err := &codedError{code: code, quiet: true}
	switch {
	case out.Status != synapse.StatusCompleted:
		err.err = errors.New(words(out.Status))
		if out.Cause != "" && out.Cause != words(out.Status) {
			err.err = fmt.Errorf("%w: %s", err.err, out.Cause)
		}
	default:
		err.err = fmt.Errorf("%d of the sub-agents failed", out.Failed)
	}
	fmt.Fprintln(a.p.Stderr, "synapse:", clean(err.Error()))
	return err
}
