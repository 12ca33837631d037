package remote

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/google"

	synapse "github.com/synapse-agents/synapse"
)

// geminiStream reads Gemini's streamGenerateContent: each event is a piece of a
// response, calls come whole, and the reply ends with the body. Calls are held
// back until then: a body that stops is no reply.
//
// Signatures are bytes, which the layer above keeps as text and so would lose;
// they go up in letters, and [geminiAmendment] undoes that.
type geminiStream struct {
	seen    facts
	finish  string // why the reply ended, empty until it says so
	message string // what is said about that
	blocked string // why the prompt was refused
	started bool
	calls   []map[string]any
	// signature signs text. It may come with none, in front of what it signs or
	// behind; the layer above takes it with a piece of text only.
	signature []byte
}

func newGeminiStream() *geminiStream {
	return &geminiStream{seen: facts{args: map[string]string{}}}
}

func (s *geminiStream) facts() *facts { return &s.seen }

// done is never certain: the count of tokens may follow the reason to finish.
func (s *geminiStream) done() bool { return false }

type geminiEvent struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []struct {
				Text      loose           `json:"text"`
				Thought   json.RawMessage `json:"thought"`
				Signature loose           `json:"thoughtSignature"`
				Call      *struct {
					ID   loose           `json:"id"`
					Name loose           `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason  loose `json:"finishReason"`
		FinishMessage loose `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Reason  loose `json:"blockReason"`
		Message loose `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage lenient[geminiUsage] `json:"usageMetadata"`
	Model loose                `json:"modelVersion"`
	Error json.RawMessage      `json:"error"`
}

type geminiUsage struct {
	Prompt   count `json:"promptTokenCount"`
	Tools    count `json:"toolUsePromptTokenCount"`
	Reply    count `json:"candidatesTokenCount"`
	Thoughts count `json:"thoughtsTokenCount"`
	Cached   count `json:"cachedContentTokenCount"`
}

func (s *geminiStream) event(name string, data []byte) ([]byte, *synapse.ProviderError) {
	if isDone(data) {
		return nil, nil // not of this format, but proxies add it
	}
	var ev geminiEvent
	err := json.Unmarshal(data, &ev)
	if name == "error" || err == nil && !isNull(ev.Error) {
		e, ok := parseError(data)
		if !ok {
			e.message = excerpt(data)
		}
		return nil, e.fault(0)
	}
	if err != nil {
		return nil, malformed("an event of the stream is not a generated content (%v): %s", err, excerpt(data))
	}
	s.started = true
	if ev.Model.text != "" {
		s.seen.model = ev.Model.text
	}
	if u := ev.Usage.v; u != nil { // running totals; thoughts are beside the reply
		s.seen.usage = within(synapse.Usage{
			InputTokens: int64(u.Prompt + u.Tools), OutputTokens: int64(u.Reply + u.Thoughts),
			CacheReadTokens: int64(u.Cached), ReasoningTokens: int64(u.Thoughts),
		})
	}
	if ev.Feedback.Reason.text != "" {
		s.blocked, s.message = ev.Feedback.Reason.text, ev.Feedback.Message.text
	}
	var out []byte
	for _, c := range ev.Candidates {
		if c.Index != 0 {
			continue // only one was asked for
		}
		for _, p := range c.Content.Parts {
			if signature := p.Signature.text; signature != "" && p.Call == nil {
				s.signature = []byte(signature)
			}
			switch {
			case p.Call != nil && p.Call.Name.text == "":
				return nil, malformed("tool call %d of the reply has no name", len(s.calls)+1)
			case p.Call != nil:
				part := map[string]any{"functionCall": map[string]any{
					"id": s.seen.keep(p.Call.ID.text, argumentText(p.Call.Args)), "name": p.Call.Name.text, "args": map[string]any{},
				}}
				if p.Signature.text != "" {
					part["thoughtSignature"] = []byte(p.Signature.text)
				}
				s.calls = append(s.calls, part)
			case p.Text.text != "":
				part := map[string]any{"text": p.Text.text}
				if string(p.Thought) == "true" {
					part["thought"] = true
				} else if s.signature != nil {
					part["thoughtSignature"], s.signature = s.signature, nil
				}
				out = geminiPiece(out, "", part)
			}
		}
		if c.FinishReason.text != "" {
			s.finish, s.message = c.FinishReason.text, c.FinishMessage.text
		}
	}
	return out, nil
}

// geminiPiece appends one event in canonical form.
func geminiPiece(out []byte, finish string, parts ...map[string]any) []byte {
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	data, err := json.Marshal(map[string]any{"candidates": []any{candidate}})
	if err != nil { // strings always marshal
		return out
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}

func (s *geminiStream) end() ([]byte, *synapse.ProviderError) {
	switch {
	case !s.started:
		return nil, brokeOff(replyEmpty)
	case s.blocked != "" && s.finish == "":
		return nil, &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: "the prompt was refused: " + oneLine(s.blocked+" "+s.message)}
	case s.finish == "":
		return nil, brokeOff(replyUnended)
	}
	switch s.finish {
	case "STOP":
		s.seen.stop = synapse.StopEnd
	case "MAX_TOKENS":
		s.seen.stop = synapse.StopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		s.seen.stop = synapse.StopFilter
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		// The model wrote something that its own provider could not read.
		return nil, malformed("the provider ended the reply with %s", oneLine(s.finish+" "+s.message))
	case "MISSING_THOUGHT_SIGNATURE":
		return nil, &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: oneLine(s.finish + " " + s.message)}
	default:
		s.seen.stop = synapse.StopUnknown
	}
	if s.signature != nil {
		s.seen.opaque = sealed(fantasy.ProviderMetadata{google.Name: &google.ReasoningMetadata{Signature: string(s.signature)}})
	}
	return geminiPiece(nil, "STOP", s.calls...), nil
}

// foreignCall is what the provider takes in place of a signature for a call
// that another model made.
const foreignCall = "skip_thought_signature_validator"

// geminiReply puts what signs a reply where the layer below looks for it: in
// front of the call or the text that it belongs to. Thoughts themselves are
// not sent back.
func geminiReply(parts []fantasy.MessagePart, v gemini) []fantasy.MessagePart {
	var out []fantasy.MessagePart
	var waiting *google.ReasoningMetadata
	calls, text := 0, -1
	for _, part := range parts {
		switch part := part.(type) {
		case fantasy.ReasoningPart:
			if own := google.GetReasoningMetadata(part.ProviderOptions); own != nil && own.Signature != "" {
				waiting = own
			}
			continue
		case fantasy.TextPart:
			text = len(out)
		case fantasy.ToolCallPart:
			calls++
			// The first call of a reply is refused without a signature.
			if calls == 1 && waiting == nil && v.major >= 3 {
				waiting = &google.ReasoningMetadata{Signature: foreignCall}
			}
			if waiting != nil {
				out = append(out, signs(waiting))
				waiting = nil
			}
		}
		out = append(out, part)
	}
	if waiting != nil && text >= 0 { // what came last signs the text before
		out = append(out[:text], append([]fantasy.MessagePart{signs(waiting)}, out[text:]...)...)
	}
	return out
}

func signs(own *google.ReasoningMetadata) fantasy.ReasoningPart {
	return fantasy.ReasoningPart{ProviderOptions: fantasy.ProviderOptions{google.Name: own}}
}

// gemini is a model's version as its name tells it; zero where it doesn't.
type gemini struct {
	major, minor int
	pro, plain   bool // plain: it can't think
}

var geminiVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`gemini-(\d{1,2})(?:\.(\d{1,2}))?`) })

func parseGemini(name string) gemini {
	name = strings.ToLower(name)
	v := gemini{pro: strings.Contains(name, "pro"), plain: strings.Contains(name, "gemma")}
	found := geminiVersion().FindStringSubmatch(name)
	if found == nil {
		return v
	}
	v.major, _ = strconv.Atoi(found[1])
	v.minor, _ = strconv.Atoi(found[2]) // 0 where there is none
	v.plain = v.major < 2 || v.major == 2 && v.minor < 5
	return v
}

// geminiConfig is a request's generationConfig.
type geminiConfig struct {
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

// thinking asks for an effort. Names without a version ("gemini-flash-latest")
// take budgets, as all do that can think.
func (v gemini) thinking(e synapse.Effort) *geminiThinking {
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
