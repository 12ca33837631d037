package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/agents"
)

// A Change is what has become different between two readings of definitions and
// settings.
type Change struct {
	// New and Gone are agents, by name.
	New, Gone []string
	// Changed are the fields that differ, by the agent's name; "file" is where the
	// definition lies.
	Changed map[string][]string
	// Settings are the settings that differ, as "key value".
	Settings []string
	// Instructions says that AGENTS.md has changed; NewWorkflows and
	// GoneWorkflows are names.
	Instructions                bool
	NewWorkflows, GoneWorkflows []string
	// Problems are definitions that can't be loaded and could before, or were not
	// there.
	Problems []agents.Diagnostic
}

// Empty reports whether nothing has become different.
func (c Change) Empty() bool {
	return len(c.New)+len(c.Gone)+len(c.Changed)+len(c.Settings)+len(c.Problems)+len(c.NewWorkflows)+len(c.GoneWorkflows) == 0 && !c.Instructions
}

// shown bounds how many of a kind are named in one line.
const shown = 5

// String says in one line what has changed, "" for nothing.
func (c Change) String() string {
	var parts []string
	list := func(names []string) string {
		if n := len(names) - shown; n > 0 {
			return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", n)
		}
		return strings.Join(names, ", ")
	}
	add := func(names []string, one, many string) {
		switch len(names) {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf(one, names[0]))
		default:
			parts = append(parts, fmt.Sprintf(many, list(names)))
		}
	}
	names := slices.Sorted(maps.Keys(c.Changed))
	for _, name := range names[:min(len(names), shown)] {
		parts = append(parts, fmt.Sprintf("%s: %s changed", name, list(c.Changed[name])))
	}
	if n := len(names) - shown; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more agents changed", n))
	}
	add(c.New, "new agent %s", "new agents %s")
	add(c.Gone, "%s is gone", "gone: %s")
	add(c.NewWorkflows, "new workflow %s", "new workflows %s")
	add(c.GoneWorkflows, "the workflow %s is gone", "gone workflows: %s")
	if c.Instructions {
		parts = append(parts, "AGENTS.md changed")
	}
	add(c.Settings, "settings: %s", "settings: %s")
	var problems []string
	for i, d := range c.Problems {
		if i > 0 && d.File == c.Problems[i-1].File {
			continue // `agents validate` says the rest
		}
		problems = append(problems, d.Pos.String()+": "+d.Message)
	}
	add(problems, "can't be loaded: %s", "can't be loaded: %s")
	return strings.Join(parts, "; ")
}

// compare says what is different in after.
func compare(before, after *assembly) Change {
	c := Change{Changed: map[string][]string{}, Instructions: before.input.Instructions != after.input.Instructions}
	for _, d := range after.registry.All() {
		old, ok := before.registry.Get(d.Name)
		if !ok {
			c.New = append(c.New, d.Name)
			continue
		}
		if fields := differing(old, d); len(fields) > 0 {
			c.Changed[d.Name] = fields
		}
	}
	for _, d := range before.registry.All() {
		if _, ok := after.registry.Get(d.Name); !ok {
			c.Gone = append(c.Gone, d.Name)
		}
	}
	values := func(a *assembly) map[string]string {
		m := map[string]string{}
		for _, row := range a.settings.Show() {
			m[row.Key] = row.Text()
		}
		return m
	}
	was, is := values(before), values(after)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if value, ok := was[key]; !ok || value != is[key] {
			c.Settings = append(c.Settings, strings.TrimSpace(key+" "+short(is[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[key]; !ok {
			c.Settings = append(c.Settings, key+" unset")
		}
	}
	workflows := func(a *assembly) map[string]bool {
		m := map[string]bool{}
		for _, d := range a.workflows {
			m[d.Name] = true
		}
		return m
	}
	had, has := workflows(before), workflows(after)
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if !had[name] {
			c.NewWorkflows = append(c.NewWorkflows, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if !has[name] {
			c.GoneWorkflows = append(c.GoneWorkflows, name)
		}
	}
	for _, d := range after.diagnostics {
		if d.Severity == agents.Error && !slices.Contains(before.diagnostics, d) {
			c.Problems = append(c.Problems, d)
		}
	}
	return c
}

// short cuts a value for one line.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// differing names the fields in which two definitions differ, as a file has
// them.
func differing(a, b *agents.Definition) []string {
	fields := func(d *agents.Definition) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		if data, err := json.Marshal(d); err == nil {
			_ = json.Unmarshal(data, &m) // it has just been made
		}
		return m
	}
	x, y := fields(a), fields(b)
	var list []string
	for key, value := range y {
		if string(x[key]) != string(value) {
			list = append(list, key)
		}
	}
	for key := range x {
		if _, ok := y[key]; !ok {
			list = append(list, key)
		}
	}
	if i := slices.Index(list, "system_prompt"); i >= 0 {
		list[i] = "prompt"
	}
	slices.Sort(list)
	if a.Pos.File != b.Pos.File {
		list = append(list, "file")
	}
	return list
}
