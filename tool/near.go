package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/spelling"
)

// maxNear is how many names a "did you mean" offers, and nearWalk how many
// entries are looked at to find them.
const (
	maxNear  = 5
	nearWalk = 20_000
)

// missing adds to a not-found error the names of files that may be meant.
func missing(ctx context.Context, in *synapse.Invocation, p place, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := near(ctx, in, p)
	if len(names) == 0 {
		return fmt.Errorf("%s: no such file or directory", p.show())
	}
	return fmt.Errorf("%s: no such file or directory; did you mean %s?", p.show(), strings.Join(names, ", "))
}

// near returns paths like that of p: names alike in its directory, then the
// same name elsewhere.
func near(ctx context.Context, in *synapse.Invocation, p place) []string {
	base := path.Base(p.rel)
	type candidate struct {
		name  string
		score int // smaller is nearer
	}
	var found []candidate
	add := func(q place, e entry, score int) {
		if !permits(in, q.name) || slices.ContainsFunc(found, func(c candidate) bool { return strings.TrimSuffix(c.name, "/") == q.name }) {
			return
		}
		name := q.name
		if e.isDir() {
			name += "/"
		}
		found = append(found, candidate{name, score})
	}
	parent := p.at(path.Dir(p.rel))
	if entries, err := parent.list(); err == nil {
		for _, e := range entries {
			if score, ok := alike(base, e.name); ok {
				add(parent.child(e.name), e, score)
			}
		}
	}
	// What can't be looked at offers no names.
	_, _ = walkBelow(ctx, p.at("."), p.at(".").ignoreAbove(), nearWalk, 1, func(q place, e entry) {
		if strings.EqualFold(e.name, base) {
			add(q, e, 100+strings.Count(q.rel, "/"))
		}
	})
	slices.SortStableFunc(found, func(a, b candidate) int { return a.score - b.score })
	names := make([]string, 0, maxNear)
	for _, c := range found[:min(len(found), maxNear)] {
		names = append(names, c.name)
	}
	return names
}

// alike scores how near two names are, 0 for the same but for case.
func alike(a, b string) (score int, ok bool) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return 0, true
	}
	stem := func(s string) string { return strings.TrimSuffix(s, path.Ext(s)) }
	if sa := stem(a); sa != "" && sa == stem(b) {
		return 1, true
	}
	d := spelling.Distance(a, b)
	return 1 + d, d <= max(1, min(len(a), len(b))/3)
}
