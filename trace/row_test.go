package trace

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/synapse-agents/synapse"
)

// FuzzRow decodes rows of any content. What it accepts comes back the same
// after it has been stored again.
func FuzzRow(f *testing.F) {
	f.Add(1, 1, int64(0), "warning", []byte(`{"code":"a","message":"b"}`), []byte(nil))
	f.Add(1, 1, int64(1700000000000000000), "run_started", []byte(`{"spec":null,"depth":1,"input":[{"role":"user","parts":[{"kind":"text","text":"\u0000"}]}],"limits":{"time":"1m"}}`), []byte(`{"id":"a","model":"p:m"}`))
	f.Add(1, 1, int64(-1), "tool_finished", []byte(`{"result":{"call_id":"c","details":[1, 2]},"elapsed":"1ms"}`), []byte(nil))
	f.Add(1, 1, int64(5), "tool_started", []byte(`null`), []byte(`null`))
	f.Add(2, 9, int64(5), "unknown", []byte(`{`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, format, v int, at int64, kind string, body, specData []byte) {
		r := row{format: format, trace: "t", seq: 1, v: v, time: &at, run: "r", kind: kind, body: body}
		if specData != nil {
			r.spec = []byte("hash")
		}
		specs := func([]byte) (*synapse.Spec, error) {
			sum := digest(specData)
			return decodeSpec(sum, specData)
		}
		e, err := r.decode(specs)
		if err != nil {
			if e != nil {
				t.Error("an event comes with an error")
			}
			return
		}
		stored, spec, err := encodeRow(e)
		if err != nil {
			t.Fatalf("what was read can't be stored: %v", err)
		}
		again, err := stored.decode(func(hash []byte) (*synapse.Spec, error) { return decodeSpec(hash, spec) })
		if err != nil {
			t.Fatalf("what was stored can't be read: %v", err)
		}
		twice, spec2, err := encodeRow(again)
		if err != nil || !bytes.Equal(twice.body, stored.body) || !bytes.Equal(spec, spec2) {
			t.Errorf("the stored form is not stable (%v):\n%s\n%s", err, stored.body, twice.body)
		}
		if diff := cmp.Diff(e, again, cmpopts.EquateEmpty()); diff != "" && bytes.Equal(stored.body, body) {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
