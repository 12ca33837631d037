// Package remote talks to model providers over HTTP. It implements
// [synapse.Model] for four wire formats (Chat Completions and Responses of
// OpenAI, Messages of Anthropic, generateContent of Gemini) and for the clouds
// that carry them: Azure, Amazon Bedrock and Vertex AI.
//
// A wire is two things: a function that writes a request's body, and a stream
// that turns the events of the answer into deltas. Everything else is shared:
// one exchange sends the request, classifies failures as a
// [synapse.ProviderError], and puts the end of the reply together. It never
// retries: that is its caller's decision, and only one layer may take it.
//
// Nothing ambient reaches a server: this package reads neither environment nor
// files, sets every header itself and follows no redirect to another host.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// DefaultUserAgent is what a request calls itself unless [Config.UserAgent]
// says otherwise.
const DefaultUserAgent = "synapse"

// A Config says where a provider is and how to ask it. The zero value of every
// field but Provider is a default.
type Config struct {
	// Provider is a name from [Providers], or any other name together with a
	// BaseURL, which is then asked as an OpenAI-compatible endpoint.
	Provider string
	// BaseURL is the API's root, for example "http://127.0.0.1:8080/v1". Empty
	// means the provider's own. For Anthropic and Gemini the version at its end
	// may be left out; for Azure it is the resource's endpoint.
	BaseURL string
	// APIKey is sent in the header that the provider wants; empty sends none.
	APIKey string
	// Headers are sent with every request and win over this package's own.
	Headers map[string]string
	// HTTPClient sends the requests. Nil is a client with its own connection
	// pool and without a time limit: cancel the context instead.
	HTTPClient *http.Client
	// UserAgent is DefaultUserAgent when empty.
	UserAgent string
	// Wire chooses the format. Empty is the provider's own at its own address,
	// and for OpenAI at any other address Chat Completions.
	Wire Wire
	// Cloud is what Azure, Bedrock and Vertex take beside a key.
	Cloud Cloud
	// Price looks a model's price up. Nil, or false, leaves the cost of a
	// reply unknown, unless a known local server on loopback gave it, or the
	// provider says itself what it cost.
	Price func(model string) (Price, bool)
	// MaxOutput looks up how many tokens a model can write, for wires that
	// want a limit named. Nil, or 0, means a limit that current models have.
	MaxOutput func(model string) int64
}

// Cloud is what the large clouds take beside a key, or in its place.
type Cloud struct {
	Region     string // Bedrock's region, Vertex's location ("global" when empty)
	Project    string // Vertex
	APIVersion string // Azure: a dated version asks the older endpoints, by deployment
	AWS        AWSKeys
	// GoogleCredentials is the content of a credentials file: a service
	// account's, an authorized user's, or an impersonated service account's.
	GoogleCredentials []byte
}

// AWSKeys sign requests to Bedrock where there is no bearer token.
type AWSKeys struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// Wire names a streaming format.
type Wire string

// The wires.
const (
	WireChat      Wire = "chat"      // OpenAI's Chat Completions, spoken by nearly everybody
	WireResponses Wire = "responses" // OpenAI's Responses
	WireAnthropic Wire = "anthropic" // Anthropic's Messages
	WireGemini    Wire = "gemini"    // Gemini's streamGenerateContent
)

// ParseWire reads a wire's name as settings hold it; "openai" is another word
// for chat, and so is the empty one.
func ParseWire(s string) (Wire, error) {
	switch w := Wire(strings.ToLower(s)); w {
	case WireChat, WireResponses, WireAnthropic, WireGemini:
		return w, nil
	case "", "openai", "openai-compat":
		return WireChat, nil
	case "google":
		return WireGemini, nil
	}
	return "", fmt.Errorf("wire %q: want chat (or openai), responses, anthropic or gemini", s)
}

// model is one configured provider.
type model struct {
	name      string
	row       Provider
	base      string
	own       bool // base is the provider's own
	key       string
	cloud     Cloud
	google    *googleToken
	local     bool
	wire      Wire // empty: by model
	header    http.Header
	client    *http.Client
	price     func(string) (Price, bool)
	maxOutput func(string) int64
}

// New returns a model that asks the configured provider. It sends nothing yet.
// The model may be used from several goroutines at once.
func New(cfg Config) (synapse.Model, error) { return newModel(cfg) }

func newModel(cfg Config) (*model, error) {
	row, known := rowOf(cfg.Provider)
	if cfg.Provider == "" {
		return nil, fmt.Errorf("model provider: no name given; want one of %s, or any name with a base URL", strings.Join(names(), ", "))
	}
	m := &model{
		name: cfg.Provider, row: row, key: strings.TrimSpace(cfg.APIKey), // a key pasted with its line end is no valid header
		cloud: cfg.Cloud, price: cfg.Price, maxOutput: cfg.MaxOutput, client: cfg.HTTPClient, header: http.Header{},
	}
	fail := func(format string, args ...any) (*model, error) {
		return nil, fmt.Errorf("model provider %s: %w", cfg.Provider, fmt.Errorf(format, args...))
	}
	base := cfg.BaseURL
	if base == "" {
		var err error
		if base, err = m.cloudBase(); err != nil {
			return fail("%w", err)
		}
	}
	if base == "" {
		base = row.BaseURL
	}
	if base == "" {
		if known {
			return fail("a base URL is needed, for example http://127.0.0.1:8000/v1")
		}
		return nil, fmt.Errorf("model provider %q: not known; want one of %s, or a base URL of an OpenAI-compatible endpoint", cfg.Provider, strings.Join(names(), ", "))
	}
	u, err := parseBase(base)
	if err != nil {
		return fail("base URL: %w", err)
	}
	m.base = u.String()
	m.own = row.BaseURL != "" && m.base == row.BaseURL
	m.local = row.Local && loopback(u.Hostname())
	if m.key == "" && m.own && row.KeyEnv != "" {
		return fail("no API key; set %s", row.KeyEnv)
	}
	if m.client == nil {
		m.client = newClient()
	}
	if err := m.setUpCloud(); err != nil {
		return fail("%w", err)
	}
	switch cfg.Wire {
	case "":
		// By model at OpenAI itself and on Vertex; elsewhere the row says, save
		// that OpenAI's name with another address means a compatible server.
		if m.wire = row.Wire; row.Name == "vertex" || row.Wire == WireResponses && m.own {
			m.wire = ""
		} else if row.Wire == WireResponses {
			m.wire = WireChat
		}
	default:
		if m.wire, err = ParseWire(string(cfg.Wire)); err != nil {
			return fail("%w", err)
		}
	}
	m.setHeaders(cfg)
	return m, nil
}

func (m *model) setHeaders(cfg Config) {
	m.header.Set("User-Agent", DefaultUserAgent)
	if cfg.UserAgent != "" {
		m.header.Set("User-Agent", cfg.UserAgent)
	}
	m.header.Set("Content-Type", "application/json")
	m.header.Set("Accept", "text/event-stream")
	wire := m.wire
	if m.row.Name == "azure" || m.row.Name == "bedrock" || m.row.Name == "vertex" {
		wire = ""
	}
	if wire == WireAnthropic {
		m.header.Set("Anthropic-Version", "2023-06-01")
	}
	switch {
	case m.key == "":
	case m.row.Name == "azure":
		m.header.Set("Api-Key", m.key)
	case wire == WireGemini:
		m.header.Set("X-Goog-Api-Key", m.key)
	case wire == WireAnthropic:
		m.header.Set("X-Api-Key", m.key)
		if !m.own { // servers that speak this format take one or the other
			m.header.Set("Authorization", "Bearer "+m.key)
		}
	default:
		m.header.Set("Authorization", "Bearer "+m.key)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		m.header.Set(name, cfg.Headers[name])
	}
}

// parseBase checks a base URL and drops what would be lost on the way: a query
// or a fragment cannot be carried over to the endpoints below it.
func parseBase(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		return nil, fmt.Errorf("%q: want http:// or https:// in front", s)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("not a URL") // the parser's error would quote a password
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q: want http:// or https:// in front", s)
	case u.Host == "":
		return nil, fmt.Errorf("%q: names no host", s)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q: want no query and no fragment", s)
	case u.User != nil:
		return nil, fmt.Errorf("base URL of host %s: want no user name or password; use a header", u.Host)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// newClient returns a client whose pool keeps a connection for every child of
// a wide fan-out, and which never asks for compression: a compressed stream
// arrives in lumps. It follows no redirect to another host: the conversation
// and the headers are for the one that the user named.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.DisableCompression = true
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Host != via[0].URL.Host || len(via) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// loopback reports whether a URL's host is this machine.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// wireFor returns the format in which a model is asked. OpenAI's newer models
// take tools and reasoning together only over Responses; those that speak or
// search exist only over Chat Completions.
func (m *model) wireFor(name string) Wire {
	switch {
	case m.wire != "":
		return m.wire
	case m.row.Name == "vertex" && strings.Contains(name, "claude"):
		return WireAnthropic
	case m.row.Name == "vertex":
		return WireGemini
	case strings.Contains(name, "audio"), strings.Contains(name, "search-preview"):
		return WireChat
	}
	return WireResponses
}

// endpoint returns the URL that a model is asked at.
func (m *model) endpoint(name string, wire Wire) string {
	switch m.row.Name {
	case "azure":
		return m.azureEndpoint(name, wire)
	case "bedrock":
		return m.bedrockEndpoint(name)
	case "vertex":
		return m.vertexEndpoint(name, wire)
	}
	switch wire {
	case WireResponses:
		return m.base + "/responses"
	case WireAnthropic:
		return m.versioned("v1") + "/messages"
	case WireGemini:
		return m.versioned("v1beta") + "/" + geminiName(name) + ":streamGenerateContent?alt=sse"
	}
	return m.base + "/chat/completions"
}

// versioned returns the base URL with the API's version at its end.
func (m *model) versioned(version string) string {
	last := m.base[strings.LastIndexByte(m.base, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return m.base
	}
	return m.base + "/" + version
}

// body returns a request's body in the format of the wire.
func (m *model) body(req *synapse.Request, wire Wire) (any, error) {
	if err := check(req); err != nil {
		return nil, err
	}
	switch wire {
	case WireResponses:
		return m.responsesBody(req)
	case WireAnthropic:
		return m.anthropicBody(req)
	case WireGemini:
		return m.geminiBody(req)
	}
	return m.chatBody(req)
}

func (m *model) newStream(wire Wire) stream {
	switch wire {
	case WireResponses:
		return newResponsesStream()
	case WireAnthropic:
		return newAnthropicStream()
	case WireGemini:
		return &geminiStream{}
	}
	s := newChatStream()
	s.priced = m.row.Name == "openrouter"
	return s
}

// Generate sends the request and yields the reply as it comes.
func (m *model) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		rctx, cancel := context.WithCancel(ctx)
		x := newExchange(m, req)
		defer x.close(cancel)

		fail := func(fault *synapse.ProviderError) {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			yield(nil, x.fault(fault))
		}
		body, err := m.body(req, x.wire)
		if err != nil {
			fail(refused(err))
			return
		}
		data, err := marshal(body)
		if err != nil {
			fail(refused(err))
			return
		}
		if fault := x.send(rctx, data); fault != nil {
			fail(fault)
			return
		}
		for {
			deltas, last, fault := x.next()
			if fault != nil {
				fail(fault)
				return
			}
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
			if last {
				return
			}
		}
	}
}

// refused is the failure of a request that can't be put on the wire.
func refused(err error) *synapse.ProviderError {
	kind := synapse.ErrorRequest
	if errors.Is(err, errUnsupported) {
		kind = synapse.ErrorUnsupported
	}
	return &synapse.ProviderError{Kind: kind, Message: err.Error(), Err: err}
}

// errUnsupported marks what a model can't do, whatever it is sent.
var errUnsupported = errors.New("not supported")

// marshal writes JSON the same way every time, without escaping for HTML: the
// bytes are the prompt's, and a cache compares them.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
