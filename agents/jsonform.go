package agents

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// entryNode is one definition in a JSON document.
type entryNode struct {
	key    *yaml.Node // its name, nil where the definition holds that itself
	value  *yaml.Node
	common *yaml.Node // what the document sets for all of its agents, or nil
}

// findEntries finds the definitions in a document. What has the form of
// something else is an error.
func findEntries(file string, root *yaml.Node, dl *dialect) (entries []entryNode, diags []Diagnostic) {
	at := func(n *yaml.Node) Pos { return Pos{file, n.Line, n.Column} }
	fail := func(n *yaml.Node, format string, args ...any) ([]entryNode, []Diagnostic) {
		return nil, append(diags, Diagnostic{
			Pos: at(n), Severity: Error, Code: CodeJSONShape, Hint: "write " + jsonShape, Message: fmt.Sprintf(format, args...),
		})
	}
	other := func(n *yaml.Node, what string) {
		diags = append(diags, Diagnostic{
			Pos: at(n), Severity: Warn, Code: CodeJSONForm, Hint: "write " + jsonShape, Message: "the document is " + what + ", and is read as such",
		})
	}
	list := func(n *yaml.Node) bool {
		for _, c := range n.Content {
			if c.Kind != yaml.MappingNode {
				return false
			}
			entries = append(entries, entryNode{value: c})
		}
		return len(n.Content) > 0
	}
	if p := dl.product; p != nil && p.config != "" {
		return configEntries(file, root, p)
	}
	switch root.Kind {
	case yaml.SequenceNode:
		if !list(root) {
			return fail(root, "the JSON is a list, not a map with the key “agents”")
		}
		other(root, "a list of agents")
		return entries, diags
	case yaml.ScalarNode:
		return fail(root, "the JSON is %s, not a map with the key “agents”", kindOf(root))
	}
	var agents *yaml.Node
	var rest []*yaml.Node
	for i := 0; i < len(root.Content); i += 2 {
		switch key := root.Content[i]; {
		case key.Value != "agents":
			if !strings.HasPrefix(key.Value, "$") { // "$schema" is for editors
				rest = append(rest, key)
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
		if !isDefinition(root) {
			return fail(root, "the key “agents” is missing")
		}
		other(root, "one agent alone")
		return []entryNode{{value: root}}, diags
	}
	for _, key := range rest {
		diags = append(diags, Diagnostic{
			Pos: at(key), Severity: Warn, Code: CodeUnknownField,
			Message: fmt.Sprintf("%q beside “agents” has no effect", shorten(key.Value, 40)),
		})
	}
	switch agents.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(agents.Content); i += 2 {
			entries = append(entries, entryNode{key: agents.Content[i], value: agents.Content[i+1]})
		}
	case yaml.SequenceNode:
		if !list(agents) {
			return fail(agents, "“agents” is a list of something other than agents, not a map of names")
		}
		other(agents, "a list of agents")
	default:
		return fail(agents, "“agents” is %s, not a map of names", kindOf(agents))
	}
	return entries, diags
}

// isDefinition reports whether a map looks like one agent: it has a name and a
// system prompt.
func isDefinition(n *yaml.Node) bool {
	name, prompt := false, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		f, _ := nativeJSON.lookup(n.Content[i].Value)
		text := n.Content[i+1].Kind == yaml.ScalarNode
		name = name || f != nil && f.name == "name" && text
		prompt = prompt || f != nil && f.name == "system_prompt" && text
	}
	return name && prompt
}

// configEntries finds the definitions in a product's own settings.
func configEntries(file string, root *yaml.Node, p *product) (entries []entryNode, diags []Diagnostic) {
	if root.Kind != yaml.MappingNode {
		return nil, []Diagnostic{{
			Pos: Pos{file, root.Line, root.Column}, Severity: Error, Code: CodeJSONShape,
			Message: fmt.Sprintf("the JSON is %s, not the settings of %s", kindOf(root), p.Title),
		}}
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case key.Value != p.config || isNull(value):
		case value.Kind != yaml.MappingNode:
			diags = append(diags, Diagnostic{
				Pos: Pos{file, value.Line, value.Column}, Severity: Error, Code: CodeJSONShape,
				Message: fmt.Sprintf("%q is %s, not a map of names", key.Value, kindOf(value)),
			})
		default:
			for j := 0; j < len(value.Content); j += 2 {
				entries = append(entries, entryNode{value.Content[j], value.Content[j+1], root})
			}
		}
	}
	return entries, diags
}

// common reads what a product's settings say of the tools of all agents. It
// comes before what an agent says of its own.
func (r *reader) common(root *yaml.Node) {
	for _, name := range []string{"tools", "permissions"} {
		f := r.dialect.exact[name]
		for _, p := range r.pairs(root) {
			if v := r.follow(p.value); p.key.Value == f.spelling() && v.Kind != 0 && !isNull(v) {
				r.field = f
				said := len(r.diags)
				r.failed(f.read(r, v), v)
				// What is odd there is told once, not for each agent.
				if !HasErrors(r.diags[said:]) {
					r.diags = r.diags[:said]
				}
			}
		}
	}
	r.general, r.ordered = r.ordered, nil
}

var fileRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{file:([^{}\n]+)\}`) })

// includeFiles puts files in place of what stands for them in the system
// prompt: {file:./prompts/x.md}.
func (r *reader) includeFiles() {
	at := r.d.at("system_prompt")
	r.prompt = trim(fileRef().ReplaceAllStringFunc(r.prompt, func(ref string) string {
		name := trim(fileRef().FindStringSubmatch(ref)[1])
		text, err := r.include(name)
		if err != nil {
			r.report(at, Error, CodeUnreadable, "put the prompt into the file, or beside it", "the system prompt is in %q, which can't be read: %v", shorten(name, 60), err)
			return ref
		}
		return text
	}))
}

// include reads the text of a file beside the one that is read.
func (r *reader) include(name string) (string, error) {
	if r.opt.ReadFile == nil {
		return "", fmt.Errorf("no files are read here")
	}
	clean, ok := relativePath(name)
	if !ok {
		return "", fmt.Errorf("not a path beside this file")
	}
	data, err := r.opt.ReadFile(clean)
	if err != nil {
		return "", err
	}
	src, diags := decode(name, data)
	r.diags = append(r.diags, diags...)
	return strings.TrimSpace(strings.Join(src.lines, "\n")), nil
}

// stripComments puts blanks in place of the comments of JSON with comments, and
// of commas before a closing bracket. Every other byte stays where it is.
func stripComments(text []byte) []byte {
	out := append([]byte{}, text...)
	comma := -1 // of a comma after which nothing but blanks came so far
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"' && out[i] != '\n'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := len(out)
			if k := bytes.Index(out[i+2:], []byte("*/")); k >= 0 {
				end = i + 2 + k + 2
			}
			for ; i < end; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case c > ' ':
			comma = -1
		}
	}
	return out
}
