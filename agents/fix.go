package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fix mends what is safe to mend in the frontmatter of a file that was written
// for a product, or with "" or [Native] for us: values that want quotes,
// spellings of keys, letter case in the names of tools, keys that are there
// twice. It returns the file with what was done, each where it was done in the
// file as it came; every other byte stays as it is. The file means the same
// agent afterwards, but for a tool whose name it had not known before. Files
// whose header can't be told apart by lines come back as they are, and so does
// everything that is not Markdown. Fixing a file twice changes nothing more.
func Fix(file string, data []byte, product string) (fixed []byte, applied []Diagnostic) {
	p := findProduct(product)
	if p.isTOML() || isJSONFile(file) || len(data) > MaxFileSize || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return data, nil
	}
	// The steps come in this order because a later one may see more once an
	// earlier one is done.
	for _, step := range []func(*fixer) []edit{(*fixer).quotes, (*fixer).spellings, (*fixer).repeats, (*fixer).toolCase} {
		for range maxFixes {
			f := newFixer(file, data, product)
			if f == nil {
				return data, applied
			}
			next, done := f.first(step(f))
			if done == nil {
				break
			}
			data, applied = next, append(applied, *done)
		}
	}
	sortDiagnostics(applied)
	return data, applied
}

// maxFixes bounds how often each step is taken in one file.
const maxFixes = 200

// fixer holds one state of a file.
type fixer struct {
	file, product string
	data          []byte
	dialect       *dialect
	lines         [][]byte // of the whole file, with their ends
	doc           document
	entries       []entryLines
	before        *Definition
}

// newFixer takes a file apart, nil where its header can't be edited by lines.
func newFixer(file string, data []byte, product string) *fixer {
	f := &fixer{file: file, product: product, data: data, dialect: dialectOf(product)}
	src, diags := decode(file, data)
	f.lines = bytes.SplitAfter(data, []byte("\n"))
	if len(diags) > 0 || len(f.lines) != len(src.lines) {
		return nil // a lone carriage return, or UTF-16
	}
	doc, ok := splitDocument(src, f.dialect)
	if !ok || doc.odd != "" || doc.indent > 0 {
		return nil
	}
	before := len(doc.head)
	if doc.endAtText(); len(doc.head) != before {
		return nil
	}
	if f.entries, ok = f.dialect.cutEntries(doc.head, false); !ok {
		return nil
	}
	f.doc = doc
	f.before, _ = f.parse(data)
	if f.before == nil {
		return nil
	}
	return f
}

func (f *fixer) parse(data []byte) (*Definition, []Diagnostic) {
	return Parse(f.file, data, ParseOptions{Origin: f.product, StemName: true})
}

// edit is one change: lines of the header, counted from its first, that are
// replaced.
type edit struct {
	from, to int // the lines from from up to but without to
	with     []string
	at       Pos
	code     string
	message  string
	tools    bool // the meaning of the tools may change
}

// first applies the first edit that leaves the meaning of the file as it is.
func (f *fixer) first(edits []edit) ([]byte, *Diagnostic) {
	for _, e := range edits {
		start := f.doc.first - 1
		var b bytes.Buffer
		b.Write(bytes.Join(f.lines[:start+e.from], nil))
		end := "\n"
		if bytes.HasSuffix(f.lines[start+e.from], []byte("\r\n")) {
			end = "\r\n"
		}
		for _, line := range e.with {
			b.WriteString(line + end)
		}
		b.Write(bytes.Join(f.lines[start+e.to:], nil))
		if f.same(b.Bytes(), e.tools) {
			return b.Bytes(), &Diagnostic{Pos: e.at, Severity: Info, Code: e.code, Message: e.message}
		}
	}
	return nil, nil
}

// same reports whether a file means what it did, and reads no worse.
func (f *fixer) same(data []byte, tools bool) bool {
	after, _ := f.parse(data)
	if after == nil || after.Broken && !f.before.Broken {
		return false
	}
	meaning := func(d *Definition) string {
		c := d.Clone()
		for i := range c.Permissions {
			c.Permissions[i].Line = 0
		}
		if tools {
			c.Tools, c.DisallowedTools, c.Permissions = ToolRule{}, nil, nil
		}
		c.Disabled = c.Disabled && !c.Broken // a broken one may become whole
		text, err := json.Marshal(c)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return meaning(after) == meaning(f.before)
}

func (f *fixer) at(e *entryLines, column int) Pos {
	return Pos{File: f.file, Line: f.doc.first + e.index, Column: column}
}

// quotes puts quotes around values of one line that YAML can't read without.
func (f *fixer) quotes() (edits []edit) {
	for i := range f.entries {
		e := &f.entries[i]
		field, _ := f.dialect.lookup(e.key.name)
		value := e.key.value
		if field == nil || field.restricts || value == "" || e.asYAML(e.more) != nil {
			continue
		}
		if slices.ContainsFunc(e.more, func(l string) bool { return strings.TrimSpace(l) != "" && !strings.HasPrefix(l, "#") }) {
			continue // it goes on below
		}
		text := e.text()
		quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
		if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			quoted = string(quoteJSON(text))
		}
		line := e.line[:e.key.col-1] + quoted
		edits = append(edits, edit{
			from: e.index, to: e.index + 1, with: []string{line},
			at: f.at(e, e.key.col), code: CodeYAMLLenient, message: fmt.Sprintf("put the value of %s in quotes", e.key.name),
		})
	}
	return edits
}

// spellings writes keys as they are documented.
func (f *fixer) spellings() (edits []edit) {
	for i := range f.entries {
		e := &f.entries[i]
		field, exact := f.dialect.lookup(e.key.name)
		if field == nil || exact || field.ignored != "" || f.has(field.spelling()) {
			continue
		}
		colon := len(strings.TrimRight(e.line[:strings.Index(e.line, ":")], " \t"))
		edits = append(edits, edit{
			from: e.index, to: e.index + 1, with: []string{field.spelling() + e.line[colon:]},
			at: f.at(e, 1), code: CodeKeySpelling, message: fmt.Sprintf("the key %q is written %s", e.key.name, field.spelling()),
		})
	}
	return edits
}

func (f *fixer) has(key string) bool {
	return slices.ContainsFunc(f.entries, func(e entryLines) bool { return e.key.name == key })
}

// repeats removes keys that are there before, and so have no effect.
func (f *fixer) repeats() (edits []edit) {
	seen := map[string]int{}
	for i := range f.entries {
		e := &f.entries[i]
		first, again := seen[e.key.name]
		if !again {
			seen[e.key.name] = f.doc.first + e.index
			continue
		}
		// Comments and blank lines below it belong to what comes next.
		n := len(e.more)
		for n > 0 {
			if t := strings.TrimSpace(e.more[n-1]); t != "" && t[0] != '#' {
				break
			}
			n--
		}
		edits = append(edits, edit{
			from: e.index, to: e.index + 1 + n,
			at: f.at(e, 1), code: CodeDuplicateField, message: fmt.Sprintf("%s is set in line %d, so it is removed here", e.key.name, first),
		})
	}
	return edits
}

// toolCase writes the names of tools in the letter case that they have.
func (f *fixer) toolCase() (edits []edit) {
	p := f.dialect.product
	known := slices.Clone(builtinTools)
	if p != nil {
		known = nil // ours are understood here, and not there
		for _, t := range p.Tools {
			known = append(append(known, t.Name), t.Also...)
		}
	}
	right := func(name string) string {
		if p != nil && p.lookupTool(name) != nil || knownTool(name) {
			return ""
		}
		for _, same := range []func(k string) bool{
			func(k string) bool { return strings.EqualFold(k, name) },
			func(k string) bool {
				if p == nil { // "TaskStop" is another product's tool, "read-file" is not
					return strings.EqualFold(k, strings.ReplaceAll(name, "-", "_"))
				}
				return foldName(k) == foldName(name)
			},
		} {
			if i := slices.IndexFunc(known, same); i >= 0 {
				if slices.ContainsFunc(known[i+1:], same) {
					return "" // it could be either
				}
				return known[i]
			}
		}
		return ""
	}
	for i := range f.entries {
		e := &f.entries[i]
		field, _ := f.dialect.lookup(e.key.name)
		if field == nil || field.name != "tools" && field.name != "disallowed_tools" {
			continue
		}
		for k := -1; k < len(e.more); k++ {
			line, from := e.line, e.key.col-1
			if k >= 0 {
				line, from = e.more[k], 0
			}
			for _, w := range nameSpans(line, from) {
				name := line[w[0]:w[1]]
				if s := right(name); s != "" {
					edits = append(edits, edit{
						from: e.index + k + 1, to: e.index + k + 2, with: []string{line[:w[0]] + s + line[w[1]:]}, tools: true,
						at:   Pos{File: f.file, Line: f.doc.first + e.index + k + 1, Column: utf8.RuneCountInString(line[:w[0]]) + 1},
						code: CodeToolUnknown, message: fmt.Sprintf("the tool %q is written %s", name, s),
					})
				}
			}
		}
	}
	return edits
}

// nameSpans returns where names stand in a line, outside of brackets and
// comments.
func nameSpans(line string, from int) (spans [][2]int) {
	depth, start := 0, -1
	for i := from; i <= len(line); i++ {
		c := byte(' ')
		if i < len(line) {
			c = line[i]
		}
		word := depth == 0 && (c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			start >= 0 && (c == '-' || c == '/' || c == '.' || c == '*' || c == ':'))
		switch {
		case word && start < 0:
			start = i
		case !word && start >= 0:
			spans = append(spans, [2]int{start, i})
			start = -1
		}
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case '#':
			if i == 0 || line[i-1] == ' ' {
				return spans
			}
		}
	}
	return spans
}
