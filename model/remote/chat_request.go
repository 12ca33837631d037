package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// chatBody is a request in the format of Chat Completions.
type chatBody struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []chatTool    `json:"tools,omitempty"`
	thinking
	MaxTokens           int64            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64            `json:"max_completion_tokens,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	TopP                *float64         `json:"top_p,omitempty"`
	Stream              bool             `json:"stream"`
	StreamOptions       *chatStreamExtra `json:"stream_options,omitempty"`
}

type chatStreamExtra struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content,omitempty"` // a string, or a []chatPart
	// ReasoningContent and ReasoningDetails give a model its own thoughts back.
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []chatToolCall  `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	ImageURL *chatURL   `json:"image_url,omitempty"`
	File     *chatFile  `json:"file,omitempty"`
	Audio    *chatAudio `json:"input_audio,omitempty"`
	Cache    *cacheMark `json:"cache_control,omitempty"`
}

type chatURL struct {
	URL string `json:"url"`
}

type chatFile struct {
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data"`
}

type chatAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

// cacheMark asks to keep the prompt up to here.
type cacheMark struct {
	Type string `json:"type"`
}

var ephemeral = &cacheMark{Type: "ephemeral"}

type chatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatCallName `json:"function"`
}

type chatCallName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (m *model) chatBody(req *synapse.Request) (*chatBody, error) {
	body := &chatBody{
		Model: req.Model, Temperature: req.Temperature, TopP: req.TopP,
		Stream: true, StreamOptions: &chatStreamExtra{IncludeUsage: true},
	}
	var err error
	if body.thinking, err = m.thinkingOf(req); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsupported, err)
	}
	// OpenAI's own models refuse the older name of the limit, and many servers
	// that speak their format the newer one.
	openai := m.row.Name == "azure" || m.row.Name == "openai" && m.own
	if openai {
		body.MaxCompletionTokens = req.MaxTokens
		if !plainOpenAI(req.Model) { // a model that reasons refuses these
			body.Temperature, body.TopP = nil, nil
		}
	} else {
		body.MaxTokens = req.MaxTokens
	}
	for _, t := range req.Tools {
		schema, err := schemaOf(t)
		if err != nil {
			return nil, err
		}
		body.Tools = append(body.Tools, chatTool{Type: "function", Function: chatFunction{Name: t.Name, Description: t.Description, Parameters: schema}})
	}
	e := chatEncoder{replay: m.row.replay, id: func(id string) string { return id }}
	if openai {
		e.replay = ""
	}
	if m.row.Name == "mistral" {
		e.id = shortID
	}
	if strings.TrimSpace(req.System) != "" {
		e.add(chatMessage{Role: "system", Content: req.System})
	}
	for i := range req.Messages {
		e.message(&req.Messages[i])
	}
	e.flush()
	if m.row.Name == "openrouter" && strings.HasPrefix(req.Model, "anthropic/") {
		markChat(e.messages)
	}
	body.Messages = e.messages
	return body, nil
}

// chatEncoder builds the messages one by one.
type chatEncoder struct {
	replay   string
	id       func(string) string
	messages []chatMessage
	// media is what tools returned beside text. The format has no place for it
	// in a result, and nothing may stand between the results of one reply, so
	// it waits until they are all there and follows as a user message.
	media []chatPart
}

func (e *chatEncoder) add(msg chatMessage) { e.messages = append(e.messages, msg) }

func (e *chatEncoder) flush() {
	if len(e.media) > 0 {
		e.add(chatMessage{Role: "user", Content: e.media})
		e.media = nil
	}
}

func (e *chatEncoder) message(msg *synapse.Message) {
	switch msg.Role {
	case synapse.RoleTool:
		e.results(msg)
	case synapse.RoleAssistant:
		e.flush()
		e.assistant(msg)
	default:
		e.flush()
		e.user(msg)
	}
}

func (e *chatEncoder) user(msg *synapse.Message) {
	var parts []chatPart
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartMedia:
			parts = append(parts, chatMedia(p.Media))
		case p.Text != "":
			parts = append(parts, chatPart{Type: "text", Text: p.Text})
		}
	}
	switch {
	case len(parts) == 1 && parts[0].Type == "text":
		e.add(chatMessage{Role: "user", Content: parts[0].Text})
	case len(parts) > 0:
		e.add(chatMessage{Role: "user", Content: parts})
	}
}

// assistant replays a reply, which has one place each for reasoning and text.
func (e *chatEncoder) assistant(msg *synapse.Message) {
	var reasoning, text []string
	var details []json.RawMessage
	out := chatMessage{Role: "assistant"}
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartCall:
			out.ToolCalls = append(out.ToolCalls, chatToolCall{
				ID: e.id(p.Call.ID), Type: "function", Function: chatCallName{Name: p.Call.Name, Arguments: arguments(p.Call.Args)},
			})
		case p.Kind == synapse.PartMedia:
			text = append(text, describe(p.Media)) // no wire lets a model repeat media it made; that it did is kept
		case p.Kind == synapse.PartReasoning:
			var own []json.RawMessage
			if unseal(opaqueOpenRouter, p.Opaque, &own) {
				details = append(details, own...)
			}
			if p.Text != "" {
				reasoning = append(reasoning, p.Text)
			}
		case p.Text != "":
			text = append(text, p.Text)
		}
	}
	switch e.replay {
	case "reasoning_content":
		out.ReasoningContent = strings.Join(reasoning, "\n")
	case "reasoning_details":
		if len(details) > 0 {
			out.ReasoningDetails, _ = marshal(details) // it was JSON
		}
	}
	if len(text) > 0 {
		out.Content = strings.Join(text, "\n")
	}
	if out.Content != nil || out.ToolCalls != nil || out.ReasoningContent != "" {
		e.add(out)
	}
}

func (e *chatEncoder) results(msg *synapse.Message) {
	for _, p := range msg.Parts {
		r := p.Result
		text := r.Text
		if text == "" && len(r.Media) > 0 {
			text = seeAttachments
		}
		if r.IsError {
			text = marked(text)
		}
		e.add(chatMessage{Role: "tool", ToolCallID: e.id(r.CallID), Content: text})
		for i := range r.Media {
			if i == 0 {
				e.media = append(e.media, chatPart{Type: "text", Text: returnedBy(r)})
			}
			e.media = append(e.media, chatMedia(&r.Media[i]))
		}
	}
}

func chatMedia(media *synapse.Media) chatPart {
	switch kind := mediaType(media); {
	case strings.HasPrefix(kind, "image/"):
		return chatPart{Type: "image_url", ImageURL: &chatURL{URL: dataURL(media)}}
	case kind == "application/pdf":
		return chatPart{Type: "file", File: &chatFile{Filename: media.Name, FileData: dataURL(media)}}
	case kind == "audio/wav", kind == "audio/mpeg", kind == "audio/mp3":
		format := "mp3"
		if kind == "audio/wav" {
			format = "wav"
		}
		return chatPart{Type: "input_audio", Audio: &chatAudio{Data: base64.StdEncoding.EncodeToString(media.Data), Format: format}}
	}
	if text, ok := textOf(media); ok {
		return chatPart{Type: "text", Text: text}
	}
	return chatPart{Type: "text", Text: describe(media)}
}

// markChat asks a gateway to Claude to cache up to the system prompt, which the
// tools stand before, and up to the last two messages that can be marked: the
// last but one was the last of an earlier request.
func markChat(messages []chatMessage) {
	mark := func(msg *chatMessage) bool {
		switch c := msg.Content.(type) {
		case string:
			msg.Content = []chatPart{{Type: "text", Text: c, Cache: ephemeral}}
		case []chatPart:
			c[len(c)-1].Cache = ephemeral
		default:
			return false
		}
		return true
	}
	if len(messages) > 0 && messages[0].Role == "system" {
		mark(&messages[0])
	}
	for i, left := len(messages)-1, 2; i > 0 && left > 0; i-- {
		if messages[i].Role != "assistant" && mark(&messages[i]) {
			left--
		}
	}
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
