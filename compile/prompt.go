package compile

import (
	"bytes"
	_ "embed" // the sections
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/policy"
)

// The sections of system prompts. What stands in double braces is filled in.
var (
	//go:embed prompts/main.md
	mainText string
	//go:embed prompts/delegation.md
	delegationText string
	//go:embed prompts/todos.md
	todosText string
	//go:embed prompts/paths.md
	pathsText string
	//go:embed prompts/workspace.md
	workspaceText string
	//go:embed prompts/shell.md
	shellText string
	//go:embed prompts/noshell.md
	noshellText string
	//go:embed prompts/scope.md
	scopeText string
	//go:embed prompts/rules.md
	rulesText string
	//go:embed prompts/report.md
	reportText string
	//go:embed prompts/output.md
	outputText string
	//go:embed prompts/instructions.md
	instructionsText string
)

// fill returns a section with the text at the place of that name.
func fill(section, name, text string) string {
	return strings.Replace(section, "{{"+name+"}}", text, 1)
}

// manyTools is the number from which on a prompt names an MCP server's tools
// by their common prefix: the request carries each of them anyway.
const manyTools = 24

// systemPrompt returns what an agent is told, the part that is its own first.
// A nil definition is the built-in main agent. What it says of tools is read
// off the policy.
func systemPrompt(in *Input, def *agents.Definition, main bool, p *policy.Policy) (string, error) {
	var parts []string
	add := func(section string) { parts = append(parts, strings.TrimSpace(section)) }
	more := func(between, section string) { parts[len(parts)-1] += between + strings.TrimSpace(section) }
	has := func(tool string) bool { return slices.Contains(p.Allow, tool) }

	if def == nil {
		add(mainText)
		if has(toolTask) {
			add(delegationText)
		}
		if has("write_todos") {
			add(todosText)
		}
	} else {
		add(def.Prompt)
	}
	add(pathsText)
	if in.Workspace != "" {
		add(fill(workspaceText, "workspace", quotePath(in.Workspace)))
	}
	if has("execute") {
		add(shellText)
	} else {
		add(noshellText)
	}
	add(fill(scopeText, "tools", toolSentence(p.Allow)))
	if len(p.Rules) > 0 {
		more(" ", rulesText)
	}
	if !main {
		more("\n\n", reportText)
	}
	if def != nil && len(def.OutputSchema) > 0 {
		var schema bytes.Buffer
		if err := json.Compact(&schema, def.OutputSchema); err != nil {
			return "", fmt.Errorf("output schema: %w", err)
		}
		add(fill(outputText, "schema", schema.String()))
	}
	if text := strings.TrimSpace(in.Instructions); text != "" {
		add(fill(instructionsText, "text", text))
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
