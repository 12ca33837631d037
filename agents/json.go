package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxJSONSize is the size in bytes above which JSON is refused. One file holds
// many definitions.
const MaxJSONSize = 4 << 20

const jsonShape = `{"agents": {"<name>": {"description": …, "system_prompt": …}}}`

// ParseJSON reads definitions from JSON: {"agents": {"<name>": {…}}} with the
// fields of a Markdown file and system_prompt for its body. Like [Parse] it
// does no I/O; the definitions come in the order of the text.
func ParseJSON(file string, data []byte, opt ParseOptions) ([]*Definition, []Diagnostic) {
	fail := func(p Pos, code, hint, format string, args ...any) ([]*Definition, []Diagnostic) {
		return nil, []Diagnostic{{Pos: p, Severity: Error, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}}
	}
	if len(data) > MaxJSONSize {
		return fail(Pos{File: file}, CodeTooLarge, "split it", "the file has %d bytes, more than the %d that are read", len(data), MaxJSONSize)
	}
	src, diags := decode(file, data)
	text := []byte(strings.Join(src.lines, "\n"))
	root, err := parseJSONTree(text)
	if err != nil {
		p := Pos{File: file, Line: 1, Column: 1}
		var e *jsonError
		if errors.As(err, &e) {
			p.Line, p.Column = position(text, int(e.offset))
		}
		return fail(p, CodeJSONSyntax, "", "not valid JSON: %v", err)
	}
	at := func(n *yaml.Node) Pos { return Pos{file, n.Line, n.Column} }
	if root.Kind != yaml.MappingNode {
		return fail(at(root), CodeJSONShape, "write "+jsonShape, "the JSON is %s, not a map with the key “agents”", kindOf(root))
	}
	var agents *yaml.Node
	for i := 0; i < len(root.Content); i += 2 {
		switch key := root.Content[i]; {
		case key.Value != "agents":
			if !strings.HasPrefix(key.Value, "$") { // "$schema" is for editors
				diags = append(diags, Diagnostic{
					Pos: at(key), Severity: Warn, Code: CodeUnknownField,
					Message: fmt.Sprintf("%q beside “agents” has no effect", shorten(key.Value, 40)),
				})
			}
		case agents != nil:
			diags = append(diags, Diagnostic{
				Pos: at(key), Severity: Error, Code: CodeJSONShape,
				Message: "“agents” is there twice; only the first is read", Hint: "join the two maps",
			})
		default:
			agents = root.Content[i+1]
		}
	}
	if agents == nil {
		return fail(at(root), CodeJSONShape, "write "+jsonShape, "the JSON has no key “agents”")
	}
	if agents.Kind != yaml.MappingNode {
		return fail(at(agents), CodeJSONShape, "write "+jsonShape, "“agents” is %s, not a map of names", kindOf(agents))
	}
	var defs []*Definition
	for i := 0; i < len(agents.Content); i += 2 {
		d, more := parseEntry(file, agents.Content[i], agents.Content[i+1], &opt)
		defs, diags = append(defs, d), append(diags, more...)
	}
	sortDiagnostics(diags)
	return defs, diags
}

// parseEntry reads one entry of the map of agents.
func parseEntry(file string, key, value *yaml.Node, opt *ParseOptions) (*Definition, []Diagnostic) {
	r := newReader(file, opt)
	r.d.Pos = r.pos(key)
	if value.Kind != yaml.MappingNode {
		r.d.Name = trim(key.Value)
		r.report(r.pos(value), Error, CodeJSONShape, "write "+jsonShape, "the agent %q is %s, not a map of fields", shorten(key.Value, 40), kindOf(value))
		return r.done()
	}
	r.fields(value)
	if name := trim(key.Value); name != "" {
		if r.d.Name != "" && r.d.Name != name {
			r.report(r.d.at("name"), Warn, CodeNameMismatch, "remove the field, or rename the key", "the agent's key is %q and its name is %q; the key counts", shorten(name, 40), shorten(r.d.Name, 40))
		}
		r.d.Name = name
		r.d.Lines["name"] = key.Line
	}
	r.require("add system_prompt")
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
