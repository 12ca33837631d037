package agents

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// tableKeys returns the keys of a table in the order of the text, sorted where
// the library does not tell it.
func tableKeys(m map[string]any, meta toml.MetaData, key toml.Key) []string {
	var names []string
	for _, k := range meta.Keys() {
		if len(k) == len(key)+1 && slices.Equal(k[:len(key)], key) && !slices.Contains(names, k[len(key)]) {
			if _, ok := m[k[len(key)]]; ok {
				names = append(names, k[len(key)])
			}
		}
	}
	if len(names) != len(m) {
		names = slices.Sorted(maps.Keys(m))
	}
	return names
}

// keyPlaces finds where the top-level keys of a valid TOML document stand.
func keyPlaces(text string) map[string]Pos {
	places := map[string]Pos{}
	top := true // no table header so far
	line, start := 1, 0
	for i := 0; i < len(text); {
		// i is at the beginning of a line, outside of any value.
		j := i + len(text[i:]) - len(strings.TrimLeft(text[i:], " \t"))
		rest := text[j:]
		switch {
		case rest == "" || rest[0] == '\n' || rest[0] == '#' || rest[0] == '\r':
			i = lineEnd(text, j)
		case rest[0] == '[':
			top = false
			name, _ := tomlKey(strings.TrimLeft(rest, "[ \t"))
			if _, ok := places[name]; !ok && name != "" {
				places[name] = Pos{Line: line, Column: utf8.RuneCountInString(text[start:j]) + 1}
			}
			i = lineEnd(text, j)
		default:
			name, n := tomlKey(rest)
			if _, ok := places[name]; !ok && top && name != "" {
				places[name] = Pos{Line: line, Column: utf8.RuneCountInString(text[start:j]) + 1}
			}
			i = valueEnd(text, j+max(n, 1))
		}
		line += strings.Count(text[start:i], "\n")
		start = i
	}
	return places
}

// lineEnd returns where the next line begins.
func lineEnd(text string, i int) int {
	if k := strings.IndexByte(text[i:], '\n'); k >= 0 {
		return i + k + 1
	}
	return len(text)
}

// tomlKey reads the first part of a key, bare or quoted, and its length.
func tomlKey(s string) (name string, n int) {
	if s == "" {
		return "", 0
	}
	if q := s[0]; q == '"' || q == '\'' {
		if k := strings.IndexByte(s[1:], q); k >= 0 {
			return s[1 : 1+k], k + 2
		}
		return "", 0
	}
	n = strings.IndexFunc(s, func(c rune) bool {
		return !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	})
	if n < 0 {
		n = len(s)
	}
	return s[:n], n
}

// valueEnd returns where the line after a key and its value begins: strings,
// and lists over several lines, are passed over.
func valueEnd(text string, i int) int {
	depth := 0
	for i < len(text) {
		switch c := text[i]; c {
		case '\n':
			if depth <= 0 {
				return i + 1
			}
		case '#':
			i = lineEnd(text, i) - 1
			if i+1 >= len(text) && text[len(text)-1] != '\n' {
				return len(text)
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"', '\'':
			i = stringEnd(text, i)
			continue
		}
		i++
	}
	return len(text)
}

// stringEnd returns the offset behind a string that begins at i.
func stringEnd(text string, i int) int {
	q := text[i : i+1]
	if long := strings.Repeat(q, 3); strings.HasPrefix(text[i:], long) {
		for k := i + 3; k < len(text); k++ {
			if q == `"` && text[k] == '\\' {
				k++
				continue
			}
			if strings.HasPrefix(text[k:], long) {
				k += 3
				for k < len(text) && text[k:k+1] == q { // quotes may stand before the end
					k++
				}
				return k
			}
		}
		return len(text)
	}
	for k := i + 1; k < len(text) && text[k] != '\n'; k++ {
		if q == `"` && text[k] == '\\' {
			k++
			continue
		}
		if text[k:k+1] == q {
			return k + 1
		}
	}
	return lineEnd(text, i)
}

// The bounds on what a TOML document may hold: the library takes time that
// grows faster than the text for each of these.
const (
	maxTOMLHeaders = 2000 // lines [table] and [[table]]
	maxTOMLDepth   = 64   // of dotted keys, and of values in values
	maxTOMLKeys    = 20_000
)

// boundTOML says where a document holds more than is read, -1 if nowhere.
func boundTOML(text string) (offset int, what string) {
	headers, keys := 0, 0
	for i := 0; i < len(text); {
		j := i + len(text[i:]) - len(strings.TrimLeft(text[i:], " \t\r"))
		rest := text[j:]
		switch {
		case rest == "" || rest[0] == '\n' || rest[0] == '#':
			i = lineEnd(text, j)
			continue
		case rest[0] == '[':
			if headers++; headers > maxTOMLHeaders {
				return j, "tables"
			}
		default:
			if keys++; keys > maxTOMLKeys {
				return j, "keys"
			}
		}
		end := valueEnd
		if rest[0] == '[' {
			end = lineEnd
		}
		next := end(text, j)
		if k := deepAt(text[j:next]); k >= 0 {
			return j + k, "levels"
		}
		i = next
	}
	return -1, ""
}

// deepAt returns where a line with its value is nested too deeply, -1 if it is
// not. Strings and comments are passed over.
func deepAt(s string) int {
	depth, dots, commas := 0, 0, 0
	for i := 0; i < len(s); {
		switch s[i] {
		case '"', '\'':
			i = stringEnd(s, i)
			continue
		case '#':
			i = lineEnd(s, i)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '.':
			dots++
		case '=', ',', '\n':
			dots = 0
			if commas++; commas > maxTOMLKeys {
				return i
			}
		}
		if depth > maxTOMLDepth || dots > maxTOMLDepth {
			return i
		}
		i++
	}
	return -1
}
