package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// setMember returns the document's text with the value at the path of names
// replaced or added. Everything else stays as its owner wrote it: order,
// indentation, unknown names. Objects that the path needs are made.
func setMember(d *document, path []string, value []byte) ([]byte, error) {
	style := styleOf(d)
	object, depth := d.root, 0
	for {
		name := path[depth]
		existing := object.get(name)
		last := depth == len(path)-1
		if existing != nil && (last || existing.kind == nullNode) {
			return splice(d.data, existing.start, existing.end, style.nest(path[depth+1:], value, depth+1)), nil
		}
		if existing == nil {
			return style.insert(d, object, name, style.nest(path[depth+1:], value, depth+1), depth), nil
		}
		if existing.kind != objectNode {
			line, column := d.position(existing.start)
			return nil, &Error{Path: d.path, Line: line, Column: column, Key: strings.Join(path[:depth+1], "."),
				Found: existing.describe(), Takes: "an object"}
		}
		object = existing
		depth++
	}
}

// removeMember returns the document's text without the member at the path.
func removeMember(d *document, path []string) []byte {
	object := d.root
	for _, name := range path[:len(path)-1] {
		if object = object.get(name); object == nil || object.kind != objectNode {
			return d.data
		}
	}
	i := slices.IndexFunc(object.members, func(m member) bool { return m.key == path[len(path)-1] })
	switch {
	case i < 0:
		return d.data
	case len(object.members) == 1:
		return splice(d.data, object.start, object.end, []byte("{}"))
	case i == 0:
		return splice(d.data, object.members[0].start, object.members[1].start, nil)
	}
	return splice(d.data, object.members[i-1].value.end, object.members[i].value.end, nil)
}

func splice(data []byte, start, end int, with []byte) []byte {
	return slices.Concat(data[:start], with, data[end:])
}

// A style is how a file is laid out.
type style struct {
	unit    string // one step of indentation
	newline string
}

func styleOf(d *document) style {
	s := style{unit: "  ", newline: "\n"}
	if bytes.Contains(d.data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if len(d.root.members) > 0 {
		if blank, ok := indentation(d, d.root.members[0].start); ok && blank != "" {
			s.unit = blank
		}
	}
	return s
}

// indentation returns the blanks before an offset, if only blanks stand before
// it on its line.
func indentation(d *document, offset int) (string, bool) {
	start := bytes.LastIndexByte(d.data[:offset], '\n') + 1
	blank := string(d.data[start:offset])
	return blank, start > 0 && strings.Trim(blank, " \t") == ""
}

// insert adds a member behind the object's last.
func (s style) insert(d *document, object *node, name string, value []byte, depth int) []byte {
	entry := string(encode(name)) + ": " + string(value)
	if len(object.members) == 0 {
		inner := s.newline + strings.Repeat(s.unit, depth+1) + entry + s.newline + strings.Repeat(s.unit, depth)
		return splice(d.data, object.start, object.end, []byte("{"+inner+"}"))
	}
	last := object.members[len(object.members)-1]
	between := ", "
	if blank, alone := indentation(d, last.start); alone {
		between = "," + s.newline + blank
	}
	return splice(d.data, last.value.end, last.value.end, []byte(between+entry))
}

// nest lays a value out, inside of an object for each of the names.
func (s style) nest(names []string, value []byte, depth int) []byte {
	for _, name := range slices.Backward(names) {
		value = fmt.Appendf(nil, "{%s: %s}", encode(name), value)
	}
	d, err := parseValue(string(value))
	if err != nil { // the value was made by encode, so this can't be
		return value
	}
	var b strings.Builder
	s.print(&b, d.root, d, depth)
	return []byte(b.String())
}

// print writes a value: objects over several lines, lists on one.
func (s style) print(b *strings.Builder, n *node, d *document, depth int) {
	switch {
	case n.kind == objectNode && len(n.members) > 0:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(s.newline + strings.Repeat(s.unit, depth+1))
			b.Write(encode(m.key))
			b.WriteString(": ")
			s.print(b, m.value, d, depth+1)
		}
		b.WriteString(s.newline + strings.Repeat(s.unit, depth) + "}")
	case n.kind == arrayNode:
		b.WriteByte('[')
		for i, e := range n.elems {
			if i > 0 {
				b.WriteString(", ")
			}
			s.print(b, e, d, depth)
		}
		b.WriteByte(']')
	default:
		b.Write(d.raw(n))
	}
}

// encode is JSON for people to read: "<" stays "<".
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
