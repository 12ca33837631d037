// Package replay keeps what models answered in a request, and plays it back: the
// request runs again without a model, its tools for real, and fails at the first
// difference in what a model would have been asked. That is a test of agents: of
// their prompts, their tools, their rules and their models.
//
// A [Recorder] and a [Player] stand in for the models of a run through
// [run.Local]'s Intercept. Requests are told apart by where they are made: by
// the run's path and its turn, so that parallel sub-agents may come in any order.
package replay

import (
	"encoding/json"

	"github.com/synapse-agents/synapse"
)

// Version is the version of the recording format that this package writes.
const Version = 1

// Format is the word that every recording begins with.
const Format = "synapse-recording"

// A Recording is what a file holds: JSON, one value a line, in an order that does
// not depend on which sub-agent was the first, so that two recordings of the same
// work differ only where the work does.
type Recording struct {
	// Prompt is what the user asked.
	Prompt string
	// Main is the main agent, and Model its model.
	Main  string
	Model string
	// Trace is the id that a replay has, and that task ids are made from.
	Trace string
	// Specs are the ways in which models were set up, by name.
	Specs map[string]*Spec
	Turns []*Turn
}

// A Spec is what the requests of a run have in common.
type Spec struct {
	Model       string             `json:"model"` // provider:model
	Effort      synapse.Effort     `json:"effort,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"`
	TopP        *float64           `json:"top_p,omitempty"`
	MaxTokens   int64              `json:"max_tokens,omitempty"`
	System      string             `json:"system"`
	Tools       []*synapse.ToolDef `json:"tools,omitempty"`
}

// A Turn is one request with its answer.
type Turn struct {
	Run  string `json:"run"` // the path of the run
	Turn int    `json:"turn"`
	Spec string `json:"spec"`
	// From is how many messages of the conversation the turn before had, with its
	// reply; Messages are those that have come since.
	From     int               `json:"from,omitempty"`
	Messages []synapse.Message `json:"messages,omitempty"`
	// Reply is the answer, or Failure why there was none.
	Reply   *synapse.Reply `json:"reply,omitempty"`
	Failure *Failure       `json:"failure,omitempty"`
}

// A Failure is a provider's, after all attempts.
type Failure struct {
	Provider string            `json:"provider,omitempty"`
	Model    string            `json:"model,omitempty"`
	Kind     synapse.ErrorKind `json:"kind"`
	Status   int               `json:"status,omitempty"`
	Message  string            `json:"message"`
}

func (f *Failure) err() error {
	return &synapse.ProviderError{Provider: f.Provider, Model: f.Model, Kind: f.Kind, Status: f.Status, Message: f.Message}
}

// clone copies a value that JSON can carry.
func clone[T any](v T) (T, error) {
	var out T
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}
