package remote

import (
	"slices"
	"strings"

	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openrouter"

	synapse "github.com/synapse-agents/synapse"
)

// A Provider is one row of the table of those known by name.
type Provider struct {
	Name    string
	BaseURL string // empty: the user must give one
	KeyEnv  string // the environment variable that holds the key by custom; empty: needs none
	// KeyAlso is another variable for the key, BaseEnv one for another base URL.
	KeyAlso, BaseEnv string
	Env              []Variable // what else it takes by custom
	// Local says that it is a server people run on their own machine: on
	// loopback it costs nothing.
	Local bool
	// Wire is the format that its own endpoint speaks. Vertex speaks
	// WireGemini, and WireAnthropic for Claude.
	Wire Wire
	// Model is taken when the user names none; empty: the user must.
	Model string

	effort effortFunc
	// mute says that a conversation must not hold reasoning: the field is
	// refused.
	mute bool
}

// A Variable is an environment variable that configures a provider.
type Variable struct {
	Name   string
	About  string
	Needed bool
}

// table is in the order in which a provider is looked for when the user names
// none.
var table = []Provider{
	{Name: "anthropic", BaseURL: "https://api.anthropic.com", KeyEnv: "ANTHROPIC_API_KEY", BaseEnv: "ANTHROPIC_BASE_URL", Wire: WireAnthropic, Model: "claude-sonnet-4-5"},
	{Name: "openai", BaseURL: openai.DefaultURL, KeyEnv: "OPENAI_API_KEY", BaseEnv: "OPENAI_BASE_URL", Wire: WireResponses, Model: "gpt-5", effort: openaiEffort},
	{Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com", KeyEnv: "GEMINI_API_KEY", KeyAlso: "GOOGLE_API_KEY", BaseEnv: "GEMINI_BASE_URL",
		Wire: WireGemini, Model: "gemini-2.5-pro"},
	{Name: "openrouter", BaseURL: openrouter.DefaultURL, KeyEnv: "OPENROUTER_API_KEY", BaseEnv: "OPENROUTER_BASE_URL", Wire: WireChat, Model: "anthropic/claude-sonnet-4.5", effort: openrouterEffort},
	{Name: "azure", KeyEnv: "AZURE_OPENAI_API_KEY", BaseEnv: "AZURE_OPENAI_ENDPOINT", Wire: WireChat, effort: openaiEffort, mute: true, Env: []Variable{
		{Name: "AZURE_OPENAI_API_VERSION", About: "a dated version asks the older endpoints, by deployment; without it, the v1 API is asked"},
	}},
	{Name: "bedrock", KeyEnv: "AWS_BEARER_TOKEN_BEDROCK", BaseEnv: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Wire: WireAnthropic, Env: []Variable{
		{Name: "AWS_REGION", About: "where the model runs, for example us-east-1", Needed: true},
		{Name: "AWS_ACCESS_KEY_ID", About: "with AWS_SECRET_ACCESS_KEY, in place of the bearer token"},
		{Name: "AWS_SECRET_ACCESS_KEY", About: "its other half"},
		{Name: "AWS_SESSION_TOKEN", About: "of temporary keys"},
		{Name: "AWS_PROFILE", About: "a profile of ~/.aws/credentials that holds keys"},
	}},
	{Name: "vertex", BaseEnv: "GOOGLE_VERTEX_BASE_URL", Wire: WireGemini, Env: []Variable{
		{Name: "GOOGLE_CLOUD_PROJECT", About: "the project that pays", Needed: true},
		{Name: "GOOGLE_CLOUD_LOCATION", About: "a region such as us-east5, or global, which is the default"},
		{Name: "GOOGLE_APPLICATION_CREDENTIALS", About: "a file of credentials; else the one that `gcloud auth application-default login` writes"},
	}},
	{Name: "deepseek", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY", Wire: WireChat, Model: "deepseek-chat", effort: switchEffort},
	{Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Wire: WireChat, Model: "openai/gpt-oss-120b", effort: groqEffort, mute: true},
	{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY", Wire: WireChat, Model: "mistral-large-latest", effort: mistralEffort, mute: true},
	{Name: "xai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY", Wire: WireChat, Model: "grok-4", effort: xaiEffort, mute: true},
	{Name: "together", BaseURL: "https://api.together.xyz/v1", KeyEnv: "TOGETHER_API_KEY", Wire: WireChat, effort: threeEfforts, mute: true},
	{Name: "fireworks", BaseURL: "https://api.fireworks.ai/inference/v1", KeyEnv: "FIREWORKS_API_KEY", Wire: WireChat, effort: threeEfforts},
	{Name: "cerebras", BaseURL: "https://api.cerebras.ai/v1", KeyEnv: "CEREBRAS_API_KEY", Wire: WireChat, effort: threeEfforts, mute: true},
	{Name: "moonshot", BaseURL: "https://api.moonshot.ai/v1", KeyEnv: "MOONSHOT_API_KEY", Wire: WireChat, effort: onlySwitch},
	{Name: "zai", BaseURL: "https://api.z.ai/api/paas/v4", KeyEnv: "ZAI_API_KEY", Wire: WireChat, effort: onlySwitch},
	{Name: "ollama", BaseURL: "http://127.0.0.1:11434/v1", BaseEnv: "OLLAMA_HOST", Local: true, Wire: WireChat, effort: threeEfforts},
	{Name: "lmstudio", BaseURL: "http://127.0.0.1:1234/v1", BaseEnv: "LMSTUDIO_BASE_URL", Local: true, Wire: WireChat, effort: threeEfforts},
	{Name: "llamacpp", BaseURL: "http://127.0.0.1:8080/v1", BaseEnv: "LLAMACPP_BASE_URL", Local: true, Wire: WireChat, effort: templateEffort},
	{Name: "openaicompat", Wire: WireChat, effort: compatEffort},
}

// Providers lists the providers known by name.
func Providers() []Provider { return slices.Clone(table) }

// Lookup finds a provider by its name.
func Lookup(name string) (Provider, bool) {
	for _, p := range table {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// rowOf finds a row; a name that is in none is an OpenAI-compatible endpoint.
func rowOf(name string) (Provider, bool) {
	if p, ok := Lookup(name); ok {
		return p, true
	}
	return Provider{Name: name, Wire: WireChat, effort: compatEffort}, false
}

func names() []string {
	var out []string
	for _, p := range table {
		out = append(out, p.Name)
	}
	return out
}

// A Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input  float64
	Output float64
	// CacheRead and CacheWrite price the parts of the input that a prompt
	// cache served or took in. Zero means that they cost what input costs.
	CacheRead  float64
	CacheWrite float64
}

// cost returns the price of a usage, nil when it is unknown.
func (m *model) cost(name string, u synapse.Usage) *float64 {
	if m.price != nil {
		if p, ok := m.price(name); ok {
			read, write := p.CacheRead, p.CacheWrite
			if read == 0 {
				read = p.Input
			}
			if write == 0 {
				write = p.Input
			}
			fresh := u.InputTokens - u.CacheReadTokens - u.CacheWriteTokens
			sum := (float64(max(fresh, 0))*p.Input + float64(u.CacheReadTokens)*read +
				float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output) / 1e6
			return &sum
		}
	}
	// A local Ollama passes models of this name on to a paid service.
	if m.local && !strings.HasSuffix(name, "-cloud") && !strings.HasSuffix(name, ":cloud") {
		return new(float64)
	}
	return nil
}
