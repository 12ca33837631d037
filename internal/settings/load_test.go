package settings_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/settings"
	"github.com/synapse-agents/synapse/policy"
)

func TestDefaults(t *testing.T) {
	m := newMachine(t)
	s, warnings := m.load()
	if len(warnings) > 0 {
		t.Errorf("warnings %v from nothing", warnings)
	}
	if !s.EnableSubagents.V || !s.EnableCustomSubagents.V || !s.Intent.V || !s.ProbeLocal.V || s.ReadOnly.V || s.MinimalFilesystemTools.V || s.Trusted {
		t.Errorf("switches: %+v", s)
	}
	if s.MaxDepth.V != 3 || s.MaxParallel.V != 64 || s.MaxHandoffs.V != 10 || s.SubagentDescriptionBudget.V != 4000 || s.StreamIdleTimeout.V.String() != "1m0s" {
		t.Errorf("numbers: %v %v %v %v %v", s.MaxDepth, s.MaxParallel, s.MaxHandoffs, s.SubagentDescriptionBudget, s.StreamIdleTimeout)
	}
	if got := s.Limits.Plain(); got != (synapse.Limits{}) {
		t.Errorf("limits %+v", got)
	}
	if got, want := s.MinimalFilesystemExcludedTools.Strings(), []string{"search_files", "edit_file", "write_file"}; !slices.Equal(got, want) {
		t.Errorf("minimal_filesystem_excluded_tools %v, want %v", got, want)
	}
	if s.ImportSources.V != nil {
		t.Errorf("import_sources %v, want every product", s.ImportSources.V)
	}
	if s.MaxDepth.Origin.String() != "default" || s.MaxDepth.IsSet() {
		t.Errorf("origin %v", s.MaxDepth.Origin)
	}
	// Loading creates nothing.
	for _, dir := range []string{m.src.Home, m.src.Workspace, m.src.ExeDir} {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s holds %v after loading", dir, entries)
		}
	}
	// The documented default is the one that is in force.
	for _, k := range settings.Keys() {
		rows := s.Lookup(k.Name)
		var value any
		switch len(rows) {
		case 0:
			t.Errorf("%s is not shown", k.Name)
			continue
		case 1:
			value = rows[0].Value
		}
		if got, _ := json.Marshal(value); string(got) != k.Default {
			t.Errorf("%s: the table says %s, a load gives %s", k.Name, k.Default, got)
		}
	}
}

func TestNothingAtAll(t *testing.T) {
	s, warnings, err := settings.Load(settings.Sources{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if s.UserDir() != "" || s.StateDir() != "" || s.Workspace() != "" || s.Trusted {
		t.Errorf("directories %q %q %q, trusted %v", s.UserDir(), s.StateDir(), s.Workspace(), s.Trusted)
	}
}

func TestKeys(t *testing.T) {
	names, vars := map[string]bool{}, map[string]bool{}
	for _, k := range settings.Keys() {
		if names[k.Name] || k.Env != "" && vars[k.Env] {
			t.Errorf("%s (%s) stands twice", k.Name, k.Env)
		}
		names[k.Name], vars[k.Env] = true, true
		if !strings.HasSuffix(k.Doc, ".") || k.Takes == "" || k.Kind == "" || k.Combine == "" || !json.Valid([]byte(k.Default)) {
			t.Errorf("%s is not described: %+v", k.Name, k)
		}
	}
	restricting := []string{"disable_builtin_subagents", "excluded_tools", "limits.cost_usd", "limits.spawns", "limits.time", "limits.tokens", "limits.tool_calls",
		"max_depth", "max_handoffs", "max_parallel", "max_turns", "minimal_filesystem_excluded_tools", "minimal_filesystem_tools", "permissions", "readonly"}
	var got []string
	for _, k := range settings.Keys() {
		if k.Restricts {
			got = append(got, k.Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(restricting, got); diff != "" {
		t.Errorf("keys that restrict: -want +got:\n%s", diff)
	}
}

// environment gives for every variable a good value, how that shows, and a bad
// one.
var environment = map[string]struct{ good, shown, bad string }{
	"AGENT_MODEL":                                    {"openai:gpt-5", "openai:gpt-5", "openai:"},
	"AGENT_REASONING_EFFORT":                         {"off", "off", "extreme"},
	"AGENT_ENABLE_SUBAGENTS":                         {"false", "false", "maybe"},
	"AGENT_ENABLE_CUSTOM_SUBAGENTS":                  {"0", "false", "2"},
	"AGENT_CUSTOM_AGENTS_DIRS":                       {`["/a"]`, `["/a"]`, "/a"},
	"AGENT_DISABLE_BUILTIN_SUBAGENTS":                {`["tester"]`, `["tester"]`, `["tester"`},
	"AGENT_SUBAGENT_DEFAULT_MODEL":                   {"ollama:qwen3:8b", "ollama:qwen3:8b", ":x"},
	"AGENT_SUBAGENT_DEFAULT_REASONING_EFFORT":        {"High", "high", "very"},
	"AGENT_SUBAGENT_MODEL_OVERRIDES_JSON":            {`{"tester":"openai:x"}`, "openai:x", `["openai:x"]`},
	"AGENT_SUBAGENT_REASONING_EFFORT_OVERRIDES_JSON": {`{"tester":"low"}`, "low", `{"tester":1}`},
	"AGENT_EXCLUDED_TOOLS":                           {`["execute"]`, `["execute"]`, `["execute",]`},
	"AGENT_READONLY":                                 {"yes", "true", "ja"},
	"AGENT_MINIMAL_FILESYSTEM_TOOLS":                 {"on", "true", "full"},
	"AGENT_WEB_SEARCH_ENDPOINT":                      {"http://localhost:8080", "http://localhost:8080", "localhost"},
	"AGENT_WEB_SEARCH_KIND":                          {"SearXNG", "searxng", "bing"},
}

func TestEnvironment(t *testing.T) {
	for _, k := range settings.Keys() {
		if k.Env == "" {
			continue
		}
		c, ok := environment[k.Env]
		if !ok {
			t.Errorf("%s has no case", k.Env)
			continue
		}
		t.Run(k.Env, func(t *testing.T) {
			s, _ := newMachine(t).env(k.Env + "=" + c.good).load()
			rows := s.Lookup(k.Name)
			if len(rows) != 1 || rows[0].Text() != c.shown || rows[0].Origin.String() != "environment "+k.Env {
				t.Errorf("shown as %v, want %s from environment %s", rows, c.shown, k.Env)
			}
			e := newMachine(t).env(k.Env + "=" + c.bad).bad()
			text := e.Error()
			if e.Var != k.Env || e.Path != "" || !strings.Contains(text, k.Env) || !strings.Contains(text, c.bad[:1]) || e.Takes == "" || !strings.Contains(text, e.Takes) {
				t.Errorf("error %q does not name the variable, what it held and what it takes", text)
			}
			e = newMachine(t).trust().write(dotenvFile, "# first\n"+k.Env+"='"+c.bad+"'\n").bad()
			if e.Var != k.Env || e.Line != 2 || filepath.Base(e.Path) != ".env" {
				t.Errorf("in .env: %v", e)
			}
			// An empty variable says nothing.
			s, _ = newMachine(t).env(k.Env + "=").load()
			for _, r := range s.Lookup(k.Name) {
				if r.Origin.Layer != settings.LayerDefault {
					t.Errorf("an empty variable set %v", r)
				}
			}
		})
	}
}

func TestSubagentModelVariables(t *testing.T) {
	s, _ := newMachine(t).env("AGENT_SUBAGENT_TESTER_MODEL=openai:t", "AGENT_SUBAGENT_SEC_REVIEW_MODEL=ollama:s",
		"AGENT_SUBAGENT_DEFAULT_MODEL=openai:d", "AGENT_SUBAGENT_X_MODEL=inherit").load()
	got := map[string]string{}
	for name, v := range s.SubagentModelVars {
		got[name] = v.V
	}
	want := map[string]string{"TESTER": "openai:t", "SEC_REVIEW": "ollama:s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if e := newMachine(t).env("AGENT_SUBAGENT_TESTER_MODEL=gpt").bad(); e.Var != "AGENT_SUBAGENT_TESTER_MODEL" {
		t.Errorf("error %v", e)
	}
}

// modelLayers sets the model in the layers of the bit set, low to high.
func modelLayers(m *machine, set int) []string {
	names := []string{userFile, exeFile, projectFile, dotenvFile, "environment", "flag"}
	for i, name := range names {
		if set&(1<<i) == 0 {
			continue
		}
		model := fmt.Sprintf("openai:m%d", i)
		switch name {
		case "environment":
			m.env("AGENT_MODEL=" + model)
		case "flag":
			m.flag("-m", "model", model)
		case dotenvFile:
			m.write(name, "AGENT_MODEL="+model+"\n")
		default:
			m.write(name, fmt.Sprintf(`{"model": %q}`, model))
		}
	}
	return names
}

func TestPrecedence(t *testing.T) {
	layers := []settings.Layer{settings.LayerUser, settings.LayerExecutable, settings.LayerProject, settings.LayerDotenv, settings.LayerEnvironment, settings.LayerFlag}
	for set := range 1 << 6 {
		m := newMachine(t)
		modelLayers(m, set)
		s, _ := m.load()
		want := settings.Value[string]{Origin: settings.Origin{Layer: settings.LayerDefault}}
		for i := range 6 {
			if set&(1<<i) != 0 {
				want.V, want.Origin.Layer = fmt.Sprintf("openai:m%d", i), layers[i]
			}
		}
		if s.Model.V != want.V || s.Model.Origin.Layer != want.Origin.Layer {
			t.Errorf("layers %06b: model %v from %s, want %v from %s", set, s.Model.V, s.Model.Origin.Layer, want.V, want.Origin.Layer)
		}
	}
}

func TestSilentValues(t *testing.T) {
	// inherit, the empty string and null leave the lower layer's value.
	for _, silent := range []string{`"inherit"`, `""`, `null`} {
		m := newMachine(t).write(userFile, `{"model": "openai:a", "reasoning_effort": "high", "subagent_model_overrides": {"tester": "openai:b"}, "readonly": true}`)
		m.write(projectFile, fmt.Sprintf(`{"model": %[1]s, "reasoning_effort": %[1]s, "subagent_model_overrides": {"tester": %[1]s}, "readonly": null, "limits": null}`, silent))
		s, _ := m.load()
		if s.Model.V != "openai:a" || s.ReasoningEffort.V != "high" || s.SubagentModelOverrides["tester"].V != "openai:b" || !s.ReadOnly.V {
			t.Errorf("%s changed something: %v %v %v %v", silent, s.Model, s.ReasoningEffort, s.SubagentModelOverrides, s.ReadOnly)
		}
	}
}

func TestEmptyVariableHidesDotenv(t *testing.T) {
	m := newMachine(t).trust().write(dotenvFile, "OPENAI_BASE_URL=https://a.example\nAGENT_MODEL=openai:x\n")
	s, _ := m.env("OPENAI_BASE_URL=", "AGENT_MODEL=").load()
	if _, ok := s.Secrets.Get("OPENAI_BASE_URL"); ok || s.Model.V != "" {
		t.Errorf("OPENAI_BASE_URL set %v, model %q: an empty variable must hide .env's", ok, s.Model.V)
	}
}

func TestModelNames(t *testing.T) {
	m := newMachine(t).write(userFile, "{\n\"model_aliases\": {\"quick\": \"openai:mini\"},\n\"model\": \"quick\", \"fallback_models\": [\"quick\"]}")
	if s, _ := m.load(); s.Model.V != "quick" {
		t.Errorf("model %q", s.Model.V)
	}
	m.write(projectFile, "{\n\"subagent_default_model\": \"quik\"}")
	if e := m.bad(); e.Line != 2 || e.Key != "subagent_default_model" || !strings.Contains(e.Hint, "quick") {
		t.Errorf("error %v", e)
	}
	if e := newMachine(t).write(userFile, `{"model_aliases": {"a": "b"}}`).bad(); e.Key != "model_aliases.a" {
		t.Errorf("error %v", e)
	}
}

// Names come from repositories and end up on terminals.
func TestNamesWithControlCharacters(t *testing.T) {
	for _, key := range []string{"subagent_model_overrides", "model_aliases", "subagent_reasoning_effort_overrides", "providers", "mcp_servers"} {
		for _, name := range []string{`\u001b[2J`, `a\nb`, `\u009b`, ``} {
			e := newMachine(t).write(projectFile, fmt.Sprintf(`{%q: {"%s": {}}}`, key, name)).bad()
			if strings.ContainsFunc(e.Error(), unicode.IsControl) {
				t.Errorf("%s %s: %q", key, name, e.Error())
			}
		}
	}
	_, warnings := newMachine(t).write(projectFile, `{"\u001b[2J": 1, "providers": {"x": {"\u001b[2J": 1}}}`).load()
	if len(warnings) != 3 || strings.ContainsFunc(fmt.Sprint(warnings), unicode.IsControl) {
		t.Errorf("warnings %q", warnings)
	}
}

func TestFlags(t *testing.T) {
	s, _ := newMachine(t).flag("--disallowed-tools", "excluded_tools", "execute, patch").flag("--disallowed-tools", "excluded_tools", `["task"]`).
		flag("--timeout", "limits.time", "90s").load()
	if got := s.ExcludedTools.Strings(); !slices.Equal(got, []string{"execute", "patch", "task"}) {
		t.Errorf("excluded_tools %v", got)
	}
	if s.Limits.Time.Origin.String() != "flag --timeout" {
		t.Errorf("limits.time from %v", s.Limits.Time.Origin)
	}
	if e := newMachine(t).flag("--timeout", "limits.time", "90").bad(); !strings.HasPrefix(e.Error(), "flag --timeout: ") || e.Hint != "with a unit: 90s" {
		t.Errorf("error %v", e)
	}
	if e := newMachine(t).flag("--ro", "read_only", "true").bad(); !strings.Contains(e.Hint, "readonly") {
		t.Errorf("error %v", e)
	}
}

func TestDirectories(t *testing.T) {
	m := newMachine(t)
	s, _ := m.load()
	if s.UserDir() != m.path("home/.synapse") || s.StateDir() != m.path("home/.local/state/synapse") || s.Workspace() != m.path("ws") {
		t.Errorf("%s %s %s", s.UserDir(), s.StateDir(), s.Workspace())
	}
	// The workspace has no say in where state goes, and a relative path is no place.
	m.trust().write(dotenvFile, "XDG_STATE_HOME=/elsewhere\n").env("XDG_STATE_HOME=relative")
	if s, _ = m.load(); s.StateDir() != m.path("home/.local/state/synapse") {
		t.Errorf("state directory %s", s.StateDir())
	}
	state := m.path("state")
	if s, _ = m.env("XDG_STATE_HOME=" + state).load(); s.StateDir() != filepath.Join(state, "synapse") {
		t.Errorf("state directory %s", s.StateDir())
	}
}

func TestCustomAgentsDirs(t *testing.T) {
	m := newMachine(t).write(userFile, `{"custom_agents_dirs": ["~/mine", "team/../agents", "/abs"]}`)
	s, _ := m.load()
	want := []string{m.path("home/mine"), m.path("ws/agents"), filepath.Clean("/abs")}
	if diff := cmp.Diff(want, s.CustomAgentsDirs.V); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRestrictionsNeverWiden builds random layers, adds one more, and checks
// that no restriction got weaker.
func TestRestrictionsNeverWiden(t *testing.T) {
	tools := []string{"execute", "patch", "write_file", "edit_file", "task"}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() []string {
			list := []string{}
			for _, tool := range tools {
				if r.IntN(3) == 0 {
					list = append(list, tool)
				}
			}
			return list
		}
		file := func() string {
			v := map[string]any{}
			put := func(key string, value any) {
				if r.IntN(2) == 0 {
					v[key] = value
				}
			}
			put("readonly", r.IntN(2) == 0)
			put("minimal_filesystem_tools", r.IntN(2) == 0)
			put("excluded_tools", some())
			put("minimal_filesystem_excluded_tools", some())
			put("disable_builtin_subagents", some())
			put("permissions", map[string]any{"execute": []string{"allow", "ask", "deny"}[r.IntN(3)]})
			put("max_depth", 1+r.IntN(6))
			put("max_turns", r.IntN(50))
			put("max_handoffs", r.IntN(20))
			put("limits", map[string]any{"tokens": r.IntN(5) * 1000, "cost_usd": float64(r.IntN(4)), "time": fmt.Sprintf("%dm", r.IntN(3)), "spawns": r.IntN(3), "tool_calls": r.IntN(3)})
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		m := newMachine(t)
		if r.IntN(2) == 0 {
			m.trust()
		}
		add := map[string]func(){
			userFile:    func() { m.write(userFile, file()) },
			exeFile:     func() { m.write(exeFile, file()) },
			projectFile: func() { m.write(projectFile, file()) },
			dotenvFile: func() {
				m.write(dotenvFile, fmt.Sprintf("AGENT_READONLY=%v\nAGENT_EXCLUDED_TOOLS='%s'\nAGENT_DISABLE_BUILTIN_SUBAGENTS='%s'\n", r.IntN(2) == 0, list(some()), list(some())))
			},
			"environment": func() {
				m.env(fmt.Sprintf("AGENT_READONLY=%v", r.IntN(2) == 0), "AGENT_EXCLUDED_TOOLS="+list(some()), "AGENT_MINIMAL_FILESYSTEM_TOOLS=false")
			},
			"flag": func() {
				m.flag("--readonly", "readonly", "false").flag("--disallowed-tools", "excluded_tools", list(some()))
			},
		}
		names := []string{userFile, exeFile, projectFile, dotenvFile, "environment", "flag"}
		last := names[r.IntN(len(names))]
		for _, name := range names {
			if name != last && r.IntN(2) == 0 {
				add[name]()
			}
		}
		before, _ := m.load()
		add[last]()
		after, _ := m.load()

		widens := func(what string, before, after any) {
			t.Errorf("seed %d: adding %s widens %s from %v to %v", seed, last, what, before, after)
		}
		if before.ReadOnly.V && !after.ReadOnly.V || before.MinimalFilesystemTools.V && !after.MinimalFilesystemTools.V {
			widens("a switch", before.ReadOnly, after.ReadOnly)
		}
		subset := func(what string, a, b settings.Names) {
			for _, name := range a.Strings() {
				if !slices.Contains(b.Strings(), name) {
					widens(what, a.Strings(), b.Strings())
				}
			}
		}
		subset("excluded_tools", before.ExcludedTools, after.ExcludedTools)
		for _, source := range before.Permissions {
			if !slices.ContainsFunc(after.Permissions, func(s2 policy.Source) bool { return cmp.Equal(source, s2) }) {
				widens("permissions", before.Permissions, after.Permissions)
			}
		}
		if last != projectFile && last != dotenvFile {
			continue // the user may set limits as they like
		}
		subset("minimal_filesystem_excluded_tools", before.MinimalFilesystemExcludedTools, after.MinimalFilesystemExcludedTools)
		subset("disable_builtin_subagents", before.DisableBuiltinSubagents, after.DisableBuiltinSubagents)
		if after.MaxDepth.V > before.MaxDepth.V || after.MaxHandoffs.V > before.MaxHandoffs.V {
			widens("a bound", before.MaxDepth, after.MaxDepth)
		}
		a, b := before.Limits.Plain(), after.Limits.Plain()
		a.Turns, b.Turns = before.MaxTurns.V, after.MaxTurns.V
		if a.Min(b) != b {
			widens("limits", a, b)
		}
	}
}

func list(names []string) string {
	data, _ := json.Marshal(names)
	return string(data)
}
