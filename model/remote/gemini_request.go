package remote

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// geminiBody is a request in the format of streamGenerateContent.
type geminiBody struct {
	System   *geminiContent   `json:"systemInstruction,omitempty"`
	Tools    []geminiTools    `json:"tools,omitempty"`
	Contents []geminiContent  `json:"contents"`
	Config   *geminiGenConfig `json:"generationConfig,omitempty"`
}

type geminiTools struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string         `json:"text,omitempty"` // may be empty, with a signature
	Signature string          `json:"thoughtSignature,omitempty"`
	Inline    *geminiInline   `json:"inlineData,omitempty"`
	Call      *geminiCall     `json:"functionCall,omitempty"`
	Response  *geminiResponse `json:"functionResponse,omitempty"`
}

type geminiInline struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID       string       `json:"id,omitempty"`
	Name     string       `json:"name"`
	Response geminiResult `json:"response"`
	Parts    []geminiPart `json:"parts,omitempty"`
}

type geminiResult struct {
	Output *string `json:"output,omitempty"`
	Error  string  `json:"error,omitempty"`
}

type geminiGenConfig struct {
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"topP,omitempty"`
	MaxTokens   int64           `json:"maxOutputTokens,omitempty"`
	Thinking    *geminiThinking `json:"thinkingConfig,omitempty"`
}

type geminiThinking struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	Level           string `json:"thinkingLevel,omitempty"`
	Budget          *int64 `json:"thinkingBudget,omitempty"`
}

// geminiThought is the signature that belongs to a call, or to the text before it.
type geminiThought struct {
	Signature string `json:"signature"`
}

// foreignCall is what the provider takes in place of a signature for a call
// that another model made.
const foreignCall = "skip_thought_signature_validator"

func (m *model) geminiBody(req *synapse.Request) (*geminiBody, error) {
	e := geminiEncoder{version: parseGemini(req.Model), vertex: m.row.Name == "vertex", names: map[string]string{}}
	body := &geminiBody{}
	for i := range req.Messages {
		e.message(&req.Messages[i])
	}
	body.Contents = e.contents
	if strings.TrimSpace(req.System) != "" {
		system := geminiPart{Text: &req.System}
		if strings.HasPrefix(strings.ToLower(req.Model), "gemma") && len(body.Contents) > 0 && body.Contents[0].Role == "user" {
			// These take no system prompt.
			body.Contents[0].Parts = append([]geminiPart{system}, body.Contents[0].Parts...)
		} else {
			body.System = &geminiContent{Parts: []geminiPart{system}}
		}
	}
	var tools geminiTools
	for _, t := range req.Tools {
		schema, err := schemaOf(t)
		if err != nil {
			return nil, err
		}
		tools.Functions = append(tools.Functions, geminiFunction{Name: t.Name, Description: t.Description, Schema: schema})
	}
	if tools.Functions != nil {
		body.Tools = []geminiTools{tools}
	}
	config := geminiGenConfig{Temperature: req.Temperature, TopP: req.TopP, MaxTokens: req.MaxTokens, Thinking: e.version.thinking(req)}
	if config != (geminiGenConfig{}) {
		body.Config = &config
	}
	return body, nil
}

// geminiEncoder builds the contents message by message.
type geminiEncoder struct {
	version  gemini
	vertex   bool // which refuses the ids of calls
	names    map[string]string
	contents []geminiContent
}

// message appends a message. Results of one reply stand together.
func (e *geminiEncoder) message(msg *synapse.Message) {
	var parts []geminiPart
	switch msg.Role {
	case synapse.RoleTool:
		e.results(msg)
		return
	case synapse.RoleAssistant:
		parts = e.reply(msg)
	default:
		for _, p := range msg.Parts {
			switch {
			case p.Kind == synapse.PartMedia:
				parts = append(parts, geminiMedia(p.Media))
			case p.Text != "":
				parts = append(parts, geminiText(p.Text))
			}
		}
	}
	if len(parts) > 0 {
		role := map[bool]string{true: "model", false: "user"}[msg.Role == synapse.RoleAssistant]
		e.contents = append(e.contents, geminiContent{Role: role, Parts: parts})
	}
}

func geminiText(s string) geminiPart { return geminiPart{Text: &s} }

func (e *geminiEncoder) reply(msg *synapse.Message) []geminiPart {
	var parts []geminiPart
	calls := 0
	for _, p := range msg.Parts {
		var own geminiThought
		unseal(opaqueGemini, p.Opaque, &own) // without one it stays empty
		switch {
		case p.Kind == synapse.PartCall:
			e.names[p.Call.ID] = p.Call.Name
			call := &geminiCall{ID: p.Call.ID, Name: p.Call.Name, Args: json.RawMessage(arguments(p.Call.Args))}
			if e.vertex {
				call.ID = ""
			}
			// The first call of a reply is refused without a signature.
			if calls++; calls == 1 && own.Signature == "" && e.version.major >= 3 {
				own.Signature = foreignCall
			}
			parts = append(parts, geminiPart{Call: call, Signature: own.Signature})
		case p.Kind == synapse.PartMedia:
			parts = append(parts, geminiText(describe(p.Media)))
		case p.Kind == synapse.PartReasoning: // thoughts don't go back, what signs them does
			if own.Signature != "" {
				parts = append(parts, geminiPart{Text: new(string), Signature: own.Signature})
			}
		case p.Text != "":
			parts = append(parts, geminiText(p.Text))
		}
	}
	return parts
}

// results writes results in one content, in the order of the calls, their
// media within them where the model takes that, else behind all of them.
func (e *geminiEncoder) results(msg *synapse.Message) {
	last := len(e.contents) - 1
	if last < 0 || e.contents[last].Role != "user" || e.contents[last].Parts[0].Response == nil {
		e.contents = append(e.contents, geminiContent{Role: "user"})
		last++
	}
	into := &e.contents[last]
	at := 0
	for at < len(into.Parts) && into.Parts[at].Response != nil {
		at++
	}
	responses, media := into.Parts[:at:at], into.Parts[at:]
	for _, p := range msg.Parts {
		r := p.Result
		out := &geminiResponse{ID: r.CallID, Name: r.Name}
		if out.Name == "" {
			out.Name = e.names[r.CallID]
		}
		if e.vertex {
			out.ID = ""
		}
		text := r.Text
		if r.IsError {
			if out.Response.Error = text; text == "" {
				out.Response.Error = "the tool failed and said nothing"
			}
		} else {
			out.Response.Output = &text
		}
		for i := range r.Media {
			part := geminiMedia(&r.Media[i])
			switch {
			case part.Inline != nil && e.version.major >= 3:
				out.Parts = append(out.Parts, part)
			case i == 0:
				media = append(media[:len(media):len(media)], geminiText(returnedBy(r)), part)
			default:
				media = append(media, part)
			}
		}
		responses = append(responses, geminiPart{Response: out})
	}
	into.Parts = append(responses, media...)
}

func geminiMedia(media *synapse.Media) geminiPart {
	kind := mediaType(media)
	for _, prefix := range []string{"image/", "audio/", "video/", "application/pdf"} {
		if strings.HasPrefix(kind, prefix) {
			return geminiPart{Inline: &geminiInline{MimeType: kind, Data: media.Data}}
		}
	}
	if text, ok := textOf(media); ok {
		return geminiText(text)
	}
	return geminiText(describe(media))
}

// gemini is a model's version as its name tells it; zero where it doesn't.
type gemini struct {
	major, minor int
	pro, plain   bool // plain: it can't think
}

var geminiVersion = regexp.MustCompile(`gemini-(\d{1,2})(?:\.(\d{1,2}))?`)

func parseGemini(name string) gemini {
	name = strings.ToLower(name)
	v := gemini{pro: strings.Contains(name, "pro"), plain: strings.Contains(name, "gemma")}
	found := geminiVersion.FindStringSubmatch(name)
	if found == nil {
		return v
	}
	v.major, _ = strconv.Atoi(found[1])
	v.minor, _ = strconv.Atoi(found[2]) // 0 where there is none
	v.plain = v.major < 2 || v.major == 2 && v.minor < 5
	return v
}

// thinking asks for an effort. Names without a version ("gemini-flash-latest")
// take budgets, as all do that can think.
func (v gemini) thinking(req *synapse.Request) *geminiThinking {
	e := req.Effort
	switch {
	case e == "" || e == synapse.EffortInherit || v.plain:
		return nil
	case e == synapse.EffortOff:
		return &geminiThinking{Budget: new(int64)}
	case v.major >= 3:
		word := string(e)
		switch {
		case e == synapse.EffortMax:
			word = "high"
		case e == synapse.EffortMinimal && v.pro:
			word = "low"
		case e == synapse.EffortMedium && v.pro && v.major == 3 && v.minor == 0: // knows two
			word = "high"
		}
		return &geminiThinking{IncludeThoughts: true, Level: word}
	}
	budget := map[synapse.Effort]int64{
		synapse.EffortMinimal: 512, synapse.EffortLow: 1024, synapse.EffortMedium: 8192, synapse.EffortHigh: 24576, synapse.EffortMax: 24576,
	}[e]
	if e == synapse.EffortMax && v.pro {
		budget = 32768
	}
	return &geminiThinking{IncludeThoughts: true, Budget: &budget}
}

// geminiName returns the part of an address that names a model. What has a
// slash in it names its collection itself: "tunedModels/mine".
func geminiName(name string) string {
	if collection, rest, ok := strings.Cut(name, "/"); ok {
		return url.PathEscape(collection) + "/" + url.PathEscape(rest)
	}
	return "models/" + url.PathEscape(name)
}
