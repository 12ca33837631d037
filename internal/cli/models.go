package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse/host"
)

// modelFilter is which models `synapse models` lists.
type modelFilter struct {
	words     []string
	provider  string
	tools     bool
	reasoning bool
	available bool
}

func (f modelFilter) match(m host.ModelInfo) bool {
	text := strings.ToLower(m.Ref.String() + " " + m.Title + " " + strings.Join(m.Aliases, " "))
	for _, w := range f.words {
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return (f.provider == "" || f.provider == m.Ref.Provider) &&
		(!f.tools || m.Tools != nil && *m.Tools) &&
		(!f.reasoning || m.Reasoning != nil && *m.Reasoning) &&
		(!f.available || m.Available)
}

func (a *app) modelsCommand() *cobra.Command {
	var f modelFilter
	var asJSON bool
	c := &cobra.Command{
		Use:   "models [WORD…]",
		Short: "List the models there are, with prices and what each takes",
		Long: `Lists the models of the built-in catalogue, of the settings and of servers on this
machine, those that can be asked first; with WORDs, those that have every word in
their name, title or aliases. Prices are in US dollars for a million tokens: what
goes in, what comes out, what is read from a prompt cache. "?" is not known. The
star marks the model in use by the main agent. No provider is asked.`,
		Example: `  synapse models sonnet
  synapse models --available
  synapse models --provider openai --reasoning --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.words = args
			return a.listModels(cmd.Context(), f, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&f.provider, "provider", "", "only those of this `provider`")
	c.Flags().BoolVar(&f.tools, "tools", false, "only those known to call tools")
	c.Flags().BoolVar(&f.reasoning, "reasoning", false, "only those known to reason")
	c.Flags().BoolVar(&f.available, "available", false, "only those that can be asked as things are")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func (a *app) listModels(ctx context.Context, f modelFilter, asJSON bool) error {
	h, err := a.open(ctx, func(o *host.Options) { o.Inspect = true })
	if err != nil {
		return err
	}
	defer h.Close()
	all := h.Models(ctx, true)
	if f.provider != "" && !slices.ContainsFunc(all, func(m host.ModelInfo) bool { return m.Ref.Provider == f.provider }) {
		var names []string
		for _, m := range all {
			names = append(names, m.Ref.Provider)
		}
		slices.Sort(names)
		return usagef("--provider %q: no model of it is known; there are models of %s", f.provider, strings.Join(slices.Compact(names), ", "))
	}
	list := slices.DeleteFunc(all, func(m host.ModelInfo) bool { return !f.match(m) })
	if asJSON {
		return printJSON(a.p.Stdout, map[string]any{"models": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(a.p.Stderr, "synapse: no model matches; `synapse models` lists all of them")
		return nil
	}
	var t table
	t.row("", "MODEL", "IN", "OUT", "CACHE", "WINDOW", "OUTPUT", "EFFORTS", "ALIASES", "MISSING")
	for _, m := range list {
		mark := ""
		if m.InUse {
			mark = "*"
		}
		in, out, cached := "?", "?", "?"
		if p := m.Price; p != nil {
			in, out, cached = dollars(p.Input), dollars(p.Output), dollars(p.CacheRead)
		}
		var efforts []string
		for _, e := range m.Efforts {
			efforts = append(efforts, string(e))
		}
		if m.Reasoning == nil {
			efforts = []string{"?"}
		}
		t.row(mark, m.Ref.String(), in, out, cached, tokenSize(m.Window), tokenSize(m.MaxOutput), strings.Join(efforts, ","), strings.Join(m.Aliases, ","), m.Missing)
	}
	return t.write(a.p.Stdout, a.width())
}

// dollars writes a price; the catalogue's have the dust of binary fractions.
func dollars(v float64) string { return fmt.Sprintf("$%.4g", v) }

// tokenSize writes a number of tokens short: 400k, 1M.
func tokenSize(n int64) string {
	switch {
	case n == 0:
		return "?"
	case n%1_000_000 == 0:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 1000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}
