package trace

import (
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
)

// StatusOpen is the status of a run or trace without an end: it goes on
// somewhere, or it was cut off. A journal can't tell the two apart.
const StatusOpen synapse.Status = "open"

// A Summary is one trace in a list.
type Summary struct {
	Trace string `json:"trace_id"`
	// Run is the main agent's run: the one without a parent, the last where
	// there are several.
	Run     string    `json:"run_id"`
	Started time.Time `json:"started"`        // time of the first event
	Ended   time.Time `json:"ended,omitzero"` // when the main run ended, zero while it is open
	Agent   string    `json:"agent"`
	Model   string    `json:"model,omitempty"` // the main agent's: the one that answered last, else the one it was to ask
	// Session is the conversation that the request belongs to, After the trace
	// that it goes on from, and Workspace the directory worked in; empty where
	// the program that ran it has not said.
	Session   string `json:"session_id,omitempty"`
	After     string `json:"after_trace_id,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	// Prompt is the first line of what the user asked first, at most 200 bytes.
	Prompt string         `json:"prompt"`
	Status synapse.Status `json:"status"` // of the main run
	Runs   int            `json:"runs"`   // how many there are in the trace, the main run included
	// Usage is the sum over all replies in the trace, of runs that were cut
	// off too.
	Usage synapse.Usage `json:"usage"`
}

// summarizes reports whether events of this kind change a summary, other than
// by being a run's first.
func summarizes(e *synapse.Event) bool {
	switch e.Kind {
	case synapse.KindModelReplied, synapse.KindCompacted:
		return true
	case synapse.KindRunStarted, synapse.KindRunFinished:
		return e.ParentRun == ""
	}
	return false
}

// add folds one event into the summary. Runs is the journal's to count.
func (s *Summary) add(e *synapse.Event) {
	if s.Trace == "" {
		s.Trace, s.Started, s.Status = e.Trace, e.Time, StatusOpen
	}
	if e.Time.Before(s.Started) {
		s.Started = e.Time
	}
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		if e.ParentRun != "" {
			return
		}
		if s.Run == "" {
			s.Prompt = firstLine(promptOf(b))
			s.Session, s.After, s.Workspace = b.Session, b.After, b.Workspace
		}
		s.Run, s.Agent, s.Status, s.Ended = e.Run, e.Agent, StatusOpen, time.Time{}
		if s.Model == "" && b.Spec != nil {
			s.Model = b.Spec.Model.String()
		}
	case *synapse.ModelReplied:
		s.Usage = s.Usage.Add(replyUsage(b))
		if e.ParentRun == "" && b.Model != "" {
			s.Model = b.Model
		}
	case *synapse.Compacted:
		if b.Usage != nil {
			s.Usage = s.Usage.Add(*b.Usage)
		}
	case *synapse.RunFinished:
		if e.ParentRun != "" || e.Run != s.Run && s.Run != "" {
			return
		}
		s.Status, s.Ended = b.Status, e.Time
		if b.Model != "" {
			s.Model = b.Model
		}
	}
}

// replyUsage is what a reply consumed: at least one request.
func replyUsage(b *synapse.ModelReplied) synapse.Usage {
	u := b.Usage
	if u.Requests == 0 {
		u.Requests = 1
	}
	return u
}

// promptOf returns the text of the last message that a start adds.
func promptOf(b *synapse.RunStarted) string {
	if len(b.Input) == 0 {
		return ""
	}
	return b.Input[len(b.Input)-1].Text()
}

const maxPromptLine = 200

// firstLine returns the first line of text that is not blank, shortened to
// maxPromptLine bytes without cutting a character in two.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	line = strings.TrimRight(line, " \t\r")
	if len(line) <= maxPromptLine {
		return line
	}
	const ellipsis = "…"
	end := 0
	for i := range line { // i is where a character begins
		if i > maxPromptLine-len(ellipsis) {
			break
		}
		end = i
	}
	return line[:end] + ellipsis
}
