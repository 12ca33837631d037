package remote

import (
	"slices"
	"strings"

	synapse "github.com/synapse-agents/synapse"
)

// A Provider is one row of the table of those known by name: where it is, what
// it takes, and what there is to say about it in words, for documentation.
type Provider struct {
	Name    string
	Aliases []string // other names that users may write
	Title   string   // its name for people
	// Wire is the format that its own endpoint speaks. Vertex speaks
	// WireGemini, and WireAnthropic for Claude.
	Wire    Wire
	BaseURL string // empty: made of what the user gives, see BaseEnv and Env
	// KeyEnv is the environment variable that by custom holds the key, KeyAlso
	// another one; empty: it needs no key, or takes what Env says.
	KeyEnv  string
	KeyAlso string
	BaseEnv string     // the variable that by custom holds another base URL
	Env     []Variable // what else it takes by custom
	// Local says that it is a server people run on their own machine: on
	// loopback it costs nothing.
	Local bool
	// Catalog is the provider's name in the catalogue of models and prices,
	// empty where that has none.
	Catalog string
	// Model is taken when the user names none and no catalogue has one.
	Model string

	Caching  string // a sentence on prompt caching
	Thinking string // a sentence on what a reasoning effort becomes
	Notes    string // what else there is to know, may be empty

	effort effortFunc
	// replay is the field of an assistant message in which Chat Completions
	// take reasoning back, empty where an unknown field is refused.
	replay string
}

// A Variable is an environment variable that configures a provider.
type Variable struct {
	Name   string
	About  string
	Needed bool
}

const (
	automaticCache = "Automatic; what was served from the cache is counted."
	ownCache       = "The provider's own; what it says was served from a cache is counted."
	markedCache    = "The tools, the system prompt and the last messages are marked, so that a longer conversation reads what a shorter one wrote."
	claudeEfforts  = "Adaptive thinking with an effort from 4.6 on, a budget of tokens before (1,024 to 32,768); off disables it by name."
	geminiEfforts  = "A thinking level from Gemini 3 on, a budget of tokens before (512 to 32,768); off is a budget of 0, which models that can't stop thinking refuse."
	openaiEfforts  = "reasoning_effort; off is none, max the strongest word that the model has. Models that don't reason are not asked to."
)

// table lists every provider known by name. It is in the order in which a
// provider is looked for when the user names none.
var table = []Provider{
	{
		Name: "anthropic", Aliases: []string{"claude"}, Title: "Anthropic", Wire: WireAnthropic,
		BaseURL: "https://api.anthropic.com", KeyEnv: "ANTHROPIC_API_KEY", BaseEnv: "ANTHROPIC_BASE_URL", Catalog: "anthropic",
		Caching: markedCache, Thinking: claudeEfforts,
		Notes: "Signed thinking goes back unchanged, redacted thinking too. Temperature is left out while the model thinks, and for models that refuse it.",
	},
	{
		Name: "openai", Title: "OpenAI", Wire: WireResponses,
		BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", BaseEnv: "OPENAI_BASE_URL", Catalog: "openai",
		Env:     []Variable{{Name: "OPENAI_ORG_ID", About: "the organisation that pays"}, {Name: "OPENAI_PROJECT_ID", About: "the project that pays"}},
		Caching: automaticCache, Thinking: openaiEfforts,
		Notes:  "Responses, without storing anything at OpenAI; encrypted reasoning goes back. At a base URL of one's own: Chat Completions.",
		effort: openaiEffort, replay: "reasoning_content",
	},
	{
		Name: "gemini", Aliases: []string{"google"}, Title: "Google Gemini", Wire: WireGemini,
		BaseURL: "https://generativelanguage.googleapis.com", KeyEnv: "GEMINI_API_KEY", KeyAlso: "GOOGLE_API_KEY", BaseEnv: "GEMINI_BASE_URL", Catalog: "gemini",
		Caching: automaticCache, Thinking: geminiEfforts,
		Notes: "Thought signatures go back with the calls they belong to.",
	},
	{
		Name: "openrouter", Title: "OpenRouter", Wire: WireChat,
		BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", BaseEnv: "OPENROUTER_BASE_URL", Catalog: "openrouter",
		Caching:  "Claude: the system prompt and the last messages are marked. Others: automatic.",
		Thinking: "reasoning.effort; off is none, max is xhigh.",
		Notes:    "What a reply cost is OpenRouter's own figure. Reasoning details go back unchanged.",
		effort:   openrouterEffort, replay: "reasoning_details",
	},
	{
		Name: "azure", Title: "Azure OpenAI", Wire: WireChat,
		KeyEnv: "AZURE_OPENAI_API_KEY", BaseEnv: "AZURE_OPENAI_ENDPOINT", Catalog: "azure",
		Env:     []Variable{{Name: "AZURE_OPENAI_API_VERSION", About: "a dated version asks the older endpoints, by deployment; unset: the v1 API"}},
		Caching: automaticCache, Thinking: openaiEfforts,
		Notes:  "The model's name is that of the deployment. The endpoint is https://RESOURCE.openai.azure.com.",
		effort: openaiEffort,
	},
	{
		Name: "bedrock", Aliases: []string{"aws"}, Title: "Amazon Bedrock", Wire: WireAnthropic, Catalog: "bedrock",
		KeyEnv: "AWS_BEARER_TOKEN_BEDROCK",
		Env: []Variable{
			{Name: "AWS_REGION", About: "where the model runs, for example us-east-1", Needed: true},
			{Name: "AWS_ACCESS_KEY_ID", About: "with AWS_SECRET_ACCESS_KEY, in place of the bearer token"},
			{Name: "AWS_SECRET_ACCESS_KEY", About: "its other half"},
			{Name: "AWS_SESSION_TOKEN", About: "of temporary keys"},
			{Name: "AWS_PROFILE", About: "a profile of ~/.aws/credentials that holds keys"},
		},
		Caching: markedCache, Thinking: claudeEfforts,
		Notes: "Claude only, by inference profile or model id (us.anthropic.claude-sonnet-4-5-20250929-v1:0). Single sign-on and assumed roles: put temporary keys into the environment with `aws configure export-credentials --format env`.",
	},
	{
		Name: "vertex", Aliases: []string{"vertexai"}, Title: "Google Vertex AI", Wire: WireGemini, Catalog: "vertexai",
		Env: []Variable{
			{Name: "GOOGLE_CLOUD_PROJECT", About: "the project that pays", Needed: true},
			{Name: "GOOGLE_CLOUD_LOCATION", About: "a region such as us-east5, or global, which is the default"},
			{Name: "GOOGLE_APPLICATION_CREDENTIALS", About: "a file of credentials; else the one that `gcloud auth application-default login` writes"},
		},
		Caching: "Gemini: automatic. Claude: as for Anthropic.", Thinking: "As for Gemini and Anthropic.",
		Notes: "Gemini and Claude (claude-sonnet-4-5@20250929).",
	},
	{
		Name: "deepseek", Title: "DeepSeek", Wire: WireChat,
		BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY", Catalog: "deepseek",
		Caching: automaticCache, Thinking: "thinking is enabled or, for off, disabled; reasoning_effort is low, high or max.",
		effort: deepseekEffort, replay: "reasoning_content",
	},
	{
		Name: "groq", Title: "Groq", Wire: WireChat,
		BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Catalog: "groq",
		Caching: ownCache, Thinking: "reasoning_effort for gpt-oss (low, medium, high) and Qwen 3 (default or, for off, none); other models are not asked to.",
		effort: groqEffort,
	},
	{
		Name: "mistral", Title: "Mistral", Wire: WireChat,
		BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY", Model: "mistral-large-latest",
		Caching: ownCache, Thinking: "Magistral always thinks, so that off is refused; the others don't.",
		Notes:  "No prices in the catalogue: costs are unknown.",
		effort: mistralEffort,
	},
	{
		Name: "xai", Aliases: []string{"grok"}, Title: "xAI", Wire: WireChat,
		BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY", Catalog: "xai",
		Caching: automaticCache, Thinking: "reasoning_effort (low, medium, high) for the models that take it; off is none, which models that can't stop thinking refuse.",
		effort: xaiEffort,
	},
	{
		Name: "ollama", Title: "Ollama", Wire: WireChat, BaseURL: "http://127.0.0.1:11434/v1", BaseEnv: "OLLAMA_HOST", Local: true,
		Caching: automaticCache, Thinking: "reasoning_effort: none, low, medium, high.",
		Notes: "Found by itself on loopback.", effort: threeEfforts, replay: "reasoning_content",
	},
	{
		Name: "lmstudio", Title: "LM Studio", Wire: WireChat, BaseURL: "http://127.0.0.1:1234/v1", BaseEnv: "LMSTUDIO_BASE_URL", Local: true,
		Caching: automaticCache, Thinking: "reasoning_effort: none, low, medium, high.",
		Notes: "Found by itself on loopback.", effort: threeEfforts, replay: "reasoning_content",
	},
	{
		Name: "llamacpp", Aliases: []string{"llama.cpp"}, Title: "llama.cpp server", Wire: WireChat, BaseURL: "http://127.0.0.1:8080/v1", BaseEnv: "LLAMACPP_BASE_URL", Local: true,
		Caching: automaticCache, Thinking: "The chat template's switch and levels (enable_thinking, reasoning_effort).",
		Notes: "Found by itself on loopback.", effort: templateEffort, replay: "reasoning_content",
	},
	{
		Name: "openaicompat", Title: "any compatible endpoint", Wire: WireChat,
		Caching: "The endpoint's own.", Thinking: "reasoning_effort; off is none, max is high.",
		Notes:  "Any other name with a base URL, too. With kind anthropic, gemini or responses it is asked in that format.",
		effort: compatEffort, replay: "reasoning_content",
	},
}

// Providers lists the providers known by name, in the order in which one is
// looked for when the user names none.
func Providers() []Provider { return slices.Clone(table) }

// Lookup finds a provider by its name or one of its aliases.
func Lookup(name string) (Provider, bool) {
	for _, p := range table {
		if p.Name == name || slices.Contains(p.Aliases, name) {
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
	return Provider{Name: name, Wire: WireChat, effort: compatEffort, replay: "reasoning_content"}, false
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
