package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Vars are the values of an expression's variables. It is only read.
type Vars struct {
	Input  any
	State  map[string]any
	Visits map[string]int
	Item   any
	item   string // the name of Item
}

// ResolveName finds a variable.
func (v *Vars) ResolveName(name string) (any, bool) {
	switch name {
	case "input":
		return v.Input, true
	case "state":
		return v.State, true
	case "visits":
		return v.Visits, true
	}
	if name == v.item {
		return v.Item, true
	}
	return nil, false
}

// Parent is nil: there are no outer variables.
func (v *Vars) Parent() cel.Activation { return nil }

// An Expr is an expression that has been checked. It is safe for use by several
// goroutines.
type Expr struct {
	src  string
	ast  *cel.Ast
	prg  cel.Program
	item string
}

// compile reads an expression.
func (s *Scope) compile(src string) (*Expr, error) {
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Message: errEmpty.Error()}
	}
	ast, issues := s.env.Compile(src)
	if issues.Err() != nil {
		return nil, s.problem(src, issues)
	}
	prg, err := s.env.Program(ast, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	return &Expr{src: src, ast: ast, prg: prg, item: s.item}, nil
}

// Condition reads an expression that is true or false.
func (s *Scope) Condition(src string) (*Expr, error) {
	return s.typed(src, types.BoolKind, "true or false")
}

// List reads an expression for a list.
func (s *Scope) List(src string) (*Expr, error) { return s.typed(src, types.ListKind, "a list") }

func (s *Scope) typed(src string, kind types.Kind, want string) (*Expr, error) {
	e, err := s.compile(src)
	if err != nil {
		return nil, err
	}
	if t := e.ast.OutputType(); t.Kind() != kind && t.Kind() != types.DynKind {
		return nil, &Error{Message: fmt.Sprintf("it gives %s, want %s", nameOf(t), want)}
	}
	return e, nil
}

// nameOf names a type in a JSON Schema's words.
func nameOf(t *types.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return "a boolean"
	case types.IntKind, types.UintKind:
		return "an integer"
	case types.DoubleKind:
		return "a number"
	case types.StringKind:
		return "a string"
	case types.ListKind:
		return "a list"
	case types.MapKind, types.StructKind:
		return "an object"
	}
	return t.String()
}

func (e *Expr) eval(v *Vars) (ref.Val, error) {
	w := *v
	w.item = e.item
	out, _, err := e.prg.Eval(&w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.src, err)
	}
	return out, nil
}

// Holds evaluates a condition.
func (e *Expr) Holds(v *Vars) (bool, error) {
	out, err := e.eval(v)
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("%s: it gives %s, want true or false", e.src, out.Type().TypeName())
	}
	return holds, nil
}

// Value evaluates the expression to a JSON value.
func (e *Expr) Value(v *Vars) (any, error) {
	out, err := e.eval(v)
	if err != nil {
		return nil, err
	}
	value, err := plain(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.src, err)
	}
	return value, nil
}

// Elements evaluates the expression to a list of JSON values.
func (e *Expr) Elements(v *Vars) ([]any, error) {
	value, err := e.Value(v)
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: it gives %T, want a list", e.src, value)
	}
	return list, nil
}

// plain makes a JSON value of a CEL one.
func plain(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Double:
		return float64(v), nil
	case types.Int:
		return float64(v), nil
	case types.Uint:
		return float64(v), nil
	case types.Null:
		return nil, nil
	case traits.Mapper:
		if m, ok := v.Value().(map[string]any); ok {
			return m, nil
		}
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.Value().(string)
			if !ok {
				return nil, fmt.Errorf("the key %v is not a string", key.Value())
			}
			member, err := plain(v.Get(key))
			if err != nil {
				return nil, err
			}
			out[name] = member
		}
		return out, nil
	case traits.Lister:
		if l, ok := v.Value().([]any); ok {
			return l, nil
		}
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			element, err := plain(it.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, element)
		}
		return out, nil
	}
	return nil, fmt.Errorf("a value of type %s has no JSON form", v.Type().TypeName())
}

// A Template is a text with expressions in it. It is safe for use by several
// goroutines.
type Template struct {
	texts []string // one more than there are expressions
	exprs []*Expr
}

// Template reads a text in which ${{ }} holds an expression. $${{ stands for
// ${{ itself.
func (s *Scope) Template(src string) (*Template, error) {
	t := &Template{}
	text := ""
	for at := 0; ; {
		i := strings.Index(src[at:], "${{")
		if i < 0 {
			t.texts = append(t.texts, text+src[at:])
			return t, nil
		}
		i += at
		if i > at && src[i-1] == '$' {
			text += src[at:i-1] + "${{"
			at = i + 3
			continue
		}
		end := closing(src[i+3:])
		if end < 0 {
			return nil, &Error{Offset: i, Message: "${{ without the }} that closes it"}
		}
		body := src[i+3 : i+3+end]
		inner := strings.TrimLeft(body, " \t\r\n")
		lead := len(body) - len(inner)
		e, err := s.compile(strings.TrimRight(inner, " \t\r\n"))
		if err != nil {
			if p, ok := err.(*Error); ok {
				p.Offset += i + 3 + lead
			}
			return nil, err
		}
		t.texts, t.exprs = append(t.texts, text+src[at:i]), append(t.exprs, e)
		text = ""
		at = i + 3 + end + 2
	}
}

// closing returns where the }} is that closes an expression: not one inside a
// string, nor one that closes objects.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth > 0 {
				depth--
			} else if i+1 < len(s) && s[i+1] == '}' {
				return i
			}
		}
	}
	return -1
}

// Text renders the template. A string stands as it is, every other value as
// JSON.
func (t *Template) Text(v *Vars) (string, error) {
	if len(t.exprs) == 0 {
		return t.texts[0], nil
	}
	var b strings.Builder
	for i, e := range t.exprs {
		b.WriteString(t.texts[i])
		value, err := e.Value(v)
		if err != nil {
			return "", err
		}
		text, err := Text(value)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	b.WriteString(t.texts[len(t.texts)-1])
	return b.String(), nil
}

// Value renders the template. One that is nothing but an expression keeps the
// type of its value.
func (t *Template) Value(v *Vars) (any, error) {
	if len(t.exprs) == 1 && t.texts[0] == "" && t.texts[1] == "" {
		return t.exprs[0].Value(v)
	}
	return t.Text(v)
}

// Text writes a value as people and models read it: a string as it stands,
// everything else as JSON.
func Text(value any) (string, error) {
	if s, ok := value.(string); ok {
		return s, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// A Tree is a JSON value whose strings are templates.
type Tree struct {
	value any // *Template, map[string]*Tree, []*Tree, or a plain value
}

// Tree reads a JSON value whose strings are templates.
func (s *Scope) Tree(value any) (*Tree, error) {
	switch value := value.(type) {
	case string:
		t, err := s.Template(value)
		return &Tree{t}, err
	case map[string]any:
		out := map[string]*Tree{}
		for _, k := range sortedKeys(value) {
			t, err := s.Tree(value[k])
			if err != nil {
				return nil, err
			}
			out[k] = t
		}
		return &Tree{out}, nil
	case []any:
		out := make([]*Tree, len(value))
		for i, v := range value {
			t, err := s.Tree(v)
			if err != nil {
				return nil, err
			}
			out[i] = t
		}
		return &Tree{out}, nil
	}
	return &Tree{value}, nil
}

// Value renders the tree.
func (t *Tree) Value(v *Vars) (any, error) {
	switch value := t.value.(type) {
	case *Template:
		return value.Value(v)
	case map[string]*Tree:
		out := make(map[string]any, len(value))
		for k, m := range value {
			member, err := m.Value(v)
			if err != nil {
				return nil, err
			}
			out[k] = member
		}
		return out, nil
	case []*Tree:
		out := make([]any, len(value))
		for i, m := range value {
			element, err := m.Value(v)
			if err != nil {
				return nil, err
			}
			out[i] = element
		}
		return out, nil
	}
	return t.value, nil
}
