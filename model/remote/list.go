package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

const maxListBody = 16 << 20

// List asks a provider which models it has, in its own order. It costs nothing
// there, and shows whether the address and the key are right: failures are
// those of a request. Bedrock and Vertex keep no such list at the address that
// is asked for replies; for them the error is [errors.ErrUnsupported].
func List(ctx context.Context, cfg Config) ([]string, error) {
	m, err := newModel(cfg)
	if err != nil {
		return nil, err
	}
	wire := m.wire
	if wire == "" {
		wire = m.row.Wire
	}
	url := m.base + "/models"
	switch {
	case m.row.Name == "bedrock", m.row.Name == "vertex":
		return nil, fmt.Errorf("list the models of %s: %w", cfg.Provider, errors.ErrUnsupported)
	case m.row.Name == "azure":
		url = strings.TrimSuffix(m.azureEndpoint("", WireResponses), "/responses") + "/models"
		if version := m.cloud.APIVersion; version != "" && version != "v1" {
			url = strings.Replace(m.azureEndpoint("", WireResponses), "/responses?", "/models?", 1)
		}
	case wire == WireAnthropic:
		url = m.versioned("v1") + "/models?limit=1000"
	case wire == WireGemini:
		url = m.versioned("v1beta") + "/models?pageSize=1000"
	}
	data, fault := m.get(ctx, url)
	if fault != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, (&exchange{m: m}).fault(fault)
	}
	var list struct {
		Data []struct {
			ID loose `json:"id"`
		} `json:"data"`
		Models []struct {
			Name    loose    `json:"name"`
			Methods []string `json:"supportedGenerationMethods"`
		} `json:"models"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, (&exchange{m: m}).fault(malformed("the answer is no list of models (%v): %s", err, excerpt(data)))
	}
	var names []string
	for _, e := range list.Data {
		names = append(names, e.ID.text)
	}
	for _, e := range list.Models {
		if e.Methods == nil || slices.Contains(e.Methods, "generateContent") {
			names = append(names, strings.TrimPrefix(e.Name.text, "models/"))
		}
	}
	return slices.DeleteFunc(names, func(s string) bool { return s == "" }), nil
}

// Reach asks a provider for as little as it can, and returns nil when there is
// an answer that a right address and a right key get. Where a provider has
// nothing free of charge to ask for, an answer of any kind will do.
func Reach(ctx context.Context, cfg Config) error {
	_, err := List(ctx, cfg)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	m, err := newModel(cfg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+"/", nil) // without a key
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", m.header.Get("User-Agent"))
	resp, err := m.client.Do(req)
	if err != nil {
		return (&exchange{m: m}).fault(noAnswer(req.URL.Host, err))
	}
	return resp.Body.Close()
}

// get sends one question without a body.
func (m *model) get(ctx context.Context, url string) ([]byte, *synapse.ProviderError) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, refused(err)
	}
	req.Header = m.header.Clone()
	req.Header.Del("Content-Type")
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
