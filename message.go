package synapse

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a [Message].
type Role string

// The roles of a conversation. The system prompt is not a message: it travels
// in [Request.System], so that trimming a history can never lose it.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// PartKind says which field of a [Part] carries its content.
type PartKind string

// The kinds of parts.
const (
	PartText      PartKind = "text"      // Text
	PartReasoning PartKind = "reasoning" // Text, and Opaque where the provider signs its reasoning
	PartCall      PartKind = "call"      // Call
	PartResult    PartKind = "result"    // Result
	PartMedia     PartKind = "media"     // Media
)

// A Part is one piece of a message. It is flat rather than an interface, so
// that a message is plain JSON in both directions.
type Part struct {
	Kind   PartKind    `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
	Media  *Media      `json:"media,omitempty"`
	// Opaque is the provider's own data about this part (a reasoning
	// signature, for example). It goes back to the same provider unchanged.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// A Message is one entry of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// UserText returns a user message of one text part.
func UserText(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{{Kind: PartText, Text: text}}}
}

// AssistantText returns an assistant message of one text part.
func AssistantText(text string) Message {
	return Message{Role: RoleAssistant, Parts: []Part{{Kind: PartText, Text: text}}}
}

// Text returns the message's text parts joined by newlines, without reasoning.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		if p.Kind == PartText && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Calls returns the tool calls of the message in their order.
func (m Message) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartCall && p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the JSON text just as the model sent it. It may be malformed:
	// whoever runs the call checks it, and the history keeps what was said.
	Args string `json:"args"`
}

// A ToolResult is what a tool call came to, as the model reads it.
type ToolResult struct {
	CallID  string  `json:"call_id"`
	Name    string  `json:"name"`
	Text    string  `json:"text"`
	IsError bool    `json:"is_error,omitempty"`
	Media   []Media `json:"media,omitempty"`
	// Details is for people and programs, never for the model: a diff, an
	// exit code, a count. Its shape belongs to the tool.
	Details json.RawMessage `json:"details,omitempty"`
}

// TextResult returns a successful result of that text; the loop fills in the call's identity.
func TextResult(text string) *ToolResult { return &ToolResult{Text: text} }

// ErrorResult returns a result the model reads as an error; the loop fills in the call's identity.
func ErrorResult(text string) *ToolResult { return &ToolResult{Text: text, IsError: true} }

// Media is a binary part: an image, a document, a sound.
type Media struct {
	Name string `json:"name,omitempty"`
	Type string `json:"type"` // MIME type
	Data []byte `json:"data"`
}
