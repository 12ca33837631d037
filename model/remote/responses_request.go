package remote

import (
	"encoding/json"
	"fmt"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// responsesBody is a request in the format of Responses. Nothing is stored at
// the provider: the whole conversation is sent each time, with what the model
// thought in the encrypted form in which it was handed out.
type responsesBody struct {
	Model           string          `json:"model"`
	Input           []any           `json:"input"`
	Tools           []responsesTool `json:"tools,omitempty"`
	Include         []string        `json:"include,omitempty"`
	Store           bool            `json:"store"`
	Reasoning       *reasoning      `json:"reasoning,omitempty"`
	MaxOutputTokens int64           `json:"max_output_tokens,omitempty"`
	Temperature     *float64        `json:"temperature,omitempty"`
	TopP            *float64        `json:"top_p,omitempty"`
	Stream          bool            `json:"stream"`

	// media is what tools returned beside text, where a result can't hold it:
	// at servers that took the format over before it could.
	media  []responsesPart
	nested bool
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"` // true where it is left out
}

type responsesMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, or a []responsesPart
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

type responsesCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type responsesResult struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a string, or a []responsesPart
}

// responsesThought is a reasoning item, as it came and as it goes back.
type responsesThought struct {
	Type      string             `json:"type"`
	ID        string             `json:"id"`
	Summary   []responsesSummary `json:"summary"`
	Encrypted string             `json:"encrypted_content,omitempty"`
}

type responsesSummary struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (m *model) responsesBody(req *synapse.Request) (*responsesBody, error) {
	body := &responsesBody{Model: req.Model, MaxOutputTokens: req.MaxTokens, Stream: true, Temperature: req.Temperature, TopP: req.TopP}
	t, err := m.thinkingOf(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsupported, err)
	}
	switch {
	case t.Reasoning != nil:
		body.Reasoning = t.Reasoning
	case t.Effort != "":
		body.Reasoning = &reasoning{Effort: t.Effort}
	}
	system := "system"
	if m.row.Name == "openai" || m.row.Name == "azure" {
		if !plainOpenAI(req.Model) { // a model that reasons refuses these
			body.Temperature, body.TopP = nil, nil
			system = "developer"
		}
		if body.nested = m.own || m.row.Name == "azure"; body.nested && !plainOpenAI(req.Model) {
			body.Include = []string{"reasoning.encrypted_content"}
		}
	}
	for _, t := range req.Tools {
		schema, err := schemaOf(t)
		if err != nil {
			return nil, err
		}
		body.Tools = append(body.Tools, responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if strings.TrimSpace(req.System) != "" {
		body.Input = append(body.Input, responsesMessage{Role: system, Content: req.System})
	}
	for i := range req.Messages {
		switch msg := &req.Messages[i]; msg.Role {
		case synapse.RoleTool:
			body.results(msg)
		case synapse.RoleAssistant:
			body.flush()
			body.assistant(msg)
		default:
			body.flush()
			body.user(msg)
		}
	}
	body.flush()
	return body, nil
}

func (b *responsesBody) flush() {
	if len(b.media) > 0 {
		b.Input = append(b.Input, responsesMessage{Role: "user", Content: b.media})
		b.media = nil
	}
}

func (b *responsesBody) user(msg *synapse.Message) {
	var parts []responsesPart
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartMedia:
			parts = append(parts, responsesMedia(p.Media))
		case p.Text != "":
			parts = append(parts, responsesPart{Type: "input_text", Text: p.Text})
		}
	}
	if len(parts) > 0 {
		b.Input = append(b.Input, responsesMessage{Role: "user", Content: parts})
	}
}

// assistant replays a reply. A thought is refused without what came of it, and
// another provider's has no place here.
func (b *responsesBody) assistant(msg *synapse.Message) {
	var thought *responsesThought
	add := func(item any) {
		if thought != nil {
			b.Input = append(b.Input, *thought)
			thought = nil
		}
		b.Input = append(b.Input, item)
	}
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartCall:
			add(responsesCall{Type: "function_call", CallID: p.Call.ID, Name: p.Call.Name, Arguments: arguments(p.Call.Args)})
		case p.Kind == synapse.PartMedia:
			add(responsesMessage{Role: "assistant", Content: describe(p.Media)})
		case p.Kind == synapse.PartReasoning:
			var own responsesThought
			if unseal(opaqueResponses, p.Opaque, &own) && own.Encrypted != "" {
				if own.Type = "reasoning"; own.Summary == nil {
					own.Summary = []responsesSummary{}
				}
				thought = &own
			}
		case p.Text != "":
			add(responsesMessage{Role: "assistant", Content: p.Text})
		}
	}
}

func (b *responsesBody) results(msg *synapse.Message) {
	for _, p := range msg.Parts {
		r := p.Result
		text := r.Text
		if text == "" && len(r.Media) > 0 && !b.nested {
			text = seeAttachments
		}
		if r.IsError {
			text = marked(text)
		}
		var parts []responsesPart
		for i := range r.Media {
			parts = append(parts, responsesMedia(&r.Media[i]))
		}
		out := responsesResult{Type: "function_call_output", CallID: r.CallID, Output: text}
		switch {
		case len(parts) == 0:
		case b.nested && text == "":
			out.Output = parts
		case b.nested:
			out.Output = append([]responsesPart{{Type: "input_text", Text: text}}, parts...)
		default:
			b.media = append(append(b.media, responsesPart{Type: "input_text", Text: returnedBy(r)}), parts...)
		}
		b.Input = append(b.Input, out)
	}
}

func responsesMedia(media *synapse.Media) responsesPart {
	switch kind := mediaType(media); {
	case strings.HasPrefix(kind, "image/"):
		return responsesPart{Type: "input_image", ImageURL: dataURL(media), Detail: "auto"}
	case kind == "application/pdf":
		name := media.Name
		if name == "" {
			name = "document.pdf" // it is refused without one
		}
		return responsesPart{Type: "input_file", Filename: name, FileData: dataURL(media)}
	}
	if text, ok := textOf(media); ok {
		return responsesPart{Type: "input_text", Text: text}
	}
	return responsesPart{Type: "input_text", Text: describe(media)}
}
