package compile

import "github.com/synapse-agents/synapse/agents"

// The codes of this package's diagnostics. They are stable: scripts may test
// for them.
const (
	CodeDepthReduced         = "depth-reduced"
	CodeDisallowedUnresolved = "disallowed-unresolved"
	CodeModelUnresolved      = "model-unresolved"
	CodeNoTools              = "no-tools"
	CodeSkillMissing         = "skill-missing"
	CodeToolDenied           = "tool-denied"
	CodeToolUnresolved       = "tool-unresolved"
)

// Codes lists every code that diagnostics of this package may have, in byte
// order, with a sentence each.
func Codes() []agents.CodeInfo {
	return []agents.CodeInfo{
		{Code: CodeDepthReduced, Severity: agents.Warn, About: "So many agents may delegate, each with its own restrictions, that they delegate to a smaller depth than settings allow."},
		{Code: CodeDisallowedUnresolved, Severity: agents.Warn, About: "disallowed_tools names something that is no tool here, so it denies nothing."},
		{Code: CodeModelUnresolved, Severity: agents.Warn, About: "A model's name means nothing here. It counts as inherit, so that nobody gets a model the user did not choose."},
		{Code: CodeNoTools, Severity: agents.Warn, About: "The agent is left without any tool though its definition wants some. Delegating to it fails with the reason."},
		{Code: CodeSkillMissing, Severity: agents.Warn, About: "There is no skill of that name, so it is not preloaded."},
		{Code: CodeToolDenied, Severity: agents.Warn, About: "tools lists a tool that the agent can't have, for the reason given."},
		{Code: CodeToolUnresolved, Severity: agents.Warn, About: "tools names something that is no tool here, so it gives nothing."},
	}
}
