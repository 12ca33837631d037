package remote

import (
	"fmt"
	"slices"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// thinking is what asks for an effort in a Chat Completions body. Each field
// is some servers' own.
type thinking struct {
	Effort    string         `json:"reasoning_effort,omitempty"`
	Switch    *thinkSwitch   `json:"thinking,omitempty"`
	Reasoning *reasoning     `json:"reasoning,omitempty"`
	Template  map[string]any `json:"chat_template_kwargs,omitempty"`
}

type thinkSwitch struct {
	Type string `json:"type"`
}

type reasoning struct {
	Effort string `json:"effort,omitempty"`
}

// effortFunc maps an effort other than empty or inherit. Off becomes an
// explicit word: leaving it out would mean the provider's default. A model
// that can't stop thinking then refuses the request, which is better than one
// that thinks in secret. An error says that off can't even be asked for.
type effortFunc func(model string, e synapse.Effort) (thinking, error)

// thinkingOf returns what asks for the request's effort; nothing where it
// leaves that to the provider.
func (m *model) thinkingOf(req *synapse.Request) (thinking, error) {
	if req.Effort == "" || req.Effort == synapse.EffortInherit || m.row.effort == nil {
		return thinking{}, nil
	}
	return m.row.effort(req.Model, req.Effort)
}

// compatEffort is for endpoints of which nothing is known: the words of the
// published format, whose strongest is "high" nearly everywhere.
func compatEffort(_ string, e synapse.Effort) (thinking, error) {
	return thinking{Effort: compatWord(e)}, nil
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
	return thinking{Effort: threeWord(e)}, nil
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
	return thinking{Effort: threeWord(e), Template: args}, nil
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
				return thinking{Effort: "high"}, nil
			}
		}
		if name == "gpt-5" || strings.HasPrefix(name, "gpt-5-") || name == "gpt-5.1" || strings.HasPrefix(name, "gpt-5.1-2") {
			return thinking{Effort: "high"}, nil
		}
		return thinking{Effort: "xhigh"}, nil
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
	return thinking{Reasoning: &reasoning{Effort: word}}, nil
}

func deepseekEffort(_ string, e synapse.Effort) (thinking, error) {
	t := thinking{Switch: &thinkSwitch{Type: "enabled"}}
	switch e {
	case synapse.EffortOff:
		t.Switch.Type = "disabled"
	case synapse.EffortMinimal, synapse.EffortLow:
		t.Effort = "low"
	case synapse.EffortMax:
		t.Effort = "max"
	default:
		t.Effort = "high"
	}
	return t, nil
}

func groqEffort(model string, e synapse.Effort) (thinking, error) {
	name := strings.ToLower(model)
	switch {
	case strings.Contains(name, "gpt-oss"):
		return threeEfforts(model, e)
	case strings.Contains(name, "qwen3"), strings.Contains(name, "qwen-3"):
		if e == synapse.EffortOff {
			return thinking{Effort: "none"}, nil
		}
		return thinking{Effort: "default"}, nil
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
			return thinking{Effort: "low"}, nil
		}
		return thinking{Effort: "high"}, nil
	}
	return thinking{}, nil
}
