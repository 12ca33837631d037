package remote_test

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// OpenAI's own description of its API judges what is sent to it. The file is
// OpenAI's (github.com/openai/openai-openapi, openapi.json) and not part of
// this repository: SYNAPSE_OPENAPI says where it is.
func TestOpenAISchema(t *testing.T) {
	file := os.Getenv("SYNAPSE_OPENAPI")
	if file == "" {
		t.Skip("SYNAPSE_OPENAPI is not set: it names OpenAI's openapi.json")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	chat, responses := openAPISchema(t, data, "CreateChatCompletionRequest"), openAPISchema(t, data, "CreateResponse")

	azure := remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com"}
	openai := remote.Config{Provider: "openai", APIKey: "k"}
	elsewhere := remote.Config{Provider: "openai", BaseURL: "http://127.0.0.1:9/v1", Wire: remote.WireResponses}
	tests := []struct {
		name   string
		schema *jsonschema.Resolved
		cfg    remote.Config
		req    *synapse.Request
	}{
		{"chat", chat, azure, asked("gpt-5-mini", synapse.EffortHigh)},
		{"chat off", chat, azure, asked("gpt-5.2", synapse.EffortOff)},
		{"chat without reasoning", chat, azure, asked("gpt-4.1", synapse.EffortHigh)},
		{"chat minimal", chat, azure, hello()},
		{"responses", responses, openai, asked("gpt-5.6-sol", synapse.EffortHigh)},
		{"responses max", responses, openai, asked("gpt-5.6-sol", synapse.EffortMax)},
		{"responses off", responses, openai, asked("gpt-5.6-sol", synapse.EffortOff)},
		{"responses without reasoning", responses, openai, asked("gpt-4o", synapse.EffortHigh)},
		{"responses elsewhere", responses, elsewhere, asked("gpt-5.6-sol", "")},
		{"responses minimal", responses, openai, hello()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var body map[string]any
			if err := json.Unmarshal([]byte(own(t, tt.cfg, tt.req).body), &body); err != nil {
				t.Fatal(err)
			}
			if err := tt.schema.Validate(body); err != nil {
				t.Errorf("OpenAI's schema refuses it: %v", err)
			}
			// The judge must be able to refuse.
			for field, bad := range map[string]any{"model": 7.0, "tools": []any{map[string]any{"type": "function", "function": 1.0}}, "temperature": 3.0, "messages": "x", "input": 7.0} {
				if _, ok := body[field]; !ok && (field == "messages" || field == "input") {
					continue
				}
				broken := maps.Clone(body)
				broken[field] = bad
				if tt.schema.Validate(broken) == nil {
					t.Errorf("%s: %v passes the schema", field, bad)
				}
			}
		})
	}
}

// openAPISchema makes a JSON Schema of one of an API description's.
func openAPISchema(t *testing.T, data []byte, name string) *jsonschema.Resolved {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "#/components/schemas/", "#/$defs/")), &doc); err != nil {
		t.Fatal(err)
	}
	// Only what the schema reaches: other parts of the description hold forms
	// that JSON Schema has done away with.
	defs := map[string]any{}
	for reach := []string{name}; len(reach) > 0; reach = reach[1:] {
		key := reach[0]
		if defs[key] != nil {
			continue
		}
		if doc.Components.Schemas[key] == nil {
			t.Fatalf("the description has no %s", key)
		}
		var v any
		if err := json.Unmarshal(doc.Components.Schemas[key], &v); err != nil {
			t.Fatal(err)
		}
		each(v, func(m map[string]any) {
			if ref, ok := m["$ref"].(string); ok {
				reach = append(reach, strings.TrimPrefix(ref, "#/$defs/"))
			}
			for _, word := range []string{"discriminator", "example", "$recursiveRef", "$recursiveAnchor"} { // OpenAPI's own
				delete(m, word)
			}
			// Forms that a discriminator tells apart overlap without it.
			if one, ok := m["oneOf"]; ok && m["anyOf"] == nil {
				delete(m, "oneOf")
				m["anyOf"] = one
			}
		})
		defs[key] = v
	}
	whole, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": defs})
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(whole, &schema); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return resolved
}
