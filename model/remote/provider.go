package remote

import (
	"slices"
	"strings"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"

	synapse "github.com/synapse-agents/synapse"
)

// A Provider is one row of the table of those known by name.
type Provider struct {
	Name    string
	BaseURL string // empty: the user must give one
	KeyEnv  string // the environment variable that holds the key by custom; empty: needs none
	// Local says that it is a server people run on their own machine: on
	// loopback it costs nothing.
	Local bool
	// Wire is the format that its own endpoint speaks.
	Wire Wire

	effort effortFunc
}

// effortFunc maps an effort other than empty or inherit to what goes over the
// Chat Completions wire: a reasoning_effort (empty for none) and further
// fields of the body.
type effortFunc func(model string, e synapse.Effort) (string, map[string]any)

// table is in the order in which a provider is looked for when the user names
// none.
var table = []Provider{
	{Name: "anthropic", BaseURL: "https://api.anthropic.com", KeyEnv: "ANTHROPIC_API_KEY", Wire: WireAnthropic},
	{Name: "openai", BaseURL: openai.DefaultURL, KeyEnv: "OPENAI_API_KEY", Wire: WireResponses, effort: openaiEffort},
	{Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com", KeyEnv: "GEMINI_API_KEY", Wire: WireGemini},
	{Name: "ollama", BaseURL: "http://127.0.0.1:11434/v1", Local: true, Wire: WireChat, effort: threeEfforts},
	{Name: "lmstudio", BaseURL: "http://127.0.0.1:1234/v1", Local: true, Wire: WireChat, effort: threeEfforts},
	{Name: "llamacpp", BaseURL: "http://127.0.0.1:8080/v1", Local: true, Wire: WireChat, effort: templateEffort},
	{Name: "openaicompat", Wire: WireChat, effort: compatEffort},
}

// Providers lists the providers known by name.
func Providers() []Provider { return slices.Clone(table) }

// lookup finds a row; a name that is in none is an OpenAI-compatible endpoint.
func lookup(name string) (Provider, bool) {
	for _, p := range table {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{Name: name, Wire: WireChat, effort: compatEffort}, false
}

func names() []string {
	var out []string
	for _, p := range table {
		out = append(out, p.Name)
	}
	return out
}

// A Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input  float64
	Output float64
	// CacheRead and CacheWrite price the parts of the input that a prompt
	// cache served or took in. Zero means that they cost what input costs.
	CacheRead  float64
	CacheWrite float64
}

// cost returns the price of a usage, nil when it is unknown.
func (m *model) cost(name string, u synapse.Usage) *float64 {
	if m.price != nil {
		if p, ok := m.price(name); ok {
			read, write := p.CacheRead, p.CacheWrite
			if read == 0 {
				read = p.Input
			}
			if write == 0 {
				write = p.Input
			}
			fresh := u.InputTokens - u.CacheReadTokens - u.CacheWriteTokens
			sum := (float64(max(fresh, 0))*p.Input + float64(u.CacheReadTokens)*read +
				float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output) / 1e6
			return &sum
		}
	}
	// A local Ollama passes models of this name on to a paid service.
	if m.local && !strings.HasSuffix(name, "-cloud") && !strings.HasSuffix(name, ":cloud") {
		return new(float64)
	}
	return nil
}

// effortOptions returns the provider options that ask for an effort. Off goes
// out as an explicit "none": leaving it out would mean the provider's default.
// A model that cannot stop thinking then refuses the request, which is better
// than one that thinks in secret.
func (m *model) effortOptions(req *synapse.Request) fantasy.ProviderOptions {
	if req.Effort == "" || req.Effort == synapse.EffortInherit {
		return nil
	}
	word, body := m.row.effort(req.Model, req.Effort)
	if word == "" && body == nil {
		return nil
	}
	effort := openai.ReasoningEffort(word)
	if m.wireFor(req.Model) == WireResponses {
		return fantasy.ProviderOptions{openai.Name: &openai.ResponsesProviderOptions{ReasoningEffort: &effort}}
	}
	opts := &openaicompat.ProviderOptions{ExtraBody: body}
	if word != "" {
		opts.ReasoningEffort = &effort
	}
	return openaicompat.NewProviderOptions(opts)
}

// compatEffort is for endpoints of which nothing is known: the words of the
// published format, whose strongest is "high" nearly everywhere.
func compatEffort(_ string, e synapse.Effort) (string, map[string]any) {
	switch e {
	case synapse.EffortOff:
		return "none", nil
	case synapse.EffortMax:
		return "high", nil
	}
	return string(e), nil
}

// threeEfforts is for servers that take none, low, medium and high and refuse
// any other word.
func threeEfforts(model string, e synapse.Effort) (string, map[string]any) {
	if e == synapse.EffortMinimal {
		e = synapse.EffortLow
	}
	return compatEffort(model, e)
}

// templateEffort is for llama.cpp, where thinking is the chat template's
// business: some templates have a switch, some have levels.
func templateEffort(model string, e synapse.Effort) (string, map[string]any) {
	word, _ := threeEfforts(model, e)
	args := map[string]any{"enable_thinking": e != synapse.EffortOff}
	if e != synapse.EffortOff {
		args["reasoning_effort"] = word
	}
	return word, map[string]any{"chat_template_kwargs": args}
}

// openaiEffort leaves models alone that do not reason: they refuse the field,
// and to have thinking off they need not be told.
func openaiEffort(model string, e synapse.Effort) (string, map[string]any) {
	name := strings.ToLower(model)
	for _, plain := range []string{"gpt-3", "gpt-4", "chatgpt-", "gpt-audio"} {
		if strings.HasPrefix(name, plain) {
			return "", nil
		}
	}
	if e == synapse.EffortMax {
		for _, old := range []string{"o1", "o3", "o4", "gpt-oss"} {
			if strings.HasPrefix(name, old) {
				return "high", nil
			}
		}
		if name == "gpt-5" || strings.HasPrefix(name, "gpt-5-") || name == "gpt-5.1" || strings.HasPrefix(name, "gpt-5.1-2") {
			return "high", nil
		}
		return "xhigh", nil
	}
	return compatEffort(model, e)
}
