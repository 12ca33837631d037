package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/internal/settings"
)

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and where each was set",
		Args:  noArgs,
		RunE:  group,
	}
	var asJSON bool
	show := &cobra.Command{
		Use:   "show [KEY…]",
		Short: "Show every setting, or those named, with where each was set",
		Long: `Shows each setting with its value and where that was set. A setting that several
places add to has a line for each. Keys and other secrets are never shown. When a
file is damaged or a value is bad, that is shown instead, and the exit code is 78.`,
		Example: `  synapse config show
  synapse config show limits model --json`,
		ValidArgsFunction: completeKeys,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showConfig(args, asJSON) },
	}
	show.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(show)
	return c
}

// sources are where settings come from.
func (a *app) sources() (settings.Sources, error) {
	opt, err := a.options()
	if err != nil {
		return settings.Sources{}, err
	}
	workspace, err := filepath.Abs(opt.Workspace)
	if err != nil {
		return settings.Sources{}, fmt.Errorf("find the workspace: %w", err)
	}
	return settings.Sources{
		Home: opt.Home, ExeDir: opt.ExeDir, Workspace: workspace, Environ: opt.Environ, Flags: opt.Settings,
	}, nil
}

// shownConfig is `config show --json`.
type shownConfig struct {
	Workspace string             `json:"workspace"`
	Trusted   bool               `json:"trusted"`
	Settings  []settings.Row     `json:"settings"`
	Warnings  []settings.Warning `json:"warnings"`
}

func (a *app) showConfig(keys []string, asJSON bool) error {
	src, err := a.sources()
	if err != nil {
		return err
	}
	set, warnings, err := settings.Load(src)
	if err != nil {
		return err
	}
	rows := set.Show()
	if len(keys) > 0 {
		rows = nil
		for _, key := range keys {
			found := set.Lookup(key)
			if len(found) == 0 && !isKey(key) {
				return usagef("no setting %q: `synapse config show` lists them", key)
			}
			rows = append(rows, found...)
		}
	}
	if asJSON {
		return printJSON(a.p.Stdout, shownConfig{
			Workspace: set.Workspace(), Trusted: set.Trusted,
			Settings: append([]settings.Row{}, rows...), Warnings: append([]settings.Warning{}, warnings...),
		})
	}
	for _, w := range warnings {
		fmt.Fprintln(a.p.Stderr, "synapse: warning:", clean(w.String()))
	}
	var t table
	for _, r := range rows {
		t.row(r.Key, r.Text(), r.Origin.String())
	}
	if err := t.write(a.p.Stdout, 0); err != nil {
		return err
	}
	if !set.Trusted && len(keys) == 0 {
		fmt.Fprintf(a.p.Stderr, "synapse: %s is not trusted: its settings can only narrow what agents may do\n", cleanLine(set.Workspace()))
	}
	return nil
}

func isKey(name string) bool {
	for _, k := range settings.Keys() {
		if k.Name == name {
			return true
		}
	}
	return false
}

func (a *app) trustCommand() *cobra.Command {
	var revoke, list, asJSON bool
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a workspace's settings name providers, endpoints and commands",
		Long: `A workspace is somebody else's until you trust it: its settings and .env can then
only narrow what agents may do. They can't name providers, endpoints, keys, hooks,
MCP servers or directories outside of it, so that a cloned repository can't send
your keys to a server of its own. Trust is kept for this user, for exactly this
directory. Without DIR it is the workspace's.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("`%s` takes one DIR; see `%s --help`", cmd.CommandPath(), cmd.CommandPath())
			case list && (revoke || len(args) > 0):
				return usagef("--list goes alone")
			case asJSON && !list:
				return usagef("--json goes with --list")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listTrusted(asJSON)
			}
			dir := a.flags.workspace
			if len(args) > 0 {
				dir = args[0]
			}
			return a.trust(dir, revoke)
		},
	}
	c.Flags().BoolVar(&revoke, "revoke", false, "take it back")
	c.Flags().BoolVar(&list, "list", false, "list the workspaces that are trusted")
	c.Flags().BoolVar(&asJSON, "json", false, "the list as JSON")
	return c
}

func (a *app) listTrusted(asJSON bool) error {
	list, err := settings.NewTrustFile(a.p.Home, nil).List()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.p.Stdout, map[string]any{"trusted": append([]settings.Trusted{}, list...)})
	}
	var t table
	for _, w := range list {
		since := ""
		if !w.Since.IsZero() {
			since = "since " + w.Since.Local().Format("2006-01-02 15:04")
		}
		t.row(w.Path, since)
	}
	return t.write(a.p.Stdout, 0)
}

func (a *app) trust(dir string, revoke bool) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("trust %s: %w", dir, err)
	}
	file := settings.NewTrustFile(a.p.Home, nil)
	trusted, err := file.Trusted(abs)
	if err != nil {
		return err
	}
	if revoke {
		if !trusted {
			fmt.Fprintf(a.p.Stdout, "%s was not trusted\n", cleanLine(abs))
			return nil
		}
		if err := file.Untrust(abs); err != nil {
			return err
		}
		fmt.Fprintf(a.p.Stdout, "%s is no longer trusted\n", cleanLine(abs))
		return nil
	}
	switch info, err := os.Stat(abs); {
	case err != nil:
		return fmt.Errorf("trust %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("trust %s: it is a file, and workspaces are directories", dir)
	case trusted:
		fmt.Fprintf(a.p.Stdout, "%s is trusted already\n", cleanLine(abs))
		return nil
	}
	if err := file.Trust(abs); err != nil {
		return err
	}
	fmt.Fprintf(a.p.Stdout, "%s is trusted; take it back with --revoke\n", cleanLine(abs))
	return a.sayWhatTrustAllows(abs)
}

// sayWhatTrustAllows shows what in the workspace's settings counts from now on,
// which is what the user has just taken on.
func (a *app) sayWhatTrustAllows(dir string) error {
	set, _, err := settings.Load(settings.Sources{Home: a.p.Home, ExeDir: a.p.ExeDir, Workspace: dir, Environ: a.p.Environ})
	var bad *settings.Error
	if errors.As(err, &bad) {
		fmt.Fprintln(a.p.Stderr, "synapse: warning:", clean(err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	var t table
	for _, r := range set.Show() {
		if r.Origin.Layer == settings.LayerProject || r.Origin.Layer == settings.LayerDotenv {
			t.indented(2, r.Key, r.Text(), r.Origin.String())
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.p.Stdout, "what it sets:")
	return t.write(a.p.Stdout, 0)
}
