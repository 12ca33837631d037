package remote

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// anthropicBody is a request in the format of Messages.
type anthropicBody struct {
	Model       string             `json:"model,omitempty"`
	Version     string             `json:"anthropic_version,omitempty"` // in the clouds
	MaxTokens   int64              `json:"max_tokens"`
	Thinking    *anthropicThinking `json:"thinking,omitempty"`
	Output      *anthropicOutput   `json:"output_config,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"`
	TopP        *float64           `json:"top_p,omitempty"`
	Tools       []anthropicTool    `json:"tools,omitempty"`
	System      []anthropicBlock   `json:"system,omitempty"`
	Messages    []anthropicMessage `json:"messages"`
	Stream      bool               `json:"stream,omitempty"`
}

type anthropicThinking struct {
	Type    string `json:"type"`
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type anthropicOutput struct {
	Effort string `json:"effort"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheMark      `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a block of content; its type says which fields it has.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	Thinking  *string          `json:"thinking,omitempty"` // may be empty, with a signature
	Signature string           `json:"signature,omitempty"`
	Data      string           `json:"data,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
	IsError   bool             `json:"is_error,omitempty"`
	Source    *anthropicSource `json:"source,omitempty"`
	Title     string           `json:"title,omitempty"`
	Cache     *cacheMark       `json:"cache_control,omitempty"`
}

type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// anthropicThought is what signs a thinking block, or stands for a redacted one.
type anthropicThought struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

func (m *model) anthropicBody(req *synapse.Request) (*anthropicBody, error) {
	body := &anthropicBody{Model: req.Model, MaxTokens: m.outputLimit(req), Stream: true}
	switch m.row.Name {
	case "bedrock":
		if err := claudeOnBedrock(req.Model); err != nil {
			return nil, err
		}
		body.Model, body.Version, body.Stream = "", "bedrock-2023-05-31", false
	case "vertex":
		body.Model, body.Version = "", "vertex-2023-10-16"
	}
	for _, t := range req.Tools {
		schema, err := schemaOf(t)
		if err != nil {
			return nil, err
		}
		body.Tools = append(body.Tools, anthropicTool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	if strings.TrimSpace(req.System) != "" {
		body.System = []anthropicBlock{{Type: "text", Text: req.System}}
	}
	for i := range req.Messages {
		body.add(&req.Messages[i])
	}
	claude := parseClaude(req.Model)
	body.think(claude, req.Effort)
	body.sample(claude, req)
	body.mark()
	return body, nil
}

// outputLimit is how much the model may write: the format wants it said. What
// is asked for is taken out of what the conversation may fill, so it is no more
// than a turn needs.
func (m *model) outputLimit(req *synapse.Request) int64 {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	if m.maxOutput != nil {
		if n := m.maxOutput(req.Model); n > 0 {
			if req.Effort == synapse.EffortHigh || req.Effort == synapse.EffortMax {
				return min(n, 64000)
			}
			return min(n, 32000)
		}
	}
	if v := parseClaude(req.Model); v.known && v.major == 3 {
		if v.minor >= 5 {
			return 8192
		}
		return 4096
	}
	return 32000
}

// add appends a message. What is of one role and adjoins is one message: all
// results of a reply's calls have to stand together, in front.
func (b *anthropicBody) add(msg *synapse.Message) {
	role, blocks := "user", []anthropicBlock(nil)
	switch msg.Role {
	case synapse.RoleAssistant:
		role, blocks = "assistant", anthropicReply(msg)
	case synapse.RoleTool:
		blocks = anthropicResults(msg)
	default:
		for _, p := range msg.Parts {
			switch {
			case p.Kind == synapse.PartMedia:
				blocks = append(blocks, anthropicMedia(p.Media))
			case strings.TrimSpace(p.Text) != "": // blank text is refused
				blocks = append(blocks, anthropicBlock{Type: "text", Text: p.Text})
			}
		}
	}
	if len(blocks) == 0 {
		return
	}
	last := len(b.Messages) - 1
	if last < 0 || b.Messages[last].Role != role {
		b.Messages = append(b.Messages, anthropicMessage{Role: role, Content: blocks})
		return
	}
	into := &b.Messages[last]
	if msg.Role != synapse.RoleTool {
		into.Content = append(into.Content, blocks...)
		return
	}
	// More results: in front of the media that earlier ones left over.
	at := len(into.Content)
	for at > 0 && into.Content[at-1].Type != "tool_result" {
		at--
	}
	rest := append([]anthropicBlock(nil), into.Content[at:]...)
	into.Content = append(append(into.Content[:at], blocks...), rest...)
}

func anthropicReply(msg *synapse.Message) []anthropicBlock {
	var blocks []anthropicBlock
	for _, p := range msg.Parts {
		switch {
		case p.Kind == synapse.PartCall:
			blocks = append(blocks, anthropicBlock{
				Type: "tool_use", ID: plainID(p.Call.ID), Name: p.Call.Name, Input: json.RawMessage(arguments(p.Call.Args)),
			})
		case p.Kind == synapse.PartMedia:
			blocks = append(blocks, anthropicBlock{Type: "text", Text: describe(p.Media)})
		case p.Kind == synapse.PartReasoning: // another provider's is left out: unsigned thinking is refused
			var own anthropicThought
			switch unseal(opaqueAnthropic, p.Opaque, &own); {
			case own.Signature != "":
				text := p.Text
				blocks = append(blocks, anthropicBlock{Type: "thinking", Thinking: &text, Signature: own.Signature})
			case own.Redacted != "":
				blocks = append(blocks, anthropicBlock{Type: "redacted_thinking", Data: own.Redacted})
			}
		case strings.TrimSpace(p.Text) != "":
			blocks = append(blocks, anthropicBlock{Type: "text", Text: p.Text})
		}
	}
	return blocks
}

// anthropicResults writes results with their images and documents within,
// except that an error may hold text alone: its media follow.
func anthropicResults(msg *synapse.Message) []anthropicBlock {
	var blocks, after []anthropicBlock
	for _, p := range msg.Parts {
		r := p.Result
		out := anthropicBlock{Type: "tool_result", ToolUseID: plainID(r.CallID), IsError: r.IsError}
		if strings.TrimSpace(r.Text) != "" {
			out.Content = []anthropicBlock{{Type: "text", Text: r.Text}}
		} else if r.IsError {
			out.Content = []anthropicBlock{{Type: "text", Text: "The tool failed and said nothing."}}
		}
		for i := range r.Media {
			block := anthropicMedia(&r.Media[i])
			if r.IsError && block.Type != "text" {
				after = append(after, anthropicBlock{Type: "text", Text: returnedBy(r)}, block)
			} else {
				out.Content = append(out.Content, block)
			}
		}
		blocks = append(blocks, out)
	}
	return append(blocks, after...)
}

func anthropicMedia(media *synapse.Media) anthropicBlock {
	source := &anthropicSource{Type: "base64", MediaType: mediaType(media), Data: base64.StdEncoding.EncodeToString(media.Data)}
	switch source.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return anthropicBlock{Type: "image", Source: source}
	case "application/pdf":
		return anthropicBlock{Type: "document", Source: source, Title: plainTitle(media.Name)}
	}
	if text, ok := textOf(media); ok {
		return anthropicBlock{Type: "text", Text: text}
	}
	return anthropicBlock{Type: "text", Text: describe(media)}
}

// plainTitle keeps of a file's name what a document's title may hold.
func plainTitle(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-()[]", c))
	}), " ")
}

// plainID writes another provider's id of a call in the letters that an id may
// have here, always in the same way.
func plainID(id string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	var b strings.Builder
	for _, c := range id {
		if plain(c) {
			b.WriteRune(c)
		} else {
			b.WriteString("_" + strconv.FormatInt(int64(c), 36) + "_")
		}
	}
	if b.Len() == 0 {
		return "call"
	}
	return b.String()
}

// mark asks to cache the tools, the system prompt, and the conversation up to
// its last message and up to the user's message before, which was the last one
// of an earlier request. There may be four marks.
func (b *anthropicBody) mark() {
	if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Cache = ephemeral
	}
	if n := len(b.System); n > 0 {
		b.System[n-1].Cache = ephemeral
	}
	for i, left := len(b.Messages)-1, 2; i >= 0 && left > 0; i-- {
		content := b.Messages[i].Content
		block := &content[len(content)-1]
		if b.Messages[i].Role == "user" || left == 2 && block.Type != "thinking" && block.Type != "redacted_thinking" {
			block.Cache = ephemeral
			left--
		}
	}
}

// sample sets temperature and top_p where the model takes them: not while it
// thinks, from 4.7 on not at all, and from 4.1 on not both.
func (b *anthropicBody) sample(v claude, req *synapse.Request) {
	if b.Thinking != nil && b.Thinking.Type != "disabled" || v.atLeast(4, 7) {
		return
	}
	b.Temperature = req.Temperature
	if req.Temperature == nil || !v.atLeast(4, 1) {
		b.TopP = req.TopP
	}
}

// think asks for an effort. Off is said by name: there are models that think
// when they are not told.
func (b *anthropicBody) think(v claude, e synapse.Effort) {
	switch {
	case e == "" || e == synapse.EffortInherit:
	case v.known && !v.atLeast(3, 7): // these can't think
	case e == synapse.EffortOff:
		b.Thinking = &anthropicThinking{Type: "disabled"}
	case v.atLeast(4, 6):
		word := string(e)
		if e == synapse.EffortMinimal {
			word = "low"
		}
		b.Thinking, b.Output = &anthropicThinking{Type: "adaptive"}, &anthropicOutput{Effort: word}
		if v.atLeast(4, 7) { // they hide their thoughts unless asked
			b.Thinking.Display = "summarized"
		}
	case b.midway():
		// A reply that went on without thinking, another model's perhaps, can't
		// be joined with thinking switched on.
	default:
		budget := map[synapse.Effort]int64{
			synapse.EffortMinimal: 1024, synapse.EffortLow: 4096, synapse.EffortMedium: 10000, synapse.EffortHigh: 16000, synapse.EffortMax: 32768,
		}[e]
		// The budget is a part of the limit, and what is said needs the rest.
		if budget = min(budget, b.MaxTokens-1024); budget >= 1024 { // the least there is
			b.Thinking = &anthropicThinking{Type: "enabled", Budget: budget}
		}
	}
}

// midway reports whether the last reply called tools without a signed thought
// in front, and waits for their results.
func (b *anthropicBody) midway() bool {
	n := len(b.Messages)
	if n < 2 || b.Messages[n-1].Role != "user" || b.Messages[n-1].Content[0].Type != "tool_result" {
		return false
	}
	first := b.Messages[n-2].Content[0].Type
	return first != "thinking" && first != "redacted_thinking"
}

// claude is a model's version as its name tells it.
type claude struct {
	known        bool
	major, minor int
}

func (v claude) atLeast(major, minor int) bool {
	return v.known && (v.major > major || v.major == major && v.minor >= minor)
}

// claudeName finds the version in a name: claude-3-5-sonnet-20241022,
// claude-opus-4-1, claude-sonnet-4-5@20250929, anthropic/claude-opus-4.6,
// us.anthropic.claude-haiku-4-5-20251001-v1:0. A date is no minor version.
var claudeName = regexp.MustCompile(`claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)

func parseClaude(name string) claude {
	name = strings.ToLower(name)
	found := claudeName.FindStringSubmatch(name)
	if found == nil {
		// One without a version is a recent one.
		return claude{known: strings.Contains(name, "claude"), major: 5}
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2]) // 0 where there is none
	return claude{known: true, major: major, minor: minor}
}
