package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/model/remote"
)

// What the clouds take is read from the environment, and from the two files
// that their own tools write below the home directory.
func TestClouds(t *testing.T) {
	var asked http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.WriteHeader(http.StatusNotFound) // an end that is not tried again
		fmt.Fprint(w, `{"error":{"message":"asked"}}`)
	}))
	defer server.Close()
	bedrock, azure := "AWS_ENDPOINT_URL_BEDROCK_RUNTIME="+server.URL, "AZURE_OPENAI_ENDPOINT="+server.URL
	const sso = "[profile work]\nregion = eu-west-1\nsso_session = corp\n[default]\nregion=us-west-2\n"
	tests := []struct {
		name    string
		model   string
		environ []string
		files   map[string]string
		sends   string // what the server is shown; empty: it is not asked
		says    string // of the failure
	}{
		{name: "bedrock by keys", model: "bedrock:anthropic.claude", environ: []string{bedrock, "AWS_ACCESS_KEY_ID=AKID1", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1"}, sends: "Credential=AKID1/"},
		{name: "bedrock by token", model: "bedrock:anthropic.claude", environ: []string{bedrock, "AWS_BEARER_TOKEN_BEDROCK=token-1", "AWS_REGION=us-east-1"}, sends: "Bearer token-1"},
		{name: "bedrock without a region", model: "bedrock:anthropic.claude", environ: []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}, says: "AWS_REGION"},
		{name: "bedrock by the default profile", model: "bedrock:anthropic.claude", environ: []string{bedrock}, files: map[string]string{
			"home/.aws/config": sso, "home/.aws/credentials": "# mine\n[default]\naws_access_key_id = AKID2\naws_secret_access_key=b\n"}, sends: "/us-west-2/bedrock/"},
		{name: "bedrock by a named profile", model: "bedrock:anthropic.claude", environ: []string{bedrock, "AWS_PROFILE=other", "AWS_REGION=us-east-1"}, files: map[string]string{
			"home/.aws/credentials": "[default]\naws_access_key_id=x\n[other]\naws_access_key_id = AKID3\naws_secret_access_key=b\naws_session_token=c\n"}, sends: "Credential=AKID3/"},
		{name: "bedrock by single sign-on", model: "bedrock:anthropic.claude", environ: []string{"AWS_PROFILE=work"}, files: map[string]string{"home/.aws/config": sso}, says: "export-credentials --profile work"},
		{name: "bedrock by a profile that is not there", model: "bedrock:anthropic.claude", environ: []string{"AWS_PROFILE=gone"}, files: map[string]string{"home/.aws/config": sso}, says: `no profile "gone"`},
		{name: "vertex without a project", model: "vertex:gemini-2.5-pro", says: "GOOGLE_CLOUD_PROJECT"},
		{name: "vertex without credentials", model: "vertex:gemini-2.5-pro", environ: []string{"GOOGLE_CLOUD_PROJECT=p"}, says: "gcloud auth application-default login"},
		{name: "vertex by a file that is not there", model: "vertex:gemini-2.5-pro", environ: []string{"GOOGLE_CLOUD_PROJECT=p", "GOOGLE_APPLICATION_CREDENTIALS=/nowhere/key.json"}, says: "GOOGLE_APPLICATION_CREDENTIALS"},
		{name: "azure", model: "azure:mine", environ: []string{"AZURE_OPENAI_API_KEY=key-1", azure}, sends: "key-1"},
		{name: "azure without an endpoint", model: "azure:mine", environ: []string{"AZURE_OPENAI_API_KEY=k"}, says: "AZURE_OPENAI_ENDPOINT"},
		{name: "gemini without a key", model: "gemini:gemini-2.5-pro", says: "GEMINI_API_KEY is not set (nor GOOGLE_API_KEY)"},
		{name: "a kind that is none", model: "mine:m", files: map[string]string{"home/.synapse/settings.json": `{"providers": {"mine": {"base_url": "http://127.0.0.1:9", "kind": "smoke", "models": ["m"]}}}`},
			says: "want chat (or openai), responses, anthropic or gemini"},
		{name: "a kind", model: "mine:m", environ: []string{"MINE=key-2"}, files: map[string]string{
			"home/.synapse/settings.json": `{"providers": {"mine": {"base_url": "` + server.URL + `", "kind": "gemini", "api_key_env": "MINE", "models": ["m"]}}}`}, sends: "key-2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			p := newPlace(t, tt.files)
			p.opt.Environ = append(p.opt.Environ, tt.environ...)
			h, err := p.try(func(o *host.Options) {
				o.Settings = []host.Setting{{Flag: "test", Key: "probe_local", Value: "false"}, {Flag: "--model", Key: "model", Value: tt.model}}
			})
			said := fmt.Sprint(err)
			if err == nil {
				out, _ := finish(t, h.Run(t.Context(), host.Input{Prompt: "Hi"}))
				said = out.Cause
			}
			if !strings.Contains(said, tt.says) {
				t.Errorf("failed with %q: want it to say %q", said, tt.says)
			}
			var sent strings.Builder
			for _, values := range asked {
				sent.WriteString(strings.Join(values, " ") + "\n")
			}
			if (asked != nil) != (tt.sends != "") || !strings.Contains(sent.String(), tt.sends) {
				t.Errorf("sent %q: want %q; %s", sent.String(), tt.sends, said)
			}
		})
	}
}

// Every variable that a provider is said to be configured by is read.
func TestProviderVariables(t *testing.T) {
	var read []string
	for _, v := range settings.ProviderVars() {
		read = append(read, v.Name)
	}
	for _, p := range remote.Providers() {
		names := []string{p.KeyEnv, p.KeyAlso, p.BaseEnv}
		for _, v := range p.Env {
			names = append(names, v.Name)
		}
		for _, name := range names {
			if name != "" && !slices.Contains(read, name) {
				t.Errorf("provider %s: %s is not read", p.Name, name)
			}
		}
	}
}
