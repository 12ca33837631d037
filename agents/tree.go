package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errTooLarge stands for a value that is nested too deeply, or that aliases
// make too large.
var errTooLarge = errors.New("is nested too deeply or too large")

// jsonText writes a value as compact JSON, its keys in their order.
func (r *reader) jsonText(n *yaml.Node) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := r.writeJSON(&b, n, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (r *reader) writeJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	n = r.follow(n)
	if depth > maxDepth || r.budget < 0 || b.Len() > MaxFileSize {
		return errTooLarge
	}
	if n.Tag == tagUnreadable || customTag(n) {
		return fmt.Errorf("holds %s", kindOf(n))
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		seen := map[string]bool{}
		for _, p := range r.pairs(n) {
			if p.key.Kind != yaml.ScalarNode || customTag(p.key) {
				return fmt.Errorf("has a key that is %s", kindOf(p.key))
			}
			if seen[p.key.Value] {
				continue
			}
			if len(seen) > 0 {
				b.WriteByte(',')
			}
			seen[p.key.Value] = true
			b.Write(quoteJSON(p.key.Value))
			b.WriteByte(':')
			if err := r.writeJSON(b, p.value, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := r.writeJSON(b, c, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		v, _ := boolOf(n)
		b.WriteString(strconv.FormatBool(v))
	case "!!int", "!!float":
		if num := json.Number(n.Value); json.Valid([]byte(num)) {
			b.WriteString(n.Value) // as it is written, whatever its size
			return nil
		}
		v, ok := floatOf(n)
		if !ok || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("holds the number %s, which JSON does not have", shorten(n.Value, 20))
		}
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		b.Write(quoteJSON(n.Value))
	}
	return nil
}

func quoteJSON(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string and a buffer: it can't fail
	return bytes.TrimRight(b.Bytes(), "\n")
}

// anyValue turns a value into what encoding/json would make of it, but for
// whole numbers, which become int64 where they fit.
func (r *reader) anyValue(n *yaml.Node, depth int) (any, error) {
	n = r.follow(n)
	if depth > maxDepth || r.budget < 0 {
		return nil, errTooLarge
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for _, p := range r.pairs(n) {
			key := p.key.Value
			if p.key.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("has a key that is %s", kindOf(p.key))
			}
			if _, ok := m[key]; ok {
				continue
			}
			v, err := r.anyValue(p.value, depth+1)
			if err != nil {
				return nil, err
			}
			m[key] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := r.anyValue(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		v, _ := boolOf(n)
		return v, nil
	case "!!int", "!!float":
		v, ok := floatOf(n)
		if !ok || math.IsInf(v, 0) || math.IsNaN(v) {
			return n.Value, nil
		}
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return i, nil
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	}
	return n.Value, nil
}

// jsonError is a fault in JSON, with its offset.
type jsonError struct {
	offset int64
	msg    string
}

func (e *jsonError) Error() string { return e.msg }

// parseJSONTree reads JSON to the tree that YAML is read to, so that one table
// of fields serves both.
func parseJSONTree(data []byte) (*yaml.Node, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil { // it finds the place of a fault exactly
		fault := &jsonError{int64(len(data)), "the text ends too soon"}
		var syn *json.SyntaxError
		if errors.As(err, &syn) && !strings.Contains(syn.Error(), "unexpected end") {
			fault = &jsonError{max(syn.Offset-1, 0), syn.Error()}
		}
		return nil, fault
	}
	p := &jsonTree{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	p.dec.UseNumber()
	return p.value(0)
}

type jsonTree struct {
	data []byte
	dec  *json.Decoder
	// line and start tell where offset is, so that places are found in one
	// pass over the text.
	offset, start int
	line          int
	nodes         int
}

// place sets where a node stands: at the first byte of its token.
func (p *jsonTree) place(n *yaml.Node, at int) {
	for ; p.offset < at; p.offset++ {
		if p.data[p.offset] == '\n' {
			p.line++
			p.start = p.offset + 1
		}
	}
	n.Line = p.line
	n.Column = 1 + len([]rune(string(p.data[p.start:at])))
}

// next returns the offset at which the next token begins.
func (p *jsonTree) next() int {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *jsonTree) value(depth int) (*yaml.Node, error) {
	at := p.next()
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	if p.nodes++; p.nodes > maxNodes || depth > 2*maxDepth {
		return nil, &jsonError{int64(at), "the text has too many values or is nested too deeply"}
	}
	n := &yaml.Node{}
	p.place(n, at)
	switch tok := tok.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if tok == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for p.dec.More() {
			if n.Kind == yaml.MappingNode {
				key, err := p.value(depth + 1)
				if err != nil {
					return nil, err
				}
				n.Content = append(n.Content, key)
			}
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, v)
		}
		if _, err := p.dec.Token(); err != nil {
			return nil, err
		}
	case string:
		n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, "!!str", tok, yaml.DoubleQuotedStyle
	case json.Number:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!float", tok.String()
		if !strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!int"
		}
	case bool:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!bool", strconv.FormatBool(tok)
	case nil:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!null", "null"
	}
	return n, nil
}
