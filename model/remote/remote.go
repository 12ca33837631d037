// Package remote talks to model providers over HTTP. It implements
// [synapse.Model] over the language-model layer of charm.land/fantasy: a
// request becomes a fantasy call, stream parts become deltas, failures become
// a [synapse.ProviderError]. It never retries: that is its caller's decision,
// and only one layer may take it.
//
// Between fantasy and the network stands an exchange of this package. It sets
// every header itself, so that nothing ambient (the SDK below reads its own
// environment variables) reaches a server the user did not name; it keeps the
// facts of an answer that the layers above lose, such as the status, the wait
// a provider asks for and the reason a reply ended; and it hands up the stream
// in one canonical form, whatever the dialect of the server.
package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/azure"
	"charm.land/fantasy/providers/bedrock"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"

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
	// APIKey is sent in the way of the wire; empty sends none.
	APIKey string
	// Headers are sent with every request and win over this package's own.
	Headers map[string]string
	// HTTPClient sends the requests. Nil is a client with its own connection
	// pool and without a time limit: cancel the context instead.
	HTTPClient *http.Client
	// UserAgent is DefaultUserAgent when empty.
	UserAgent string
	// Wire chooses the format. Empty is the provider's own, and Chat Completions
	// for an OpenAI at another base URL and for a name that is in no row.
	Wire Wire
	// Cloud is what Azure, Bedrock and Vertex take beside a key.
	Cloud Cloud
	// Price looks a model's price up. Nil, or false, leaves the cost of a
	// reply unknown, unless a known local server on loopback gave it, or the
	// provider says itself what it cost.
	Price func(model string) (Price, bool)
}

// Cloud is what a large cloud takes beside a key. Nothing of it is looked for
// anywhere: what is not here is not used.
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
	WireGemini    Wire = "gemini"    // Google's streamGenerateContent
)

// wires are all of them.
var wires = []Wire{WireChat, WireResponses, WireAnthropic, WireGemini}

// ParseWire reads the name of a wire, or of the provider that it is known by.
func ParseWire(s string) (Wire, error) {
	switch w := Wire(strings.ToLower(s)); w {
	case "openai", "openai-compat", "openaicompat":
		return WireChat, nil
	case "google":
		return WireGemini, nil
	default:
		if slices.Contains(wires, w) {
			return w, nil
		}
	}
	return "", fmt.Errorf("wire %q: want chat (or openai), responses, anthropic or gemini", s)
}

// New returns a model that asks the configured provider. It sends nothing yet.
// The model may be used from several goroutines at once.
func New(cfg Config) (synapse.Model, error) {
	m, err := newModel(cfg)
	if err != nil {
		return nil, err // not a typed nil
	}
	return m, nil
}

func newModel(cfg Config) (*model, error) {
	row, known := rowOf(cfg.Provider)
	if cfg.Provider == "" {
		return nil, fmt.Errorf("model provider: no name given; want one of %s, or any name with a base URL", strings.Join(names(), ", "))
	}
	m := &model{
		name: cfg.Provider, row: row, key: strings.TrimSpace(cfg.APIKey), // a key pasted with its line end is no valid header
		cloud: cfg.Cloud, price: cfg.Price, client: cfg.HTTPClient, header: http.Header{}, schemas: schemas{made: map[string]schema{}},
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
	switch {
	case cfg.Wire != "" && !slices.Contains(wires, cfg.Wire):
		return fail("wire %q: want one of %q", cfg.Wire, wires)
	case cfg.Wire != "":
		m.wire = cfg.Wire
	case row.Name == "vertex", row.Wire == WireResponses && m.own: // by model
	case row.Wire == WireResponses:
		// OpenAI's name with another address means a compatible server.
		m.wire = WireChat
	default:
		m.wire = row.Wire
	}
	m.setHeaders(cfg)
	return m, nil
}

// setHeaders decides the headers that every request has.
func (m *model) setHeaders(cfg Config) {
	m.header.Set("User-Agent", DefaultUserAgent)
	if cfg.UserAgent != "" {
		m.header.Set("User-Agent", cfg.UserAgent)
	}
	if m.wire == WireAnthropic && m.row.Name != "bedrock" {
		m.header.Set("Anthropic-Version", "2023-06-01")
	}
	switch {
	case m.key == "":
	case m.row.Name == "azure":
		m.header.Set("Api-Key", m.key)
	case m.wire == WireAnthropic && m.row.Name != "bedrock":
		m.header.Set("X-Api-Key", m.key)
		if !m.own { // gateways that speak the format want it either way
			m.header.Set("Authorization", "Bearer "+m.key)
		}
	case m.wire == WireGemini:
		m.header.Set("X-Goog-Api-Key", m.key)
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

// model is one configured provider.
type model struct {
	name    string
	row     Provider
	base    string
	own     bool // asked at the provider's own address
	key     string
	cloud   Cloud
	google  *googleToken // for Vertex without a key, nil otherwise
	local   bool
	wire    Wire // empty: by model
	header  http.Header
	client  *http.Client
	schemas schemas
	price   func(string) (Price, bool)
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

// open returns fantasy's model for one request, over that request's exchange.
// The providers are values without connections, so one per request costs
// nothing that could be seen beside a request.
func (m *model) open(ctx context.Context, x *exchange) (fantasy.LanguageModel, error) {
	var p fantasy.Provider
	var err error
	switch {
	case x.wire == WireResponses:
		p, err = openai.New(openai.WithBaseURL(m.base), openai.WithAPIKey(placeholder), openai.WithHTTPClient(x), openai.WithUseResponsesAPI(),
			openai.WithResponsesAPIFunc(func(string) bool { return true }))
	case x.wire == WireAnthropic:
		// With the settings for Bedrock, whoever is asked: only with those does
		// the SDK read no environment and no profiles on disk. What they change
		// in a request the exchange sets right.
		p, err = bedrock.New(bedrock.WithHTTPClient(x), bedrock.WithAPIKey(placeholder))
	case x.wire == WireGemini:
		// With a key for Vertex too: the settings for Vertex look at the
		// environment, and print what they think of it to the program's log.
		p, err = google.New(google.WithGeminiAPIKey(placeholder), google.WithBaseURL(m.base), google.WithHTTPClient(&http.Client{Transport: x}))
	case m.row.Name == azure.Name:
		p, err = azure.New(azure.WithBaseURL(m.base), azure.WithAPIKey(placeholder), azure.WithHTTPClient(x))
	case m.row.Name == openrouter.Name:
		p, err = openrouter.New(openrouter.WithAPIKey(placeholder), openrouter.WithHTTPClient(x))
	default:
		// The compatible flavour for OpenAI itself too: it is the same wire,
		// and the only one of the two that carries reasoning.
		p, err = openaicompat.New(openaicompat.WithBaseURL(m.base), openaicompat.WithAPIKey(placeholder), openaicompat.WithHTTPClient(x))
	}
	if err != nil {
		return nil, err
	}
	name := x.model
	if x.wire == WireGemini {
		// The exchange knows which model is asked. What the layer below makes of
		// a name is another provider for some, and for some an error.
		if name = "gemini"; strings.HasPrefix(strings.ToLower(x.model), "gemma-") {
			name = "gemma-" // these take no system prompt, which it knows
		}
	}
	return p.LanguageModel(ctx, name)
}

// placeholder stands where an SDK wants a key. The exchange sends the real one.
const placeholder = "set-by-the-exchange"

// endpoint returns the address at which a model is asked.
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
		// What has a slash in it names its collection itself: "tunedModels/mine".
		collection, rest, ok := strings.Cut(name, "/")
		if !ok {
			collection, rest = "models", name
		}
		return m.versioned("v1beta") + "/" + url.PathEscape(collection) + "/" + url.PathEscape(rest) + ":streamGenerateContent?alt=sse"
	}
	return m.base + "/chat/completions"
}

// versioned returns the base URL with a version at its end: people write it
// with and without.
func (m *model) versioned(version string) string {
	if apiVersion().MatchString(m.base) {
		return m.base
	}
	return m.base + "/" + version
}

var apiVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/v[0-9]+[a-z0-9]*$`) })

// Generate sends the request and yields the reply as it comes.
func (m *model) Generate(ctx context.Context, req *synapse.Request) iter.Seq2[*synapse.Delta, error] {
	return func(yield func(*synapse.Delta, error) bool) {
		rctx, cancel := context.WithCancel(ctx)
		x := newExchange(m, req.Model)
		defer x.close(cancel)

		fail := func(err error) {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			yield(nil, x.failure(err))
		}
		call, amend, err := m.encode(req)
		if err != nil {
			var typed *synapse.ProviderError
			if !errors.As(err, &typed) {
				typed = &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: err.Error(), Err: err}
			}
			yield(nil, x.fault(typed))
			return
		}
		x.amend = amend
		lm, err := m.open(rctx, x)
		if err != nil {
			fail(err)
			return
		}
		parts, err := lm.Stream(rctx, call)
		if err != nil {
			fail(err)
			return
		}
		d := decoder{m: m, x: x, req: req}
		for part := range parts {
			delta, end, err := d.part(part)
			switch {
			case err != nil:
				fail(err)
				return
			case end:
				if opaque := x.facts().opaque; opaque != nil && !yield(&synapse.Delta{Kind: synapse.DeltaReasoning, Opaque: opaque}, nil) {
					return
				}
				yield(delta, nil)
				return
			case delta != nil && !yield(delta, nil):
				return
			}
		}
		fail(errNoEnd)
	}
}
