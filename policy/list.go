package policy

import "strings"

// ParseSpecifier reads an entry such as "Bash(git:*)", a tool with a pattern
// over its subject, as tool lists of some products and our flags hold them. The
// name is returned as written. Two forms become our own: a prefix ("git:*")
// becomes "git *", and a domain ("domain:example.com") a pattern over URLs. It
// reports false for anything else, a bare name included.
func ParseSpecifier(s string) (tool, pattern string, ok bool) {
	s = strings.TrimSpace(s)
	open := strings.IndexByte(s, '(')
	if open <= 0 || !strings.HasSuffix(s, ")") {
		return "", "", false
	}
	tool = strings.TrimSpace(s[:open])
	if !namePattern(tool) {
		return "", "", false
	}
	pattern = unquote(strings.TrimSpace(s[open+1 : len(s)-1]))
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		if pattern = strings.TrimSpace(prefix) + " *"; pattern == " *" {
			pattern = "*"
		}
	} else if domain, ok := strings.CutPrefix(pattern, "domain:"); ok {
		pattern = "*://" + strings.TrimSpace(domain) + "/*"
	}
	if pattern == "" {
		pattern = "*"
	}
	return tool, pattern, true
}

// ParseSpecifiers is ParseSpecifier for an entry whose brackets may hold
// several prefixes ("Bash(git add:*, git commit:*)"): it returns a pattern for
// each.
func ParseSpecifiers(s string) (tool string, patterns []string, ok bool) {
	tool, pattern, ok := ParseSpecifier(s)
	if !ok {
		return "", nil, false
	}
	s = strings.TrimSpace(s)
	inner := s[strings.IndexByte(s, '(')+1 : len(s)-1]
	parts := SplitList(inner)
	if len(parts) < 2 {
		return tool, []string{pattern}, true
	}
	for _, part := range parts {
		if !strings.HasSuffix(part, ":*") {
			return tool, []string{pattern}, true
		}
		_, p, _ := ParseSpecifier(tool + "(" + part + ")")
		patterns = append(patterns, p)
	}
	return tool, patterns, true
}

// SplitList splits a comma-separated string at the commas that stand outside
// brackets and quotes. Blanks and quotes around an item are no part of it, and
// empty items are left out. A bracket or quote that is never closed protects
// nothing: what it would swallow might be a restriction.
func SplitList(s string) []string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	var items []string
	start := 0
	add := func(end int) {
		if item := unquote(strings.TrimSpace(s[start:end])); item != "" {
			items = append(items, item)
		}
	}
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case ',':
			add(i)
			i++
			start = i
		case '(', '[', '{', '"', '\'', '`':
			if end := closing(s, i, strings.TrimSpace(s[start:i]) == ""); end > 0 {
				i = end + 1
				continue
			}
			i++
		default:
			i++
		}
	}
	add(len(s))
	return items
}

// closing returns where the bracket or quote at i is closed, 0 if it is not. A
// quote counts only where an item starts or inside brackets: elsewhere it is
// an apostrophe.
func closing(s string, i int, first bool) int {
	pairs := map[byte]byte{'(': ')', '[': ']', '{': '}'}
	end, bracket := pairs[s[i]]
	if !bracket {
		if !first {
			return 0
		}
		if k := strings.IndexByte(s[i+1:], s[i]); k >= 0 {
			return i + 1 + k
		}
		return 0
	}
	stack := []byte{end}
	for k := i + 1; k < len(s); k++ {
		c := s[k]
		if e, ok := pairs[c]; ok {
			stack = append(stack, e)
			continue
		}
		switch c {
		case stack[len(stack)-1]:
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return k
			}
		case '"', '\'':
			if n := strings.IndexByte(s[k+1:], c); n >= 0 {
				k += n + 1
			}
		}
	}
	return 0
}

// unquote takes quotes off the ends of an item, closed or not.
func unquote(s string) string {
	const quotes = "\"'`"
	for len(s) > 1 && strings.IndexByte(quotes, s[0]) >= 0 && s[len(s)-1] == s[0] {
		s = strings.TrimSpace(s[1 : len(s)-1])
	}
	if strings.Count(s, `"`)+strings.Count(s, "'")+strings.Count(s, "`") == 1 {
		s = strings.TrimSpace(strings.Trim(s, quotes))
	}
	return s
}
