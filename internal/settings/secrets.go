package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// A ProviderVar is an environment variable that a model provider is known by.
type ProviderVar struct {
	Name     string
	Provider string
	Secret   bool // false: an endpoint, a region or the like, which may be shown
}

// ProviderVars returns the variables that [Settings.Secrets] holds when they
// are set, besides those that an api_key_env names.
func ProviderVars() []ProviderVar {
	return []ProviderVar{
		{"ANTHROPIC_API_KEY", "anthropic", true},
		{"ANTHROPIC_BASE_URL", "anthropic", false},
		{"OPENAI_API_KEY", "openai", true},
		{"OPENAI_BASE_URL", "openai", false},
		{"OPENAI_ORG_ID", "openai", false},
		{"OPENAI_PROJECT_ID", "openai", false},
		{"GEMINI_API_KEY", "gemini", true},
		{"GEMINI_BASE_URL", "gemini", false},
		{"GOOGLE_API_KEY", "gemini", true},
		{"GOOGLE_CLOUD_PROJECT", "vertex", false},
		{"GOOGLE_CLOUD_LOCATION", "vertex", false},
		{"GOOGLE_VERTEX_BASE_URL", "vertex", false},
		{"GOOGLE_APPLICATION_CREDENTIALS", "vertex", false},
		{"OPENROUTER_API_KEY", "openrouter", true},
		{"OPENROUTER_BASE_URL", "openrouter", false},
		{"AZURE_OPENAI_API_KEY", "azure", true},
		{"AZURE_OPENAI_ENDPOINT", "azure", false},
		{"AZURE_OPENAI_API_VERSION", "azure", false},
		{"AWS_ACCESS_KEY_ID", "bedrock", true},
		{"AWS_SECRET_ACCESS_KEY", "bedrock", true},
		{"AWS_SESSION_TOKEN", "bedrock", true},
		{"AWS_BEARER_TOKEN_BEDROCK", "bedrock", true},
		{"AWS_REGION", "bedrock", false},
		{"AWS_PROFILE", "bedrock", false},
		{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "bedrock", false},
		{"DEEPSEEK_API_KEY", "deepseek", true},
		{"GROQ_API_KEY", "groq", true},
		{"MISTRAL_API_KEY", "mistral", true},
		{"XAI_API_KEY", "xai", true},
		{"TOGETHER_API_KEY", "together", true},
		{"FIREWORKS_API_KEY", "fireworks", true},
		{"CEREBRAS_API_KEY", "cerebras", true},
		{"MOONSHOT_API_KEY", "moonshot", true},
		{"ZAI_API_KEY", "zai", true},
		{"OLLAMA_HOST", "ollama", false},
		{"OLLAMA_API_KEY", "ollama", true},
		{"LMSTUDIO_BASE_URL", "lmstudio", false},
		{"LLAMACPP_BASE_URL", "llamacpp", false},
	}
}

// redacted stands wherever a secret would.
const redacted = "[redacted]"

// A Secret is a variable's content. However it is printed, logged or encoded,
// "[redacted]" comes out; only Reveal tells.
type Secret struct {
	Origin Origin
	reveal func() string // in a closure, which no printer looks into
}

// Reveal returns the content.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]", whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON returns "[redacted]".
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Secrets are the provider variables by name.
type Secrets struct {
	vars map[string]Secret
}

// Get returns a variable; ok is false when it is not set.
func (s Secrets) Get(name string) (secret Secret, ok bool) {
	secret, ok = s.vars[name]
	return secret, ok
}

// Names returns the names of the variables that are set, sorted.
func (s Secrets) Names() []string { return sortedNames(s.vars) }

// String names the variables, without their content.
func (s Secrets) String() string { return fmt.Sprintf("%s %s", redacted, strings.Join(s.Names(), " ")) }

// MarshalJSON gives "[redacted]" for every variable.
func (s Secrets) MarshalJSON() ([]byte, error) { return json.Marshal(s.vars) }

// secrets picks the provider variables from .env and the environment.
func (l *loader) secrets() {
	wanted := map[string]bool{}
	for _, v := range ProviderVars() {
		wanted[v.Name] = true
	}
	for _, p := range l.s.Providers {
		wanted[p.V.APIKeyEnv] = true
	}
	wanted[l.s.WebSearch.APIKeyEnv.V] = true
	l.s.Secrets = Secrets{vars: map[string]Secret{}}
	for _, layer := range l.layers {
		for _, name := range sortedNames(layer.vars) {
			v, ok := layer.variable(name)
			if !ok || !wanted[name] || v.value == "" {
				continue
			}
			g := &given{layer: layer, origin: layer.origin(v)}
			if l.guarded(g) {
				l.drop(g, name, "")
				continue
			}
			if (strings.HasSuffix(name, "_BASE_URL") || strings.HasPrefix(name, "AWS_ENDPOINT_URL")) && !isURL(v.value) {
				l.fail(&Error{Path: g.origin.Path, Line: v.line, Var: name, Found: quote(redactURL(v.value)), Takes: urlCodec().takes})
				continue
			}
			l.s.Secrets.vars[name] = Secret{Origin: g.origin, reveal: func() string { return v.value }}
		}
	}
}

// secretRows shows which provider variables are set: endpoints with their
// value, keys without.
func secretRows(s *Settings) []Row {
	plain := map[string]bool{}
	for _, v := range ProviderVars() {
		plain[v.Name] = !v.Secret
	}
	var rows []Row
	for _, name := range s.Secrets.Names() {
		secret := s.Secrets.vars[name]
		value := redacted
		if plain[name] {
			value = redactURL(secret.Reveal())
		}
		rows = append(rows, Row{Key: name, Value: value, Origin: secret.Origin})
	}
	return rows
}

// providerFields are the fields of an entry of providers.
var providerFields = []string{"base_url", "kind", "api_key_env", "models"}

func providerCodec() codec[Provider] {
	c := codec[Provider]{takes: `an object, such as {"base_url": "https://llm.example/v1", "api_key_env": "EXAMPLE_KEY"}`}
	c.json = func(d *document, n *node) (Provider, *fault) {
		var p Provider
		if n.kind != objectNode {
			return p, c.wrong(n, "")
		}
		text := func(field string, to *string, codec codec[string]) *fault {
			v := n.get(field)
			if v == nil || v.kind == nullNode {
				return nil
			}
			s, f := codec.json(d, v)
			if f != nil {
				f.key = "." + field
			}
			*to = s
			return f
		}
		for _, f := range []*fault{
			text("base_url", &p.BaseURL, urlCodec()),
			text("kind", &p.Kind, textCodec("the name of a wire format, such as openai")),
			text("api_key_env", &p.APIKeyEnv, variableCodec()),
		} {
			if f != nil {
				return p, f
			}
		}
		if models := n.get("models"); models != nil && models.kind != nullNode {
			list, f := listCodec(KindStrings, `["qwen3"]`, textCodec("a model's name")).json(d, models)
			if f != nil {
				f.key = ".models" + f.key
				return p, f
			}
			p.Models = list
		}
		return p, nil
	}
	return c
}

var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(key|token|secret|passw|credential|authorization|cookie)`)
})

// looksSecret reports whether what has this name is probably a secret itself
// (and not the name of the variable that holds it).
func looksSecret(name string) bool {
	return secretName().MatchString(name) && !strings.HasSuffix(strings.ToLower(name), "_env")
}

// redactURL takes user, password, query and fragment out of a URL.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		if strings.Contains(s, "@") || strings.Contains(s, "://") {
			return redacted
		}
		return s
	}
	if u.User != nil {
		u.User = url.User("redacted")
	}
	if u.RawQuery != "" {
		u.RawQuery = "redacted"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// redactJSON returns a raw value without what may be a secret: everything in
// env and headers, everything under a name that says so, arguments that follow
// or hold such a name, and what URLs carry beside their path.
func redactJSON(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return redacted
	}
	return redactTree(v, false)
}

func redactTree(v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = redactTree(inner, secret || name == "env" || name == "headers" || looksSecret(name))
		}
	case []any:
		next := secret
		for i, inner := range v {
			s, isText := inner.(string)
			v[i] = redactTree(inner, next)
			next = secret || isText && strings.HasPrefix(s, "-") && !strings.Contains(s, "=") && looksSecret(s)
		}
	case string:
		name, _, assigns := strings.Cut(v, "=")
		switch {
		case secret:
			return redacted
		case assigns && looksSecret(name) && !strings.Contains(name, "://"):
			return name + "=" + redacted
		case strings.Contains(v, "://"):
			return redactURL(v)
		case looksSecret(v) && strings.ContainsAny(v, ": "): // a header in an argument
			return redacted
		}
	case float64, bool:
		if secret {
			return redacted
		}
	}
	return v
}
