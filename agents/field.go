package agents

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/synapse-agents/synapse"
	"go.yaml.in/yaml/v3"
)

// field is one row of the table that every format is read with.
type field struct {
	name string
	also []string // other spellings
	// restricts: a value that can't be read is an error, for it must not
	// become "everything".
	restricts bool
	list      bool // the value may be a list
	prose     bool // the value is text of any length
	hidden    bool // read, but not documented as a field
	foreign   bool // no field of the product whose file is read, but one of ours
	value     string
	about     string
	// key and own are the spellings that the product has whose file is read; ""
	// and nil where they are name and also.
	key string
	own []string
	// as is our field that comes of a product's own one, for documentation.
	as string
	// ignored says why nothing comes of a product's field.
	ignored string
	// read puts the value into the definition. The value is never null.
	read readFunc
}

type readFunc func(r *reader, n *yaml.Node) error

// spelling is the key that people should write.
func (f *field) spelling() string {
	if f.key != "" {
		return f.key
	}
	return f.name
}

// isOwn reports whether the product whose file is read knows the key.
func (f *field) isOwn(key string) bool {
	return !f.foreign && (key == f.spelling() || slices.Contains(f.own, key))
}

// A FieldInfo describes a field of a definition, for documentation.
type FieldInfo struct {
	Name      string   `json:"name"`
	Also      []string `json:"also,omitempty"` // other spellings
	Restricts bool     `json:"restricts"`      // an unreadable value disables the definition
	Value     string   `json:"value"`
	About     string   `json:"about"`
}

// Fields lists the fields of a definition in the order in which they are
// documented and written.
func Fields() []FieldInfo {
	var list []FieldInfo
	for _, f := range fieldTable {
		if !f.hidden {
			list = append(list, FieldInfo{f.name, slices.Clone(f.also), f.restricts, f.value, f.about})
		}
	}
	return list
}

var fieldTable = []*field{
	{name: "name", value: "text, required", about: "identity; up to 64 characters of any script",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.Name, err = r.text(n)
			return err
		}},
	{name: "description", prose: true, value: "text, required", about: "when to delegate to it: the routing rule the main agent reads",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.Description, err = r.text(n)
			return err
		}},
	{name: "mode", restricts: true, value: "primary, subagent or all (default)", about: "whether it can be the main agent, be delegated to, or both",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.word(n, string(ModePrimary), string(ModeSubagent), string(ModeAll))
			r.d.Mode = Mode(v)
			return err
		}},
	{name: "model", value: "inherit, provider:model, or an alias from settings", about: "which model it runs on",
		read: readModel},
	{name: "reasoning_effort", also: []string{"effort", "reasoningEffort"}, value: "off, minimal, low, medium, high, max or inherit", about: "how much the model reasons",
		read: readEffort},
	{name: "temperature", value: "number from 0", about: "left out of the request when unset",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.number(n, 0, math.MaxFloat64)
			if err == nil {
				r.d.Temperature = &v
			}
			return err
		}},
	{name: "top_p", value: "number from 0 to 1", about: "left out of the request when unset",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.number(n, 0, 1)
			if err == nil {
				r.d.TopP = &v
			}
			return err
		}},
	{name: "tools", also: []string{"allowed_tools"}, restricts: true, list: true, value: "null, list, or names with commas between", about: "the tools it has: absent or null inherits, [] is the framework's own, names are exactly those",
		read: readTools},
	{name: "disallowed_tools", also: []string{"denied_tools", "disallowedTools"}, restricts: true, list: true, value: "list, or names with commas between", about: "tools it never has",
		read: readDisallowed},
	{name: "permissions", also: []string{"permission"}, restricts: true, value: "map of tool to action, or to a map of pattern to action", about: "allow, ask or deny single calls",
		read: readPermissions},
	{name: "max_turns", also: []string{"max_iterations", "maxTurns", "steps"}, restricts: true, value: "whole number from 1", about: "how many turns it may take (default 30)",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.integer(n, 1, math.MaxInt32)
			r.d.MaxTurns = int(v)
			return err
		}},
	{name: "limits", restricts: true, value: "map: tokens, cost_usd, time, tool_calls, spawns", about: "bounds on a run and all below it; time is a Go duration",
		read: readLimits},
	{name: "skills", list: true, value: "list", about: "skills preloaded into the conversation",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.Skills, err = r.names(n)
			return err
		}},
	{name: "can_spawn_subagent", restricts: true, value: "true or false (default)", about: "whether it may delegate in turn",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.CanSpawn, err = r.boolean(n)
			return err
		}},
	{name: "ownership", restricts: true, value: "task (default) or handoff", about: "which compiler takes it",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.word(n, string(OwnershipTask), string(OwnershipHandoff))
			r.d.Ownership = Ownership(v)
			return err
		}},
	{name: "handoffs", list: true, value: "list of names", about: "whom it may hand over to",
		read: func(r *reader, n *yaml.Node) error {
			names, err := r.names(n)
			if err != nil {
				// Dropping the list would mean that it may hand over to anyone.
				r.d.Handoffs = []string{}
				return err
			}
			r.d.Handoffs = append([]string{}, names...)
			return nil
		}},
	{name: "handoff_history", value: "full (default), last or summary", about: "what it sees of a conversation it takes over",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.word(n, string(synapse.HistoryFull), string(synapse.HistoryLast), string(synapse.HistorySummary))
			r.d.HandoffHistory = synapse.HandoffHistory(v)
			return err
		}},
	{name: "output_schema", value: "JSON Schema, or the path of one beside the file", about: "the shape of its result",
		read: readSchema},
	{name: "background", value: "true or false (default)", about: "runs in the background unless the call says otherwise",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.Background, err = r.boolean(n)
			return err
		}},
	{name: "enabled", restricts: true, value: "true (default) or false", about: "false: listed, never run",
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.boolean(n)
			r.d.Disabled = r.d.Disabled || !v
			return err
		}},
	{name: "disable", also: []string{"disabled"}, restricts: true, hidden: true,
		read: func(r *reader, n *yaml.Node) error {
			v, err := r.boolean(n)
			r.d.Disabled = r.d.Disabled || v
			return err
		}},
	{name: "color", value: "text", about: "kept for whoever shows it",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.d.Color, err = r.text(n)
			return err
		}},
	{name: "system_prompt", prose: true, value: "text, required in JSON", about: "the system prompt; in Markdown it is the body",
		read: func(r *reader, n *yaml.Node) (err error) {
			r.prompt, err = r.text(n)
			return err
		}},
}

func readModel(r *reader, n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode && !customTag(n) && len(n.Content) > 0 {
		first, err := r.text(r.follow(n.Content[0]))
		if err != nil {
			return err
		}
		r.warn(n, CodeConvertedValue, "name one model", "model is a list; its first item, %q, is used", first)
		r.d.Model = first
		return nil
	}
	v, err := r.text(n)
	r.d.Model = v
	return err
}

func readEffort(r *reader, n *yaml.Node) error {
	if b, ok := boolOf(n); ok && !b && n.ShortTag() == "!!bool" {
		r.warn(n, CodeConvertedValue, "write off", "reasoning_effort is %s, read as off", n.Value)
		r.d.ReasoningEffort = synapse.EffortOff
		return nil
	}
	var words []string
	for _, e := range synapse.Efforts() {
		words = append(words, string(e))
	}
	v, err := r.word(n, words...)
	r.d.ReasoningEffort = synapse.Effort(v)
	return err
}

func readLimits(r *reader, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || customTag(n) {
		return r.bad(n, "write limits: {tokens: 200000, time: 10m}", "is %s, not a map", kindOf(n))
	}
	var l synapse.Limits
	keys := []string{"tokens", "cost_usd", "time", "tool_calls", "spawns"}
	seen := map[string]bool{}
	for _, p := range r.pairs(n) {
		key, v := p.key.Value, r.follow(p.value)
		i := slices.IndexFunc(keys, func(k string) bool { return foldName(k) == foldName(key) })
		if i < 0 {
			hint := "write one of " + strings.Join(keys, ", ")
			if foldName(key) == "turns" || foldName(key) == "maxturns" {
				hint = "write max_turns, as a field of its own"
			} else if s := nearest(strings.ToLower(key), keys); s != "" {
				hint = fmt.Sprintf("did you mean %q?", s)
			}
			return r.bad(p.key, hint, "has no limit %q", shorten(key, 40))
		}
		if key = keys[i]; seen[key] {
			return r.bad(p.key, "keep one of the two", "sets %s twice", key)
		}
		seen[key] = true
		if isNull(v) {
			continue
		}
		var err error
		var whole int64
		switch key {
		case "tokens":
			l.Tokens, err = r.integer(v, 1, math.MaxInt64)
		case "cost_usd":
			if l.CostUSD, err = r.number(v, 0, math.MaxFloat64); err == nil && l.CostUSD == 0 {
				err = r.bad(v, "leave it out for no limit", "is 0")
			}
		case "time":
			l.Time, err = r.duration(v)
		case "tool_calls":
			whole, err = r.integer(v, 1, math.MaxInt32)
			l.ToolCalls = int(whole)
		case "spawns":
			whole, err = r.integer(v, 1, math.MaxInt32)
			l.Spawns = int(whole)
		}
		if err != nil {
			return within(key, err)
		}
	}
	r.d.Limits = l
	return nil
}

func (r *reader) duration(n *yaml.Node) (synapse.Duration, error) {
	const hint = "write a duration with its unit: 90s, 10m, 1h30m"
	if n.Kind != yaml.ScalarNode || customTag(n) {
		return 0, r.bad(n, hint, "is %s, not a duration", kindOf(n))
	}
	d, err := time.ParseDuration(strings.ReplaceAll(trim(n.Value), " ", ""))
	if err != nil || d <= 0 {
		return 0, r.bad(n, hint, "is %q, not a duration above 0", shorten(n.Value, 40))
	}
	return synapse.Duration(d), nil
}

// checkName says what is wrong with a name, "" if nothing is.
func checkName(name string) string {
	if strings.Contains(name, "..") {
		return "holds “..”"
	}
	n := 0
	for _, c := range name {
		n++
		invisible := unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp) && c != '\u200c' && c != '\u200d'
		if unicode.IsControl(c) || invisible {
			return fmt.Sprintf("holds the control character %U", c)
		}
	}
	if n > 64 {
		return fmt.Sprintf("has %d characters, more than 64", n)
	}
	return ""
}
