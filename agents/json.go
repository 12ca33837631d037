package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxJSONSize is the size in bytes above which JSON is refused. One file holds
// many definitions.
const MaxJSONSize = 4 << 20

const jsonShape = `{"agents": {"<name>": {"description": …, "system_prompt": …}}}`

// ParseJSON reads definitions from JSON: {"agents": {"<name>": {…}}} with the
// fields of a Markdown file and system_prompt for its body. Other forms that
// are around are read with a warning: a list of agents, and one agent alone.
// With the origin of a product that has such a file, it is that file. Like
// [Parse] it does no I/O but through [ParseOptions.ReadFile]; the definitions
// come in the order of the text.
func ParseJSON(file string, data []byte, opt ParseOptions) ([]*Definition, []Diagnostic) {
	fail := func(p Pos, code, hint, format string, args ...any) ([]*Definition, []Diagnostic) {
		return nil, []Diagnostic{{Pos: p, Severity: Error, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}}
	}
	if len(data) > MaxJSONSize {
		return fail(Pos{File: file}, CodeTooLarge, "split it", "the file has %d bytes, more than the %d that are read", len(data), MaxJSONSize)
	}
	src, diags := decode(file, data)
	text := []byte(strings.Join(src.lines, "\n"))
	dl := dialectOf(opt.Origin)
	if dl.product != nil { // whose JSON has comments
		text = stripComments(text)
	}
	root, err := parseJSONTree(text)
	if err != nil {
		p := Pos{File: file, Line: 1, Column: 1}
		var e *jsonError
		if errors.As(err, &e) {
			p.Line, p.Column = position(text, int(e.offset))
		}
		return fail(p, CodeJSONSyntax, "", "not valid JSON: %v", err)
	}
	found, more := findEntries(file, root, dl)
	diags = append(diags, more...)
	var defs []*Definition
	for _, e := range found {
		d, more := parseEntry(file, e, &opt)
		if d != nil {
			defs = append(defs, d)
		}
		diags = append(diags, more...)
	}
	sortDiagnostics(diags)
	return defs, diags
}

// parseEntry reads one definition. It is nil for an entry that only sets up an
// agent which is part of another product.
func parseEntry(file string, e entryNode, opt *ParseOptions) (*Definition, []Diagnostic) {
	r := newReader(file, opt)
	if r.dialect == native {
		r.dialect = nativeJSON
	}
	name := ""
	r.d.Pos = r.pos(e.value)
	if e.key != nil {
		r.d.Pos = r.pos(e.key)
		name = trim(e.key.Value)
	}
	if e.value.Kind != yaml.MappingNode {
		r.d.Name = name
		r.report(r.pos(e.value), Error, CodeJSONShape, "write "+jsonShape, "the agent %q is %s, not a map of fields", shorten(name, 40), kindOf(e.value))
		return r.done()
	}
	r.field = r.dialect.exact["tools"]
	if e.common != nil {
		r.common(e.common)
	}
	r.fields(e.value)
	if p := r.dialect.product; p != nil {
		r.includeFiles()
		if r.prompt == "" && slices.Contains(p.passedOver, name) {
			return nil, []Diagnostic{{
				Pos: r.d.Pos, Severity: Info, Code: CodeProductAgent,
				Message: fmt.Sprintf("passed over: %q sets up an agent that is part of %s", shorten(name, 40), p.Title),
			}}
		}
	}
	if name != "" {
		if r.d.Name != "" && r.d.Name != name {
			r.report(r.d.at("name"), Warn, CodeNameMismatch, "remove the field, or rename the key", "the agent's key is %q and its name is %q; the key counts", shorten(name, 40), shorten(r.d.Name, 40))
		}
		r.d.Name = name
		r.d.Lines["name"] = e.key.Line
	}
	r.require("add " + r.dialect.exact["system_prompt"].spelling())
	return r.done()
}

// UnmarshalJSON reads one definition in the form that [Definition.MarshalJSON]
// writes, with the leniency and the severity of [ParseJSON]: an error among its
// diagnostics is an error here; warnings are dropped.
func (d *Definition) UnmarshalJSON(data []byte) error {
	root, err := parseJSONTree(data)
	if err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("definition: %s is not a map of fields", kindOf(root))
	}
	r := newReader("", &ParseOptions{})
	r.d.Pos = Pos{}
	r.fields(root)
	r.require("add system_prompt")
	got, diags := r.done()
	for _, diag := range diags {
		if diag.Severity == Error {
			return fmt.Errorf("definition %q: line %d: %s", got.Name, diag.Line, diag.Message)
		}
	}
	*d = *got
	return nil
}

var _ json.Unmarshaler = (*Definition)(nil)
