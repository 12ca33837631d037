package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/host"
)

// examined is `doctor --json`.
type examined struct {
	Usable bool         `json:"usable"` // nothing that was configured is broken
	Checks []host.Check `json:"checks"`
}

func (a *app) doctorCommand() *cobra.Command {
	var how host.DoctorOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything that is configured works",
		Long: `Looks at versions, settings, trust, agent files, directories, the journal, the
shell, the terminal and the models that are configured, and says how to put right
what is not. Configured providers are asked for their list of models. Keys are
never printed. The exit code is 0 when requests can be run, also with no key and no
network, and 78 when something that was configured is broken.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.examine(cmd.Context(), how, asJSON) },
	}
	c.Flags().BoolVar(&how.Offline, "offline", false, "ask neither providers nor local servers")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func (a *app) examine(ctx context.Context, how host.DoctorOptions, asJSON bool) error {
	opt, err := a.options()
	if err != nil {
		return err
	}
	r := examined{Usable: true, Checks: []host.Check{{Name: "program", State: host.CheckOK, Detail: readVersion().String()}}}
	r.Checks = append(r.Checks, host.Examine(ctx, opt, how)...)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Checks = append(r.Checks, a.checkTerminal())
	for _, c := range r.Checks {
		r.Usable = r.Usable && c.State != host.CheckFault
	}
	if asJSON {
		err = printJSON(a.p.Stdout, r)
	} else {
		err = a.printChecks(r.Checks)
	}
	if err == nil && !r.Usable {
		return &codedError{code: exitConfig, err: errors.New("something that was configured is broken"), quiet: true}
	}
	return err
}

func (a *app) printChecks(checks []host.Check) error {
	var t table
	for _, c := range checks {
		t.row(string(c.State), c.Name, c.Detail)
		if c.Fix != "" {
			t.row("", "", "→ "+c.Fix)
		}
	}
	return t.write(a.p.Stdout, 0)
}

// checkTerminal says what the screen can do.
func (a *app) checkTerminal() host.Check {
	c := host.Check{Name: "terminal", State: host.CheckOK, Detail: "standard output is none: answers go there as plain text"}
	if isTerminal(a.p.Stdout) {
		columns, rows := size(a.p.Stdout)
		colors := "no colours"
		if a.colors(a.p.Stdout) {
			colors = "colours"
		}
		c.Detail = fmt.Sprintf("%s, %d × %d, %s", a.p.env("TERM"), columns, rows, colors)
		if !isTerminal(a.p.Stdin) {
			c.Detail += "; standard input is none: nothing can be asked"
		}
	}
	return c
}
