package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/trace"
)

func (a *app) sessionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sessions",
		Short: "List, name, export and delete conversations",
		Long: `Conversations are kept until they are deleted. To go on with one, give its ID or its
name to --resume: synapse run --resume ID PROMPT, or synapse chat --resume ID. With
--fork that begins another one with what was said.`,
		Args: noArgs,
		RunE: group,
	}
	c.AddCommand(a.sessionsListCommand(), a.sessionsNameCommand(), a.sessionsExportCommand(), a.sessionsDeleteCommand(), a.sessionsPruneCommand())
	return c
}

func (a *app) sessionsListCommand() *cobra.Command {
	var asJSON, everywhere bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the conversations of this workspace, the last one first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			workspace, err := filepath.Abs(a.flags.workspace)
			if err != nil {
				return err
			}
			list := []*trace.Session{}
			err = a.journal(cmd.Context(), func(j trace.Journal) error {
				all, err := trace.Sessions(cmd.Context(), j)
				for _, s := range all {
					if everywhere || s.Workspace == workspace {
						list = append(list, s)
					}
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if asJSON {
				return printJSON(a.p.Stdout, map[string]any{"sessions": list})
			}
			if len(list) == 0 {
				fmt.Fprintln(a.p.Stderr, "synapse: there is no conversation here")
				return nil
			}
			var t table
			t.row("ID", "NAME", "UPDATED", "REQUESTS", "TOKENS", "COST", "STATUS", "FIRST PROMPT")
			for _, s := range list {
				t.row(s.ID, s.Name, s.Updated.Local().Format("2006-01-02 15:04:05"), strconv.Itoa(len(s.Traces)), number(s.Usage.Tokens()), cost(s.Usage), words(s.Status), s.Prompt)
			}
			return t.write(a.p.Stdout, a.width())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&everywhere, "all", false, "of every workspace")
	return c
}

// withSession opens the journal and finds a conversation in it.
func (a *app) withSession(ctx context.Context, id string, edit bool, do func(j *trace.SQLite, s *trace.Session) error) error {
	open := host.OpenJournal
	if edit {
		open = host.EditJournal
	}
	j, err := open(ctx, host.Options{Home: a.p.Home, Environ: a.p.Environ})
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("nothing has been run yet")
	}
	if err != nil {
		return err
	}
	defer j.Close()
	all, err := trace.Sessions(ctx, j)
	if err != nil {
		return err
	}
	s, err := matchSession(all, id)
	if err != nil {
		return err
	}
	if id == "last" && s == nil && len(all) > 0 {
		s = all[0]
	}
	if s == nil {
		return fmt.Errorf("there is no conversation %q: `synapse sessions list --all` shows those there are", id)
	}
	return do(j, s)
}

func (a *app) sessionsNameCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "name ID [NAME]",
		Short: "Give a conversation a name, or take it away",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("`%s` takes an ID, and a name or none", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 2 {
				name = strings.TrimSpace(args[1])
				if name == "" || name == "last" || strings.HasPrefix(name, "-") || clean(name) != name || strings.Contains(name, "\n") || len(name) > 100 {
					return usagef("%q is no name: want one line of at most 100 bytes that is not \"last\" and does not begin with -", args[1])
				}
			}
			return a.withSession(cmd.Context(), args[0], true, func(j *trace.SQLite, s *trace.Session) error {
				return j.Name(cmd.Context(), s.ID, name)
			})
		},
	}
}

func (a *app) sessionsExportCommand() *cobra.Command {
	format := ""
	c := &cobra.Command{
		Use:   "export ID",
		Short: "Write a conversation as Markdown or JSON",
		Args:  exactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "markdown" && format != "json" {
				return usagef("--format %q: want markdown or json", format)
			}
			return a.withSession(cmd.Context(), args[0], false, func(j *trace.SQLite, s *trace.Session) error {
				st, err := host.Conversation(cmd.Context(), j, s.Last)
				if err != nil {
					return err
				}
				if format == "json" {
					return printJSON(a.p.Stdout, map[string]any{"session": s, "messages": st.Messages})
				}
				return writeConversation(a.p.Stdout, s, st.Messages)
			})
		},
	}
	c.Flags().StringVar(&format, "format", "markdown", "`format`: markdown or json")
	return c
}

// writeConversation writes a conversation for people to read.
func writeConversation(w io.Writer, s *trace.Session, messages []synapse.Message) error {
	var out strings.Builder
	title := s.Name
	if title == "" {
		title = s.Prompt
	}
	fmt.Fprintf(&out, "# %s\n\n%s · %s · %d requests · %s\n", title, s.Agent, s.Started.UTC().Format(time.RFC3339), len(s.Traces), s.ID)
	for _, m := range messages {
		switch m.Role {
		case synapse.RoleUser:
			fmt.Fprintf(&out, "\n## User\n\n%s\n", m.Text())
		case synapse.RoleAssistant:
			out.WriteString("\n## Assistant\n")
			for _, p := range m.Parts {
				switch {
				case p.Call != nil:
					fmt.Fprintf(&out, "\n`%s` %s\n", p.Call.Name, fenced(p.Call.Args))
				case p.Kind == synapse.PartText && p.Text != "":
					fmt.Fprintf(&out, "\n%s\n", p.Text)
				}
			}
		case synapse.RoleTool:
			for _, p := range m.Parts {
				if r := p.Result; r != nil {
					fmt.Fprintf(&out, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", r.Name, fenced(r.Text))
				}
			}
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// fenced puts a text into a code block that nothing in it can end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return "\n" + fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

func (a *app) sessionsDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID…",
		Short: "Delete conversations with everything that was done in them",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`%s` takes the IDs of conversations", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				err := a.withSession(cmd.Context(), id, true, func(j *trace.SQLite, s *trace.Session) error {
					for _, name := range s.Traces {
						if host.IsLive(host.Options{Home: a.p.Home, Environ: a.p.Environ}, name) {
							return fmt.Errorf("conversation %s is going on in another process: stop it first", s.ID)
						}
					}
					return a.deleteSession(cmd.Context(), j, s)
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) deleteSession(ctx context.Context, j *trace.SQLite, s *trace.Session) error {
	if err := j.Delete(ctx, s.Traces...); err != nil {
		return err
	}
	if err := j.Name(ctx, s.ID, ""); err != nil {
		return err
	}
	fmt.Fprintf(a.p.Stderr, "synapse: deleted %s (%d requests): %s\n", s.ID, len(s.Traces), clean(s.Prompt))
	return nil
}

func (a *app) sessionsPruneCommand() *cobra.Command {
	var age, size string
	var dry bool
	c := &cobra.Command{
		Use:   "prune",
		Short: "Delete old conversations, by age or by what they take",
		Long: `Deletes conversations that nobody has spoken in for a time, and with --max-size the
oldest until the rest takes no more than that. What goes on is never deleted.`,
		Example: `  synapse sessions prune --older-than 90d
  synapse sessions prune --max-size 500MB --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if age == "" && size == "" {
				return usagef("say what is old: --older-than 90d, or --max-size 500MB")
			}
			oldest, err := parseAge(age)
			if err != nil {
				return err
			}
			most, err := parseSize(size)
			if err != nil {
				return err
			}
			return a.prune(cmd.Context(), oldest, most, dry)
		},
	}
	c.Flags().StringVar(&age, "older-than", "", "the `age` from which they are deleted, such as 90d or 36h")
	c.Flags().StringVar(&size, "max-size", "", "the `size` that all may take together, such as 500MB")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be deleted, and leave it")
	return c
}

// prune deletes what is older than an age or more than a size; zero of either is
// no bound.
func (a *app) prune(ctx context.Context, age time.Duration, most int64, dry bool) error {
	opt := host.Options{Home: a.p.Home, Environ: a.p.Environ}
	j, err := host.EditJournal(ctx, opt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing to delete
	}
	if err != nil {
		return err
	}
	defer j.Close()
	all, err := trace.Sessions(ctx, j)
	if err != nil {
		return err
	}
	sizes, err := j.Sizes(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, n := range sizes {
		total += n
	}
	deleted := 0
	for i := len(all) - 1; i >= 0; i-- { // the oldest first
		s := all[i]
		old := age > 0 && time.Since(s.Updated) > age
		if !old && (most <= 0 || total <= most) {
			continue
		}
		live := false
		var size int64
		for _, name := range s.Traces {
			live = live || host.IsLive(opt, name)
			size += sizes[name]
		}
		if live {
			continue
		}
		total -= size
		deleted++
		if dry {
			fmt.Fprintf(a.p.Stderr, "synapse: would delete %s (%d requests, %d kB): %s\n", s.ID, len(s.Traces), size>>10, clean(s.Prompt))
			continue
		}
		if err := a.deleteSession(ctx, j, s); err != nil {
			return err
		}
	}
	switch {
	case deleted == 0:
		fmt.Fprintln(a.p.Stderr, "synapse: nothing is that old or too much")
	case !dry:
		return j.Shrink(ctx)
	}
	return nil
}

// parseAge reads a duration that may be in days.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, usagef("--older-than %q: want days or a duration, such as 90d or 36h", s)
}

// parseSize reads a number of bytes.
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	text := strings.ToUpper(strings.TrimSpace(s))
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"B", 1}} {
		if n, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n*float64(unit) > 1<<60 {
		return 0, usagef("--max-size %q: want a size, such as 500MB or 2GB", s)
	}
	return int64(n * float64(unit)), nil
}
