package tool

import (
	"strconv"
	"strings"
)

// noFile is the name of the side that doesn't exist.
const noFile = "/dev/null"

// unified reads a unified diff, with or without git's headers. What stands
// before and between files is passed over, as patch(1) does.
func (p *patchParser) unified() error {
	afterHunk := false // nothing else has begun since
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		before := len(p.files)
		var err error
		switch {
		case strings.HasPrefix(line, "diff --git "):
			err = p.gitFile()
		case p.headerAt(p.at):
			err = p.unifiedFile(patchFile{op: patchUpdate, line: p.at + 1})
		case strings.HasPrefix(line, "@@ ") || line == "@@":
			err = p.fail(p.at, "a hunk without a file; --- a/path and +++ b/path come before it")
		case strings.HasPrefix(line, "diff --cc ") || strings.HasPrefix(line, "diff --combined "):
			err = p.fail(p.at, "the diff of a merge, with several old sides, is not taken")
		case afterHunk && hasPrefix(line, "+", "-") && strings.TrimRight(line, " \r") != "--":
			err = p.fail(p.at, "%s stands after the end of a hunk; correct the numbers in its @@ line", quote(line))
		default:
			// The next message of a series may hold anything.
			afterHunk = afterHunk && !hasPrefix(line, "From ", "commit ")
			p.at++
		}
		afterHunk = afterHunk || len(p.files) > before
		if err != nil {
			return err
		}
	}
	return nil
}

// headerAt reports whether a file's "---" and "+++" begin at that line.
func (p *patchParser) headerAt(at int) bool {
	return at+1 < len(p.lines) && strings.HasPrefix(p.lines[at], "--- ") && strings.HasPrefix(p.lines[at+1], "+++ ")
}

// gitFile reads a file that git's extended headers introduce.
func (p *patchParser) gitFile() error {
	f := patchFile{op: patchUpdate, line: p.at + 1}
	names := strings.TrimRight(p.lines[p.at][len("diff --git "):], "\r")
	from, modeOnly := "", false
	for p.at++; p.at < len(p.lines); p.at++ {
		line := strings.TrimRight(p.lines[p.at], "\r")
		key := line
		for _, k := range []string{"rename from ", "rename to ", "new file mode ", "deleted file mode ", "old mode ", "new mode "} {
			if strings.HasPrefix(line, k) {
				key = k
			}
		}
		switch value := strings.TrimPrefix(line, key); {
		case key == "rename from ":
			from = diffPath(value)
		case key == "rename to ":
			f.to = diffPath(value)
		case key == "new file mode ":
			f.op = patchAdd
			if value != "100644" && value != "100755" {
				return p.fail(p.at, "a file of mode %s can't be created: only regular files can", quote(value))
			}
		case key == "deleted file mode ":
			f.op = patchDelete
		case key == "old mode " || key == "new mode ":
			modeOnly = true
		case hasPrefix(line, "similarity index ", "dissimilarity index ", "index "):
		case hasPrefix(line, "copy from ", "copy to "):
			return p.fail(p.at, "copies are not taken; add the file with all its lines")
		case hasPrefix(line, "GIT binary patch", "Binary files ") && f.op != patchDelete:
			return p.fail(p.at, "binary files are not patched")
		default:
			if p.headerAt(p.at) {
				if f.to != "" {
					f.path = from
				}
				return p.unifiedFile(f)
			}
			return p.gitFileWithoutHunks(f, from, names, modeOnly)
		}
	}
	return p.gitFileWithoutHunks(f, from, names, modeOnly)
}

// gitFileWithoutHunks takes an empty file that is added or deleted, and a
// rename.
func (p *patchParser) gitFileWithoutHunks(f patchFile, from, names string, modeOnly bool) error {
	if f.to != "" {
		f.path = from
	} else if f.path = sameName(names); f.path == "" {
		return p.fail(f.line-1, "the file's name can't be told from %s; give --- and +++ lines", quote(names))
	}
	if f.op == patchUpdate && f.to == "" && modeOnly {
		return p.fail(f.line-1, "a change of mode alone is not taken; use chmod")
	}
	return p.add(f)
}

// sameName reads the two names of a "diff --git" line, which are the same
// behind their prefixes.
func sameName(names string) string {
	if strings.HasPrefix(names, `"`) {
		old, rest, ok := cutQuoted(names)
		if !ok {
			return ""
		}
		_, now := stripPrefixes(old, diffPath(strings.TrimPrefix(rest, " ")))
		return now
	}
	if half := len(names) / 2; len(names)%2 == 1 && names[half] == ' ' {
		old, now := stripPrefixes(names[:half], names[half+1:])
		if old == now {
			return now
		}
	}
	return ""
}

// unifiedFile reads a file from its "---" line on. What git's headers said of
// it stands in f already.
func (p *patchParser) unifiedFile(f patchFile) error {
	old, now := diffPath(p.lines[p.at][len("--- "):]), diffPath(p.lines[p.at+1][len("+++ "):])
	p.at += 2
	switch {
	case old == noFile && now == noFile:
		return p.fail(p.at-2, "both sides are %s", noFile)
	case old == noFile:
		f.op = patchAdd
	case now == noFile:
		f.op = patchDelete
	}
	if f.to == "" {
		strippedOld, strippedNew := stripPrefixes(old, now)
		if f.path = strippedNew; f.op == patchDelete {
			f.path = strippedOld
		}
	}
	for p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@") {
		h, err := p.unifiedHunk()
		if err != nil {
			return err
		}
		f.hunks = append(f.hunks, h)
	}
	if f.op == patchAdd {
		if len(f.hunks) > 1 || len(f.hunks) == 1 && len(f.hunks[0].side('+')) > 0 {
			return p.fail(f.hunks[0].line-1, "a new file has one hunk, of + lines alone")
		}
		if len(f.hunks) == 1 {
			f.content, f.hunks = newContent(&f.hunks[0]), nil
		}
	}
	return p.add(f)
}

// unifiedHunk reads a hunk. The header's counts tell where it ends when they
// are right, which those of models often are not: then it goes on as long as
// its lines do.
func (p *patchParser) unifiedHunk() (hunk, error) {
	h := hunk{line: p.at + 1}
	for ; p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@"); p.at++ {
		if p.at+1 > h.line && h.start > 0 {
			return h, p.fail(p.at-1, "the hunk has no lines")
		}
		if err := p.hunkHeader(&h); err != nil {
			return h, err
		}
	}
	counted := h.oldLeft > 0 || h.newLeft > 0
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if counted && h.oldLeft <= 0 && h.newLeft <= 0 && !strings.HasPrefix(line, `\`) && p.endsHere() {
			return h, nil
		}
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff --git ") ||
			p.headerAt(p.at) && p.at+2 < len(p.lines) && strings.HasPrefix(p.lines[p.at+2], "@@") {
			break
		}
		if !h.take(line) {
			if counted && (h.oldLeft > 0 || h.newLeft > 0) || len(h.lines) == 0 {
				return h, p.fail(p.at, "%s begins with neither a blank (context) nor - nor +", quote(line))
			}
			break // what follows the last hunk: the end of a Markdown block, a signature
		}
	}
	h.trimBlanks()
	return h, nil
}

// endsHere reports whether a hunk whose counts are used up is at its end: what
// follows is no line of a hunk.
func (p *patchParser) endsHere() bool {
	line := strings.TrimRight(p.lines[p.at], "\r")
	switch {
	case line == "" || line == "-- " || line == "--":
		return true
	case p.headerAt(p.at):
		return true
	}
	return !hasPrefix(line, " ", "+", "-")
}

// diffPath reads the name in a "---" or "+++" line: up to a tab, after which a
// time stands, and with git's quotes removed.
func diffPath(s string) string {
	s = strings.TrimRight(s, "\r")
	if strings.HasPrefix(s, `"`) {
		if name, _, ok := cutQuoted(s); ok {
			return name
		}
	}
	s, _, _ = strings.Cut(s, "\t")
	return strings.TrimSpace(s)
}

// cutQuoted reads a name in git's quotes, which are those of C.
func cutQuoted(s string) (name, rest string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			name, err := strconv.Unquote(s[:i+1])
			return name, s[i+1:], err == nil
		}
	}
	return "", "", false
}

// stripPrefixes removes the "a/" and "b/" that tell the sides of a diff apart,
// in any of git's spellings. A name that has no such pair stays as it is.
func stripPrefixes(old, now string) (string, string) {
	prefix := func(s string) (string, string) {
		if len(s) > 2 && s[1] == '/' && strings.IndexByte("abciow", s[0]) >= 0 {
			return s[:2], s[2:]
		}
		return "", s
	}
	oldPrefix, oldName := prefix(old)
	newPrefix, newName := prefix(now)
	switch {
	case old == noFile && newPrefix == "b/":
		return old, newName
	case now == noFile && oldPrefix == "a/":
		return oldName, now
	case oldPrefix == "a/" && newPrefix == "b/":
		return oldName, newName
	case oldPrefix != "" && newPrefix != "" && oldPrefix != newPrefix && oldName == newName:
		return oldName, newName
	}
	return old, now
}
