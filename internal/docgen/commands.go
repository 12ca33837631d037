package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands writes a section for every command below root.
func commands(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range root.Commands() {
		command(&b, c)
	}
	return b.String()
}

func command(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() || c.Name() == "help" {
		return
	}
	if c.HasAvailableSubCommands() {
		for _, sub := range c.Commands() {
			command(b, sub)
		}
		return
	}
	fmt.Fprintf(b, "### %s\n\n", c.CommandPath())
	usage := c.UseLine()
	if !c.HasAvailableLocalFlags() {
		usage = strings.TrimSuffix(usage, " [flags]")
	}
	fmt.Fprintf(b, "```text\n%s\n```\n\n", usage)
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	if c.Parent().Name() == "completion" { // cobra's own words, with a shell's prompt in them
		about = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(about))
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", dedent(c.Example))
	}
	if rows := flagRows(c.LocalNonPersistentFlags()); len(rows) > 0 {
		b.WriteString(table([]string{"flag", "meaning"}, rows) + "\n")
	}
}

// commonFlags writes the table of the flags that every command takes.
func commonFlags(root *cobra.Command) string {
	return table([]string{"flag", "meaning"}, flagRows(root.PersistentFlags()))
}

func flagRows(set *pflag.FlagSet) [][]string {
	var rows [][]string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, about := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + strings.ToUpper(kind)
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			about += " (default " + code(f.DefValue) + ")"
		}
		rows = append(rows, []string{code(name), about})
	})
	return rows
}

// dedent takes the indentation off that cobra's help wants.
func dedent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
