package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed patch.md
var patchWords string

type patchArgs struct {
	Patch string `json:"patch"`
}

// patchDetails is what a patch result tells programs.
type patchDetails struct {
	Files []fileChange `json:"files"`
}

// maxPatchDiffs bounds the diffs in the details of one patch, in bytes.
const maxPatchDiffs = 256 << 10

func (w *Workspace) patch() synapse.Tool {
	t := must(New("patch", patchWords, w.runPatch))
	t.Keyed = true
	t.Subject = policy.Subject{Kind: policy.SubjectPath}
	t.Subjects = patchSubjects
	return t
}

// patchSubjects lists every path that a patch names, so that the rules for
// each of them are asked.
func patchSubjects(raw json.RawMessage) ([]string, error) {
	var args patchArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, errors.New(argumentError(err))
	}
	files, err := parsePatch(args.Patch)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
		if f.to != "" {
			paths = append(paths, f.to)
		}
	}
	return paths, nil
}

func (w *Workspace) runPatch(ctx context.Context, in *synapse.Invocation, args patchArgs) (*synapse.ToolResult, error) {
	files, err := parsePatch(args.Patch)
	if err != nil {
		return nil, err
	}
	changes, err := w.planPatch(in, files)
	if err != nil {
		return nil, err
	}
	defer w.lockAll(changes)()
	for try := 1; ; try++ {
		result, err := w.patchOnce(ctx, in, changes)
		if errors.Is(err, errChanged) && try < 3 {
			continue
		}
		return result, err
	}
}

// A patchChange is what a patch comes to for one file.
type patchChange struct {
	file  patchFile
	p, to place // to is where it goes, p itself unless it moves
	// What follows is found anew at each try.
	before, there snapshot // of p, and of to when it moves
	data          []byte   // the new content, unless it is deleted or only moved
	edited        bool
	done          bool // by an earlier run with the same key
	placed        bool // an earlier run got as far as writing what moves
	note          string
	details       fileChange
}

func (c *patchChange) moves() bool { return c.file.to != "" }

// places reports whether a file has to be put at c.to.
func (c *patchChange) places() bool { return !c.done && !c.placed && (c.edited || c.moves()) }

// planPatch resolves the paths of a patch and joins what is about one file.
func (w *Workspace) planPatch(in *synapse.Invocation, files []patchFile) ([]*patchChange, error) {
	var changes []*patchChange
	var problems []error
	byName := make(map[string]*patchChange)
	for _, f := range files {
		p, err := w.patchPlace(in, f, f.path)
		to := p
		if err == nil && f.to != "" {
			to, err = w.patchPlace(in, f, f.to)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		// Several parts about one file are one, as long as each only edits.
		if c := byName[p.name]; c != nil && c.file.op == patchUpdate && f.op == patchUpdate && !c.moves() && f.to == "" {
			c.file.hunks = append(slices.Clone(c.file.hunks), f.hunks...)
			continue
		}
		c := &patchChange{file: f, p: p, to: to}
		names := []string{p.name}
		if c.moves() {
			names = append(names, to.name)
		}
		for _, name := range names {
			if byName[name] != nil {
				problems = append(problems, fmt.Errorf("line %d of the patch: %s has a part of its own already", f.line, showPath(name)))
			}
			byName[name] = c
		}
		changes = append(changes, c)
	}
	return changes, joinProblems(problems)
}

func (w *Workspace) patchPlace(in *synapse.Invocation, f patchFile, arg string) (place, error) {
	p, err := w.writable(in, arg)
	if err != nil {
		return place{}, fmt.Errorf("line %d of the patch: %w", f.line, err)
	}
	if f.op == patchAdd || f.op == patchUpdate && f.to == "" {
		return p, nil
	}
	// A file can be edited through a link; deleted or moved would be another
	// than the one named.
	named, err := w.locate(arg)
	if err != nil {
		return place{}, err
	}
	if info, err := named.root.Lstat(filepath.FromSlash(named.rel)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return place{}, fmt.Errorf("line %d of the patch: %s is a symbolic link to %s; name that", f.line, named.show(), p.show())
	}
	return p, nil
}

// joinProblems makes one error of all that is wrong with a patch, so that it
// can be put right at once.
func joinProblems(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	const most = 10
	var out strings.Builder
	out.WriteString("nothing was changed")
	for i, err := range problems {
		if i == most {
			fmt.Fprintf(&out, "\n%s", count(len(problems)-most, "more problem"))
			break
		}
		sep := "\n"
		if len(problems) == 1 {
			sep = ": "
		}
		out.WriteString(sep + err.Error())
	}
	return errors.New(out.String())
}

// lockAll keeps other writes of the files out until the function it returns is
// called.
func (w *Workspace) lockAll(changes []*patchChange) (unlock func()) {
	var slots []int
	for _, c := range changes {
		for _, p := range []place{c.p, c.to} {
			slots = append(slots, int(maphash.String(w.seed, p.name)%uint64(len(w.locks))))
		}
	}
	// In one order everywhere, and each once: no two patches can wait for
	// each other.
	slices.Sort(slots)
	slots = slices.Compact(slots)
	for _, i := range slots {
		w.locks[i].Lock()
	}
	return func() {
		for _, i := range slots {
			w.locks[i].Unlock()
		}
	}
}

// patchOnce works the whole patch out, and only then changes anything.
func (w *Workspace) patchOnce(ctx context.Context, in *synapse.Invocation, changes []*patchChange) (*synapse.ToolResult, error) {
	note, _, err := w.notes.find(in.Key)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.prepare(ctx, in, note); err != nil {
			problems = append(problems, err)
		}
	}
	if err := joinProblems(problems); err != nil {
		return nil, err
	}
	if err := w.noteChanges(in.Key, changes); err != nil {
		return nil, err
	}
	if err := commitPatch(changes); err != nil {
		return nil, err
	}
	return patchResult(changes), nil
}

// prepare finds out what the file is now and what it will be.
func (c *patchChange) prepare(ctx context.Context, in *synapse.Invocation, note receipt) error {
	c.data, c.edited, c.done, c.placed, c.note, c.details = nil, false, false, false, "", fileChange{Path: c.to.name}
	var err error
	if c.before, err = c.p.snapshot(); err != nil {
		return err
	}
	c.there = c.before
	if c.moves() {
		if c.there, err = c.to.snapshot(); err != nil {
			return err
		}
	}
	if c.before.tooLarge {
		return fmt.Errorf("%s has %s; files over %s are not patched", c.p.show(), bytesText(c.before.info.Size()), bytesText(maxText))
	}
	if err := c.resume(note); err != nil || c.done || c.placed {
		return err
	}
	if c.file.op == patchAdd {
		return c.prepareAdd()
	}
	if !c.before.exists {
		return missing(ctx, in, c.p, fs.ErrNotExist)
	}
	if c.moves() && c.there.exists {
		return fmt.Errorf("%s can't be moved to %s, which exists", c.p.show(), c.to.show())
	}
	if c.file.op == patchDelete {
		c.details.Deleted = true
	}
	if c.moves() {
		c.details.From = c.p.name
	}
	if len(c.file.hunks) == 0 {
		return c.describeWhole()
	}
	return c.prepareEdit()
}

// resume finds out what an earlier run with the same key has done to the file:
// nothing, all of it, or half of a move. The key alone can't tell, since that
// run may have ended at any point after its note.
func (c *patchChange) resume(note receipt) error {
	was, noted := note.file(c.p.name)
	now := state(c.before)
	if !noted || now == was.Before && !c.moves() {
		return nil
	}
	if !c.moves() {
		switch {
		case now == was.After:
			c.done = true
		case c.file.op == patchDelete:
			return fmt.Errorf("%s was changed by someone else meanwhile; read it again", c.p.show())
		case c.file.op == patchUpdate:
			// Somebody else may have gone on from the edited file.
			t, err := decode(c.before.data)
			c.done = err == nil && holdsNewSides(t.s, c.file.hunks)
		}
		return nil
	}
	target, _ := note.file(c.to.name)
	switch {
	case now == was.After && c.there.exists: // whatever has become of it since
		c.done = true
	case now == was.Before && c.there.exists && state(c.there) == target.After:
		c.placed = true
		c.details.From = c.p.name
	}
	return nil
}

// describeWhole fills in the details of a file that is deleted, or moved as it
// is: nothing of it needs to be text.
func (c *patchChange) describeWhole() error {
	if t, err := decode(c.before.data); err == nil && c.file.op == patchDelete {
		c.details.compare(t.s, "")
	}
	return nil
}

func (c *patchChange) prepareAdd() error {
	data := []byte(c.file.content)
	if c.before.exists {
		if !bytes.Equal(c.before.data, data) {
			return fmt.Errorf("%s exists already; give an update of it, or delete it first", c.p.show())
		}
		c.done, c.note = true, " (it has this content already)"
		return nil
	}
	c.data, c.edited = data, true
	c.details.Created = true
	c.details.compare("", c.file.content)
	return nil
}

func (c *patchChange) prepareEdit() error {
	t, err := c.before.decodeForEdit(c.p)
	if err != nil {
		return err
	}
	fit := &patchFit{p: c.p, text: t.s, lines: toFileLines(t.s)}
	after, fits, problems := fit.applyHunks(c.file.hunks, t.crlf)
	if len(problems) > 0 {
		var all []string
		for _, p := range problems {
			all = append(all, fmt.Sprintf("%s: %s", c.p.show(), p))
		}
		return errors.New(strings.Join(all, "\n"))
	}
	c.details.compare(t.s, after)
	if c.file.op == patchDelete {
		if after != "" {
			return fmt.Errorf("%s has more lines than the patch deletes; it may have changed since", c.p.show())
		}
		return nil
	}
	if c.data, err = t.encode(after); err != nil {
		return fmt.Errorf("%s: %w; write_file turns the file into UTF-8", c.p.show(), err)
	}
	c.edited = true
	c.note = ": " + describeFits(fits)
	return nil
}

// holdsNewSides reports whether the new text of each hunk stands in the file.
func holdsNewSides(file string, hunks []hunk) bool {
	file = toLF(file)
	for i := range hunks {
		text := strings.Join(hunks[i].side('-'), "\n")
		if text == "" || !strings.Contains(file, text) {
			return false
		}
	}
	return true
}

// describeFits tells the lines at which hunks were applied, and which of them
// fit but for white space.
func describeFits(fits []hunkFit) string {
	lines := make([]int, len(fits))
	blanks := false
	for i, f := range fits {
		lines[i] = f.at
		blanks = blanks || f.blanks
	}
	noun := "line"
	if len(lines) > 1 {
		noun = "lines"
	}
	s := fmt.Sprintf("%s %s", noun, lineList(lines))
	if blanks {
		s += " (white space differed from the patch; the file's was kept)"
	}
	return s
}

// state is a file's content in a receipt, "" for a file that isn't there.
func state(s snapshot) string {
	if !s.exists {
		return absent
	}
	return hash(s.data)
}

// noteChanges notes what is about to be done, under the key of the call.
func (w *Workspace) noteChanges(key string, changes []*patchChange) error {
	var note receipt
	for _, c := range changes {
		after := absent
		switch {
		case c.edited:
			after = hash(c.data)
		case c.moves():
			after = state(c.before)
		}
		if c.placed {
			after = state(c.there)
		}
		switch {
		case c.done:
			// It is what it should be: so it was, and so it will be.
			note.Files = append(note.Files, receipt{Path: c.p.name, After: state(c.before)})
			if c.moves() {
				note.Files = append(note.Files, receipt{Path: c.to.name, After: state(c.there)})
			}
		case c.moves():
			note.Files = append(note.Files,
				receipt{Path: c.p.name, Before: state(c.before), After: absent},
				receipt{Path: c.to.name, Before: absent, After: after})
		default:
			note.Files = append(note.Files, receipt{Path: c.p.name, Before: state(c.before), After: after})
		}
	}
	return w.notes.put(key, note)
}

// patchResult tells what was done to each file.
func patchResult(changes []*patchChange) *synapse.ToolResult {
	var out strings.Builder
	var d patchDetails
	diffs := 0
	for _, c := range changes {
		switch {
		case c.done && c.note == "":
			fmt.Fprintf(&out, "%s: already applied.\n", c.to.show())
		case c.file.op == patchAdd:
			fmt.Fprintf(&out, "Created %s: %s%s.\n", c.p.show(), count(len(diffLines(c.file.content)), "line"), c.note)
		case c.file.op == patchDelete:
			fmt.Fprintf(&out, "Deleted %s.\n", c.p.show())
		case c.moves():
			fmt.Fprintf(&out, "Moved %s to %s%s.\n", c.p.show(), c.to.show(), c.note)
		default:
			fmt.Fprintf(&out, "Updated %s%s.\n", c.p.show(), c.note)
		}
		if diffs += len(c.details.Diff); diffs > maxPatchDiffs {
			c.details.Diff = ""
		}
		d.Files = append(d.Files, c.details)
	}
	return &synapse.ToolResult{Text: strings.TrimSuffix(out.String(), "\n"), Details: details(d)}
}

// commitPatch does what has been prepared. New contents are written beside the
// files first; when a step fails after that, those before it are undone.
func commitPatch(changes []*patchChange) (err error) {
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		var stuck []error
		for _, step := range slices.Backward(undo) {
			stuck = append(stuck, step())
		}
		if stuckErr := errors.Join(stuck...); stuckErr != nil {
			err = fmt.Errorf("%w; and what had been changed before could not be put back: %w", err, stuckErr)
		} else {
			err = fmt.Errorf("nothing was changed: %w", err)
		}
	}()
	staged := make([]place, len(changes))
	for i, c := range changes {
		if !c.places() {
			continue
		}
		made, err := c.to.makeParents()
		undo = append(undo, func() error { removeEmpty(made); return nil })
		if err != nil || !c.edited {
			if err != nil {
				return err
			}
			continue
		}
		if staged[i], err = c.to.stage(c.data, c.before.info); err != nil {
			return err
		}
		temp := staged[i]
		// Gone already when it has taken its place.
		undo = append(undo, func() error { _ = temp.remove(); return nil })
	}
	for i, c := range changes {
		if !c.places() {
			continue
		}
		if c.p.changed(c.before) {
			return fmt.Errorf("%s: %w", c.p.show(), errChanged)
		}
		if c.edited {
			err = c.to.moveOver(staged[i], c.there)
		} else {
			err = c.to.moveOver(c.p, c.there)
		}
		if err != nil {
			return err
		}
		undo = append(undo, c.undoWrite)
	}
	for _, c := range changes {
		if c.done || c.file.op != patchDelete && !c.placed && !(c.moves() && c.edited) {
			continue
		}
		if c.p.changed(c.before) {
			return fmt.Errorf("%s: %w", c.p.show(), errChanged)
		}
		if err := c.p.remove(); err != nil {
			return err
		}
		undo = append(undo, func() error { return c.p.restore(c.before) })
	}
	return nil
}

// undoWrite takes back that the file got its new content or place.
func (c *patchChange) undoWrite() error {
	switch {
	case c.moves() && !c.edited:
		return c.p.moveOver(c.to, snapshot{})
	case c.there.exists:
		return c.to.restore(c.there)
	default:
		return c.to.remove()
	}
}

// restore writes what the file held, over whatever is there.
func (p place) restore(old snapshot) error {
	temp, err := p.stage(old.data, old.info)
	if err != nil {
		return err
	}
	if err := p.root.Rename(filepath.FromSlash(temp.rel), filepath.FromSlash(p.rel)); err != nil {
		_ = temp.remove() // the error that matters is told
		return p.writeError(err)
	}
	return nil
}

func (p place) remove() error {
	if err := p.root.Remove(filepath.FromSlash(p.rel)); err != nil {
		return fmt.Errorf("%s: delete: %w", p.show(), plainError(err))
	}
	return nil
}

// makeParents makes the directories that p lies in, and returns those that it
// made, outermost first.
func (p place) makeParents() (made []place, err error) {
	for dir := path.Dir(p.rel); dir != "."; dir = path.Dir(dir) {
		q := p.at(dir)
		if _, err := q.root.Lstat(filepath.FromSlash(q.rel)); err == nil {
			break
		}
		made = append(made, q)
	}
	slices.Reverse(made)
	if len(made) == 0 {
		return nil, nil
	}
	if err := p.root.MkdirAll(filepath.FromSlash(path.Dir(p.rel)), 0o777); err != nil {
		return made, fmt.Errorf("%s: make its directory: %w", p.show(), plainError(err))
	}
	return made, nil
}

// removeEmpty removes directories that were made for nothing. One that is no
// longer empty stays.
func removeEmpty(made []place) {
	for _, dir := range slices.Backward(made) {
		if dir.remove() != nil {
			return
		}
	}
}
