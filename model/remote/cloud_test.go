package remote_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

// Where each cloud is asked, and with what.
func TestCloudEndpoints(t *testing.T) {
	tests := []struct {
		name, model string
		cfg         remote.Config
		url         string
		header      map[string]string
	}{
		{"azure", "my deployment", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com/"},
			"https://res.openai.azure.com/openai/v1/chat/completions", map[string]string{"Api-Key": "k", "Authorization": ""}},
		{"azure, as the portal shows it", "m", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com/openai/v1"},
			"https://res.openai.azure.com/openai/v1/chat/completions", nil},
		{"azure, responses", "m", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com", Wire: remote.WireResponses},
			"https://res.openai.azure.com/openai/v1/responses", nil},
		{"azure, preview", "m", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com", Cloud: remote.Cloud{APIVersion: "preview"}},
			"https://res.openai.azure.com/openai/v1/chat/completions?api-version=preview", nil},
		{"azure, dated", "my deployment", remote.Config{Provider: "azure", APIKey: "k", BaseURL: "https://res.openai.azure.com", Cloud: remote.Cloud{APIVersion: "2024-10-21"}},
			"https://res.openai.azure.com/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21", nil},
		{"bedrock, token", "us.anthropic.claude-haiku-4-5-20251001-v1:0", remote.Config{Provider: "bedrock", APIKey: "k", Cloud: remote.Cloud{Region: "eu-west-1"}},
			"https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream",
			map[string]string{"Authorization": "Bearer k", "Accept": "application/vnd.amazon.eventstream", "X-Api-Key": ""}},
		{"bedrock, profile by name", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", remote.Config{Provider: "bedrock", APIKey: "k", Cloud: remote.Cloud{Region: "us-east-1"}},
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabc/invoke-with-response-stream", nil},
		{"vertex, gemini", "gemini-2.5-pro", remote.Config{Provider: "vertex", APIKey: "k", Cloud: remote.Cloud{Project: "p"}},
			"https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
			map[string]string{"Authorization": "Bearer k", "X-Goog-Api-Key": ""}},
		{"vertex, claude", "claude-sonnet-4-5@20250929", remote.Config{Provider: "vertex", APIKey: "k", Cloud: remote.Cloud{Project: "p", Region: "us-east5"}},
			"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
			map[string]string{"Authorization": "Bearer k", "X-Api-Key": "", "Anthropic-Version": ""}},
		{"vertex, a continent", "gemini-2.5-pro", remote.Config{Provider: "vertex", APIKey: "k", Cloud: remote.Cloud{Project: "p", Region: "eu"}},
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse", nil},
		{"anthropic", "claude-opus-5", remote.Config{Provider: "anthropic", APIKey: "k"},
			"https://api.anthropic.com/v1/messages", map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Authorization": ""}},
		{"anthropic elsewhere, with the version", "m", remote.Config{Provider: "anthropic", APIKey: "k", BaseURL: "https://llm.acme.example/anthropic/v1"},
			"https://llm.acme.example/anthropic/v1/messages", map[string]string{"X-Api-Key": "k", "Authorization": "Bearer k"}},
		{"a server that speaks it", "m", remote.Config{Provider: "acme", APIKey: "k", BaseURL: "https://llm.acme.example/anthropic", Wire: remote.WireAnthropic},
			"https://llm.acme.example/anthropic/v1/messages", map[string]string{"X-Api-Key": "k", "Authorization": "Bearer k"}},
		{"gemini", "gemini-2.5-pro", remote.Config{Provider: "gemini", APIKey: "k"},
			"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", map[string]string{"X-Goog-Api-Key": "k", "Authorization": ""}},
		{"gemini, tuned", "tunedModels/mine", remote.Config{Provider: "gemini", APIKey: "k", BaseURL: "http://127.0.0.1:9/v1"},
			"http://127.0.0.1:9/v1/tunedModels/mine:streamGenerateContent?alt=sse", nil},
		{"a name that would lead elsewhere", "../../evil?x=#y", remote.Config{Provider: "vertex", APIKey: "k", Cloud: remote.Cloud{Project: "p/../q", Region: "us-east5"}},
			"https://us-east5-aiplatform.googleapis.com/v1/projects/p%2F..%2Fq/locations/us-east5/publishers/google/models/..%2F..%2Fevil%3Fx=%23y:streamGenerateContent?alt=sse", nil},
		{"groq", "m", remote.Config{Provider: "groq", APIKey: "k"}, "https://api.groq.com/openai/v1/chat/completions", map[string]string{"Authorization": "Bearer k"}},
		{"xai", "m", remote.Config{Provider: "xai", APIKey: "k"}, "https://api.x.ai/v1/chat/completions", nil},
		{"mistral", "m", remote.Config{Provider: "mistral", APIKey: "k"}, "https://api.mistral.ai/v1/chat/completions", nil},
		{"deepseek", "m", remote.Config{Provider: "deepseek", APIKey: "k"}, "https://api.deepseek.com/v1/chat/completions", nil},
		{"openrouter", "m", remote.Config{Provider: "openrouter", APIKey: "k"}, "https://openrouter.ai/api/v1/chat/completions", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := hello()
			req.Model = tt.model
			got := own(t, tt.cfg, req)
			if got.url != tt.url {
				t.Errorf("url\n%s, want\n%s", got.url, tt.url)
			}
			for name, want := range tt.header {
				if have := got.header.Get(name); have != want {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
		})
	}
}

// What is missing is named, with the way to give it.
func TestCloudRefuses(t *testing.T) {
	keys := remote.AWSKeys{AccessKeyID: "AKID", SecretAccessKey: "secret"}
	tests := []struct {
		name string
		cfg  remote.Config
		says string
	}{
		{"azure without an endpoint", remote.Config{Provider: "azure", APIKey: "k"}, "AZURE_OPENAI_ENDPOINT"},
		{"azure without a key", remote.Config{Provider: "azure", BaseURL: "https://res.openai.azure.com"}, "AZURE_OPENAI_API_KEY"},
		{"bedrock without a region", remote.Config{Provider: "bedrock", APIKey: "k"}, "AWS_REGION"},
		{"bedrock without keys", remote.Config{Provider: "bedrock", Cloud: remote.Cloud{Region: "us-east-1"}}, "export-credentials"},
		{"bedrock with half a key", remote.Config{Provider: "bedrock", Cloud: remote.Cloud{Region: "us-east-1", AWS: remote.AWSKeys{AccessKeyID: "x"}}}, "AWS_SECRET_ACCESS_KEY"},
		{"a region that is a host", remote.Config{Provider: "bedrock", Cloud: remote.Cloud{Region: "evil.example/x?", AWS: keys}}, "region"},
		{"vertex without a project", remote.Config{Provider: "vertex"}, "GOOGLE_CLOUD_PROJECT"},
		{"vertex without credentials", remote.Config{Provider: "vertex", Cloud: remote.Cloud{Project: "p"}}, "gcloud auth application-default login"},
		{"vertex with something else", remote.Config{Provider: "vertex", Cloud: remote.Cloud{Project: "p", GoogleCredentials: []byte("x")}}, "JSON"},
		{"vertex with a command to run", remote.Config{Provider: "vertex", Cloud: remote.Cloud{Project: "p", GoogleCredentials: []byte(`{"type":"external_account"}`)}}, "external_account"},
		{"anthropic without a key", remote.Config{Provider: "anthropic"}, "ANTHROPIC_API_KEY"},
		{"gemini without a key", remote.Config{Provider: "gemini"}, "GEMINI_API_KEY"},
		{"openrouter without a key", remote.Config{Provider: "openrouter"}, "OPENROUTER_API_KEY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := remote.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v: want one that says %q", err, tt.says)
			}
		})
	}
	m, err := remote.New(remote.Config{Provider: "bedrock", APIKey: "k", Cloud: remote.Cloud{Region: "us-east-1"}, HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("a request went out")
		return nil, errors.New("no")
	})}})
	if err != nil {
		t.Fatal(err)
	}
	req := hello()
	req.Model = "amazon.nova-pro-v1:0"
	_, err = collect(t, m, req)
	if got := wantKind(t, err, synapse.ErrorRequest); !strings.Contains(got.Message, "/openai/v1") {
		t.Errorf("message %q: want the way to other models", got.Message)
	}
}

// The signature is the one that Amazon's description of it comes to, worked out
// here step by step.
func TestBedrockSignature(t *testing.T) {
	keys := remote.AWSKeys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: "session"}
	req := hello()
	req.Model = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
	got := own(t, remote.Config{Provider: "bedrock", Cloud: remote.Cloud{Region: "us-east-1", AWS: keys}, Headers: map[string]string{"X-Team": "red"}}, req)
	auth := got.header.Get("Authorization")
	var signed, signature string
	for _, part := range strings.Split(strings.TrimPrefix(auth, "AWS4-HMAC-SHA256 "), ", ") {
		if v, ok := strings.CutPrefix(part, "SignedHeaders="); ok {
			signed = v
		}
		if v, ok := strings.CutPrefix(part, "Signature="); ok {
			signature = v
		}
	}
	date := got.header.Get("X-Amz-Date")
	if len(date) != 16 || signed == "" {
		t.Fatalf("authorization %q, date %q", auth, date)
	}
	for _, name := range []string{"host", "x-amz-date", "x-amz-security-token", "x-team"} {
		if !slices.Contains(strings.Split(signed, ";"), name) {
			t.Errorf("%s is not signed: %s", name, signed)
		}
	}
	u, err := url.Parse(got.url)
	if err != nil {
		t.Fatal(err)
	}
	var canonical strings.Builder
	canonical.WriteString("POST\n" + strings.ReplaceAll(u.EscapedPath(), "%", "%25") + "\n\n")
	for _, name := range strings.Split(signed, ";") {
		value := got.header.Get(name)
		switch name {
		case "host":
			value = u.Host
		case "content-length":
			value = fmt.Sprint(len(got.body))
		}
		canonical.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	mac := func(key []byte, s string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(s))
		return h.Sum(nil)
	}
	canonical.WriteString("\n" + signed + "\n" + sum(got.body))
	scope := date[:8] + "/us-east-1/bedrock/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" + sum(canonical.String())
	key := mac(mac(mac(mac([]byte("AWS4"+keys.SecretAccessKey), date[:8]), "us-east-1"), "bedrock"), "aws4_request")
	if want := hex.EncodeToString(mac(key, toSign)); signature != want {
		t.Errorf("signature %s, want %s of\n%s", signature, want, canonical.String())
	}
	if !strings.Contains(auth, "Credential=AKIDEXAMPLE/"+scope) {
		t.Errorf("authorization %q", auth)
	}
}

// Amazon's refusals and its exceptions within a stream, written by hand.
func TestBedrockFailures(t *testing.T) {
	chunk := func(data string) []byte {
		payload, err := json.Marshal(map[string]any{"bytes": []byte(data), "p": "abc"})
		if err != nil {
			t.Fatal(err)
		}
		return amazonFrame("event", "chunk", payload)
	}
	var whole []byte
	for line := range strings.Lines(wholeAnthropic) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			whole = append(whole, chunk(strings.TrimSpace(data))...)
		}
	}
	head := string(whole[:len(whole)/2])
	stream := func(body string, cut bool) answer {
		return answer{header: map[string]string{"Content-Type": "application/vnd.amazon.eventstream"}, body: body, cut: cut, pieces: 3}
	}
	refuse := func(status int, kind, message string) answer {
		return answer{status: status, header: map[string]string{"Content-Type": "application/json", "X-Amzn-Errortype": kind + ":http://internal.amazon.com/coral/"}, body: `{"message":"` + message + `"}`}
	}
	broken := slices.Clone(whole)
	broken[20] ^= 0xff
	tests := []struct {
		name   string
		answer answer
		kind   synapse.ErrorKind
		says   string
	}{
		{"throttled", refuse(429, "ThrottlingException", "Too many requests"), synapse.ErrorRateLimit, "Too many requests"},
		{"not allowed", refuse(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."), synapse.ErrorAuth, "access"},
		{"expired", refuse(403, "ExpiredTokenException", "The security token included in the request is expired"), synapse.ErrorAuth, "expired"},
		{"too long", refuse(400, "ValidationException", "Input is too long for requested model."), synapse.ErrorContext, "too long"},
		{"invalid", refuse(400, "ValidationException", "The provided model identifier is invalid."), synapse.ErrorNotFound, "identifier"},
		{"not ready", refuse(429, "ModelNotReadyException", "The model is not ready"), synapse.ErrorRateLimit, ""},
		{"unavailable", refuse(503, "ServiceUnavailableException", "Bedrock is unable to process your request."), synapse.ErrorOverloaded, ""},
		{"throttled within", stream(string(amazonFrame("exception", "throttlingException", []byte(`{"message":"Too many tokens"}`))), false), synapse.ErrorRateLimit, "Too many tokens"},
		{"busy within", stream(head[:0]+string(amazonFrame("exception", "serviceUnavailableException", []byte(`{"message":"busy"}`))), false), synapse.ErrorOverloaded, "busy"},
		{"failed within", stream(string(amazonFrame("exception", "modelStreamErrorException", []byte(`{"message":"upstream","originalStatusCode":429}`))), false), synapse.ErrorRateLimit, "upstream"},
		{"invalid within", stream(string(amazonFrame("exception", "validationException", []byte(`{"message":"no"}`))), false), synapse.ErrorRequest, "no"},
		{"cut within a frame", stream(head, true), synapse.ErrorStream, ""},
		{"ended within a frame", stream(head, false), synapse.ErrorStream, ""},
		{"a broken frame", stream(string(broken), false), synapse.ErrorStream, ""},
		{"a frame of nonsense", stream(string(amazonFrame("event", "chunk", []byte("x"))), false), synapse.ErrorMalformed, ""},
		{"a frame without an end", stream("\x7f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", false), synapse.ErrorMalformed, "MiB"},
		{"no frame", stream("", false), synapse.ErrorStream, "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.answer))
			req := hello()
			req.Model = "anthropic.claude"
			_, err := collect(t, s.open(remote.Config{Provider: "bedrock", APIKey: "secret-token", BaseURL: s.URL, Cloud: remote.Cloud{Region: "us-east-1"}}), req)
			if got := wantKind(t, err, tt.kind); !strings.Contains(got.Message, tt.says) {
				t.Errorf("message %q: want it to say %q", got.Message, tt.says)
			}
		})
	}
	s := serve(t, always(stream(string(whole), false)))
	req := hello()
	req.Model = "anthropic.claude"
	got, err := collect(t, s.open(remote.Config{Provider: "bedrock", APIKey: "k", BaseURL: s.URL, Cloud: remote.Cloud{Region: "us-east-1"}}), req)
	if err != nil || len(got.Message.Calls()) != 1 || got.Usage.InputTokens != 5 || got.Usage.CacheReadTokens != 2 {
		t.Errorf("whole: %+v, %v", got, err)
	}
}

// google is a token server and a model behind it.
type googleServer struct {
	*httptest.Server
	key    *rsa.PrivateKey
	tokens atomic.Int32
	asks   atomic.Int32
	say    func(w http.ResponseWriter, r *http.Request) bool // takes the token request over
	life   int
}

func newGoogle(t *testing.T) *googleServer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &googleServer{key: key, life: 3600}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			g.asks.Add(1)
			if got, want := r.Header.Get("Authorization"), fmt.Sprintf("Bearer ya29.%d", g.tokens.Load()); got != want {
				t.Errorf("authorization %q, want %q", got, want)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, okFor(remote.WireGemini).body)
			return
		}
		if g.say != nil && g.say(w, r) {
			return
		}
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if assertion := r.Form.Get("assertion"); assertion != "" {
			g.verify(t, assertion)
		} else if r.Form.Get("refresh_token") != "refresh" || r.Form.Get("grant_type") != "refresh_token" {
			t.Errorf("token request %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"ya29.%d","token_type":"Bearer","expires_in":%d}`, g.tokens.Add(1), g.life)
	}))
	t.Cleanup(g.Close)
	return g
}

// verify checks a service account's assertion with its public key.
func (g *googleServer) verify(t *testing.T, assertion string) {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		t.Errorf("assertion %q", assertion)
		return
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Error(err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature); err != nil {
		t.Errorf("assertion: %v", err)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !strings.Contains(string(claims), "cloud-platform") || !strings.Contains(string(claims), "me@p.iam.gserviceaccount.com") {
		t.Errorf("claims %s, %v", claims, err)
	}
}

func (g *googleServer) serviceAccount(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "me@p.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": g.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (g *googleServer) open(t *testing.T, credentials []byte) synapse.Model {
	t.Helper()
	m, err := remote.New(remote.Config{Provider: "vertex", BaseURL: g.URL, Cloud: remote.Cloud{Project: "p", GoogleCredentials: credentials}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVertexServiceAccount(t *testing.T) {
	g := newGoogle(t)
	m := g.open(t, g.serviceAccount(t))
	for range 3 {
		if _, err := collect(t, m, hello()); err != nil {
			t.Fatal(err)
		}
	}
	if g.tokens.Load() != 1 || g.asks.Load() != 3 {
		t.Errorf("%d tokens for %d requests: want one", g.tokens.Load(), g.asks.Load())
	}
}

// A token that is about to expire is not used again.
func TestVertexTokenIsRenewed(t *testing.T) {
	g := newGoogle(t)
	g.life = 30
	m := g.open(t, g.serviceAccount(t))
	for range 2 {
		if _, err := collect(t, m, hello()); err != nil {
			t.Fatal(err)
		}
	}
	if g.tokens.Load() != 2 {
		t.Errorf("%d tokens: want two", g.tokens.Load())
	}
}

func TestVertexTokenFailures(t *testing.T) {
	tests := []struct {
		name string
		say  func(w http.ResponseWriter, r *http.Request) bool
		kind synapse.ErrorKind
		says string
	}{
		{"revoked", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)
			return true
		}, synapse.ErrorAuth, "invalid_grant"},
		{"busy", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(503)
			return true
		}, synapse.ErrorOverloaded, ""},
		{"gone", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, synapse.ErrorNetwork, ""},
		{"no JSON", func(w http.ResponseWriter, r *http.Request) bool { io.WriteString(w, "<html>"); return true }, synapse.ErrorNetwork, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGoogle(t)
			g.say = tt.say
			_, err := collect(t, g.open(t, g.serviceAccount(t)), hello())
			if got := wantKind(t, err, tt.kind); !strings.Contains(got.Message, tt.says) || !strings.Contains(got.Message, "access token") {
				t.Errorf("message %q", got.Message)
			}
			if g.asks.Load() != 0 {
				t.Error("the model was asked")
			}
		})
	}
}

// A cancel ends the wait for a token, also that of who waits behind another.
func TestVertexTokenCancel(t *testing.T) {
	g := newGoogle(t)
	held := make(chan struct{})
	g.say = func(w http.ResponseWriter, r *http.Request) bool {
		close(held)
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	}
	m := g.open(t, g.serviceAccount(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	ask := func() {
		_, err := synapse.Collect(m.Generate(ctx, hello()), nil)
		done <- err
	}
	go ask()
	<-held
	go ask()
	cancel()
	for range 2 {
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v: want context.Canceled", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("still waiting for a token")
		}
	}
}

// Nothing that the environment holds for other programs gets into a request.
func TestCloudIgnoresTheEnvironment(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL",
		"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_QUOTA_PROJECT",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL",
		"AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENROUTER_API_KEY", "OPENAI_API_KEY",
	} {
		t.Setenv(name, "ambient")
	}
	for _, cfg := range []remote.Config{
		{Provider: "anthropic", APIKey: "own"}, {Provider: "gemini", APIKey: "own"}, {Provider: "openrouter", APIKey: "own"}, {Provider: "openai", APIKey: "own"},
		{Provider: "azure", APIKey: "own", BaseURL: "https://res.openai.azure.com"},
		{Provider: "bedrock", Cloud: remote.Cloud{Region: "us-east-1", AWS: remote.AWSKeys{AccessKeyID: "own", SecretAccessKey: "own"}}},
		{Provider: "vertex", APIKey: "own", Cloud: remote.Cloud{Project: "p"}},
	} {
		req := hello()
		req.Model = "claude-x"
		got := own(t, cfg, req)
		text := got.url + got.body
		for name, values := range got.header {
			text += " " + name + "=" + strings.Join(values, " ")
		}
		if strings.Contains(text, "ambient") {
			t.Errorf("%s: %s", cfg.Provider, text)
		}
	}
}
