package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

const maxListBody = 16 << 20

// A Listed is a model that a provider says it has.
type Listed struct {
	Name string // as in a request
	// Title is its name for people, empty where the provider gives none.
	Title string
	// Window and Output are how many tokens it takes and how many it writes at
	// most, 0 where the provider does not say.
	Window, Output int64
}

// List asks a provider which models it has, in its own order. It costs nothing
// there, and shows whether the address and the key are right: failures are
// those of a request, of type [synapse.ProviderError]. A provider that keeps no
// list at the address that is asked for replies fails with
// [errors.ErrUnsupported].
func List(ctx context.Context, cfg Config) ([]Listed, error) {
	m, err := newModel(cfg)
	if err != nil {
		return nil, err
	}
	address, ok := m.listEndpoint()
	if !ok {
		return nil, fmt.Errorf("list the models of %s: %w", cfg.Provider, errors.ErrUnsupported)
	}
	data, fault := m.get(ctx, address)
	if fault != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, (&exchange{m: m}).fault(fault)
	}
	var list struct {
		Data []struct {
			ID      loose `json:"id"`
			Title   loose `json:"display_name"`
			Name    loose `json:"name"`
			Window  count `json:"context_length"`
			Window2 count `json:"context_window"`
			Window3 count `json:"max_input_tokens"`
			Output  count `json:"max_tokens"`
			Output2 count `json:"max_completion_tokens"`
		} `json:"data"`
		Models []struct {
			Name    loose    `json:"name"`
			Title   loose    `json:"displayName"`
			Window  count    `json:"inputTokenLimit"`
			Output  count    `json:"outputTokenLimit"`
			Methods []string `json:"supportedGenerationMethods"`
		} `json:"models"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, (&exchange{m: m}).fault(malformed("the answer is no list of models (%v): %s", err, excerpt(data)))
	}
	var models []Listed
	for _, e := range list.Data {
		title := e.Title.text
		if title == "" && e.Name.text != e.ID.text {
			title = e.Name.text
		}
		models = append(models, Listed{Name: e.ID.text, Title: title, Window: int64(max(e.Window, e.Window2, e.Window3)), Output: int64(max(e.Output, e.Output2))})
	}
	for _, e := range list.Models {
		if list.Data != nil {
			break // llama.cpp lists the same twice, in OpenAI's form and in Ollama's
		}
		if e.Methods == nil || slices.Contains(e.Methods, "generateContent") {
			models = append(models, Listed{Name: strings.TrimPrefix(e.Name.text, "models/"), Title: e.Title.text, Window: int64(e.Window), Output: int64(e.Output)})
		}
	}
	return slices.DeleteFunc(models, func(l Listed) bool { return l.Name == "" }), nil
}

// listEndpoint returns where the provider lists its models; ok is false when it
// does not.
func (m *model) listEndpoint() (address string, ok bool) {
	switch m.row.Name {
	case "bedrock", "vertex":
		return "", false
	case "azure":
		if version := m.cloud.APIVersion; version != "" && version != "v1" {
			return strings.Replace(m.azureEndpoint("", WireResponses), "/responses?", "/models?", 1), true
		}
		return strings.TrimSuffix(m.azureEndpoint("", WireResponses), "/responses") + "/models", true
	}
	switch m.wire {
	case WireAnthropic:
		return m.versioned("v1") + "/models?limit=1000", true
	case WireGemini:
		return m.versioned("v1beta") + "/models?pageSize=1000", true
	}
	return m.base + "/models", true
}

// get sends one question without a body.
func (m *model) get(ctx context.Context, address string) ([]byte, *synapse.ProviderError) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &synapse.ProviderError{Kind: synapse.ErrorRequest, Message: err.Error(), Err: err}
	}
	req.Header = m.header.Clone()
	req.Header.Set("Accept", "application/json")
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, noAnswer(req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a broken refusal is a refusal
		return nil, refusal(resp.StatusCode, resp.Header, data)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxListBody))
	if err != nil {
		return nil, cutOff(err)
	}
	return data, nil
}

// noAnswer is the failure of a request that got none.
func noAnswer(host string, err error) *synapse.ProviderError {
	cause := err
	var u *url.Error
	if errors.As(err, &u) {
		cause = u.Err
	}
	return &synapse.ProviderError{Kind: synapse.ErrorNetwork, Message: fmt.Sprintf("no answer from %s: %v", host, cause), Err: cause}
}
