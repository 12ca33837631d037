package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
)

// quietly keeps a host from looking for servers on this machine, and takes no
// model from the command line.
func quietly(o *host.Options) {
	o.Settings = []host.Setting{{Flag: "test", Key: "probe_local", Value: "false"}}
}

// The model of a provider of which only a key is known is the catalogue's.
func TestDefaultModels(t *testing.T) {
	tests := []struct {
		environ []string
		want    string // a prefix
		err     string
	}{
		{[]string{"ANTHROPIC_API_KEY=k"}, "anthropic:claude-", ""},
		{[]string{"OPENAI_API_KEY=k"}, "openai:gpt-", ""},
		{[]string{"GEMINI_API_KEY=k"}, "gemini:gemini-", ""},
		{[]string{"GOOGLE_API_KEY=k"}, "gemini:gemini-", ""},
		{[]string{"OPENROUTER_API_KEY=k"}, "openrouter:anthropic/claude-", ""},
		{[]string{"DEEPSEEK_API_KEY=k"}, "deepseek:deepseek-", ""},
		{[]string{"GROQ_API_KEY=k"}, "groq:", ""},
		{[]string{"MISTRAL_API_KEY=k"}, "mistral:mistral-", ""},
		{[]string{"XAI_API_KEY=k"}, "xai:grok-", ""},
		{[]string{"AWS_BEARER_TOKEN_BEDROCK=k", "AWS_REGION=us-east-1"}, "bedrock:us.anthropic.claude-", ""},
		{[]string{"AWS_BEARER_TOKEN_BEDROCK=k", "AWS_REGION=eu-west-1"}, "bedrock:eu.anthropic.claude-", ""},
		{[]string{"AWS_BEARER_TOKEN_BEDROCK=k", "AWS_REGION=ap-south-1"}, "", "-m bedrock:MODEL"},
		{[]string{"AZURE_OPENAI_API_KEY=k", "AZURE_OPENAI_ENDPOINT=https://res.openai.azure.com"}, "", "-m azure:MODEL"},
		// Keys that are there for other programs choose nothing.
		{[]string{"AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=k", "AWS_REGION=us-east-1", "GOOGLE_CLOUD_PROJECT=p"}, "offline:rules", ""},
		{[]string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"}, "anthropic:", ""},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.environ, " "), func(t *testing.T) {
			p := newPlace(t, nil)
			p.opt.Environ = append(p.opt.Environ, tt.environ...)
			h, err := p.try(quietly)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) || !host.IsConfig(err) {
					t.Errorf("error %v: want one that says %q", err, tt.err)
				}
			case err != nil:
				t.Error(err)
			case !strings.HasPrefix(h.Main().Model.String(), tt.want):
				t.Errorf("model %s, want %s…", h.Main().Model, tt.want)
			}
		})
	}
}

func TestModels(t *testing.T) {
	p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"providers": {"mine": {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "MINE_KEY", "models": ["m1", "m2"]}}}`})
	p.opt.Environ = append(p.opt.Environ, "ANTHROPIC_API_KEY=k")
	h := p.open(quietly)
	list := h.Models(t.Context())
	by := map[string]host.ModelInfo{}
	for _, m := range list {
		if _, twice := by[m.Ref.String()]; twice {
			t.Errorf("%s is there twice", m.Ref)
		}
		by[m.Ref.String()] = m
		if m.Provider != m.Ref.Provider || m.Name == "" || m.Source == "" {
			t.Errorf("model %+v", m)
		}
		for _, price := range []*float64{m.InputPrice, m.OutputPrice} {
			if price != nil && m.Source == host.SourceCatalogue && *price < 0 {
				t.Errorf("%s: price %v", m.Ref, *price)
			}
		}
		for _, e := range m.Efforts {
			if _, err := synapse.ParseEffort(string(e)); err != nil || e == synapse.EffortInherit {
				t.Errorf("%s: effort %q", m.Ref, e)
			}
		}
	}
	if !list[0].Default || list[0].Ref != h.Main().Model || list[0].Provider != "anthropic" {
		t.Errorf("the first is %+v, want the main agent's", list[0])
	}
	claude := by[h.Main().Model.String()]
	if claude.Window < 100000 || claude.MaxOutput < 8000 || claude.InputPrice == nil || *claude.InputPrice <= 0 || *claude.OutputPrice <= *claude.InputPrice ||
		claude.KeyEnv != "ANTHROPIC_API_KEY" || !claude.KeySet || !slices.Contains(claude.Efforts, synapse.EffortOff) || claude.Source != host.SourceCatalogue {
		t.Errorf("%+v", claude)
	}
	if m := by["mine:m2"]; m.KeySet || m.KeyEnv != "MINE_KEY" || m.InputPrice != nil || m.Source != host.SourceSettings {
		t.Errorf("%+v: want no key and no price", m)
	}
	if m := by["offline:rules"]; !m.KeySet || m.Source != host.SourceEmbedded {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{"openai", "gemini", "openrouter", "bedrock", "vertex", "azure", "groq", "xai", "deepseek"} {
		i := slices.IndexFunc(list, func(m host.ModelInfo) bool { return m.Provider == name })
		if i < 0 || list[i].KeySet || list[i].Default {
			t.Errorf("%s: at %d, want models without a key", name, i)
		}
	}
	// What can be asked comes before what can't.
	last := 0
	for i, m := range list {
		if m.KeySet {
			last = i
		}
	}
	for _, m := range list[:last] {
		if !m.KeySet {
			t.Errorf("%s has no key and comes before one that has", m.Ref)
			break
		}
	}
	if data, err := json.Marshal(by["mine:m1"]); err != nil || !strings.Contains(string(data), `"ref":"mine:m1"`) || !strings.Contains(string(data), `"input_price":null`) {
		t.Errorf("%s, %v", data, err)
	}
}

// modelServer answers as Anthropic does, and counts what it was asked.
func modelServer(t *testing.T, usage string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			if r.Header.Get("X-Api-Key") == "wrong-key-1234" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key wrong-key-1234"}}`)
				return
			}
			fmt.Fprint(w, `{"data":[{"id":"claude-served"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-served\",\"usage\":{%s}}}\n\n", usage)
		fmt.Fprint(w, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello.\"}}\n\n")
		fmt.Fprint(w, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":10}}\n\n")
		fmt.Fprint(w, "data: {\"type\":\"message_stop\"}\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// An address of one's own has no price: whoever answers there may ask another
// one than the provider whose name it goes by.
func TestNoPriceAtAnotherAddress(t *testing.T) {
	s := modelServer(t, `"input_tokens":100`)
	p := newPlace(t, nil)
	p.opt.Environ = append(p.opt.Environ, "ANTHROPIC_BASE_URL="+s.URL, "ANTHROPIC_API_KEY=k")
	h := p.open(func(o *host.Options) {
		quietly(o)
		o.Settings = append(o.Settings, host.Setting{Flag: "--model", Key: "model", Value: "anthropic:claude-sonnet-4-6"})
	})
	out, _ := finish(t, h.Run(t.Context(), host.Input{Prompt: "Hi"}))
	if out.Text != "Hello." || out.Usage.InputTokens != 100 || out.Usage.CostUSD != nil {
		t.Errorf("outcome %+v, cost %v", out, out.Usage.CostUSD)
	}
}

// A provider of the user's own may speak any of the wires.
func TestProviderKind(t *testing.T) {
	s := modelServer(t, `"input_tokens":3,"cache_read_input_tokens":4`)
	p := newPlace(t, map[string]string{"home/.synapse/settings.json": `{"model": "mine:m", "providers": {"mine": {"base_url": "` + s.URL + `", "kind": "anthropic", "models": ["m"]}}}`})
	h := p.open(quietly)
	out, _ := finish(t, h.Run(t.Context(), host.Input{Prompt: "Hi"}))
	if out.Text != "Hello." || out.Usage.InputTokens != 7 || out.Usage.CacheReadTokens != 4 {
		t.Errorf("outcome %+v", out)
	}
	p.write("home/.synapse/settings.json", `{"model": "mine:m", "providers": {"mine": {"base_url": "http://127.0.0.1:9", "kind": "smoke", "models": ["m"]}}}`)
	if _, err := p.try(quietly); err == nil || !host.IsConfig(err) || !strings.Contains(err.Error(), "want chat (or openai), responses, anthropic or gemini") {
		t.Errorf("error %v: want the kinds that there are", err)
	}
}

// A slip in an alias or in the fallback chain is found at the start, with where
// it stands and what would do.
func TestAliasesAndFallbacks(t *testing.T) {
	tests := []struct {
		name, settings string
		says           []string
	}{
		{"an alias of nobody's", `{"model_aliases": {"fast": "nobody:m"}}`, []string{"settings.json", "model_aliases", `"fast"`, `there is no provider "nobody"`, "anthropic"}},
		{"an alias of no form", `{"model_aliases": {"fast": "gpt-5"}}`, []string{"model_aliases.fast", `found "gpt-5"`, "provider:model"}},
		{"aliases in a circle", `{"model_aliases": {"openai:a": "openai:b", "openai:b": "openai:a"}}`, []string{"model_aliases", "circle", "openai:a → openai:b → openai:a"}},
		{"a fallback of nobody's", `{"fallback_models": ["offline:rules", "nobody:m"]}`, []string{"settings.json", "fallback_models: entry 2", `there is no provider "nobody"`}},
		{"a fallback of no form", `{"model_aliases": {"fast": "offline:rules"}, "fallback_models": ["slow"]}`, []string{"fallback_models[0]", `found "slow"`, "model_aliases has fast"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"home/.synapse/settings.json": tt.settings})
			_, err := p.try(quietly)
			if err == nil || !host.IsConfig(err) {
				t.Fatalf("error %v: want one of the configuration", err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("error %v: want it to say %q", err, says)
				}
			}
		})
	}
	for _, good := range []string{
		`{"model_aliases": {"fast": "offline:rules"}, "fallback_models": ["fast", "google:gemini-2.5-flash", "openrouter:a/b:free"]}`,
	} {
		p := newPlace(t, map[string]string{"home/.synapse/settings.json": good})
		if _, err := p.try(quietly); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// What the clouds take is read from the environment, and from the two files
// that their own tools write below the home directory.
func TestClouds(t *testing.T) {
	const sso = "[profile work]\nregion = eu-west-1\nsso_session = corp\n[default]\nregion=us-west-2\n"
	tests := []struct {
		name    string
		model   string
		environ []string
		files   map[string]string
		says    string // of the failure; empty: it can be asked
	}{
		{"bedrock by keys", "bedrock:anthropic.claude", []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1"}, nil, ""},
		{"bedrock without a region", "bedrock:anthropic.claude", []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}, nil, "AWS_REGION"},
		{"bedrock by the default profile", "bedrock:anthropic.claude", nil, map[string]string{
			"home/.aws/config": sso, "home/.aws/credentials": "# mine\n[default]\naws_access_key_id = a\naws_secret_access_key=b\n"}, ""},
		{"bedrock by a named profile", "aws:anthropic.claude", []string{"AWS_PROFILE=other", "AWS_REGION=us-east-1"}, map[string]string{
			"home/.aws/credentials": "[default]\naws_access_key_id=x\n[other]\naws_access_key_id = a\naws_secret_access_key=b\naws_session_token=c\n"}, ""},
		{"bedrock by single sign-on", "bedrock:anthropic.claude", []string{"AWS_PROFILE=work"}, map[string]string{"home/.aws/config": sso}, "export-credentials --profile work"},
		{"bedrock by a profile that is not there", "bedrock:anthropic.claude", []string{"AWS_PROFILE=gone"}, map[string]string{"home/.aws/config": sso}, `no profile "gone"`},
		{"vertex without a project", "vertex:gemini-2.5-pro", nil, nil, "GOOGLE_CLOUD_PROJECT"},
		{"vertex without credentials", "vertex:gemini-2.5-pro", []string{"GOOGLE_CLOUD_PROJECT=p"}, nil, "gcloud auth application-default login"},
		{"vertex by gcloud", "vertexai:gemini-2.5-pro", []string{"GOOGLE_CLOUD_PROJECT=p"}, map[string]string{
			"home/.config/gcloud/application_default_credentials.json": `{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c"}`}, ""},
		{"vertex by a file that is not there", "vertex:gemini-2.5-pro", []string{"GOOGLE_CLOUD_PROJECT=p", "GOOGLE_APPLICATION_CREDENTIALS=/nowhere/key.json"}, nil, "GOOGLE_APPLICATION_CREDENTIALS"},
		{"azure", "azure:mine", []string{"AZURE_OPENAI_API_KEY=k", "AZURE_OPENAI_ENDPOINT=https://res.openai.azure.com"}, nil, ""},
		{"azure without an endpoint", "azure:mine", []string{"AZURE_OPENAI_API_KEY=k"}, nil, "AZURE_OPENAI_ENDPOINT"},
		{"gemini without a key", "google:gemini-2.5-pro", nil, nil, "GEMINI_API_KEY is not set (nor GOOGLE_API_KEY)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, tt.files)
			p.opt.Environ = append(p.opt.Environ, tt.environ...)
			h, err := p.try(func(o *host.Options) {
				quietly(o)
				o.Inspect = true
				o.Settings = append(o.Settings, host.Setting{Flag: "--model", Key: "model", Value: tt.model})
			})
			if err != nil {
				t.Fatal(err)
			}
			check := named(t, h.Doctor(offline(t)), "model")
			if tt.says == "" && !strings.Contains(check.Detail, "can't be used") && !check.OK {
				t.Errorf("check %+v: want it to be usable", check)
			}
			if tt.says != "" && (check.OK || !strings.Contains(check.Detail, tt.says) || check.Fix == "") {
				t.Errorf("check %+v: want it to say %q", check, tt.says)
			}
		})
	}
}

func named(t *testing.T, checks []host.Check, name string) host.Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q among %+v", name, checks)
	return host.Check{}
}

// Prices of the catalogue are plausible for every model that it has of every
// provider: cached input never costs more than fresh, nothing is negative.
func TestCataloguePrices(t *testing.T) {
	p := newPlace(t, nil)
	h := p.open(quietly)
	priced := 0
	for _, m := range h.Models(t.Context()) {
		if m.Source != host.SourceCatalogue {
			continue
		}
		if m.InputPrice != nil {
			priced++
			if *m.InputPrice > 1000 || *m.OutputPrice > 1000 {
				t.Errorf("%s: %v and %v dollars for a million", m.Ref, *m.InputPrice, *m.OutputPrice)
			}
		}
		if m.Window < 0 || m.MaxOutput < 0 {
			t.Errorf("%+v", m)
		}
	}
	if priced < 200 {
		t.Errorf("%d models with a price", priced)
	}
}
