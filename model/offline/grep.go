package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// grep answers searches for a text, and for marker comments.
func (s *session) grep(a ask) section {
	q := query{path: a.scope, exts: a.exts}
	what := a.subject
	if a.kind == kindMarks {
		q.pattern = `(^|//|#|/\*|<!--|--|;|\*)\s*(` + a.subject + `)\b`
		what = strings.ReplaceAll(a.subject, "|", " and ") + " comment"
	} else {
		if what == "" {
			return undone("it does not say what to search for")
		}
		if q.pattern = what; !a.flags["regexp"] {
			q.pattern = regexp.QuoteMeta(what)
		}
		q.fold = !a.flags["quoted"] && strings.ToLower(what) == what
	}
	out := s.search(q)
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(under(readHits(out.text), a.scope))
	if a.kind == kindMarks {
		hits = slices.DeleteFunc(hits, func(h hit) bool { return inString(h.text, a.subject) })
		own := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return inData(h.path) })
		sec := section{lead: fmt.Sprintf("%s%s in %s", atLeast(out), count(len(own), what), count(distinctFiles(own), "file"))}
		if n := len(hits) - len(own); n > 0 {
			if len(own) == 0 {
				sec.lead = "no " + what + " in the project's own files"
			}
			sec.lead += fmt.Sprintf("; %s in sample data left out", count(n, "line"))
		}
		sec.lines = append(quotes(own, 60), noted(out)...) // what samples hold is nobody's work
		return sec
	}
	if len(hits) == 0 && len(strings.Fields(what)) > 1 && !a.flags["quoted"] {
		return s.passages(a)
	}
	// The tool says how many it leaves out; where only some of its hits count,
	// that is not known of the others.
	lines, files := more(out.text)
	least := ""
	if lines > 0 && len(hits) < len(readHits(out.text)) {
		lines, files, least = 0, 0, "at least "
	}
	return section{
		lead:  fmt.Sprintf("“%s”: %s%s in %s", what, least, count(len(hits)+lines, "line"), count(distinctFiles(hits)+files, "file")),
		lines: append(quotes(hits, 60), noted(out)...),
	}
}

// inString reports whether a marker stands in a string rather than a comment:
// after a quote that is still open.
func inString(l, marker string) bool {
	at := len(l)
	for m := range strings.SplitSeq(marker, "|") {
		if i := strings.Index(l, m); i >= 0 {
			at = min(at, i)
		}
	}
	head := strings.ReplaceAll(l[:at], `\"`, "")
	return strings.Count(head, `"`)%2 == 1 || strings.Count(head, "`")%2 == 1
}

// textInCode answers where a text that the request quotes stands in code.
func (s *session) textInCode(a ask) section {
	out := s.search(query{pattern: regexp.QuoteMeta(a.subject), path: a.scope, exts: orExts(a.exts), why: "find where “" + clip(a.subject, 40) + "” stands"})
	if sec, stop := stopped(out); stop {
		return sec
	}
	hits := byOwnFirst(under(readHits(out.text), a.scope))
	own := slices.DeleteFunc(slices.Clone(hits), func(h hit) bool { return isTest(h.path) || inData(h.path) || isComment(h.text) })
	sec := section{lead: fmt.Sprintf("“%s”: %s%s of code in %s", a.subject, atLeast(out), count(len(own), "line"), count(distinctFiles(own), "file"))}
	if n := len(hits) - len(own); n > 0 {
		sec.lead += fmt.Sprintf("; %s in tests and comments", group(n))
	}
	if len(own) == 0 {
		own = hits
	}
	sec.lines = append(quotes(own, 40), noted(out)...)
	return sec
}
