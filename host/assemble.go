package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/tool"
	"github.com/synapse-agents/synapse/trace"
)

// resultsMount is where results that are too long for a message can be read.
const resultsMount = "/.synapse/results"

// maxInstructions bounds how much of AGENTS.md goes into a prompt, in bytes.
const maxInstructions = 64 << 10

// IsConfig reports whether an error says that the configuration is wrong, which
// a program tells apart from a failure by its exit code.
func IsConfig(err error) bool {
	var c *ConfigError
	var s *settings.Error
	return errors.As(err, &c) || errors.As(err, &s)
}

// A ConfigError says what is wrong with what the user has configured, and the
// way out.
type ConfigError struct {
	Message string
	Err     error
}

// Error returns the message.
func (e *ConfigError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

func configErrorf(format string, args ...any) *ConfigError {
	err := fmt.Errorf(format, args...)
	return &ConfigError{Message: err.Error(), Err: errors.Unwrap(err)}
}

func durationOf(d synapse.Duration) time.Duration { return time.Duration(d) }

func (h *Host) loadSettings() (*settings.Settings, []settings.Warning, error) {
	return settings.Load(h.sources())
}

func (h *Host) sources() settings.Sources {
	return settings.Sources{
		Home: h.opt.Home, ExeDir: h.opt.ExeDir, Workspace: h.opt.Workspace, Environ: h.opt.Environ,
		Flags: h.opt.Settings, Trust: h.opt.TrustWorkspace,
	}
}

// openJournal opens the journal and chooses where long results are kept.
func (h *Host) openJournal(ctx context.Context, set *settings.Settings) error {
	state := set.StateDir()
	if state == "" && !h.opt.Inspect {
		dir, err := os.MkdirTemp("", "synapse-results-")
		if err != nil {
			return fmt.Errorf("open host: %w", err)
		}
		h.results = dir
		h.closers = append(h.closers, removal(dir))
	} else {
		h.results = filepath.Join(state, "results")
	}
	switch {
	case h.opt.Journal != nil:
		h.journal = h.opt.Journal
	case state == "" || h.opt.Inspect:
		h.journal = &trace.Memory{}
	default:
		j, err := trace.OpenSQLite(ctx, filepath.Join(state, journalFile), trace.SQLiteOptions{})
		if err != nil {
			return fmt.Errorf("open the journal: %w", err)
		}
		h.journal = j
		h.liveDir = filepath.Join(state, liveFolder)
		h.closers = append(h.closers, j)
	}
	return nil
}

// removal is a directory that goes when the host is closed.
type removal string

func (r removal) Close() error { return os.RemoveAll(string(r)) }

var _ io.Closer = removal("")

// openTools opens the workspace and collects the tools of the main agent.
func (h *Host) openTools(set *settings.Settings) error {
	dirs := []string{filepath.Join(h.opt.Workspace, ".synapse")}
	if d := set.UserDir(); d != "" {
		dirs = append(dirs, d)
	}
	skills, problems := tool.LoadSkills(dirs...)
	for _, err := range problems {
		h.warnings = append(h.warnings, err.Error())
	}
	h.skills = skills
	receipts := ""
	if state := set.StateDir(); state != "" && !h.opt.Inspect {
		receipts = filepath.Join(state, "receipts")
	}
	search, problem := webSearch(set)
	if problem != "" {
		h.warnings = append(h.warnings, problem)
	}
	w, err := tool.Open(h.opt.Workspace, tool.Options{
		Mounts:    map[string]string{resultsMount: h.results},
		Environ:   h.opt.Environ,
		HideEnv:   hiddenEnv(set),
		Skills:    skills,
		Receipts:  receipts,
		WebSearch: search,
	})
	if err != nil {
		return configErrorf("%w", err)
	}
	h.workspace = w
	h.closers = append(h.closers, w)
	h.tools = append(w.Tools(), h.opt.Tools...)
	return nil
}

// webSearch returns the search service that the settings name. One that lacks
// what it needs is not offered, and problem says so.
func webSearch(set *settings.Settings) (search tool.WebSearch, problem string) {
	search = tool.WebSearch{Kind: tool.WebSearchKind(set.WebSearch.Kind.V), Endpoint: set.WebSearch.Endpoint.V}
	if search.Kind == "" && search.Endpoint != "" {
		search.Kind = tool.WebSearchSearXNG // the one that people run themselves
	}
	name := set.WebSearch.APIKeyEnv.V
	if key, ok := set.Secrets.Get(name); ok && name != "" {
		search.APIKey = key.Reveal()
	}
	switch {
	case search.Kind == "":
	case search.Kind == tool.WebSearchSearXNG && search.Endpoint == "":
		problem = "web_search is not offered: searxng needs web_search.endpoint"
	case search.Kind != tool.WebSearchSearXNG && search.APIKey == "" && name == "":
		problem = fmt.Sprintf("web_search is not offered: %s needs web_search.api_key_env, the name of the variable that holds its key", search.Kind)
	case search.Kind != tool.WebSearchSearXNG && search.APIKey == "":
		problem = fmt.Sprintf("web_search is not offered: %s needs a key, and %s is not set", search.Kind, name)
	}
	if problem != "" {
		return tool.WebSearch{}, problem
	}
	return search, ""
}

// hiddenEnv names the variables that commands don't see: a tool call must not
// be able to print the user's keys.
func hiddenEnv(set *settings.Settings) []string {
	hide := []string{"*_API_KEY"}
	for _, v := range settings.ProviderVars() {
		if v.Secret {
			hide = append(hide, v.Name)
		}
	}
	for _, p := range set.Providers {
		if p.V.APIKeyEnv != "" {
			hide = append(hide, p.V.APIKeyEnv)
		}
	}
	if name := set.WebSearch.APIKeyEnv.V; name != "" {
		hide = append(hide, name)
	}
	return hide
}

// assemble compiles the agents under the given settings.
func (h *Host) assemble(ctx context.Context, set *settings.Settings, warnings []settings.Warning, read *inputs) (*assembly, error) {
	a := &assembly{settings: set, warnings: warnings, read: read}
	var err error
	if a.registry, a.diagnostics, err = h.registry(set, read.note); err != nil {
		return nil, err
	}
	for _, dir := range h.workflowDirs(set) {
		read.noteDir(dir)
	}
	h.loadWorkflows(a)
	read.note(filepath.Join(h.opt.Workspace, "AGENTS.md"))
	if a.input, err = h.compileInput(ctx, a); err != nil {
		return nil, err
	}
	graph, diags, err := compile.Task(a.input)
	if err != nil {
		return nil, configErrorf("%w", err)
	}
	a.diagnostics = append(a.diagnostics, diags...)
	a.warnings = append(a.warnings, h.models.costWarnings(set, graph)...)
	if len(h.opt.OutputSchema) > 0 {
		for i := range graph.Specs {
			if graph.Specs[i].ID == graph.Entry {
				graph.Specs[i].Output = h.opt.OutputSchema
			}
		}
	}
	a.program, err = run.NewProgram(graph, h.tools, run.ProgramOptions{
		NoIntent: !set.Intent.V, DescriptionBudget: set.SubagentDescriptionBudget.V, Funcs: nodeFuncs(a.workflows),
	})
	if err != nil {
		return nil, configErrorf("%w", err)
	}
	// A main agent whose model can't be asked is told before anything runs.
	if ref := a.program.Entry().Model; !h.opt.Inspect {
		if _, err := h.models.model(set, ref); err != nil {
			return nil, err
		}
		a.warnings = append(a.warnings, h.models.nameWarning(set, ref)...)
	}
	return a, nil
}

func disabledFile(userDir string) string { return filepath.Join(userDir, "disabled.json") }

// compileInput turns settings into what the compiler must know.
func (h *Host) compileInput(ctx context.Context, a *assembly) (compile.Input, error) {
	set := a.settings
	in := compile.Input{
		App: true, Agents: a.registry.All(),
		MaxDepth: set.MaxDepth.V, Limits: set.Limits.Plain().Min(h.opt.Limits),
		Skill: h.skillText, Workspace: h.opt.Workspace, Instructions: h.instructions(),
		Workflows: a.workflows,
	}
	in.Limits.Turns = least(set.MaxTurns.V, h.opt.Limits.Turns)
	if !set.EnableSubagents.V {
		in.NoSubagents = compile.Switch{On: true, Origin: set.EnableSubagents.Origin.String()}
	}
	for _, t := range h.tools {
		in.Tools = append(in.Tools, compile.HostTool{Name: t.Name, ReadOnly: t.ReadOnly})
	}
	for _, d := range run.DelegationTools() {
		in.Tools = append(in.Tools, compile.HostTool{Name: d.Name})
	}
	if name := h.opt.Main; name != "" {
		def, err := a.registry.Lookup(name)
		if err != nil {
			return in, configErrorf("choose the main agent: %w", err)
		}
		in.Main = def
	}
	var err error
	if in.Restrictions, err = h.restrictions(set); err != nil {
		return in, err
	}
	in.Models = h.modelSettings(set)
	in.MainChoice, err = h.models.choose(ctx, set)
	if err != nil && h.opt.Inspect {
		a.warnings = append(a.warnings, settings.Warning{Code: WarnNoModel, Message: noModel + err.Error()})
		return in, nil
	}
	return in, err
}

func least(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// restrictions collects what narrows every agent, each with where it was set.
func (h *Host) restrictions(set *settings.Settings) (compile.Restrictions, error) {
	r := compile.Restrictions{
		Rules:           slices.Clone(set.Permissions),
		MinimalExcluded: set.MinimalFilesystemExcludedTools.Strings(),
	}
	for _, v := range set.ExcludedTools.Items {
		origin := v.Origin.String()
		if n := len(r.Excluded); n > 0 && r.Excluded[n-1].Origin == origin {
			r.Excluded[n-1].Values = append(r.Excluded[n-1].Values, v.V)
			continue
		}
		r.Excluded = append(r.Excluded, compile.Names{Values: []string{v.V}, Origin: origin})
	}
	if v := set.ReadOnly; v.V {
		r.ReadOnly = compile.Switch{On: true, Origin: v.Origin.String()}
	}
	if v := set.MinimalFilesystemTools; v.V {
		r.Minimal = compile.Switch{On: true, Origin: v.Origin.String()}
	}
	if h.opt.AllowedTools != nil {
		names, rules, err := flagTools("--allowed-tools", h.opt.AllowedTools, policy.Allow)
		if err != nil {
			return r, err
		}
		r.Allowed = &compile.Names{Values: names, Origin: "flag --allowed-tools"}
		r.Rules = appendSource(r.Rules, "flag --allowed-tools", rules)
	}
	if len(h.opt.DisallowedTools) > 0 {
		names, rules, err := flagTools("--disallowed-tools", h.opt.DisallowedTools, policy.Deny)
		if err != nil {
			return r, err
		}
		if len(names) > 0 {
			r.Excluded = append(r.Excluded, compile.Names{Values: names, Origin: "flag --disallowed-tools"})
		}
		r.Rules = appendSource(r.Rules, "flag --disallowed-tools", rules)
	}
	return r, nil
}

func appendSource(sources []policy.Source, origin string, rules []policy.Rule) []policy.Source {
	if len(rules) == 0 {
		return sources
	}
	return append(sources, policy.Source{Origin: origin, Rules: rules})
}

// flagTools reads the entries of a tool flag. "execute(git *)" among allowed
// tools allows the tool for such calls alone; among denied ones it denies such
// calls and leaves the tool.
func flagTools(flag string, entries []string, action policy.Action) (names []string, rules []policy.Rule, err error) {
	limited := map[string]bool{}
	for _, e := range entries {
		name, patterns, ok := policy.ParseSpecifiers(e)
		if !ok {
			if strings.ContainsAny(e, "()") {
				return nil, nil, configErrorf("%s: %q is no tool: write a name, or a name with a pattern such as \"execute(git *)\"", flag, e)
			}
			names = append(names, e)
			continue
		}
		name = policy.Canonical(name, nil)
		if action == policy.Allow {
			names = append(names, name)
			if !limited[name] {
				limited[name] = true
				rules = append(rules, policy.Rule{Tool: name, Pattern: "*", Action: policy.Deny})
			}
		}
		for _, pattern := range patterns {
			rule, err := policy.NewRule(name, pattern, string(action), 0)
			if err != nil {
				return nil, nil, configErrorf("%s: %w", flag, err)
			}
			rules = append(rules, rule)
		}
	}
	return names, rules, nil
}

func (h *Host) modelSettings(set *settings.Settings) compile.ModelSettings {
	m := compile.ModelSettings{
		Aliases: values(set.ModelAliases), Overrides: values(set.SubagentModelOverrides),
		EffortOverrides: values(set.SubagentReasoningEffortOverrides),
		Default:         set.SubagentDefaultModel.V, DefaultEffort: set.SubagentDefaultReasoningEffort.V,
		Fallback: set.FallbackModels.V,
		Env: func(name string) (string, bool) {
			role, ok := strings.CutPrefix(name, "AGENT_SUBAGENT_")
			if !ok {
				return "", false
			}
			v, ok := set.SubagentModelVars[strings.TrimSuffix(role, "_MODEL")]
			return v.V, ok
		},
		Provider: func(name string) bool { return h.models.known(set, name) },
	}
	return m
}

func values[T any](m map[string]settings.Value[T]) map[string]T {
	out := make(map[string]T, len(m))
	for k, v := range m {
		out[k] = v.V
	}
	return out
}

func (h *Host) skillText(name string) (string, bool) {
	s, ok := tool.FindSkill(h.skills, name)
	return s.Body, ok
}

// instructions returns the workspace's AGENTS.md, and no other directory's.
func (h *Host) instructions() string {
	root, err := os.OpenRoot(h.opt.Workspace)
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := root.Open("AGENTS.md")
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInstructions))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// layers reads every place that definitions come from, low to high, and notes
// what it looks at.
func (h *Host) layers(set *settings.Settings, note func(string)) ([]agents.Layer, error) {
	layers := []agents.Layer{agents.Builtin()}
	if set.EnableCustomSubagents.V {
		own, workspace := agents.LoadOptions{Note: note}, agents.LoadOptions{Note: note}
		if !set.Trusted {
			workspace.Within = h.opt.Workspace
		}
		sources := set.ImportSources.V
		if err := agents.CheckProducts(sources); err != nil {
			return nil, configErrorf("%s: import_sources: %w", set.ImportSources.Origin, err)
		}
		if home := h.opt.Home; home != "" && !sameDir(home, h.opt.Workspace) {
			layers = append(layers, agents.ImportLayers(agents.LayerHome, home, sources, own)...)
		}
		if dir := set.UserDir(); dir != "" {
			layers = append(layers, agents.LoadDir(filepath.Join(dir, "agents"), agents.LayerUser, own))
		}
		if h.opt.ExeDir != "" {
			layers = append(layers, agents.LoadDir(filepath.Join(h.opt.ExeDir, ".synapse", "agents"), agents.LayerExecutable, own))
		}
		layers = append(layers, agents.ImportLayers(agents.LayerWorkspace, h.opt.Workspace, sources, workspace)...)
		layers = append(layers, agents.LoadDir(filepath.Join(h.opt.Workspace, ".synapse", "agents"), agents.LayerProject, workspace))
		for _, dir := range set.CustomAgentsDirs.V {
			layers = append(layers, agents.LoadDir(dir, agents.LayerCustomDir, own))
		}
		custom := filepath.Join(h.opt.Workspace, "subagents", "custom.json")
		note(custom)
		if _, err := os.Lstat(custom); err == nil {
			layers = append(layers, agents.LoadFile(custom, agents.LayerCustomJSON, workspace))
		}
	}
	if text := strings.TrimSpace(h.opt.AgentsJSON); text != "" {
		layer, err := flagLayer(text, note)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	if len(h.opt.Agents) > 0 {
		layers = append(layers, programLayer(h.opt.Agents))
	}
	return layers, nil
}

// sameDir reports whether two paths are the same directory: whoever works in
// the home directory has the agents there once.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// flagLayer reads --agents: JSON as it stands, or the file that holds it. What
// was asked for on the command line and can't be read is an error, not a
// diagnostic: the user waits for just that agent.
func flagLayer(text string, note func(string)) (agents.Layer, error) {
	var layer agents.Layer
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		layer = agents.Layer{Kind: agents.LayerFlag, Name: "--agents"}
		layer.Defs, layer.Diagnostics = agents.ParseJSON("--agents", []byte(text), agents.ParseOptions{Layer: agents.LayerFlag})
	} else {
		if _, err := os.Stat(text); err != nil {
			return layer, configErrorf("--agents: %w; give a file, or a JSON object like {\"agents\": {…}}", err)
		}
		layer = agents.LoadFile(text, agents.LayerFlag, agents.LoadOptions{Note: note})
	}
	for _, d := range layer.Diagnostics {
		if d.Severity == agents.Error {
			return layer, configErrorf("--agents: %s", d)
		}
	}
	return layer, nil
}

// programLayer takes the definitions that a program registers.
func programLayer(defs []*agents.Definition) agents.Layer {
	layer := agents.Layer{Kind: agents.LayerProgram, Name: "the program"}
	for _, d := range defs {
		d = d.Clone()
		d.Layer = agents.LayerProgram
		d.Origin = cmp.Or(d.Origin, agents.Native)
		d.Mode = cmp.Or(d.Mode, agents.ModeAll)
		d.Ownership = cmp.Or(d.Ownership, agents.OwnershipTask)
		layer.Defs = append(layer.Defs, d)
	}
	return layer
}
