package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// members returns what a definition sets, under the names of its fields and in
// their order. Where it comes from is not part of it, nor is the prompt.
func (d *Definition) members() ([]member, error) {
	var list []member
	var failed error
	put := func(key string, value any) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil && failed == nil {
			failed = fmt.Errorf("definition %q: %s: %w", d.Name, key, err)
		}
		list = append(list, member{key, bytes.TrimSpace(b.Bytes())})
	}
	optional := func(key string, set bool, value any) {
		if set {
			put(key, value)
		}
	}
	put("name", d.Name)
	put("description", d.Description)
	optional("mode", d.Mode != "" && d.Mode != ModeAll, d.Mode)
	optional("model", d.Model != "", d.Model)
	optional("reasoning_effort", d.ReasoningEffort != "", d.ReasoningEffort)
	optional("temperature", d.Temperature != nil, d.Temperature)
	optional("top_p", d.TopP != nil, d.TopP)
	put("tools", d.Tools)
	optional("disallowed_tools", len(d.DisallowedTools) > 0, d.DisallowedTools)
	optional("permissions", len(d.Permissions) > 0, ruleTree(d.Permissions))
	optional("max_turns", d.MaxTurns > 0, d.MaxTurns)
	limits := d.Limits
	limits.Turns = 0 // max_turns says it
	optional("limits", limits != synapse.Limits{}, limitMembers(limits))
	optional("skills", len(d.Skills) > 0, d.Skills)
	optional("can_spawn_subagent", d.CanSpawn, true)
	optional("ownership", d.Ownership != "" && d.Ownership != OwnershipTask, d.Ownership)
	optional("handoffs", d.Handoffs != nil, d.Handoffs)
	optional("handoff_history", d.HandoffHistory != "" && d.HandoffHistory != synapse.HistoryFull, d.HandoffHistory)
	optional("output_schema", len(d.OutputSchema) > 0, d.OutputSchema)
	optional("background", d.Background, true)
	optional("enabled", d.Disabled, false)
	optional("color", d.Color != "", d.Color)
	for _, key := range slices.Sorted(maps.Keys(d.Extra)) {
		if f, _ := native.lookup(key); f == nil { // never a second value for a field
			put(key, d.Extra[key])
		}
	}
	return list, failed
}

// object marshals to a JSON object whose keys keep their order.
type object []member

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoteJSON(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func limitMembers(l synapse.Limits) object {
	var o object
	put := func(key string, set bool, value any) {
		if set {
			text, _ := json.Marshal(value) // numbers and durations can't fail
			o = append(o, member{key, text})
		}
	}
	put("tokens", l.Tokens != 0, l.Tokens)
	put("cost_usd", l.CostUSD != 0, l.CostUSD)
	put("time", l.Time != 0, l.Time)
	put("tool_calls", l.ToolCalls != 0, l.ToolCalls)
	put("spawns", l.Spawns != 0, l.Spawns)
	return o
}

// ruleTree returns rules as the map that people write, or as a list where a
// map would change their order.
func ruleTree(rules []policy.Rule) any {
	type group struct {
		tool     string
		patterns object
	}
	var groups []group
	for _, r := range rules {
		action, _ := json.Marshal(r.Action) // text can't fail
		m := member{r.Pattern, action}
		if n := len(groups); n > 0 && groups[n-1].tool == r.Tool {
			g := &groups[n-1]
			if slices.ContainsFunc(g.patterns, func(o member) bool { return o.key == m.key }) {
				return ruleItems(rules)
			}
			g.patterns = append(g.patterns, m)
			continue
		}
		if slices.ContainsFunc(groups, func(g group) bool { return g.tool == r.Tool }) {
			return ruleItems(rules)
		}
		groups = append(groups, group{r.Tool, object{m}})
	}
	var o object
	for _, g := range groups {
		text, _ := g.patterns.MarshalJSON()
		if len(g.patterns) == 1 && g.patterns[0].key == "*" {
			text = g.patterns[0].value
		}
		o = append(o, member{g.tool, text})
	}
	return o
}

func ruleItems(rules []policy.Rule) any {
	type rule struct {
		Tool    string        `json:"tool"`
		Pattern string        `json:"pattern"`
		Action  policy.Action `json:"action"`
	}
	list := make([]rule, len(rules))
	for i, r := range rules {
		list[i] = rule{r.Tool, r.Pattern, r.Action}
	}
	return list
}

// MarshalJSON writes the definition as one entry of the JSON format, with its
// name: the fields of a file, system_prompt, and the keys unknown to us. Where
// it comes from (Layer, Origin, Pos, Lines) is left out.
func (d Definition) MarshalJSON() ([]byte, error) {
	list, err := d.members()
	if err != nil {
		return nil, err
	}
	return object(append(list, member{"system_prompt", quoteJSON(d.Prompt)})).MarshalJSON()
}

// Markdown writes the definition as a file in the native format. Reading it
// back gives the same definition.
func (d *Definition) Markdown() ([]byte, error) {
	list, err := d.members()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, m := range list {
		if m.key == "tools" && string(m.value) == "null" {
			continue // absent says the same
		}
		b.WriteString(yamlScalar(m.key, false))
		b.WriteString(": ")
		var text string
		if m.value[0] == '"' && json.Unmarshal(m.value, &text) == nil {
			b.WriteString(yamlScalar(text, true))
		} else {
			b.WriteString(yamlFlow(m.value))
		}
		b.WriteByte('\n')
	}
	b.WriteString("---\n\n")
	b.WriteString(d.Prompt)
	b.WriteByte('\n')
	return b.Bytes(), nil
}

var (
	// plainText is text that YAML reads as itself without quotes, whatever
	// comes before or after it.
	plainText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 _./()'"+-]*(?:[,;:][A-Za-z0-9 _./()'"+-]+)*[.!?]?$`)
	})
	// otherThanText are the words that YAML takes for something else.
	otherThanText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null)$`) })
)

// yamlScalar writes text as a YAML scalar at the margin; long says that it may
// take several lines.
func yamlScalar(s string, long bool) string {
	if plainText().MatchString(s) && !otherThanText().MatchString(s) && !strings.Contains(s, ": ") && !strings.HasSuffix(s, " ") {
		return s
	}
	if long && blockText(s) {
		return "|-\n  " + strings.ReplaceAll(s, "\n", "\n  ")
	}
	return yamlFlow(quoteJSON(s))
}

// blockText reports whether a literal block can hold the text as it is.
func blockText(s string) bool {
	if !strings.Contains(s, "\n") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if line == "" || line[0] == ' ' || strings.TrimSpace(line) != line {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) })
}

// yamlFlow turns JSON into YAML: all of it is valid in both, but for characters
// that YAML wants escaped, and for the blanks that people like to see.
func yamlFlow(text []byte) string {
	var b strings.Builder
	quoted := false
	var last rune
	for _, c := range string(text) {
		if c == '"' && last != '\\' {
			quoted = !quoted
		}
		if last == '\\' && c == '\\' {
			last = 0 // an escaped backslash escapes nothing
		} else {
			last = c
		}
		switch {
		case c == 0x7f || c >= 0x80 && c < 0xa0 || c == 0xfeff || c >= 0xfff0 && c <= 0xffff && c != 0xfffd:
			fmt.Fprintf(&b, `\u%04x`, c)
		case !quoted && (c == ',' || c == ':'):
			b.WriteRune(c)
			b.WriteByte(' ')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
