package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	synapse "github.com/synapse-agents/synapse"
)

// The same request always gives the same bytes on the wire, and a longer
// conversation begins with what the shorter one sent: providers cache prompts
// by their prefix.

// check refuses a request whose messages can't be put on any wire.
func check(req *synapse.Request) error {
	allowed := map[synapse.Role]struct {
		article string
		kinds   []synapse.PartKind
	}{
		synapse.RoleUser:      {"a user", []synapse.PartKind{synapse.PartText, synapse.PartMedia}},
		synapse.RoleAssistant: {"an assistant", []synapse.PartKind{synapse.PartText, synapse.PartReasoning, synapse.PartCall, synapse.PartMedia}},
		synapse.RoleTool:      {"a tool", []synapse.PartKind{synapse.PartResult}},
	}
	for i, msg := range req.Messages {
		role, ok := allowed[msg.Role]
		if !ok {
			return fmt.Errorf("message %d: role %q: want user, assistant or tool", i+1, msg.Role)
		}
		for _, p := range msg.Parts {
			empty := p.Kind == synapse.PartCall && p.Call == nil || p.Kind == synapse.PartResult && p.Result == nil ||
				p.Kind == synapse.PartMedia && p.Media == nil
			if empty || !slices.Contains(role.kinds, p.Kind) {
				return fmt.Errorf("message %d: %s message holds a part of kind %q", i+1, role.article, p.Kind)
			}
		}
	}
	return nil
}

// schemaOf returns a tool's schema as an object with properties, without which
// some servers refuse it. What is below the outermost level keeps the order in
// which its author wrote it.
func schemaOf(t synapse.ToolDef) (json.RawMessage, error) {
	schema := map[string]json.RawMessage{}
	if len(t.Schema) > 0 {
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			return nil, fmt.Errorf("tool %s: schema is not a JSON object: %w", t.Name, err)
		}
		if schema == nil {
			return nil, fmt.Errorf("tool %s: schema is not a JSON object but null", t.Name)
		}
	}
	if schema["type"] == nil {
		schema["type"] = json.RawMessage(`"object"`)
	}
	if isNull(schema["properties"]) {
		schema["properties"] = json.RawMessage(`{}`)
	}
	return marshal(schema)
}

// marked says in words that a result is an error, for wires without a flag
// for it: the model must know.
func marked(text string) string {
	if len(text) >= 5 && strings.EqualFold(text[:5], "error") {
		return text
	}
	return "Error: " + text
}

// seeAttachments is the text of a result that is nothing but media which have
// to follow in a message of their own.
const seeAttachments = "See the attachments in the next message."

// returnedBy says which call the media after it belong to.
func returnedBy(r *synapse.ToolResult) string {
	return fmt.Sprintf("Returned by %s (call %s):", r.Name, r.CallID)
}

// arguments returns a call's arguments as a JSON object. What a model wrote may
// be none (it was told so in the result), but servers that parse the history
// would refuse it from then on, so the text travels inside an object.
func arguments(args string) string {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "":
		return "{}"
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return args
	}
	wrapped, err := marshal(map[string]string{"malformed_arguments": args})
	if err != nil { // a string always marshals
		return "{}"
	}
	return string(wrapped)
}

// mediaType returns a media's type without parameters, in lower case.
func mediaType(media *synapse.Media) string {
	kind, _, _ := strings.Cut(strings.ToLower(media.Type), ";")
	return strings.TrimSpace(kind)
}

// textOf returns media that are text as such: a file's name and its content.
func textOf(media *synapse.Media) (string, bool) {
	kind := mediaType(media)
	if !strings.HasPrefix(kind, "text/") && kind != "application/json" || !utf8.Valid(media.Data) {
		return "", false
	}
	name := media.Name
	if name == "" {
		name = kind
	}
	return name + ":\n" + string(media.Data), true
}

// describe stands for media that a wire has no place for: a model that is not
// told would not miss them.
func describe(media *synapse.Media) string {
	name := media.Name
	if name == "" {
		name = "an attachment"
	}
	return fmt.Sprintf("[%s, %s, %d bytes: of a type that can't be sent to this model]", name, media.Type, len(media.Data))
}

func dataURL(media *synapse.Media) string {
	return "data:" + mediaType(media) + ";base64," + base64.StdEncoding.EncodeToString(media.Data)
}

// A provider's own data about a part is kept under the name of whoever reads
// it again, so that no other provider is sent it.
const (
	opaqueAnthropic  = "anthropic"
	opaqueGemini     = "gemini"
	opaqueResponses  = "openai"
	opaqueOpenRouter = "openrouter"
)

// seal writes a provider's data about a part.
func seal(owner string, v any) json.RawMessage {
	data, err := marshal(map[string]any{owner: v})
	if err != nil { // what comes off a wire as JSON goes back to JSON
		return nil
	}
	return data
}

// unseal reads what seal wrote into v and reports whether there was any.
func unseal(owner string, opaque json.RawMessage, v any) bool {
	if len(opaque) == 0 {
		return false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(opaque, &fields) != nil || isNull(fields[owner]) {
		return false
	}
	return json.Unmarshal(fields[owner], v) == nil
}

func textDelta(text string) *synapse.Delta {
	return &synapse.Delta{Kind: synapse.DeltaText, Text: text}
}

func reasoningDelta(text string) *synapse.Delta {
	return &synapse.Delta{Kind: synapse.DeltaReasoning, Text: text}
}

func callDelta(id, name, args string) *synapse.Delta {
	return &synapse.Delta{Kind: synapse.DeltaCall, Call: &synapse.ToolCall{ID: id, Name: name, Args: args}}
}
