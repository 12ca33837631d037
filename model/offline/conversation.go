package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/synapse-agents/synapse"
)

// A conversation is what the messages say: the request that is being served,
// and what has come back for it so far.
type conversation struct {
	request string
	earlier []string           // requests before it, oldest first
	turns   int                // replies given to it
	results map[string]outcome // by callKey
	order   []called           // the calls since the request
	calls   int                // calls of the whole conversation
	origin  string             // tells this conversation's call ids from another's
}

// called is a call that was made, with its arguments as they were written.
type called struct{ key, tool, args string }

// notice recognises user messages which the loop itself writes in the middle of
// a run: they are not what the user asked.
var notice = lazily(`(?i)^\W*(this is (your|the) last|last turn|you have (reached|used)|(the )?(turn|tool|token|time)s? limit|finish now|the result does not fit|no tools are available|a background task has ended|` +
	`continue\W*$|(background )?(task|agent) "?[\w-]+"? .{0,40}(completed|finished|failed|stopped|cancelled|timed out)|` +
	`(please )?(give|write|return) your (final|best))`)

// readConversation finds the request and collects the results given since.
func readConversation(req *synapse.Request) *conversation {
	c := &conversation{results: map[string]outcome{}}
	at := -1
	for i, m := range req.Messages {
		c.calls += len(m.Calls())
		if m.Role != synapse.RoleUser {
			continue
		}
		text := strings.TrimSpace(m.Text())
		if text == "" {
			continue
		}
		// The loop speaks between results and the next reply.
		midRun := i > 0 && req.Messages[i-1].Role == synapse.RoleTool
		if at >= 0 && (notice().MatchString(text) || midRun && len(req.Tools) == 0) {
			continue
		}
		if at >= 0 {
			c.earlier = append(c.earlier, c.request)
		}
		at, c.request = i, text
	}
	if at < 0 {
		return c
	}
	keys := map[string]string{} // call id → callKey
	for _, m := range req.Messages[at+1:] {
		if m.Role == synapse.RoleAssistant {
			c.turns++
		}
		for _, p := range m.Parts {
			switch {
			case p.Kind == synapse.PartCall && p.Call != nil:
				if key, ok := callKey(p.Call.Name, p.Call.Args); ok {
					keys[p.Call.ID] = key
					c.order = append(c.order, called{key, p.Call.Name, p.Call.Args})
				}
			case p.Kind == synapse.PartResult && p.Result != nil:
				if key, ok := keys[p.Result.CallID]; ok {
					state := ready
					if p.Result.IsError {
						state = failed
					}
					c.results[key] = outcome{state: state, tool: p.Result.Name, text: p.Result.Text}
				}
			}
		}
	}
	sum := sha256.Sum256([]byte(req.System + "\x00" + strconv.Itoa(at) + "\x00" + c.request))
	c.origin = hex.EncodeToString(sum[:4])
	return c
}

// callKey is what makes two calls the same: the tool and its arguments, in a
// canonical order, without the intent (which the loop may take out).
func callKey(tool, args string) (string, bool) {
	m, ok := decode(args)
	if !ok {
		return "", false
	}
	delete(m, "intent")
	return tool + "\x00" + compact(m), true
}

// decode reads arguments, false if they are no object.
func decode(args string) (map[string]any, bool) {
	var m map[string]any
	return m, json.Unmarshal([]byte(args), &m) == nil && m != nil
}

// state says what has become of a call.
type state int

const (
	waiting state = iota // asked for in this turn
	ready                // the tool's result is there
	failed               // the tool's result is an error
	missing              // no tool for it is offered, or no turn is left
)

// An outcome is a call's result as far as it is known.
type outcome struct {
	state state
	tool  string
	text  string
}

func (o outcome) ok() bool { return o.state == ready }

// why says in one clause why there is no result.
func (o outcome) why() string {
	switch o.state {
	case missing:
		return o.text
	case failed:
		first, _, _ := strings.Cut(strings.TrimSpace(o.text), "\n")
		return o.tool + ": " + clip(first, 200)
	}
	return ""
}
