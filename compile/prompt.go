package compile

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// section returns a section of a system prompt with its places filled in. The
// values are pairs of a place's name and its text.
func section(name string, values ...string) string {
	data, err := promptFiles.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic("compile: no prompt section " + name) // the names are constants of this file
	}
	pairs := slices.Clone(values)
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{{" + pairs[i] + "}}"
	}
	return strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(data)))
}

// manyTools is the number from which on a prompt names an MCP server's tools
// by their common prefix: the request carries each of them anyway.
const manyTools = 24

// systemPrompt returns what an agent is told, the part that is its own first.
// A nil definition is the built-in main agent. What it says of tools is read
// off the policy.
func systemPrompt(in *Input, def *agents.Definition, main bool, p *policy.Policy) (string, error) {
	var parts []string
	add := func(name string, values ...string) { parts = append(parts, section(name, values...)) }
	has := func(tool string) bool { return slices.Contains(p.Allow, tool) }

	if def == nil {
		add("main")
		if has(toolTask) {
			add("delegation")
		}
		if has("write_todos") {
			add("todos")
		}
	} else {
		parts = append(parts, strings.TrimSpace(def.Prompt))
	}
	add("paths")
	if in.Workspace != "" {
		add("workspace", "workspace", quotePath(in.Workspace))
	}
	if has("execute") {
		add("shell")
	} else {
		add("noshell")
	}
	add("scope", "tools", toolSentence(p.Allow))
	if len(p.Rules) > 0 {
		parts[len(parts)-1] += " " + section("rules")
	}
	if !main {
		parts[len(parts)-1] += "\n\n" + section("report")
	}
	if def != nil && len(def.OutputSchema) > 0 {
		var schema bytes.Buffer
		if err := json.Compact(&schema, def.OutputSchema); err != nil {
			return "", fmt.Errorf("output schema: %w", err)
		}
		add("output", "schema", schema.String())
	}
	if text := strings.TrimSpace(in.Instructions); text != "" {
		add("instructions", "text", text)
	}
	return strings.Join(parts, "\n\n") + "\n", nil
}

// toolSentence names the tools.
func toolSentence(tools []string) string {
	if len(tools) == 0 {
		return "You have no tools: answer from the task alone."
	}
	return "Your tools: " + strings.Join(grouped(tools), ", ") + ". Nothing else is available."
}

// grouped returns the names, with those of one MCP server drawn together where
// there are too many to read.
func grouped(tools []string) []string {
	if len(tools) < manyTools {
		return tools
	}
	count := map[string]int{}
	for _, name := range tools {
		count[server(name)]++
	}
	var out []string
	for _, name := range tools {
		prefix := server(name)
		switch n := count[prefix]; {
		case prefix == "" || n == 1:
			out = append(out, name)
		case n > 1:
			out = append(out, fmt.Sprintf("%s* (%d)", prefix, n))
			count[prefix] = -1 // said
		}
	}
	return out
}

// server returns "mcp__name__" for a tool of an MCP server, else "".
func server(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(rest, "__")
	if !ok {
		return ""
	}
	return "mcp__" + name + "__"
}

// quotePath sets a path off from the sentence around it, so that no file name
// can pass for a line of the prompt.
func quotePath(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r == '`' || unicode.IsControl(r) || !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return "`" + path + "`"
}
