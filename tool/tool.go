// Package tool holds the built-in tools: each is a .go file with the code and
// a .md file with the words that a model reads. They work on a [Workspace],
// which keeps every file tool inside one directory tree.
//
// [New] makes a tool of a Go function and infers its schema:
//
//	type args struct {
//		City string `json:"city" jsonschema:"city name, in English"`
//		Days int    `json:"days,omitempty" jsonschema:"default 3"`
//	}
//	weather, err := tool.New("weather", "Forecasts the weather of a city.",
//		func(ctx context.Context, in *synapse.Invocation, a args) (*synapse.ToolResult, error) {
//			return synapse.TextResult(forecast(a.City, a.Days)), nil
//		})
//	weather.ReadOnly, weather.Parallel = true, true
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/synapse-agents/synapse"
)

// A Func is the code of a tool whose arguments are decoded into In. It may be
// called from several goroutines at once. A returned error reaches the model
// as an error result, unless ctx has ended: then it is returned as it is.
type Func[In any] func(ctx context.Context, in *synapse.Invocation, args In) (*synapse.ToolResult, error)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// New returns a tool of that name whose schema is inferred from the struct In:
// properties are named by `json` tags and described by `jsonschema` tags, and
// a property is optional when its `json` tag says omitempty or omitzero. The
// schema is kept as small as it can be, since it travels with every request.
//
// The tool counts as one that changes things and runs alone. Set ReadOnly,
// Keyed, Parallel and Subject on the result where more is known of it.
func New[In any](name, description string, fn Func[In]) (synapse.Tool, error) {
	if !toolName.MatchString(name) {
		return synapse.Tool{}, fmt.Errorf("new tool %q: a name has 1 to 64 of the characters A-Z a-z 0-9 _ -", name)
	}
	if strings.TrimSpace(description) == "" {
		return synapse.Tool{}, fmt.Errorf("new tool %q: the description is empty, so no model could know what it is for", name)
	}
	if fn == nil {
		return synapse.Tool{}, fmt.Errorf("new tool %q: the function is nil", name)
	}
	if t := reflect.TypeFor[In](); t.Kind() != reflect.Struct {
		return synapse.Tool{}, fmt.Errorf("new tool %q: arguments of type %s: want a struct", name, t)
	}
	schema, err := inferSchema[In]()
	if err != nil {
		return synapse.Tool{}, fmt.Errorf("new tool %q: infer the schema: %w", name, err)
	}
	return synapse.Tool{
		Name:        name,
		Description: strings.TrimSpace(description),
		Schema:      schema,
		Run: func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			return call(ctx, name, in, fn)
		},
	}, nil
}

// must is for the built-in tools, whose names and types are constants.
func must(t synapse.Tool, err error) synapse.Tool {
	if err != nil {
		panic(err)
	}
	return t
}

// call decodes the arguments and runs fn. What the model can act on becomes an
// error result here, in one place.
func call[In any](ctx context.Context, name string, in *synapse.Invocation, fn Func[In]) (*synapse.ToolResult, error) {
	var args In
	raw := in.Args
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return synapse.ErrorResult(name + ": " + argumentError(err)), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	result, err := fn(ctx, in, args)
	switch {
	case err == nil && result == nil:
		return nil, fmt.Errorf("%s: the tool returned neither a result nor an error", name)
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	default:
		failed := synapse.ErrorResult(name + ": " + err.Error())
		var typed interface{ details() any }
		if errors.As(err, &typed) {
			failed.Details = details(typed.details())
		}
		return failed, nil
	}
}

// argumentError says what is wrong with arguments in words a model can use.
func argumentError(err error) string {
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) && typeErr.Field != "" {
		return fmt.Sprintf("argument %q: got a JSON %s, want a value for %s", typeErr.Field, typeErr.Value, typeErr.Type)
	}
	return "the arguments are not a JSON object: " + err.Error()
}

// oneOf is implemented by string types that take only some values.
type oneOf interface{ values() []any }

// inferSchema returns the schema of In, stripped of what costs bytes and tells
// a model nothing: null as a further type of what may be left out, and the ban
// on further properties.
func inferSchema[In any]() (json.RawMessage, error) {
	root := reflect.TypeFor[In]()
	s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: enumSchemas(root, nil)})
	if err != nil {
		return nil, err
	}
	lean(s)
	return json.Marshal(s)
}

func enumSchemas(t reflect.Type, seen []reflect.Type) map[reflect.Type]*jsonschema.Schema {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if slices.Contains(seen, t) {
		return nil // a cycle: the inference reports it
	}
	found := make(map[reflect.Type]*jsonschema.Schema)
	if v, ok := reflect.Zero(t).Interface().(oneOf); ok {
		found[t] = &jsonschema.Schema{Type: "string", Enum: v.values()}
		return found
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			for k, v := range enumSchemas(t.Field(i).Type, append(seen, t)) {
				found[k] = v
			}
		}
	}
	return found
}

func lean(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	lean(s.Items)
	lean(s.AdditionalProperties)
	for _, p := range s.Properties {
		lean(p)
	}
}

// details encodes what a result tells people and programs. The values are
// plain structs, which always encode.
func details(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("tool: encode details: %v", err))
	}
	return b
}
