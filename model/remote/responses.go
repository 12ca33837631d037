package remote

import (
	"encoding/json"
	"fmt"

	synapse "github.com/synapse-agents/synapse"
)

// responsesStream reads OpenAI's Responses.
type responsesStream struct {
	seen    facts
	ended   bool
	started bool
	// open holds the output indices of calls that have begun and not ended.
	open map[int64]bool
	// thought is whether any of the item's reasoning has been said.
	thought bool
}

func newResponsesStream() *responsesStream { return &responsesStream{open: map[int64]bool{}} }

func (s *responsesStream) facts() *facts { return &s.seen }
func (s *responsesStream) done() bool    { return s.ended }

type responsesEvent struct {
	Type         string `json:"type"`
	OutputIndex  int64  `json:"output_index"`
	SummaryIndex int64  `json:"summary_index"`
	Delta        loose  `json:"delta"`
	Item         struct {
		Type      string          `json:"type"`
		Status    loose           `json:"status"`
		ID        loose           `json:"id"`
		CallID    loose           `json:"call_id"`
		Name      loose           `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Encrypted loose           `json:"encrypted_content"`
		Summary   json.RawMessage `json:"summary"`
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

func (s *responsesStream) event(name string, data []byte) ([]*synapse.Delta, *synapse.ProviderError) {
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
	case "response.output_text.delta":
		return said(textDelta(ev.Delta.text)), nil
	case "response.refusal.delta":
		s.seen.stop = synapse.StopFilter // it is what the model said
		return said(textDelta(ev.Delta.text)), nil
	case "response.reasoning_summary_part.added":
		if s.thought {
			return said(reasoningDelta("\n\n")), nil
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.thought = true
		return said(reasoningDelta(ev.Delta.text)), nil
	case "response.output_item.added":
		s.thought = false
		if ev.Item.Type == "function_call" {
			s.open[ev.OutputIndex] = true
		}
	case "response.output_item.done":
		return s.item(&ev, data)
	case "response.completed", "response.incomplete":
		s.finish(&ev)
	case "response.failed":
		e, ok := parseError(fmt.Appendf(nil, `{"error":%s}`, ev.Response.Error))
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
	}
	return nil, nil
}

// said drops a delta that says nothing.
func said(d *synapse.Delta) []*synapse.Delta {
	if d.Text == "" {
		return nil
	}
	return []*synapse.Delta{d}
}

// item takes an output item that is done: only there are its call and its
// encrypted reasoning whole.
func (s *responsesStream) item(ev *responsesEvent, data []byte) ([]*synapse.Delta, *synapse.ProviderError) {
	switch ev.Item.Type {
	case "function_call":
		if !s.open[ev.OutputIndex] {
			return nil, malformed("a tool call ends that has not begun: %s", excerpt(data))
		}
		delete(s.open, ev.OutputIndex)
		if ev.Item.Status.text == "incomplete" {
			return nil, nil // cut off by the output limit
		}
		return []*synapse.Delta{callDelta(ev.Item.CallID.text, ev.Item.Name.text, argumentText(ev.Item.Arguments))}, nil
	case "reasoning":
		if ev.Item.Encrypted.text == "" {
			return nil, nil
		}
		thought := responsesThought{ID: ev.Item.ID.text, Encrypted: ev.Item.Encrypted.text, Summary: []responsesSummary{}}
		if !isNull(ev.Item.Summary) {
			_ = json.Unmarshal(ev.Item.Summary, &thought.Summary) // what can't be read is not sent back
		}
		return []*synapse.Delta{{Kind: synapse.DeltaReasoning, Opaque: seal(opaqueResponses, thought)}}, nil
	}
	return nil, nil
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

func (s *responsesStream) end() ([]*synapse.Delta, *synapse.ProviderError) {
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
