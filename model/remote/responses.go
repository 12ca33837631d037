package remote

import (
	"encoding/json"

	synapse "github.com/synapse-agents/synapse"
)

// responsesStream reads OpenAI's Responses. Events go on as they are where the
// decoder behind has a use for them; the last one only in outline.
type responsesStream struct {
	seen    facts
	ended   bool
	started bool
	// open holds the output indices of calls that have begun and not ended.
	// The decoder forgets those, and does not know one that ends unbegun.
	open map[int64]bool
}

func newResponsesStream() *responsesStream {
	return &responsesStream{seen: facts{encrypted: map[string]string{}}, open: map[int64]bool{}}
}

func (s *responsesStream) facts() *facts { return &s.seen }
func (s *responsesStream) done() bool    { return s.ended }

type responsesEvent struct {
	Type         string `json:"type"`
	OutputIndex  int64  `json:"output_index"`
	SummaryIndex int64  `json:"summary_index"`
	Item         struct {
		Type      string `json:"type"`
		ID        loose  `json:"id"`
		Name      loose  `json:"name"`
		Encrypted loose  `json:"encrypted_content"`
	} `json:"item"`
	Response struct {
		Model      loose           `json:"model"`
		Error      json.RawMessage `json:"error"`
		Incomplete struct {
			Reason loose `json:"reason"`
		} `json:"incomplete_details"`
		Usage lenient[responsesUsage] `json:"usage"`
	} `json:"response"`
}

type responsesUsage struct {
	Input   count `json:"input_tokens"`
	Output  count `json:"output_tokens"`
	Details struct {
		Cached count `json:"cached_tokens"`
		Write  count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (s *responsesStream) event(name string, data []byte) ([]byte, *synapse.ProviderError) {
	if isDone(data) {
		return nil, nil // not of this format, but proxies add it
	}
	var ev responsesEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return nil, malformed("an event of the stream is not of the Responses format (%v): %s", err, excerpt(data))
	}
	if ev.SummaryIndex < 0 || ev.OutputIndex < 0 {
		return nil, malformed("an event of the stream has a negative index: %s", excerpt(data))
	}
	s.started = true
	if ev.Response.Model.text != "" {
		s.seen.model = ev.Response.Model.text
	}
	switch ev.Type {
	case "response.created", "response.output_text.delta",
		"response.reasoning_summary_part.added", "response.reasoning_summary_text.delta":
	case "response.refusal.delta":
		// The decoder has no place for a refusal; it is what the model said.
		s.seen.stop = synapse.StopFilter
		ev.Type = "response.output_text.delta"
	case "response.output_item.added":
		if ev.Item.Type == "function_call" {
			s.open[ev.OutputIndex] = true
		}
	case "response.output_item.done":
		if ev.Item.Type == "reasoning" && ev.Item.Encrypted.text != "" {
			s.seen.encrypted[ev.Item.ID.text] = ev.Item.Encrypted.text
		}
		if ev.Item.Type == "function_call" {
			if ev.Item.Name.text == "" {
				return nil, malformed("a tool call of the reply has no name: %s", excerpt(data))
			}
			if !s.open[ev.OutputIndex] {
				return nil, malformed("a tool call ends that has not begun: %s", excerpt(data))
			}
			delete(s.open, ev.OutputIndex)
		}
	case "response.completed", "response.incomplete":
		s.finish(&ev)
		data = []byte(`{"response":{"id":"r"}}`)
		ev.Type = "response.completed"
	case "response.failed":
		e, ok := parseError(append(append([]byte(`{"error":`), ev.Response.Error...), '}'))
		if !ok {
			e.message = "the provider says that the reply failed"
		}
		return nil, e.fault(0)
	default:
		if e, ok := parseError(data); ok || name == "error" {
			if !ok {
				e.message = excerpt(data)
			}
			return nil, e.fault(0)
		}
		return nil, nil // of no use to anybody here
	}
	return canonical(ev.Type, data)
}

// canonical writes an event with its type, and without an error beside it that
// is null: the SDK takes any for a failure.
func canonical(kind string, data []byte) ([]byte, *synapse.ProviderError) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, malformed("an event of the stream is no JSON object: %s", excerpt(data))
	}
	if raw := fields["error"]; !isNull(raw) {
		e, _ := parseError(data)
		return nil, e.fault(0)
	}
	delete(fields, "error")
	fields["type"], _ = json.Marshal(kind) // a string always marshals
	line, err := json.Marshal(fields)
	if err != nil {
		return nil, malformed("an event of the stream is no JSON: %s", excerpt(data))
	}
	return append(append([]byte("event: "+kind+"\ndata: "), line...), "\n\n"...), nil
}

func (s *responsesStream) finish(ev *responsesEvent) {
	s.ended = true
	if u := ev.Response.Usage.v; u != nil {
		s.seen.usage = within(synapse.Usage{
			InputTokens: int64(u.Input), OutputTokens: int64(u.Output),
			CacheReadTokens: int64(u.Details.Cached), CacheWriteTokens: int64(u.Details.Write),
			ReasoningTokens: int64(u.OutputDetails.Reasoning),
		})
	}
	switch reason := ev.Response.Incomplete.Reason.text; {
	case reason == "max_output_tokens" || reason == "max_tokens":
		s.seen.stop = synapse.StopLength
	case reason == "content_filter":
		s.seen.stop = synapse.StopFilter
	case reason != "" || ev.Type == "response.incomplete":
		s.seen.stop = synapse.StopUnknown
	case s.seen.stop == "":
		s.seen.stop = synapse.StopEnd
	}
}

func (s *responsesStream) end() ([]byte, *synapse.ProviderError) {
	switch {
	case !s.started:
		return nil, brokeOff(replyEmpty)
	case !s.ended:
		return nil, brokeOff(replyUnended)
	case len(s.open) > 0 && s.seen.stop != synapse.StopLength && s.seen.stop != synapse.StopFilter:
		return nil, brokeOff(replyHalfCall)
	}
	return nil, nil
}
