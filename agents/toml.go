package agents

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// toml reads a definition that is a TOML document.
func (r *reader) toml(src source) (*Definition, []Diagnostic) {
	text := strings.Join(src.lines, "\n")
	root, err := parseTOMLTree(text)
	if err != nil {
		at := Pos{File: r.file, Line: 1, Column: 1}
		var e *tomlError
		if errors.As(err, &e) {
			at.Line, at.Column = e.line, e.col
		}
		r.report(at, Error, CodeTOMLSyntax, "", "not valid TOML: %v", err)
		return r.done()
	}
	r.fields(root)
	r.stemName(r.d.Pos)
	r.require("add " + r.dialect.exact["system_prompt"].spelling())
	return r.done()
}

// tomlError is a fault in TOML with its place.
type tomlError struct {
	line, col int
	msg       string
}

func (e *tomlError) Error() string { return e.msg }

// parseTOMLTree reads TOML to the tree that YAML is read to. Places are those
// of the top-level keys: what is inside a value stands where its key does.
func parseTOMLTree(text string) (root *yaml.Node, err error) {
	defer func() { // a bug of the library must not stop the rest from loading
		if v := recover(); v != nil {
			root, err = nil, fmt.Errorf("%v", v)
		}
	}()
	if at, what := boundTOML(text); at >= 0 {
		line, col := position([]byte(text), at)
		return nil, &tomlError{line, col, "it has more " + what + " than are read"}
	}
	var doc map[string]any
	meta, err := toml.Decode(text, &doc)
	if err != nil {
		var p toml.ParseError
		if errors.As(err, &p) {
			line, col := position([]byte(text), p.Position.Start)
			return nil, &tomlError{line, col, p.Message}
		}
		return nil, err
	}
	t := &tomlTree{places: keyPlaces(text)}
	root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	done := map[string]bool{}
	for _, key := range meta.Keys() { // in the order of the text
		name := key[0]
		if done[name] {
			continue
		}
		done[name] = true
		at, ok := t.places[name]
		if !ok {
			at = Pos{Line: 1, Column: 1}
		}
		k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: at.Line, Column: at.Column}
		v, err := t.value(doc[name], at, meta, toml.Key{name}, 0)
		if err != nil {
			return nil, err
		}
		root.Content = append(root.Content, k, v)
	}
	return root, nil
}

type tomlTree struct {
	places map[string]Pos
	nodes  int
}

func (t *tomlTree) value(v any, at Pos, meta toml.MetaData, key toml.Key, depth int) (*yaml.Node, error) {
	if t.nodes++; t.nodes > maxNodes || depth > maxDepth {
		return nil, &tomlError{at.Line, at.Column, "the text has too many values or is nested too deeply"}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: at.Line, Column: at.Column}
	switch v := v.(type) {
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case int64:
		n.Tag, n.Value = "!!int", fmt.Sprint(v)
	case float64:
		n.Tag, n.Value = "!!float", fmt.Sprint(v)
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case time.Time:
		n.Tag, n.Value = "!!timestamp", v.Format(time.RFC3339Nano)
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			c, err := t.value(item, at, meta, nil, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
	case []map[string]any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			c, err := t.table(item, at, meta, nil, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
	case map[string]any:
		return t.table(v, at, meta, key, depth)
	default: // dates and times without a zone, which no field takes
		n.Tag, n.Value = "!!timestamp", fmt.Sprint(v)
	}
	return n, nil
}

// table turns a table into a mapping, its keys in their order where that is
// known.
func (t *tomlTree) table(m map[string]any, at Pos, meta toml.MetaData, key toml.Key, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
	for _, name := range tableKeys(m, meta, key) {
		v, err := t.value(m[name], at, meta, append(key[:len(key):len(key)], name), depth+1)
		if err != nil {
			return nil, err
		}
		k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: at.Line, Column: at.Column}
		n.Content = append(n.Content, k, v)
	}
	return n, nil
}
