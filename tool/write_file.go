package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed write_file.md
var writeFileWords string

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (w *Workspace) writeFile() synapse.Tool {
	t := must(New("write_file", writeFileWords, w.runWriteFile))
	t.Keyed = true // the same content again is no second effect
	t.Subject = policy.Subject{Kind: policy.SubjectPath, Args: []string{"path"}}
	return t
}

func (w *Workspace) runWriteFile(ctx context.Context, in *synapse.Invocation, args writeFileArgs) (*synapse.ToolResult, error) {
	p, err := w.writable(in, args.Path)
	if err != nil {
		return nil, err
	}
	defer w.lock(p)()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	old, err := p.snapshot()
	if err != nil {
		return nil, err
	}
	content, note := args.Content, ""
	t := text{enc: encUTF8}
	var before string
	if old.exists {
		// Of a binary file or one too large to hold, nothing is kept.
		if old.tooLarge {
			note = " (it was " + bytesText(old.info.Size()) + ")"
		} else if t, err = decode(old.data); err != nil {
			t = text{enc: encUTF8}
			note = " (it was binary)"
		} else {
			before = t.s
		}
		if t.bom {
			content = strings.TrimPrefix(content, "\ufeff")
		}
		if t.crlf {
			content = strings.ReplaceAll(strings.ReplaceAll(content, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	data, err := t.encode(content)
	if err != nil {
		// The whole file is new, so its encoding may be.
		note = fmt.Sprintf(" (it is UTF-8 now; %s)", err)
		t.enc, t.bom = encUTF8, false
		data = []byte(content)
	} else if kept := t.unlike(); kept != "" && note == "" {
		note = fmt.Sprintf(" (kept: %s)", kept)
	}
	lines := count(len(diffLines(content)), "line")
	switch {
	case old.exists && !old.tooLarge && bytes.Equal(data, old.data):
		return &synapse.ToolResult{
			Text:    fmt.Sprintf("%s has this content already (%s).", p.show(), lines),
			Details: details(fileChange{Path: p.name}),
		}, nil
	case !old.exists:
		if dir := path.Dir(p.rel); dir != "." {
			if err := p.root.MkdirAll(filepath.FromSlash(dir), 0o777); err != nil {
				return nil, fmt.Errorf("%s: make its directory: %w", p.show(), plainError(err))
			}
		}
	}
	if err := p.replace(data, old); err != nil {
		return nil, err
	}
	verb := "Overwrote"
	if !old.exists {
		verb = "Created"
	}
	return &synapse.ToolResult{
		Text:    fmt.Sprintf("%s %s: %s%s.", verb, p.show(), lines, note),
		Details: details(newFileChange(p.name, before, content, !old.exists)),
	}, nil
}

// writable resolves a path that is to be written.
func (w *Workspace) writable(in *synapse.Invocation, arg string) (place, error) {
	p, err := w.resolve(in, arg)
	if err != nil {
		return place{}, err
	}
	if p.readOnly {
		return place{}, fmt.Errorf("%s can't be written: what is below %s is only for reading", p.show(), p.prefix)
	}
	if p.rel == "." {
		return place{}, fmt.Errorf("%s is the workspace's root, not a file", p.show())
	}
	if strings.HasSuffix(arg, "/") {
		return place{}, fmt.Errorf("%q names a directory; want a file", arg)
	}
	return p, nil
}

// A snapshot is a file as it was before a change.
type snapshot struct {
	exists   bool
	tooLarge bool // data is not filled in
	data     []byte
	info     fs.FileInfo
}

// snapshot reads the file at p, which may not exist yet.
func (p place) snapshot() (snapshot, error) {
	f, info, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return snapshot{}, nil
	}
	if err != nil {
		return snapshot{}, err
	}
	defer f.Close()
	if info.IsDir() {
		return snapshot{}, fmt.Errorf("%s is a directory", p.show())
	}
	if info.Size() > maxText {
		return snapshot{exists: true, tooLarge: true, info: info}, nil
	}
	data, err := readUpTo(f, info.Size(), maxText)
	if err != nil {
		return snapshot{}, fmt.Errorf("%s: %w", p.show(), plainError(err))
	}
	return snapshot{exists: true, data: data, info: info}, nil
}

// changed reports whether the file at p is no longer what old was taken of.
func (p place) changed(old snapshot) bool {
	info, err := p.root.Lstat(filepath.FromSlash(p.rel))
	if !old.exists {
		return err == nil
	}
	return err != nil || !os.SameFile(info, old.info) || info.Size() != old.info.Size() || !info.ModTime().Equal(old.info.ModTime())
}

// tempPrefix begins the names of files that are about to replace another.
// Walks pass them over.
const tempPrefix = ".synapse-tmp-"

// errChanged says that somebody else wrote the file in the meantime.
var errChanged = errors.New("the file was changed by someone else meanwhile; read it again")

// replace puts data in the place of the file that old was taken of, in one
// step: whoever reads sees the old content or the new one. Mode and, where
// allowed, owner are kept.
func (p place) replace(data []byte, old snapshot) error {
	temp, err := p.stage(data, old.info)
	if err != nil {
		return err
	}
	return p.commit(temp, old)
}

// stage writes data to a file beside p that is to take its place. Mode and
// owner are those of like, which may be nil.
func (p place) stage(data []byte, like fs.FileInfo) (staged place, err error) {
	fail := func(err error) (place, error) { return place{}, p.writeError(err) }
	temp := p.at(path.Join(path.Dir(p.rel), fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64())))
	f, err := p.root.OpenFile(filepath.FromSlash(temp.rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err != nil {
			_ = p.root.Remove(filepath.FromSlash(temp.rel)) // the error that matters is told
		}
	}()
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fail(err)
	}
	if like != nil {
		keepOwner(f, like)
		// Through the open file: a link swapped in can't redirect it.
		if err := f.Chmod(like.Mode().Perm()); err != nil {
			f.Close()
			return fail(err)
		}
	}
	if err := f.Close(); err != nil {
		return fail(err)
	}
	return temp, nil
}

// commit puts the staged file in the place of the one that old was taken of.
// The staged file is gone in any case.
func (p place) commit(temp place, old snapshot) error {
	err := p.moveOver(temp, old)
	if err != nil {
		_ = p.root.Remove(filepath.FromSlash(temp.rel)) // the error that matters is told
	}
	return err
}

func (p place) moveOver(temp place, old snapshot) error {
	if p.changed(old) {
		return fmt.Errorf("%s: %w", p.show(), errChanged)
	}
	if err := p.root.Rename(filepath.FromSlash(temp.rel), filepath.FromSlash(p.rel)); err != nil {
		return p.writeError(err)
	}
	return nil
}

func (p place) writeError(err error) error {
	return fmt.Errorf("%s: write: %w", p.show(), plainError(err))
}
