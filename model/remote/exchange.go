package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	synapse "github.com/synapse-agents/synapse"
)

const (
	maxErrorBody = 64 << 10 // of a refusal, enough for its message
	maxEvent     = 32 << 20 // of one event of a stream
	// lingerTime is how long a finished reply waits for the end of its body,
	// so that the connection can be used again.
	lingerTime = 50 * time.Millisecond
)

// A stream turns the events of one wire format into deltas, all but the last
// one. A call is a delta only when it is whole.
type stream interface {
	// event takes one event.
	event(name string, data []byte) ([]*synapse.Delta, *synapse.ProviderError)
	// done reports whether the reply is complete and nothing more is to come.
	done() bool
	// end is called once the stream is over, by its own account or the
	// body's. It returns what was held back, or why the reply is not complete.
	end() ([]*synapse.Delta, *synapse.ProviderError)
	facts() *facts
}

// facts is what goes by on the wire about a reply as a whole.
type facts struct {
	model string
	stop  synapse.StopReason
	usage synapse.Usage
	cost  *float64 // where the provider says it
}

// source yields the events of a body; io.EOF comes with the last one or alone.
type source interface {
	event() (name string, data []byte, err error)
}

// exchange is one request and its answer.
type exchange struct {
	m      *model
	model  string
	wire   Wire
	stream stream

	resp  *http.Response
	lines *lineReader
	src   source
	eof   bool // the body was read to its end

	calls int
	used  map[string]bool // ids of calls
}

func newExchange(m *model, req *synapse.Request) *exchange {
	wire := m.wireFor(req.Model)
	return &exchange{m: m, model: req.Model, wire: wire, stream: m.newStream(wire), used: map[string]bool{}}
}

// fault fills in who failed and keeps secrets out of the message: a provider
// may quote them.
func (x *exchange) fault(err *synapse.ProviderError) *synapse.ProviderError {
	err.Provider, err.Model = x.m.name, x.model
	for _, secret := range []string{x.m.key, x.m.cloud.AWS.SecretAccessKey, x.m.cloud.AWS.SessionToken} {
		if len(secret) > 5 { // a shorter one is a placeholder, and a part of words
			err.Message = strings.ReplaceAll(err.Message, secret, "[key]")
		}
	}
	return err
}

// send sends the request and looks at what the answer is.
func (x *exchange) send(ctx context.Context, body []byte) *synapse.ProviderError {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.m.endpoint(x.model, x.wire), bytes.NewReader(body))
	if err != nil {
		return &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: fmt.Sprintf("model name %q can't be part of an address", x.model), Err: err}
	}
	req.Header = x.m.header.Clone()
	if fault := x.m.authorize(ctx, req, body); fault != nil {
		return fault
	}
	resp, err := x.m.client.Do(req)
	if err != nil {
		return noAnswer(req.URL.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a broken refusal is a refusal
		return refusal(resp.StatusCode, resp.Header, data)
	}
	x.resp = resp
	x.lines = newLineReader(resp.Body)
	x.src = x.lines
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == amazonStream {
		x.src = &frameReader{src: x.lines.src}
		return nil
	}
	return x.notStream(kind)
}

// noAnswer is the failure of a request that got none.
func noAnswer(host string, err error) *synapse.ProviderError {
	cause := err
	var u *url.Error
	if errors.As(err, &u) {
		cause = u.Err
	}
	return &synapse.ProviderError{Kind: synapse.ErrorNetwork, Message: fmt.Sprintf("no answer from %s: %v", host, cause), Err: cause}
}

// notStream looks at the type and the first bytes of an answer. A stream under
// a wrong type is still read: servers and proxies mislabel it.
func (x *exchange) notStream(kind string) *synapse.ProviderError {
	if kind == "text/event-stream" {
		return nil
	}
	_, err := x.lines.src.Peek(1)
	if err == io.EOF {
		return &synapse.ProviderError{Kind: synapse.ErrorStream, Status: x.resp.StatusCode, Message: "the answer is empty", Err: io.ErrUnexpectedEOF}
	}
	if err != nil {
		return cutOff(err)
	}
	head, _ := x.lines.src.Peek(x.lines.src.Buffered())
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \r\n\t")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return nil
		}
	}
	data, _ := io.ReadAll(io.LimitReader(x.lines.src, maxErrorBody)) // what there is will do for a message
	if e, ok := parseError(data); ok {
		return e.fault(0)
	}
	if kind == "" {
		kind = "no content type"
	}
	return &synapse.ProviderError{
		Kind: synapse.ErrorMalformed, Status: x.resp.StatusCode,
		Message: fmt.Sprintf("the answer is not an event stream but %s: %s", kind, excerpt(data)),
	}
}

// next reads one event and returns its deltas, and whether the end of the
// reply is among them.
func (x *exchange) next() ([]*synapse.Delta, bool, *synapse.ProviderError) {
	name, data, err := x.src.event()
	var out []*synapse.Delta
	if len(data) > 0 && (err == nil || err == io.EOF) {
		deltas, fault := x.stream.event(name, data)
		if fault != nil {
			return nil, false, fault
		}
		if out, fault = x.whole(deltas); fault != nil {
			return nil, false, fault
		}
	}
	switch {
	case x.stream.done(), err == io.EOF:
		x.eof = err == io.EOF
		deltas, fault := x.stream.end()
		if fault != nil {
			return nil, false, fault
		}
		if deltas, fault = x.whole(deltas); fault != nil {
			return nil, false, fault
		}
		return append(append(out, deltas...), x.end()), true, nil
	case errors.Is(err, errEventTooLong):
		return nil, false, &synapse.ProviderError{
			Kind: synapse.ErrorMalformed, Status: http.StatusOK, Message: fmt.Sprintf("one event is larger than %d MiB", maxEvent>>20),
		}
	case err != nil:
		return nil, false, cutOff(err)
	}
	return out, false, nil
}

// whole sees to it that every call has a name, and an id of its own: results
// are matched to calls by that.
func (x *exchange) whole(deltas []*synapse.Delta) ([]*synapse.Delta, *synapse.ProviderError) {
	for _, d := range deltas {
		if d.Kind != synapse.DeltaCall {
			continue
		}
		x.calls++
		if d.Call.Name == "" {
			return nil, malformed("tool call %d of the reply has no name", x.calls)
		}
		if d.Call.ID == "" || x.used[d.Call.ID] {
			d.Call.ID = "call_" + strings.ToLower(rand.Text())
		}
		x.used[d.Call.ID] = true
	}
	return deltas, nil
}

// end is the last delta. Formats differ in whether calls are a reason to stop.
func (x *exchange) end() *synapse.Delta {
	f := x.stream.facts()
	stop := f.stop
	switch {
	case x.calls > 0 && (stop == synapse.StopEnd || stop == synapse.StopUnknown || stop == ""):
		stop = synapse.StopCalls
	case x.calls == 0 && stop == synapse.StopCalls, stop == "":
		stop = synapse.StopUnknown
	}
	usage := f.usage
	usage.Requests = 1
	if usage.CostUSD = f.cost; usage.CostUSD == nil {
		usage.CostUSD = x.m.cost(x.model, usage)
	}
	name := f.model
	if name == "" {
		name = x.model
	}
	return &synapse.Delta{Kind: synapse.DeltaEnd, Stop: stop, Usage: usage, Model: name}
}

// close ends the request and waits until it is gone. A finished reply whose
// body is about to end is read to that end first, so that its connection goes
// back to the pool instead of being torn down.
func (x *exchange) close(cancel context.CancelFunc) {
	defer cancel()
	if x.resp == nil {
		return
	}
	defer x.resp.Body.Close()
	if !x.stream.done() || x.eof || x.resp.ProtoMajor != 1 {
		cancel()
		return
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, io.LimitReader(x.lines.src, maxErrorBody)) // only the end matters
	}()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		cancel()
		x.resp.Body.Close()
		<-drained
	}
}

// cutOff is the failure of a body that ended with an error.
func cutOff(err error) *synapse.ProviderError {
	return &synapse.ProviderError{Kind: synapse.ErrorStream, Message: fmt.Sprintf("the reply broke off: %v", err), Err: err}
}

// brokeOff is the failure of a reply that ended before it said so.
func brokeOff(message string) *synapse.ProviderError {
	return &synapse.ProviderError{Kind: synapse.ErrorStream, Message: message, Err: io.ErrUnexpectedEOF}
}

const (
	replyEmpty    = "the reply is empty"
	replyUnended  = "the reply broke off before it said why it ended"
	replyHalfCall = "the reply ended within a tool call"
)
