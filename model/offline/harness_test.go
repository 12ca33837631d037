package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/offline"
	"github.com/synapse-agents/synapse/tool"
)

// A bench is a small loop around the model: real tools on a directory, and for
// the main agent a task tool whose children run in the same loop.
type bench struct {
	t     *testing.T
	tools map[string]synapse.Tool
	order []string
	// agents are what the task tool offers: name, description, tools.
	agents []benchAgent
	// deny gives the result of tools that a policy refuses.
	deny map[string]string
	// log holds every call in order, "tool args" with the agent in front.
	log []string
	// exec gives the output of commands by what they start with; what it
	// does not hold is run for real.
	exec map[string]*synapse.ToolResult
	// turns is the longest conversation so far.
	turns int
}

type benchAgent struct {
	name, about string
	tools       []string
}

var crew = []benchAgent{
	{"analyst", "Use for questions that need material weighed against each other, such as comparing options, or summing up data and logs. Reads files and the web; changes nothing.", []string{"read_file", "find_files", "search_files", "fetch_url"}},
	{"explore", "Use to find code or files quickly, for instance where something is defined, who uses it, or how a directory is laid out. Searches and reads only; cheap to run several of at once.", []string{"read_file", "find_files", "search_files"}},
	{"general-purpose", "Use for a task of several steps that fits no other agent. Has all tools.", []string{"read_file", "find_files", "search_files", "execute", "write_file", "edit_file"}},
	{"researcher", "Use to find out how something works, where it is, or why it fails, before anything is changed. Reads widely and reports with evidence; changes nothing.", []string{"read_file", "find_files", "search_files"}},
	{"reviewer", "Use to judge a change before it is kept. Looks for bugs, security holes and missing tests; may run commands, edits nothing.", []string{"read_file", "find_files", "search_files", "execute"}},
	{"tester", "Use after code was written or changed, or when a failure has to be reproduced. Runs the tests, writes the ones that are missing, and reports what fails and why.", []string{"read_file", "find_files", "search_files", "execute", "write_file"}},
}

func newBench(t *testing.T, dir string) *bench {
	t.Helper()
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	b := &bench{t: t, tools: map[string]synapse.Tool{}}
	for _, tl := range w.Tools() {
		b.tools[tl.Name] = tl
		b.order = append(b.order, tl.Name)
	}
	return b
}

// defs returns what is offered: the named tools (all when nil), each with the
// intent that the loop adds.
func (b *bench) defs(names []string, delegates bool) []synapse.ToolDef {
	var out []synapse.ToolDef
	for _, n := range b.order {
		if names == nil || slices.Contains(names, n) {
			out = append(out, synapse.ToolDef{Name: n, Description: b.tools[n].Description, Schema: withIntent(b.t, b.tools[n].Schema)})
		}
	}
	if delegates && len(b.agents) > 0 {
		text := "Starts a sub-agent.\n- Several calls in one message run in parallel.\n\nAgents:\n"
		for _, a := range b.agents {
			text += fmt.Sprintf("- %s: %s (Tools: %s)\n", a.name, a.about, strings.Join(a.tools, ", "))
		}
		out = append(out, synapse.ToolDef{Name: "task", Description: text, Schema: withIntent(b.t, json.RawMessage(
			`{"type":"object","properties":{"subagent_type":{"type":"string"},"description":{"type":"string"},"prompt":{"type":"string"},"background":{"type":"boolean"},"task_id":{"type":"string"}},"required":["description","prompt"]}`))})
	}
	return out
}

func withIntent(t *testing.T, schema json.RawMessage) json.RawMessage {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(schema, &m); err != nil {
		t.Fatal(err)
	}
	props, _ := m["properties"].(map[string]any)
	props["intent"] = map[string]any{"type": "string", "description": "why, in a few words"}
	required, _ := m["required"].([]any)
	m["required"] = append(required, "intent")
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask runs a conversation to its end.
func (b *bench) ask(prompt string) (string, error) {
	return b.converse("main", nil, true, synapse.UserText(prompt))
}

func (b *bench) converse(who string, names []string, delegates bool, messages ...synapse.Message) (string, error) {
	b.t.Helper()
	defs := b.defs(names, delegates)
	for turn := 1; ; turn++ {
		if turn > 8 {
			b.t.Fatalf("%s: no answer after 8 turns: %s", who, strings.Join(b.log, "\n"))
		}
		reply, err := synapse.Collect(offline.New().Generate(context.Background(), &synapse.Request{
			Model: offline.Name, System: "You are " + who + ".", Messages: messages, Tools: defs,
		}), nil)
		if err != nil {
			return "", err
		}
		b.turns = max(b.turns, turn)
		messages = append(messages, reply.Message)
		calls := reply.Message.Calls()
		if len(calls) == 0 {
			return reply.Message.Text(), nil
		}
		results := synapse.Message{Role: synapse.RoleTool}
		for _, c := range calls {
			r := b.run(who, defs, c)
			r.CallID, r.Name = c.ID, c.Name
			results.Parts = append(results.Parts, synapse.Part{Kind: synapse.PartResult, Result: r})
		}
		messages = append(messages, results)
	}
}

func (b *bench) run(who string, defs []synapse.ToolDef, c *synapse.ToolCall) *synapse.ToolResult {
	b.t.Helper()
	if !slices.ContainsFunc(defs, func(d synapse.ToolDef) bool { return d.Name == c.Name }) {
		b.t.Fatalf("%s calls %s, which is not offered", who, c.Name)
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		b.t.Fatalf("%s %s: arguments %s: %v", who, c.Name, c.Args, err)
	}
	if s, _ := args["intent"].(string); s == "" {
		b.t.Errorf("%s %s: no intent in %s", who, c.Name, c.Args)
	}
	delete(args, "intent")
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	b.log = append(b.log, fmt.Sprintf("%s: %s %s", who, c.Name, raw))
	if why, ok := b.deny[c.Name]; ok {
		return synapse.ErrorResult(why)
	}
	if cmd, _ := args["command"].(string); c.Name == "execute" {
		for prefix, res := range b.exec {
			if strings.HasPrefix(cmd, prefix) {
				out := *res
				return &out
			}
		}
	}
	if c.Name == "task" {
		name, _ := args["subagent_type"].(string)
		prompt, _ := args["prompt"].(string)
		for _, a := range b.agents {
			if a.name == name {
				text, err := b.converse(name, a.tools, false, synapse.UserText(prompt))
				if err != nil {
					return synapse.ErrorResult(fmt.Sprintf("Agent %q failed: %s.\nTokens: 0 in / 0 out\nTask: t1\n\n", name, strings.Join(strings.Fields(err.Error()), " ")))
				}
				return synapse.TextResult(fmt.Sprintf("Agent %q completed.\nTokens: 0 in / 0 out\nTask: t1\n\n%s", name, text))
			}
		}
		return synapse.ErrorResult("no agent " + name)
	}
	res, err := b.tools[c.Name].Run(context.Background(), &synapse.Invocation{
		CallID: c.ID, Key: c.ID, Args: raw,
		Permits: func(string) bool { return true },
		Output:  func(string) {},
	})
	if err != nil {
		return synapse.ErrorResult(err.Error())
	}
	return res
}
