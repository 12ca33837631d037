package offline

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/synapse-agents/synapse"
)

// A role is what a tool is good for, whatever its name.
type role string

const (
	roleFind   role = "find"
	roleSearch role = "search"
	roleRead   role = "read"
	roleExec   role = "execute"
	roleTask   role = "task"
)

// roleTools lists, for each role, the tools that serve it, best first.
var roleTools = map[role][]string{
	roleFind:   {"find_files", "glob"},
	roleSearch: {"search_files", "grep"},
	roleRead:   {"read_file"},
	roleExec:   {"execute"},
	roleTask:   {"task", "Agent"},
}

// argNames lists, for each meaning an argument can have, the property names
// that carry it, best first. A property belongs to one meaning per call.
var argNames = map[string][]string{
	"pattern":     {"pattern", "query", "regex"},
	"dir":         {"path", "dir", "directory", "root"},
	"file":        {"path", "file_path", "filePath", "file"},
	"glob":        {"glob", "include", "file_pattern"},
	"ignore_case": {"ignore_case", "case_insensitive"},
	"mode":        {"mode", "output_mode"},
	"offset":      {"offset", "start", "start_line"},
	"limit":       {"limit", "lines"},
	"command":     {"command", "cmd"},
	"timeout":     {"timeout"},
	"agent":       {"subagent_type", "agent", "agent_type"},
	"description": {"description"},
	"prompt":      {"prompt", "task"},
	"background":  {"background"},
	"name":        {"name", "skill", "workflow"},
	"url":         {"url"},
	"reason":      {"reason"},
	"todos":       {"todos"},
	"intent":      {"intent"},
}

// A property is one argument in a tool's schema.
type property struct {
	Types     []string
	Enum      []any
	Maximum   *float64
	Minimum   *float64
	MaxLength *int
	Text      string // its description
	Items     []string
	known     bool // its schema could be read
}

// An offer is a tool with its schema read.
type offer struct {
	def      synapse.ToolDef
	props    map[string]property
	required []string
}

// A toolbox holds what the request offers.
type toolbox struct {
	offers map[string]*offer
	names  []string // in the order offered
}

func openToolbox(defs []synapse.ToolDef) *toolbox {
	b := &toolbox{offers: map[string]*offer{}}
	for _, def := range defs {
		o, ok := readOffer(def)
		if _, dup := b.offers[def.Name]; dup || !ok || def.Name == "" {
			continue
		}
		b.offers[def.Name] = o
		b.names = append(b.names, def.Name)
	}
	return b
}

// readOffer reads a tool's schema. A schema it can't read makes the tool
// unusable: arguments could only be guessed.
func readOffer(def synapse.ToolDef) (*offer, bool) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(def.Schema, &schema) != nil {
		return nil, false
	}
	o := &offer{def: def, props: map[string]property{}, required: schema.Required}
	for name, raw := range schema.Properties {
		o.props[name] = readProperty(raw)
	}
	return o, true
}

func readProperty(raw json.RawMessage) property {
	var p struct {
		Type        json.RawMessage `json:"type"`
		Enum        []any           `json:"enum"`
		Maximum     *float64        `json:"maximum"`
		Minimum     *float64        `json:"minimum"`
		MaxLength   *int            `json:"maxLength"`
		Description string          `json:"description"`
		Items       json.RawMessage `json:"items"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return property{}
	}
	prop := property{
		Types: readTypes(p.Type), Enum: p.Enum, Maximum: p.Maximum, Minimum: p.Minimum,
		MaxLength: p.MaxLength, Text: p.Description, known: true,
	}
	if len(p.Items) > 0 {
		var items struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal(p.Items, &items) == nil {
			prop.Items = readTypes(items.Type)
		}
	}
	return prop
}

func readTypes(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many
	}
	return nil
}

// role returns the tool that serves a role, nil if none is offered.
func (b *toolbox) role(r role) *offer {
	for _, name := range roleTools[r] {
		if o := b.offers[name]; o != nil {
			return o
		}
	}
	return nil
}

// want holds arguments by meaning. A meaning that starts with "+" is one the
// call is pointless without; the others are left out where the schema has no
// place for them.
type want map[string]any

// fill returns the arguments of a call that the offer's schema accepts, or
// false when it has no place for what the call is about, or requires something
// that is not known.
func (o *offer) fill(w want, why string) (map[string]any, bool) {
	args := map[string]any{}
	meanings := make([]string, 0, len(w)+1)
	for m := range w {
		meanings = append(meanings, m)
	}
	slices.Sort(meanings) // "+" sorts first: what matters most gets its property
	for _, m := range meanings {
		name, placed := strings.TrimPrefix(m, "+"), false
		for _, prop := range argNames[name] {
			p, ok := o.props[prop]
			if _, taken := args[prop]; !ok || taken {
				continue
			}
			if v, ok := p.fit(w[m]); ok {
				args[prop], placed = v, true
				break
			}
		}
		if !placed && m != name {
			return nil, false
		}
	}
	need := slices.Clone(o.required)
	if _, ok := o.props["intent"]; ok && !slices.Contains(need, "intent") {
		need = append(need, "intent")
	}
	for _, name := range need {
		if _, ok := args[name]; ok {
			continue
		}
		p, ok := o.props[name]
		if !ok && name != "intent" {
			return nil, false
		}
		if name != "intent" && name != "description" && name != "reason" {
			return nil, false
		}
		if !ok {
			p = property{Types: []string{"string"}, known: true}
		}
		v, ok := p.fit(why)
		if !ok {
			return nil, false
		}
		args[name] = v
	}
	return args, true
}

// fit returns v as the property wants it, false if it can't hold it.
func (p property) fit(v any) (any, bool) {
	if !p.known {
		return nil, false
	}
	takes := func(kind string) bool { return len(p.Types) == 0 || slices.Contains(p.Types, kind) }
	var out any
	switch v := v.(type) {
	case string:
		switch {
		case takes("string"):
			if p.MaxLength != nil && len([]rune(v)) > *p.MaxLength {
				v = string([]rune(v)[:max(*p.MaxLength, 0)])
			}
			out = v
		case takes("array") && slices.Contains(p.Items, "string"):
			out = []string{v}
		default:
			return nil, false
		}
	case int:
		switch {
		case takes("integer"), takes("number"):
			f := float64(v)
			if p.Maximum != nil {
				f = math.Min(f, *p.Maximum)
			}
			if p.Minimum != nil {
				f = math.Max(f, *p.Minimum)
			}
			if f != math.Trunc(f) || math.Abs(f) > 1e9 {
				return nil, false
			}
			out = int(f)
		case takes("string"):
			out = strconv.Itoa(v)
		default:
			return nil, false
		}
	case bool:
		if !takes("boolean") {
			return nil, false
		}
		out = v
	default:
		if !takes("array") {
			return nil, false
		}
		out = v
	}
	if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(e any) bool { return compact(e) == compact(out) }) {
		return nil, false
	}
	return out, true
}

// mode returns which of the words the tool's mode argument knows, "" if none.
func (o *offer) mode(words ...string) string {
	for _, name := range argNames["mode"] {
		for _, w := range words {
			if p, ok := o.props[name]; ok && slices.Contains(p.Enum, any(w)) {
				return w
			}
		}
	}
	return ""
}

// seconds reports whether the tool's timeout argument says it counts seconds.
func (o *offer) seconds() bool {
	return strings.Contains(strings.ToLower(o.props["timeout"].Text), "second") &&
		!strings.Contains(strings.ToLower(o.props["timeout"].Text), "milli")
}
