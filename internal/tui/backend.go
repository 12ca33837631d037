package tui

import (
	"context"
	"iter"

	"github.com/synapse-agents/synapse"
)

// A Session is the conversation that the screen shows. Send is called for one
// request at a time; a context that ends interrupts it.
type Session interface {
	Send(ctx context.Context, prompt string) iter.Seq2[*synapse.Event, error]
}

// Events are what a request does, in order.
type Events = iter.Seq2[*synapse.Event, error]

// A Conversation is one that begins, or that is gone on with.
type Conversation struct {
	ID      string
	Session Session
	// Past are the requests of before, from the first event on; nil for none.
	Past func(ctx context.Context) Events
	// Resume goes on with the last request, which was cut off; nil if it was not.
	Resume func(ctx context.Context) Events
}

// Conversations are those that are kept.
type Conversations interface {
	Conversations(ctx context.Context) ([]Kept, error)
	// Open goes on with the conversation of an id, a name or the beginning of an
	// id; "" is the last one.
	Open(ctx context.Context, id string) (Conversation, error)
}

// Kept is a conversation in a list.
type Kept struct {
	ID, Name, Updated, Prompt, Status, Cost string
	Requests                                int
	Tokens                                  int64
}

// Status is what is true of the next request.
type Status struct {
	Agent     string // who answers
	Model     string
	Effort    string // "" is the provider's default
	Window    int64  // tokens the model can hold, 0 when unknown
	Workspace string
	Notes     []string // what the user should know at the start
}

// Agents are the definitions there are.
type Agents interface {
	Agents(ctx context.Context) (AgentList, error)
	// Switch turns an agent on or off, from the next message on.
	Switch(ctx context.Context, name string, on bool) error
	// Explain says what an agent may do and why; "" is the main agent.
	Explain(ctx context.Context, name string) (Sheet, error)
}

// An AgentList is every agent, and what is wrong with definition files.
type AgentList struct {
	Agents   []Agent
	Problems []Problem
}

// An Agent is one definition, for people.
type Agent struct {
	Name        string
	Description string
	Source      string // the layer, and the product whose format it has
	Path        string // "" where there is no file
	Model       string
	Effort      string
	On          bool
	Callable    bool     // the main agent may delegate to it when it is on
	Shadows     []string // places of the definitions that it replaces
}

// A Problem is a diagnostic. Name is the agent it is about, where that is known.
type Problem struct {
	Name string
	Text string
	Bad  bool // it keeps an agent from being loaded
}

// Models are the models and reasoning efforts of the agents.
type Models interface {
	Models(ctx context.Context) (ModelPage, error)
	// Save writes values to the settings of a layer. A value "inherit" takes
	// the setting out of them. It stops at the first that can't be saved.
	Save(ctx context.Context, layer string, edits []ModelEdit) ([]Saved, error)
}

// A ModelPage is what the model page shows.
type ModelPage struct {
	Rows    []ModelRow
	Choices []Choice // of models
	Efforts []string
	Layers  []Layer // that can be saved to
}

// A ModelRow is the main agent's, the global defaults' or one agent's.
type ModelRow struct {
	Name                string
	About               string
	Model, ModelFrom    string // in force, and where that comes from
	Effort, EffortFrom  string
	ModelKey, EffortKey string // the settings that decide it
}

// A Choice is a model that may be chosen.
type Choice struct{ Value, About string }

// A Layer is a settings file.
type Layer struct{ Name, Path string }

// A ModelEdit gives one setting a value.
type ModelEdit struct{ Key, Value string }

// Saved says what came of an edit. Hidden says that what was saved is not in
// force, because a higher layer says something else.
type Saved struct {
	Text   string
	Hidden bool
}

// Drafts make new definition files.
type Drafts interface {
	// Preview says what would be written, and explains the agent that would
	// come of it. It writes nothing.
	Preview(ctx context.Context, d Draft) (Preview, error)
	// Write writes the file and returns its path.
	Write(ctx context.Context, d Draft) (string, error)
}

// A Draft is what the form for a new agent holds.
type Draft struct {
	Name, Description, Tools, Model, Effort, Prompt string
	AllTools                                        bool // no list of tools: what sub-agents have by default
	User                                            bool // for every workspace
}

// A Preview is a definition file that is not written yet.
type Preview struct {
	Path    string
	Text    string
	Explain Sheet
}

// Traces are past requests.
type Traces interface {
	Traces(ctx context.Context) ([]Trace, error)
	Trace(ctx context.Context, id string) (Sheet, error)
}

// A Trace is one past request.
type Trace struct {
	ID, Started, Elapsed, Status, Prompt, Cost string
	Runs                                       int
	Tokens                                     int64
}

// Config are the settings with where each was set.
type Config interface {
	Config(ctx context.Context) (Sheet, error)
}

// Files are the paths that may be named in a message.
type Files interface {
	Files(ctx context.Context) ([]string, error)
}

// Memory keeps what outlives the program.
type Memory interface {
	// History returns what has been sent before, the oldest first.
	History(ctx context.Context) ([]string, error)
	Remember(ctx context.Context, text string) error
	// SaveTheme keeps the theme for the next start.
	SaveTheme(ctx context.Context, name string) error
}

// Trust decides whether the workspace's own settings count in full.
type Trust interface {
	// Held returns what does not count because the workspace is not trusted;
	// nothing when it is, and when the user has decided before.
	Held(ctx context.Context) ([]string, error)
	Decide(ctx context.Context, trust bool) error
}

// Controls act on a sub-agent by the id of its run. What is nil can't be done,
// and is not offered.
type Controls struct {
	Stop       func(ctx context.Context, run string) error
	Pause      func(ctx context.Context, run string) error
	Resume     func(ctx context.Context, run string) error
	Steer      func(ctx context.Context, run, text string) error
	Background func(ctx context.Context, run string) error
}

// A Sheet is something to read: titled sections of rows. Whoever opens it may
// give it another title.
type Sheet struct {
	Title    string
	Sections []Section
}

// A Section is a part of a sheet. Its rows' cells are aligned with each other.
// Lines, which are laid out already, come after them.
type Section struct {
	Title string
	Rows  []Row
	Lines []string
}

// A Row is a line of a section.
type Row struct {
	Cells []string
	Tone  Tone
}

// Tone says how something looks.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Warn
	Bad
	Faint
)

func (t Tone) style(th *theme) style {
	switch t {
	case Good:
		return th.good
	case Warn:
		return th.warn
	case Bad:
		return th.bad
	case Faint:
		return th.faint
	}
	return ""
}

// Options are what the screen is made of. What is nil is not there: commands
// that would need it are not offered.
type Options struct {
	Conversation // its Session is required

	Status    func(context.Context) Status
	Questions *Questions
	Agents    Agents
	Models    Models
	Drafts    Drafts
	Traces    Traces
	Config    Config
	Files     Files
	Memory    Memory
	Trust     Trust
	// Conversations are those that may be gone on with.
	Conversations Conversations
	Controls      Controls
	Theme         string // a theme's name, or "auto"; "" is "auto"
	NoColor       bool
	Mouse         bool
	// Goodbye says, after the screen is gone, how to go on with the conversation of
	// an id. It is not called for one in which nothing was said.
	Goodbye func(id string) string
}
