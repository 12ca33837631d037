package docgen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/remote"
	"github.com/synapse-agents/synapse/policy"
)

// fields writes the table of a definition's fields.
func fields() string {
	var rows [][]string
	for _, f := range agents.Fields() {
		also := make([]string, len(f.Also))
		for i, s := range f.Also {
			also[i] = code(s)
		}
		restricts := ""
		if f.Restricts {
			restricts = "yes"
		}
		rows = append(rows, []string{code(f.Name), strings.Join(also, ", "), f.Value, f.About, restricts})
	}
	return table([]string{"field", "other spellings", "value", "meaning", "restricts"}, rows)
}

// diagnostics writes the table of all codes that a diagnostic may have.
func diagnostics() string {
	codes := append(agents.Codes(), compile.Codes()...)
	slices.SortFunc(codes, func(a, b agents.CodeInfo) int { return cmp.Compare(a.Code, b.Code) })
	var rows [][]string
	for _, c := range codes {
		rows = append(rows, []string{code(c.Code), string(c.Severity), c.About})
	}
	return table([]string{"code", "severity", "meaning"}, rows)
}

// rules writes a section for each thing that checking files finds, with its
// example.
func rules() string {
	var b strings.Builder
	fence := func(text string) {
		fmt.Fprintf(&b, "```text\n%s\n```\n\n", strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n"))
	}
	for _, r := range agents.Rules() {
		fmt.Fprintf(&b, "### %s\n\n%s. %s\n\n", r.Code, strings.ToUpper(string(r.Severity[:1]))+string(r.Severity[1:]), r.About)
		if r.Fix != "" {
			fmt.Fprintf(&b, "`--fix` %s.\n\n", r.Fix)
		}
		if r.Bad != "" {
			fmt.Fprintf(&b, "Found in %s:\n\n", code(r.File))
			fence(r.Bad)
			b.WriteString("Not found in:\n\n")
			fence(r.Good)
		}
	}
	return b.String()
}

// keys writes the table of settings.
func keys() string {
	var rows [][]string
	for _, k := range settings.Keys() {
		about := k.Doc
		if k.Combine == settings.CombineAdd {
			about += " Layers add up."
		}
		rows = append(rows, []string{code(k.Name), code(k.Env), k.Takes, code(k.Default), about})
	}
	return table([]string{"key", "variable", "value", "default", "meaning"}, rows)
}

// providerVariables writes the table of the variables that providers are known by.
func providerVariables() string {
	var rows [][]string
	for _, v := range settings.ProviderVars() {
		holds := "an endpoint or the like, which may be shown"
		if v.Secret {
			holds = "a key, which never is"
		}
		rows = append(rows, []string{code(v.Name), v.Provider, holds})
	}
	return table([]string{"variable", "provider", "holds"}, rows)
}

// reasons writes the table of the reasons for which a tool is denied, in the
// order in which they are looked for, in the policy's own words.
func reasons() string {
	var rows [][]string
	for _, c := range []policy.Code{
		policy.ExcludedTools, policy.MinimalFilesystem, policy.ReadOnly, policy.DisallowedTools, policy.TodoIsolation,
		policy.BuiltinSearch, policy.NoSpawn, policy.NotListed, policy.FrameworkOnly, policy.NotInherited, policy.UnknownTool,
	} {
		p := policy.Policy{Block: map[string]policy.Reason{"tool": {Code: c}}}
		words := p.Check(policy.Call{Tool: "tool"}).Reason
		words = strings.TrimSuffix(strings.TrimPrefix(words, string(c)+" ("), ")")
		rows = append(rows, []string{code(string(c)), words})
	}
	return table([]string{"reason", "meaning"}, rows)
}

// otherNames are the names that other products give to tools.
var otherNames = []string{
	"Read", "Write", "Edit", "MultiEdit", "replace", "Bash", "bash", "shell", "run_shell_command", "execute_bash",
	"Grep", "grep_search", "search_code", "Glob", "LS", "list_files", "list_directory", "WebFetch", "webfetch", "web_fetch",
	"WebSearch", "websearch", "google_web_search", "TodoWrite", "todowrite", "Task", "Agent", "Skill",
}

// aliases writes the table of the tools that have further names.
func aliases() string {
	var order []string
	names := map[string][]string{}
	for _, n := range otherNames {
		tool := policy.Canonical(n, nil)
		if names[tool] == nil {
			order = append(order, tool)
		}
		names[tool] = append(names[tool], code(n))
	}
	var rows [][]string
	for _, tool := range order {
		rows = append(rows, []string{code(tool), strings.Join(names[tool], ", ")})
	}
	return table([]string{"tool", "also"}, rows)
}

// providers writes the table of the model providers known by name.
func providers() string {
	var rows [][]string
	for _, p := range remote.Providers() {
		var vars []string
		for _, name := range []string{p.KeyEnv, p.KeyAlso} {
			if name != "" {
				vars = append(vars, code(name))
			}
		}
		key := strings.Join(vars, " or ")
		switch {
		case key == "" && len(p.Env) > 0:
			key = "see below"
		case key == "":
			key = "none is needed"
		}
		where := code(p.BaseURL)
		switch {
		case where == "" && len(p.Env) > 0:
			where = "the cloud's"
		case where == "":
			where = "given by the user"
		}
		if p.Local {
			where += ", looked for on loopback"
		}
		if p.BaseEnv != "" {
			where += "; " + code(p.BaseEnv)
		}
		model := code(p.Model)
		switch {
		case model != "":
		case p.Local:
			model = "what it has"
		default:
			model = "to be named"
		}
		rows = append(rows, []string{code(p.Name), key, where, model})
	}
	return table([]string{"provider", "key", "endpoint; variable for another", "model without `-m`"}, rows)
}

// clouds writes the table of what providers take beside key and endpoint.
func clouds() string {
	var rows [][]string
	for _, p := range remote.Providers() {
		for _, v := range p.Env {
			about := v.About
			if v.Needed {
				about += " (needed)"
			}
			rows = append(rows, []string{code(p.Name), code(v.Name), about})
		}
	}
	return table([]string{"provider", "variable", "what it is"}, rows)
}

// products writes the table of the products whose agents are read.
func products() string {
	var rows [][]string
	for _, p := range agents.Products() {
		var home, workspace []string
		for _, place := range p.Places {
			if place.Level == agents.LayerHome {
				home = append(home, code("~/"+place.Path))
			} else {
				workspace = append(workspace, code(place.Path))
			}
		}
		rows = append(rows, []string{p.Title, code(p.Name), strings.Join(workspace, ", "), strings.Join(home, ", ")})
	}
	return table([]string{"product", "name", "in a workspace", "in the home directory"}, rows)
}

// differences lists where agents of other products run differently here.
func differences() string {
	var b strings.Builder
	for _, p := range agents.Products() {
		for _, d := range p.Differs {
			b.WriteString("- " + p.Title + ": " + strings.Join(strings.Fields(d), " ") + "\n")
		}
	}
	return b.String()
}
