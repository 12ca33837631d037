package run

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

// A verdict is what the guard makes of a call.
type verdict struct {
	// refusal is the result the model gets instead, nil if the call may go on.
	refusal *synapse.ToolResult
	denied  string // the policy's reason, when it was the policy that refused
	// ask is set when the user has to be asked first, and asks is the rule
	// that wants it.
	ask    *synapse.Ask
	asks   grant
	args   json.RawMessage // valid, without the intent
	intent string
}

// guard judges a call before it runs, with the same policy value that decided
// what was offered. A call that was forged, or that a resumed history brings
// back, gets no further than this.
func (l *loop) guard(call *synapse.ToolCall, key string) verdict {
	spec := l.ps.spec
	if !spec.Policy.Allows(call.Name) {
		d := spec.Policy.Check(policy.Call{Tool: call.Name})
		return l.deny(call, d, "")
	}
	strip := !l.p.opt.NoIntent
	t := l.p.tools[call.Name]
	if t != nil {
		strip = t.strip
	} else {
		t = l.p.delegation[call.Name]
	}

	args, err := readArguments(call.Args, strip, l.members[:0])
	l.members = args.members
	if err == nil {
		err = t.check(&args)
	}
	if err != nil {
		return verdict{refusal: malformed(call, t.Schema, err)}
	}
	v := verdict{args: args.raw, intent: args.intent}
	subject := t.Subject
	subjects := subjectsOf(subject, &args)
	if call.Name == toolTask {
		subjects = l.agentsOf(&args)
	}
	if t.Subjects != nil {
		if subjects, err = findSubjects(t.Subjects, v.args); err != nil {
			v.refusal = synapse.ErrorResult(fmt.Sprintf("%s: %v", call.Name, err))
			return v
		}
	}
	d := spec.Policy.Check(policy.Call{Tool: call.Name, Kind: subject.Kind, Subjects: subjects})
	switch d.Action {
	case policy.Allow:
	case policy.Ask:
		v.asks = grant{d.Origin, d.Rule}
		v.ask = &synapse.Ask{
			ID: l.in.Run + "/" + key, Run: l.in.Run, Agent: spec.Agent, Tool: call.Name,
			Args: v.args, Intent: v.intent, Subject: d.Subject, Reason: withOrigin(d.Reason, d.Origin),
		}
	default:
		return l.deny(call, d, v.intent)
	}
	return v
}

// A grant is a rule that asks and that the user has said yes to, for one call.
// The zero value is none.
type grant struct {
	origin string
	rule   policy.Rule
}

// permits returns the test that a tool applies to what it comes across. What a
// rule asks about is permitted only where the user has said yes to that rule for
// this very call.
func (l *loop) permits(tool *preparedTool, given grant) func(string) bool {
	pol := l.ps.spec.Policy
	if len(pol.Rules) == 0 || tool.Subject.Kind == policy.SubjectNone {
		return func(string) bool { return true }
	}
	kind := tool.Subject.Kind
	name := tool.Name
	return func(subject string) bool {
		d := pol.Check(policy.Call{Tool: name, Kind: kind, Subjects: []string{subject}})
		return d.Action == policy.Allow ||
			d.Action == policy.Ask && d.Rule != policy.Rule{} && given == grant{d.Origin, d.Rule}
	}
}

func (l *loop) deny(call *synapse.ToolCall, d policy.Decision, intent string) verdict {
	reason := withOrigin(d.Reason, d.Origin)
	return verdict{
		refusal: synapse.ErrorResult(fmt.Sprintf("permission denied: %s: %s; do not retry", call.Name, reason)),
		denied:  reason,
		intent:  intent,
	}
}

func withOrigin(reason, origin string) string {
	if origin == "" || strings.Contains(reason, origin) {
		return reason
	}
	return reason + " (" + origin + ")"
}

// check says what is wrong with the arguments of a call of this tool, if
// anything is.
func (t *preparedTool) check(args *arguments) error {
	if err := sameCase(args, t.schema.Schema()); err != nil {
		return err
	}
	if t.shape != nil && t.shape.fitsMembers(args.members) {
		return nil
	}
	var instance map[string]any
	if err := json.Unmarshal(args.raw, &instance); err != nil {
		return err
	}
	return t.schema.Validate(instance)
}

// sameCase refuses arguments that are a property's name in other letters. Go's
// JSON decoder would give them to the tool under the property's name, though the
// schema and the rules have not seen them as that.
func sameCase(args *arguments, schema *jsonschema.Schema) error {
	for i := range args.members {
		name := args.members[i].name
		if _, ok := schema.Properties[name]; ok {
			continue
		}
		if like := propertyLike(schema, name); like != "" {
			return fmt.Errorf("there is no property %q: did you mean %q?", name, like)
		}
	}
	return nil
}

// propertyLike returns the first property that differs from name in case only.
func propertyLike(schema *jsonschema.Schema, name string) string {
	like := ""
	for property := range schema.Properties {
		if strings.EqualFold(property, name) && (like == "" || property < like) {
			like = property
		}
	}
	return like
}

// malformed tells the model what is wrong with its arguments and what they must
// look like.
func malformed(call *synapse.ToolCall, schema json.RawMessage, err error) *synapse.ToolResult {
	return synapse.ErrorResult(fmt.Sprintf("invalid arguments for %s: %v\nThe arguments must be one JSON object that fits this schema: %s",
		call.Name, err, schema))
}

// subjectsOf takes the strings that permission rules are about from a call's
// arguments.
func subjectsOf(subject policy.Subject, args *arguments) []string {
	var out []string
	for _, name := range subject.Args {
		value := args.get(name)
		switch {
		case value == "" || value == "null":
			if subject.Kind == policy.SubjectPath {
				out = append(out, ".") // an absent path is the workspace
			}
		case value[0] == '"':
			out = append(out, unquote(value))
		case value[0] == '[':
			var list []any
			_ = json.Unmarshal([]byte(value), &list) // it is valid
			for _, e := range list {
				if s, ok := e.(string); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// agentsOf returns the agents that a call of task is about, by their own names:
// a rule holds under whatever name the model knows them. A task of an earlier
// request is judged when its history is known.
func (l *loop) agentsOf(args *arguments) []string {
	var out []string
	name, id := stringOf(args.get("subagent_type")), stringOf(args.get("task_id"))
	if c, ok := l.st.Children[id]; ok {
		out = append(out, c.Agent)
	}
	if id != "" && name == "" {
		return out
	}
	if spec, ok := l.ps.find(name); ok {
		name = spec.Agent
	}
	return append(out, name)
}

// stringOf decodes a JSON value that is a string; everything else is empty.
func stringOf(value string) string {
	if value == "" || value[0] != '"' {
		return ""
	}
	return unquote(value)
}

// judgeTask judges the continuation of a task whose agent the call has not named.
// It returns why that may not be, empty if it may.
func (l *loop) judgeTask(agent string, given grant) string {
	d := l.ps.spec.Policy.Check(policy.Call{Tool: toolTask, Kind: policy.SubjectText, Subjects: []string{agent}})
	switch {
	case d.Action == policy.Allow, d.Action == policy.Ask && given == grant{d.Origin, d.Rule}:
		return ""
	case d.Action == policy.Ask:
		return withOrigin(d.Reason, d.Origin) + ", and the call does not say so: set subagent_type"
	}
	return withOrigin(d.Reason, d.Origin)
}

// findSubjects asks a tool for the subjects of a call. The tool's code may be
// anybody's: a panic in it is an error, as it is when the tool runs.
func findSubjects(find func(json.RawMessage) ([]string, error), args json.RawMessage) (subjects []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			subjects, err = nil, fmt.Errorf("find what the call is about: panic: %v", p)
		}
	}()
	return find(args)
}
