package cli

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/internal/traceview"
	"github.com/synapse-agents/synapse/trace"
)

func (a *app) traceViewCommand() *cobra.Command {
	port, open := 0, false
	c := &cobra.Command{
		Use:   "view [ID]",
		Short: "Show a request's runs in the browser, while they work",
		Long: `Serves a page on loopback that shows the tree of a request's runs, when each worked
and for what it waited, and what it was told and said. It follows the journal, so the
request may go on in another process. Without an ID it shows the latest.

The address holds a key: whoever has it can read the trace while the page is served.
Ctrl-C ends it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("`%s` takes one ID; see `%s --help`", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := "last"
			if len(args) > 0 {
				id = args[0]
			}
			if port < 0 || port > 65535 {
				return usagef("--port %d: want 0 to 65535", port)
			}
			return a.withTrace(cmd.Context(), id, func(j trace.Journal, id string) error {
				return a.serveTrace(cmd.Context(), j, id, port, open)
			})
		},
	}
	c.Flags().IntVar(&port, "port", 0, "the `port` to listen on; 0 takes one that is free")
	c.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return c
}

func (a *app) serveTrace(ctx context.Context, j trace.Journal, id string, port int, open bool) error {
	s, err := traceview.Listen(j, id, port)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.p.Stdout, s.URL())
	fmt.Fprintln(a.p.Stderr, "synapse: serving the trace; Ctrl-C ends it")
	if open {
		remove, err := browse(ctx, s.URL())
		defer remove()
		if err != nil {
			fmt.Fprintf(a.p.Stderr, "synapse: warning: no browser could be started (%v): open the address yourself\n", err)
		}
	}
	return s.Serve(ctx)
}

// browse opens a URL in the browser, by a file that leads there: the arguments of
// a program are everybody's to read, and the URL holds a key.
func browse(ctx context.Context, url string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "synapse-view-") // for this user alone
	if err != nil {
		return func() {}, err
	}
	remove = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "trace.html")
	page := `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` + html.EscapeString(url) + `">`
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return remove, err
	}
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	cmd := exec.CommandContext(ctx, name, args...)
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go cmd.Wait() // the browser goes its own way
	return remove, nil
}
