package remote

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openrouter"

	synapse "github.com/synapse-agents/synapse"
)

// encode turns a request into a fantasy call, and says how the body that
// becomes of it is to be amended. The same request always gives the same bytes
// on the wire, and a longer conversation begins with the bytes of the shorter
// one: providers cache prompts by their prefix.
func (m *model) encode(req *synapse.Request) (fantasy.Call, amendment, error) {
	wire := m.wireFor(req.Model)
	call := fantasy.Call{Temperature: req.Temperature, TopP: req.TopP}
	if req.MaxTokens > 0 {
		limit := req.MaxTokens
		call.MaxOutputTokens = &limit
	}
	schemas := make([]json.RawMessage, 0, len(req.Tools))
	for _, t := range req.Tools {
		s, err := m.schemas.of(t)
		if err != nil {
			return fantasy.Call{}, nil, err
		}
		tool := fantasy.FunctionTool{Name: t.Name, Description: t.Description, InputSchema: s.fields}
		if wire == WireAnthropic || wire == WireGemini {
			tool.InputSchema = nil // the amendment has it whole
		}
		schemas = append(schemas, s.whole)
		call.Tools = append(call.Tools, tool)
	}
	if strings.TrimSpace(req.System) != "" {
		call.Prompt = append(call.Prompt, fantasy.NewSystemMessage(req.System))
	}
	e := encoder{wire: wire, routed: m.row.Name == openrouter.Name, mute: m.row.mute, short: m.row.Name == "mistral"}
	if wire == WireGemini {
		e.gemini = parseGemini(req.Model)
	}
	for i := range req.Messages {
		if err := e.message(&req.Messages[i]); err != nil {
			return fantasy.Call{}, nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	e.flush()
	call.Prompt = append(call.Prompt, e.prompt...)
	switch wire {
	case WireAnthropic:
		if m.row.Name == "bedrock" {
			if err := claudeOnBedrock(req.Model); err != nil {
				return fantasy.Call{}, nil, err
			}
		}
		return call, m.amendAnthropic(req, &call, schemas, e.args), nil
	case WireGemini:
		return call, m.amendGemini(req, schemas, e.args), nil
	}
	if wire == WireResponses {
		call.ProviderOptions = m.responsesOptions(req)
		t, err := m.thinkingOf(req)
		return call, amendResponses(t, e.thoughts, e.images), err
	}
	var err error
	call.ProviderOptions, err = m.chatOptions(req)
	if e.routed {
		return call, amendOpenRouter(e.details, strings.Contains(strings.ToLower(req.Model), "claude")), err
	}
	return call, nil, err
}

// encoder builds a prompt message by message.
type encoder struct {
	wire   Wire
	gemini gemini // the model's version, on its wire
	routed bool   // OpenRouter is asked
	mute   bool   // reasoning is refused in a conversation
	short  bool   // ids of calls have nine letters and digits
	// details is what OpenRouter said about the thoughts of each reply, and
	// thoughts are those of OpenAI's, by where they belong. The layers below
	// have no place for either.
	details  []json.RawMessage
	thoughts []placedThought
	texts    int               // texts of replies so far
	args     []json.RawMessage // of all calls
	images   bool              // there are any
	prompt   fantasy.Prompt
	// media is what tools returned beside text. These wires have no place for
	// it in a result, and nothing may stand between the results of one reply,
	// so it waits until they are all there and follows as a user message.
	media []fantasy.MessagePart
}

func (e *encoder) flush() {
	if len(e.media) > 0 {
		e.add(fantasy.MessageRoleUser, e.media)
		e.media = nil
	}
}

func (e *encoder) add(role fantasy.MessageRole, parts []fantasy.MessagePart) {
	if len(parts) > 0 {
		e.prompt = append(e.prompt, fantasy.Message{Role: role, Content: parts})
	}
}

func (e *encoder) message(msg *synapse.Message) error {
	switch msg.Role {
	case synapse.RoleTool:
		return e.results(msg)
	case synapse.RoleAssistant:
		e.flush()
		return e.assistant(msg)
	case synapse.RoleUser:
		e.flush()
		return e.user(msg)
	}
	return fmt.Errorf("role %q: want user, assistant or tool", msg.Role)
}

func (e *encoder) user(msg *synapse.Message) error {
	var parts []fantasy.MessagePart
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartText && e.blank(p.Text):
		case p.Kind == synapse.PartText:
			parts = append(parts, fantasy.TextPart{Text: p.Text})
		case p.Kind == synapse.PartMedia && p.Media != nil:
			parts = append(parts, e.attachment(p.Media))
		default:
			return fmt.Errorf("a user message holds a part of kind %q", p.Kind)
		}
	}
	e.add(fantasy.MessageRoleUser, parts)
	return nil
}

// assistant replays a reply. Chat Completions has one place each for reasoning
// and text, in which the layer below would keep only the last of several.
func (e *encoder) assistant(msg *synapse.Message) error {
	var parts, calls []fantasy.MessagePart
	var reasoning, text []string
	var details json.RawMessage
	var waiting []json.RawMessage // thoughts that precede the next part
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartCall && p.Call != nil:
			args := arguments(p.Call.Args)
			e.args = append(e.args, json.RawMessage(args))
			call := fantasy.ToolCallPart{ToolCallID: e.id(p.Call.ID), ToolName: p.Call.Name, Input: args, ProviderOptions: opened(p.Opaque)}
			if e.wire == WireChat {
				calls = append(calls, call)
			} else {
				parts = append(parts, call)
			}
			waiting = e.place(waiting, placedThought{call: p.Call.ID})
		case p.Kind == synapse.PartText && e.blank(p.Text):
		case p.Kind == synapse.PartText && e.wire == WireChat:
			text = append(text, p.Text)
		case p.Kind == synapse.PartText:
			parts = append(parts, fantasy.TextPart{Text: p.Text})
			waiting = e.place(waiting, placedThought{text: e.texts})
			e.texts++
		case p.Kind == synapse.PartReasoning && e.routed:
			if own := openedDetails(p.Opaque); own != nil {
				details = own
			}
		case p.Kind == synapse.PartReasoning && e.wire == WireChat && e.mute:
		case p.Kind == synapse.PartReasoning && e.wire == WireChat:
			reasoning = append(reasoning, p.Text)
		case p.Kind == synapse.PartReasoning && e.wire == WireResponses:
			if item := responsesThought(&p); item != nil {
				waiting = append(waiting, item)
			}
		case p.Kind == synapse.PartReasoning:
			parts = append(parts, fantasy.ReasoningPart{Text: p.Text, ProviderOptions: opened(p.Opaque)})
		case p.Kind == synapse.PartMedia && p.Media != nil:
			// No wire lets a model repeat media it made; that it did is kept.
			text = append(text, describe(p.Media))
		default:
			return fmt.Errorf("an assistant message holds a part of kind %q", p.Kind)
		}
	}
	if len(reasoning) > 0 {
		parts = append(parts, fantasy.ReasoningPart{Text: strings.Join(reasoning, "\n")})
	}
	if len(text) > 0 {
		parts = append(parts, fantasy.TextPart{Text: strings.Join(text, "\n")})
		e.texts++
	}
	parts = append(parts, calls...)
	if e.wire == WireGemini {
		parts = geminiReply(parts, e.gemini)
	}
	if e.routed && len(parts) > 0 {
		e.details = append(e.details, details)
	}
	e.add(fantasy.MessageRoleAssistant, parts)
	return nil
}

// place notes where the thoughts that waited belong.
func (e *encoder) place(waiting []json.RawMessage, at placedThought) []json.RawMessage {
	for _, item := range waiting {
		at.item = item
		e.thoughts = append(e.thoughts, at)
	}
	return nil
}

// id returns a call's id in the letters that the wire takes.
func (e *encoder) id(id string) string {
	switch {
	case e.wire == WireAnthropic:
		return plainID(id)
	case e.short:
		return shortID(id)
	}
	return id
}

// shortID returns an id of nine letters and digits, the only ones that Mistral
// takes. Its own are; another provider's become a digest.
func shortID(id string) string {
	const size = 9
	fits := len(id) == size
	for _, c := range id {
		fits = fits && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	if fits {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	digits := new(big.Int).SetBytes(sum[:]).Text(62)
	return digits[:size]
}

// blank reports whether a text is none. Anthropic refuses white space alone.
func (e *encoder) blank(text string) bool {
	return text == "" || e.wire == WireAnthropic && strings.TrimSpace(text) == ""
}

func (e *encoder) results(msg *synapse.Message) error {
	var parts []fantasy.MessagePart
	for _, p := range msg.Parts {
		if p.Kind != synapse.PartResult || p.Result == nil {
			return fmt.Errorf("a tool message holds a part of kind %q", p.Kind)
		}
		r := p.Result
		text := r.Text
		if text == "" && len(r.Media) > 0 {
			text = "See the attachments in the next message."
		}
		if e.wire == WireAnthropic && e.blank(text) {
			text = "(no output)"
		}
		var output fantasy.ToolResultOutputContent = fantasy.ToolResultOutputContentText{Text: text}
		if r.IsError {
			output = fantasy.ToolResultOutputContentError{Error: errors.New(marked(text))}
		}
		parts = append(parts, fantasy.ToolResultPart{ToolCallID: e.id(r.CallID), Output: output})
		for i := range r.Media {
			if i == 0 {
				e.media = append(e.media, fantasy.TextPart{Text: fmt.Sprintf("Returned by %s (call %s):", r.Name, r.CallID)})
			}
			e.media = append(e.media, e.attachment(&r.Media[i]))
		}
	}
	// All results of a reply stand together: some wires count them.
	if n := len(e.prompt); n > 0 && len(parts) > 0 && e.prompt[n-1].Role == fantasy.MessageRoleTool {
		e.prompt[n-1].Content = append(e.prompt[n-1].Content, parts...)
		return nil
	}
	e.add(fantasy.MessageRoleTool, parts)
	return nil
}

// marked says in words that a result is an error: these wires have no flag
// for it, and the model must know.
func marked(text string) string {
	if len(text) >= 5 && strings.EqualFold(text[:5], "error") {
		return text
	}
	return "Error: " + text
}

// arguments returns a call's arguments as valid JSON. What a model wrote may
// not be (it was told so in the result), but servers that parse the history
// would refuse it from then on, so the text travels inside an object.
func arguments(args string) string {
	trimmed := strings.TrimSpace(args)
	switch {
	case trimmed == "":
		return "{}"
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return args
	}
	wrapped, err := json.Marshal(map[string]string{"malformed_arguments": args})
	if err != nil { // a string always marshals
		return "{}"
	}
	return string(wrapped)
}

// attachment encodes media in the form the wire has for it: as itself, as text
// where it is text, and where there is none as a line that says what is
// missing. The layer below would drop it without a word.
func (e *encoder) attachment(media *synapse.Media) fantasy.MessagePart {
	kind, _, _ := strings.Cut(strings.ToLower(media.Type), ";")
	kind = strings.TrimSpace(kind)
	e.images = e.images || strings.HasPrefix(kind, "image/")
	file := fantasy.FilePart{Filename: media.Name, Data: media.Data, MediaType: kind}
	switch {
	case e.wire == WireAnthropic && strings.HasPrefix(kind, "image/") && !slices.Contains(anthropicImages, kind):
		return fantasy.TextPart{Text: describe(media)}
	case strings.HasPrefix(kind, "image/"), kind == "application/pdf":
		return file
	case e.wire == WireGemini && (strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/")):
		return file
	case e.wire == WireChat && (kind == "audio/wav" || kind == "audio/mpeg" || kind == "audio/mp3"):
		return file
	case (strings.HasPrefix(kind, "text/") || kind == "application/json") && utf8.Valid(media.Data):
		name := media.Name
		if name == "" {
			name = kind
		}
		return fantasy.TextPart{Text: name + ":\n" + string(media.Data)}
	}
	return fantasy.TextPart{Text: describe(media)}
}

// anthropicImages are the types of images that Anthropic takes.
var anthropicImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func describe(media *synapse.Media) string {
	name := media.Name
	if name == "" {
		name = "an attachment"
	}
	return fmt.Sprintf("[%s, %s, %d bytes: of a type that can't be sent to this model]", name, media.Type, len(media.Data))
}

// opened reads what sealed wrote. Another provider's data is not for this one
// and is left out.
func opened(opaque json.RawMessage) fantasy.ProviderOptions {
	if len(opaque) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(opaque, &fields) != nil {
		return nil
	}
	options, err := fantasy.UnmarshalProviderOptions(fields)
	if err != nil {
		return nil
	}
	return options
}

// sealed writes a provider's data about a part as JSON.
func sealed(metadata fantasy.ProviderMetadata) json.RawMessage {
	if len(metadata) == 0 {
		return nil
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return nil
	}
	return data
}
