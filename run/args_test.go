package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/run"
)

// schemas are what FuzzArguments checks arguments against.
var schemas = []string{
	`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":0,"maximum":10},"deep":{"type":["null","boolean"]}},"required":["path"]}`,
	`{"type":"object","properties":{"path":{"type":"array","items":{"type":"string","minLength":2}},"how":{"enum":["a","b\u00e9"]}},"additionalProperties":false}`,
	`{"type":"object","properties":{"edits":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}},"required":["n"],"additionalProperties":false}}}}`,
	`{"type":"object","properties":{"intent":{"type":"string"},"path":{"type":["string","integer"]}},"required":["intent"]}`,
	`{"properties":{"path":{"const":"x"},"any":{}},"minProperties":1}`,
	`{"type":"object","properties":{"path":{"type":"string","pattern":"^a"},"offset":{"multipleOf":2}}}`,
	`true`,
}

// FuzzArguments: what the guard lets through is what the schema allows, and the
// tool gets it whole but for the intent. The schema library and encoding/json are
// the second judge.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{
		``, ` `, `{}`, `null`, `[]`, `{"path":"a"}`, `{"intent":"why","path":"a"}`, `{"path":"a","intent":"why"}`, ` { "path" : "a" , "intent" : 7 , "offset" : 3 } `,
		`{"path":"a","path":"b"}`, `{"pa\u0074h":"a"}`, `{"path":"a","pa\u0074h":7}`, `{"path":["ab","c\u00e9"],"how":"b\u00e9"}`, `{"path":["ab",1]}`, `{"path":[]}`,
		`{"edits":[{"n":1,"s":"x"},{"n":-1.5e3}]}`, `{"edits":[{"n":1,"n":"s"}]}`, `{"edits":[{"n":1,"x":2}]}`, `{"offset":1.0,"path":""}`, `{"offset":1e999,"path":""}`,
		`{"offset":9007199254740993,"path":"a"}`, `{"offset":-0,"path":"a","deep":null}`, `{"offset":11,"path":"a"}`, `{"path":"a"}}`, `{"path":"\"}{,\\"}`, "{\"path\":\"\xff\"}",
		`{"PATH":"a"}`, `{"path":"x","any":[{"a":[1,{"b":"}"}]}]}`, `{"path":"a","deep":true,"":1}`, `{"intent":"a","intent":"b","path":1}`, `{"path":"a"`, `{"path":"a",}`,
	} {
		for i := range schemas {
			f.Add(args, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		schema := schemas[int(which)%len(schemas)]
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(schema), &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}

		// What the second judge says.
		var want map[string]any
		valid := false
		if strings.TrimSpace(text) == "" {
			want, valid = map[string]any{}, true
		} else if err := json.Unmarshal([]byte(text), &want); err == nil && want != nil {
			valid = true
		} else if err != nil && strings.Contains(err.Error(), "into Go value of type float64") {
			t.Skip("a number that a float64 can't hold is the tool's business where its schema says nothing")
		}
		if _, own := s.Properties["intent"]; !own {
			delete(want, "intent")
		}
		for name := range want {
			for property := range s.Properties {
				if _, known := s.Properties[name]; !known && strings.EqualFold(property, name) {
					valid = false
				}
			}
		}
		valid = valid && resolved.Validate(want) == nil

		var got map[string]any
		ran := false
		b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{{Name: "look", Args: text}}}, script.Turn{Text: "ok"}))
		b.tools = append(b.tools, synapse.Tool{Name: "look", Schema: json.RawMessage(schema), Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
			ran = true
			if err := json.Unmarshal(in.Args, &got); err != nil {
				t.Errorf("the tool got %q: %v", in.Args, err)
			}
			if n := bytes.Count(in.Args, []byte(`"path"`)); n > 1 && strings.Count(text, "path") == n && !strings.Contains(text, `\`) && len(got) == 1 {
				t.Errorf("the tool got a name twice: %s", in.Args)
			}
			return synapse.TextResult("ok"), nil
		}})
		if schema == "true" { // the intent is added to objects
			b.opt = run.ProgramOptions{NoIntent: true}
			if strings.Contains(text, "intent") {
				t.Skip("without an intent of ours, it is an argument like others")
			}
		}
		b.graph.Specs[0].Policy.Allow = []string{"look"}
		b.run(t.Context(), "go")
		if ran != valid {
			t.Fatalf("%q against %s: the tool ran: %v, the arguments are valid: %v", text, schema, ran, valid)
		}
		if ran {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", text, diff)
			}
		}
	})
}

// TestNamesTwice: a tool that hands its arguments on to a program in another
// language can't be told something else than the rules have seen.
func TestNamesTwice(t *testing.T) {
	b := newBench(t, script.New(script.Turn{Calls: []synapse.ToolCall{{Name: "look", Args: `{"path":"a","intent":"x","pa\u0074h":"b"}`}}}, script.Turn{Text: "ok"}))
	b.tools = append(b.tools, synapse.Tool{Name: "look", Run: func(_ context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		return synapse.TextResult(string(in.Args)), nil
	}})
	b.graph.Specs[0].Policy.Allow = []string{"look"}
	if got := b.run(t.Context(), "go").results("main")[0]; got != `{"path":"b"}` {
		t.Errorf("the tool got %s", got)
	}
}
