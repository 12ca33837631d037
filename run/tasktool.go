package run

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/synapse-agents/synapse"
)

// The tools of delegation. The loop runs them itself, since they start runs.
const (
	toolTask       = "task"
	toolTaskOutput = "task_output"
	toolTaskStop   = "task_stop"
	toolWorkflow   = "run_workflow"
)

//go:embed task.md
var taskText string

//go:embed task_output.md
var taskOutputText string

//go:embed task_stop.md
var taskStopText string

// DelegationTools returns the names of the delegation tools and what they are,
// for whoever lists the tools there are.
func DelegationTools() []synapse.ToolDef {
	return []synapse.ToolDef{
		{Name: toolTask, Description: "starts a sub-agent", Schema: taskSchema},
		{Name: toolTaskOutput, Description: firstLine(taskOutputText), Schema: taskOutputSchema},
		{Name: toolTaskStop, Description: firstLine(taskStopText), Schema: taskStopSchema},
		{Name: toolWorkflow, Description: firstLine(workflowText), Schema: workflowSchema},
	}
}

func isDelegation(name string) bool {
	return name == toolTask || name == toolTaskOutput || name == toolTaskStop || name == toolWorkflow || isTransfer(name)
}

var (
	taskSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"subagent_type":{"type":"string"},` +
		`"description":{"type":"string","description":"3-5 words for the user"},` +
		`"prompt":{"type":"string","description":"all the sub-agent will know"},` +
		`"background":{"type":"boolean"},` +
		`"task_id":{"type":"string","description":"continue this earlier task"}},` +
		`"required":["description","prompt"]}`)
	taskOutputSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"task_id":{"type":"string"},` +
		`"wait":{"type":"number","description":"seconds to wait for its end, at most 600"}},` +
		`"required":["task_id"]}`)
	taskStopSchema = json.RawMessage(`{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"]}`)
)

type taskArgs struct {
	Type        string `json:"subagent_type"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Background  *bool  `json:"background"`
	TaskID      string `json:"task_id"`
}

type taskOutputArgs struct {
	TaskID string  `json:"task_id"`
	Wait   float64 `json:"wait"`
}

type taskStopArgs struct {
	TaskID string `json:"task_id"`
}

// delegationDef writes what a spec's model reads about delegation.
func delegationDef(name string, ps *preparedSpec, opt ProgramOptions) (synapse.ToolDef, error) {
	var def synapse.ToolDef
	if to, ok := ps.transfers[name]; ok {
		def = transferDef(name, to)
	}
	switch name {
	case toolTask:
		def = synapse.ToolDef{Name: name, Description: ps.roster, Schema: taskSchema}
	case toolWorkflow:
		def = synapse.ToolDef{Name: name, Description: workflowLines(ps.flows, opt.DescriptionBudget*4), Schema: workflowSchema}
	case toolTaskOutput:
		def = synapse.ToolDef{Name: name, Description: strings.TrimSpace(taskOutputText), Schema: taskOutputSchema}
	case toolTaskStop:
		def = synapse.ToolDef{Name: name, Description: strings.TrimSpace(taskStopText), Schema: taskStopSchema}
	}
	if !opt.NoIntent {
		schema, _, err := withIntent(def.Schema)
		if err != nil {
			return def, fmt.Errorf("prepare tool %s: %w", name, err)
		}
		def.Schema = schema
	}
	return def, nil
}

// roster is what the task tool says, with the agents that a spec may call.
func roster(agents []callee, budget int) string {
	return strings.TrimSpace(taskText) + "\n\nAgents:\n" + strings.Join(agentLines(agents, budget), "\n")
}

// writeRosters writes what each spec's task tool says. Specs that may delegate
// mostly call the same agents, and then share one text.
func (p *Program) writeRosters() {
	texts := map[string]string{}
	for _, ps := range p.specs {
		var key strings.Builder
		for _, a := range ps.agents {
			key.WriteString(a.spec.ID + "\x00")
		}
		text, ok := texts[key.String()]
		if !ok {
			text = roster(ps.agents, p.opt.DescriptionBudget*4)
			texts[key.String()] = text
		}
		ps.roster = text
	}
}

// agentLines lists the agents as "- name: description (Tools: …)". When that
// would pass the budget, in bytes, the longest descriptions are shortened until
// it fits; no agent is dropped.
func agentLines(agents []callee, budget int) []string {
	type line struct{ before, about, after string }
	lines := make([]line, len(agents))
	for i, a := range agents {
		lines[i] = line{"- " + oneLine(a.spec.Agent) + ": ", oneLine(a.spec.Description), " (Tools: " + toolsOf(a.spec) + ")"}
	}
	fits := func(limit int) bool {
		size := 0
		for _, l := range lines {
			size += len(l.before) + len(shorten(l.about, limit)) + len(l.after) + 1
		}
		return size <= budget
	}
	limit := 1 << 20
	if !fits(limit) {
		limit = max(sort.Search(1<<12, func(n int) bool { return !fits(n) })-1, 1)
	}
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = l.before + shorten(l.about, limit) + l.after
	}
	return all
}

func toolsOf(s *synapse.Spec) string {
	if len(s.Policy.Allow) == 0 {
		return "none"
	}
	return strings.Join(s.Policy.Allow, ", ")
}

// shorten cuts s to at most n bytes, at a rune and if possible at a word, and
// marks the cut.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	if n <= len(mark) {
		return mark
	}
	cut := n - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	s = s[:cut]
	if i := strings.LastIndexByte(s, ' '); i > len(s)*2/3 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ,.;:") + mark
}

// oneLine puts a text from elsewhere on one line, without what a terminal or a
// reader could mistake for something else: control bytes, direction marks and
// other invisible characters, but for those that join letters.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	return strings.Map(func(r rune) rune {
		if r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// find returns the callee that a model means by name: exactly, or ignoring case,
// blanks, "-" and "_". A blank name means the default.
func (ps *preparedSpec) find(name string) (*synapse.Spec, bool) { return find(ps.agents, name) }

// find returns the callee of a name among those of a caller.
func find(callees []callee, name string) (*synapse.Spec, bool) {
	name = strings.TrimSpace(name)
	for _, a := range callees {
		for _, n := range a.names {
			if n == name {
				return a.spec, true
			}
		}
	}
	if loose(name) == "" {
		return nil, false
	}
	var found *synapse.Spec
	for _, a := range callees {
		for _, n := range a.names {
			if loose(n) == loose(name) {
				if found != nil && found != a.spec {
					return nil, false // two agents could be meant: guess neither
				}
				found = a.spec
			}
		}
	}
	return found, found != nil
}

// loose folds what a model tends to get wrong in a name.
func loose(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

func (ps *preparedSpec) agentNames() string {
	names := make([]string, len(ps.agents))
	for i, a := range ps.agents {
		names[i] = a.spec.Agent
	}
	return strings.Join(names, ", ")
}
