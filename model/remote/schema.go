package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	synapse "github.com/synapse-agents/synapse"
)

// schema is a tool's schema, ready for a request. Nobody writes to it.
type schema struct {
	fields map[string]any  // its outermost level
	whole  json.RawMessage // the same as JSON
}

// schemas keeps what was made of the tools' schemas: the same few tools come
// with every request. It may be used from several goroutines at once.
type schemas struct {
	mu   sync.Mutex
	made map[string]schema // by the definition's bytes
}

// maxSchemas bounds how many are kept: tools of MCP servers come and go.
const maxSchemas = 1024

func (s *schemas) of(t synapse.ToolDef) (schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.made[string(t.Schema)]
	if ok {
		return made, nil
	}
	made, err := newSchema(t)
	if err != nil {
		return schema{}, err
	}
	if len(s.made) >= maxSchemas {
		clear(s.made)
	}
	s.made[string(t.Schema)] = made
	return made, nil
}

// newSchema opens a schema's outermost level only: what is below keeps the
// bytes, and so the order, in which its author wrote it.
func newSchema(t synapse.ToolDef) (schema, error) {
	fields := map[string]any{"type": "object"}
	if len(t.Schema) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(t.Schema, &given); err != nil {
			return schema{}, fmt.Errorf("tool %s: schema is not a JSON object: %w", t.Name, err)
		}
		for name, value := range given {
			fields[name] = value
		}
	}
	if fields["properties"] == nil {
		fields["properties"] = map[string]any{} // some servers refuse an object without
	}
	whole, err := marshal(fields)
	if err != nil {
		return schema{}, fmt.Errorf("tool %s: schema: %w", t.Name, err)
	}
	return schema{fields: fields, whole: whole}, nil
}

// marshal writes JSON without spelling out what HTML would take for markup.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
