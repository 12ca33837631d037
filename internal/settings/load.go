package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sources is the outside world of the settings: [Load] looks at nothing else.
type Sources struct {
	// Home is the user's home directory; "" means that there is no user layer
	// and no trusted workspace.
	Home string
	// ExeDir is the directory of the running binary; "" leaves its layer out.
	ExeDir string
	// Workspace is the directory worked in; "" means no project layer.
	Workspace string
	// Environ holds KEY=VALUE strings, as os.Environ does; a later one wins.
	Environ []string
	// Flags are the settings given on the command line.
	Flags Overrides
	// Trust vouches for the workspace whatever the user's trust file says:
	// for programs that embed us and chose the workspace themselves.
	Trust bool
}

// Overrides are settings given as flags, in order.
type Overrides []Override

// An Override is one flag: its name with dashes, the key it sets and its text,
// read as an environment variable's is. A list may be written with commas.
type Override struct {
	Flag, Key, Value string
}

// UserFile returns the path of the user's settings, "" without a home.
func (src Sources) UserFile() string { return settingsFile(src.Home) }

// ProjectFile returns the path of the workspace's settings, "" without a
// workspace.
func (src Sources) ProjectFile() string { return settingsFile(src.Workspace) }

func settingsFile(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ".synapse", "settings.json")
}

// Files returns the paths of the files that [Load] may read, whether they exist or
// not.
func (src Sources) Files() []string {
	var files []string
	for _, file := range []string{src.UserFile(), NewTrustFile(src.Home, nil).Path(), settingsFile(src.ExeDir), src.ProjectFile()} {
		if file != "" {
			files = append(files, file)
		}
	}
	if src.Workspace != "" {
		files = append(files, filepath.Join(src.Workspace, ".env"))
	}
	return files
}

// Load reads and merges all layers. A damaged file or a bad value is an error
// that holds one or several [*Error]; the settings are nil then. Files that do
// not exist are no error, and none is created.
func Load(src Sources) (*Settings, []Warning, error) {
	l := &loader{src: src, read: readFile}
	return l.load()
}

// A layer is one place that gives settings.
type layer struct {
	id    Layer
	path  string
	doc   *document
	vars  map[string]variable
	flags Overrides
	// hidden are the variables that the process's environment has, even empty:
	// it beats .env, but for restrictions, which add up.
	hidden map[string]variable
	// owned says that the user wrote it. What is not owned comes with the
	// workspace, and only narrows.
	owned bool
}

// A given is the value that a layer gives for a key: a node of its document,
// or text.
type given struct {
	layer  *layer
	doc    *document
	node   *node
	text   string
	origin Origin
}

// at returns the origin of a node inside of the value.
func (g *given) at(n *node) Origin {
	o := g.origin
	if g.node != nil && n != nil {
		o.Line, _ = g.doc.position(n.start)
	}
	return o
}

// elem returns the origin of the i-th element of a list.
func (g *given) elem(i int) Origin {
	if g.node == nil || i >= len(g.node.elems) {
		return g.origin
	}
	return g.at(g.node.elems[i])
}

type loader struct {
	src      Sources
	read     func(path string) ([]byte, error)
	keys     []Key
	layers   []*layer
	s        *Settings
	warnings []Warning
	errs     []error
	dropped  []dropped
	// files holds the content of the settings files as they were read.
	files map[string][]byte
	// steered holds the providers that an untrusted workspace defines, and the
	// aliases that it points to them: what names one of them is not used.
	steered struct{ providers, aliases map[string]bool }
}

func (l *loader) warn(w Warning) { l.warnings = append(l.warnings, w) }

func (l *loader) fail(e *Error) { l.errs = append(l.errs, e) }

func (l *loader) load() (*Settings, []Warning, error) {
	l.keys = Keys()
	l.s = &Settings{home: l.src.Home, SubagentModelVars: map[string]Value[string]{}}
	l.files = map[string][]byte{}
	for i := range l.keys {
		l.keys[i].binding.reset(l.s)
	}
	if l.src.Workspace != "" {
		abs, err := filepath.Abs(l.src.Workspace)
		if err != nil {
			return nil, nil, fmt.Errorf("load settings: %w", err)
		}
		l.s.workspace = abs
	}
	if err := l.readTrust(); err != nil {
		l.errs = append(l.errs, err)
	}
	l.openLayers()
	l.findSteered()
	for _, layer := range l.layers {
		for i := range l.keys {
			for _, g := range layer.find(&l.keys[i]) {
				l.keys[i].binding.apply(l, &l.keys[i], g)
			}
		}
		l.modelVars(layer)
		l.unknown(layer)
	}
	l.checkAliases()
	l.secrets()
	l.s.stateDir = l.src.StateDir()
	l.reportDropped()
	switch len(l.errs) {
	case 0:
		return l.s, l.warnings, nil
	case 1:
		return nil, l.warnings, l.errs[0]
	}
	l.sortErrors()
	return nil, l.warnings, errors.Join(l.errs...)
}

// sortErrors puts the errors of each file into the order of its lines.
func (l *loader) sortErrors() {
	var paths []string
	place := func(err error) (path, line, column int) {
		var e *Error
		if !errors.As(err, &e) {
			return -1, 0, 0
		}
		if !slices.Contains(paths, e.Path) {
			paths = append(paths, e.Path)
		}
		return slices.Index(paths, e.Path), e.Line, e.Column
	}
	for _, err := range l.errs {
		place(err)
	}
	slices.SortStableFunc(l.errs, func(a, b error) int {
		p, line, column := place(a)
		q, otherLine, otherColumn := place(b)
		return cmp.Or(cmp.Compare(p, q), cmp.Compare(line, otherLine), cmp.Compare(column, otherColumn))
	})
}

// openLayers reads the files and splits up the environment, low to high.
func (l *loader) openLayers() {
	user := l.src.UserFile()
	l.openFile(LayerUser, user, true)
	exe := settingsFile(l.src.ExeDir)
	if exe != "" && !same(exe, user) {
		// A binary inside of the workspace may have come with it, and so may
		// the file beside it.
		mine := l.s.workspace == "" || !inside(l.s.workspace, l.src.ExeDir)
		if !same(exe, settingsFile(l.s.workspace)) {
			l.openFile(LayerExecutable, exe, mine)
		}
	}
	if project := settingsFile(l.s.workspace); project != "" && !same(project, user) {
		l.openFile(LayerProject, project, false)
	}
	environ := parseEnviron(l.src.Environ)
	if l.s.workspace != "" {
		l.openDotenv(filepath.Join(l.s.workspace, ".env"), environ)
	}
	l.layers = append(l.layers, &layer{id: LayerEnvironment, vars: environ, owned: true})
	l.layers = append(l.layers, &layer{id: LayerFlag, flags: l.src.Flags, owned: true})
}

func (l *loader) openFile(id Layer, path string, owned bool) {
	if path == "" {
		return
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	data, err := l.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.fail(&Error{Path: path, Err: fmt.Errorf("read settings: %w", err)})
		return
	}
	l.files[path] = data
	doc, bad := parseDocument(path, data)
	if bad != nil {
		l.fail(bad)
		return
	}
	l.layers = append(l.layers, &layer{id: id, path: path, doc: doc, owned: owned})
}

func (l *loader) openDotenv(path string, environ map[string]variable) {
	data, err := l.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotAFile): // a virtual environment is often called .env
		return
	case err != nil:
		l.warn(Warning{Code: WarnDotenv, Path: path, Message: fmt.Sprintf("can't be read: %v", err)})
		return
	}
	vars := map[string]variable{}
	for _, v := range l.readDotenv(path, data) {
		vars[v.name] = v
	}
	l.layers = append(l.layers, &layer{id: LayerDotenv, path: path, vars: vars, hidden: environ})
}

var errNotAFile = errors.New("not a regular file")

// readFile reads a regular file, and no more of it than a settings file may have.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for ever
		return nil, errNotAFile
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// same reports whether two paths are one file.
func same(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return realPath(a) == realPath(b)
}

func parseEnviron(environ []string) map[string]variable {
	vars := map[string]variable{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = variable{name: name, value: value}
		}
	}
	return vars
}

// StateDir returns where journals and other state of this user belong, "" when
// there is neither a home nor XDG_STATE_HOME. It follows the XDG rules, which
// tell programs to pass over a relative directory, and reads no file: the
// workspace's .env has no say in it.
func (src Sources) StateDir() string {
	if dir := parseEnviron(src.Environ)["XDG_STATE_HOME"].value; filepath.IsAbs(dir) {
		return filepath.Join(dir, "synapse")
	}
	if src.Home == "" {
		return ""
	}
	return filepath.Join(src.Home, ".local", "state", "synapse")
}

// find returns what the layer gives for a key. null, and an empty variable,
// give nothing.
func (l *layer) find(k *Key) []*given {
	switch {
	case l.doc != nil:
		n := l.doc.root
		for part := range strings.SplitSeq(k.Name, ".") {
			if n == nil || n.kind != objectNode {
				return nil // a wrong type is reported by unknown
			}
			n = n.get(part)
		}
		if n == nil || n.kind == nullNode {
			return nil
		}
		line, _ := l.doc.position(n.start)
		return []*given{{layer: l, doc: l.doc, node: n, origin: Origin{Layer: l.id, Path: l.path, Line: line}}}
	case l.id == LayerFlag:
		var all []*given
		for _, f := range l.flags {
			if f.Key == k.Name && f.Value != "" {
				all = append(all, &given{layer: l, text: flagText(k, f.Value), origin: Origin{Layer: l.id, Var: f.Flag}})
			}
		}
		return all
	}
	v, ok := l.variable(k.Env)
	if k.Combine == CombineAdd {
		v, ok = l.vars[k.Env]
	}
	if !ok || v.value == "" {
		return nil
	}
	return []*given{{layer: l, text: v.value, origin: l.origin(v)}}
}

// variable returns a variable of the layer, unless the environment hides it.
func (l *layer) variable(name string) (variable, bool) {
	if _, hidden := l.hidden[name]; hidden {
		return variable{}, false
	}
	v, ok := l.vars[name]
	return v, ok
}

// flagText lets lists be written with commas.
func flagText(k *Key, text string) string {
	if (k.Kind == KindStrings || k.Kind == KindModels) && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return string(mustJSON(splitList(text)))
	}
	return text
}

// origin returns the origin of a variable of this layer.
func (l *layer) origin(v variable) Origin {
	return Origin{Layer: l.id, Path: l.path, Line: v.line, Var: v.name}
}

// fault reports a value that is not what its key takes.
func (l *loader) fault(k *Key, g *given, f *fault) {
	e := &Error{Path: g.origin.Path, Line: g.origin.Line, Var: g.origin.Var, Key: k.Name + f.key,
		Found: f.found, Takes: f.takes, Hint: f.hint}
	if f.at == nil {
		f.at = g.node
	}
	if g.node != nil {
		e.Line, e.Column = g.doc.position(f.at.start)
	}
	l.fail(e)
}

// noEffect warns of a value that would lift what a lower layer restricts.
func (l *loader) noEffect(k *Key, g *given, v, stands any, by Origin) {
	why := "restrictions only add up"
	if k.Combine == CombineNarrow {
		why = "a workspace only narrows"
	}
	l.warn(Warning{Code: WarnNoEffect, Path: g.origin.Path, Line: g.origin.Line, Var: g.origin.Var, Key: k.Name,
		Message: fmt.Sprintf("%s: %s has no effect: %s from %s stands, since %s", k.Name, mustJSON(v), mustJSON(stands), by, why)})
}

// modelVars reads the AGENT_SUBAGENT_<NAME>_MODEL variables of a layer.
func (l *loader) modelVars(layer *layer) {
	c := modelCodec()
	for _, name := range sortedNames(layer.vars) {
		v, ok := layer.variable(name)
		agent := modelVariable(l.keys, name)
		if !ok || agent == "" || v.value == "" {
			continue
		}
		g := &given{layer: layer, text: v.value, origin: layer.origin(v)}
		model, f := c.text(v.value)
		if f != nil {
			l.fault(&Key{}, g, f)
			continue
		}
		if model == "" {
			continue
		}
		if l.guarded(g) {
			if _, ok, why := guardModel(l, "", model); !ok {
				l.drop(g, "", why)
				continue
			}
		}
		l.s.SubagentModelVars[agent] = Value[string]{V: model, Origin: g.origin}
	}
}

// modelVariable returns the NAME of an AGENT_SUBAGENT_<NAME>_MODEL variable,
// "" for others.
func modelVariable(keys []Key, name string) string {
	agent, ok := strings.CutPrefix(name, "AGENT_SUBAGENT_")
	if !ok || slices.ContainsFunc(keys, func(k Key) bool { return k.Env == name }) {
		return ""
	}
	if agent, ok = strings.CutSuffix(agent, "_MODEL"); !ok {
		return ""
	}
	return agent
}

// checkAliases refuses models that are neither provider:model nor an alias.
func (l *loader) checkAliases() {
	check := func(key string, v Value[string], model string) {
		if model == "" || strings.Contains(model, ":") {
			return
		}
		if _, ok := l.s.ModelAliases[model]; ok {
			return
		}
		hint := "no model_aliases are set"
		if names := sortedNames(l.s.ModelAliases); len(names) > 0 {
			hint = "model_aliases has " + strings.Join(names, ", ")
		}
		l.fail(&Error{Path: v.Origin.Path, Line: v.Origin.Line, Var: v.Origin.Var, Key: key,
			Found: quote(model), Takes: modelCodec().takes, Hint: hint})
	}
	check("model", l.s.Model, l.s.Model.V)
	for i, m := range l.s.FallbackModels.V {
		check(fmt.Sprintf("fallback_models[%d]", i), Value[string]{Origin: l.s.FallbackModels.Origin}, m)
	}
	check("subagent_default_model", l.s.SubagentDefaultModel, l.s.SubagentDefaultModel.V)
	for _, name := range sortedNames(l.s.SubagentModelOverrides) {
		v := l.s.SubagentModelOverrides[name]
		check("subagent_model_overrides."+name, v, v.V)
	}
	for _, name := range sortedNames(l.s.SubagentModelVars) {
		v := l.s.SubagentModelVars[name]
		check("", v, v.V)
	}
}
