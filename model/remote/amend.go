package remote

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"charm.land/fantasy"

	synapse "github.com/synapse-agents/synapse"
)

// An amendment changes the body of a request where the layer below has no word
// for what is to be said. It sees the outermost fields; what it leaves alone
// goes out as it was.
type amendment func(body map[string]json.RawMessage) error

func (a amendment) apply(data []byte) ([]byte, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, err
	}
	if err := a(body); err != nil {
		return nil, err
	}
	return marshal(body)
}

// edit changes one field of a body.
func edit[T any](fields map[string]json.RawMessage, name string, change func(*T) error) error {
	var value T
	if raw := fields[name]; !isNull(raw) {
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := change(&value); err != nil {
		return err
	}
	data, err := marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fields[name] = data
	return nil
}

type object = map[string]json.RawMessage

var errToolsDiffer = errors.New("the layer below left out a tool")

// amendAnthropic finishes a call to Claude and returns what its body lacks:
//
//   - the tools' schemas, of which the layer below sends properties and
//     required names and drops the rest, definitions that they refer to among it;
//   - that thinking is off, for which it has no word;
//   - what it changes for Bedrock, in whose settings it is always used.
func (m *model) amendAnthropic(req *synapse.Request, call *fantasy.Call, schemas []json.RawMessage) amendment {
	v := parseClaude(req.Model)
	limit := v.outputLimit(req)
	call.MaxOutputTokens = &limit
	thinking := v.thinking(req, limit)
	v.sample(call, req, thinking.on())
	if thinking.on() {
		call.ProviderOptions = fantasy.ProviderOptions{"anthropic": thinking.options}
	}
	mark(call)
	return func(body map[string]json.RawMessage) error {
		delete(body, "anthropic_version")
		body["stream"] = json.RawMessage("true")
		name, err := marshal(req.Model)
		if err != nil {
			return err
		}
		body["model"] = name
		if thinking.disabled {
			body["thinking"] = json.RawMessage(`{"type":"disabled"}`)
		}
		if len(schemas) == 0 {
			return nil
		}
		return edit(body, "tools", func(tools *[]object) error {
			if len(*tools) != len(schemas) {
				return errToolsDiffer
			}
			for i, schema := range schemas {
				(*tools)[i]["input_schema"] = schema
			}
			return nil
		})
	}
}

// amendGemini returns what the body of a call to Gemini lacks:
//
//   - the tools' schemas, of which the layer below keeps types and
//     descriptions and drops the rest;
//   - its settings: the layer below raises a thinking budget of 0, which is
//     off, to 128, and rounds numbers to half their digits;
//   - signatures as they came (see geminiStream).
func (m *model) amendGemini(req *synapse.Request, schemas []json.RawMessage) amendment {
	config := geminiConfig{
		Temperature: req.Temperature, TopP: req.TopP, MaxTokens: req.MaxTokens, Thinking: parseGemini(req.Model).thinking(req.Effort),
	}
	return func(body map[string]json.RawMessage) error {
		delete(body, "generationConfig")
		if config != (geminiConfig{}) {
			data, err := marshal(config)
			if err != nil {
				return err
			}
			body["generationConfig"] = data
		}
		if err := edit(body, "contents", restoreSignatures); err != nil || len(schemas) == 0 {
			return err
		}
		return edit(body, "tools", func(tools *[]object) error {
			if len(*tools) != 1 {
				return errToolsDiffer
			}
			return edit((*tools)[0], "functionDeclarations", func(functions *[]object) error {
				if len(*functions) != len(schemas) {
					return errToolsDiffer
				}
				for i, schema := range schemas {
					delete((*functions)[i], "parameters")
					(*functions)[i]["parametersJsonSchema"] = schema
				}
				return nil
			})
		})
	}
}

func restoreSignatures(contents *[]object) error {
	for _, content := range *contents {
		err := edit(content, "parts", func(parts *[]object) error {
			for _, part := range *parts {
				if isNull(part["thoughtSignature"]) {
					continue
				}
				err := edit(part, "thoughtSignature", func(signature *string) error {
					text, err := base64.StdEncoding.DecodeString(*signature)
					*signature = string(text)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
