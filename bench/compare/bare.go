package main

import (
	"context"
	"strings"
	"sync"
)

// openBare is the floor: call the model, run the tool, append to the
// conversation, with a goroutine for each sub-agent. It keeps no rules, events
// or limits.
func openBare(w *world) (func(context.Context) (string, error), error) {
	return func(ctx context.Context) (string, error) { return bareLoop(ctx, w, true, "go") }, nil
}

// A message of a bare conversation.
type message struct {
	role, text, callID string
	calls              []call
}

func bareLoop(ctx context.Context, w *world, main bool, prompt string) (string, error) {
	messages := []message{{role: "user", text: prompt}}
	for turn := 0; ; turn++ {
		r, err := w.next(ctx, main, prompt, turn)
		if err != nil {
			return "", err
		}
		messages = append(messages, message{role: "assistant", text: r.text, calls: r.calls})
		if len(r.calls) == 0 {
			return r.text, nil
		}
		results := make([]message, len(r.calls))
		var wg sync.WaitGroup
		for i, c := range r.calls {
			results[i] = message{role: "tool", callID: c.id}
			if c.name != spawn {
				text, err := w.read(c.args)
				if err != nil {
					text = err.Error()
				}
				results[i].text = text
				continue
			}
			wg.Go(func() {
				text, err := bareLoop(ctx, w, false, c.prompt)
				if err != nil {
					text = strings.TrimSpace("failed: " + err.Error())
				}
				results[i].text = text
			})
		}
		wg.Wait()
		messages = append(messages, results...)
	}
}
