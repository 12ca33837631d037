package cli

import (
	"iter"

	"github.com/synapse-agents/synapse"
)

type eventStream = iter.Seq2[*synapse.Event, error]

// result is what --output-format json prints. It is documented and stable.
type result struct {
	TraceID  string         `json:"trace_id"`
	Session  string         `json:"session_id,omitempty"`
	Status   synapse.Status `json:"status"`
	Content  string         `json:"content"`
	Cause    string         `json:"cause,omitempty"`
	Model    string         `json:"model"`
	Usage    resultUsage    `json:"usage"`
	Children []resultChild  `json:"children"`
}

type resultUsage struct {
	agentUsage
	ByAgent map[string]agentUsage `json:"by_agent"`
}

type agentUsage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"` // null when a price is unknown
}

type resultChild struct {
	TaskID   string         `json:"task_id"`
	Agent    string         `json:"agent"`
	ParentID string         `json:"parent_id"`
	Status   synapse.Status `json:"status"`
	Turns    int            `json:"turns"`
	Model    string         `json:"model"`
	Usage    agentUsage     `json:"usage"` // of this run alone
}

// summary adds a trace up, from its events.
type summary struct {
	r       result
	byAgent map[string]synapse.Usage
	byRun   map[string]synapse.Usage
	place   map[string]int // of a child in r.Children, by its id
}

func newSummary() *summary {
	return &summary{r: result{Children: []resultChild{}}, byAgent: map[string]synapse.Usage{}, byRun: map[string]synapse.Usage{}, place: map[string]int{}}
}

func (s *summary) add(e *synapse.Event) {
	switch b := e.Body.(type) {
	case *synapse.RunStarted:
		s.r.TraceID = e.Trace
		if b.Session != "" {
			s.r.Session = b.Session
		}
		if e.ParentRun == "" {
			break
		}
		if _, again := s.place[e.Run]; !again {
			s.place[e.Run] = len(s.r.Children)
			s.r.Children = append(s.r.Children, resultChild{TaskID: e.Run, Agent: e.Agent, ParentID: e.ParentRun})
		}
	case *synapse.RunFinished:
		s.byAgent[e.Agent] = s.byAgent[e.Agent].Add(b.Usage)
		if i, ok := s.place[e.Run]; ok {
			c := &s.r.Children[i]
			s.byRun[e.Run] = s.byRun[e.Run].Add(b.Usage) // it may have been continued
			c.Status, c.Model, c.Usage = b.Status, b.Model, plain(s.byRun[e.Run])
			c.Turns += b.Turns
			break
		}
		s.r.Status, s.r.Content, s.r.Cause, s.r.Model = b.Status, b.Text, b.Cause, b.Model
		s.r.Usage.agentUsage = plain(b.Total)
	}
}

func (s *summary) result() result {
	r := s.r
	r.Usage.ByAgent = map[string]agentUsage{}
	for name, u := range s.byAgent {
		r.Usage.ByAgent[name] = plain(u)
	}
	return r
}

func plain(u synapse.Usage) agentUsage {
	return agentUsage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostUSD: u.CostUSD}
}
