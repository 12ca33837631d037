package remote

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/azure"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"

	synapse "github.com/synapse-agents/synapse"
)

// thinking is what asks for an effort in a Chat Completions body: a
// reasoning_effort, empty for none, and fields that are some servers' own.
type thinking struct {
	word string
	body map[string]any
}

// effortFunc maps an effort other than empty or inherit. Off becomes an
// explicit word: leaving it out would mean the provider's default. A model that
// can't stop thinking then refuses the request, which is better than one that
// thinks in secret. An error says that off can't even be asked for.
type effortFunc func(model string, e synapse.Effort) (thinking, error)

// thinkingOf returns what asks for the request's effort; nothing where it leaves
// that to the provider.
func (m *model) thinkingOf(req *synapse.Request) (thinking, error) {
	if req.Effort == "" || req.Effort == synapse.EffortInherit {
		return thinking{}, nil
	}
	effort := m.row.effort
	if effort == nil { // a provider with a wire of its own, asked over this one
		effort = compatEffort
	}
	t, err := effort(req.Model, req.Effort)
	if err != nil {
		return t, &synapse.ProviderError{Kind: synapse.ErrorUnsupported, Message: err.Error(), Err: err}
	}
	return t, nil
}

// chatOptions returns the options of a call in Chat Completions.
func (m *model) chatOptions(req *synapse.Request) (fantasy.ProviderOptions, error) {
	t, err := m.thinkingOf(req)
	if err != nil {
		return nil, err
	}
	var effort *openai.ReasoningEffort
	if t.word != "" {
		word := openai.ReasoningEffort(t.word)
		effort = &word
	}
	switch {
	case m.row.Name == azure.Name:
		return fantasy.ProviderOptions{openai.Name: &openai.ProviderOptions{ReasoningEffort: effort, PromptCacheKey: cacheKey(req)}}, nil
	case m.row.Name == openrouter.Name:
		return fantasy.ProviderOptions{openrouter.Name: &openrouter.ProviderOptions{ExtraBody: t.body}}, nil
	case effort == nil && t.body == nil:
		return nil, nil
	}
	return openaicompat.NewProviderOptions(&openaicompat.ProviderOptions{ReasoningEffort: effort, ExtraBody: t.body}), nil
}

// responsesOptions returns the options of a call in Responses. The effort is
// none of them: the layer below drops it for a model that it does not know to
// reason, which is every new one.
func (m *model) responsesOptions(req *synapse.Request) fantasy.ProviderOptions {
	if !m.own && m.row.Name != azure.Name {
		return nil
	}
	options := &openai.ResponsesProviderOptions{PromptCacheKey: cacheKey(req)}
	if !plainOpenAI(req.Model) {
		// Nothing is stored there, so that what was thought has to travel.
		options.Include = []openai.IncludeType{openai.IncludeReasoningEncryptedContent}
	}
	return fantasy.ProviderOptions{openai.Name: options}
}

// compatEffort is for endpoints of which nothing is known: the words of the
// published format, whose strongest is "high" nearly everywhere.
func compatEffort(_ string, e synapse.Effort) (thinking, error) {
	return thinking{word: compatWord(e)}, nil
}

func compatWord(e synapse.Effort) string {
	switch e {
	case synapse.EffortOff:
		return "none"
	case synapse.EffortMax:
		return "high"
	}
	return string(e)
}

// threeEfforts is for servers that take none, low, medium and high and refuse
// any other word.
func threeEfforts(_ string, e synapse.Effort) (thinking, error) {
	return thinking{word: threeWord(e)}, nil
}

func threeWord(e synapse.Effort) string {
	if e == synapse.EffortMinimal {
		e = synapse.EffortLow
	}
	return compatWord(e)
}

// templateEffort is for llama.cpp, where thinking is the chat template's
// business: some templates have a switch, some have levels.
func templateEffort(_ string, e synapse.Effort) (thinking, error) {
	args := map[string]any{"enable_thinking": e != synapse.EffortOff}
	if e != synapse.EffortOff {
		args["reasoning_effort"] = threeWord(e)
	}
	return thinking{word: threeWord(e), body: map[string]any{"chat_template_kwargs": args}}, nil
}

// plainOpenAI reports whether a model of OpenAI's does not reason: those
// refuse the fields, and to have thinking off they need not be told.
func plainOpenAI(model string) bool {
	name := strings.ToLower(model)
	return slices.ContainsFunc([]string{"gpt-3", "gpt-4", "chatgpt-", "gpt-audio"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

func openaiEffort(model string, e synapse.Effort) (thinking, error) {
	if plainOpenAI(model) {
		return thinking{}, nil
	}
	if e == synapse.EffortMax {
		name := strings.ToLower(model)
		for _, old := range []string{"o1", "o3", "o4", "gpt-oss"} {
			if strings.HasPrefix(name, old) {
				return thinking{word: "high"}, nil
			}
		}
		if name == "gpt-5" || strings.HasPrefix(name, "gpt-5-") || name == "gpt-5.1" || strings.HasPrefix(name, "gpt-5.1-2") {
			return thinking{word: "high"}, nil
		}
		return thinking{word: "xhigh"}, nil
	}
	return compatEffort(model, e)
}

func openrouterEffort(_ string, e synapse.Effort) (thinking, error) {
	word := string(e)
	switch e {
	case synapse.EffortOff:
		word = "none"
	case synapse.EffortMax:
		word = "xhigh"
	}
	return thinking{body: map[string]any{"reasoning": map[string]any{"effort": word}}}, nil
}

// switchEffort is for servers that have a switch beside the levels, DeepSeek's
// way.
func switchEffort(_ string, e synapse.Effort) (thinking, error) {
	on := map[string]any{"thinking": map[string]any{"type": "enabled"}}
	switch e {
	case synapse.EffortOff:
		return thinking{body: map[string]any{"thinking": map[string]any{"type": "disabled"}}}, nil
	case synapse.EffortMinimal, synapse.EffortLow:
		return thinking{word: "low", body: on}, nil
	case synapse.EffortMax:
		return thinking{word: "max", body: on}, nil
	}
	return thinking{word: "high", body: on}, nil
}

// onlySwitch is for servers that have a switch and no levels.
func onlySwitch(_ string, e synapse.Effort) (thinking, error) {
	word := "enabled"
	if e == synapse.EffortOff {
		word = "disabled"
	}
	return thinking{body: map[string]any{"thinking": map[string]any{"type": word}}}, nil
}

func groqEffort(model string, e synapse.Effort) (thinking, error) {
	name := strings.ToLower(model)
	switch {
	case strings.Contains(name, "gpt-oss"):
		return threeEfforts(model, e)
	case strings.Contains(name, "qwen3"), strings.Contains(name, "qwen-3"):
		if e == synapse.EffortOff {
			return thinking{word: "none"}, nil
		}
		return thinking{body: map[string]any{"reasoning_effort": "default"}}, nil // no word of the published format
	}
	return thinking{}, nil
}

func mistralEffort(model string, e synapse.Effort) (thinking, error) {
	if e == synapse.EffortOff && strings.Contains(strings.ToLower(model), "magistral") {
		return thinking{}, fmt.Errorf("thinking can't be switched off for %s: choose a model that is not a Magistral", model)
	}
	return thinking{}, nil
}

// xaiEffort leaves alone what refuses a level. Off is asked of all that may
// think.
func xaiEffort(model string, e synapse.Effort) (thinking, error) {
	name := strings.ToLower(model)
	switch {
	case strings.Contains(name, "non-reasoning"):
		return thinking{}, nil
	case e == synapse.EffortOff, strings.HasPrefix(name, "grok-4.5"):
		return threeEfforts(model, e)
	case strings.HasPrefix(name, "grok-3-mini"): // knows two
		if e == synapse.EffortMinimal || e == synapse.EffortLow {
			return thinking{word: "low"}, nil
		}
		return thinking{word: "high"}, nil
	}
	return thinking{}, nil
}
