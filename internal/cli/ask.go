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
	"github.com/synapse-agents/synapse/run"
)

// asker puts an agent's questions to the user at the terminal, one at a time.
type asker struct {
	view *view
	in   io.Reader

	reading sync.Once
	typed   <-chan string

	mu    sync.Mutex
	grant map[string]bool // what was allowed for the rest of the session
}

// lines returns what the user types, line by line. Nothing is read before the
// first call: a program in the background that reads is stopped by the terminal.
func (k *asker) lines() <-chan string {
	k.reading.Do(func() { k.typed = readLines(k.in) })
	return k.typed
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
	if err := ctx.Err(); err != nil { // it was cancelled while another question was open
		return synapse.Answer{}, err
	}
	what := q.Agent + "\x00" + q.Tool + "\x00" + q.Subject
	if k.grant[what] {
		return synapse.Answer{Allow: true}, nil
	}
	v := k.view
	v.pause()
	defer v.resume()
	k.forget()
	var b strings.Builder
	if q.Tool == run.ToolApprove {
		fmt.Fprintf(&b, "%s asks: %s\n[y]es, [n]o, or say why not: ", cleanLine(q.Agent), shown(q))
	} else {
		question(&b, q)
	}
	io.WriteString(v.out, b.String())
	select {
	case <-ctx.Done():
		fmt.Fprintln(v.out)
		return synapse.Answer{}, ctx.Err()
	case line, ok := <-k.lines():
		if !ok {
			fmt.Fprintln(v.out)
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

// question writes what an agent wants to do.
func question(b *strings.Builder, q synapse.Ask) {
	fmt.Fprintf(b, "%s wants to run %s\n", cleanLine(q.Agent), cleanLine(q.Tool))
	if q.Intent != "" {
		fmt.Fprintf(b, "  why:  %s\n", cleanLine(q.Intent))
	}
	fmt.Fprintf(b, "  with: %s\n  rule: %s\nAllow it? [y]es, [a]lways in this session, [n]o, or say why not: ", shown(q), cleanLine(q.Reason))
}

// forget throws away what was typed before the question: it can't have been
// meant as the answer.
func (k *asker) forget() {
	k.view.tty.forget()
	for {
		select {
		case _, ok := <-k.lines():
			if ok {
				continue
			}
		default:
		}
		return
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
