// Package host is the assembled product as a library: settings, registry,
// compilers, models, tools and journal, put together for one workspace. The
// command line, the screen and the bridges to other protocols stand on it, and
// so does a program that embeds Synapse:
//
//	h, err := host.Open(ctx, host.Options{Workspace: "."})
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	for event, err := range h.Run(ctx, host.Input{Prompt: "Where is the parser?"}) {
//		...
//	}
//
// Host reads neither the process's environment nor its home directory: what it
// is not given in [Options], it does without.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/tool"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/workflow"
)

// Setting is one value given above all settings files: the name of the flag it
// comes from (shown as its origin), the settings key and the value as text.
type Setting = settings.Override

// Input is one user request.
type Input = run.Input

// Options say what a host is made of. Only Workspace is usually needed; every
// other zero value is a default that reads nothing of the user's.
type Options struct {
	// Workspace is the directory worked in, "." when empty.
	Workspace string
	// Home is the user's home directory: settings, agents, skills and the trust
	// file lie in <Home>/.synapse. Empty: there is no user layer.
	Home string
	// ExeDir is the directory of the binary, the layer between user and project.
	ExeDir string
	// Environ is the environment, as os.Environ gives it: settings, provider
	// keys, and what commands run with.
	Environ []string
	// TrustWorkspace vouches for the workspace, so that its settings may name
	// providers and commands. Otherwise the user's trust file decides.
	TrustWorkspace bool
	// Settings are values for this host alone, above every file and variable.
	Settings []Setting

	// Agents are definitions of the program's own; they win over all files.
	Agents []*agents.Definition
	// Workflows are workflows of the program's own; they win over all files.
	Workflows []*workflow.Definition
	// AgentsJSON is a JSON document of definitions, or the path of one.
	AgentsJSON string
	// Main names the agent that talks to the user; empty: the built-in one.
	Main string
	// AllowedTools, if not nil, are the only tools that any agent has;
	// DisallowedTools are tools that none has. Both take names, globs, aliases
	// and rules such as "execute(git *)".
	AllowedTools, DisallowedTools []string
	// Limits bound every request.
	Limits synapse.Limits
	// OutputSchema is the JSON Schema of the main agent's answer.
	OutputSchema json.RawMessage

	// Models are models of the program's own, by the provider's name in
	// "provider:model". They win over the built-in providers.
	Models map[string]synapse.Model
	// Tools are tools of the program's own. They are the main agent's, and a
	// sub-agent's that names them.
	Tools []synapse.Tool
	// Journal keeps the events. Nil: a SQLite file in the user's state
	// directory, or memory where there is none. A journal given here is not
	// closed by Close.
	Journal trace.Journal
	// Ask puts a question to the user. Nil: nobody is there, so that what would
	// have to be asked is denied.
	Ask func(context.Context, synapse.Ask) (synapse.Answer, error)
	// Log gets what is nobody's result. Nil: discarded.
	Log *slog.Logger
	// DefaultModel is the main agent's model where no setting names one. Empty: it
	// is found by what is configured.
	DefaultModel string
	// Intercept stands between the runs and their models; nil: nothing does.
	Intercept run.Intercept
	// SeedAgents writes the definitions of the built-in roles into the user's
	// layer where they are missing, as files to edit.
	SeedAgents bool
	// Inspect opens a host to look at its agents and settings, not to run
	// anything: it writes no file, and a main agent for which no model can be
	// found is a warning.
	Inspect bool
}

// A Host is ready to run requests in one workspace. It may be used from several
// goroutines at once.
type Host struct {
	opt       Options
	workspace *tool.Workspace
	skills    []tool.Skill
	tools     []synapse.Tool
	journal   trace.Journal
	closers   []io.Closer
	results   string // directory of long results
	liveDir   string // where requests that go on are marked; empty: nowhere
	models    *models
	local     run.Local
	warnings  []string // of opening: skills, seeds

	updating sync.Mutex // held by what compares before with after

	mu      sync.Mutex
	now     *assembly
	watcher *watcher // nil as long as nobody watches
	closed  bool
}

// assembly is what changes when a definition or a setting does. It is immutable.
type assembly struct {
	read        *inputs // what it was made from
	settings    *settings.Settings
	warnings    []settings.Warning
	registry    *agents.Registry
	diagnostics []agents.Diagnostic
	input       compile.Input
	program     *run.Program

	workflows           []*workflow.Definition
	workflowDiagnostics []agents.Diagnostic
}

// Open assembles a host. A setting that can't be read is an error that
// [IsConfig] recognises; a definition that can't be read is a diagnostic.
func Open(ctx context.Context, opt Options) (*Host, error) {
	h := &Host{opt: opt}
	if err := h.findWorkspace(); err != nil {
		return nil, err
	}
	opt = h.opt
	ok := false
	defer func() {
		if !ok {
			h.Close()
		}
	}()
	read := h.readSettings()
	set, warnings, err := h.loadSettings()
	if err != nil {
		return nil, err
	}
	if err := h.openJournal(ctx, set); err != nil {
		return nil, err
	}
	if err := h.openTools(set); err != nil {
		return nil, err
	}
	if opt.SeedAgents && set.EnableCustomSubagents.V && opt.Home != "" {
		if _, err := agents.Seed(filepath.Join(set.UserDir(), "agents")); err != nil {
			h.warnings = append(h.warnings, err.Error())
		}
	}
	h.models = newModels(opt)
	if h.now, err = h.assemble(ctx, set, warnings, read); err != nil {
		return nil, err
	}
	h.local = run.Local{
		Model:       func(ref synapse.ModelRef) (synapse.Model, error) { return h.models.model(h.current().settings, ref) },
		Size:        h.Size,
		Ask:         opt.Ask,
		Intercept:   opt.Intercept,
		Append:      func(ctx context.Context, events []*synapse.Event) error { return h.journal.Append(ctx, events...) },
		History:     h.history,
		Keep:        h.keep,
		Log:         opt.Log,
		MaxParallel: set.MaxParallel.V,
		IdleTimeout: durationOf(set.StreamIdleTimeout.V),
	}
	ok = true
	return h, nil
}

// Close releases what the host holds. Runs in progress fail.
func (h *Host) Close() error {
	h.mu.Lock()
	w := h.watcher
	h.watcher, h.closed = nil, true
	h.mu.Unlock()
	var err error
	if w != nil {
		err = w.close()
	}
	for i := len(h.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, h.closers[i].Close())
	}
	h.closers = nil
	return err
}

// Refresh reads settings and definitions again. What it finds holds from the
// next request on; requests in progress keep what they were compiled with. On
// an error everything stays as it was.
func (h *Host) Refresh(ctx context.Context) error {
	read := h.readSettings()
	set, warnings, err := h.loadSettings()
	if err != nil {
		return err
	}
	next, err := h.assemble(ctx, set, warnings, read)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.now = next
	w := h.watcher
	h.mu.Unlock()
	if w != nil {
		w.lookAgain()
	}
	return nil
}

func (h *Host) current() *assembly {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Run runs one request and yields the events of the main agent and of every
// sub-agent, in order; see [run.Local.Run]. How the request ended is told by the
// run_finished event whose ParentRun is empty.
func (h *Host) Run(ctx context.Context, in Input) iter.Seq2[*synapse.Event, error] {
	a := h.current()
	return h.stream(ctx, a.program, in)
}

// Registry returns the agents there are.
func (h *Host) Registry() *agents.Registry { return h.current().registry }

// Diagnostics returns what is wrong with definitions, and what is odd about the
// agents that came of them.
func (h *Host) Diagnostics() []agents.Diagnostic { return h.current().diagnostics }

// Graph returns the compiled agents.
func (h *Host) Graph() *synapse.Graph { return h.current().program.Graph() }

// Main returns the spec of the main agent.
func (h *Host) Main() *synapse.Spec { return h.current().program.Entry() }

// Offered returns the tools that the model of a spec is offered, as it reads them.
func (h *Host) Offered(spec string) []synapse.ToolDef { return h.current().program.Offered(spec) }

// Journal returns the journal that runs are kept in.
func (h *Host) Journal() trace.Journal { return h.journal }

// Workspace returns the directory worked in, absolute.
func (h *Host) Workspace() string { return h.opt.Workspace }

// Explain says what an agent may do and why. An empty name is the main agent.
func (h *Host) Explain(name string) (*compile.Explanation, error) {
	a := h.current()
	if name == "" {
		return compile.Explain(a.input, nil)
	}
	def, ok := a.registry.Get(name)
	if !ok {
		var err error
		if def, err = a.registry.Lookup(name); err != nil {
			return nil, err
		}
	}
	return compile.Explain(a.input, def)
}

// Config returns every setting with where it was set, secrets redacted.
func (h *Host) Config() []settings.Row { return h.current().settings.Show() }

// Warnings returns what is odd about the settings and the skills.
func (h *Host) Warnings() []string {
	out := slices.Clone(h.warnings)
	for _, w := range h.current().warnings {
		out = append(out, w.String())
	}
	return out
}

// Trusted reports whether the workspace's settings may name providers and commands.
func (h *Host) Trusted() bool { return h.current().settings.Trusted }

// history yields the events of one run, for continuing a sub-agent.
func (h *Host) history(ctx context.Context, id string) iter.Seq2[*synapse.Event, error] {
	return h.journal.Events(ctx, trace.Query{Run: id})
}

// keep stores a long result where read_file finds it.
func (h *Host) keep(_ context.Context, name, text string) (string, error) {
	if err := os.MkdirAll(h.results, 0o700); err != nil {
		return "", fmt.Errorf("keep a result: %w", err)
	}
	name = filepath.Base(name)
	if err := os.WriteFile(filepath.Join(h.results, name), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("keep a result: %w", err)
	}
	return resultsMount + "/" + name, nil
}
