package agents

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// sourceParts is what is kept of the file that a definition was read from.
type sourceParts struct {
	body    string // to the byte; "" where only the definition is known
	newline string // how its lines end
	// comments are those of its header, by the field below them; those under
	// the name "" stand at the end.
	comments map[string][]string
}

// readSource takes the file of a definition apart. What can't be found again
// is taken from the definition.
func readSource(d *Definition, data []byte) *sourceParts {
	parts := &sourceParts{newline: "\n", comments: map[string][]string{}}
	if len(data) == 0 {
		return parts
	}
	dl := dialectOf(d.Origin)
	src, _ := decode(d.Pos.File, data)
	if dl.product != nil && dl.product.Format == formatTOML {
		parts.fromTOML(d, dl, strings.Join(src.lines, "\n"))
		return parts
	}
	doc, ok := splitDocument(src, dl)
	if !ok {
		return parts
	}
	raw := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	h, _ := parseHeader(src, &doc)
	if h != nil {
		parts.fromYAML(h.root, dl)
	}
	if !utf8.Valid(raw) || doc.odd != "" || bytes.IndexByte(raw, 0) >= 0 {
		return parts
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	if len(lines) != len(src.lines) || doc.bodyLine > len(lines) {
		return parts
	}
	// The body begins below the closing rule, blank lines included.
	at := doc.first - 1 + len(doc.head) + 1
	body := string(bytes.Join(lines[min(at, len(lines)):], nil))
	if strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n")) != strings.TrimSpace(d.Prompt) {
		return parts // wrapped in a fence, or changed since
	}
	parts.body = body
	if bytes.Contains(raw, []byte("\r\n")) {
		parts.newline = "\r\n"
	}
	return parts
}

// fromYAML gathers the comments of a header.
func (p *sourceParts) fromYAML(root *yaml.Node, dl *dialect) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		name := key.Value
		if f, _ := dl.lookup(trim(name)); f != nil {
			name = f.name
		}
		var lines []string
		gatherComments(key, &lines)
		gatherComments(value, &lines)
		p.comments[name] = append(p.comments[name], lines...)
		p.add("", key.FootComment)
	}
	p.add("", root.FootComment)
}

func (p *sourceParts) add(name, comment string) {
	for line := range strings.SplitSeq(comment, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			p.comments[name] = append(p.comments[name], line)
		}
	}
}

func gatherComments(n *yaml.Node, lines *[]string) {
	foot := n.FootComment
	if n.Kind == yaml.ScalarNode && n.Column == 1 {
		foot = "" // of a key: it stands below the value
	}
	for _, c := range []string{n.HeadComment, n.LineComment, foot} {
		for line := range strings.SplitSeq(c, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				*lines = append(*lines, line)
			}
		}
	}
	for _, c := range n.Content {
		gatherComments(c, lines)
	}
}

// fromTOML gathers the comments between the keys of a document, and the system
// prompt as it is there.
func (p *sourceParts) fromTOML(d *Definition, dl *dialect, text string) {
	root, err := parseTOMLTree(text)
	if err != nil {
		return
	}
	at := map[int]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		f, _ := dl.lookup(root.Content[i].Value)
		name := root.Content[i].Value
		if f != nil {
			name = f.name
			if f.name == "system_prompt" && trim(root.Content[i+1].Value) == d.Prompt {
				p.body = root.Content[i+1].Value
			}
		}
		at[root.Content[i].Line] = name
	}
	var waiting []string
	line := 1
	for i := 0; i < len(text); {
		next := lineEnd(text, i)
		t := strings.TrimSpace(text[i:next])
		switch {
		case strings.HasPrefix(t, "#"):
			waiting = append(waiting, t)
		case t == "" || t[0] == '[':
		default:
			_, n := tomlKey(strings.TrimLeft(text[i:], " \t"))
			next = valueEnd(text, i+max(n, 1))
		}
		if name, ok := at[line]; ok {
			p.comments[name] = append(p.comments[name], waiting...)
			waiting = nil
		}
		line += strings.Count(text[i:next], "\n")
		i = next
	}
	p.comments[""] = append(p.comments[""], waiting...)
}

// write puts the file together.
func (c *converter) write() ([]byte, error) {
	var b strings.Builder
	used := map[string]bool{}
	comment := func(name string) {
		if !used[name] {
			used[name] = true
			for _, line := range c.src.comments[name] {
				b.WriteString(line + "\n")
			}
		}
	}
	body := c.src.body
	if body == "" {
		body = c.d.Prompt + "\n"
	}
	if c.toml() {
		for _, k := range c.out {
			comment(k.field)
			fmt.Fprintf(&b, "%s = %s\n", k.key, k.text)
		}
		comment("system_prompt")
		fmt.Fprintf(&b, "%s = %s\n", c.key("system_prompt"), tomlText(strings.TrimLeft(body, "\r\n")))
		c.rest(&b, used)
		return []byte(b.String()), nil
	}
	b.WriteString("---\n")
	for _, k := range c.out {
		comment(k.field)
		fmt.Fprintf(&b, "%s: %s\n", k.key, k.text)
	}
	comment("system_prompt")
	c.rest(&b, used)
	b.WriteString("---\n")
	head := b.String()
	if c.src.newline != "\n" {
		head = strings.ReplaceAll(head, "\n", c.src.newline)
	}
	if c.src.body == "" || !strings.HasPrefix(body, "\n") && !strings.HasPrefix(body, "\r\n") && dialectOf(c.d.Origin).product.isTOML() {
		body = "\n" + body
	}
	if strings.TrimSpace(body) == "" {
		return nil, fmt.Errorf("convert %q: it has no system prompt", c.d.Name)
	}
	return []byte(head + body), nil
}

func (p *product) isTOML() bool { return p != nil && p.Format == formatTOML }

// rest writes the comments of fields that are not in the file.
func (c *converter) rest(b *strings.Builder, used map[string]bool) {
	var names []string
	for name := range c.src.comments {
		if !used[name] && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append(names, "") {
		for _, line := range c.src.comments[name] {
			b.WriteString(line + "\n")
		}
	}
}

// tomlString writes text as a string of one line.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	tomlEscape(&b, s, false)
	b.WriteByte('"')
	return b.String()
}

// tomlText writes text as a string of several lines: as it is, where that can
// be.
func tomlText(s string) string {
	plain := !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'")
	for _, c := range s {
		plain = plain && (c >= ' ' && c != 0x7f || c == '\n' || c == '\t')
	}
	if plain {
		return "'''\n" + s + "'''"
	}
	var b strings.Builder
	b.WriteString("\"\"\"\n")
	tomlEscape(&b, s, true)
	b.WriteString("\"\"\"")
	return b.String()
}

func tomlEscape(b *strings.Builder, s string, lines bool) {
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n' && lines:
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
}
