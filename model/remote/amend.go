package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openrouter"

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
//   - the calls' arguments as the model wrote them, which the layer below
//     writes anew;
//   - that thinking is off, for which it has no word;
//   - what it changes for Bedrock, in whose settings it is always used.
func (m *model) amendAnthropic(req *synapse.Request, call *fantasy.Call, schemas, args []json.RawMessage) amendment {
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
		switch m.row.Name {
		case "bedrock": // the address says which model, and that it is a stream
			body["anthropic_version"] = json.RawMessage(`"bedrock-2023-05-31"`)
		case "vertex":
			body["anthropic_version"] = json.RawMessage(`"vertex-2023-10-16"`)
			body["stream"] = json.RawMessage("true")
		default:
			name, err := marshal(req.Model)
			if err != nil {
				return err
			}
			body["model"] = name
			body["stream"] = json.RawMessage("true")
		}
		if thinking.disabled {
			body["thinking"] = json.RawMessage(`{"type":"disabled"}`)
		}
		calls := 0
		err := edit(body, "messages", eachPart("content", func(part object) error {
			if string(part["type"]) != `"tool_use"` {
				return nil
			}
			calls++
			return exact(part, "input", args, calls)
		}))
		if err != nil || len(schemas) == 0 {
			return err
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
//   - the calls' arguments as the model wrote them, and signatures as they
//     came (see geminiStream).
func (m *model) amendGemini(req *synapse.Request, schemas, args []json.RawMessage) amendment {
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
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == synapse.RoleAssistant {
			// The layer below takes the last message for the user's.
			err := edit(body, "contents", func(contents *[]object) error {
				if n := len(*contents); n > 0 {
					(*contents)[n-1]["role"] = json.RawMessage(`"model"`)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		calls := 0
		finish := func(part object) error {
			if !isNull(part["functionCall"]) {
				calls++
				err := edit(part, "functionCall", func(call *object) error { return exact(*call, "args", args, calls) })
				if err != nil {
					return err
				}
			}
			if m.row.Name == "vertex" { // which refuses the ids of calls
				for _, name := range []string{"functionCall", "functionResponse"} {
					if err := withoutID(part, name); err != nil {
						return err
					}
				}
			}
			return restoreSignature(part)
		}
		if err := edit(body, "contents", eachPart("parts", finish)); err != nil || len(schemas) == 0 {
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

// exact puts the arguments of the nth call in place.
func exact(call object, name string, args []json.RawMessage, n int) error {
	if n > len(args) {
		return errors.New("the layer below made up a call")
	}
	call[name] = args[n-1]
	return nil
}

// eachPart changes the parts of all messages.
func eachPart(name string, change func(object) error) func(*[]object) error {
	return func(contents *[]object) error {
		for _, content := range *contents {
			err := edit(content, name, func(parts *[]object) error {
				for _, part := range *parts {
					if err := change(part); err != nil {
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
}

func restoreSignature(part object) error {
	if isNull(part["thoughtSignature"]) {
		return nil
	}
	return edit(part, "thoughtSignature", func(signature *string) error {
		text, err := base64.StdEncoding.DecodeString(*signature)
		*signature = string(text)
		return err
	})
}

func withoutID(part object, name string) error {
	if isNull(part[name]) {
		return nil
	}
	return edit(part, name, func(fields *object) error {
		delete(*fields, "id")
		return nil
	})
}

// placedThought is a reasoning item and what it stands in front of: a call, or
// a text of a reply, counted over the whole conversation.
type placedThought struct {
	item json.RawMessage
	call string // empty: a text
	text int
}

// responsesThought returns a thought as the item that it was, nil for one that
// can't go back.
func responsesThought(p *synapse.Part) json.RawMessage {
	own := openai.GetReasoningMetadata(opened(p.Opaque))
	if own == nil || own.ItemID == "" || own.EncryptedContent == nil {
		return nil
	}
	summary := []any{}
	for _, text := range own.Summary {
		if text != "" {
			summary = append(summary, map[string]string{"type": "summary_text", "text": text})
		}
	}
	item, err := marshal(map[string]any{"type": "reasoning", "id": own.ItemID, "summary": summary, "encrypted_content": *own.EncryptedContent})
	if err != nil { // strings always marshal
		return nil
	}
	return item
}

// amendResponses asks for an effort, and puts back what was thought: the layer
// below leaves it out of the conversation, and a model that reasons then starts
// anew after every call. Of images it says how closely to look, which the format
// wants said.
func amendResponses(t thinking, thoughts []placedThought, images bool) amendment {
	if t.word == "" && len(thoughts) == 0 && !images {
		return nil
	}
	return func(body map[string]json.RawMessage) error {
		if t.word != "" {
			body["reasoning"], _ = marshal(map[string]string{"effort": t.word}) // a string always marshals
		}
		if images {
			if err := edit(body, "input", lookAtImages); err != nil {
				return err
			}
		}
		if len(thoughts) == 0 {
			return nil
		}
		return edit(body, "input", func(input *[]json.RawMessage) error {
			var out []json.RawMessage
			texts := 0
			for _, raw := range *input {
				var item struct {
					Type   string `json:"type"`
					Role   string `json:"role"`
					CallID string `json:"call_id"`
				}
				if err := json.Unmarshal(raw, &item); err != nil {
					return err
				}
				isText, isCall := item.Role == "assistant", item.Type == "function_call"
				for _, t := range thoughts {
					if isCall && t.call != "" && t.call == item.CallID || isText && t.call == "" && t.text == texts {
						out = append(out, t.item)
					}
				}
				if isText {
					texts++
				}
				out = append(out, raw)
			}
			*input = out
			return nil
		})
	}
}

func lookAtImages(input *[]object) error {
	for _, item := range *input {
		if raw := item["content"]; isNull(raw) || raw[0] != '[' {
			continue
		}
		err := edit(item, "content", func(parts *[]object) error {
			for _, part := range *parts {
				if string(part["type"]) == `"input_image"` && isNull(part["detail"]) {
					part["detail"] = json.RawMessage(`"auto"`)
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

// cacheKey tells OpenAI which requests begin alike, so that they come to where
// that beginning is cached: those with the same system prompt and tools.
func cacheKey(req *synapse.Request) *string {
	h := sha256.New()
	io.WriteString(h, req.System)
	for _, t := range req.Tools {
		io.WriteString(h, "\x00"+t.Name)
	}
	key := hex.EncodeToString(h.Sum(nil)[:16])
	return &key
}

// openedDetails returns what OpenRouter said about a reply's thoughts, nil if
// it said nothing.
func openedDetails(opaque json.RawMessage) json.RawMessage {
	var fields object
	if json.Unmarshal(opaque, &fields) != nil {
		return nil
	}
	return fields[openrouter.Name]
}

// amendOpenRouter returns what the body of a call to OpenRouter lacks: the
// thoughts of each reply as they came, and for Claude the marks that say up to
// where to cache, on the parts of a message, where alone they are heard.
func amendOpenRouter(details []json.RawMessage, marked bool) amendment {
	return func(body map[string]json.RawMessage) error {
		return edit(body, "messages", func(messages *[]object) error {
			replies, left := 0, 2
			for _, msg := range *messages {
				if string(msg["role"]) != `"assistant"` {
					continue
				}
				if replies < len(details) && !isNull(details[replies]) {
					msg["reasoning_details"] = details[replies]
				}
				replies++
			}
			if !marked {
				return nil
			}
			for i := len(*messages) - 1; i >= 0; i-- {
				msg := (*messages)[i]
				role := string(msg["role"])
				if role != `"system"` && (role == `"assistant"` || left == 0) {
					continue
				}
				done, err := markContent(msg)
				if err != nil {
					return err
				}
				if done {
					left--
				}
			}
			return nil
		})
	}
}

// markContent asks to cache up to a message's last part, and reports whether
// there is one that can carry the mark.
func markContent(msg object) (bool, error) {
	var parts []object
	if raw := msg["content"]; !isNull(raw) && raw[0] == '"' {
		if string(raw) == `""` {
			return false, nil
		}
		parts = []object{{"type": json.RawMessage(`"text"`), "text": raw}}
	} else if !isNull(raw) {
		if err := json.Unmarshal(raw, &parts); err != nil {
			return false, err
		}
	}
	if len(parts) == 0 {
		return false, nil
	}
	parts[len(parts)-1]["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
	data, err := marshal(parts)
	msg["content"] = data
	return true, err
}
