package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed web_search.md
var webSearchWords string

const (
	searchResults    = 8 // unless count says otherwise
	searchMaxResults = 20
	snippetBytes     = 400
	maxQuery         = 1000 // bytes
)

// WebSearchKind names the API that a search service speaks.
type WebSearchKind string

// The kinds of search services.
const (
	WebSearchSearXNG WebSearchKind = "searxng" // needs an endpoint, takes no key
	WebSearchBrave   WebSearchKind = "brave"
	WebSearchTavily  WebSearchKind = "tavily"
)

// WebSearch says which service answers the web_search tool. The zero value is
// none.
type WebSearch struct {
	Kind WebSearchKind
	// Endpoint is the URL of the service's search. It may leave out the
	// "/search" of SearXNG; "" is the public one of Brave and Tavily. It may
	// be on a private network.
	Endpoint string
	APIKey   string
}

// A WebSearchError is a search that the service did not answer. It reaches the
// model as text; a program finds Reason and Status in the details of the
// result.
type WebSearchError struct {
	Service    WebSearchKind
	Reason     WebSearchReason
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // what the service asked for, 0 when it did not
	Message    string
}

// WebSearchReason classifies failures of a search service by what can be done.
type WebSearchReason string

// The reasons.
const (
	WebSearchAuth        WebSearchReason = "auth"        // the key is missing, wrong or used up
	WebSearchRateLimit   WebSearchReason = "rate_limit"  // later it may work
	WebSearchRequest     WebSearchReason = "request"     // the service refuses this query
	WebSearchUnavailable WebSearchReason = "unavailable" // no connection, or the service fails
	WebSearchMalformed   WebSearchReason = "malformed"   // the reply is not what the API says
)

// Error returns one line that names the service and what was said.
func (e *WebSearchError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Service, e.Reason)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf("; try again in %s", e.RetryAfter)
	}
	return s
}

// details is the error for programs.
func (e *WebSearchError) details() any {
	return webSearchDetails{Service: e.Service, Error: e.Reason, Status: e.Status, RetryAfterMS: e.RetryAfter.Milliseconds()}
}

// webSearchDetails is what a web_search result tells programs.
type webSearchDetails struct {
	Service      WebSearchKind   `json:"service"`
	Results      []webResult     `json:"results,omitempty"`
	Error        WebSearchReason `json:"error,omitempty"`
	Status       int             `json:"status,omitempty"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
}

type webResult struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

type webSearchArgs struct {
	Query string `json:"query"`
	Count int    `json:"count,omitempty" jsonschema:"default 8, at most 20"`
}

// endpoint returns the URL of the service's search.
func (s WebSearch) endpoint() (*url.URL, error) {
	public := map[WebSearchKind]string{
		WebSearchBrave:  "https://api.search.brave.com/res/v1/web/search",
		WebSearchTavily: "https://api.tavily.com/search",
	}
	u, err := url.Parse(cmp.Or(s.Endpoint, public[s.Kind]))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("web search by %s: the endpoint %q is no http or https URL", s.Kind, s.Endpoint)
	}
	if s.Kind == WebSearchSearXNG && path.Base(u.Path) != "search" {
		u = u.JoinPath("search")
	}
	return u, nil
}

// check reports what is wrong with the settings of the service.
func (s WebSearch) check() error {
	switch s.Kind {
	case "":
		return nil
	case WebSearchSearXNG, WebSearchBrave, WebSearchTavily:
	default:
		return fmt.Errorf("web search: kind %q: want searxng, brave or tavily", s.Kind)
	}
	_, err := s.endpoint()
	return err
}

func (w *Workspace) webSearch() synapse.Tool {
	t := must(New("web_search", webSearchWords, w.runWebSearch))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectText, Args: []string{"query"}}
	return t
}

func (w *Workspace) runWebSearch(ctx context.Context, _ *synapse.Invocation, args webSearchArgs) (*synapse.ToolResult, error) {
	service := w.opt.WebSearch
	query := strings.TrimSpace(args.Query)
	switch {
	case query == "":
		return nil, errors.New("the query is empty")
	case len(query) > maxQuery:
		return nil, fmt.Errorf("the query has %d bytes; at most %d are taken", len(query), maxQuery)
	}
	n := args.Count
	if n <= 0 {
		n = searchResults
	}
	n = min(n, searchMaxResults)
	req, err := service.request(query, n)
	if err != nil {
		return nil, err
	}
	// The service was chosen by the user, who may run it on this machine; it
	// may not send its key, or the query, on to another.
	reply, err := w.newWebClient(true).do(ctx, req, func(next *url.URL) error {
		return fmt.Errorf("redirected to %s; set that as the endpoint", next.Redacted())
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &WebSearchError{Service: service.Kind, Reason: WebSearchUnavailable, Message: err.Error()}
	}
	results, err := service.results(reply)
	if err != nil {
		return nil, err
	}
	results = results[:min(len(results), n)]
	return showResults(service.Kind, query, results), nil
}

// request makes the HTTP request for a query.
func (s WebSearch) request(query string, n int) (*http.Request, error) {
	u, err := s.endpoint()
	if err != nil {
		return nil, err
	}
	var body []byte
	q := u.Query()
	switch s.Kind {
	case WebSearchSearXNG:
		q.Set("q", query)
		q.Set("format", "json")
	case WebSearchBrave:
		q.Set("q", query)
		q.Set("count", strconv.Itoa(n))
	case WebSearchTavily:
		body, err = json.Marshal(map[string]any{"query": query, "max_results": n})
		if err != nil {
			return nil, err
		}
	}
	u.RawQuery = q.Encode()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	switch {
	case s.Kind == WebSearchBrave && s.APIKey != "":
		req.Header.Set("X-Subscription-Token", s.APIKey)
	case s.Kind == WebSearchTavily:
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+s.APIKey)
	}
	return req, nil
}

// results reads a service's reply.
func (s WebSearch) results(reply *webReply) ([]webResult, error) {
	fail := &WebSearchError{Service: s.Kind, Status: reply.status}
	if reply.status != http.StatusOK {
		switch {
		case reply.status == 401 || reply.status == 402 || reply.status == 403 || reply.status == 432 || reply.status == 433:
			fail.Reason = WebSearchAuth // the last two are Tavily's, for a plan that is used up
		case reply.status == 429:
			fail.Reason = WebSearchRateLimit
		case reply.status >= 500:
			fail.Reason = WebSearchUnavailable
		default:
			fail.Reason = WebSearchRequest
		}
		if s.Kind == WebSearchSearXNG && reply.status == 403 {
			fail.Reason, fail.Message = WebSearchRequest, "the server doesn't give JSON; its settings need it among search.formats"
			return nil, fail
		}
		if seconds, err := strconv.Atoi(reply.header.Get("Retry-After")); err == nil && seconds > 0 {
			fail.RetryAfter = time.Duration(min(seconds, 86400)) * time.Second
		}
		fail.Message = s.hideKey(plainSnippet(string(reply.body), 200))
		return nil, fail
	}
	fail.Reason = WebSearchMalformed
	type result struct{ Title, URL, Content, Description string }
	var body struct {
		Results *[]result
		Web     *struct{ Results []result }
		Query   json.RawMessage // what Brave sends even when it found nothing
	}
	if err := json.Unmarshal(reply.body, &body); err != nil {
		fail.Message = "the reply is no JSON of a search: " + err.Error()
		return nil, fail
	}
	var found []result
	switch {
	case s.Kind == WebSearchBrave && body.Web != nil:
		found = body.Web.Results
	case s.Kind == WebSearchBrave && body.Query != nil:
	case s.Kind != WebSearchBrave && body.Results != nil:
		found = *body.Results
	default:
		fail.Message = "the reply holds no results; is the endpoint right?"
		return nil, fail
	}
	var out []webResult
	for _, r := range found {
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(r.URL) > maxURL {
			continue
		}
		out = append(out, webResult{
			Title:   plainSnippet(r.Title, 200),
			URL:     u.String(),
			Snippet: plainSnippet(cmp.Or(r.Content, r.Description), snippetBytes),
		})
	}
	return out, nil
}

// hideKey keeps a service that repeats the key from putting it into the
// conversation.
func (s WebSearch) hideKey(text string) string {
	if len(s.APIKey) < 4 {
		return text
	}
	return strings.ReplaceAll(text, s.APIKey, "[key]")
}

// plainSnippet returns a service's text as one line without tags.
func plainSnippet(s string, max int) string {
	s = cut(s, 16*max)
	if strings.ContainsAny(s, "<&") {
		var out strings.Builder
		z := html.NewTokenizer(strings.NewReader(s))
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind == html.TextToken {
				out.Write(z.Text())
			}
		}
		s = out.String()
	}
	return shortened(strings.Join(strings.Fields(cleanText(s)), " "), max)
}

func showResults(service WebSearchKind, query string, results []webResult) *synapse.ToolResult {
	d := details(webSearchDetails{Service: service, Results: results})
	if len(results) == 0 {
		return &synapse.ToolResult{Text: fmt.Sprintf("[nothing was found for %q]", query), Details: d}
	}
	var out strings.Builder
	for i, r := range results {
		fmt.Fprintf(&out, "%d. %s\n   %s\n", i+1, cmp.Or(r.Title, "[no title]"), r.URL)
		if r.Snippet != "" {
			fmt.Fprintf(&out, "   %s\n", r.Snippet)
		}
	}
	return &synapse.ToolResult{Text: strings.TrimSuffix(out.String(), "\n"), Details: d}
}
