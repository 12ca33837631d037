package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A world is the work that every library is given: what the model says, and what
// the one tool does. Nothing in it is a library's own.
type world struct {
	delay    time.Duration // until a reply begins
	turns    int           // replies of an agent that does the work itself
	children int           // sub-agents of the main agent; 0: it does the work itself
	fault    string        // "", "model", "unknown" or "panic"
	cleanup  func()        // removes what the library has put on the disk; nil for nothing

	cancelled atomic.Bool
	late      atomic.Int64 // requests and tool calls that began after the cancel
	requests  atomic.Int64
}

// A reply is a text, or calls.
type reply struct {
	text  string
	calls []call
}

// A call asks for a tool, or, with the name of spawn, for a sub-agent whose
// prompt is prompt.
type call struct {
	id, name string
	args     string
	prompt   string
}

const (
	spawn  = "task"
	answer = "That is what it says."
)

var errModel = errors.New("the model is broken")

// next decides the reply of an agent that has given turn replies so far.
func (w *world) next(ctx context.Context, main bool, prompt string, turn int) (reply, error) {
	if w.cancelled.Load() {
		w.late.Add(1)
	}
	w.requests.Add(1)
	if w.delay > 0 {
		timer := time.NewTimer(w.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
	}
	if main && turn == 0 {
		switch {
		case w.fault == "unknown":
			return reply{calls: []call{{id: "u", name: "rocket", args: `{}`}}}, nil
		case w.fault == "panic":
			return reply{calls: []call{{id: "p", name: "boom", args: `{}`}}}, nil
		}
	}
	if main && w.children > 0 {
		if turn > 0 {
			return reply{text: answer}, nil
		}
		r := reply{calls: make([]call, w.children)}
		for i := range r.calls {
			r.calls[i] = call{id: fmt.Sprint("c", i), name: spawn, prompt: fmt.Sprint("part ", i)}
		}
		return r, nil
	}
	if w.fault == "model" && prompt == "part 0" {
		return reply{}, errModel
	}
	if turn < w.turns-1 {
		return reply{calls: []call{{id: fmt.Sprint("r", turn), name: "read_file", args: fmt.Sprintf(`{"path":"docs/a.md","offset":%d}`, turn)}}}, nil
	}
	return reply{text: answer}, nil
}

// read is the tool. Its arguments come as JSON, whatever the library makes of them.
func (w *world) read(args string) (string, error) {
	if w.cancelled.Load() {
		w.late.Add(1)
	}
	var in struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
	}
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		return "", err
	}
	return "the text of " + in.Path, nil
}

// A library prepares a world's agents, once. What it returns runs the main agent
// to its answer, and may be called again.
type library struct {
	name string
	open func(w *world) (run func(context.Context) (string, error), err error)
}

var libraries = []library{{"bare loop", openBare}, {"synapse", openSynapse}, {"synapse on disk", openDurable}, {"eino", openEino}, {"fantasy", openFantasy}}
