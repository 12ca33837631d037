package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultProbeBudget is how long [Probe] looks, in all.
const DefaultProbeBudget = 300 * time.Millisecond

const (
	maxProbeBody  = 8 << 20
	maxProbeShows = 8 // questions to one Ollama at a time
)

// ProbeOptions say where to look. An empty address is the server's own
// default, "-" skips that server. An address is a URL, or host and port in the
// forms that OLLAMA_HOST takes.
type ProbeOptions struct {
	Ollama   string
	LMStudio string
	LlamaCpp string
	Budget   time.Duration // 0: DefaultProbeBudget
}

// Found is a server that answered and has a model that can call tools.
type Found struct {
	Provider string   // a name from Providers
	BaseURL  string   // for Config.BaseURL
	Models   []string // those that can call tools: loaded ones first, then by name
}

// Probe looks for model servers on this machine, all at once. The result is in
// the order of [Providers]; finding none is no error. An error says that an
// address can't be read or that ctx has ended; what was found by then comes
// with it. A nil client is one without a proxy.
func Probe(ctx context.Context, client *http.Client, opts ProbeOptions) ([]Found, error) {
	budget := opts.Budget
	if budget == 0 {
		budget = DefaultProbeBudget
	}
	if client == nil {
		t := &http.Transport{DisableKeepAlives: true}
		client = &http.Client{Transport: t}
	}
	// A server that sends elsewhere is not the server that was looked for.
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	places := []struct {
		provider, address, port string
		ask                     func(context.Context, *http.Client, string) ([]string, error)
	}{
		{"ollama", opts.Ollama, "11434", askOllama},
		{"lmstudio", opts.LMStudio, "1234", askLMStudio},
		{"llamacpp", opts.LlamaCpp, "8080", askLlamaCpp},
	}
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var wg sync.WaitGroup
	var bad []error
	results := make([]*Found, len(places))
	for i, place := range places {
		if place.address == "-" {
			continue
		}
		root, err := serverURL(place.address, place.port)
		if err != nil {
			bad = append(bad, fmt.Errorf("look for %s: %w", place.provider, err))
			continue
		}
		wg.Go(func() {
			// Whatever else goes wrong means that there is nothing to use.
			models, _ := place.ask(bounded, &own, root)
			if len(models) > 0 {
				results[i] = &Found{Provider: place.provider, BaseURL: root + "/v1", Models: models}
			}
		})
	}
	wg.Wait()
	var found []Found
	for _, f := range results {
		if f != nil {
			found = append(found, *f)
		}
	}
	if ctx.Err() != nil {
		bad = append(bad, fmt.Errorf("look for model servers: %w", context.Cause(ctx)))
	}
	return found, errors.Join(bad...)
}

// serverURL reads an address: "", ":port", "host", "host:port" or a URL. An
// address that a server listens on everywhere is reached on loopback.
func serverURL(address, port string) (string, error) {
	s := strings.TrimRight(strings.TrimSpace(address), "/")
	scheme := "http"
	if before, after, ok := strings.Cut(s, "://"); ok {
		scheme, s = strings.ToLower(before), after
		if scheme == "https" && !strings.Contains(s, ":") {
			port = "443"
		}
	}
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("address %q: want http:// or https://, or host:port", address)
	}
	s, path, _ := strings.Cut(s, "/")
	host := s
	if h, p, err := net.SplitHostPort(s); err == nil {
		host = h
		if p != "" {
			port = p
		}
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	bad := ip == nil && strings.ContainsAny(host, ":[] ?#@")
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	root := scheme + "://" + net.JoinHostPort(host, port)
	if path != "" {
		root += "/" + path
	}
	u, err := url.Parse(root)
	if err != nil || bad || u.Hostname() == "" {
		return "", fmt.Errorf("address %q: want host:port, for example 127.0.0.1:%s", address, port)
	}
	return root, nil
}

// ask sends one question and decodes the answer into out.
func ask(ctx context.Context, client *http.Client, method, url string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", DefaultUserAgent)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", url, resp.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxProbeBody)).Decode(out)
}

func askOllama(ctx context.Context, client *http.Client, root string) ([]string, error) {
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := ask(ctx, client, http.MethodGet, root+"/api/tags", nil, &tags); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var able []string
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxProbeShows)
	for _, m := range tags.Models {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var show struct {
				Capabilities []string `json:"capabilities"`
			}
			if ask(ctx, client, http.MethodPost, root+"/api/show", map[string]string{"model": m.Name}, &show) != nil {
				return
			}
			if m.Name != "" && slices.Contains(show.Capabilities, "tools") {
				mu.Lock()
				defer mu.Unlock()
				able = append(able, m.Name)
			}
		})
	}
	wg.Wait()
	slices.Sort(able)
	return able, nil
}

func askLMStudio(ctx context.Context, client *http.Client, root string) ([]string, error) {
	var list struct {
		Data []struct {
			ID           string   `json:"id"`
			Type         string   `json:"type"`
			State        string   `json:"state"`
			Capabilities []string `json:"capabilities"`
		} `json:"data"`
	}
	if err := ask(ctx, client, http.MethodGet, root+"/api/v0/models", nil, &list); err != nil {
		return nil, err
	}
	var loaded, rest []string
	for _, m := range list.Data {
		if m.ID == "" || m.Type != "llm" && m.Type != "vlm" || !slices.Contains(m.Capabilities, "tool_use") {
			continue
		}
		if m.State == "loaded" {
			loaded = append(loaded, m.ID)
		} else {
			rest = append(rest, m.ID)
		}
	}
	slices.Sort(loaded)
	slices.Sort(rest)
	return append(loaded, rest...), nil
}

func askLlamaCpp(ctx context.Context, client *http.Client, root string) ([]string, error) {
	var props struct {
		Template string `json:"chat_template"`
		ToolUse  string `json:"chat_template_tool_use"`
		Caps     struct {
			Tools *bool `json:"supports_tools"`
			Calls *bool `json:"supports_tool_calls"`
		} `json:"chat_template_caps"`
	}
	if err := ask(ctx, client, http.MethodGet, root+"/props", nil, &props); err != nil {
		return nil, err
	}
	// Builds that don't say whether the template has tools show the template.
	able := props.ToolUse != "" || strings.Contains(props.Template, "tools")
	if tools, calls := props.Caps.Tools, props.Caps.Calls; tools != nil || calls != nil {
		able = (tools == nil || *tools) && (calls == nil || *calls)
	}
	if !able {
		return nil, nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := ask(ctx, client, http.MethodGet, root+"/v1/models", nil, &list); err != nil {
		return nil, err
	}
	var models []string
	for _, m := range list.Data {
		if m.ID != "" {
			models = append(models, m.ID)
		}
	}
	slices.Sort(models)
	return models, nil
}
