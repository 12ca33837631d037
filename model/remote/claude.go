package remote

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	synapse "github.com/synapse-agents/synapse"
)

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
var claudeName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)
})

func parseClaude(name string) claude {
	name = strings.ToLower(name)
	found := claudeName().FindStringSubmatch(name)
	if found == nil {
		// One without a version is a recent one.
		return claude{known: strings.Contains(name, "claude"), major: 5}
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2]) // 0 where there is none
	return claude{known: true, major: major, minor: minor}
}

// outputLimit is how much Claude may write: the format wants it said, and the
// layer below would say 4,096, which cuts a longer reply off. What is asked
// for is taken out of what the conversation may fill, so it is no more than a
// turn needs.
func (v claude) outputLimit(req *synapse.Request) int64 {
	switch {
	case req.MaxTokens > 0:
		return req.MaxTokens
	case v.known && !v.atLeast(3, 5):
		return 4096
	case v.known && !v.atLeast(3, 7):
		return 8192
	case v.known && v.major == 4 && v.minor <= 1: // Opus of these takes no more
		return 32000
	case req.Effort == synapse.EffortHigh || req.Effort == synapse.EffortMax:
		return 64000
	}
	return 32000
}

// claudeThinking is what a request says about thinking: options for the layer
// below, or, where that cannot say it, a field of the body.
type claudeThinking struct {
	options  *anthropic.ProviderOptions
	disabled bool
}

func (t claudeThinking) on() bool { return t.options != nil }

// thinking asks for an effort. Off is said by name: there are models that think
// when they are not told.
func (v claude) thinking(req *synapse.Request, limit int64) claudeThinking {
	e := req.Effort
	switch {
	case e == "" || e == synapse.EffortInherit:
		return claudeThinking{}
	case v.known && !v.atLeast(3, 7): // these can't think
		return claudeThinking{}
	case e == synapse.EffortOff:
		return claudeThinking{disabled: true}
	case v.atLeast(4, 6):
		word := anthropic.Effort(e)
		if e == synapse.EffortMinimal {
			word = anthropic.EffortLow
		}
		options := &anthropic.ProviderOptions{Effort: &word}
		if v.atLeast(4, 7) { // they hide their thoughts unless asked
			display := anthropic.ThinkingDisplaySummarized
			options.ThinkingDisplay = &display
		}
		return claudeThinking{options: options}
	case midway(req):
		// A reply that went on without thinking, another model's perhaps, can't
		// be joined with thinking switched on.
		return claudeThinking{}
	}
	budget := map[synapse.Effort]int64{
		synapse.EffortMinimal: 1024, synapse.EffortLow: 4096, synapse.EffortMedium: 10000, synapse.EffortHigh: 16000, synapse.EffortMax: 32768,
	}[e]
	// The budget is a part of the limit, and what is said needs the rest.
	if budget = min(budget, limit-1024); budget < 1024 { // the least there is
		return claudeThinking{}
	}
	return claudeThinking{options: &anthropic.ProviderOptions{Thinking: &anthropic.ThinkingProviderOption{BudgetTokens: budget}}}
}

// midway reports whether the last reply called tools without a signed thought
// in front, and waits for their results.
func midway(req *synapse.Request) bool {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		switch msg := &req.Messages[i]; msg.Role {
		case synapse.RoleTool:
			continue
		case synapse.RoleAssistant:
			if i == len(req.Messages)-1 || len(msg.Parts) == 0 {
				return false
			}
			first := msg.Parts[0]
			return first.Kind != synapse.PartReasoning || anthropic.GetReasoningMetadata(opened(first.Opaque)) == nil
		default:
			return false
		}
	}
	return false
}

// sample sets temperature and top_p where the model takes them: not while it
// thinks, from 4.7 on not at all, and from 4.1 on not both.
func (v claude) sample(call *fantasy.Call, req *synapse.Request, thinks bool) {
	call.Temperature, call.TopP = nil, nil
	if thinks || v.atLeast(4, 7) {
		return
	}
	call.Temperature = req.Temperature
	if req.Temperature == nil || !v.atLeast(4, 1) {
		call.TopP = req.TopP
	}
}

// cacheMark asks to cache a prompt up to the part that carries it.
var cacheMark = anthropic.NewProviderCacheControlOptions(&anthropic.ProviderCacheControlOptions{
	CacheControl: anthropic.CacheControl{Type: "ephemeral"},
})

// mark asks to cache the tools, the system prompt, and the conversation up to
// its last message and up to the user's message before, which was the last one
// of an earlier request. There may be four marks.
func mark(call *fantasy.Call) {
	if n := len(call.Tools); n > 0 {
		if last, ok := call.Tools[n-1].(fantasy.FunctionTool); ok {
			last.ProviderOptions = cacheMark
			call.Tools[n-1] = last
		}
	}
	left := 2
	for i := len(call.Prompt) - 1; i >= 0; i-- {
		msg := &call.Prompt[i]
		switch {
		case msg.Role == fantasy.MessageRoleSystem:
			msg.ProviderOptions = cacheMark
		case left == 0:
		case msg.Role != fantasy.MessageRoleAssistant || left == 2:
			msg.ProviderOptions = cacheMark
			left--
			// What adjoins becomes one message on the wire.
			for i > 0 && msg.Role != fantasy.MessageRoleAssistant && (call.Prompt[i-1].Role == fantasy.MessageRoleTool || call.Prompt[i-1].Role == fantasy.MessageRoleUser) {
				i--
			}
		}
	}
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
