package tool

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed find_files.md
var findFilesWords string

// maxFound is how many paths find_files lists.
const maxFound = 200

type findFilesArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty" jsonschema:"directory to look in, default /"`
}

// findFilesDetails is what a find_files result tells programs.
type findFilesDetails struct {
	Files  int `json:"files"`  // that match
	Denied int `json:"denied"` // left out by permission rules
}

func (w *Workspace) findFiles() synapse.Tool {
	t := must(New("find_files", findFilesWords, w.runFindFiles))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	return t
}

func (w *Workspace) runFindFiles(ctx context.Context, in *synapse.Invocation, args findFilesArgs) (*synapse.ToolResult, error) {
	start, err := w.resolve(in, args.Path)
	if err != nil {
		return nil, err
	}
	info, err := start.stat()
	if err != nil {
		return nil, missing(ctx, in, start, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; path takes a directory", start.show())
	}
	want, err := newPathGlob(w, args.Pattern)
	if err != nil {
		return nil, err
	}
	// A pattern that is anchored by accident ("src/*.go" for pkg/src) and one
	// that means a directory are answered too, and said to be.
	deeper, _ := newPathGlob(w, "**/"+strings.TrimPrefix(want.pattern, "/"))
	var files, deep, dirs []string
	denied, looked := 0, 0
	st, err := w.walkTree(ctx, start, func(p place, e entry) {
		rel := within(start.rel, p.rel)
		if e.isDir() {
			if want.match(rel) {
				dirs = append(dirs, p.name+"/")
			}
			return
		}
		looked++
		list := &files
		if !want.match(rel) {
			if !deeper.match(rel) {
				return
			}
			list = &deep
		}
		if !permits(in, p.name) {
			denied++
			return
		}
		*list = append(*list, p.name)
	})
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	listed := files
	switch {
	case len(files) > 0:
	case len(deep) > 0:
		listed = deep
		fmt.Fprintf(&out, "[nothing matches %s right below %s; it matches deeper:]\n", args.Pattern, start.show())
	case len(dirs) > 0:
		listed = dirs
		fmt.Fprintf(&out, "[no file matches %s; these directories do:]\n", args.Pattern)
	default:
		fmt.Fprintf(&out, "[no file matches %s among the %s below %s that git doesn't ignore]\n", args.Pattern, count(looked, "file"), start.show())
	}
	slices.Sort(listed) // a walk has no order
	for _, name := range listed[:min(len(listed), maxFound)] {
		out.WriteString(name)
		out.WriteByte('\n')
	}
	if more := len(listed) - maxFound; more > 0 {
		fmt.Fprintf(&out, "[%d more left out; narrow the pattern or the path]\n", more)
	}
	writeLeftOut(&out, denied, st)
	return &synapse.ToolResult{
		Text:    strings.TrimSuffix(out.String(), "\n"),
		Details: details(findFilesDetails{Files: len(files), Denied: denied}),
	}, nil
}

// writeLeftOut says what a walk did not show.
func writeLeftOut(out *strings.Builder, denied int, st walk) {
	if denied > 0 {
		fmt.Fprintf(out, "[%s left out by permission rules]\n", count(denied, "file"))
	}
	if st.unreadable > 0 {
		fmt.Fprintf(out, "[%s could not be read]\n", count(st.unreadable, "directory"))
	}
	if st.full {
		fmt.Fprintf(out, "[stopped after %d entries; give a path further down]\n", maxWalk)
	}
}

// within returns rel as seen from the directory start.
func within(start, rel string) string {
	if start == "." {
		return rel
	}
	return strings.TrimPrefix(rel, start+"/")
}

// A pathGlob is a glob over paths as models write it.
type pathGlob struct {
	pattern  string
	nameOnly bool // no slash: compared with the name at any depth
	negate   bool // "!" in front, for search_files' glob
}

func newPathGlob(w *Workspace, pattern string) (pathGlob, error) {
	if pattern == "" {
		return pathGlob{}, fmt.Errorf("the pattern is empty; * matches every file")
	}
	g := pathGlob{pattern: pattern}
	if rest, ok := strings.CutPrefix(g.pattern, "!"); ok && rest != "" {
		g.negate, g.pattern = true, rest
	}
	for _, dir := range []string{w.dir, w.realDir} {
		if rest, ok := strings.CutPrefix(g.pattern, dir+"/"); ok && dir != "/" {
			g.pattern = "/" + rest
		}
	}
	g.nameOnly = !strings.Contains(g.pattern, "/")
	if strings.HasSuffix(g.pattern, "/") {
		g.pattern += "**"
	}
	g.pattern = strings.TrimPrefix(strings.TrimPrefix(g.pattern, "./"), "/")
	if !doublestar.ValidatePattern(g.pattern) {
		return pathGlob{}, fmt.Errorf("pattern %q is no glob: a [ or { is not closed; put a \\ before one that is meant as it is", pattern)
	}
	g.pattern = withoutSlash(g.pattern)
	return g, nil
}

// withoutSlash takes the slash out of the classes of a valid glob: what
// separates the names of a path is none of the characters that a class stands
// for, whatever it leaves out or spans.
func withoutSlash(pattern string) string {
	var out strings.Builder
	for rest := pattern; rest != ""; {
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			out.WriteString(rest[:2])
			rest = rest[2:]
		case rest[0] == '[':
			var class string
			class, rest = classWithoutSlash(rest[1:])
			out.WriteString(class)
		default:
			out.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return out.String()
}

// classWithoutSlash rewrites the class that begins a text, behind its bracket,
// and returns it with what follows.
func classWithoutSlash(text string) (class, rest string) {
	var out strings.Builder
	out.WriteByte('[')
	negated := text != "" && (text[0] == '!' || text[0] == '^')
	if negated {
		out.WriteString("!/-/") // a range, so that a hyphen behind it is none
		text = text[1:]
	}
	next := func() rune {
		if len(text) > 1 && text[0] == '\\' {
			text = text[1:]
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		return r
	}
	span := func(from, to rune) {
		if from <= to {
			out.WriteString("\\" + string(from) + "-\\" + string(to))
		}
	}
	for text != "" && text[0] != ']' {
		from := next()
		to := from
		if len(text) > 1 && text[0] == '-' && text[1] != ']' {
			text = text[1:]
			to = max(from, next())
		}
		if negated || from > '/' || to < '/' {
			span(from, to)
			continue
		}
		span(from, '/'-1)
		span('/'+1, to)
	}
	if out.Len() == 1 { // nothing but a slash
		out.WriteString("!\x00-" + string(utf8.MaxRune))
	}
	return out.String() + "]", strings.TrimPrefix(text, "]")
}

func (g pathGlob) match(rel string) bool {
	if g.nameOnly {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(g.pattern, rel) != g.negate
}
