package workflow

import (
	_ "embed" // the schema
	"encoding/json"
	"slices"
	"sort"
	"sync"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema of workflow files, for editors. It is also the
// one table of the keys that there are.
func Schema() json.RawMessage { return slices.Clone(schemaText) }

// schemaKeys reads the keys of every kind of object off the schema.
var schemaKeys = sync.OnceValue(func() map[string][]string {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var root struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(schemaText, &root); err != nil {
		panic("workflow: the embedded schema: " + err.Error()) // a test reads it
	}
	keys := map[string][]string{"workflow": names(root.Properties)}
	for name, def := range root.Defs {
		keys[name] = names(def.Properties)
	}
	return keys
})

func names(m map[string]json.RawMessage) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// Fields returns the keys of a kind of object: workflow, node, edge, on_error or
// limits.
func Fields(kind string) []string { return slices.Clone(schemaKeys()[kind]) }
