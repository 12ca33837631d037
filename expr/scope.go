// Package expr reads and evaluates the expressions of workflows: conditions, the
// lists of for_each, and templates with ${{ }} in them. The language is CEL over
// input, state and visits, typed by the workflow's JSON Schemas. The compiler
// checks with the same value that the scheduler evaluates.
package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
)

// An Error says what is wrong with an expression, and where in its text.
type Error struct {
	Offset  int // in bytes
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// base is the part of the environment that all scopes share. It is made when the
// first expression is read: a program without workflows does not pay for it.
var base = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.CrossTypeNumericComparisons(true))
})

// A Scope knows the names and types that expressions of one workflow may use. It
// is safe for use by several goroutines.
type Scope struct {
	env   *cel.Env
	types *provider
	item  string
}

// The variables that every expression knows.
const (
	inputType  = "input"
	stateType  = "state"
	visitsType = "visits"
)

// objectName names the type of an object apart from every expression: a type of
// the name "state.v" would hide the value that is written so.
func objectName(path string) string { return "@" + path }

// NewScope returns the scope of a workflow.
func NewScope(f *synapse.Flow) (*Scope, error) {
	env, err := base()
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	reg, err := types.NewProtoRegistry()
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	p := &provider{Registry: reg, objects: map[string]map[string]*types.FieldType{}}
	input := types.NewMapType(types.StringType, types.DynType)
	if schema, err := readSchema(f.Input); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	} else if schema != nil {
		input = p.declare(inputType, schema)
	}
	p.objects[objectName(stateType)] = map[string]*types.FieldType{}
	for _, key := range f.State {
		schema, err := readSchema(key.Schema)
		if err != nil {
			return nil, fmt.Errorf("state %s: %w", key.Name, err)
		}
		p.objects[objectName(stateType)][key.Name] = p.field(stateType, key.Name, schema)
	}
	p.objects[objectName(visitsType)] = map[string]*types.FieldType{}
	for _, n := range f.Nodes {
		name := n.Name
		p.objects[objectName(visitsType)][name] = &types.FieldType{
			Type:  types.IntType,
			IsSet: func(any) bool { return true },
			GetFrom: func(v any) (any, error) {
				visits, _ := v.(map[string]int)
				return int64(visits[name]), nil
			},
		}
	}
	env, err = env.Extend(
		cel.CustomTypeProvider(p), cel.CustomTypeAdapter(p),
		cel.Variable("input", input),
		cel.Variable("state", types.NewObjectType(objectName(stateType))),
		cel.Variable("visits", types.NewObjectType(objectName(visitsType))),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	return &Scope{env: env, types: p}, nil
}

// WithItem returns the scope inside a for_each over the list, whose elements are
// known by name.
func (s *Scope) WithItem(name string, list *Expr) (*Scope, error) {
	t := types.DynType
	if list != nil {
		if out := list.ast.OutputType(); out.Kind() == types.ListKind {
			t = out.Parameters()[0]
		}
	}
	env, err := s.env.Extend(cel.Variable(name, t))
	if err != nil {
		return nil, fmt.Errorf("as %s: %w", name, err)
	}
	return &Scope{env: env, types: s.types, item: name}, nil
}

func readSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read JSON Schema: %w", err)
	}
	return s, nil
}

// A provider gives the checker the fields of the objects that schemas describe,
// and the interpreter their values.
type provider struct {
	*types.Registry
	objects map[string]map[string]*types.FieldType
}

// declare returns the type of a schema's values: one of CEL's own, or an object
// with the fields that are declared. What a schema leaves open is dynamic.
func (p *provider) declare(path string, s *jsonschema.Schema) *types.Type {
	if s == nil {
		return types.DynType
	}
	switch s.Type {
	case "string":
		return types.StringType
	case "boolean":
		return types.BoolType
	case "integer":
		return types.IntType
	case "number":
		return types.DoubleType
	case "array":
		return types.NewListType(p.declare(path+"[]", s.Items))
	case "object":
		if len(s.Properties) == 0 {
			return types.NewMapType(types.StringType, types.DynType)
		}
		fields := map[string]*types.FieldType{}
		p.objects[objectName(path)] = fields
		for name, property := range s.Properties {
			fields[name] = p.field(path, name, property)
		}
		return types.NewObjectType(objectName(path))
	}
	return types.DynType
}

// field returns a member of an object in which it is a JSON value.
func (p *provider) field(path, name string, s *jsonschema.Schema) *types.FieldType {
	t := p.declare(path+"."+name, s)
	return &types.FieldType{
		Type: t,
		IsSet: func(object any) bool {
			m, _ := object.(map[string]any)
			v, ok := m[name]
			return ok && v != nil
		},
		GetFrom: func(object any) (any, error) {
			m, ok := object.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s is not an object", path)
			}
			v, ok := m[name]
			if !ok || v == nil {
				return nil, fmt.Errorf("%s.%s is not set yet: has(%s.%s) tells whether it is", path, name, path, name)
			}
			if f, ok := v.(float64); ok && t == types.IntType {
				return int64(f), nil
			}
			return v, nil
		},
	}
}

// FindStructType finds the objects of the workflow.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames lists an object's members.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := p.objects[name]
	if !ok {
		return p.Registry.FindStructFieldNames(name)
	}
	return sortedKeys(fields), true
}

// FindStructFieldType finds an object's member.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := p.objects[name]; ok {
		f, ok := fields[field]
		return f, ok
	}
	return p.Registry.FindStructFieldType(name, field)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// problem makes an Error of what CEL says of a text. A name that is not there is
// answered with those that are.
func (s *Scope) problem(src string, issues *cel.Issues) error {
	list := issues.Errors()
	if len(list) == 0 {
		return &Error{Message: issues.Err().Error()}
	}
	slices.SortStableFunc(list, func(a, b *cel.Error) int {
		return a.Location.Line()*1000 + a.Location.Column() - b.Location.Line()*1000 - b.Location.Column()
	})
	e := list[0]
	message := strings.TrimSpace(e.Message)
	if name, ok := strings.CutPrefix(message, "undefined field '"); ok {
		name = strings.TrimSuffix(name, "'")
		message = fmt.Sprintf("there is no %q", name)
		if holder := s.holderOf(src, name); holder != "" {
			message += " in " + holder
			if fields := sortedKeys(s.types.objects[objectName(holder)]); len(fields) > 0 {
				message += ", only " + strings.Join(fields, ", ")
			}
		}
	} else if name, ok := strings.CutPrefix(message, "undeclared reference to '"); ok {
		name, _, _ = strings.Cut(name, "'")
		known := []string{"input", "state", "visits"}
		if s.item != "" {
			known = append(known, s.item)
		}
		message = fmt.Sprintf("there is no %q: expressions know %s", name, strings.Join(known, ", "))
	}
	offset := 0
	for line := 1; line < e.Location.Line(); line++ {
		if i := strings.IndexByte(src[offset:], '\n'); i >= 0 {
			offset += i + 1
		}
	}
	runes := 0
	for i := range src[offset:] {
		if runes == e.Location.Column() {
			offset += i
			break
		}
		runes++
	}
	return &Error{Offset: offset, Message: message}
}

// holderOf returns the variable that a missing member is looked for in.
func (s *Scope) holderOf(src, field string) string {
	for _, holder := range []string{inputType, stateType, visitsType} {
		if strings.Contains(src, holder+"."+field) {
			return holder
		}
	}
	return ""
}

var errEmpty = errors.New("the expression is empty")
