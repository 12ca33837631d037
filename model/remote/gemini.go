package remote

import (
	"encoding/json"

	synapse "github.com/synapse-agents/synapse"
)

// geminiStream reads Gemini's streamGenerateContent: each event is a piece of a
// response, calls come whole, and the reply ends with the body. Everything from
// the first call on is held back until then: a body that stops is no reply.
type geminiStream struct {
	seen    facts
	finish  string // why the reply ended, empty until it says so
	message string // what is said about that
	blocked string // why the prompt was refused
	started bool
	spoke   bool
	held    []*synapse.Delta
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

func (s *geminiStream) event(name string, data []byte) ([]*synapse.Delta, *synapse.ProviderError) {
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
	var out []*synapse.Delta
	for _, c := range ev.Candidates {
		if c.Index != 0 {
			continue // only one was asked for
		}
		for _, p := range c.Content.Parts {
			var opaque json.RawMessage
			if p.Signature.text != "" {
				opaque = seal(opaqueGemini, geminiThought{Signature: p.Signature.text})
			}
			switch {
			case p.Call != nil:
				args := argumentText(p.Call.Args)
				if args == "" {
					args = "{}"
				}
				call := callDelta(p.Call.ID.text, p.Call.Name.text, args)
				call.Opaque = opaque
				out = append(out, call)
				continue
			case string(p.Thought) == "true":
				out = append(out, said(reasoningDelta(p.Text.text))...)
			default:
				out = append(out, said(textDelta(p.Text.text))...)
			}
			if opaque != nil {
				out = append(out, &synapse.Delta{Kind: synapse.DeltaReasoning, Opaque: opaque})
			}
		}
		if c.FinishReason.text != "" {
			s.finish, s.message = c.FinishReason.text, c.FinishMessage.text
		}
	}
	s.spoke = s.spoke || len(out) > 0
	for i, d := range out {
		if d.Kind == synapse.DeltaCall || len(s.held) > 0 {
			s.held = append(s.held, out[i:]...)
			return out[:i], nil
		}
	}
	return out, nil
}

func (s *geminiStream) end() ([]*synapse.Delta, *synapse.ProviderError) {
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
	held := s.held
	s.held = nil
	return held, nil
}
