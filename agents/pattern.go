package agents

import (
	"slices"
	"strings"

	"github.com/synapse-agents/synapse/policy"
	"go.yaml.in/yaml/v3"
)

// pathForm is how a product's patterns over files read.
type pathForm string

const (
	pathsOurs   pathForm = ""          // "*" stays in its folder
	pathsIgnore pathForm = "gitignore" // like ours, and without a slash in any folder
	pathsCross  pathForm = "wildcard"  // "*" is any run of characters, slashes included
)

// noCall stands for a pattern that fits no call here.
const noCall = "\x00none"

// maxStars bounds how many stars that cross folders are written out. Each
// doubles the number of patterns.
const maxStars = 4

// pathTools are the tools whose subjects are files.
var pathTools = []string{"ls", "glob", "grep", "read_file", "write_file", "edit_file", "patch", "find_files", "search_files"}

// patterns returns what a product's pattern over a tool's subjects is in ours:
// patterns that together fit no call more where it allows, and no call less
// where it restricts. None at all means that it is about nothing here.
func (r *reader) patterns(tool, pattern string, action policy.Action, n *yaml.Node) ([]string, error) {
	p := r.dialect.product
	if p == nil || pattern == "*" || !slices.Contains(pathTools, policy.Canonical(tool, nil)) {
		return []string{pattern}, nil
	}
	loose := action == policy.Allow
	switch p.paths {
	case pathsIgnore:
		return ignorePatterns(pattern, loose), nil
	case pathsCross:
		list, ok := crossPatterns(pattern, action)
		if !ok {
			return nil, r.bad(n, "write fewer stars", "holds the pattern %q, which has too many stars to be said here", shorten(pattern, 60))
		}
		return list, nil
	}
	return []string{pattern}, nil
}

// outside reports whether a pattern names a place outside of the workspace,
// which tools for files never reach.
func outside(pattern string) bool {
	return strings.HasPrefix(pattern, "~") || strings.HasPrefix(pattern, "$HOME") || pattern == ".." || strings.HasPrefix(pattern, "../")
}

// ignorePatterns reads the patterns of .gitignore files, with "//" for the
// file system's root.
func ignorePatterns(pattern string, loose bool) []string {
	if strings.HasPrefix(pattern, "//") || outside(pattern) {
		return nil
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	if strings.Contains(inner, "/") || loose {
		return []string{pattern} // what fits in the top folder alone is less
	}
	return []string{inner, inner + "/**", "**/" + inner, "**/" + inner + "/**"}
}

// crossPatterns writes out a pattern in which "*" crosses folders. It reports
// false where that would take too many patterns.
func crossPatterns(pattern string, action policy.Action) ([]string, bool) {
	if outside(pattern) || strings.HasPrefix(pattern, "/") {
		return nil, true
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if top, ok := strings.CutPrefix(pattern, "**/"); ok && action == policy.Deny && top != "*" && top != "**" {
		// There the top folder is left out of "**/x"; whoever denies means it too.
		below, ok1 := crossPatterns("*/"+top, action)
		here, ok2 := crossPatterns(top, action)
		return append(here, below...), ok1 && ok2
	}
	for strings.Contains(pattern, "**") {
		pattern = strings.ReplaceAll(pattern, "**", "*")
	}
	if action == policy.Deny {
		// A denial of all that lies in some folder is meant for all.
		if pattern == "*/*" || pattern == "*/" {
			return []string{"*"}, true
		}
		pattern = strings.ReplaceAll(pattern, "?", "*")
	}
	if pattern == "*" {
		return []string{"*"}, true
	}
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		parts[i] = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(part)
	}
	if len(parts)-1 > maxStars {
		if action == policy.Allow { // the stars that stay in their folders allow less
			return []string{strings.Join(parts, "*")}, true
		}
		return nil, false
	}
	list := []string{parts[0]}
	for i, part := range parts[1:] {
		stars := []string{"*", "*/**/*"}
		before := parts[i]
		if last := i == len(parts)-2; last && part == "" && (before == "" && i == 0 || strings.HasSuffix(before, "/")) {
			stars = []string{"*/**"}
		}
		var next []string
		for _, head := range list {
			for _, star := range stars {
				next = append(next, head+star+part)
			}
		}
		list = next
	}
	return list, true
}
