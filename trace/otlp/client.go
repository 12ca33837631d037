package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Client sends spans to a collector. Its fields are set before its first use.
type Client struct {
	// Endpoint is where spans are posted to; see [TracesURL].
	Endpoint string
	Headers  http.Header
	// Timeout bounds each request; 0 means 10 s.
	Timeout time.Duration
}

// batchSpans is how many spans go into one request.
const batchSpans = 512

// maxAttempts is how often a request is made that the collector could not take
// for the moment, and maxWait how long it may ask to wait in between.
const (
	maxAttempts = 4
	maxWait     = 30 * time.Second
)

// TracesURL returns where a collector takes traces: below the base URL that
// OTEL_EXPORTER_OTLP_ENDPOINT holds, /v1/traces, unless it ends so already.
func TracesURL(base string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", fmt.Errorf("endpoint %q is no URL", base)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("endpoint %q: want http://HOST:PORT or https://HOST", base)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// ParseHeaders reads NAME=VALUE pairs with commas between them, the form of
// OTEL_EXPORTER_OTLP_HEADERS: values are percent-encoded. An error names no value:
// it may be a secret.
func ParseHeaders(text string) (http.Header, error) {
	out := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t:\r\n") {
			return nil, fmt.Errorf("headers: want NAME=VALUE, with commas between several")
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %s: its value can't be read: percent-encode what is no plain letter", name)
		}
		out.Add(name, value)
	}
	return out, nil
}

// Send posts the spans and returns how many requests that took. What a collector
// refuses is an error that says how many spans, and why.
func (c *Client) Send(ctx context.Context, spans []*Span, opt Options) (requests int, err error) {
	for len(spans) > 0 {
		n := min(len(spans), batchSpans)
		var body bytes.Buffer
		if err := Encode(&body, spans[:n], opt); err != nil {
			return requests, err
		}
		if err := c.post(ctx, body.Bytes()); err != nil {
			return requests, err
		}
		requests++
		spans = spans[n:]
	}
	return requests, nil
}

// post makes one request, again when the collector is busy.
func (c *Client) post(ctx context.Context, body []byte) error {
	for n := 1; ; n++ {
		wait, err := c.try(ctx, body)
		if err == nil || wait < 0 || n == maxAttempts {
			return err
		}
		if wait == 0 {
			wait = time.Second << (n - 1)
		}
		timer := time.NewTimer(min(wait, maxWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("send spans: %w", context.Cause(ctx))
		}
	}
}

// never says that another attempt has no use.
const never = -1

// try makes one attempt. Wait is how long to leave before the next, 0 where the
// collector doesn't say, and never.
func (c *Client) try(ctx context.Context, body []byte) (wait time.Duration, err error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return never, fmt.Errorf("send spans: %w", err)
	}
	for name, values := range c.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the headers are for the endpoint alone
	}}
	resp, err := client.Do(req)
	if err != nil {
		return never, fmt.Errorf("send spans: %w", err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // only for what it says
	if resp.StatusCode/100 == 2 {
		return never, refusal(answer)
	}
	err = fmt.Errorf("send spans: %s answers %s%s", c.Endpoint, resp.Status, said(answer))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if s, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil && s > 0 {
			return time.Duration(s) * time.Second, err
		}
		return 0, err
	}
	return never, err
}

// refusal reads an answer that says that some of the spans were not taken.
func refusal(answer []byte) error {
	var a struct {
		Partial struct {
			Rejected json.Number `json:"rejectedSpans"`
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil { // an answer that isn't JSON refuses nothing
		return nil
	}
	if n, err := a.Partial.Rejected.Int64(); err == nil && n > 0 {
		return fmt.Errorf("send spans: %d of them were rejected: %s", n, a.Partial.Message)
	}
	return nil
}

// said is the first line of an answer.
func said(answer []byte) string {
	var a struct {
		Message string `json:"message"`
	}
	text := string(answer)
	if json.Unmarshal(answer, &a) == nil && a.Message != "" {
		text = a.Message
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > 200 {
		text = text[:200]
	}
	if text == "" {
		return ""
	}
	return ": " + text
}
