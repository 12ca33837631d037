package policy_test

import (
	"testing"

	"github.com/synapse-agents/synapse/policy"
)

func fetch(p policy.Policy, url string) policy.Decision {
	return p.Check(policy.Call{Tool: "fetch_url", Kind: policy.SubjectURL, Subjects: []string{url}})
}

func TestAllowedURLs(t *testing.T) {
	tests := []struct {
		pattern, url string
		want         policy.Action
	}{
		{"https://pkg.go.dev/*", "https://pkg.go.dev/net/http", policy.Allow},
		{"https://pkg.go.dev/*", "https://pkg.go.dev/", policy.Allow},
		{"https://pkg.go.dev/*", "https://pkg.go.dev", policy.Allow},
		{"https://pkg.go.dev/*", "HTTPS://PKG.GO.DEV/x", policy.Allow},
		{"https://pkg.go.dev/*", "https://pkg.go.dev:443/x", policy.Allow},
		{"https://pkg.go.dev/*", "https://pkg.go.dev./x", policy.Allow},
		{"https://pkg.go.dev/*", "https://pkg.go.dev/a/b?q=1&r=2#frag", policy.Allow},
		{"https://pkg.go.dev/*", "https://me:pw@pkg.go.dev/x", policy.Allow},
		{"https://pkg.go.dev/*", "pkg.go.dev/x", policy.Allow},
		{"https://pkg.go.dev/*", "http://pkg.go.dev/x", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev:8443/x", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev@evil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev:pw@evil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev.evil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://evil.example/https://pkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://evil.example/?https://pkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://evil.example#https://pkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://xpkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg-go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://evil.example\\@pkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://evil.example\\.pkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev\t.evil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev%2eevil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg.go.dev%00.evil.example/", policy.Deny},
		{"https://pkg.go.dev/*", "https://ｐkg.go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "https://pkg。go.dev/", policy.Deny},
		{"https://pkg.go.dev/*", "javascript:alert(1)", policy.Deny},
		{"https://pkg.go.dev/*", "//pkg.go.dev/x", policy.Deny},
		{"https://pkg.go.dev/*", "", policy.Deny},
		{"https://pkg.go.dev*", "https://pkg.go.dev.evil.example/", policy.Deny},
		{"https://pkg.go.dev*", "https://pkg.go.dev/x", policy.Allow},
		{"https://pkg.go.dev", "https://pkg.go.dev/x", policy.Allow},
		{"https://pkg.go.dev/", "https://pkg.go.dev/x", policy.Deny},
		{"https://pkg.go.dev/", "https://pkg.go.dev", policy.Allow},
		{"pkg.go.dev/*", "https://pkg.go.dev/x", policy.Allow},
		{"pkg.go.dev/*", "https://pkg.go.dev.evil.example/x", policy.Deny},
		{"https://*.example.com/*", "https://a.example.com/x", policy.Allow},
		{"https://*.example.com/*", "https://a.b.example.com/x", policy.Allow},
		{"https://*.example.com/*", "https://example.com/x", policy.Deny},
		{"https://*.example.com/*", "https://evil-example.com/x", policy.Deny},
		{"https://*.example.com/*", "https://a.example.com.evil.example/x", policy.Deny},
		{"https://*.example.com/*", "https://evil.example/.example.com/x", policy.Deny},
		{"https://api-*.example.com/*", "https://api-1.example.com/x", policy.Allow},
		{"https://api-*.example.com/*", "https://api-evil.net.example.com/x", policy.Deny},
		{"https://*/x", "https://any.example/x", policy.Allow},
		{"http://localhost:8080/*", "http://localhost:8080/x", policy.Allow},
		{"http://localhost:8080/*", "http://localhost:8081/x", policy.Deny},
		{"http://localhost:8080/*", "http://localhost/x", policy.Deny},
		{"http://localhost:*/*", "http://localhost:9/x", policy.Allow},
		{"http://localhost:80/*", "http://localhost/x", policy.Allow},
		{"http://[::1]/*", "http://[0:0:0:0:0:0:0:1]/x", policy.Allow},
		{"http://[::1]:80/*", "http://[::1]/x", policy.Allow},
		{"https://h.example/docs/*", "https://h.example/docs/a", policy.Allow},
		{"https://h.example/docs/*", "https://h.example/docs/../admin", policy.Deny},
		{"https://h.example/docs/*", "https://h.example/docs/%2e%2e/admin", policy.Deny},
		{"https://h.example/docs/*", "https://h.example/docs/.%2E/admin", policy.Deny},
		{"https://h.example/docs/*", "https://h.example/docs/..%2fadmin", policy.Deny},
		{"https://h.example/docs/*", "https://h.example/docs/a%2f..%2f..%2fadmin", policy.Deny},
		{"https://h.example/docs/*", "https://h.example//docs/a", policy.Allow},
		{"https://h.example/docs/*", "https://h.example/d%6fcs/a", policy.Allow},
		{"https://h.example/docs/*", "https://h.example/DOCS/a", policy.Deny},
		{"https://h.example/docs/*", "https://h.example/docs/a%20b", policy.Allow},
		{"https://h.example/ä/*", "https://h.example/%C3%A4/x", policy.Allow},
		{"https://h.example/a", "https://h.example/a?x", policy.Deny},
		{"https://h.example/a?x=*", "https://h.example/a?x=1", policy.Allow},
		{"file:///tmp/*", "file:///tmp/x", policy.Allow},
		{"file:///tmp/*", "file:///tmp/../etc/x", policy.Deny},
		{"*", "anything at all", policy.Allow},
	}
	for _, tt := range tests {
		p := policy.Policy{Allow: []string{"fetch_url"}, Rules: []policy.Source{rules(t, "s", "fetch_url", "*", "deny", "fetch_url", tt.pattern, "allow")}}
		if d := fetch(p, tt.url); d.Action != tt.want {
			t.Errorf("allow %q, %q: %s (%s), want %s", tt.pattern, tt.url, d.Action, d.Reason, tt.want)
		}
	}
}

func TestDeniedURLs(t *testing.T) {
	tests := []struct {
		pattern, url string
		want         policy.Action
	}{
		{"https://evil.example/*", "https://evil.example/x", policy.Deny},
		{"https://evil.example/*", "https://EVIL.example./x", policy.Deny},
		{"https://evil.example/*", "https://evil.example:8443/x", policy.Deny},
		{"https://evil.example/*", "https://good.example@evil.example/x", policy.Deny},
		{"https://evil.example/*", "evil.example/x", policy.Deny},
		{"https://evil.example:443/*", "https://evil.example/x", policy.Deny},
		{"evil.example:443", "https://evil.example/x", policy.Deny},
		{"https://evil.example/*", "https://good.example/?u=https://evil.example/x", policy.Allow},
		{"https://evil*", "https://evil.example/x", policy.Deny},
		{"*.evil.example", "http://a.evil.example/x", policy.Deny},
		{"https://h.example/admin*", "https://h.example/docs/../admin", policy.Deny},
		{"https://h.example/admin*", "https://h.example/%61dmin", policy.Deny},
		{"https://h.example/admin*", "https://h.example/docs%2f..%2fadmin", policy.Deny},
		{"https://h.example/admin*", "https://h.example//admin", policy.Deny},
		{"https://h.example/admin", "https://h.example/admin?x", policy.Deny},
		{"https://h.example/admin", "https://h.example/user", policy.Allow},
		{"http://127.0.0.1", "http://127.1/x", policy.Deny},
		{"http://127.0.0.1", "http://2130706433/x", policy.Deny},
		{"http://127.0.0.1", "http://0x7f000001/x", policy.Deny},
		{"http://127.0.0.1", "http://0177.0.0.1/x", policy.Deny},
		{"http://127.0.0.1", "http://[::ffff:127.0.0.1]/x", policy.Deny},
		{"http://127.*", "http://127.8.9.1/x", policy.Deny},
		// What can't be judged asks where a rule depends on it.
		{"https://evil.example/*", "https://ｅvil.example/x", policy.Ask},
		{"https://evil.example/*", "https://evil%2eexample/x", policy.Ask},
		{"https://evil.example/*", "https://good.example\\@evil.example/", policy.Ask},
		{"https://evil.example/*", "https://evil.exa\nmple/x", policy.Ask},
		{"https://evil.example/*", "data:text/html,x", policy.Ask},
		{"https://evil.example/*", "http://[::1", policy.Ask},
	}
	for _, tt := range tests {
		p := policy.Policy{Allow: []string{"fetch_url"}, Rules: []policy.Source{rules(t, "s", "fetch_url", tt.pattern, "deny")}}
		if d := fetch(p, tt.url); d.Action != tt.want {
			t.Errorf("deny %q, %q: %s (%s), want %s", tt.pattern, tt.url, d.Action, d.Reason, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a*c", "abc", true}, {"a*c", "ac", true}, {"a*c", "a/\n/c", true}, {"a*c", "abd", false}, {"a*", "ba", false}, {"*a*b*", "xaybz", true},
		{"a", "a", true}, {"a", "A", false}, {"a", "", false}, {"*", "", true}, {"a?", "ab", false}, {"[a]", "[a]", true}, {"**", "x", true}, {"ab*ab", "ab", false}, {"ab*ab", "abab", true},
	} {
		p := policy.Policy{Allow: []string{"x"}, Rules: []policy.Source{rules(t, "s", "x", tt.pattern, "deny")}}
		d := p.Check(policy.Call{Tool: "x", Kind: policy.SubjectText, Subjects: []string{tt.text}})
		if (d.Action == policy.Deny) != tt.want {
			t.Errorf("%q on %q: %s", tt.pattern, tt.text, d.Action)
		}
	}
}
