package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
)

// Options say what is the same in a recording and in its replay though it does
// not read the same.
type Options struct {
	// Workspace is the directory worked in, with other names it has. It is
	// written $WORKSPACE.
	Workspace []string
	// Secrets are values that must not be in a file, by the names of the
	// variables that hold them; each is written $NAME.
	Secrets map[string]string
	// Ignore is what a replay does not compare.
	Ignore Ignore
}

// Ignore is what a replay does not compare.
type Ignore struct {
	Dates    bool             // dates and times of day
	Results  bool             // what tools came to
	Patterns []*regexp.Regexp // what matches any of these
}

// The words for what can be ignored.
const (
	ignoreDates   = "dates"
	ignoreResults = "results"
)

// ParseIgnore reads words: dates, results, or a regular expression between
// slashes.
func ParseIgnore(words []string) (Ignore, error) {
	var out Ignore
	for _, w := range words {
		switch {
		case w == ignoreDates:
			out.Dates = true
		case w == ignoreResults:
			out.Results = true
		case len(w) > 2 && strings.HasPrefix(w, "/") && strings.HasSuffix(w, "/"):
			re, err := regexp.Compile(w[1 : len(w)-1])
			if err != nil {
				return out, fmt.Errorf("%q: %w", w, err)
			}
			out.Patterns = append(out.Patterns, re)
		default:
			return out, fmt.Errorf("%q: want %s, %s or /REGEXP/", w, ignoreDates, ignoreResults)
		}
	}
	return out, nil
}

// WorkspaceWord stands for the path of the workspace.
const WorkspaceWord = "$WORKSPACE"

// tokens are the forms of keys that are known at sight.
var tokens = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`)
})

// dates are the forms of dates and times.
var dates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?)?|\b\d\d:\d\d:\d\d(?:\.\d+)?\b|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,4}(?:,? \d{4})?`)
})

// minSecret is the length from which a value can be a secret: shorter ones would
// take words out of every text.
const minSecret = 8

// A normal writes texts so that they can be kept and compared.
type normal struct {
	keep   *strings.Replacer // for the file, and for what is compared with it
	give   *strings.Replacer // back, for what a model said
	ignore Ignore
}

func newNormal(opt Options) *normal {
	n := &normal{ignore: opt.Ignore, keep: strings.NewReplacer(), give: strings.NewReplacer()}
	var keep []string
	// The longest first: one value may hold another.
	for _, name := range slices.SortedFunc(maps.Keys(opt.Secrets), func(a, b string) int {
		return cmp.Or(len(opt.Secrets[b])-len(opt.Secrets[a]), strings.Compare(a, b))
	}) {
		if v := opt.Secrets[name]; len(v) >= minSecret {
			keep = append(keep, v, "$"+name)
			if escaped, err := json.Marshal(v); err == nil && string(escaped[1:len(escaped)-1]) != v {
				keep = append(keep, string(escaped[1:len(escaped)-1]), "$"+name)
			}
		}
	}
	roots := slices.DeleteFunc(slices.Clone(opt.Workspace), func(s string) bool { return len(s) < 2 })
	slices.SortFunc(roots, func(a, b string) int { return len(b) - len(a) })
	for _, root := range roots {
		keep = append(keep, root, WorkspaceWord)
	}
	n.keep = strings.NewReplacer(keep...)
	if len(opt.Workspace) > 0 {
		n.give = strings.NewReplacer(WorkspaceWord, opt.Workspace[0])
	}
	return n
}

// text is a text as the file has it.
func (n *normal) text(s string) string {
	return tokens().ReplaceAllString(n.keep.Replace(s), "$$SECRET")
}

// compared is a text as it is compared: without what is ignored.
func (n *normal) compared(s string) string {
	if n.ignore.Dates {
		s = dates().ReplaceAllString(s, "$$DATE")
	}
	for _, re := range n.ignore.Patterns {
		s = re.ReplaceAllString(s, "$$IGNORED")
	}
	return s
}

// message is a message as the file has it. Details are for people, and media
// travels whole.
func (n *normal) message(m synapse.Message) (synapse.Message, error) {
	m, err := clone(m)
	if err != nil {
		return m, err
	}
	rewrite(&m, n.text)
	for i := range m.Parts {
		if r := m.Parts[i].Result; r != nil {
			r.Details = nil
		}
	}
	return m, nil
}

// reply is a reply as the file has it.
func (n *normal) reply(r *synapse.Reply) (*synapse.Reply, error) {
	c, err := clone(r)
	if err != nil {
		return nil, err
	}
	rewrite(&c.Message, n.text)
	return c, nil
}

// given is a reply as a run of this workspace gets it.
func (n *normal) given(r *synapse.Reply) (*synapse.Reply, error) {
	c, err := clone(r)
	if err != nil {
		return nil, err
	}
	rewrite(&c.Message, n.give.Replace)
	return c, nil
}

// rewrite changes every text of a message.
func rewrite(m *synapse.Message, text func(string) string) {
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Text = text(p.Text)
		if p.Call != nil {
			p.Call.Args = text(p.Call.Args)
		}
		if p.Result != nil {
			p.Result.Text = text(p.Result.Text)
		}
	}
}
