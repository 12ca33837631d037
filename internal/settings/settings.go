// Package settings reads the layered settings of one workspace: files, the
// workspace's .env, the environment and flags become one [Settings], in which
// every value knows where it was set. It also keeps which workspaces the user
// trusts ([TrustFile]) and saves single values back ([Store]).
//
// The layers, low to high: defaults, the user's file, the executable's, the
// project's, the workspace's .env, the environment, flags. A higher layer wins,
// with three exceptions that keep a layer from widening what another narrows:
//
//   - readonly, minimal_filesystem_tools, excluded_tools and permissions only
//     add up, whatever layer they come from;
//   - limits and the other keys marked [CombineNarrow] may be set freely by the
//     user (user file, environment, flags), while a workspace only narrows them;
//   - in a workspace that the user does not trust, its settings and .env can't
//     name providers, endpoints, keys, hooks, MCP servers or directories outside
//     of it. Such values are dropped with a warning.
//
// Nothing here reads the process's environment or home directory: all of it
// comes in through [Sources]. Loading creates no file.
package settings

import (
	"encoding/json"
	"path/filepath"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// Settings are the merged settings of one workspace. A Settings is not changed
// after [Load] returned it and may be read from several goroutines.
type Settings struct {
	Model           Value[string] // of the main agent: provider:model or an alias; "" when nothing is set
	ReasoningEffort Value[synapse.Effort]
	ModelAliases    map[string]Value[string] // alias → provider:model
	FallbackModels  Value[[]string]
	Providers       map[string]Value[Provider]
	Models          map[string]Value[Model] // by provider:model
	ProbeLocal      Value[bool]

	EnableSubagents                  Value[bool]
	EnableCustomSubagents            Value[bool]
	CustomAgentsDirs                 Value[[]string] // absolute, in order
	DisableBuiltinSubagents          Names
	ImportSources                    Value[[]string] // nil: every product's files are read
	SubagentDefaultModel             Value[string]
	SubagentDefaultReasoningEffort   Value[synapse.Effort]
	SubagentModelOverrides           map[string]Value[string]         // by agent
	SubagentReasoningEffortOverrides map[string]Value[synapse.Effort] // by agent
	// SubagentModelVars holds the AGENT_SUBAGENT_<NAME>_MODEL variables by
	// NAME, as the variable spells it.
	SubagentModelVars         map[string]Value[string]
	SubagentDescriptionBudget Value[int] // tokens

	ExcludedTools                  Names
	ReadOnly                       Value[bool]
	MinimalFilesystemTools         Value[bool]
	MinimalFilesystemExcludedTools Names
	// Permissions has one source for each layer that sets rules, low to high.
	Permissions []policy.Source

	MaxDepth          Value[int]
	MaxParallel       Value[int]
	MaxHandoffs       Value[int]
	MaxTurns          Value[int] // 0: the agent's own
	Limits            Limits
	StreamIdleTimeout Value[synapse.Duration]
	Intent            Value[bool]

	Theme      Value[string] // of the screen; "" follows the terminal
	WebSearch  WebSearch
	MCPServers map[string]Value[json.RawMessage] // by name, as written
	// Hooks has one value for each layer that sets hooks, low to high: a
	// higher layer adds to the user's hooks and does not remove them.
	Hooks []Value[json.RawMessage]

	// Secrets are the variables that providers read: keys, endpoints, regions.
	Secrets Secrets
	// Trusted says whether the user trusts the workspace.
	Trusted bool

	home, stateDir, workspace string
	permissionOrigins         []Origin // of Permissions
}

// Limits are the settings' limits, 0 for none.
type Limits struct {
	Tokens    Value[int64]
	CostUSD   Value[float64]
	Time      Value[synapse.Duration]
	ToolCalls Value[int64]
	Spawns    Value[int64]
}

// Plain returns the limits without their origins. Turns is not set: max_turns
// is the limit of one run, these are those of a trace.
func (l Limits) Plain() synapse.Limits {
	return synapse.Limits{
		Tokens:    l.Tokens.V,
		CostUSD:   l.CostUSD.V,
		Time:      l.Time.V,
		ToolCalls: int(l.ToolCalls.V),
		Spawns:    int(l.Spawns.V),
	}
}

// Names is a list of names, each with where it was set.
type Names struct {
	Origin Origin // of the list itself: the highest layer that gave one
	Items  []Value[string]
}

// Strings returns the names alone.
func (n Names) Strings() []string {
	names := make([]string, 0, len(n.Items))
	for _, v := range n.Items {
		names = append(names, v.V)
	}
	return names
}

// A Provider is an entry of the providers key: an endpoint under a name of the
// user's choosing. A higher layer's entry replaces a lower one whole, so that
// an endpoint never comes to a key that another layer meant for another one.
type Provider struct {
	Kind      string   `json:"kind,omitempty"` // the wire format it speaks
	BaseURL   string   `json:"base_url,omitempty"`
	APIKeyEnv string   `json:"api_key_env,omitempty"` // the variable that holds its key
	Models    []string `json:"models,omitempty"`
}

// WebSearch says which service answers the web_search tool. The tool is not
// offered when Kind and Endpoint are both empty.
type WebSearch struct {
	Endpoint  Value[string]
	Kind      Value[string] // searxng, brave or tavily
	APIKeyEnv Value[string] // the variable that holds its key
}

// UserDir returns <home>/.synapse, "" without a home.
func (s *Settings) UserDir() string {
	if s.home == "" {
		return ""
	}
	return filepath.Join(s.home, ".synapse")
}

// StateDir returns where journals and other state of this user belong, "" when
// there is neither a home nor XDG_STATE_HOME. It need not exist.
func (s *Settings) StateDir() string { return s.stateDir }

// Workspace returns the absolute workspace, "" without one.
func (s *Settings) Workspace() string { return s.workspace }
