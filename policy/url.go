package policy

import (
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// An address is a URL taken apart, in the one spelling that rules are compared
// with.
type address struct {
	scheme string   // lower case
	host   string   // lower case, no trailing dot, numeric addresses in their usual form
	port   string   // as a number, "" where neither URL nor scheme say
	usual  bool     // it is the scheme's own port
	rest   []string // path and query, in every way that they may be understood
}

// url judges a URL.
func (v *verdict) url(s string, specific *Source) {
	a, why := parseAddress(s)
	if why != "" && specific != nil {
		v.uncertain(specific, s, why)
	}
	v.rules(s, "", func(r *Rule) grade {
		if r.whole() {
			return hit
		}
		p, ok := parseURLPattern(r.Pattern)
		if !ok {
			return broken(r)
		}
		if why != "" {
			return miss // uncertain already
		}
		return p.match(a, r.Action == Allow)
	})
}

// parseAddress reads a URL the way a client would. Where clients differ, why
// says what makes the URL unfit to be judged.
func parseAddress(s string) (a address, why string) {
	if !plainText(s) || strings.ContainsAny(s, " \t\n\\") {
		return a, "the URL holds blanks, backslashes or control characters"
	}
	u, err := url.Parse(s)
	if err != nil {
		return a, "the URL can't be parsed"
	}
	if u.Scheme == "" && !strings.HasPrefix(s, "/") {
		// A bare "example.com/x": what fetches it will put a scheme before it.
		if u, err = url.Parse("https://" + s); err != nil {
			return a, "the URL can't be parsed"
		}
	}
	if u.Opaque != "" || u.Scheme == "" {
		return a, "the URL has no host"
	}
	a.scheme = strings.ToLower(u.Scheme)
	a.host = normalHost(u.Hostname())
	if a.host == "" && a.scheme != "file" {
		return a, "the URL has no host"
	}
	for i := range len(a.host) {
		if c := a.host[i]; c >= 0x80 || c == '%' || c == '*' {
			return a, "the host's name is not plain ASCII"
		}
	}
	a.port, a.usual = portOf(a.scheme, u.Port())
	a.rest = readings(u)
	return a, ""
}

// normalHost returns the usual spelling of a host.
func normalHost(h string) string {
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if ip, err := netip.ParseAddr(h); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	if ip, ok := legacyIPv4(h); ok {
		return ip
	}
	return h
}

// legacyIPv4 reads the forms of an IPv4 address that resolvers still take: one
// to four numbers, decimal, octal or hexadecimal, the last one filling up what
// is left ("127.1", "0x7f000001").
func legacyIPv4(h string) (string, bool) {
	parts := strings.Split(h, ".")
	if len(parts) > 4 {
		return "", false
	}
	var addr uint64
	for i, p := range parts {
		if p == "" || p[0] < '0' || p[0] > '9' || strings.Contains(p, "_") {
			return "", false
		}
		base := 10
		switch {
		case strings.HasPrefix(p, "0x"):
			p, base = p[2:], 16
			if p == "" {
				p = "0"
			}
		case len(p) > 1 && p[0] == '0':
			base = 8
		}
		n, err := strconv.ParseUint(p, base, 32)
		if err != nil {
			return "", false
		}
		if i < len(parts)-1 {
			if n > 0xff {
				return "", false
			}
			addr |= n << (8 * (3 - i))
			continue
		}
		if n >= 1<<(8*(4-i)) {
			return "", false
		}
		addr |= n
	}
	b := [4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}
	return netip.AddrFrom4(b).String(), true
}

// portOf returns the port that a URL goes to, and whether it is the one that
// the scheme has anyway.
func portOf(scheme, port string) (string, bool) {
	own := map[string]string{"http": "80", "https": "443"}[scheme]
	if port = strings.TrimLeft(port, "0"); port == "" {
		port = own
	}
	return port, port == own
}

// readings returns the path and query of a URL in every way that a server may
// understand them, the usual one first.
func readings(u *url.URL) []string {
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	usual := cleanURLPath(unescapeUnreserved(u.EscapedPath()))
	all := []string{usual + query}
	add := func(s string) {
		for _, have := range all {
			if have == s {
				return
			}
		}
		all = append(all, s)
	}
	// An escaped slash or dot segment is text to some servers and structure
	// to others.
	add(cleanURLPath(u.Path) + query)
	return all
}

// cleanURLPath resolves "." and ".." and doubled slashes; a slash at the end
// stays.
func cleanURLPath(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		clean += "/"
	}
	return clean
}

// unescapeUnreserved undoes the escapes of characters that need none, and
// escapes those that do.
func unescapeUnreserved(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == '%' || r >= 0x80 }) < 0 {
		return s
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			continue
		}
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c := byte(n)
				if c == '-' || c == '.' || c == '_' || c == '~' || isAlnum(c) {
					b.WriteByte(c)
				} else {
					b.WriteString(strings.ToUpper(s[i : i+3]))
				}
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// A urlPattern is a pattern over URLs: an origin, and a wildcard over what
// follows it. A star never reaches from one part into the next.
type urlPattern struct {
	scheme string // "*" for any
	host   string
	port   string // "" when the pattern has none, "*" for any
	rest   string // from the slash on, "*" when the pattern is only an origin
}

// parseURLPattern reads a pattern such as "https://pkg.go.dev/*",
// "*.example.com" or "http://localhost:8080/api/*".
func parseURLPattern(s string) (p urlPattern, ok bool) {
	if !plainText(s) || strings.ContainsAny(s, " \t\n\\") {
		return p, false
	}
	scheme, after, found := strings.Cut(s, "://")
	if !found {
		scheme, after = "*", s
	}
	p.scheme = strings.ToLower(scheme)
	origin := after
	p.rest = "*"
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		origin, p.rest = after[:i], after[i:]
		if p.rest[0] != '/' {
			p.rest = "/" + p.rest
		}
	}
	if strings.Contains(origin, "@") || p.scheme == "" {
		return p, false
	}
	p.host, p.port = origin, ""
	if i := strings.LastIndexByte(origin, ':'); i >= 0 && !strings.HasSuffix(origin, "]") {
		p.host, p.port = origin[:i], origin[i+1:]
		if p.port == "" || strings.Trim(p.port, "0123456789") != "" && p.port != "*" {
			return p, false
		}
		if p.port != "*" {
			p.port = strings.TrimLeft(p.port, "0")
		}
	}
	p.host = strings.Trim(p.host, "[]")
	if p.host == "" && p.scheme != "file" {
		return p, false
	}
	// Clients turn other scripts into ASCII before they look a name up, so
	// such a name in a pattern would never match.
	for i := range len(p.host) {
		if p.host[i] >= 0x80 {
			return p, false
		}
	}
	p.host = normalHost(p.host)
	return p, true
}

// match grades the pattern against an address. An allowance is read narrowly
// (no longer host, no other port), a restriction widely.
func (p urlPattern) match(a address, allow bool) grade {
	if !wildcard(p.scheme, a.scheme) || !hostMatches(p.host, a.host, allow) || !p.portMatches(a, allow) {
		return miss
	}
	if p.rest == "*" {
		return hit
	}
	written := unescapeUnreserved(p.rest)
	decoded, err := url.PathUnescape(p.rest)
	if err != nil {
		decoded = written
	}
	matches := func(i int, rest string) bool {
		return wildcard(written, rest) || i > 0 && wildcard(decoded, rest)
	}
	n := 0
	for i, rest := range a.rest {
		if matches(i, rest) {
			n++
		}
	}
	switch {
	case n == len(a.rest):
		return hit
	case n > 0:
		return partly
	case allow:
		return miss
	}
	// A query added to a denied address does not free it.
	for i, rest := range a.rest {
		if bare, _, ok := strings.Cut(rest, "?"); ok && matches(i, bare) {
			return partly
		}
	}
	return miss
}

func (p urlPattern) portMatches(a address, allow bool) bool {
	switch p.port {
	case "*":
		return true
	case "":
		return a.usual || !allow
	}
	return p.port == a.port
}

// hostMatches compares hosts. A restriction's star may stand for anything. An
// allowance's may stand for leading labels ("*.example.com"), for the whole
// host, or for a part of one label; a star at the end of a name stands for
// nothing, so that "https://example.com*" does not let example.com.evil.net in.
func hostMatches(pattern, host string, allow bool) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == host
	}
	if !allow {
		return wildcard(pattern, host)
	}
	if pattern == "*" {
		return true
	}
	pattern = strings.TrimRight(pattern, "*")
	if tail, ok := strings.CutPrefix(pattern, "*."); ok {
		labels := strings.Count(tail, ".") + 1
		parts := strings.Split(host, ".")
		if len(parts) <= labels {
			return false
		}
		return labelsMatch(strings.Split(tail, "."), parts[len(parts)-labels:])
	}
	return labelsMatch(strings.Split(pattern, "."), strings.Split(host, "."))
}

func labelsMatch(patterns, labels []string) bool {
	if len(patterns) != len(labels) {
		return false
	}
	for i := range labels {
		if !wildcard(patterns[i], labels[i]) {
			return false
		}
	}
	return true
}
