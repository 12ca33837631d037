package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	var schema *jsonschema.Resolved
	var offered json.RawMessage
	var subject policy.Subject
	var find func(json.RawMessage) ([]string, error)
	strip := !l.p.opt.NoIntent
	if isDelegation(call.Name) {
		schema, offered = delegationSchemas[call.Name], delegationRaw[call.Name]
		subject = policy.Subject{Kind: policy.SubjectText, Args: []string{"subagent_type"}}
	} else {
		t := l.p.tools[call.Name]
		schema, offered, subject, find, strip = t.schema, t.Schema, t.Subject, t.Subjects, t.strip
	}

	fields, err := objectOf(call.Args)
	if err != nil {
		return verdict{refusal: malformed(call, offered, err)}
	}
	if err := sameCase(fields, schema.Schema()); err != nil {
		return verdict{refusal: malformed(call, offered, err)}
	}
	v := verdict{}
	if strip {
		v.intent = intentOf(fields)
		delete(fields, intentField)
	}
	if v.args, err = json.Marshal(fields); err != nil {
		return verdict{refusal: malformed(call, offered, err)}
	}
	var instance map[string]any
	if err := json.Unmarshal(v.args, &instance); err != nil {
		return verdict{refusal: malformed(call, offered, err)}
	}
	if err := schema.Validate(instance); err != nil {
		return verdict{refusal: malformed(call, offered, err)}
	}

	subjects := subjectsOf(subject, instance)
	if find != nil {
		if subjects, err = findSubjects(find, v.args); err != nil {
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

// objectOf reads a call's arguments: one JSON object, and nothing after it. No
// arguments at all are an empty object, as some models write it.
func objectOf(args string) (map[string]json.RawMessage, error) {
	if strings.TrimSpace(args) == "" {
		return map[string]json.RawMessage{}, nil
	}
	dec := json.NewDecoder(strings.NewReader(args))
	var fields map[string]json.RawMessage
	if err := dec.Decode(&fields); err != nil {
		var typed *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the JSON breaks off before its end")
		case errors.As(err, &typed):
			return nil, fmt.Errorf("%s where an object belongs", typed.Value)
		}
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("null where an object belongs")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the JSON object")
	}
	return fields, nil
}

// sameCase refuses arguments that are a property's name in other letters. Go's
// JSON decoder would give them to the tool under the property's name, though the
// schema and the rules have not seen them as that.
func sameCase(fields map[string]json.RawMessage, schema *jsonschema.Schema) error {
	unknown := ""
	for name := range fields {
		if _, ok := schema.Properties[name]; !ok && (unknown == "" || name < unknown) && propertyLike(schema, name) != "" {
			unknown = name
		}
	}
	if unknown == "" {
		return nil
	}
	return fmt.Errorf("there is no property %q: did you mean %q?", unknown, propertyLike(schema, unknown))
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
func subjectsOf(subject policy.Subject, args map[string]any) []string {
	var out []string
	for _, name := range subject.Args {
		switch v := args[name].(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					out = append(out, s)
				}
			}
		case nil:
			if subject.Kind == policy.SubjectPath {
				out = append(out, ".") // an absent path is the workspace
			}
		}
	}
	return out
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

var (
	delegationRaw = map[string]json.RawMessage{
		toolTask: taskSchema, toolTaskOutput: taskOutputSchema, toolTaskStop: taskStopSchema,
	}
	delegationSchemas = map[string]*jsonschema.Resolved{
		toolTask: mustResolve(taskSchema), toolTaskOutput: mustResolve(taskOutputSchema), toolTaskStop: mustResolve(taskStopSchema),
	}
)

// mustResolve is for the schemas written in this package.
func mustResolve(raw json.RawMessage) *jsonschema.Resolved {
	r, err := resolveSchema(raw)
	if err != nil {
		panic(err)
	}
	return r
}
