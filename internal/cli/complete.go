package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/trace"
)

// Completion reads definitions, settings and the journal, and opens no
// connection: a key press must not wait for a server.

// maxCompletions bounds what is offered of a list that grows without end.
const maxCompletions = 50

func oneOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// completeAgents offers the names of agents for the one argument.
func (a *app) completeAgents(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.agentNames(func(d *agents.Definition) bool {
		switch cmd.Name() {
		case "enable":
			return d.Disabled
		case "disable":
			return !d.Disabled
		}
		return true
	})
}

// completeMain offers the agents that can be the main one.
func (a *app) completeMain(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return a.agentNames(func(d *agents.Definition) bool { return !d.Disabled && d.Mode != agents.ModeSubagent })
}

func (a *app) agentNames(want func(*agents.Definition) bool) ([]string, cobra.ShellCompDirective) {
	opt, err := a.options()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	r, _, err := host.LoadRegistry(opt)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, d := range r.All() {
		if want(d) {
			names = append(names, cobra.CompletionWithDesc(cleanLine(d.Name), cleanLine(d.Description)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeModel offers the user's aliases, the models that `synapse models`
// lists without asking a server, and the providers there are.
func (a *app) completeModel(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	opt, err := a.options()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	models, err := host.KnownModels(opt)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	byProvider := strings.Contains(word, ":")
	var names []string
	for _, m := range models {
		names = append(names, m.Aliases...)
		if byProvider || m.Source != host.SourceCatalogue { // else the provider comes first
			names = append(names, m.Ref.String())
		}
	}
	if !byProvider {
		directive |= cobra.ShellCompDirectiveNoSpace
		for _, p := range remote.Providers() {
			names = append(names, p.Name+":")
		}
	}
	slices.Sort(names)
	return slices.Compact(names), directive
}

// completeTraces offers the latest traces.
func (a *app) completeTraces(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := []string{"last"}
	err := a.journal(cmd.Context(), func(j trace.Journal) error {
		for s, err := range j.Traces(cmd.Context(), trace.TraceQuery{Limit: maxCompletions}) {
			if err != nil {
				return err
			}
			names = append(names, cobra.CompletionWithDesc(s.Trace, cleanLine(s.Prompt)))
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeKeys(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range settings.Keys() {
		names = append(names, cobra.CompletionWithDesc(k.Name, k.Doc))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeTools offers the tools that agents can have.
func completeTools(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names := compile.FrameworkTools()
	names = append(names, "find_files", "search_files", "patch", "fetch_url", "web_search", "skill", "write_todos", "task")
	before := ""
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		before = word[:i+1]
	}
	for i := range names {
		names[i] = before + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// registerCompletions says what the values of the common flags can be.
func (a *app) registerCompletions(root *cobra.Command) {
	var efforts []string
	for _, e := range synapse.Efforts() {
		efforts = append(efforts, string(e))
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"agent":            a.completeMain,
		"model":            a.completeModel,
		"effort":           oneOf(efforts...),
		"output-format":    oneOf(formatText, formatJSON, formatStream),
		"allowed-tools":    completeTools,
		"disallowed-tools": completeTools,
		"workspace": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"max-turns": oneOf(), "max-tokens": oneOf(), "max-cost-usd": oneOf(), "timeout": oneOf("10m", "30m", "1h"),
	} {
		if err := root.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // a flag of that name is not there: a mistake in this file
		}
	}
}
