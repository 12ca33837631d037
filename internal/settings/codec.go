package settings

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/synapse-agents/synapse"
)

// Kind says what a key holds.
type Kind string

// The kinds of values.
const (
	KindBool        Kind = "bool"
	KindInt         Kind = "int"
	KindNumber      Kind = "number"
	KindDuration    Kind = "duration" // in Go's form, "1m30s"
	KindString      Kind = "string"
	KindChoice      Kind = "choice"  // one of a few words
	KindURL         Kind = "url"     // http or https
	KindVariable    Kind = "varname" // the name of an environment variable, never its content
	KindModel       Kind = "model"   // provider:model, an alias, or inherit
	KindEffort      Kind = "effort"
	KindStrings     Kind = "strings"
	KindModels      Kind = "models"
	KindModelMap    Kind = "model map"
	KindEffortMap   Kind = "effort map"
	KindPermissions Kind = "permissions" // tool → action, or tool → pattern → action, in order
	KindProviders   Kind = "providers"
	KindModelFacts  Kind = "model facts"
	KindRawMap      Kind = "raw map" // read by whoever it is for
	KindRaw         Kind = "raw"
)

// A fault is a value that is not what its key takes.
type fault struct {
	at    *node  // where, within the document; nil for text
	key   string // appended to the key's name: "[1]", ".reviewer"
	found string
	takes string
	hint  string
}

// A codec reads the values of one kind, from JSON and from the text of an
// environment variable or a flag.
type codec[T any] struct {
	kind  Kind
	takes string
	json  func(d *document, n *node) (T, *fault)
	text  func(s string) (T, *fault)
	// silent reports values by which a layer says nothing; nil: there are none.
	silent func(T) bool
}

func (c codec[T]) wrong(n *node, hint string) *fault {
	return &fault{at: n, found: n.describe(), takes: c.takes, hint: hint}
}

// viaJSON reads text as JSON, for kinds whose text form is JSON.
func (c codec[T]) viaJSON(s string) (T, *fault) {
	var zero T
	d, err := parseValue(s)
	if err != nil {
		return zero, &fault{found: quote(s), takes: c.takes, hint: "as JSON: found " + err.Found + ", want " + err.Takes}
	}
	v, f := c.json(d, d.root)
	switch {
	case f == nil:
	case f.at == d.root:
		f.at, f.found = nil, quote(s)
	default:
		f.at, f.found = nil, f.found+" in "+quote(s)
	}
	return v, f
}

func boolCodec() codec[bool] {
	c := codec[bool]{kind: KindBool, takes: "true or false"}
	c.json = func(_ *document, n *node) (bool, *fault) {
		if n.kind == boolNode {
			return n.yes, nil
		}
		hint := ""
		if n.kind == stringNode {
			if _, f := c.text(n.text); f == nil {
				hint = "without quotes"
			}
		}
		return false, c.wrong(n, hint)
	}
	c.text = func(s string) (bool, *fault) {
		switch strings.ToLower(s) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return false, &fault{found: quote(s), takes: c.takes}
	}
	return c
}

// intCodec reads whole numbers from least up.
func intCodec(least int) codec[int] {
	c := codec[int]{kind: KindInt, takes: "a whole number of at least " + strconv.Itoa(least)}
	c.text = func(s string) (int, *fault) {
		v, ok := wholeNumber(s)
		if !ok || v < int64(least) || v > math.MaxInt32 {
			return 0, &fault{found: quote(s), takes: c.takes}
		}
		return int(v), nil
	}
	c.json = func(_ *document, n *node) (int, *fault) {
		if n.kind == numberNode {
			if v, f := c.text(n.text); f == nil {
				return v, nil
			}
		}
		return 0, c.wrong(n, "")
	}
	return c
}

// countCodec reads whole numbers that may be large, 0 for no limit.
func countCodec() codec[int64] {
	c := codec[int64]{kind: KindInt, takes: "a whole number, 0 for no limit"}
	c.text = func(s string) (int64, *fault) {
		v, ok := wholeNumber(s)
		if !ok || v < 0 {
			return 0, &fault{found: quote(s), takes: c.takes}
		}
		return v, nil
	}
	c.json = func(_ *document, n *node) (int64, *fault) {
		if n.kind == numberNode {
			if v, f := c.text(n.text); f == nil {
				return v, nil
			}
		}
		return 0, c.wrong(n, "")
	}
	return c
}

// wholeNumber reads an integer, in the form 1e6 too.
func wholeNumber(s string) (int64, bool) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func moneyCodec() codec[float64] {
	c := codec[float64]{kind: KindNumber, takes: "an amount in US dollars, 0 for no limit"}
	c.text = func(s string) (float64, *fault) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return 0, &fault{found: quote(s), takes: c.takes}
		}
		return v, nil
	}
	c.json = func(_ *document, n *node) (float64, *fault) {
		if n.kind == numberNode {
			if v, f := c.text(n.text); f == nil {
				return v, nil
			}
		}
		return 0, c.wrong(n, "")
	}
	return c
}

// durationCodec reads Go durations of at least least.
func durationCodec(least time.Duration, takes string) codec[synapse.Duration] {
	c := codec[synapse.Duration]{kind: KindDuration, takes: takes}
	c.text = func(s string) (synapse.Duration, *fault) {
		v, err := time.ParseDuration(s)
		if err != nil || v < least {
			hint := ""
			if _, isNumber := wholeNumber(s); isNumber && err != nil {
				hint = "with a unit: " + s + "s"
			}
			return 0, &fault{found: quote(s), takes: takes, hint: hint}
		}
		return synapse.Duration(v), nil
	}
	c.json = func(_ *document, n *node) (synapse.Duration, *fault) {
		switch n.kind {
		case stringNode:
			v, f := c.text(n.text)
			if f != nil {
				f.at = n
			}
			return v, f
		case numberNode:
			return 0, c.wrong(n, `a string with a unit: "`+n.text+`s"`)
		}
		return 0, c.wrong(n, "")
	}
	return c
}

// stringJSON returns the JSON form of a codec whose values are strings.
func stringJSON[T any](c codec[T]) func(*document, *node) (T, *fault) {
	return func(_ *document, n *node) (T, *fault) {
		if n.kind != stringNode {
			var zero T
			return zero, c.wrong(n, "")
		}
		v, f := c.text(n.text)
		if f != nil {
			f.at = n
		}
		return v, f
	}
}

// wordCodec reads a string that check accepts.
func wordCodec[T ~string](kind Kind, takes string, check func(string) (T, bool)) codec[T] {
	c := codec[T]{kind: kind, takes: takes}
	c.text = func(s string) (T, *fault) {
		v, ok := check(strings.TrimSpace(s))
		if !ok {
			return "", &fault{found: quote(s), takes: takes}
		}
		return v, nil
	}
	c.json = stringJSON(c)
	c.silent = func(v T) bool { return v == "" }
	return c
}

func modelCodec() codec[string] {
	return wordCodec(KindModel, "provider:model (such as openai:gpt-5), one of model_aliases, or inherit",
		func(s string) (string, bool) {
			if s == "" || strings.EqualFold(s, "inherit") { // the layer says nothing
				return "", true
			}
			if !strings.Contains(s, ":") { // an alias; whether there is one is known when all layers are read
				return s, !strings.ContainsFunc(s, unicode.IsControl)
			}
			_, err := synapse.ParseModelRef(s)
			return s, err == nil && !strings.ContainsFunc(s, unicode.IsControl)
		})
}

// chainCodec reads a model to fall back on: a model or an alias. "inherit" is
// none: there is nothing above it to inherit from.
func chainCodec() codec[string] {
	model := modelCodec()
	return wordCodec(KindModel, "provider:model (such as openai:gpt-5) or one of model_aliases", func(s string) (string, bool) {
		v, f := model.text(s)
		return v, f == nil && v != ""
	})
}

// aliasedCodec reads what an alias stands for: a model, never another alias.
func aliasedCodec() codec[string] {
	return wordCodec(KindModel, "provider:model, such as openai:gpt-5", func(s string) (string, bool) {
		_, err := synapse.ParseModelRef(s)
		return s, err == nil && !strings.ContainsFunc(s, unicode.IsControl)
	})
}

func effortCodec() codec[synapse.Effort] {
	var words []string
	for _, e := range synapse.Efforts() {
		words = append(words, string(e))
	}
	return wordCodec(KindEffort, "one of "+strings.Join(words, ", "), func(s string) (synapse.Effort, bool) {
		e, err := synapse.ParseEffort(strings.ToLower(s))
		if e == synapse.EffortInherit { // the layer says nothing
			e = ""
		}
		return e, err == nil
	})
}

func choiceCodec(words ...string) codec[string] {
	return wordCodec(KindChoice, "one of "+strings.Join(words, ", "), func(s string) (string, bool) {
		for _, w := range append(words, "") {
			if strings.EqualFold(s, w) {
				return w, true
			}
		}
		return "", false
	})
}

func urlCodec() codec[string] {
	c := wordCodec(KindURL, "an http or https URL", func(s string) (string, bool) {
		return s, s == "" || isURL(s)
	})
	inner := c.text
	c.text = func(s string) (string, *fault) {
		v, f := inner(s)
		if f != nil {
			f.found = quote(redactURL(s))
		}
		return v, f
	}
	c.json = stringJSON(c)
	return c
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// variableCodec reads the name of a variable that holds a key. What is no name
// is not shown: it may be the key itself.
func variableCodec() codec[string] {
	c := wordCodec(KindVariable, "the name of an environment variable", func(s string) (string, bool) {
		return s, variableName(s) == s
	})
	hide := func(f *fault) *fault {
		if f != nil {
			f.found = "text that is no variable's name (not shown: it may be a key)"
			f.hint = "put the key into a variable, and the variable's name here"
		}
		return f
	}
	text := c.text
	c.text = func(s string) (string, *fault) { v, f := text(s); return v, hide(f) }
	c.json = stringJSON(c)
	return c
}

// listCodec reads lists of what item reads. Its text form is a JSON array.
func listCodec(kind Kind, example string, item codec[string]) codec[[]string] {
	c := codec[[]string]{kind: kind, takes: "a JSON array of strings, such as " + example}
	c.json = func(d *document, n *node) ([]string, *fault) {
		if n.kind != arrayNode {
			hint := ""
			if n.kind == stringNode {
				data, _ := json.Marshal(splitList(n.text))
				hint = "write " + string(data)
			}
			return nil, c.wrong(n, hint)
		}
		list := []string{} // an empty list is not the same as none
		for i, e := range n.elems {
			v, f := item.json(d, e)
			if f == nil && v == "" {
				f = &fault{found: e.describe(), takes: item.takes}
			}
			if f != nil {
				f.at, f.key = e, "["+strconv.Itoa(i)+"]"
				return nil, f
			}
			list = append(list, v)
		}
		return list, nil
	}
	c.text = c.viaJSON
	return c
}

// splitList reads the comma-separated form that people write in its place.
func splitList(s string) []string {
	list := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func textCodec(takes string) codec[string] {
	return wordCodec(KindString, takes, func(s string) (string, bool) {
		return s, !strings.ContainsFunc(s, unicode.IsControl)
	})
}

// An entry is one member of a map, in the order of the text.
type entry[T any] struct {
	name string
	at   *node
	v    T
}

// mapCodec reads objects whose members item reads. Its text form is a JSON
// object.
func mapCodec[T any](kind Kind, takes string, item codec[T]) codec[[]entry[T]] {
	c := codec[[]entry[T]]{kind: kind, takes: takes}
	c.json = func(d *document, n *node) ([]entry[T], *fault) {
		if n.kind != objectNode {
			return nil, c.wrong(n, "")
		}
		entries := []entry[T]{}
		for _, m := range n.members {
			if m.key == "" || strings.ContainsFunc(m.key, unicode.IsControl) {
				return nil, &fault{at: n, found: "the name " + quote(m.key), takes: "names that can be shown"}
			}
			if m.value.kind == nullNode { // the layer says nothing of it
				continue
			}
			v, f := item.json(d, m.value)
			if f != nil {
				f.key = "." + m.key + f.key
				return nil, f
			}
			if item.silent == nil || !item.silent(v) {
				entries = append(entries, entry[T]{m.key, m.value, v})
			}
		}
		return entries, nil
	}
	c.text = c.viaJSON
	return c
}

// rawCodec keeps a value of the given JSON type for whoever it is for.
func rawCodec(kind Kind, takes string, types ...nodeKind) codec[json.RawMessage] {
	c := codec[json.RawMessage]{kind: kind, takes: takes}
	c.json = func(d *document, n *node) (json.RawMessage, *fault) {
		for _, t := range types {
			if n.kind == t {
				return d.raw(n), nil
			}
		}
		return nil, c.wrong(n, "")
	}
	c.text = c.viaJSON
	return c
}
