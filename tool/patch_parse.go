package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// patchOp is what a patch does to a file.
type patchOp byte

const (
	patchUpdate patchOp = 'M'
	patchAdd    patchOp = 'A'
	patchDelete patchOp = 'D'
)

// A patchFile is the part of a patch that is about one file.
type patchFile struct {
	op    patchOp
	path  string
	to    string // the new path of a file that moves, else ""
	hunks []hunk // of an update; of a deletion those that hold all its lines, if any
	// content is that of a new file.
	content string
	line    int // in the patch, from 1
}

// A hunk replaces lines of a file, which it finds by the lines themselves.
type hunk struct {
	line     int      // in the patch, from 1
	start    int      // the line of the file that the header names, from 1; 0 when it names none
	numbered bool     // the header has line numbers
	anchors  []string // lines above the hunk, outermost first
	lines    []hunkLine
	atEnd    bool // the hunk ends where the file ends
	// openOld and openNew say that the file has no line end after the last
	// line of the old or the new side.
	openOld, openNew bool
	crs              int // lines of the new side with a CR at their end
	// oldLeft and newLeft count the lines that the header promises and that
	// have not been read yet.
	oldLeft, newLeft int
}

// A hunkLine is one line of a hunk: ' ' for context, '-' or '+'.
type hunkLine struct {
	sign byte
	text string
}

// side returns the lines of the old side (without '+') or the new one.
func (h *hunk) side(without byte) []string {
	var lines []string
	for _, l := range h.lines {
		if l.sign != without {
			lines = append(lines, l.text)
		}
	}
	return lines
}

func (h *hunk) changes() bool {
	for _, l := range h.lines {
		if l.sign != ' ' {
			return true
		}
	}
	return false
}

// The most that one patch may hold.
const (
	maxPatch      = 4 << 20 // bytes
	maxPatchFiles = 500
)

// A patchParser reads a patch line by line.
type patchParser struct {
	lines []string
	at    int // the line that is next
	files []patchFile
}

// parsePatch reads a patch of either form. Its errors name a line of it.
func parsePatch(s string) ([]patchFile, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("the patch is empty")
	}
	if len(s) > maxPatch {
		return nil, fmt.Errorf("the patch has %s; at most %s are taken", bytesText(int64(len(s))), bytesText(maxPatch))
	}
	if strings.ContainsRune(s, 0) {
		return nil, errors.New("the patch holds a NUL byte; binary files are not patched")
	}
	if strings.Count(s, "\n") == strings.Count(s, "\r\n") {
		s = toLF(s) // all of it: then it says nothing of the files
	}
	p := &patchParser{lines: strings.Split(strings.TrimSuffix(s, "\n"), "\n")}
	parse := p.unified
	for i, l := range p.lines {
		if envelopeHeader(l) {
			p.at, parse = i, p.envelope
			break
		}
		if strings.HasPrefix(l, "diff --git ") || strings.HasPrefix(l, "--- ") {
			break
		}
	}
	if err := parse(); err != nil {
		return nil, err
	}
	switch n := len(p.files); {
	case n == 0:
		return nil, errors.New(`no file is named in the patch; it takes a unified diff ("--- a/f", "+++ b/f", "@@ -1,3 +1,4 @@"), or "*** Begin Patch" with "*** Update File: f"`)
	case n > maxPatchFiles:
		return nil, fmt.Errorf("the patch is about %d files; at most %d are taken", n, maxPatchFiles)
	}
	return p.files, nil
}

// fail returns an error about the line with that index.
func (p *patchParser) fail(index int, format string, a ...any) error {
	return fmt.Errorf("line %d of the patch: %s", index+1, fmt.Sprintf(format, a...))
}

// quote returns a line for a message.
func quote(line string) string { return strconv.Quote(cut(line, 100)) }

// The headers of the envelope form.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	addFile    = "*** Add File:"
	deleteFile = "*** Delete File:"
	updateFile = "*** Update File:"
	moveTo     = "*** Move to:"
)

// envelopeHeader reports whether a line opens something in the envelope form.
func envelopeHeader(line string) bool {
	line = strings.TrimRight(line, " \t\r")
	return line == beginPatch || line == endPatch || hasPrefix(line, addFile, deleteFile, updateFile)
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func (p *patchParser) envelope() error {
	if strings.TrimRight(p.lines[p.at], " \t\r") == beginPatch {
		p.at++
	}
	for ; p.at < len(p.lines); p.at++ {
		line := strings.TrimRight(p.lines[p.at], " \t\r")
		var err error
		switch {
		case line == "":
		case line == endPatch:
			return nil
		case strings.HasPrefix(line, addFile):
			err = p.envelopeAdd(line[len(addFile):])
		case strings.HasPrefix(line, deleteFile):
			err = p.add(patchFile{op: patchDelete, path: strings.TrimSpace(line[len(deleteFile):]), line: p.at + 1})
		case strings.HasPrefix(line, updateFile):
			err = p.envelopeUpdate(line[len(updateFile):])
		default:
			err = p.fail(p.at, "%s is in no file; want *** Update File:, *** Add File:, *** Delete File: or *** End Patch", quote(line))
		}
		if err != nil {
			return err
		}
	}
	return p.fail(len(p.lines)-1, "the patch breaks off without *** End Patch; send it whole")
}

// add takes a file that has been read.
func (p *patchParser) add(f patchFile) error {
	switch {
	case f.path == "":
		return fmt.Errorf("line %d of the patch: the file's path is missing", f.line)
	case f.op == patchUpdate && f.to == "" && len(f.hunks) == 0:
		return fmt.Errorf("line %d of the patch: nothing is changed in %s", f.line, f.path)
	case f.to == f.path:
		return fmt.Errorf("line %d of the patch: %s is moved to where it is", f.line, f.path)
	}
	for i := range f.hunks {
		if h := &f.hunks[i]; !h.changes() {
			return fmt.Errorf("line %d of the patch: the hunk changes nothing: it has no line that begins with - or +", h.line)
		}
	}
	p.files = append(p.files, f)
	return nil
}

func (p *patchParser) envelopeAdd(path string) error {
	f := patchFile{op: patchAdd, path: strings.TrimSpace(path), line: p.at + 1}
	var added hunk
	for p.at+1 < len(p.lines) {
		line := p.lines[p.at+1]
		if envelopeHeader(line) {
			break
		}
		p.at++
		switch {
		case strings.HasPrefix(line, "+") && added.take(line):
		case strings.TrimSpace(line) == "" && p.onlyBlanksFollow():
		case strings.TrimRight(line, " \t\r") == endOfFile:
		default:
			return p.fail(p.at, "%s: each line of a new file begins with +", quote(line))
		}
	}
	f.content = newContent(&added)
	return p.add(f)
}

// onlyBlanksFollow reports whether the next line with something in it is a
// header.
func (p *patchParser) onlyBlanksFollow() bool {
	for _, l := range p.lines[p.at:] {
		if strings.TrimSpace(l) != "" {
			return envelopeHeader(l)
		}
	}
	return true
}

// newContent returns what a new file holds. Its lines end in LF, unless the
// patch has CR at the end of each.
func newContent(h *hunk) string {
	lines := h.side('-')
	if len(lines) == 0 {
		return ""
	}
	var out strings.Builder
	for i, l := range lines {
		out.WriteString(l)
		switch {
		case i == len(lines)-1 && h.openNew:
		case h.crs == len(lines):
			out.WriteString("\r\n")
		default:
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func (p *patchParser) envelopeUpdate(path string) error {
	f := patchFile{op: patchUpdate, path: strings.TrimSpace(path), line: p.at + 1}
	if p.at+1 < len(p.lines) && strings.HasPrefix(p.lines[p.at+1], moveTo) {
		p.at++
		if f.to = strings.TrimSpace(p.lines[p.at][len(moveTo):]); f.to == "" {
			return p.fail(p.at, "the path to move to is missing")
		}
	}
	for p.at+1 < len(p.lines) && !envelopeHeader(p.lines[p.at+1]) {
		p.at++
		if strings.TrimSpace(p.lines[p.at]) == "" && p.onlyBlanksFollow() {
			continue
		}
		h := hunk{line: p.at + 1}
		for ; p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
			if err := p.hunkHeader(&h); err != nil {
				return err
			}
		}
		h.oldLeft, h.newLeft = 0, 0 // counts of models are guesses; the headers tell where a hunk ends
		for ; p.at < len(p.lines); p.at++ {
			line := p.lines[p.at]
			if envelopeHeader(line) || strings.HasPrefix(line, "@@") {
				break
			}
			if strings.TrimRight(line, " \t\r") == endOfFile {
				h.atEnd = true
				p.at++
				break
			}
			if !h.take(line) {
				return p.fail(p.at, "%s begins with neither a blank (context) nor - nor +", quote(line))
			}
		}
		p.at-- // the loop above goes on with the line that ended the hunk
		h.trimBlanks()
		f.hunks = append(f.hunks, h)
	}
	return p.add(f)
}

// take adds a line to the hunk, and reports false for one that is none. An
// empty line is an empty line of context whose blank was lost.
func (h *hunk) take(line string) bool {
	line, cr := strings.CutSuffix(line, "\r")
	if line == "" {
		h.lines = append(h.lines, hunkLine{' ', ""})
		h.oldLeft--
		h.newLeft--
		return true
	}
	switch line[0] {
	case ' ', '-', '+':
		h.lines = append(h.lines, hunkLine{line[0], line[1:]})
		if line[0] != '+' {
			h.oldLeft--
		}
		if line[0] != '-' {
			h.newLeft--
			if cr {
				h.crs++
			}
		}
	case '\\': // "\ No newline at end of file"
		if len(h.lines) == 0 {
			return false
		}
		last := h.lines[len(h.lines)-1].sign
		h.openOld = h.openOld || last != '+'
		h.openNew = h.openNew || last != '-'
	default:
		return false
	}
	return true
}

// trimBlanks drops empty lines at the hunk's end that stand for what separates
// it from the next: as context they say nothing.
func (h *hunk) trimBlanks() {
	for n := len(h.lines); n > 0 && h.lines[n-1] == (hunkLine{' ', ""}); n-- {
		h.lines = h.lines[:n-1]
	}
}

// hunkHeader reads the line "@@ …" at p.at: with line numbers, with a line to
// look for, or with nothing.
func (p *patchParser) hunkHeader(h *hunk) error {
	line := strings.TrimRight(p.lines[p.at], " \t\r")
	if strings.HasPrefix(line, "@@@") {
		return p.fail(p.at, "the diff of a merge, with several old sides, is not taken")
	}
	rest := line[len("@@"):]
	if ranges, _, ok := strings.Cut(rest, "@@"); ok && strings.HasPrefix(rest, " -") {
		var okOld, okNew bool
		old, now, _ := strings.Cut(strings.TrimSpace(ranges), " ")
		h.start, h.oldLeft, okOld = hunkNumbers(old, "-")
		_, h.newLeft, okNew = hunkNumbers(now, "+")
		if okOld && okNew {
			h.numbered = true
			return nil
		}
		h.start, h.oldLeft, h.newLeft = 0, 0, 0
	}
	anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(rest, " "), "@@"))
	if anchor == "" || anchor == "..." || anchor == "…" || strings.HasPrefix(anchor, "-") && strings.Contains(anchor, " +") {
		return nil
	}
	h.anchors = append(h.anchors, anchor)
	return nil
}

// hunkNumbers reads "-12,3"; "-12" stands for one line.
func hunkNumbers(s, sign string) (start, n int, ok bool) {
	s, ok = strings.CutPrefix(s, sign)
	first, second, two := strings.Cut(s, ",")
	start, err := strconv.Atoi(first)
	if !ok || err != nil || start < 0 {
		return 0, 0, false
	}
	if !two {
		return start, 1, true
	}
	n, err = strconv.Atoi(second)
	return start, n, err == nil && n >= 0
}
