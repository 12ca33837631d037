package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed edit_file.md
var editFileWords string

type editFileArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func (w *Workspace) editFile() synapse.Tool {
	t := must(New("edit_file", editFileWords, w.runEditFile))
	t.Keyed = true
	t.Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	return t
}

func (w *Workspace) runEditFile(ctx context.Context, in *synapse.Invocation, args editFileArgs) (*synapse.ToolResult, error) {
	p, err := w.writable(in, args.Path)
	if err != nil {
		return nil, err
	}
	if args.OldString == args.NewString {
		return nil, errors.New("old_string and new_string are the same; nothing to change")
	}
	defer w.lock(p)()
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		result, err := w.editOnce(ctx, in, p, args)
		// Another process wrote the file between our read and our write: the
		// edit is made again on what it wrote.
		if errors.Is(err, errChanged) && try < 3 {
			continue
		}
		return result, err
	}
}

func (w *Workspace) editOnce(ctx context.Context, in *synapse.Invocation, p place, args editFileArgs) (*synapse.ToolResult, error) {
	old, err := p.snapshot()
	if err != nil {
		return nil, err
	}
	if !old.exists {
		return nil, missing(ctx, in, p, fs.ErrNotExist)
	}
	t, err := old.decodeForEdit(p)
	if err != nil {
		return nil, err
	}
	file := newLFView(t.s)
	from, to := toLF(args.OldString), toLF(args.NewString)
	before := hash(old.data)
	done, err := w.alreadyDone(in.Key, p, before, file.s, to)
	if err != nil {
		return nil, err
	}
	if done {
		return &synapse.ToolResult{
			Text:    fmt.Sprintf("Edited %s: already applied.", p.show()),
			Details: details(fileChange{Path: p.name}),
		}, nil
	}
	at, err := file.find(p, from, to, args.ReplaceAll)
	if err != nil {
		return nil, err
	}
	after := file.replace(at, len(from), to, t.crlf)
	data, err := t.encode(after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write_file turns the file into UTF-8", p.show(), err)
	}
	if err := w.notes.put(in.Key, receipt{Path: p.name, Before: before, After: hash(data)}); err != nil {
		return nil, err
	}
	if err := p.replace(data, old); err != nil {
		return nil, err
	}
	lines := file.lineNumbers(at)
	what := "line " + lines
	if len(at) > 1 {
		what = fmt.Sprintf("%d replacements, lines %s", len(at), lines)
	}
	return &synapse.ToolResult{
		Text:    fmt.Sprintf("Edited %s: %s.", p.show(), what),
		Details: details(newFileChange(p.name, t.s, after, false)),
	}, nil
}

// decodeForEdit returns the file's text, if it can be written back without
// damage to what an edit doesn't touch.
func (old snapshot) decodeForEdit(p place) (text, error) {
	if old.tooLarge {
		return text{}, fmt.Errorf("%s has %s; files over %s are not edited", p.show(), bytesText(old.info.Size()), bytesText(maxText))
	}
	t, err := decode(old.data)
	if err != nil {
		return text{}, fmt.Errorf("%s is %w (%s, %s)", p.show(), err, sniff(old.data), bytesText(old.info.Size()))
	}
	if back, err := t.encode(t.s); err != nil || !bytes.Equal(back, old.data) {
		return text{}, fmt.Errorf("%s is not valid %s; an edit would damage what it can't read", p.show(), t.enc)
	}
	return t, nil
}

// alreadyDone reports whether an earlier run with the same key has made the
// edit. The key alone can't tell: the run may have ended before the write.
func (w *Workspace) alreadyDone(key string, p place, now, file, replacement string) (bool, error) {
	note, found, err := w.notes.find(key)
	if err != nil || !found || note.Path != p.name {
		return false, err
	}
	switch now {
	case note.After:
		return true, nil
	case note.Before:
		return false, nil
	default: // someone else has changed the file since
		return replacement != "" && strings.Contains(file, replacement), nil
	}
}

// An lfView is a text with LF line ends, and the way back to the positions of
// the original: models write LF, whatever the file has.
type lfView struct {
	s        string
	original string
	removed  []int // positions in s of the LFs that a CR stood before
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func newLFView(original string) lfView {
	v := lfView{s: toLF(original), original: original}
	if len(v.s) == len(original) {
		return v
	}
	v.removed = make([]int, 0, len(original)-len(v.s))
	for i := 0; i+1 < len(original); i++ {
		if original[i] == '\r' && original[i+1] == '\n' {
			v.removed = append(v.removed, i-len(v.removed))
		}
	}
	return v
}

// back maps a position in s to the original. An LF's own position maps to the
// CR before it.
func (v lfView) back(pos int) int {
	return pos + sort.SearchInts(v.removed, pos)
}

// find returns where old stands, or an error that says how to get it right.
func (v lfView) find(p place, old, replacement string, all bool) ([]int, error) {
	if old == "" {
		if v.s == "" {
			return []int{0}, nil
		}
		return nil, fmt.Errorf("old_string is empty and %s is not; give the text to replace, or use write_file for the whole file", p.show())
	}
	var at []int
	for pos := 0; ; {
		i := strings.Index(v.s[pos:], old)
		if i < 0 {
			break
		}
		at = append(at, pos+i)
		pos += i + len(old)
	}
	switch {
	case len(at) == 0:
		return nil, errors.New(explainMiss(p, v.s, old, replacement, editTerms))
	case len(at) > 1 && !all:
		return nil, fmt.Errorf("old_string stands %d times in %s (lines %s); add lines around it to make it unique, or set replace_all", len(at), p.show(), v.lineNumbers(at))
	}
	return at, nil
}

// replace returns the original with replacement at each position of s. Line
// ends are those of the replaced lines, or of the file.
func (v lfView) replace(at []int, n int, replacement string, crlf bool) string {
	var out strings.Builder
	out.Grow(len(v.original) + len(at)*max(0, len(replacement)-n))
	done := 0
	for _, pos := range at {
		from, to := v.back(pos), v.back(pos+n)
		out.WriteString(v.original[done:from])
		replaced := v.original[from:to]
		useCRLF := crlf
		if strings.Contains(replaced, "\n") {
			useCRLF = strings.Contains(replaced, "\r\n")
		}
		if useCRLF {
			out.WriteString(strings.ReplaceAll(replacement, "\n", "\r\n"))
		} else {
			out.WriteString(replacement)
		}
		done = to
	}
	out.WriteString(v.original[done:])
	return out.String()
}

// lineNumbers lists the lines of positions, at most ten.
func (v lfView) lineNumbers(at []int) string {
	const most = 10
	var parts []string
	line, counted := 1, 0
	for i, pos := range at {
		if i == most {
			parts = append(parts, "…")
			break
		}
		line += strings.Count(v.s[counted:pos], "\n")
		counted = pos
		parts = append(parts, fmt.Sprint(line))
	}
	return strings.Join(parts, ", ")
}
