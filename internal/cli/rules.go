package cli

import (
	"fmt"
	"strings"

	"github.com/synapse-agents/synapse/agents"
)

// listRules prints the codes that checking files has.
func (a *app) listRules(asJSON bool) error {
	rules := agents.Rules()
	if asJSON {
		return printJSON(a.p.Stdout, map[string]any{"rules": rules})
	}
	var t table
	t.row("CODE", "SEVERITY", "FIX", "MEANING")
	for _, r := range rules {
		fix := ""
		if r.Fix != "" {
			fix = "--fix"
		}
		t.row(r.Code, string(r.Severity), fix, r.About)
	}
	return t.write(a.p.Stdout, a.width())
}

// explainRule prints all there is to say of a code.
func (a *app) explainRule(code string, asJSON bool) error {
	for _, r := range agents.Rules() {
		if r.Code != code {
			continue
		}
		if asJSON {
			return printJSON(a.p.Stdout, r)
		}
		if _, err := fmt.Fprint(a.p.Stdout, ruleText(r)); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// ruleText says what a rule is, with its example, as plain text.
func ruleText(r agents.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n\n%s\n", r.Code, r.Severity, r.About)
	if r.Fix != "" {
		fmt.Fprintf(&b, "\n--fix %s.\n", r.Fix)
	}
	if r.Bad != "" {
		fmt.Fprintf(&b, "\nFound in %s:\n\n%s\nNot found in:\n\n%s", r.File, indent(r.Bad), indent(r.Good))
	}
	return b.String()
}

// ruleMarkdown is the same as Markdown.
func ruleMarkdown(r agents.Rule) string {
	var b strings.Builder
	b.WriteString(r.About + "\n")
	if r.Fix != "" {
		fmt.Fprintf(&b, "\n`--fix` %s.\n", r.Fix)
	}
	if r.Bad != "" {
		fmt.Fprintf(&b, "\nFound in `%s`:\n\n```text\n%s```\n\nNot found in:\n\n```text\n%s```\n", r.File, strings.ToValidUTF8(r.Bad, "\uFFFD"), r.Good)
	}
	return b.String()
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		b.WriteString("    " + line)
	}
	return b.String()
}
