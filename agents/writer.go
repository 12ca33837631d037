package agents

import "github.com/synapse-agents/synapse"

// writer says what a product's format can say, and under which keys. What is
// not here is lost when a definition is converted, and reported.
type writer struct {
	// noName: the file's name is the agent's, so that a key is only written
	// where the two differ. slugs: names are lower-case letters, digits, - and _.
	noName, slugs bool

	// lists: tools may be a list of names, which is kept to; emptyList: an
	// empty one means no tool. commaTools: it is written in one line.
	lists, emptyList, commaTools bool
	denies                       string // the key of a list of denials
	permission                   bool   // ordered rules with patterns
	readOnly                     string // a line that takes writing and the shell away

	// spawns: naming the tool that delegates lets the agent delegate.
	spawns bool

	mode, disable, visibility bool
	turns, minutes            string
	efforts                   map[synapse.Effort]string
	effort                    string
	model, slashModel         bool
	temperature, topP         bool
	skills, background        string
	color                     bool
}

// The words of products for efforts.
var (
	claudeEfforts = map[synapse.Effort]string{
		synapse.EffortLow: "low", synapse.EffortMedium: "medium", synapse.EffortHigh: "high", synapse.EffortMax: "max",
	}
	openaiEfforts = map[synapse.Effort]string{
		synapse.EffortOff: "none", synapse.EffortMinimal: "minimal", synapse.EffortLow: "low",
		synapse.EffortMedium: "medium", synapse.EffortHigh: "high", synapse.EffortMax: "xhigh",
	}
)
