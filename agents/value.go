package agents

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds how much of a tree is walked for one definition, aliases
// counted as often as they are followed. It defuses alias bombs.
const maxNodes = 100_000

// maxExtra bounds the same for all keys that are no fields.
const maxExtra = 2_000

// maxNames bounds the lists of names.
const maxNames = 2_000

// maxDepth bounds the nesting of values that are kept or turned into JSON.
const maxDepth = 64

// reader reads the fields of one definition and gathers what is wrong with
// them.
type reader struct {
	d       *Definition
	dialect *dialect
	file    string
	opt     *ParseOptions
	raw     func(line int) string
	prompt  string // the system_prompt field
	diags   []Diagnostic
	budget  int     // how many more nodes may be walked
	spare   int     // the same, for keys that are no fields
	field   *field  // the one being read
	unknown int     // how many keys were no fields
	grants  []grant // from tools and disallowed_tools: what stands in brackets
	denials []grant
	tighten []tightening // what a product's own words take away
	ordered []permission // a product's own permissions, in their order
	general []permission // those that come before them, as they are for all agents
	hides   map[string]bool
}

// valueError says what is wrong with a field's value, as the end of a sentence
// that begins with the field's name.
type valueError struct {
	node *yaml.Node
	in   string // the part of the value that is meant, "" for all of it
	msg  string
	hint string
}

func (e *valueError) Error() string { return e.msg }

func (r *reader) bad(n *yaml.Node, hint, format string, args ...any) error {
	return &valueError{node: n, msg: fmt.Sprintf(format, args...), hint: hint}
}

// within names the part of a value that an error is about.
func within(part string, err error) error {
	var v *valueError
	if errors.As(err, &v) {
		v.in = part
	}
	return err
}

func (r *reader) pos(n *yaml.Node) Pos {
	return Pos{File: r.file, Line: n.Line, Column: n.Column}
}

func (r *reader) report(p Pos, sev Severity, code, hint, format string, args ...any) {
	r.diags = append(r.diags, Diagnostic{Pos: p, Severity: sev, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *reader) warn(n *yaml.Node, code, hint, format string, args ...any) {
	r.report(r.pos(n), Warn, code, hint, format, args...)
}

// follow resolves an alias. What it can't resolve within the budget comes back
// as a value that no field can read.
func (r *reader) follow(n *yaml.Node) *yaml.Node {
	at := n
	for n.Kind == yaml.AliasNode {
		if r.budget--; r.budget < 0 || n.Alias == nil {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagUnreadable, Value: at.Value, Line: at.Line, Column: at.Column}
		}
		n = n.Alias
	}
	r.budget--
	return n
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs returns the entries of a mapping in their order, what it merges in
// ("<<") last. Of entries with the same key all are returned.
func (r *reader) pairs(n *yaml.Node) []pair {
	var own, merged []pair
	have := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := r.follow(n.Content[i]), n.Content[i+1]
		if key.Tag == "!!merge" {
			continue
		}
		have[key.Value] = true
		own = append(own, pair{key, value})
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if r.follow(n.Content[i]).Tag != "!!merge" {
			continue
		}
		from := r.follow(n.Content[i+1])
		sources := []*yaml.Node{from}
		if from.Kind == yaml.SequenceNode {
			sources = from.Content
		}
		for _, s := range sources {
			if s = r.follow(s); s.Kind != yaml.MappingNode || r.budget < 0 {
				continue
			}
			for j := 0; j+1 < len(s.Content); j += 2 {
				key := r.follow(s.Content[j])
				if r.budget -= 2; r.budget < 0 {
					break
				}
				if key.Tag != "!!merge" && !have[key.Value] {
					have[key.Value] = true
					merged = append(merged, pair{key, s.Content[j+1]})
				}
			}
		}
	}
	return append(own, merged...)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// customTag reports whether a value carries a tag that is not YAML's own for
// plain data. Such tags ask for something to be constructed, which never
// happens here.
func customTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
		return false
	}
	return true
}

// kindOf says what a value is, for messages.
func kindOf(n *yaml.Node) string {
	if n.Tag == tagUnreadable {
		return "unreadable"
	}
	if customTag(n) {
		return "a value with the tag " + shorten(n.Tag, 30)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + shorten(n.Value, 20)
	}
	return fmt.Sprintf("%q", shorten(n.Value, 40))
}

// trim takes off white space of every script, and byte order marks.
func trim(s string) string {
	return strings.TrimFunc(s, func(c rune) bool { return unicode.IsSpace(c) || c == '\ufeff' })
}

// text reads a value that is text. Numbers, booleans and lists of text are
// taken as what they look like, with a warning.
func (r *reader) text(n *yaml.Node) (string, error) {
	switch {
	case n.Tag == tagUnreadable:
		return "", r.bad(n, "put it in quotes", "can't be read")
	case n.Kind == yaml.ScalarNode && customTag(n):
		if n.ShortTag() == "!!binary" {
			return "", r.bad(n, "write it as text", "is binary data")
		}
		r.warn(n, CodeYAMLTag, "put the value in quotes", "%s begins with “!”, which begins a tag in YAML; it is taken as text", r.field.name)
		return trim(n.Tag + " " + n.Value), nil
	case n.Kind == yaml.ScalarNode:
		if tag := n.ShortTag(); tag != "!!str" && tag != "!!timestamp" {
			r.warn(n, CodeConvertedValue, "put it in quotes", "%s is %s, taken as text", r.field.name, kindOf(n))
		}
		return trim(n.Value), nil
	case customTag(n):
		return "", r.bad(n, "leave the tag out", "is %s", kindOf(n))
	case n.Kind == yaml.SequenceNode:
		var parts []string
		for _, c := range n.Content {
			c = r.follow(c)
			if c.Kind != yaml.ScalarNode || customTag(c) || r.budget < 0 {
				return "", r.bad(c, "write it as text", "is a list that holds %s", kindOf(c))
			}
			if t := trim(c.Value); t != "" && !isNull(c) {
				parts = append(parts, t)
			}
		}
		r.warn(n, CodeConvertedValue, "write it as one text", "%s is a list, taken as text", r.field.name)
		return strings.Join(parts, " "), nil
	}
	// A template's placeholder, {{NAME}}, is a map of a map to YAML.
	if n.Style&yaml.FlowStyle != 0 && r.raw != nil {
		line := []rune(r.raw(n.Line))
		if n.Column >= 1 && n.Column <= len(line) {
			if rest := trim(string(line[n.Column-1:])); strings.HasPrefix(rest, "{{") && strings.HasSuffix(rest, "}}") {
				r.warn(n, CodeYAMLLenient, "put it in quotes", "%s is a placeholder, taken as text", r.field.name)
				return rest, nil
			}
		}
	}
	return "", r.bad(n, "write it as text", "is %s, not text", kindOf(n))
}

// boolOf reads the words that mean a boolean, without converting anything else.
func boolOf(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode || customTag(n) {
		return false, false
	}
	switch strings.ToLower(trim(n.Value)) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

func (r *reader) boolean(n *yaml.Node) (bool, error) {
	v, ok := boolOf(n)
	if !ok {
		return false, r.bad(n, "write true or false", "is %s, neither true nor false", kindOf(n))
	}
	if n.ShortTag() != "!!bool" {
		r.warn(n, CodeConvertedValue, fmt.Sprintf("write %t", v), "%s is %q, read as %t", r.field.name, n.Value, v)
	}
	return v, nil
}

// word reads one of a few words, letter case aside.
func (r *reader) word(n *yaml.Node, words ...string) (string, error) {
	allowed := "write " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if n.Kind != yaml.ScalarNode || customTag(n) {
		return "", r.bad(n, allowed, "is %s", kindOf(n))
	}
	v := trim(n.Value)
	if slices.Contains(words, v) {
		return v, nil
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, v) }); i >= 0 {
		r.warn(n, CodeConvertedValue, "write "+words[i], "%s is %q, read as %s", r.field.name, v, words[i])
		return words[i], nil
	}
	if s := nearest(strings.ToLower(v), words); s != "" {
		allowed = fmt.Sprintf("did you mean %q? %s", s, allowed)
	}
	return "", r.bad(n, allowed, "is %s", kindOf(n))
}

// number reads a number from low to high. Text that is one is converted.
func (r *reader) number(n *yaml.Node, low, high float64) (float64, error) {
	v, ok := floatOf(n)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, r.bad(n, "write a number", "is %s, not a number", kindOf(n))
	}
	if v < low || v > high {
		hint := fmt.Sprintf("write a number from %g", low)
		if high < math.MaxFloat64 {
			hint += fmt.Sprintf(" to %g", high)
		}
		return 0, r.bad(n, hint, "is %s", shorten(n.Value, 20))
	}
	r.noteNumber(n)
	return v, nil
}

// integer reads a whole number from low to high.
func (r *reader) integer(n *yaml.Node, low, high int64) (int64, error) {
	hint := fmt.Sprintf("write a whole number from %d", low)
	f, ok := floatOf(n)
	if !ok || f != math.Trunc(f) || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, r.bad(n, hint, "is %s, not a whole number", kindOf(n))
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(trim(n.Value), "_", ""), 0, 64)
	if err != nil {
		if v = int64(f); math.Abs(f) >= 1<<63 {
			return 0, r.bad(n, hint, "is %s, too large a number", shorten(n.Value, 20))
		}
	}
	if v < low || v > high {
		return 0, r.bad(n, hint, "is %s", shorten(n.Value, 20))
	}
	r.noteNumber(n)
	return v, nil
}

func (r *reader) noteNumber(n *yaml.Node) {
	if n.ShortTag() == "!!str" {
		r.warn(n, CodeConvertedValue, "leave the quotes out", "%s is text, read as the number %s", r.field.name, n.Value)
	}
}

// floatOf reads a number, or text that is one.
func floatOf(n *yaml.Node) (float64, bool) {
	if n.Kind != yaml.ScalarNode || customTag(n) {
		return 0, false
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!str":
	default:
		return 0, false
	}
	text := strings.ReplaceAll(trim(n.Value), "_", "")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(i), true
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// names reads a list of names: a YAML list, or text with commas between.
func (r *reader) names(n *yaml.Node) ([]string, error) {
	var list []string
	items, err := r.items(n)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		for name := range strings.SplitSeq(it.text, ",") {
			if name = trim(name); name != "" && !slices.Contains(list, name) {
				list = append(list, name)
			}
			if len(list) > maxNames {
				return nil, r.bad(n, "", "holds more than %d names", maxNames)
			}
		}
	}
	return list, nil
}

// item is one text of a list, with where it stands.
type item struct {
	text string
	node *yaml.Node
}

// items reads text, or a list of texts. Null items are left out; everything
// that is no text, number or boolean is an error.
func (r *reader) items(n *yaml.Node) ([]item, error) {
	const hint = `write a list, ["a", "b"], or names with commas between`
	switch {
	case n.Tag == tagUnreadable:
		return nil, r.bad(n, hint, "can't be read")
	case customTag(n):
		return nil, r.bad(n, hint, "is %s", kindOf(n))
	case n.Kind == yaml.ScalarNode:
		if n.ShortTag() != "!!str" {
			return nil, r.bad(n, hint, "is %s, not a list of names", kindOf(n))
		}
		return []item{{trim(n.Value), n}}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, r.bad(n, hint, "is %s, not a list of names", kindOf(n))
	}
	var list []item
	for _, c := range n.Content {
		at := c
		c = r.follow(c)
		if r.budget < 0 {
			return nil, r.bad(at, hint, "has too many aliases")
		}
		if isNull(c) {
			continue
		}
		if c.Kind != yaml.ScalarNode || customTag(c) {
			return nil, r.bad(at, "put the item in quotes", "is a list that holds %s", kindOf(c))
		}
		if c.ShortTag() != "!!str" {
			r.warn(at, CodeConvertedValue, "put it in quotes", "%s holds %s, taken as text", r.field.name, kindOf(c))
		}
		list = append(list, item{trim(c.Value), at})
	}
	return list, nil
}
