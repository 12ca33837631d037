package run

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// A shape is the part of a JSON Schema that nearly all tools use, in a form that
// is checked against text. It says yes quickly and never wrongly: what fits it
// fits the schema. Whatever else is left to the schema, which also finds the
// words for what is wrong. The zero shape fits everything.
type shape struct {
	kinds    string // the first bytes that a value may have, empty for any
	props    map[string]*shape
	required []string
	closed   bool // no properties but props
	items    *shape
	enum     []string // of strings
	min, max *float64
	minLen   int
}

// kindsOf gives the first bytes of the values of a type.
var kindsOf = map[string]string{
	"string": `"`, "object": "{", "array": "[", "boolean": "tf", "null": "n", "number": "-0123456789", "integer": "-0123456789",
}

// shapeOf returns the shape of a schema; nil when the schema says something that
// a shape can't.
func shapeOf(schema *jsonschema.Schema) *shape {
	rest := *schema
	// What says nothing about validity, and what is understood below.
	rest.Title, rest.Description, rest.Comment, rest.Default, rest.Examples, rest.PropertyOrder = "", "", "", nil, nil, nil
	rest.Schema, rest.Deprecated, rest.ReadOnly, rest.WriteOnly, rest.Format = "", false, false, false, ""
	rest.Type, rest.Types, rest.Properties, rest.Required, rest.AdditionalProperties = "", nil, nil, nil, nil
	rest.Items, rest.Enum, rest.Minimum, rest.Maximum, rest.MinLength = nil, nil, nil, nil, nil
	if !reflect.ValueOf(rest).IsZero() {
		return nil
	}
	s := &shape{required: schema.Required, min: schema.Minimum, max: schema.Maximum}
	if schema.Types != nil && len(schema.Types) == 0 || len(s.required) > 64 {
		return nil
	}
	types := schema.Types
	if schema.Type != "" {
		types = []string{schema.Type}
	}
	for _, t := range types {
		if kindsOf[t] == "" {
			return nil
		}
		s.kinds += kindsOf[t]
	}
	if schema.MinLength != nil {
		s.minLen = *schema.MinLength
	}
	for _, e := range schema.Enum {
		text, ok := e.(string)
		if !ok {
			return nil
		}
		s.enum = append(s.enum, text)
	}
	if schema.Enum != nil && s.enum == nil {
		return nil
	}
	if schema.Properties != nil {
		s.props = make(map[string]*shape, len(schema.Properties))
	}
	for name, property := range schema.Properties {
		if s.props[name] = shapeOf(property); s.props[name] == nil {
			return nil
		}
	}
	if schema.Items != nil {
		if s.items = shapeOf(schema.Items); s.items == nil {
			return nil
		}
	}
	if more := schema.AdditionalProperties; more != nil {
		switch {
		case reflect.ValueOf(*more).IsZero(): // true
		case more.Not != nil && reflect.ValueOf(*more.Not).IsZero() && reflect.DeepEqual(*more, jsonschema.Schema{Not: more.Not}): // false
			s.closed = true
		default:
			return nil
		}
	}
	return s
}

// fits reports whether a value, which must be valid JSON, surely has the shape.
func (s *shape) fits(value string) bool {
	kind := value[0]
	if s.kinds != "" && strings.IndexByte(s.kinds, kind) < 0 {
		return false
	}
	if s.enum != nil && kind != '"' {
		return false
	}
	switch kind {
	case '{':
		var buf [8]member
		members, once := membersOf(value, buf[:0])
		return once && s.fitsMembers(members)
	case '[':
		return s.items == nil || s.fitsElements(value)
	case '"':
		inside := value[1 : len(value)-1]
		if !isPlain(inside) {
			inside = unquote(value)
		}
		return (s.enum == nil || slices.Contains(s.enum, inside)) && (s.minLen == 0 || utf8.RuneCountInString(inside) >= s.minLen)
	case 't', 'f', 'n':
		return true
	}
	if len(value) > 15 { // more than a float64 holds exactly: not surely
		return false
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return false // a fraction, or an exponent
	}
	return (s.min == nil || float64(n) >= *s.min) && (s.max == nil || float64(n) <= *s.max)
}

// fitsMembers reports whether an object of these members has the shape.
func (s *shape) fitsMembers(members []member) bool {
	var seen uint64 // of the required ones
	for i := range members {
		m := &members[i]
		property, known := s.props[m.name]
		if known && !property.fits(m.value) || !known && s.closed {
			return false
		}
		for j, name := range s.required {
			if name == m.name {
				seen |= 1 << j
			}
		}
	}
	return seen == 1<<len(s.required)-1
}

// fitsElements reports whether every element of an array has the shape of items.
func (s *shape) fitsElements(array string) bool {
	for i := skipSpace(array, 1); array[i] != ']'; i = skipSpace(array, i) {
		if array[i] == ',' {
			i = skipSpace(array, i+1)
		}
		end := skipValue(array, i)
		if !s.items.fits(array[i:end]) {
			return false
		}
		i = end
	}
	return true
}
