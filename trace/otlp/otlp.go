// Package otlp turns a trace into OpenTelemetry spans and sends them to a
// collector, in the JSON encoding of OTLP over HTTP.
//
// The spans follow OpenTelemetry's conventions for generative AI, as of version
// 1.41: an invoke_agent span for each start of a run, a chat span for each model
// request, failed attempts included, and an execute_tool span for each tool call.
// A sub-agent's span lies below the call that started it.
//
// What models and tools said is left out unless [Options.Content] asks for it.
//
// The encoding is written here rather than taken from OpenTelemetry's modules: an
// export of finished spans needs none of the SDK, and the generated messages alone
// would bring gRPC into the program.
package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Options say what goes into the spans.
type Options struct {
	// Content adds prompts, replies, arguments, results and the words of errors.
	Content bool
	// Version is the program's, for the resource's service.version.
	Version string
}

// A Kind says on which side of a connection a span was taken.
type Kind int

// The kinds that there are here, with the numbers of the protocol.
const (
	KindInternal Kind = 1
	KindClient   Kind = 3
)

// A Span is one piece of work. Its ids are made of the ids of the trace, the run
// and the call, so that the same trace has the same ids whenever it is exported.
type Span struct {
	Trace      [16]byte
	ID         [8]byte
	Parent     [8]byte // zero: none
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Events     []SpanEvent
	Links      [][8]byte // to other spans of the trace
	// Error is the class of what went wrong, empty when nothing did, and Message
	// the words for it.
	Error   string
	Message string
}

// A SpanEvent is a moment within a span.
type SpanEvent struct {
	Name       string
	Time       time.Time
	Attributes []Attribute
}

// An Attribute is a named value: a string, bool, int64, float64 or []string.
type Attribute struct {
	Key   string
	Value any
}

// Encode writes spans as one OTLP request, in JSON on one line: the body that a
// collector's /v1/traces takes, and a line of the format that its file receiver
// reads.
func Encode(w io.Writer, spans []*Span, opt Options) error {
	resource := []Attribute{{"service.name", "synapse"}}
	if opt.Version != "" {
		resource = append(resource, Attribute{"service.version", opt.Version})
	}
	list := make([]jsonSpan, len(spans))
	for i, s := range spans {
		var err error
		if list[i], err = encodeSpan(s); err != nil {
			return fmt.Errorf("encode span %q: %w", s.Name, err)
		}
	}
	attributes, err := encodeAttributes(resource)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	request := jsonRequest{ResourceSpans: []jsonResourceSpans{{
		Resource:   jsonResource{Attributes: attributes},
		ScopeSpans: []jsonScopeSpans{{Scope: jsonScope{Name: scopeName, Version: opt.Version}, Spans: list}},
	}}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(request); err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	return nil
}

// scopeName names this instrumentation.
const scopeName = "github.com/synapse-agents/synapse/trace/otlp"

// The messages of the protocol, with the names that its JSON encoding has for
// them: ids in hexadecimal, 64-bit integers as text, enumerations as numbers.
type (
	jsonRequest struct {
		ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
	}
	jsonResourceSpans struct {
		Resource   jsonResource     `json:"resource"`
		ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
	}
	jsonResource struct {
		Attributes []jsonAttribute `json:"attributes"`
	}
	jsonScopeSpans struct {
		Scope jsonScope  `json:"scope"`
		Spans []jsonSpan `json:"spans"`
	}
	jsonScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	jsonSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       Kind            `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []jsonAttribute `json:"attributes,omitempty"`
		Events     []jsonEvent     `json:"events,omitempty"`
		Links      []jsonLink      `json:"links,omitempty"`
		Status     jsonStatus      `json:"status"`
	}
	jsonEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []jsonAttribute `json:"attributes,omitempty"`
	}
	jsonLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	jsonStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	jsonAttribute struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    *string    `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *jsonArray `json:"arrayValue,omitempty"`
	}
	jsonArray struct {
		Values []jsonValue `json:"values"`
	}
)

// statusError is the protocol's number for a failure. Success is left unset, as
// the conventions want it of instrumentation.
const statusError = 2

func encodeSpan(s *Span) (jsonSpan, error) {
	out := jsonSpan{
		TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.ID[:]),
		Name: s.Name, Kind: s.Kind, Start: nano(s.Start), End: nano(s.End),
	}
	if s.Parent != ([8]byte{}) {
		out.Parent = hex.EncodeToString(s.Parent[:])
	}
	attributes := s.Attributes
	if s.Error != "" {
		attributes = append(attributes[:len(attributes):len(attributes)], Attribute{"error.type", s.Error})
		out.Status = jsonStatus{Code: statusError, Message: s.Message}
	}
	var err error
	if out.Attributes, err = encodeAttributes(attributes); err != nil {
		return out, err
	}
	for _, e := range s.Events {
		event := jsonEvent{Time: nano(e.Time), Name: e.Name}
		if event.Attributes, err = encodeAttributes(e.Attributes); err != nil {
			return out, err
		}
		out.Events = append(out.Events, event)
	}
	for _, id := range s.Links {
		out.Links = append(out.Links, jsonLink{TraceID: out.TraceID, SpanID: hex.EncodeToString(id[:])})
	}
	return out, nil
}

func encodeAttributes(list []Attribute) ([]jsonAttribute, error) {
	out := make([]jsonAttribute, 0, len(list))
	for _, a := range list {
		v, err := encodeValue(a.Value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", a.Key, err)
		}
		out = append(out, jsonAttribute{a.Key, v})
	}
	return out, nil
}

func encodeValue(value any) (jsonValue, error) {
	switch v := value.(type) {
	case string:
		return jsonValue{String: &v}, nil
	case bool:
		return jsonValue{Bool: &v}, nil
	case int64:
		text := strconv.FormatInt(v, 10)
		return jsonValue{Int: &text}, nil
	case float64:
		return jsonValue{Double: &v}, nil
	case []string:
		array := jsonArray{Values: []jsonValue{}}
		for i := range v {
			array.Values = append(array.Values, jsonValue{String: &v[i]})
		}
		return jsonValue{Array: &array}, nil
	}
	return jsonValue{}, fmt.Errorf("there is no value of type %T", value)
}

func nano(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}
