package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	synapse "github.com/synapse-agents/synapse"
)

// refusal classifies an answer that is not 200.
func refusal(status int, header http.Header, body []byte) *synapse.ProviderError {
	e, ok := parseError(body)
	if !ok {
		var bare struct { // Amazon's: the kind is in a header
			Message loose `json:"message"`
		}
		if e.message = excerpt(body); json.Unmarshal(body, &bare) == nil && bare.Message.text != "" {
			e.message = oneLine(bare.Message.text)
		}
	}
	if kind := header.Get("X-Amzn-Errortype"); kind != "" {
		e.words = append(e.words, amazonWord(kind))
	}
	if e.message == "" {
		e.message = strings.ToLower(http.StatusText(status))
	}
	if status < 400 { // a redirect that leads nowhere, a 204
		return &synapse.ProviderError{Kind: synapse.ErrorMalformed, Status: status, Message: "unexpected status: " + e.message}
	}
	fault := e.fault(status)
	if fault.RetryAfter = retryAfter(header); fault.RetryAfter == 0 {
		fault.RetryAfter = e.after
	}
	return fault
}

// apiError is a provider's own account of a failure, in any of its shapes.
type apiError struct {
	message string
	words   []string // its type, code and status, in lower case
	status  int      // a status it names itself, 0 for none
	after   time.Duration
}

// parseError reads an error body or an error event: {"error": {…}},
// {"error": "…"}, the error object itself, {"detail": …}. It reports whether
// there was one.
func parseError(data []byte) (apiError, bool) {
	var body struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Object loose           `json:"object"`
		Type   loose           `json:"type"`
		errorFields
	}
	if json.Unmarshal(data, &body) != nil {
		return apiError{}, false
	}
	fields := body.errorFields
	found := body.Object.text == "error" || body.Type.text == "error"
	switch {
	case !isNull(body.Error):
		found = true
		fields.kind = body.Type
		if body.Error[0] == '{' {
			var inner struct {
				Type loose `json:"type"`
				errorFields
			}
			if json.Unmarshal(body.Error, &inner) == nil {
				fields = inner.errorFields
				fields.kind = inner.Type
			}
		} else {
			var text loose
			if json.Unmarshal(body.Error, &text) == nil {
				fields.Message = text
			}
		}
	case !isNull(body.Detail):
		found = true
		fields.Message = loose{text: excerpt(body.Detail)}
		var text string
		if json.Unmarshal(body.Detail, &text) == nil {
			fields.Message.text = text
		}
	case fields.Message.text != "" && !found:
		// An error object without an envelope, as some gateways send.
		found = fields.Code.text != "" || body.Type.text != ""
		fields.kind = body.Type
	default:
		fields.kind = body.Type
	}
	if !found {
		return apiError{}, false
	}
	e := apiError{message: oneLine(fields.Message.text)}
	for _, word := range []string{fields.kind.text, fields.Code.text, fields.Status.text} {
		if n, err := strconv.Atoi(word); err == nil {
			if n >= 400 && n < 600 {
				e.status = n
			}
		} else if word != "" && !strings.EqualFold(word, "error") {
			e.words = append(e.words, strings.ToLower(word))
		}
	}
	e.detail(fields.Details)
	if e.message == "" {
		e.message = strings.Join(e.words, " ")
	}
	if e.message == "" {
		e.message = excerpt(data)
	}
	return e, true
}

type errorFields struct {
	Message loose           `json:"message"`
	Code    loose           `json:"code"`
	Status  loose           `json:"status"`
	Details json.RawMessage `json:"details"` // Google's
	kind    loose
}

// detail takes Google's details of an error: a reason, and how long to wait.
func (e *apiError) detail(raw json.RawMessage) {
	var list []struct {
		Reason loose `json:"reason"`
		Delay  loose `json:"retryDelay"`
	}
	if isNull(raw) || json.Unmarshal(raw, &list) != nil {
		return
	}
	for _, d := range list {
		if d.Reason.text != "" {
			e.words = append(e.words, strings.ToLower(d.Reason.text))
		}
		if s, err := strconv.ParseFloat(strings.TrimSuffix(d.Delay.text, "s"), 64); err == nil {
			e.after = wait(s * float64(time.Second))
		}
	}
}

// loose takes a JSON string or number as text, and anything else as nothing.
type loose struct{ text string }

// UnmarshalJSON never fails: a field of an unexpected type is not worth an answer.
func (l *loose) UnmarshalJSON(data []byte) error {
	l.text = ""
	if len(data) > 0 && (data[0] == '-' || data[0] >= '0' && data[0] <= '9') {
		l.text = string(data)
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		l.text = s
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// fault classifies the error. Status is that of the answer, 0 for an error
// inside a stream or under a status of success.
func (e apiError) fault(status int) *synapse.ProviderError {
	return &synapse.ProviderError{Kind: e.kind(status), Status: status, Message: e.message, RetryAfter: e.after}
}

func (e apiError) kind(status int) synapse.ErrorKind {
	inStream := status == 0
	if inStream {
		status = e.status
	}
	switch {
	case status != 429 && e.tooLong():
		return synapse.ErrorContext
	case e.says("insufficient_quota", "billing", "insufficient_balance", "payment_required"):
		return synapse.ErrorAuth // no wait will help, only the account's owner
	case e.says("api_key_invalid", "api_key_expired"):
		return synapse.ErrorAuth // Google's is a 400
	}
	switch {
	case status == 404, status == 400 && e.noModel(), inStream && e.noModel():
		return synapse.ErrorNotFound
	case status == 401 || status == 402 || status == 403:
		return synapse.ErrorAuth
	case status == 413:
		return synapse.ErrorContext
	case status == 429:
		return synapse.ErrorRateLimit
	case status == 503 || status == 529:
		return synapse.ErrorOverloaded
	case status == 408 || status == 409 || status == 425:
		return synapse.ErrorServer // the server's side of the same request, later
	case status >= 400 && status < 500:
		return synapse.ErrorRequest
	}
	switch {
	case e.says("rate_limit", "too_many_requests", "resource_exhausted", "throttling"):
		return synapse.ErrorRateLimit
	case e.says("overloaded", "unavailable", "insufficient_system_resource", "model_not_ready"):
		return synapse.ErrorOverloaded
	case !inStream:
		return synapse.ErrorServer
	case e.says("authentication", "permission", "invalid_api_key", "unauthorized", "unauthenticated", "access_denied", "expired_token"):
		return synapse.ErrorAuth
	case e.says("invalid_request", "invalid_prompt", "bad_request", "invalid_argument", "validation"):
		return synapse.ErrorRequest
	}
	return synapse.ErrorStream
}

func (e apiError) says(parts ...string) bool {
	for _, word := range e.words {
		for _, part := range parts {
			if strings.Contains(word, part) {
				return true
			}
		}
	}
	return false
}

// noModel reports whether the error says, by a code or in Amazon's words, that
// there is no such model.
func (e apiError) noModel() bool {
	return e.says("model_not_found", "invalid_model", "unknown_model") || strings.Contains(strings.ToLower(e.message), "model identifier is invalid")
}

// tooLong reports whether the error says that the conversation does not fit.
// There is a code for it in one product only; the others say it in prose.
func (e apiError) tooLong() bool {
	if e.says("context_length", "exceed_context_size", "context_window", "request_too_large") {
		return true
	}
	text := strings.ToLower(e.message)
	for _, phrase := range []string{
		"maximum context length", "context length", "context window", "context size",
		"prompt is too long", "input is too long", "input too long", "range of input length", "too many input tokens",
		"exceeds the maximum number of tokens", // Gemini
		"exceed context limit",                 // Anthropic, of prompt and reply together
	} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// retryAfter reads how long a provider asks to wait. A date is taken against
// the answer's own date, so that a wrong clock on this side does no harm.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(header.Get("Retry-After-Ms")), 64); err == nil {
		return wait(ms * float64(time.Millisecond))
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return wait(s * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0)
}

// wait keeps a duration within what one can hold; a text such as "NaN" or a
// negative number is no wait.
func wait(ns float64) time.Duration {
	const most = float64(100 * 365 * 24 * time.Hour)
	if !(ns > 0) {
		return 0
	}
	return time.Duration(min(ns, most))
}

// excerpt returns the beginning of a body as one line for a message. Of an
// HTML page it is the text.
func excerpt(data []byte) string {
	text := string(data[:min(len(data), 4096)])
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "<") {
		var b strings.Builder
		tag := false
		for _, c := range trimmed {
			switch {
			case c == '<':
				tag = true
				b.WriteByte(' ')
			case c == '>':
				tag = false
			case !tag:
				b.WriteRune(c)
			}
		}
		text = b.String()
	}
	return oneLine(text)
}

// oneLine joins a text's words by single spaces, without control characters,
// and cuts it after 300 runes.
func oneLine(text string) string {
	const most = 300
	text = strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return ' '
		}
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// malformed is the failure of an event that is not what the format says.
func malformed(format string, args ...any) *synapse.ProviderError {
	return &synapse.ProviderError{Kind: synapse.ErrorMalformed, Message: fmt.Sprintf(format, args...)}
}

// How a reply can be no reply.
const (
	replyEmpty    = "the reply is empty"
	replyUnended  = "the reply broke off before it said why it ended"
	replyHalfCall = "the reply ended within a tool call"
)

func brokeOff(message string) *synapse.ProviderError {
	return &synapse.ProviderError{Kind: synapse.ErrorStream, Message: message, Err: io.ErrUnexpectedEOF}
}
