package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/internal/spelling"
)

// unknown reports what a layer holds beside the known keys: names that mean
// nothing (a warning, since a newer version may know them), groups of the wrong
// type, flags without a key.
func (l *loader) unknown(layer *layer) {
	for _, f := range layer.flags {
		if lookup(l.keys, f.Key) == nil {
			l.fail(&Error{Var: f.Flag, Found: "the key " + quote(f.Key), Takes: "a key of the settings", Hint: didYouMean(f.Key, keyNames(l.keys))})
		}
	}
	for _, name := range sortedNames(layer.vars) {
		if v := layer.vars[name]; strings.HasPrefix(name, "AGENT_") && !l.isOurs(name) {
			// Other programs own variables of this prefix too: only what is
			// nearly one of ours is worth a word.
			if hint := didYouMean(name, variableNames(l.keys)); hint != "" {
				l.warn(Warning{Code: WarnUnknownKey, Path: layer.path, Line: v.line, Var: name, Hint: hint,
					Message: "means nothing here"})
			}
		}
	}
	if layer.doc == nil {
		return
	}
	tops := topNames(l.keys)
	for _, m := range layer.doc.root.members {
		if !slices.Contains(tops, m.key) {
			l.unknownKey(layer, m, m.key, tops)
			continue
		}
		if m.value.kind == nullNode {
			continue
		}
		if names := within(l.keys, m.key); len(names) > 0 {
			if m.value.kind != objectNode {
				line, column := layer.doc.position(m.value.start)
				l.fail(&Error{Path: layer.path, Line: line, Column: column, Key: m.key, Found: m.value.describe(),
					Takes: "an object with " + strings.Join(names, ", ")})
				continue
			}
			for _, inner := range m.value.members {
				if !slices.Contains(names, inner.key) {
					l.unknownKey(layer, inner, m.key+"."+inner.key, names)
				}
			}
		}
		if m.key == "providers" {
			l.unknownProviderFields(layer, m.value)
		}
	}
}

func (l *loader) unknownProviderFields(layer *layer, providers *node) {
	for _, p := range providers.members {
		for _, field := range p.value.members {
			if !slices.Contains(providerFields, field.key) {
				l.unknownKey(layer, field, "providers."+p.key+"."+field.key, providerFields)
			}
		}
	}
}

func (l *loader) unknownKey(layer *layer, m member, name string, candidates []string) {
	line, column := layer.doc.position(m.start)
	w := Warning{Code: WarnUnknownKey, Path: layer.path, Line: line, Column: column, Key: name,
		Message: fmt.Sprintf("unknown key %s, kept but not used", quote(name)), Hint: didYouMean(m.key, candidates)}
	if looksSecret(m.key) && m.value.kind == stringNode {
		w.Code = WarnSecretValue
		w.Message = fmt.Sprintf("%s is not read: keys are not kept in settings files", quote(name))
		w.Hint = "put the key into an environment variable, and the variable's name into api_key_env"
	}
	l.warn(w)
}

func didYouMean(name string, candidates []string) string {
	if c := spelling.Nearest(name, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	return ""
}

func keyNames(keys []Key) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

func variableNames(keys []Key) []string {
	var names []string
	for _, k := range keys {
		if k.Env != "" {
			names = append(names, k.Env)
		}
	}
	return names
}

// isOurs reports whether a variable means something to us.
func (l *loader) isOurs(name string) bool {
	return slices.Contains(variableNames(l.keys), name) || modelVariable(l.keys, name) != "" ||
		slices.ContainsFunc(ProviderVars(), func(v ProviderVar) bool { return v.Name == name })
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// mustJSON is the JSON of a value that has one: a setting that was read.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`"?"`)
	}
	return data
}
