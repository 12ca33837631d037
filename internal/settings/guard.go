package settings

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
)

// A dropped value came with a workspace that the user does not trust.
type dropped struct {
	path string
	line int
	name string // of the key or the variable
	why  string // "" where the name says it
}

// guarded reports whether a value comes with a workspace that is not trusted.
func (l *loader) guarded(g *given) bool { return !g.layer.owned && !l.s.Trusted }

func (l *loader) drop(g *given, name, why string) {
	if g.origin.Var != "" {
		name = g.origin.Var
	}
	l.dropped = append(l.dropped, dropped{path: g.origin.Path, line: g.origin.Line, name: name, why: why})
}

// reportDropped makes one warning a file of what was dropped.
func (l *loader) reportDropped() {
	var paths []string
	for _, d := range l.dropped {
		if !slices.Contains(paths, d.path) {
			paths = append(paths, d.path)
		}
	}
	for _, path := range paths {
		w := Warning{Code: WarnUntrusted, Path: path, Hint: "if the workspace is yours, synapse trust lets it set them"}
		var items []string
		slices.SortStableFunc(l.dropped, func(a, b dropped) int { return cmp.Compare(a.line, b.line) })
		for _, d := range l.dropped {
			if d.path != path {
				continue
			}
			if w.Line == 0 {
				w.Line = d.line
			}
			item := fmt.Sprintf("%s on line %d", d.name, d.line)
			if d.why != "" {
				item += " (" + d.why + ")"
			}
			items = append(items, item)
		}
		w.Message = "not used, since this workspace is not trusted: " + strings.Join(items, ", ")
		l.warn(w)
	}
}

// findSteered notes which providers an untrusted workspace defines, and which
// aliases it points to them.
func (l *loader) findSteered() {
	l.steered.providers, l.steered.aliases = map[string]bool{}, map[string]bool{}
	if l.s.Trusted {
		return
	}
	for _, layer := range l.layers {
		if layer.owned || layer.doc == nil {
			continue
		}
		if providers := layer.doc.root.get("providers"); providers != nil {
			for _, m := range providers.members {
				l.steered.providers[m.key] = true
			}
		}
		if aliases := layer.doc.root.get("model_aliases"); aliases != nil {
			for _, m := range aliases.members {
				if ref, err := synapse.ParseModelRef(m.value.text); err == nil && l.steered.providers[ref.Provider] {
					l.steered.aliases[m.key] = true
				}
			}
		}
	}
}

// guardModel refuses models of a provider that the workspace itself defines.
func guardModel(l *loader, _, model string) (string, bool, string) {
	ref, err := synapse.ParseModelRef(model)
	switch {
	case err == nil && l.steered.providers[ref.Provider]:
		return "", false, fmt.Sprintf("it leads to the provider %s, which the workspace defines", quote(ref.Provider))
	case err != nil && l.steered.aliases[model]:
		return "", false, fmt.Sprintf("the alias %s leads to a provider that the workspace defines", quote(model))
	}
	return model, true, ""
}

func guardModels(l *loader, _, models []string) ([]string, bool, string) {
	kept := []string{}
	why := ""
	for _, m := range models {
		if _, ok, no := guardModel(l, "", m); ok {
			kept = append(kept, m)
		} else {
			why = no
		}
	}
	return kept, why == "" || len(kept) > 0, why
}

// guardSwitch lets the workspace turn off what is on, never the other way.
func guardSwitch(_ *loader, cur, next bool) (bool, bool, string) {
	if next && !cur {
		return cur, false, "it turns on what the user's settings turn off"
	}
	return next, true, ""
}

// guardSubset lets the workspace take names off a list; nil is every name.
func guardSubset(_ *loader, cur, next []string) ([]string, bool, string) {
	for _, name := range next {
		if cur != nil && !slices.Contains(cur, name) {
			return cur, false, fmt.Sprintf("it adds %s to the user's list", quote(name))
		}
	}
	return next, true, ""
}

// guardDirs keeps the directories that lie inside of the workspace.
func guardDirs(l *loader, _, dirs []string) ([]string, bool, string) {
	kept := []string{}
	why := ""
	for _, d := range dirs {
		if l.s.workspace != "" && inside(l.s.workspace, d) {
			kept = append(kept, d)
		} else {
			why = fmt.Sprintf("%s is outside of the workspace", quote(d))
		}
	}
	return kept, why == "" || len(kept) > 0, why
}

// never refuses every value.
func never[T any](_ *loader, cur, _ T) (T, bool, string) { return cur, false, "" }

// resolveDirs makes directories absolute: "~" is the user's home, the rest is
// relative to the workspace.
func (l *loader) resolveDirs(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for _, d := range dirs {
		switch rest, tilde := strings.CutPrefix(d, "~"); {
		case tilde && l.src.Home != "" && (rest == "" || os.IsPathSeparator(rest[0])):
			d = filepath.Join(l.src.Home, rest)
		case !filepath.IsAbs(d) && l.s.workspace != "":
			d = filepath.Join(l.s.workspace, d)
		}
		out = append(out, filepath.Clean(d))
	}
	return out
}

// inside reports whether path is root or below it once links are followed.
func inside(root, path string) bool {
	rel, err := filepath.Rel(realPath(root), realPath(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realPath is the absolute path with links followed, as far as it exists.
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
