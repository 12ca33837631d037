package agents

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// maxStructure bounds the characters of a header that can begin a node of
// YAML's tree, and with it the memory that reading it takes.
const maxStructure = 40_000

// tagUnreadable marks the value of a field that nobody could read. It is no
// tag a file can write: YAML's own parser never yields a bare one like it.
const tagUnreadable = "unreadable"

// header is a definition's fields as a tree, whatever format they were in.
type header struct {
	root *yaml.Node // a mapping
	// raw returns the text of a line of the file, for values whose text the
	// tree has lost; nil where there is none.
	raw func(line int) string
}

// parseHeader reads frontmatter: as YAML; if that fails, each top-level entry
// on its own; if that fails too, line by line for known fields. It returns nil
// with an error diagnostic when there is no map of fields in it.
func parseHeader(src source, doc *document) (*header, []Diagnostic) {
	doc.endAtText()
	text := strings.Join(doc.head, "\n")
	at := func(line, col int) Pos { return Pos{src.file, line, col} }
	if n := structure(text); n > maxStructure {
		return nil, []Diagnostic{{
			Pos: doc.open, Severity: Error, Code: CodeFrontmatterTree,
			Message: fmt.Sprintf("the frontmatter has %d characters of YAML structure, more than the %d that are read", n, maxStructure),
			Hint:    "put long text into the body",
		}}
	}
	h := &header{raw: func(line int) string {
		if i := line - doc.first; i >= 0 && i < len(doc.head) {
			return doc.head[i]
		}
		return ""
	}}
	root, err := parseYAML(text)
	if err == nil {
		switch {
		case root == nil:
			h.root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
		case root.Kind == yaml.MappingNode:
			h.root = root
		case root.Kind == yaml.SequenceNode:
			return nil, []Diagnostic{{
				Pos: at(doc.first+root.Line-1, root.Column+doc.indent), Severity: Error, Code: CodeNotMapping,
				Message: "the frontmatter is a list, not a map of fields",
				Hint:    "write name: and description: without the leading “- ”",
			}}
		}
		if h.root != nil {
			shift(h.root, doc.first-1, doc.indent)
			return h, swallowed(src, doc, h.root, false)
		}
	}
	// What can't be read as a whole is read entry by entry.
	entries, ok := doc.dialect.cutEntries(doc.head, false)
	if !ok {
		entries, _ = doc.dialect.cutEntries(doc.head, true)
	}
	if len(entries) == 0 {
		d := Diagnostic{
			Pos: at(doc.first, 1+doc.indent), Severity: Error, Code: CodeNotMapping,
			Message: "the frontmatter holds no field",
			Hint:    "write one field a line: name: …, description: …",
		}
		if strings.Contains(text, "：") {
			d.Message = "the frontmatter holds no field: its colons are full-width (“：”)"
			d.Hint = "write “:” and a blank after each field's name"
		}
		return nil, []Diagnostic{d}
	}
	h.root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: entries[0].index + 1, Column: 1}
	var worst *entryLines
	for i := range entries {
		e := &entries[i]
		pairs, clean := e.read(doc.dialect)
		if !clean && worst == nil {
			worst = e
		}
		h.root.Content = append(h.root.Content, pairs...)
	}
	shift(h.root, doc.first-1, doc.indent)
	d := Diagnostic{Severity: Warn, Code: CodeYAMLLenient, Hint: "put the value in quotes"}
	why, line := yamlComplaint(err)
	if worst != nil {
		d.Pos = at(doc.first+worst.index, worst.key.col+doc.indent)
		d.Message = fmt.Sprintf("the value of %s is not valid YAML (%s) and was read as text", worst.key.name, worst.complaint(why))
		if worst.value() == "" {
			d.Message = fmt.Sprintf("the value of %s is not valid YAML (%s) and was read line by line", worst.key.name, worst.complaint(why))
			d.Hint = "indent the value's lines with blanks"
		}
	} else {
		d.Pos = at(doc.first+max(line-1, 0), 1+doc.indent)
		d.Message = fmt.Sprintf("the frontmatter is not valid YAML (%s); it was read field by field", why)
		d.Hint = "see that line and the one above it"
	}
	return h, append([]Diagnostic{d}, swallowed(src, doc, h.root, true)...)
}

// structure counts the characters that can begin a node.
func structure(text string) int {
	n := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '[', '{', '\n', '?', '&', '*':
			n++
		case ':', '-':
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] == '"' || text[i+1] == '\'' {
				n++
			}
		}
	}
	return n
}

// parseYAML returns the root node of a text, nil for an empty one.
func parseYAML(text string) (root *yaml.Node, err error) {
	defer func() { // a bug of the library must not stop the rest from loading
		if v := recover(); v != nil {
			root, err = nil, fmt.Errorf("yaml: %v", v)
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, nil
	}
	root = doc.Content[0]
	if root.Kind == yaml.ScalarNode {
		if root.Tag == "!!null" {
			return nil, nil
		}
		return nil, fmt.Errorf("yaml: line %d: no field, but the text %q", root.Line, shorten(root.Value, 20))
	}
	if root.Kind == yaml.AliasNode {
		return nil, fmt.Errorf("yaml: line %d: an alias stands for all of it", root.Line)
	}
	return root, nil
}

// shift moves a tree down and to the right, to where it stands in its file.
func shift(n *yaml.Node, lines, cols int) {
	n.Line += lines
	n.Column += cols
	for _, c := range n.Content {
		shift(c, lines, cols)
	}
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?`) })

// yamlComplaint takes the library's message apart.
func yamlComplaint(err error) (why string, line int) {
	if err == nil {
		return "its shape is not that of a map", 1
	}
	msg := err.Error()
	m := yamlLine().FindStringSubmatch(msg)
	if m == nil {
		return msg, 1
	}
	if line, _ = strconv.Atoi(m[1]); line == 0 {
		line = 1
	}
	return strings.TrimPrefix(msg, m[0]), line
}

// entryLines is one top-level entry of a header, as lines.
type entryLines struct {
	key   keyLine
	line  string   // the key's line
	more  []string // the lines below it
	index int      // of the key's line
}

// cutEntries cuts a header at its top-level keys. With known, what stands below
// a field that holds prose belongs to it up to the next known field, and lines
// that are nothing are part of the value above them; without it, reports false
// when a line is neither key, comment nor indented.
func (d *dialect) cutEntries(lines []string, known bool) ([]entryLines, bool) {
	var entries []entryLines
	for i, line := range lines {
		if k, ok := cutKey(line); ok {
			isKey := true
			if n := len(entries); known && n > 0 {
				above, _ := d.lookup(entries[n-1].key.name)
				f, _ := d.lookup(k.name)
				isKey = f != nil || above == nil || !above.prose
			}
			if isKey {
				entries = append(entries, entryLines{key: k, line: line, index: i})
				continue
			}
		}
		trimmed := strings.TrimSpace(line)
		inside := line != "" && (line[0] == ' ' || line[0] == '\t' || line == "-" || strings.HasPrefix(line, "- "))
		if !known && trimmed != "" && line[0] != '#' && !inside {
			return nil, false
		}
		if len(entries) > 0 {
			e := &entries[len(entries)-1]
			e.more = append(e.more, line)
		} else if !known && inside && trimmed != "" {
			return nil, false
		}
	}
	return entries, true
}

// read returns the entry as key and value nodes, and whether YAML could read
// it. Lines count from the header's first.
func (e *entryLines) read(dl *dialect) (pairs []*yaml.Node, clean bool) {
	if n := e.asYAML(e.more); n != nil {
		return n, true
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.key.name, Line: e.index + 1, Column: 1}
	f, _ := dl.lookup(e.key.name)
	if tabbed := untab(e.more); tabbed != nil {
		if n := e.asYAML(tabbed); n != nil {
			return n, false
		}
	}
	if f != nil && (f.restricts || f.list) {
		if n := e.asList(); n != nil {
			return []*yaml.Node{key, n}, false
		}
		if n := e.asLine(); n != nil {
			return []*yaml.Node{key, n}, false
		}
		if f.restricts {
			return []*yaml.Node{key, {Kind: yaml.ScalarNode, Tag: tagUnreadable, Value: e.key.value, Line: e.index + 1, Column: e.key.col}}, false
		}
	}
	return []*yaml.Node{key, e.textNode(e.text())}, false
}

func (e *entryLines) asYAML(more []string) []*yaml.Node {
	root, err := parseYAML(e.line + "\n" + strings.Join(more, "\n"))
	if err != nil || root == nil || root.Kind != yaml.MappingNode || len(root.Content) != 2 {
		return nil
	}
	if root.Content[1].Kind == yaml.AliasNode {
		return nil // its anchor is in another entry, or nowhere
	}
	shift(root, e.index, 0)
	return root.Content
}

// untab returns the lines with leading tabs as blanks, nil if there are none.
func untab(lines []string) []string {
	var out []string
	for i, line := range lines {
		rest := strings.TrimLeft(line, " \t")
		lead := line[:len(line)-len(rest)]
		if !strings.Contains(lead, "\t") {
			continue
		}
		if out == nil {
			out = append([]string{}, lines...)
		}
		out[i] = strings.ReplaceAll(lead, "\t", "  ") + rest
	}
	return out
}

func (e *entryLines) textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: e.index + 1, Column: e.key.col}
}

// asList reads lines "- item", however they are indented.
func (e *entryLines) asList() *yaml.Node {
	if e.value() != "" {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: e.index + 2, Column: 1}
	for i, line := range e.more {
		t := strings.TrimSpace(line)
		if t == "" || t[0] == '#' {
			continue
		}
		item, ok := strings.CutPrefix(t, "- ")
		if !ok {
			return nil
		}
		item, ok = plainItem(item)
		if !ok {
			return nil
		}
		list.Content = append(list.Content, &yaml.Node{
			Kind: yaml.ScalarNode, Tag: "!!str", Value: item,
			Line: e.index + 2 + i, Column: strings.Index(line, "-") + 3,
		})
	}
	if len(list.Content) == 0 {
		return nil
	}
	return list
}

// asLine reads a value that is one line of plain text, or of a list whose
// items YAML stumbles over ("[*]").
func (e *entryLines) asLine() *yaml.Node {
	v := e.value()
	for _, line := range e.more {
		t := stripComment(strings.TrimSpace(line))
		switch {
		case t == "":
		case strings.HasSuffix(v, ","): // the list goes on in the next line
			v += " " + t
		default:
			return nil
		}
	}
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		v = strings.TrimSpace(v[1 : len(v)-1])
	}
	if v == "" || strings.ContainsAny(v[:1], "[{|>") {
		return nil
	}
	return e.textNode(v)
}

// plainItem reads the text of one list item: a comment and the quotes around
// it go. It reports false for what is no plain text.
func plainItem(item string) (string, bool) {
	item = stripComment(strings.TrimSpace(item))
	if item == "" {
		return "", false
	}
	if q := item[0]; q == '"' || q == '\'' {
		if len(item) < 2 || item[len(item)-1] != q || strings.Count(item, item[:1]) != 2 {
			return "", false
		}
		item = item[1 : len(item)-1]
	}
	return item, item != "" && !strings.ContainsAny(item, "{}|>\"'")
}

// stripComment cuts " # comment" off a value.
func stripComment(v string) string {
	if i := strings.Index(v, " #"); i >= 0 && strings.Count(v[:i], `"`)%2 == 0 && strings.Count(v[:i], "'")%2 == 0 {
		return strings.TrimSpace(v[:i])
	}
	if strings.HasPrefix(v, "#") {
		return ""
	}
	return v
}

// value is what stands on the key's line, without a comment.
func (e *entryLines) value() string { return stripComment(e.key.value) }

// text reads the value as text: everything below the key belongs to it.
func (e *entryLines) text() string {
	more := e.more
	for len(more) > 0 {
		t := strings.TrimSpace(more[len(more)-1])
		if t != "" && !strings.HasPrefix(more[len(more)-1], "#") {
			break
		}
		more = more[:len(more)-1]
	}
	margin := -1
	for _, line := range more {
		if t := strings.TrimLeft(line, " \t"); t != "" && (margin < 0 || len(line)-len(t) < margin) {
			margin = len(line) - len(t)
		}
	}
	more = dedentAll(more, max(margin, 0))
	first := e.key.value
	sep := "\n"
	switch {
	case first != "" && (first[0] == '|' || first[0] == '>') && len(strings.TrimLeft(first[1:], "+-0123456789")) == 0:
		if first[0] == '>' {
			sep = " "
		}
		first = ""
	}
	lines := more
	if first != "" {
		lines = append([]string{first}, more...)
	}
	text := strings.TrimSpace(strings.Join(lines, sep))
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		text = text[1 : n-1]
	}
	return text
}

// complaint says what is wrong with the entry, in the words of the fault that
// is found most often; other faults in those of the library.
func (e *entryLines) complaint(why string) string {
	v := e.key.value
	switch {
	case v == "" && len(e.more) > 0 && untab(e.more) != nil:
		return "a tab is no indentation"
	case v == "":
		return why
	case strings.ContainsAny(v[:1], "@`%*&!"):
		return fmt.Sprintf("%q can't begin a value that has no quotes", v[:1])
	case strings.ContainsAny(v[:1], "[{"):
		return fmt.Sprintf("%q begins a list or a map that does not end as one", v[:1])
	case strings.ContainsAny(v[:1], "'\""):
		return "text follows the closing quote, or there is none"
	case strings.Contains(v, ": ") || strings.HasSuffix(v, ":"):
		return "a value without quotes holds a colon and a blank"
	}
	for _, line := range e.more {
		if strings.Contains(line, ": ") {
			return "a value without quotes holds a colon and a blank"
		}
		if k := bytes.TrimSpace([]byte(line)); len(k) > 0 && line[0] != ' ' && line[0] != '\t' {
			return "a line of the value is not indented"
		}
	}
	return why
}
