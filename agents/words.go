package agents

import (
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// effect is what a word in a product's file means here.
type effect string

const (
	plain    effect = "the user's own rules decide"
	widens   effect = "not followed: no file lifts the user's rules"
	readOnly effect = "no tool that changes files or runs commands, and no server's tool"
	noWrites effect = "no tool that changes files or runs commands"
	noAsking effect = "what the product would ask about is denied: changing files, running commands, fetching pages"
	askShell effect = "each command is asked about"
	askWrite effect = "each change of a file and each command is asked about"
)

// word is one value of a field with a few.
type word struct {
	name   string
	effect effect
	// loses says why the effect is stricter than in the product, "" if it is
	// just that.
	loses string
}

// words is the reading of a field whose value is one of a few words, each of
// which restricts the agent or does not. A word that nobody knows may have been
// meant to restrict.
func words(list ...word) readFunc {
	return func(r *reader, n *yaml.Node) error {
		var names []string
		for _, w := range list {
			names = append(names, w.name)
		}
		name, err := r.word(n, names...)
		if err != nil {
			return err
		}
		r.apply(n, list[slices.Index(names, name)])
		return nil
	}
}

// flag is the reading of a field that is true or false, where true has an
// effect.
func flag(when bool, w word) readFunc {
	return func(r *reader, n *yaml.Node) error {
		on, err := r.boolean(n)
		if err == nil && on == when {
			w.name = n.Value
			r.apply(n, w)
		}
		return err
	}
}

func (r *reader) apply(n *yaml.Node, w word) {
	switch w.effect {
	case widens:
		r.warn(n, CodeNotWidened, "change permissions in settings", "%s: %s is not followed; the user's own rules decide", r.field.spelling(), w.name)
	case readOnly:
		r.limit(n.Line, policy.Deny, toolsReadOnly, toolsServers)
	case noWrites:
		r.limit(n.Line, policy.Deny, toolsReadOnly)
	case noAsking:
		r.limit(n.Line, policy.Deny, toolsReadOnly, []string{"fetch_url"})
	case askShell:
		r.limit(n.Line, policy.Ask, toolsShell)
	case askWrite:
		r.limit(n.Line, policy.Ask, toolsReadOnly)
	}
	if w.loses != "" {
		r.warn(n, CodeStricter, "", "%s: %s: %s", r.field.spelling(), w.name, w.loses)
	}
}

// effortWords are words of other products for efforts, beside our own.
var effortWords = map[string]synapse.Effort{
	"xhigh": synapse.EffortMax, "extra-high": synapse.EffortMax, "med": synapse.EffortMedium, "none": synapse.EffortOff,
}

// readForeignEffort reads an effort in the words of other products.
func readForeignEffort(r *reader, n *yaml.Node) error {
	if e, ok := effortWords[strings.ToLower(trim(n.Value))]; ok && n.Kind == yaml.ScalarNode && !customTag(n) {
		r.warn(n, CodeConvertedValue, "", "%s is %s, read as %s", r.field.spelling(), n.Value, e)
		r.d.ReasoningEffort = e
		return nil
	}
	return readEffort(r, n)
}

// readMinutes reads a limit on time that is a number of minutes.
func readMinutes(r *reader, n *yaml.Node) error {
	m, err := r.number(n, 1e-6, 1e6)
	if err == nil {
		r.d.Limits.Time = synapse.Duration(m * 60e9)
	}
	return err
}

// notRunnable is the reading of a key that says that the agent runs somewhere
// else.
func notRunnable(why string) readFunc {
	return func(r *reader, n *yaml.Node) error {
		r.report(r.pos(n), Error, CodeNotRunnable, "call it by its own product", "%s: %s", r.field.spelling(), why)
		return nil
	}
}

// servers is why the servers that a file names are not started.
const servers = "servers are started by the user's settings (mcp_servers) alone, not by an agent's file; their tools are had there by name"

// isolation is the reading of a place to work in other than the workspace.
func isolation(r *reader, n *yaml.Node) error {
	if _, err := r.text(n); err != nil {
		return err
	}
	r.apply(n, word{n.Value, askWrite, "there is no such copy of the workspace here, so each change of a file and each command is asked about"})
	return nil
}
