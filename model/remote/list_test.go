package remote_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	synapse "github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/remote"
)

func TestList(t *testing.T) {
	tests := []struct {
		name, path, body string
		cfg              remote.Config
		header           map[string]string
		want             []string
	}{
		{"openai", "/v1/models", `{"object":"list","data":[{"id":"b"},{"id":""},{"id":"a"}]}`, remote.Config{Provider: "openaicompat", APIKey: "k"},
			map[string]string{"Authorization": "Bearer k"}, []string{"b", "a"}},
		{"anthropic", "/v1/models?limit=1000", `{"data":[{"type":"model","id":"claude-x"}],"has_more":false}`, remote.Config{Provider: "anthropic", APIKey: "k"},
			map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01"}, []string{"claude-x"}},
		{"gemini", "/v1/models?pageSize=1000", `{"models":[{"name":"models/gemini-x","supportedGenerationMethods":["generateContent"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}`,
			remote.Config{Provider: "gemini", APIKey: "k"}, map[string]string{"X-Goog-Api-Key": "k"}, []string{"gemini-x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(answer{header: map[string]string{"Content-Type": "application/json"}, body: tt.body}))
			tt.cfg.BaseURL = s.URL + "/v1"
			got, err := remote.List(t.Context(), tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range got {
				names = append(names, l.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			requests, _ := s.seen()
			if r := requests[0]; r.Method != "GET" || r.URL.String() != tt.path {
				t.Errorf("%s %s, want %s", r.Method, r.URL, tt.path)
			}
			for name, want := range tt.header {
				if got := requests[0].Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestListFailures(t *testing.T) {
	const key = "sk-very-secret-123"
	for name, tt := range map[string]struct {
		answer answer
		kind   synapse.ErrorKind
	}{
		"wrong key": {answer{status: 401, body: openAIError("bad key "+key, "", "")}, synapse.ErrorAuth},
		"page":      {answer{header: map[string]string{"Content-Type": "text/html"}, body: "<html>"}, synapse.ErrorMalformed},
		"cut":       {answer{body: `{"data":[`, cut: true}, synapse.ErrorStream},
		"busy":      {answer{status: 503}, synapse.ErrorOverloaded},
		"dropped":   {answer{drop: true}, synapse.ErrorNetwork},
	} {
		s := serve(t, always(tt.answer))
		_, err := remote.List(t.Context(), remote.Config{Provider: "openaicompat", BaseURL: s.URL, APIKey: key})
		var typed *synapse.ProviderError
		if !errors.As(err, &typed) || typed.Kind != tt.kind || strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v: want kind %s, without the key", name, err, tt.kind)
		}
	}
}
