package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// stage is a server on loopback that plays recordings, and keeps what it was
// asked last for each.
type stage struct {
	*httptest.Server
	mu     sync.Mutex
	plays  []answer
	bodies []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{}
	say := &server{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		i, err := strconv.Atoi(number)
		body, readErr := io.ReadAll(r.Body)
		if err != nil || readErr != nil {
			t.Errorf("request to %s: %v, %v", r.URL.Path, err, readErr)
			return
		}
		s.mu.Lock()
		s.bodies[i] = string(body)
		a := s.plays[i]
		s.mu.Unlock()
		say.say(w, r, a)
	}))
	t.Cleanup(s.Close)
	return s
}

// put returns the address at which the server gives an answer, and a function
// that returns what it was asked there last.
func (s *stage) put(a answer) (address string, asked func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.plays)
	s.plays, s.bodies = append(s.plays, a), append(s.bodies, "")
	return fmt.Sprintf("%s/%d", s.URL, i), func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.bodies[i]
	}
}

// wire is how recordings of one format are read and written.
type wire struct {
	name         remote.Wire
	plain, whole func(*testing.T, string) said
	frame        func(*testing.T, string) string
}

var (
	chatWire      = wire{remote.WireChat, chatStreamed, chatWhole, frameChat}
	responsesWire = wire{remote.WireResponses, responsesStreamed, responsesWhole, frameResponses}
	anthropicWire = wire{remote.WireAnthropic, anthropicStreamed, anthropicWhole, frameAnthropic}
	geminiWire    = wire{remote.WireGemini, geminiStreamed, geminiWhole, frameGemini}
)

// A part is what a recording can play: a reply as it was streamed, one that is
// framed as a stream first, a refusal, a list of models, or none, for a reason.
type part struct {
	recorded
	provider string
	wire     wire
	kind     string // streamed, re-framed, refused, models; "" for none
	why      string // of none
}

func (p part) String() string {
	if p.kind == "" {
		return "not played: " + p.why
	}
	return string(p.wire.name) + ", " + p.kind
}

// hosts are the providers by where they were recorded.
var hosts = map[string]string{
	"openrouter.ai": "openrouter", "api.x.ai": "xai", "api.groq.com": "groq", "api.deepseek.com": "deepseek", "api.anthropic.com": "anthropic",
	"generativelanguage.googleapis.com": "gemini", "us-east5-aiplatform.googleapis.com": "vertex", "api.openai.com": "openai",
	"fantasy-playground-resource.openai.azure.com": "azure", "ai-gateway.vercel.sh": "vercel", "api.avian.io": "avian", "api.z.ai": "zai",
	"router.huggingface.co": "huggingface", "api.perplexity.ai": "perplexity", "127.0.0.1": "llamacpp", "localhost:8080": "llamacpp",
}

var bedrockModel = regexp.MustCompile(`^/model/(.+)/invoke`)

// cast says which part a recording has.
func cast(t *testing.T, r recorded) part {
	t.Helper()
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	p := part{recorded: r, provider: hosts[u.Host]}
	path := u.Path
	listed := strings.HasSuffix(path, "/models")
	switch {
	case strings.HasSuffix(u.Host, ".amazonaws.com") && !strings.Contains(bedrockModel.FindStringSubmatch(path)[1], "anthropic."):
		p.why = "a model family's own format"
		return p
	case strings.HasPrefix(path, "/api/chat"), strings.HasPrefix(path, "/api/generate"), strings.HasPrefix(path, "/api/pull"),
		strings.HasPrefix(path, "/api/tags"), u.Host == "api.cohere.ai", u.Host == "api-inference.huggingface.co":
		p.why = "an API of its own"
		return p
	case strings.HasSuffix(path, "mbeddings"), strings.HasSuffix(path, "mbedContents"), strings.HasPrefix(path, "/api/embed"):
		p.why = "embeddings"
		return p
	case strings.Contains(path, "/images/"), strings.HasSuffix(path, ":predict"):
		p.why = "images"
		return p
	case strings.Contains(path, "/files"), strings.Contains(path, "/batches"), strings.Contains(path, "/cachedContents"),
		strings.HasPrefix(path, "/v1/models/"):
		p.why = "a provider's storage and catalogue"
		return p
	case p.provider == "" && !strings.HasSuffix(u.Host, ".amazonaws.com"):
		p.why = "no model"
		return p
	case strings.HasSuffix(path, "/chat/completions"), listed && slices.Contains([]string{"openai", "deepseek", "llamacpp"}, p.provider):
		p.wire = chatWire
	case strings.HasSuffix(path, "/responses"):
		p.wire = responsesWire
	case strings.HasSuffix(path, "/messages"), strings.Contains(path, "awPredict"), strings.Contains(path, "/invoke"), listed && p.provider == "anthropic":
		p.wire = anthropicWire
	case strings.Contains(path, "enerateContent"), listed && p.provider == "gemini":
		p.wire = geminiWire
	default:
		t.Fatalf("%s: %s is of no kind that is known here", r.name, r.url)
	}
	switch {
	case listed:
		p.kind = "models"
	case r.status != http.StatusOK:
		p.kind = "refused"
	case strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream"):
		p.kind = "streamed"
	default:
		p.kind = "re-framed"
	}
	if strings.HasSuffix(u.Host, ".amazonaws.com") {
		p.provider = "bedrock"
		if p.kind == "re-framed" && strings.HasSuffix(path, "-stream") {
			p.kind = "streamed" // in frames
		}
	}
	return p
}

// model returns the model that was asked, where the body or the address says.
func (p part) model() string {
	var body struct {
		Model string `json:"model"`
	}
	if json.Unmarshal([]byte(p.request), &body) == nil && body.Model != "" {
		return body.Model
	}
	if _, rest, ok := strings.Cut(p.url, "/models/"); ok {
		name, _, _ := strings.Cut(rest, ":")
		return name
	}
	if _, rest, ok := strings.Cut(p.url, "/model/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	return "m1"
}

// sizes are the pieces, in bytes, in which a body arrives: they end within
// lines, and within characters. Short bodies come in the smallest; of the long
// ones each comes in one size of several.
func sizes(body string) []int {
	switch n := len(body); {
	case n < 1<<10:
		return []int{1, n}
	case n < 16<<10:
		return []int{[]int{7, 61, 251, 509}[n%4]}
	default:
		return []int{[]int{61, 1021, 4093}[n%3]}
	}
}

// tally counts what was played, and what of it there was to see.
type tally map[string]int

// play plays every recording and counts them by part, then by what they hold.
func play(t *testing.T, all []recorded) (parts, held tally) {
	t.Helper()
	s := newStage(t)
	parts, held = tally{}, tally{}
	for _, r := range all {
		p := cast(t, r)
		parts[p.String()]++
		if p.kind != "" {
			t.Run(p.name, func(t *testing.T) { p.play(t, s, held) })
		}
	}
	t.Logf("parts: %s\nheld: %s", lines(parts), lines(held))
	return parts, held
}

func lines(counts tally) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "\n%5d %s", counts[name], name)
	}
	return out.String()
}

func (p part) play(t *testing.T, s *stage, held tally) {
	if p.kind == "models" {
		p.list(t, s)
		return
	}
	a := answer{status: p.status, header: map[string]string{"Content-Type": p.header.Get("Content-Type")}, body: p.body}
	for _, name := range []string{"Retry-After", "X-Amzn-Errortype"} {
		if v := p.header.Get(name); v != "" {
			a.header[name] = v
		}
	}
	plain := p.body // what the plain readers can read
	read := p.wire.plain
	switch {
	case p.kind == "re-framed":
		a.body, read = p.wire.frame(t, p.body), p.wire.whole
		a.header["Content-Type"] = "text/event-stream"
	case p.kind == "streamed" && p.provider == "bedrock":
		var err error
		if plain, err = unframe(p.body); err != nil {
			t.Fatal(err)
		}
	}
	var failed bool
	var message string
	var want said
	if p.kind != "refused" {
		if p.kind == "streamed" {
			message, failed = failure(dataLines(t, plain))
		}
		if failed {
			held["failed within"]++
		}
		if !failed {
			want = p.expected(t, read, plain)
			want.count(held)
		}
	}
	for i, size := range sizes(a.body) {
		a.pieces = size
		address, asked := s.put(a)
		m, err := remote.New(remote.Config{Provider: p.provider, BaseURL: address, APIKey: "k", Wire: p.wire.name, Cloud: remote.Cloud{Region: "us-east-1", Project: "p"}, HTTPClient: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		req := hello()
		req.Model = p.model()
		reply, err := collect(t, m, req)
		switch {
		case p.kind == "refused":
			checkRefusal(t, p.recorded, err)
		case failed:
			var typed *synapse.ProviderError
			if !errors.As(err, &typed) || message == "" || !strings.Contains(typed.Message, message) {
				t.Errorf("error %v: the recording says %q", err, message)
			}
		case err != nil:
			t.Fatalf("in pieces of %d: %v", size, err)
		default:
			p.compare(t, size, want, flat(t, reply))
			if i == 0 {
				p.again(t, m, req, reply, want, asked)
			}
		}
	}
}

// expected reads the recording, and fails if it says nothing.
func (p part) expected(t *testing.T, read func(*testing.T, string) said, body string) said {
	t.Helper()
	want := read(t, body)
	if want.Text == "" && want.Reasoning == "" && want.Calls == nil && want.Output == 0 {
		t.Fatalf("the recording says nothing:\n%s", p.body)
	}
	return want
}

// count counts what a reply holds.
func (s said) count(held tally) {
	for name, is := range map[string]bool{"text": s.Text != "", "calls": s.Calls != nil, "several calls": len(s.Calls) > 1, "reasoning": s.Reasoning != "",
		"signed": s.Signed != nil, "usage": s.Input > 0 && s.Output > 0, "cache read": s.Cached > 0, "cache written": s.Written > 0,
		"reasoning tokens": s.Thought > 0, "cost": s.Cost > 0, "ended": s.Stop == synapse.StopEnd, "cut": s.Stop == synapse.StopLength, "filtered": s.Stop == synapse.StopFilter} {
		if is {
			held[name]++
		}
	}
}

func (p part) compare(t *testing.T, size int, want, have said) {
	t.Helper()
	want.Signed = nil
	if p.provider != "openrouter" { // others say it in units of their own, if at all
		want.Cost, have.Cost = 0, 0
	}
	switch {
	case p.wire.name == remote.WireResponses: // parts of a summary are told apart by a blank line
		want.Reasoning, have.Reasoning = squeezed(want.Reasoning), squeezed(have.Reasoning)
	case p.wire.name == remote.WireGemini, p.wire.name == remote.WireAnthropic && p.kind == "re-framed":
		// These give arguments as values, not as text.
		want.Calls = slices.Clone(want.Calls)
		for i := range have.Calls {
			have.Calls[i].Args = written(t, parsed(t, have.Calls[i].Args))
			if i < len(want.Calls) && want.Calls[i].ID == "" {
				if have.Calls[i].ID == "" {
					t.Errorf("call %d has no id", i)
				}
				have.Calls[i].ID = "" // the provider gave none
			}
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("in pieces of %d (-recording +decoded):\n%s", size, diff)
	}
}

func squeezed(s string) string { return strings.ReplaceAll(s, "\n", "") }

// again sends the reply back with results, and looks for what was signed.
func (p part) again(t *testing.T, m synapse.Model, req *synapse.Request, reply *synapse.Reply, want said, asked func() string) {
	t.Helper()
	if want.Signed == nil || p.wire.name == remote.WireChat && p.provider != "openrouter" {
		return
	}
	if want.Text == "" && want.Calls == nil {
		return // cut within its thoughts: there is nothing to go on from
	}
	req.Messages = append(req.Messages, reply.Message)
	results := synapse.Message{Role: synapse.RoleTool}
	for _, c := range reply.Message.Calls() {
		results.Parts = append(results.Parts, synapse.Part{Kind: synapse.PartResult, Result: &synapse.ToolResult{CallID: c.ID, Name: c.Name, Text: "42"}})
	}
	if results.Parts != nil {
		req.Messages = append(req.Messages, results)
	} else {
		req.Messages = append(req.Messages, synapse.UserText("Go on."))
	}
	if _, err := collect(t, m, req); err != nil {
		t.Fatal(err)
	}
	for _, signed := range want.Signed {
		if !strings.Contains(asked(), strings.Trim(written(t, signed), `"`)) {
			t.Errorf("signed data did not go back: %.40s… in %.3000s", signed, asked())
		}
	}
}

// list asks for the recorded list of models.
func (p part) list(t *testing.T, s *stage) {
	address, _ := s.put(answer{status: p.status, header: map[string]string{"Content-Type": "application/json"}, body: p.body, pieces: 509})
	got, err := remote.List(t.Context(), remote.Config{Provider: p.provider, BaseURL: address, APIKey: "k", Wire: p.wire.name, HTTPClient: s.Client()})
	if p.status != http.StatusOK {
		checkRefusal(t, p.recorded, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	body := parsed(t, p.body)
	for _, m := range list(body["data"]) {
		want = append(want, str(obj(m)["id"]))
	}
	if body["data"] == nil {
		for _, m := range list(body["models"]) {
			if slices.Contains(list(obj(m)["supportedGenerationMethods"]), any("generateContent")) {
				want = append(want, strings.TrimPrefix(str(obj(m)["name"]), "models/"))
			}
		}
	}
	for _, m := range got {
		have = append(have, m.Name)
	}
	if diff := cmp.Diff(want, have); diff != "" || want == nil {
		t.Errorf("models (-recording +listed):\n%s", diff)
	}
}

// kinds are what refusals are, by status, where the body says nothing else.
var kinds = map[int]synapse.ErrorKind{
	400: synapse.ErrorRequest, 401: synapse.ErrorAuth, 403: synapse.ErrorAuth, 404: synapse.ErrorNotFound,
	429: synapse.ErrorRateLimit, 500: synapse.ErrorServer,
}

func checkRefusal(t *testing.T, r recorded, err error) {
	t.Helper()
	var typed *synapse.ProviderError
	if !errors.As(err, &typed) {
		t.Fatalf("error %v: want a ProviderError", err)
	}
	if typed.Status != r.status {
		t.Errorf("status %d, want %d", typed.Status, r.status)
	}
	want := kinds[r.status]
	switch lower := strings.ToLower(r.body); {
	case strings.Contains(lower, "insufficient_quota"), strings.Contains(lower, "api_key_invalid"):
		want = synapse.ErrorAuth
	case strings.Contains(lower, "model_not_found"), strings.Contains(lower, "does not exist"):
		want = synapse.ErrorNotFound
	case strings.Contains(lower, "context length"), strings.Contains(lower, "exceed_context_size"), strings.Contains(lower, "context size"):
		want = synapse.ErrorContext
	}
	if typed.Kind != want {
		t.Errorf("kind %s of status %d, want %s:\n%s", typed.Kind, r.status, want, r.body)
	}
	if v := r.header.Get("Retry-After"); v != "" {
		if d, err := time.ParseDuration(v + "s"); err != nil || typed.RetryAfter != d {
			t.Errorf("retry after %v, want %s s", typed.RetryAfter, v)
		}
	}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(r.body), &body) == nil && json.Unmarshal(body.Error, &inner) == nil && inner.Message != "" {
		if first := strings.Fields(inner.Message)[0]; !strings.Contains(typed.Message, first) {
			t.Errorf("message %q: want %q", typed.Message, inner.Message)
		}
	}
}

// exactly fails unless the counts are those that a source is known to have.
func exactly(t *testing.T, what string, want, got tally) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-known +found):\n%s", what, diff)
	}
}

func TestRecordingsOfGenai(t *testing.T) {
	all, files := recordings(t, filepath.Join(shared(t, "wire"), "genai"), ".yaml", parseCassette)
	parts, held := play(t, all)
	exactly(t, "parts", tally{
		"anthropic, models":    4,
		"anthropic, re-framed": 35,
		"anthropic, refused":   12,
		"anthropic, streamed":  33,
		"chat, models":         7,
		"chat, re-framed":      65,
		"chat, refused":        23,
		"chat, streamed":       66,
		"gemini, models":       3,
		"gemini, re-framed":    43,
		"gemini, refused":      8,
		"gemini, streamed":     28,
		"not played: a provider's storage and catalogue": 13,
		"not played: an API of its own":                  59,
		"not played: images":                             5,
		"responses, re-framed":                           24,
		"responses, refused":                             5,
		"responses, streamed":                            21,
	}, parts)
	exactly(t, "held", tally{
		"cache read":       27,
		"cache written":    3,
		"calls":            77,
		"cut":              32,
		"ended":            202,
		"failed within":    1,
		"reasoning":        95,
		"reasoning tokens": 108,
		"several calls":    2,
		"signed":           90,
		"text":             215,
		"usage":            291,
	}, held)
	if files != 439 {
		t.Errorf("%d files, want 439", files)
	}
}

func TestRecordingsOfFantasy(t *testing.T) {
	dir := module(t, "charm.land/fantasy", "v0.41.2", "h1:ML6LCJwFHLaKb521rVY6jXOJNsf9koIJtcnY0O1GKsU=")
	all, files := recordings(t, filepath.Join(dir, "providertests", "testdata"), ".yaml", parseCassette)
	parts, held := play(t, all)
	exactly(t, "parts", tally{
		"anthropic, re-framed": 37,
		"anthropic, streamed":  38,
		"chat, re-framed":      145,
		"chat, streamed":       152,
		"gemini, re-framed":    42,
		"gemini, streamed":     42,
		"responses, re-framed": 39,
		"responses, streamed":  39,
	}, parts)
	exactly(t, "held", tally{
		"cache read":       74,
		"calls":            203,
		"cost":             147,
		"ended":            331,
		"reasoning":        111,
		"reasoning tokens": 257,
		"several calls":    61,
		"signed":           98,
		"text":             364,
		"usage":            534,
	}, held)
	if files != 350 {
		t.Errorf("%d files, want 350", files)
	}
}

func TestRecordingsOfLangchain(t *testing.T) {
	dir := module(t, "github.com/tmc/langchaingo", "v0.1.14", "h1:o1qWBPigAIuFvrG6cjTFo0cZPFEZ47ZqpOYMjM15yZc=")
	all, files := recordings(t, dir, ".httprr", parseTranscript)
	parts, held := play(t, all)
	exactly(t, "parts", tally{
		"anthropic, re-framed":                    2,
		"anthropic, refused":                      2,
		"anthropic, streamed":                     1,
		"chat, re-framed":                         89,
		"chat, refused":                           1,
		"chat, streamed":                          6,
		"gemini, re-framed":                       13,
		"gemini, refused":                         1,
		"not played: a model family's own format": 3,
		"not played: an API of its own":           19,
		"not played: embeddings":                  18,
		"not played: no model":                    6,
	}, parts)
	exactly(t, "held", tally{
		"calls": 6,
		"cut":   3,
		"ended": 101,
		"text":  104,
		"usage": 111,
	}, held)
	if files != 107 {
		t.Errorf("%d files, want 107", files)
	}
}
