package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/synapse-agents/synapse"
)

// rowFormat is the version of the stored row that this package writes. It
// counts changes of how a row holds an event; the event's own format has its
// version in v.
const rowFormat = 1

// A row is one event as it is stored: the envelope in columns, the body as
// JSON. A run_started body is stored without its spec; spec is the SHA-256 of
// that spec's JSON, which is kept once however many runs share it.
type row struct {
	format    int
	trace     string
	seq       int64
	v         int
	time      *int64 // nanoseconds since 1970, nil for the zero time
	run       string
	parent    string
	agent     string
	spawnedBy string
	kind      string
	spec      []byte // nil: the body has none
	body      []byte
}

// encodeRow returns the row for an event and, where it refers to a spec, that
// spec's JSON.
func encodeRow(e *synapse.Event) (r row, spec []byte, err error) {
	r = row{
		format:    rowFormat,
		trace:     e.Trace,
		seq:       e.Seq,
		v:         e.V,
		run:       e.Run,
		parent:    e.ParentRun,
		agent:     e.Agent,
		spawnedBy: e.SpawnedBy,
		kind:      string(e.Kind),
	}
	if !e.Time.IsZero() {
		ns := e.Time.UnixNano()
		r.time = &ns
	}
	body := e.Body
	if started, ok := body.(*synapse.RunStarted); ok && started.Spec != nil {
		if spec, err = encodeJSON(started.Spec); err != nil {
			return row{}, nil, fmt.Errorf("event %d (%s) of trace %q: spec: %w", e.Seq, e.Kind, e.Trace, err)
		}
		r.spec = digest(spec)
		bare := *started
		bare.Spec = nil
		body = &bare
	}
	if r.body, err = encodeJSON(body); err != nil {
		return row{}, nil, fmt.Errorf("event %d (%s) of trace %q: %w", e.Seq, e.Kind, e.Trace, err)
	}
	return r, spec, nil
}

// decode returns the event of a row. Specs are looked up by their hash.
func (r *row) decode(spec func(hash []byte) (*synapse.Spec, error)) (*synapse.Event, error) {
	fail := func(err error) (*synapse.Event, error) {
		return nil, fmt.Errorf("event %d (%s) of trace %q: %w", r.seq, r.kind, r.trace, err)
	}
	switch {
	case r.format > rowFormat:
		return fail(fmt.Errorf("row format %d: %w", r.format, ErrNewer))
	case r.format < 1:
		return fail(fmt.Errorf("row format %d: %w", r.format, ErrDamaged))
	case r.v > synapse.EventVersion:
		return fail(fmt.Errorf("event version %d: %w", r.v, ErrNewer))
	}
	e := &synapse.Event{
		V:         r.v,
		Seq:       r.seq,
		Trace:     r.trace,
		Run:       r.run,
		ParentRun: r.parent,
		Agent:     r.agent,
		SpawnedBy: r.spawnedBy,
		Kind:      synapse.EventKind(r.kind),
		Body:      synapse.NewBody(synapse.EventKind(r.kind)),
	}
	if e.Body == nil { // within one event version, only a newer program knows more kinds
		return fail(fmt.Errorf("unknown kind: %w", ErrNewer))
	}
	if r.time != nil {
		e.Time = time.Unix(0, *r.time).UTC()
	}
	if err := json.Unmarshal(r.body, e.Body); err != nil {
		return fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	if r.spec != nil {
		started, ok := e.Body.(*synapse.RunStarted)
		if !ok {
			return fail(fmt.Errorf("%w: a spec without a run", ErrDamaged))
		}
		var err error
		if started.Spec, err = spec(r.spec); err != nil {
			return fail(err)
		}
	}
	return e, nil
}

func digest(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

// decodeSpec reads a spec's JSON after checking that it is what hash names.
func decodeSpec(hash, data []byte) (*synapse.Spec, error) {
	if !bytes.Equal(digest(data), hash) {
		return nil, fmt.Errorf("%w: the spec %x has other content than its name says", ErrDamaged, hash)
	}
	spec := new(synapse.Spec)
	if err := json.Unmarshal(data, spec); err != nil {
		return nil, fmt.Errorf("%w: spec %x: %w", ErrDamaged, hash, err)
	}
	return spec, nil
}

// encodeJSON marshals without escaping what only HTML minds.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
