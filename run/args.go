package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// arguments are a call's arguments as the guard sees them: one JSON object,
// without the intent that we have added to the schema.
type arguments struct {
	raw     json.RawMessage
	members []member // in their order, no name twice
	intent  string
}

// A member is one member of a JSON object, and where it stands in the text.
type member struct {
	name     string // decoded
	value    string // as it is written
	from, to int    // of "name": value
}

// readArguments reads the text of a call's arguments: one JSON object, and
// nothing after it. No arguments at all are an empty object, as some models
// write it. The text is scanned and not decoded: most calls are fine, and the
// tool decodes them anyway. The members are appended to buf.
func readArguments(text string, strip bool, buf []member) (arguments, error) {
	if strings.TrimSpace(text) == "" {
		return arguments{raw: json.RawMessage("{}")}, nil
	}
	a := arguments{raw: json.RawMessage(text)}
	if !json.Valid(a.raw) {
		if _, err := objectOf(text); err != nil {
			return a, err
		}
		return a, errors.New("it is not JSON") // the two readers of encoding/json agree, so this is not reached
	}
	var ok bool
	if a.members, ok = membersOf(text, buf); !ok {
		// It is no object, or a name stands there twice. Whoever decodes the text
		// might take either: the last, which Go takes, becomes the only one.
		fields, err := objectOf(text)
		if err != nil {
			return a, err
		}
		if a.raw, err = json.Marshal(fields); err != nil {
			return a, err
		}
		a.members, _ = membersOf(string(a.raw), buf[:0])
	}
	if strip {
		a.cut(intentField)
	}
	return a, nil
}

// cut removes the intent.
func (a *arguments) cut(name string) {
	for i, m := range a.members {
		if m.name != name {
			continue
		}
		if m.value[0] == '"' { // one of another type is no intent
			a.intent = unquote(m.value)
		}
		from, to := m.from, m.to // and the comma on one side
		switch {
		case i+1 < len(a.members):
			to = a.members[i+1].from
		case i > 0:
			from = a.members[i-1].to
		}
		a.raw = append(a.raw[:from], a.raw[to:]...)
		a.members = append(a.members[:i], a.members[i+1:]...)
		return
	}
}

// get returns the value of a member as it is written, empty if there is none.
func (a *arguments) get(name string) string {
	for i := range a.members {
		if a.members[i].name == name {
			return a.members[i].value
		}
	}
	return ""
}

// membersOf appends the members of a JSON object to buf; false when the text,
// which must be valid JSON, is no object or has a name twice.
func membersOf(text string, buf []member) ([]member, bool) {
	i := skipSpace(text, 0)
	if text[i] != '{' {
		return buf, false
	}
	for i = skipSpace(text, i+1); text[i] != '}'; i = skipSpace(text, i) {
		if text[i] == ',' {
			i = skipSpace(text, i+1)
		}
		m := member{from: i}
		i = skipValue(text, i)
		m.name = unquote(text[m.from:i])
		value := skipSpace(text, skipSpace(text, i)+1) // after the colon
		i = skipValue(text, value)
		m.value, m.to = text[value:i], i
		for j := range buf {
			if buf[j].name == m.name {
				return buf, false
			}
		}
		buf = append(buf, m)
	}
	return buf, true
}

func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value that begins at i ends. The text is valid JSON.
func skipValue(text string, i int) int {
	switch text[i] {
	case '"':
		for i++; text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; i++ {
			switch text[i] {
			case '"':
				i = skipValue(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(text) && !strings.ContainsRune(",:]} \t\n\r", rune(text[i])) {
		i++
	}
	return i
}

// unquote decodes a valid JSON string.
func unquote(s string) string {
	if plain := s[1 : len(s)-1]; isPlain(plain) {
		return plain
	}
	var decoded string
	_ = json.Unmarshal([]byte(s), &decoded) // it is valid
	return decoded
}

// isPlain reports whether the inside of a JSON string stands for itself.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] == '\\' || s[i] >= 0x80 { // an escape, or perhaps no UTF-8
			return false
		}
	}
	return true
}

// objectOf decodes one JSON object, with errors that say what is wrong.
func objectOf(args string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(args))
	var fields map[string]json.RawMessage
	if err := dec.Decode(&fields); err != nil {
		var typed *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the JSON breaks off before its end")
		case errors.As(err, &typed):
			return nil, fmt.Errorf("%s where an object belongs", typed.Value)
		}
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("null where an object belongs")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the JSON object")
	}
	return fields, nil
}
