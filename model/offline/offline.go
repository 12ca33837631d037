// Package offline is the model that answers when no model provider is at hand:
// fixed rules, not a language model, and it says so wherever it is named. It
// reads a request, decides from the tools that are offered and the results so
// far what to look up next, delegates for real where it may, and answers with
// quotes of what the tools returned. What rules can't do (write code, explain,
// judge, translate) it refuses with an error that says how to connect a model.
//
// A reply is a pure function of the request: nothing is kept between calls,
// and nothing outside the request is looked at.
package offline

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/synapse-agents/synapse"
)

const (
	// Provider and Name make the reference offline:rules.
	Provider = "offline"
	Name     = "rules"
	// Label is what the model is called in every reply, so that nobody takes
	// it for a language model.
	Label = "offline rules, not a language model"
)

// New returns the offline rules as a model. It holds no state and may be used
// from several goroutines at once.
func New() synapse.Model { return rules{} }

type rules struct{}

// Generate implements [synapse.Model]. Its only failures are the context's
// error and a [synapse.ProviderError] of kind [synapse.ErrorUnsupported].
func (rules) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		out := newSession(req).run()
		if out.refusal != "" {
			yield(nil, refuse(out.refusal))
			return
		}
		send := func(d *synapse.Delta) bool {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return false
			}
			return yield(d, nil)
		}
		if out.plan != "" && !send(&synapse.Delta{Kind: synapse.DeltaReasoning, Text: out.plan}) {
			return
		}
		for line := range strings.Lines(out.text) {
			if !send(&synapse.Delta{Kind: synapse.DeltaText, Text: line}) {
				return
			}
		}
		stop := synapse.StopEnd
		for _, c := range out.calls {
			stop = synapse.StopCalls
			if !send(&synapse.Delta{Kind: synapse.DeltaCall, Call: c}) {
				return
			}
		}
		send(&synapse.Delta{
			Kind: synapse.DeltaEnd, Stop: stop, Model: Label,
			Usage: synapse.Usage{Requests: 1, CostUSD: new(float64)},
		})
	}
}

// A reply is what one turn comes to: calls, or text, or a refusal.
type reply struct {
	plan    string // which rules fired, shown as reasoning
	text    string
	calls   []*synapse.ToolCall
	refusal string // why nothing was done
}

// refuse returns the error for a request that rules can't serve.
func refuse(why string) error {
	return &synapse.ProviderError{
		Provider: Provider,
		Model:    Name,
		Kind:     synapse.ErrorUnsupported,
		Message:  why + "\n" + ability + "\n" + wayOut,
	}
}

const ability = "These are " + Label + `. They can find and list files, search code, show definitions, callers and tests, outline and count,
quote what documents say, run the tests and git's log, diff and status, and hand parts of a request to sub-agents.`

const wayOut = "For everything else connect a model: `export OPENAI_API_KEY=…` and `-m openai:NAME` (or ANTHROPIC_API_KEY, GEMINI_API_KEY), " +
	"OPENAI_BASE_URL for a local server, or start ollama."

// compact returns v as JSON. Only values built here go in, so it can't fail.
func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "{}"
	}
	return strings.TrimSpace(b.String())
}
