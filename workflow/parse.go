package workflow

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/internal/spelling"
)

// maxFile bounds a workflow file, in bytes.
const maxFile = 1 << 20

// namePattern is what names of nodes, state keys and loop variables look like:
// expressions must be able to say them.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// A parser reads one file. It goes on after an error, so that everything wrong
// is said at once.
type parser struct {
	d     *Definition
	diags []agents.Diagnostic
}

// Parse reads a workflow file. With an error among the diagnostics there is a
// definition all the same, for messages, that must not be run.
func Parse(file string, data []byte) (*Definition, []agents.Diagnostic) {
	p := &parser{d: &Definition{File: file, places: map[string]place{}}}
	if len(data) > maxFile {
		p.errorf("", CodeSyntax, "", "the file is larger than %d MiB", maxFile>>20)
		return p.d, p.diags
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		p.syntax(err)
		return p.d, p.diags
	}
	if len(doc.Content) == 0 {
		p.errorf("", CodeValue, "a workflow has at least name, nodes and edges", "the file is empty")
		return p.d, p.diags
	}
	p.object(doc.Content[0], "", "workflow", map[string]func(*yaml.Node, string){
		"name":        func(n *yaml.Node, at string) { p.text(n, at, &p.d.Name) },
		"description": func(n *yaml.Node, at string) { p.text(n, at, &p.d.Description) },
		"input":       func(n *yaml.Node, at string) { p.d.Flow.Input = p.json(n, at) },
		"state":       p.state,
		"nodes":       p.nodes,
		"edges":       p.edges,
		"result":      func(n *yaml.Node, at string) { p.text(n, at, &p.d.Flow.Result) },
		"limits":      p.limits,
	})
	return p.d, p.diags
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

func (p *parser) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := agents.Pos{File: p.d.File, Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		message = m[2]
	}
	p.diags = append(p.diags, agents.Diagnostic{Pos: pos, Severity: agents.Error, Code: CodeSyntax,
		Message: "it is not YAML: " + message, Hint: "quote a text that holds \": \" or begins with one of { [ & * ! %"})
}

func (p *parser) errorf(path, code, hint, format string, args ...any) {
	p.diags = append(p.diags, agents.Diagnostic{
		Pos: p.d.at(path, 0), Severity: agents.Error, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// mark notes where a value stands.
func (p *parser) mark(n *yaml.Node, path string) {
	at := place{line: n.Line, column: n.Column, inline: n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(n.Value, "\n")}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		at.column++
	}
	p.d.places[path] = at
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// object reads a mapping whose keys are in the table; what says what it is.
func (p *parser) object(n *yaml.Node, path, what string, fields map[string]func(*yaml.Node, string)) {
	p.mark(n, path)
	for _, m := range p.members(n, path, what) {
		at := join(path, m.name)
		read, ok := fields[m.name]
		if !ok {
			known := Fields(what)
			hint := "there are: " + strings.Join(known, ", ")
			if near := spelling.Nearest(m.name, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			p.mark(m.key, at)
			p.errorf(at, CodeField, hint, "%s has no key %q", article(what), m.name)
			continue
		}
		p.mark(m.value, at)
		read(m.value, at)
	}
}

func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

type member struct {
	name       string
	key, value *yaml.Node
}

// members returns what a mapping holds, each name once.
func (p *parser) members(n *yaml.Node, path, what string) []member {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		p.errorf(path, CodeValue, "", "%s is a mapping of keys and values, not %s", what, kindOf(n))
		return nil
	}
	var out []member
	for i := 0; i+1 < len(n.Content); i += 2 {
		m := member{n.Content[i].Value, n.Content[i], resolved(n.Content[i+1])}
		if slices.ContainsFunc(out, func(o member) bool { return o.name == m.name }) {
			at := join(path, m.name)
			p.mark(m.key, at)
			p.errorf(at, CodeField, "", "%q stands there twice", m.name)
			continue
		}
		out = append(out, m)
	}
	return out
}

// resolved follows an alias.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

func (p *parser) text(n *yaml.Node, path string, out *string) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.errorf(path, CodeValue, "", "%s: want a text, found %s", path, kindOf(n))
		return
	}
	*out = n.Value
}

func (p *parser) count(n *yaml.Node, path string, least int64, out *int64) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < least {
		p.errorf(path, CodeValue, "", "%s: want a whole number from %d, found %s", path, least, kindOf(n))
		return
	}
	*out = v
}

func (p *parser) number(n *yaml.Node, path string, least int, out *int) {
	v := int64(*out)
	p.count(n, path, int64(least), &v)
	*out = int(v)
}

// word reads one of several words.
func (p *parser) word(n *yaml.Node, path string, words ...string) string {
	if n.Kind == yaml.ScalarNode && slices.Contains(words, n.Value) {
		return n.Value
	}
	hint := ""
	if near := spelling.Nearest(n.Value, words); near != "" && n.Kind == yaml.ScalarNode {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.errorf(path, CodeValue, hint, "%s: want %s, found %s", path, strings.Join(words, " or "), kindOf(n))
	return ""
}

// json makes JSON of a value.
func (p *parser) json(n *yaml.Node, path string) json.RawMessage {
	var v any
	err := n.Decode(&v)
	var data []byte
	if err == nil {
		data, err = json.Marshal(v)
	}
	if err != nil {
		p.errorf(path, CodeValue, "", "%s: it has no JSON form: %v", path, err)
		return nil
	}
	return data
}

func (p *parser) name(path, what, name string) bool {
	switch {
	case !namePattern.MatchString(name):
		p.errorf(path, CodeValue, "use letters, digits and _, beginning with a letter", "%q can't be the name of %s", name, what)
	case name == "input" || name == "state" || name == "visits" || name == synapse.FlowStart || name == synapse.FlowEnd:
		p.errorf(path, CodeValue, "", "%q can't be the name of %s: it has a meaning of its own", name, what)
	default:
		return true
	}
	return false
}

func (p *parser) state(n *yaml.Node, path string) {
	for _, m := range p.members(n, path, "state") {
		at := join(path, m.name)
		p.mark(m.value, at)
		if !namePattern.MatchString(m.name) {
			p.name(at, "a state key", m.name)
		}
		key := synapse.StateKey{Name: m.name}
		if m.value.Tag == "!!null" {
			p.d.Flow.State = append(p.d.Flow.State, key)
			continue
		}
		schema := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range p.members(m.value, at, "a state key") {
			if f.name == "reduce" {
				p.mark(f.value, at+".reduce")
				key.Reduce = synapse.Reduce(p.word(f.value, at+".reduce", string(synapse.ReduceReplace), string(synapse.ReduceAppend), string(synapse.ReduceMerge)))
				continue
			}
			schema.Content = append(schema.Content, f.key, f.value)
		}
		if len(schema.Content) > 0 {
			key.Schema = p.json(schema, at)
		}
		p.d.Flow.State = append(p.d.Flow.State, key)
	}
}

func (p *parser) nodes(n *yaml.Node, path string) {
	for _, m := range p.members(n, path, "nodes") {
		at := join(path, m.name)
		p.mark(m.key, at)
		p.name(at, "a node", m.name)
		p.node(m, at)
	}
}

func (p *parser) node(m member, path string) {
	node := synapse.FlowNode{Name: m.name}
	kinds := 0
	kind := func(k synapse.NodeKind, out *string) func(*yaml.Node, string) {
		return func(n *yaml.Node, at string) {
			kinds++
			node.Kind = k
			p.text(n, at, out)
		}
	}
	question := ""
	p.object(m.value, path, "node", map[string]func(*yaml.Node, string){
		"agent":    kind(synapse.NodeAgent, &node.Use),
		"workflow": kind(synapse.NodeWorkflow, &node.Use),
		"func":     kind(synapse.NodeFunction, &node.Use),
		"approve":  kind(synapse.NodeApprove, &question),
		"prompt":   func(n *yaml.Node, at string) { p.text(n, at, &node.Prompt) },
		"input":    func(n *yaml.Node, at string) { node.Input = p.json(n, at) },
		"output":   func(n *yaml.Node, at string) { p.text(n, at, &node.Output) },
		"for_each": func(n *yaml.Node, at string) { p.text(n, at, &node.ForEach) },
		"as":       func(n *yaml.Node, at string) { p.text(n, at, &node.As) },
		"max_parallel": func(n *yaml.Node, at string) {
			p.number(n, at, 1, &node.MaxParallel)
		},
		"wait":     func(n *yaml.Node, at string) { node.WaitAll = p.word(n, at, "any", "all") == "all" },
		"on_error": func(n *yaml.Node, at string) { p.onError(n, at, &node) },
	})
	switch {
	case kinds == 0:
		p.errorf(path, CodeValue, "", "node %s: it says neither agent, workflow, approve nor func", m.name)
	case kinds > 1:
		p.errorf(path, CodeValue, "", "node %s: it is one thing: agent, workflow, approve or func", m.name)
	}
	if question != "" {
		if node.Prompt != "" {
			p.errorf(path+".prompt", CodeValue, "", "node %s: the text of approve is its prompt", m.name)
		}
		node.Prompt = question
		if at, ok := p.d.places[path+".approve"]; ok {
			p.d.places[path+".prompt"] = at
		}
	}
	p.d.Flow.Nodes = append(p.d.Flow.Nodes, node)
}

func (p *parser) onError(n *yaml.Node, path string, node *synapse.FlowNode) {
	p.object(n, path, "on_error", map[string]func(*yaml.Node, string){
		"retry": func(n *yaml.Node, at string) { p.number(n, at, 0, &node.Retry) },
		"then": func(n *yaml.Node, at string) {
			word, target, _ := strings.Cut(strings.TrimSpace(n.Value), " ")
			if n.Kind == yaml.ScalarNode && word == string(synapse.ThenGoto) && strings.TrimSpace(target) != "" {
				node.Then, node.Goto = synapse.ThenGoto, strings.TrimSpace(target)
				return
			}
			if n.Value == string(synapse.ThenGoto) {
				p.errorf(at, CodeValue, "write `then: goto NODE`", "%s: goto names no node", at)
				return
			}
			node.Then = synapse.Then(p.word(n, at, string(synapse.ThenFail), string(synapse.ThenContinue), "goto NODE"))
		},
	})
}

func (p *parser) edges(n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		p.errorf(path, CodeValue, "write `edges: [{from: start, to: NODE}, …]`", "edges: want a list, found %s", kindOf(n))
		return
	}
	for i, item := range n.Content {
		at := join(path, strconv.Itoa(i))
		var e synapse.FlowEdge
		p.object(resolved(item), at, "edge", map[string]func(*yaml.Node, string){
			"from": func(n *yaml.Node, at string) { p.text(n, at, &e.From) },
			"to":   func(n *yaml.Node, at string) { p.text(n, at, &e.To) },
			"when": func(n *yaml.Node, at string) {
				p.text(n, at, &e.When)
				if strings.TrimSpace(e.When) == "" {
					p.errorf(at, CodeExpression, "leave when out for an edge that is always taken", "%s: the expression is empty", at)
				}
			},
		})
		p.d.Flow.Edges = append(p.d.Flow.Edges, e)
	}
}

func (p *parser) limits(n *yaml.Node, path string) {
	l := &p.d.Limits
	p.object(n, path, "limits", map[string]func(*yaml.Node, string){
		"steps":      func(n *yaml.Node, at string) { p.number(n, at, 1, &p.d.Flow.Steps) },
		"tokens":     func(n *yaml.Node, at string) { p.count(n, at, 1, &l.Tokens) },
		"tool_calls": func(n *yaml.Node, at string) { p.number(n, at, 1, &l.ToolCalls) },
		"spawns":     func(n *yaml.Node, at string) { p.number(n, at, 1, &l.Spawns) },
		"cost_usd": func(n *yaml.Node, at string) {
			v, err := strconv.ParseFloat(n.Value, 64)
			if err != nil || !(v > 0) || v > 1e9 {
				p.errorf(at, CodeValue, "", "%s: want dollars, more than 0, found %s", at, kindOf(n))
				return
			}
			l.CostUSD = v
		},
		"time": func(n *yaml.Node, at string) {
			v, err := time.ParseDuration(n.Value)
			if err != nil || v <= 0 {
				p.errorf(at, CodeValue, "", "%s: want a duration such as 90s or 30m, found %s", at, kindOf(n))
				return
			}
			l.Time = synapse.Duration(v)
		},
	})
}
