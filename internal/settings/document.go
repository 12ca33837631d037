package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of a settings file. They keep a hostile file from costing more
// than reading it.
const (
	maxFileBytes = 4 << 20
	maxNesting   = 64
)

// nodeKind is the JSON type of a node.
type nodeKind uint8

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

// A node is one JSON value with its place in the text. A decoder that forgets
// places could neither name the line of a bad value nor change one value and
// leave the rest of the file as its owner wrote it.
type node struct {
	kind       nodeKind
	start, end int // byte offsets into the document
	text       string
	yes        bool     // of a bool
	elems      []*node  // of an array
	members    []member // of an object, in order
}

type member struct {
	key   string
	start int // of the key's opening quote
	value *node
}

// get returns the value of an object's member, nil if there is none.
func (n *node) get(key string) *node {
	for i := range n.members {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// describe says what the node is for a message.
func (n *node) describe() string {
	switch n.kind {
	case nullNode:
		return "null"
	case boolNode:
		return fmt.Sprint(n.yes)
	case numberNode:
		if len(n.text) > 40 {
			return n.text[:40] + "…"
		}
		return n.text
	case stringNode:
		return quote(n.text)
	case arrayNode:
		return "an array"
	}
	return "an object"
}

// A document is a JSON text with the tree of its values.
type document struct {
	path string
	data []byte
	root *node
}

// raw returns the text of a node, as it was written.
func (d *document) raw(n *node) json.RawMessage {
	return json.RawMessage(bytes.Clone(d.data[n.start:n.end]))
}

// position turns a byte offset into a line and a column, both from 1; the
// column counts characters.
func (d *document) position(offset int) (line, column int) {
	before := d.data[:min(offset, len(d.data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	if start == 0 {
		start = len(bom(before))
	}
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

// bom returns the byte order mark that data starts with, if it does.
func bom(data []byte) []byte {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return data[:3]
	}
	return nil
}

// parseDocument reads strict JSON whose root is an object. Names that stand
// twice in an object are an error: one of the two values would be lost in
// silence. The error is an [*Error] with line and column.
func parseDocument(path string, data []byte) (*document, *Error) {
	d := &document{path: path, data: data}
	p := parser{document: d, at: len(bom(data))}
	if len(data) > maxFileBytes {
		return nil, &Error{Path: path, Found: fmt.Sprintf("%d bytes", len(data)), Takes: fmt.Sprintf("at most %d", maxFileBytes)}
	}
	root, err := p.text()
	if err != nil {
		return nil, err
	}
	if root.kind != objectNode {
		return nil, p.fail(root.start, root.describe(), "an object: {…}", "")
	}
	d.root = root
	return d, nil
}

// parseValue reads one JSON value of any type, given outside of a file.
func parseValue(text string) (*document, *Error) {
	d := &document{data: []byte(text)}
	p := parser{document: d}
	root, err := p.text()
	if err != nil {
		return nil, err
	}
	d.root = root
	return d, nil
}

type parser struct {
	*document
	at    int
	depth int
}

func (p *parser) fail(offset int, found, takes, hint string) *Error {
	line, column := p.position(offset)
	return &Error{Path: p.path, Line: line, Column: column, Found: found, Takes: takes, Hint: hint}
}

func (p *parser) text() (*node, *Error) {
	if i := invalidUTF8(p.data); i >= 0 {
		hint := ""
		if bytes.HasPrefix(p.data, []byte("\xff\xfe")) || bytes.HasPrefix(p.data, []byte("\xfe\xff")) {
			hint = "this looks like UTF-16: save the file as UTF-8"
		}
		return nil, p.fail(i, fmt.Sprintf("the byte 0x%02x", p.data[i]), "UTF-8 text", hint)
	}
	p.space()
	if p.at == len(p.data) {
		return nil, p.fail(p.at, "nothing", "a JSON value", "an empty settings file is {}")
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.data) {
		return nil, p.unexpected("the end of the file")
	}
	return n, nil
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// unexpected describes what stands at the current place where it should not,
// with a word for each habit that other dialects of JSON teach.
func (p *parser) unexpected(takes string) *Error {
	if p.at >= len(p.data) {
		return p.fail(p.at, "the end of the file", takes, "the file is cut off, or a bracket is not closed")
	}
	rest := p.data[p.at:]
	hint := ""
	switch c := rest[0]; {
	case c == '/' && len(rest) > 1 && (rest[1] == '/' || rest[1] == '*'), c == '#':
		return p.fail(p.at, "a comment", takes, "this is strict JSON, which has no comments: remove it")
	case c == '\'':
		hint = `strings stand in double quotes: "…"`
	case c == '"' && strings.HasPrefix(takes, `"," or`):
		hint = "a comma is missing before it"
	case c == '=':
		hint = `a name and its value are joined by ":"`
	case c == '{' || c == '[' || c == '"':
	case isWord(c):
		word := p.word()
		switch {
		case takes == "a name in double quotes":
			hint = fmt.Sprintf("names stand in double quotes: %q", word)
		case slices.Contains([]string{"true", "false", "null"}, strings.ToLower(word)):
			hint = "write it in lower case: " + strings.ToLower(word)
		case word == "None" || word == "undefined" || word == "NaN":
			hint = "JSON's word for no value is null"
		}
		return p.fail(p.at, quote(word), takes, hint)
	}
	r, _ := utf8.DecodeRune(rest)
	return p.fail(p.at, quote(string(r)), takes, hint)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) word() string {
	end := p.at
	for end < len(p.data) && isWord(p.data[end]) {
		end++
	}
	return string(p.data[p.at:end])
}

func (p *parser) value() (*node, *Error) {
	if p.at >= len(p.data) {
		return nil, p.unexpected("a value")
	}
	switch c := p.data[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		start := p.at
		s, err := p.str()
		if err != nil {
			return nil, err
		}
		return &node{kind: stringNode, start: start, end: p.at, text: s}, nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	n := &node{start: p.at}
	switch p.word() {
	case "true":
		n.kind, n.yes, n.end = boolNode, true, p.at+4
	case "false":
		n.kind, n.end = boolNode, p.at+5
	case "null":
		n.kind, n.end = nullNode, p.at+4
	default:
		return nil, p.unexpected("a value")
	}
	p.at = n.end
	return n, nil
}

func (p *parser) enter() *Error {
	p.depth++
	if p.depth > maxNesting {
		return p.fail(p.at, fmt.Sprintf("more than %d brackets inside each other", maxNesting), "fewer", "")
	}
	return nil
}

func (p *parser) object() (*node, *Error) {
	n := &node{kind: objectNode, start: p.at}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.at++
	seen := map[string]int{} // name → offset
	for first := true; ; first = false {
		p.space()
		if first && p.at < len(p.data) && p.data[p.at] == '}' {
			break
		}
		if p.at >= len(p.data) || p.data[p.at] != '"' {
			return nil, p.unexpected("a name in double quotes")
		}
		m := member{start: p.at}
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if before, twice := seen[key]; twice {
			line, _ := p.position(before)
			return nil, p.fail(m.start, fmt.Sprintf("the name %s a second time", quote(key)), "each name once",
				fmt.Sprintf("it stands on line %d already", line))
		}
		seen[key] = m.start
		m.key = key
		p.space()
		if p.at >= len(p.data) || p.data[p.at] != ':' {
			return nil, p.unexpected(`":" after the name`)
		}
		p.at++
		p.space()
		if m.value, err = p.value(); err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
		more, err := p.more('}')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	p.at++
	n.end = p.at
	return n, nil
}

func (p *parser) array() (*node, *Error) {
	n := &node{kind: arrayNode, start: p.at}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.at++
	p.space()
	if p.at < len(p.data) && p.data[p.at] == ']' {
		p.at++
		n.end = p.at
		return n, nil
	}
	for {
		p.space()
		elem, err := p.value()
		if err != nil {
			return nil, err
		}
		n.elems = append(n.elems, elem)
		more, err := p.more(']')
		if err != nil {
			return nil, err
		}
		if !more {
			p.at++
			n.end = p.at
			return n, nil
		}
	}
}

// more reads what stands after an element: a comma (true), or the closing
// bracket, which it leaves in place (false).
func (p *parser) more(closing byte) (bool, *Error) {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == closing {
		return false, nil
	}
	if p.at >= len(p.data) || p.data[p.at] != ',' {
		return false, p.unexpected(fmt.Sprintf(`"," or "%c"`, closing))
	}
	comma := p.at
	p.at++
	p.space()
	if p.at < len(p.data) && p.data[p.at] == closing {
		return false, p.fail(comma, `a trailing ","`, fmt.Sprintf(`"%c"`, closing), "remove the comma after the last element")
	}
	return true, nil
}

func (p *parser) str() (string, *Error) {
	start := p.at
	for i := start + 1; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.at = i + 1
			var s string
			if err := json.Unmarshal(p.data[start:p.at], &s); err != nil {
				return "", p.fail(start, "a string with a bad escape", `only the escapes \" \\ \/ \b \f \n \r \t \uXXXX`, `a Windows path is written with two backslashes, or with "/"`)
			}
			return s, nil
		case c == '\\':
			i++
		case c == '\n' || c == '\r':
			return "", p.fail(i, "the end of the line inside a string", `a closing "`, `a line break is written \n`)
		case c < ' ':
			return "", p.fail(i, fmt.Sprintf("the control character 0x%02x inside a string", c), "an escape", fmt.Sprintf(`write it \u%04x`, c))
		}
	}
	return "", p.fail(start, "a string that does not end", `a closing "`, "")
}

func (p *parser) number() (*node, *Error) {
	start := p.at
	for p.at < len(p.data) && (isWord(p.data[p.at]) || strings.IndexByte("+-.", p.data[p.at]) >= 0) {
		p.at++
	}
	text := string(p.data[start:p.at])
	if !json.Valid([]byte(text)) {
		p.at = start
		return nil, p.fail(start, quote(text), "a number such as 10 or 0.5", "")
	}
	return &node{kind: numberNode, start: start, end: p.at, text: text}, nil
}
