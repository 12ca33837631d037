package settings

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// Combine says how the values of several layers become one.
type Combine string

// The ways to combine.
const (
	CombineReplace Combine = "replace" // the highest layer wins
	CombineMerge   Combine = "merge"   // by name, the highest layer wins for each
	CombineAdd     Combine = "add"     // restrictions: every layer adds, none lifts
	CombineNarrow  Combine = "narrow"  // the user's layers replace, a workspace only narrows
)

// A Key is one setting. The table of keys is the only description of them:
// parsing, environment, "config show" and the documentation are read from it.
type Key struct {
	Name    string // as in settings.json; "limits.tokens" is tokens inside of limits
	Env     string // the environment variable, "" when there is none
	Kind    Kind
	Takes   string // the allowed values, in words
	Default string // as JSON
	Doc     string // one sentence
	Combine Combine
	// Restricts says that the key only takes away from what agents may do.
	Restricts bool

	binding binding
}

// Keys returns every key, in the order in which they are shown.
func Keys() []Key {
	tools := textCodec("a tool's name")
	names := textCodec("an agent's name")
	return []Key{
		key("model", "AGENT_MODEL", "The main agent's model; without it, what is configured decides.",
			single[string]{codec: modelCodec(), at: func(s *Settings) *Value[string] { return &s.Model }, guard: guardModel}),
		key("reasoning_effort", "AGENT_REASONING_EFFORT", "How much the main agent reasons.",
			single[synapse.Effort]{codec: effortCodec(), at: func(s *Settings) *Value[synapse.Effort] { return &s.ReasoningEffort }}),
		key("model_aliases", "", "Short names for models, for definitions and settings to use.",
			merged[string]{codec: mapCodec(KindModelMap, `an object of alias → provider:model`, aliasedCodec()),
				at: func(s *Settings) *map[string]Value[string] { return &s.ModelAliases }, guard: guardModel}),
		key("fallback_models", "", "Models to try in order when the model in use is out of service.",
			single[[]string]{codec: listCodec(KindModels, `["anthropic:claude-sonnet-4-5"]`, chainCodec()),
				at: func(s *Settings) *Value[[]string] { return &s.FallbackModels }, guard: guardModels}),
		key("providers", "", "Further model endpoints by name, each with base_url, kind, api_key_env and models.",
			merged[Provider]{codec: mapCodec(KindProviders, `an object of name → {"base_url": …, "kind": …, "api_key_env": …, "models": […]}`, providerCodec()),
				at: func(s *Settings) *map[string]Value[Provider] { return &s.Providers }, guard: never[Provider],
				show: func(p Provider) any { p.BaseURL = redactURL(p.BaseURL); return p }}),
		key("models", "", "What is known of models, by provider:model: prices for a million tokens, window, max_output and efforts; above the built-in catalogue.",
			merged[Model]{codec: mapCodec(KindModelFacts, `an object of provider:model → {"input_price": …, "output_price": …, "window": …, "max_output": …, "efforts": […]}`, modelFactsCodec()),
				at: func(s *Settings) *map[string]Value[Model] { return &s.Models }, guard: never[Model]}),
		key("probe_local", "", "Look for a local model server (Ollama, LM Studio, llama.cpp) on loopback.",
			single[bool]{codec: boolCodec(), def: true, at: func(s *Settings) *Value[bool] { return &s.ProbeLocal }, guard: guardSwitch}),

		key("enable_subagents", "AGENT_ENABLE_SUBAGENTS", "Offer delegation to sub-agents.",
			single[bool]{codec: boolCodec(), def: true, at: func(s *Settings) *Value[bool] { return &s.EnableSubagents }, guard: guardSwitch}),
		key("enable_custom_subagents", "AGENT_ENABLE_CUSTOM_SUBAGENTS", "Read agent definitions from files, besides the built-in ones.",
			single[bool]{codec: boolCodec(), def: true, at: func(s *Settings) *Value[bool] { return &s.EnableCustomSubagents }, guard: guardSwitch}),
		key("custom_agents_dirs", "AGENT_CUSTOM_AGENTS_DIRS", "Further directories with agent definitions, relative to the workspace.",
			single[[]string]{codec: listCodec(KindStrings, `["team/agents"]`, textCodec("a directory")), def: []string{},
				at: func(s *Settings) *Value[[]string] { return &s.CustomAgentsDirs }, finish: (*loader).resolveDirs, guard: guardDirs}),
		key("disable_builtin_subagents", "AGENT_DISABLE_BUILTIN_SUBAGENTS", "Agents to remove by name, whatever layer defines them.",
			listed{codec: listCodec(KindStrings, `["tester"]`, names), at: func(s *Settings) *Names { return &s.DisableBuiltinSubagents }, combine: CombineNarrow}),
		key("import_sources", "", "The other products whose agent files are read; [] for none, null for all.",
			single[[]string]{codec: listCodec(KindStrings, `["claude"]`, textCodec("a product's name")),
				at: func(s *Settings) *Value[[]string] { return &s.ImportSources }, guard: guardSubset}),
		key("subagent_default_model", "AGENT_SUBAGENT_DEFAULT_MODEL", "The model of sub-agents for which nothing else names one.",
			single[string]{codec: modelCodec(), at: func(s *Settings) *Value[string] { return &s.SubagentDefaultModel }, guard: guardModel}),
		key("subagent_default_reasoning_effort", "AGENT_SUBAGENT_DEFAULT_REASONING_EFFORT", "The reasoning effort of sub-agents for which nothing else names one.",
			single[synapse.Effort]{codec: effortCodec(), at: func(s *Settings) *Value[synapse.Effort] { return &s.SubagentDefaultReasoningEffort }}),
		key("subagent_model_overrides", "AGENT_SUBAGENT_MODEL_OVERRIDES_JSON", "Models by sub-agent, above what its definition says.",
			merged[string]{codec: mapCodec(KindModelMap, `a JSON object of agent → model`, modelCodec()),
				at: func(s *Settings) *map[string]Value[string] { return &s.SubagentModelOverrides }, guard: guardModel}),
		key("subagent_reasoning_effort_overrides", "AGENT_SUBAGENT_REASONING_EFFORT_OVERRIDES_JSON", "Reasoning efforts by sub-agent, above what its definition says.",
			merged[synapse.Effort]{codec: mapCodec(KindEffortMap, `a JSON object of agent → reasoning effort`, effortCodec()),
				at: func(s *Settings) *map[string]Value[synapse.Effort] { return &s.SubagentReasoningEffortOverrides }}),
		key("subagent_description_budget", "", "Tokens that the descriptions of all sub-agents may take in the task tool's text; beyond it they are shortened.",
			single[int]{codec: intCodec(1), def: 4000, at: func(s *Settings) *Value[int] { return &s.SubagentDescriptionBudget }}),

		key("excluded_tools", "AGENT_EXCLUDED_TOOLS", "Tools that no agent has.",
			listed{codec: listCodec(KindStrings, `["execute"]`, tools), at: func(s *Settings) *Names { return &s.ExcludedTools }, combine: CombineAdd}),
		key("readonly", "AGENT_READONLY", "Take away every tool that is not known to be read-only.",
			single[bool]{codec: boolCodec(), at: func(s *Settings) *Value[bool] { return &s.ReadOnly }, combine: CombineAdd, narrower: either}),
		key("minimal_filesystem_tools", "AGENT_MINIMAL_FILESYSTEM_TOOLS", "Take away the tools of minimal_filesystem_excluded_tools.",
			single[bool]{codec: boolCodec(), at: func(s *Settings) *Value[bool] { return &s.MinimalFilesystemTools }, combine: CombineAdd, narrower: either}),
		key("minimal_filesystem_excluded_tools", "", "What minimal_filesystem_tools takes away.",
			listed{codec: listCodec(KindStrings, `["write_file"]`, tools), def: []string{"search_files", "edit_file", "write_file"},
				at: func(s *Settings) *Names { return &s.MinimalFilesystemExcludedTools }, combine: CombineNarrow}),
		key("permissions", "", "Rules for tool calls: tool → allow, ask or deny, or tool → pattern → action, the last match winning.", rules{}),

		key("max_depth", "", "How deep sub-agents may nest; 1 lets only the main agent delegate.",
			single[int]{codec: intCodec(1), def: 3, at: func(s *Settings) *Value[int] { return &s.MaxDepth }, combine: CombineNarrow, narrower: smaller}),
		key("max_parallel", "", "Model requests, and as many tool calls, in flight at once in a trace.",
			single[int]{codec: intCodec(1), def: 64, at: func(s *Settings) *Value[int] { return &s.MaxParallel }, combine: CombineNarrow, narrower: smaller}),
		key("max_handoffs", "", "Transfers between agents for one message of the user.",
			single[int]{codec: intCodec(0), def: 10, at: func(s *Settings) *Value[int] { return &s.MaxHandoffs }, combine: CombineNarrow, narrower: smaller}),
		key("max_turns", "", "Turns of one run, where a definition or a call does not ask for fewer; 0 leaves it to them.",
			single[int]{codec: intCodec(0), at: func(s *Settings) *Value[int] { return &s.MaxTurns }, combine: CombineNarrow, narrower: smallerSet[int]}),
		key("limits.tokens", "", "Input and output tokens of a trace.",
			single[int64]{codec: countCodec(), at: func(s *Settings) *Value[int64] { return &s.Limits.Tokens }, combine: CombineNarrow, narrower: smallerSet[int64]}),
		key("limits.cost_usd", "", "Dollars of a trace.",
			single[float64]{codec: moneyCodec(), at: func(s *Settings) *Value[float64] { return &s.Limits.CostUSD }, combine: CombineNarrow, narrower: smallerSet[float64]}),
		key("limits.time", "", "Time of a trace from start to end.",
			single[synapse.Duration]{codec: durationCodec(0, `a duration such as "30m", "0s" for no limit`), at: func(s *Settings) *Value[synapse.Duration] { return &s.Limits.Time },
				combine: CombineNarrow, narrower: smallerSet[synapse.Duration]}),
		key("limits.tool_calls", "", "Tool calls of a trace.",
			single[int64]{codec: countCodec(), at: func(s *Settings) *Value[int64] { return &s.Limits.ToolCalls }, combine: CombineNarrow, narrower: smallerSet[int64]}),
		key("limits.spawns", "", "Sub-agents started in a trace.",
			single[int64]{codec: countCodec(), at: func(s *Settings) *Value[int64] { return &s.Limits.Spawns }, combine: CombineNarrow, narrower: smallerSet[int64]}),
		key("stream_idle_timeout", "", "How long a reply may fall silent before it counts as broken.",
			single[synapse.Duration]{codec: durationCodec(time.Millisecond, `a duration of more than 0, such as "60s"`), def: synapse.Duration(time.Minute),
				at: func(s *Settings) *Value[synapse.Duration] { return &s.StreamIdleTimeout }}),
		key("intent", "", "Have agents say with every tool call what it is for.",
			single[bool]{codec: boolCodec(), def: true, at: func(s *Settings) *Value[bool] { return &s.Intent }}),

		key("theme", "", "The colours of the screen.",
			single[string]{codec: choiceCodec("auto", "dark", "light", "ansi", "mono"), at: func(s *Settings) *Value[string] { return &s.Theme }}),

		key("web_search.endpoint", "AGENT_WEB_SEARCH_ENDPOINT", "Where the web_search tool asks.",
			single[string]{codec: urlCodec(), at: func(s *Settings) *Value[string] { return &s.WebSearch.Endpoint }, guard: never[string],
				show: func(s string) any { return redactURL(s) }}),
		key("web_search.kind", "AGENT_WEB_SEARCH_KIND", "Which service that is.",
			single[string]{codec: choiceCodec("searxng", "brave", "tavily"), at: func(s *Settings) *Value[string] { return &s.WebSearch.Kind }, guard: never[string]}),
		key("web_search.api_key_env", "", "The variable that holds its key.",
			single[string]{codec: variableCodec(), at: func(s *Settings) *Value[string] { return &s.WebSearch.APIKeyEnv }, guard: never[string]}),
		key("mcp_servers", "", "MCP servers by name.",
			merged[json.RawMessage]{codec: mapCodec(KindRawMap, `an object of name → server`, rawCodec(KindRaw, `an object, such as {"command": "npx", "args": […]}`, objectNode)),
				at: func(s *Settings) *map[string]Value[json.RawMessage] { return &s.MCPServers }, guard: never[json.RawMessage], show: redactJSON}),
		key("hooks", "", "Commands to run at events; every layer's hooks run.", hooks{}),
	}
}

// key makes a table entry; kind, default and the rest come from its binding.
func key(name, env, doc string, b binding) Key {
	k := Key{Name: name, Env: env, Doc: doc, binding: b}
	b.describe(&k)
	return k
}

// lookup finds a key of the table.
func lookup(keys []Key, name string) *Key {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// topNames are the names that may stand at the top of a settings file.
func topNames(keys []Key) []string {
	var names []string
	for _, k := range keys {
		top, _, _ := strings.Cut(k.Name, ".")
		if !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	return names
}

// within are the names that may stand inside the object of that name; none
// for a name that is a key itself.
func within(keys []Key, top string) []string {
	var names []string
	for _, k := range keys {
		if name, ok := strings.CutPrefix(k.Name, top+"."); ok {
			names = append(names, name)
		}
	}
	return names
}

func either(a, b bool) bool { return a || b }

func smaller(a, b int) int { return min(a, b) }

// smallerSet is the smaller of two limits, 0 being none.
func smallerSet[N int | int64 | float64 | synapse.Duration](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
