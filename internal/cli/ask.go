package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
)

// asker puts an agent's questions to the user at the terminal, one at a time.
type asker struct {
	view  *view
	lines <-chan string

	mu    sync.Mutex
	grant map[string]bool // what was allowed for the rest of the session
}

func newAsker(in io.Reader, v *view) *asker {
	return &asker{view: v, lines: readLines(in), grant: map[string]bool{}}
}

// readLines reads lines for as long as somebody takes them. The reader stays
// behind when the program ends: a terminal can't be told to give up a read.
func readLines(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxStdin)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	return lines
}

// asker returns the function that asks, nil when nobody is there.
func (v *view) asker() func(context.Context, synapse.Ask) (synapse.Answer, error) {
	if v.ask == nil {
		return nil
	}
	return v.ask.answer
}

func (k *asker) answer(ctx context.Context, q synapse.Ask) (synapse.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what := q.Agent + "\x00" + q.Tool + "\x00" + q.Subject
	if k.grant[what] {
		return synapse.Answer{Allow: true}, nil
	}
	v := k.view
	v.mu.Lock()
	v.erase()
	v.paused = true
	fmt.Fprintf(v.out, "%s wants to run %s\n", cleanLine(q.Agent), cleanLine(q.Tool))
	if q.Intent != "" {
		fmt.Fprintf(v.out, "  why:  %s\n", cleanLine(q.Intent))
	}
	fmt.Fprintf(v.out, "  with: %s\n  rule: %s\nAllow it? [y]es, [a]lways in this session, [n]o, or say why not: ", shown(q), cleanLine(q.Reason))
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.paused = false
		v.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(v.out)
		return synapse.Answer{}, ctx.Err()
	case line, ok := <-k.lines:
		if !ok {
			return synapse.Answer{Reason: "nobody answered"}, nil
		}
		switch word := strings.ToLower(strings.TrimSpace(line)); word {
		case "y", "yes":
			return synapse.Answer{Allow: true}, nil
		case "a", "always":
			k.grant[what] = true
			return synapse.Answer{Allow: true}, nil
		case "", "n", "no":
			return synapse.Answer{}, nil
		default:
			return synapse.Answer{Reason: strings.TrimSpace(line)}, nil
		}
	}
}

// shown is what the user has to judge: the whole of the arguments, on one line
// for each.
func shown(q synapse.Ask) string {
	var args map[string]any
	if err := json.Unmarshal(q.Args, &args); err != nil || len(args) != 1 {
		return clean(string(q.Args))
	}
	for _, v := range args {
		if s, ok := v.(string); ok {
			return strings.ReplaceAll(clean(s), "\n", "\n        ")
		}
	}
	return clean(string(q.Args))
}
