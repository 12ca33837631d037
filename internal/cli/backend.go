package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/agents"
	"github.com/synapse-agents/synapse/compile"
	"github.com/synapse-agents/synapse/host"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/internal/tui"
	"github.com/synapse-agents/synapse/trace"
)

// A backend hands the screen what it shows and does what the user decides there.
// Its methods may be called from several goroutines.
type backend struct {
	*app
	host      *host.Host
	workspace string
	grants    *grantFile
}

// Agents reads the definitions anew and lists them.
func (b *backend) Agents(ctx context.Context) (tui.AgentList, error) {
	var out tui.AgentList
	if err := b.host.Refresh(ctx); err != nil {
		return out, err
	}
	list, err := listAgents(b.host)
	if err != nil {
		return out, err
	}
	at := map[string]string{}
	for _, l := range list.Agents {
		at[l.Path] = l.Name
		source := string(l.Layer)
		if l.Origin != agents.Native {
			source += " (" + l.Origin + ")"
		}
		out.Agents = append(out.Agents, tui.Agent{
			Name: l.Name, Description: l.Description, Source: source, Path: l.Path, Model: l.Model, Effort: l.Effort,
			On: l.Enabled, Callable: l.Mode != agents.ModePrimary && l.Ownership != agents.OwnershipHandoff, Shadows: l.Shadows,
		})
	}
	for _, d := range list.Diagnostics {
		if d.Severity == agents.Info {
			continue
		}
		p := tui.Problem{Text: d.String(), Bad: d.Severity == agents.Error}
		if d.File != "" {
			p.Name = at[d.File]
		}
		out.Problems = append(out.Problems, p)
	}
	return out, nil
}

// Switch turns an agent on or off.
func (b *backend) Switch(ctx context.Context, name string, on bool) error {
	return b.host.Switch(ctx, name, on)
}

// Explain says what an agent may do.
func (b *backend) Explain(_ context.Context, name string) (tui.Sheet, error) {
	e, err := explain(b.host, name)
	if err != nil {
		return tui.Sheet{}, err
	}
	return explanation(e), nil
}

// explanation makes a sheet of what `agents explain` prints.
func explanation(e *compile.Explanation) tui.Sheet {
	about := tui.Section{Rows: []tui.Row{
		{Cells: []string{"from", cmp.Or(e.Path, "no file") + ", " + string(e.Layer) + " layer"}},
		{Cells: []string{"model", cmp.Or(e.Model.Value, "unknown") + "  (" + cmp.Or(e.Model.Origin, "-") + ")"}},
		{Cells: []string{"effort", cmp.Or(e.Effort.Value, "the provider's default") + "  (" + cmp.Or(e.Effort.Origin, "-") + ")"}},
		{Cells: []string{"limits", limits(e.Limits)}},
	}}
	if e.NotOffered != "" {
		about.Rows = append(about.Rows, tui.Row{Cells: []string{"not offered", e.NotOffered}, Tone: tui.Warn})
	}
	tools := tui.Section{Title: "Tools"}
	for _, name := range e.Tools.Allowed {
		tools.Rows = append(tools.Rows, tui.Row{Cells: []string{mark(synapse.StatusCompleted) + " " + name, "allowed"}, Tone: tui.Good})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Tools.Denied)) {
		why := string(e.Tools.Denied[name])
		if at := e.Tools.DeniedAt[name]; at != "" {
			why += "  (" + at + ")"
		}
		tools.Rows = append(tools.Rows, tui.Row{Cells: []string{mark(synapse.StatusFailed) + " " + name, why}, Tone: tui.Faint})
	}
	for _, name := range e.Tools.Unresolved {
		tools.Rows = append(tools.Rows, tui.Row{Cells: []string{"? " + name, "no such tool"}, Tone: tui.Warn})
	}
	s := tui.Sheet{Title: e.Name, Sections: []tui.Section{about, tools}}
	if len(e.Permissions) > 0 {
		rules := tui.Section{Title: "Permission rules"}
		for _, src := range e.Permissions {
			for _, r := range src.Rules {
				rules.Rows = append(rules.Rows, tui.Row{Cells: []string{string(r.Action), r.Tool, r.Pattern, src.Origin}})
			}
		}
		s.Sections = append(s.Sections, rules)
	}
	if len(e.Diagnostics) > 0 {
		warnings := tui.Section{Title: "Warnings"}
		for _, d := range e.Diagnostics {
			warnings.Rows = append(warnings.Rows, tui.Row{Cells: []string{d.String()}, Tone: tui.Warn})
		}
		s.Sections = append(s.Sections, warnings)
	}
	return s
}

// Models shows the models and reasoning efforts of all agents.
func (b *backend) Models(ctx context.Context) (tui.ModelPage, error) {
	var page tui.ModelPage
	if err := b.host.Refresh(ctx); err != nil {
		return page, err
	}
	src, err := b.sources()
	if err != nil {
		return page, err
	}
	set, _, err := settings.Load(src)
	if err != nil {
		return page, err
	}
	// An override is set somewhere: that is what the user wants to know.
	where := func(e *compile.Explained, key string) {
		if rows := set.Lookup(key); e.Origin == compile.OriginOverride && len(rows) > 0 {
			e.Origin = rows[0].Origin.String()
		}
	}
	row := func(name, about, model, effort string) error {
		e, err := explain(b.host, name)
		if err != nil {
			return err
		}
		where(&e.Model, model)
		where(&e.Effort, effort)
		page.Rows = append(page.Rows, tui.ModelRow{
			Name: e.Name, About: about, Model: e.Model.Value, ModelFrom: e.Model.Origin, Effort: e.Effort.Value, EffortFrom: e.Effort.Origin,
			ModelKey: model, EffortKey: effort,
		})
		return nil
	}
	if err := row("", "the main agent, which you talk to", "model", "reasoning_effort"); err != nil {
		return page, err
	}
	values := map[string]settings.Row{}
	choices := map[string]string{}
	for _, r := range set.Show() {
		values[r.Key] = r
	}
	for _, m := range b.host.Models(ctx, false) {
		if about := m.Title; m.Available {
			if m.Window > 0 {
				about += ", takes " + tokenSize(m.Window)
			}
			choices[m.Ref.String()] = cmp.Or(strings.TrimPrefix(about, ", "), m.Source)
		}
	}
	for alias, to := range set.ModelAliases {
		choices[alias] = "alias of " + to.V
	}
	for provider, p := range set.Providers {
		for _, name := range p.V.Models {
			choices[synapse.ModelRef{Provider: provider, Name: name}.String()] = p.Origin.String()
		}
	}
	model, effort := values["subagent_default_model"], values["subagent_default_reasoning_effort"]
	page.Rows = append(page.Rows, tui.ModelRow{
		Name: "all sub-agents", About: "the default for agents that say nothing themselves",
		Model: cmp.Or(model.Text(), "inherit"), ModelFrom: model.Origin.String(), Effort: cmp.Or(effort.Text(), "inherit"), EffortFrom: effort.Origin.String(),
		ModelKey: "subagent_default_model", EffortKey: "subagent_default_reasoning_effort",
	})
	for _, d := range b.host.Registry().All() {
		if d.Mode == agents.ModePrimary {
			continue
		}
		if err := row(d.Name, d.Description, "subagent_model_overrides."+d.Name, "subagent_reasoning_effort_overrides."+d.Name); err != nil {
			return page, err
		}
	}
	for _, r := range page.Rows {
		if _, err := synapse.ParseModelRef(r.Model); err == nil && choices[r.Model] == "" {
			choices[r.Model] = "in use"
		}
	}
	page.Choices = append(page.Choices, tui.Choice{Value: string(synapse.EffortInherit), About: "say nothing here"})
	for _, name := range slices.Sorted(maps.Keys(choices)) {
		page.Choices = append(page.Choices, tui.Choice{Value: name, About: choices[name]})
	}
	page.Efforts = append(page.Efforts, string(synapse.EffortInherit))
	for _, e := range synapse.Efforts() {
		if e != synapse.EffortInherit {
			page.Efforts = append(page.Efforts, string(e))
		}
	}
	if path := src.UserFile(); path != "" {
		page.Layers = append(page.Layers, tui.Layer{Name: string(settings.LayerUser), Path: path})
	}
	page.Layers = append(page.Layers, tui.Layer{Name: string(settings.LayerProject), Path: src.ProjectFile()})
	return page, nil
}

// Save writes settings, one after the other.
func (b *backend) Save(ctx context.Context, layer string, edits []tui.ModelEdit) ([]tui.Saved, error) {
	src, err := b.sources()
	if err != nil {
		return nil, err
	}
	store, _, err := settings.NewStore(src)
	if err != nil {
		return nil, err
	}
	var out []tui.Saved
	for _, e := range edits {
		saved, err := store.Set(settings.Layer(layer), e.Key, e.Value)
		if err != nil {
			return out, err
		}
		out = append(out, tui.Saved{Text: saved.String(), Hidden: !saved.InForce && !saved.Removed || len(saved.HiddenBy) > 0 && !saved.Removed})
	}
	return out, b.host.Refresh(ctx)
}

// of makes of a draft what `agents new` makes of its flags.
func (b *backend) of(d tui.Draft) (text []byte, path string, err error) {
	n := &newAgent{description: d.Description, tools: d.Tools, model: d.Model, effort: d.Effort, prompt: d.Prompt, user: d.User}
	if text, err = b.draft(d.Name, n, !d.AllTools); err != nil {
		return nil, "", err
	}
	path, err = b.newPath(b.workspace, d.Name, n)
	return text, path, err
}

// Preview says what a draft would come to.
func (b *backend) Preview(ctx context.Context, d tui.Draft) (tui.Preview, error) {
	text, path, err := b.of(d)
	if err != nil {
		return tui.Preview{}, err
	}
	def, _ := agents.Parse(path, text, agents.ParseOptions{})
	opt, err := b.options()
	if err != nil {
		return tui.Preview{}, err
	}
	opt.Inspect, opt.Agents = true, append(opt.Agents, def)
	h, err := host.Open(ctx, opt)
	if err != nil {
		return tui.Preview{}, err
	}
	defer h.Close()
	e, err := h.Explain(def.Name)
	if err != nil {
		return tui.Preview{}, err
	}
	e.Layer = agents.LayerProject
	if d.User {
		e.Layer = agents.LayerUser
	}
	return tui.Preview{Path: path, Text: string(text), Explain: explanation(e)}, nil
}

// Write writes a draft.
func (b *backend) Write(ctx context.Context, d tui.Draft) (string, error) {
	text, path, err := b.of(d)
	if err != nil {
		return "", err
	}
	if err := writeNew(path, text); err != nil {
		return "", err
	}
	return path, b.host.Refresh(ctx)
}

// maxTraces bounds how many past requests are listed.
const maxTraces = 500

// Traces lists past requests.
func (b *backend) Traces(ctx context.Context) ([]tui.Trace, error) {
	var out []tui.Trace
	for s, err := range b.host.Journal().Traces(ctx, trace.TraceQuery{Limit: maxTraces}) {
		if err != nil {
			return out, err
		}
		elapsed := "-"
		if !s.Ended.IsZero() {
			elapsed = seconds(s.Ended.Sub(s.Started))
		}
		out = append(out, tui.Trace{
			ID: s.Trace, Started: s.Started.Local().Format("2006-01-02 15:04:05"), Elapsed: elapsed, Status: words(s.Status), Prompt: s.Prompt,
			Cost: cost(s.Usage), Runs: s.Runs, Tokens: s.Usage.Tokens(),
		})
	}
	return out, nil
}

// Trace draws a past request's tree.
func (b *backend) Trace(ctx context.Context, id string) (tui.Sheet, error) {
	id, err := find(ctx, b.host.Journal(), id)
	if err != nil {
		return tui.Sheet{}, err
	}
	tree, err := trace.Build(b.host.Journal().Events(ctx, trace.Query{Trace: id}))
	if err != nil {
		return tui.Sheet{}, err
	}
	var out bytes.Buffer
	on := app{p: &Process{Stdout: &out}}
	if err := on.writeTree(tree); err != nil {
		return tui.Sheet{}, err
	}
	return tui.Sheet{Title: "Trace " + id, Sections: []tui.Section{{Lines: strings.Split(strings.TrimRight(out.String(), "\n"), "\n")}}}, nil
}

// Config shows the settings.
func (b *backend) Config(context.Context) (tui.Sheet, error) {
	s := tui.Sheet{Title: "Settings"}
	sec := tui.Section{}
	for _, r := range b.host.Config() {
		tone := tui.Plain
		if r.Origin.Layer == settings.LayerDefault {
			tone = tui.Faint
		}
		sec.Rows = append(sec.Rows, tui.Row{Cells: []string{r.Key, r.Origin.String(), cmp.Or(r.Text(), "-")}, Tone: tone})
	}
	s.Sections = append(s.Sections, sec)
	return s, nil
}

// maxFiles bounds how many paths can be picked from.
const maxFiles = 20000

// errEnough ends a walk.
var errEnough = errors.New("enough")

// Files lists the workspace's files, without what is hidden or fetched.
func (b *backend) Files(ctx context.Context) ([]string, error) {
	var out []string
	err := filepath.WalkDir(b.workspace, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // what can't be read can't be picked
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name := d.Name()
		if d.IsDir() {
			if path != b.workspace && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor" || name == "target" || name == "__pycache__") {
				return fs.SkipDir
			}
			return nil
		}
		if rel, err := filepath.Rel(b.workspace, path); err == nil && !strings.HasPrefix(name, ".") {
			out = append(out, filepath.ToSlash(rel))
		}
		if len(out) >= maxFiles {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// historyFile is where what was sent is kept, "" where there is no place.
func (b *backend) historyFile() string {
	state := settings.Sources{Home: b.p.Home, Environ: b.p.Environ}.StateDir()
	if state == "" {
		return ""
	}
	return filepath.Join(state, "history.jsonl")
}

// maxHistory bounds how much of the history is read, in bytes.
const maxHistory = 1 << 20

// History reads what was sent before.
func (b *backend) History(context.Context) ([]string, error) {
	path := b.historyFile()
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	data = data[max(0, len(data)-maxHistory):]
	var out []string
	for line := range bytes.Lines(data) {
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" { // the first may be cut, the last half written
			out = append(out, text)
		}
	}
	return out, nil
}

// Remember adds to the history.
func (b *backend) Remember(_ context.Context, text string) error {
	path := b.historyFile()
	if path == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return appendLine(path, line)
}

// themeKey is the setting that holds the screen's theme.
const themeKey = "theme"

// SaveTheme keeps the theme in the user's settings.
func (b *backend) SaveTheme(ctx context.Context, name string) error {
	src, err := b.sources()
	if err != nil {
		return err
	}
	store, _, err := settings.NewStore(src)
	if err != nil {
		return err
	}
	_, err = store.Set(settings.LayerUser, themeKey, name)
	return err
}

// declinedFile is where it is kept which workspaces the user does not trust, so
// that it is asked once; "" where there is no place.
func (b *backend) declinedFile() string {
	state := settings.Sources{Home: b.p.Home, Environ: b.p.Environ}.StateDir()
	if state == "" {
		return ""
	}
	return filepath.Join(state, "untrusted.txt")
}

// Held returns which settings of the workspace are left out because it is not
// trusted.
func (b *backend) Held(context.Context) ([]string, error) {
	if b.host.Trusted() || b.p.Home == "" {
		return nil, nil
	}
	if path := b.declinedFile(); path != "" {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read which workspaces are not trusted: %w", err)
		}
		if slices.Contains(strings.Split(string(data), "\n"), b.workspace) {
			return nil, nil
		}
	}
	src, err := b.sources()
	if err != nil {
		return nil, err
	}
	_, warnings, err := settings.Load(src)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, w := range warnings {
		if w.Code == settings.WarnUntrusted {
			out = append(out, w.String())
		}
	}
	return out, nil
}

// Decide keeps whether the user trusts the workspace.
func (b *backend) Decide(ctx context.Context, trust bool) error {
	if trust {
		if err := settings.NewTrustFile(b.p.Home, nil).Trust(b.workspace); err != nil {
			return err
		}
		return b.host.Refresh(ctx)
	}
	path := b.declinedFile()
	if path == "" {
		return nil
	}
	return appendLine(path, []byte(b.workspace))
}

// appendLine adds a line to a file of the user's, which it makes if need be.
func appendLine(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
