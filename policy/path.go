package policy

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// path judges a path in the workspace.
func (v *verdict) path(s string) {
	rooted, plain := cleanPath(s)
	v.rules(s, "", func(r *Rule) grade {
		if r.whole() {
			return hit
		}
		pattern, ok := pathPattern(r.Pattern)
		if !ok {
			return broken(r)
		}
		if pattern == "**" {
			return hit
		}
		in, up := doublestar.MatchUnvalidated(pattern, rooted), false
		if plain == rooted {
			up = in
		} else {
			up = doublestar.MatchUnvalidated(pattern, plain)
		}
		switch {
		case in && up:
			return hit
		case in || up:
			return partly
		}
		return miss
	})
}

// cleanPath returns the two readings of a path: with the workspace as a root
// that ".." can't leave, and with ".." taken literally. They differ only for a
// path that tries to leave; whether it may is the tool's affair, but it must
// not slip past a rule by either reading.
func cleanPath(s string) (rooted, plain string) {
	rooted = path.Clean("/" + s)[1:]
	if rooted == "" {
		rooted = "."
	}
	plain = rooted
	if strings.Contains(s, "..") {
		plain = path.Clean(strings.TrimLeft(s, "/"))
		if !strings.HasPrefix(plain, "..") {
			plain = rooted
		}
	}
	return rooted, plain
}

// pathPattern brings a path pattern into the form of the paths that it is
// matched against: relative to the workspace, "**" for everything. It reports
// whether the pattern is valid.
func pathPattern(s string) (string, bool) {
	if s == "" || !plainText(s) || !doublestar.ValidatePattern(s) {
		return "", false
	}
	folder := strings.HasSuffix(s, "/")
	for {
		t := strings.TrimPrefix(strings.TrimPrefix(s, "/"), "./")
		if t == s {
			break
		}
		s = t
	}
	if s = strings.TrimRight(s, "/"); s == "" || s == "." {
		if folder {
			return "**", true // "/" and "./" as patterns mean the workspace and all in it
		}
		return ".", true
	}
	if folder {
		s += "/**"
	}
	return s, true
}
