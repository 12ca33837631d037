package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

// A stream reads one wire format and rewrites it into the canonical form.
type stream interface {
	// event takes one server-sent event and returns the bytes that take its
	// place, if any.
	event(name string, data []byte) ([]byte, *synapse.ProviderError)
	// done reports whether the reply is complete and nothing more is to come.
	done() bool
	// end is called once the stream is over, by its own account or the
	// body's. It returns the last bytes, or why the reply is not complete.
	end() ([]byte, *synapse.ProviderError)
	facts() *facts
}

// facts is what goes by on the wire about a reply as a whole.
type facts struct {
	model string
	stop  synapse.StopReason
	usage synapse.Usage
	cost  *float64          // in dollars, where the provider says it
	args  map[string]string // of calls by id, exactly as they came; nil where the layers above keep them
	// encrypted holds OpenAI's thoughts by id, as they were when they had ended.
	encrypted map[string]string
	// opaque goes back with the reply, beside what the layers above carry.
	opaque json.RawMessage
}

// exchange is one request and its answer. It is the HTTP client that the SDK
// gets to see, for that one request.
type exchange struct {
	m      *model
	model  string
	wire   Wire
	stream stream
	amend  amendment // of the request's body, nil for none

	resp *http.Response
	body *eventReader
	// failed is the first thing that went wrong, seen from the wire.
	failed *synapse.ProviderError
}

func newExchange(m *model, name string) *exchange {
	x := &exchange{m: m, model: name, wire: m.wireFor(name)}
	switch x.wire {
	case WireResponses:
		x.stream = newResponsesStream()
	case WireAnthropic:
		x.stream = newAnthropicStream()
	case WireGemini:
		x.stream = newGeminiStream()
	default:
		x.stream = newChatStream(m.row.Name == "openrouter")
	}
	return x
}

func (x *exchange) facts() *facts { return x.stream.facts() }

// minKey is how long a key must be to be taken out of messages. A shorter one is
// a stand-in ("x", "none") for a server that wants none, and occurs in words.
const minKey = 8

// fault fills in who failed and keeps the key out of the message: a provider
// may quote it.
func (x *exchange) fault(err *synapse.ProviderError) *synapse.ProviderError {
	err.Provider, err.Model = x.m.name, x.model
	if len(x.m.key) >= minKey {
		err.Message = strings.ReplaceAll(err.Message, x.m.key, "[key]")
	}
	if x.failed == nil {
		x.failed = err
	}
	return err
}

// failure returns the typed error for what came up through the layers above.
// What was seen on the wire comes first: it has not lost anything on the way.
func (x *exchange) failure(err error) *synapse.ProviderError {
	if x.failed != nil {
		return x.failed
	}
	var typed *synapse.ProviderError
	if errors.As(err, &typed) {
		return x.fault(typed)
	}
	kind := synapse.ErrorMalformed
	if errors.Is(err, errNoEnd) {
		kind = synapse.ErrorStream
	}
	return x.fault(&synapse.ProviderError{Kind: kind, Message: err.Error(), Err: err})
}

// Do sends the request. Address and headers are built from nothing: those that
// it comes with hold what the SDK found in its environment.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := x.prepare(req); err != nil {
		return nil, x.fault(err)
	}
	resp, err := x.m.client.Do(req)
	if err != nil {
		return nil, x.fault(noAnswer(req.URL.Host, err))
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a broken refusal is a refusal
		return nil, x.fault(refusal(resp.StatusCode, resp.Header, data))
	}
	x.resp = resp
	x.body = &eventReader{x: x, src: bufio.NewReaderSize(resp.Body, 16<<10)}
	x.body.events = &lineReader{src: x.body.src}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == amazonStream {
		x.body.events = &frameReader{src: x.body.src}
	}
	if fault := x.notStream(); fault != nil {
		return nil, x.fault(fault)
	}
	answer := *resp
	answer.Header = http.Header{"Content-Type": {"text/event-stream"}}
	answer.ContentLength = -1
	answer.Body = x.body
	return &answer, nil
}

// RoundTrip sends the request, for an SDK that wants a client of net/http.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	return x.Do(req.Clone(req.Context()))
}

// prepare makes the request the one to send.
func (x *exchange) prepare(req *http.Request) *synapse.ProviderError {
	u, err := url.Parse(x.m.endpoint(x.model, x.wire))
	if err != nil {
		return &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: "the model's name makes no address: " + oneLine(err.Error()), Err: err}
	}
	req.URL, req.Host = u, ""
	req.Header = x.m.header.Clone()
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "text/event-stream")
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = req.Body.Close()
	}
	if err == nil && x.amend != nil {
		body, err = x.amend.apply(body)
	}
	if err != nil {
		return &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: "write the request: " + oneLine(err.Error()), Err: err}
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody() // never fails
	req.ContentLength = int64(len(body))
	return x.m.authorize(req.Context(), req, body)
}

// notStream looks at the type and the first bytes of an answer. A stream under
// a wrong type is still read: servers and proxies mislabel it.
func (x *exchange) notStream() *synapse.ProviderError {
	kind, _, _ := mime.ParseMediaType(x.resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" || kind == amazonStream {
		return nil
	}
	_, err := x.body.src.Peek(1)
	if err == io.EOF {
		return &synapse.ProviderError{Kind: synapse.ErrorStream, Status: x.resp.StatusCode, Message: "the answer is empty", Err: io.ErrUnexpectedEOF}
	}
	if err != nil {
		return cutOff(err)
	}
	head, _ := x.body.src.Peek(x.body.src.Buffered())
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \r\n\t")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(head, []byte(field)) {
			return nil
		}
	}
	data, _ := io.ReadAll(io.LimitReader(x.body.src, maxErrorBody)) // what there is will do for a message
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

// close ends the request and waits until it is gone. A finished reply whose
// body is about to end is read to that end first, so that its connection goes
// back to the pool instead of being torn down.
func (x *exchange) close(cancel context.CancelFunc) {
	defer cancel()
	if x.resp == nil {
		return
	}
	defer x.resp.Body.Close()
	if !x.stream.done() || x.body.eof || x.resp.ProtoMajor != 1 {
		cancel()
		return
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, io.LimitReader(x.body.src, maxErrorBody)) // only the end matters
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

// An eventSource reads events in one framing. One that is cut off is an error,
// and the end of the body is io.EOF, with the last event or after it.
type eventSource interface {
	event() (name string, data []byte, err error)
}

// eventReader is a response's body with its events in canonical form.
type eventReader struct {
	x      *exchange
	src    *bufio.Reader
	events eventSource
	out    bytes.Buffer
	err    error
	eof    bool // the body was read to its end
}

func (r *eventReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		switch {
		case r.err != nil && r.x.wire == WireGemini:
			// Its SDK prints every other error to the program's log. What
			// failed is in the exchange.
			return 0, io.EOF
		case r.err != nil:
			return 0, r.err
		}
		r.next()
	}
	return r.out.Read(p)
}

// Close leaves the body to the exchange.
func (r *eventReader) Close() error { return nil }

// next reads one event and writes what takes its place.
func (r *eventReader) next() {
	name, data, err := r.events.event()
	if len(data) > 0 && (err == nil || err == io.EOF) {
		out, fault := r.x.stream.event(name, data)
		if fault != nil {
			r.err = r.x.fault(fault)
			return
		}
		r.out.Write(out)
	}
	switch {
	case r.x.stream.done(), err == io.EOF:
		r.eof = err == io.EOF
		out, fault := r.x.stream.end()
		if fault != nil {
			r.err = r.x.fault(fault)
			return
		}
		r.out.Write(out)
		r.err = io.EOF
	case errors.Is(err, errEventTooLong):
		r.err = r.x.fault(&synapse.ProviderError{
			Kind: synapse.ErrorMalformed, Status: http.StatusOK, Message: fmt.Sprintf("one event is larger than %d MiB", maxEvent>>20),
		})
	case err != nil:
		r.err = r.x.fault(cutOff(err))
	}
}
