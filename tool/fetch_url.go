package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/policy"
)

//go:embed fetch_url.md
var fetchURLWords string

const (
	fetchBytes      = 50 << 10 // shown by one call
	fetchErrorBytes = 2 << 10  // shown of a reply that says what went wrong
)

type fetchURLArgs struct {
	URL    string `json:"url"`
	Offset int    `json:"offset,omitempty" jsonschema:"byte to go on from"`
}

// fetchURLDetails is what a fetch_url result tells programs.
type fetchURLDetails struct {
	URL    string `json:"url"` // after redirects
	Status int    `json:"status"`
	Type   string `json:"type"`
	Title  string `json:"title,omitempty"`
	Bytes  int    `json:"bytes"` // of the text
	First  int    `json:"first"` // byte shown
	Last   int    `json:"last"`  // the byte after the last one shown
	Cut    bool   `json:"cut,omitempty"`
}

func (w *Workspace) fetchURL() synapse.Tool {
	t := must(New("fetch_url", fetchURLWords, w.runFetchURL))
	t.ReadOnly, t.Parallel = true, true
	t.Subject = policy.Subject{Kind: policy.SubjectURL, Args: []string{"url"}}
	return t
}

func (w *Workspace) runFetchURL(ctx context.Context, in *synapse.Invocation, args fetchURLArgs) (*synapse.ToolResult, error) {
	c := w.newWebClient(w.opt.AllowPrivate)
	u, err := c.check(args.URL)
	if err != nil {
		return nil, err
	}
	// The guard has judged the URL as it was written.
	if s := u.String(); s != args.URL && !permits(in, s) {
		return nil, fmt.Errorf("permission denied: %s is %s; do not retry", args.URL, s)
	}
	req, err := http.NewRequest(http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json, */*;q=0.5")
	reply, err := c.do(ctx, req, func(next *url.URL) error {
		to, err := c.check(next.String())
		if err != nil {
			return fmt.Errorf("redirected to %s: %w", next.Redacted(), err)
		}
		if !permits(in, to.String()) {
			return fmt.Errorf("permission denied: redirected to %s; do not retry", to)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	page, err := readPage(reply)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reply.url, err)
	}
	if reply.status < 200 || reply.status > 299 {
		return fetchFailed(reply, page), nil
	}
	return page.show(u, reply, args.Offset)
}

// fetchFailed tells what a server said instead of an answer.
func fetchFailed(reply *webReply, page *webPage) *synapse.ToolResult {
	text := fmt.Sprintf("fetch_url: %s: HTTP %d %s", reply.url, reply.status, http.StatusText(reply.status))
	if said := strings.TrimSpace(cut(page.text, fetchErrorBytes)); said != "" {
		text += "\n" + said
	}
	return &synapse.ToolResult{
		Text: text, IsError: true,
		Details: details(fetchURLDetails{URL: reply.url.String(), Status: reply.status, Type: page.kind, Title: page.title}),
	}
}

// A webPage is a reply as text.
type webPage struct {
	kind  string // media type
	title string
	text  string
	cut   bool // by the size of the reply, or of what it came to
}

// readPage turns a reply into text, and refuses what is none.
func readPage(reply *webReply) (*webPage, error) {
	kind, label := reply.mediaType()
	page := &webPage{kind: kind, cut: reply.cut}
	if page.kind == "" || page.kind == "application/octet-stream" || page.kind == "unknown/unknown" {
		page.kind, _, _ = strings.Cut(http.DetectContentType(reply.body), ";")
	}
	isHTML := page.kind == "text/html" || page.kind == "application/xhtml+xml"
	if !isHTML && !isText(page.kind) {
		size := bytesText(int64(len(reply.body)))
		if n := reply.header.Get("Content-Length"); reply.cut {
			size = "more than " + size
			if n != "" {
				size = n + " bytes"
			}
		}
		return nil, fmt.Errorf("the reply is %s, %s; only text is fetched", page.kind, size)
	}
	text, err := decodePage(reply.body, isHTML, reply.header.Get("Content-Type"), label)
	if err != nil {
		return nil, fmt.Errorf("the reply is said to be %s: %w", page.kind, err)
	}
	if !isHTML {
		page.text = cleanText(text)
		return page, nil
	}
	md := toMarkdown(text, reply.url)
	page.title, page.text = md.title, md.text
	page.cut = page.cut || md.cut
	return page, nil
}

// isText reports whether a media type is one of text.
func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml") {
		return true
	}
	switch kind {
	case "application/json", "application/ld+json", "application/x-ndjson", "application/jsonlines", "application/xml",
		"application/javascript", "application/x-javascript", "application/ecmascript", "application/typescript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-sh", "application/x-httpd-php",
		"application/sql", "application/graphql", "application/x-www-form-urlencoded", "application/x-tex", "application/x-latex",
		"application/x-subrip", "application/rtf", "message/rfc822", "application/pgp-signature", "application/x-perl", "application/x-ruby":
		return true
	}
	return false
}

// decodePage turns bytes into characters: by what the server says, by a mark
// at the start or within the page, else by a look at them.
func decodePage(body []byte, isHTML bool, contentType, label string) (string, error) {
	if isHTML {
		enc, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
		if label == "" && utf8.Valid(body) {
			return string(body), nil // a mark in the page may be wrong, or further down
		}
		return transformText(enc.NewDecoder(), body)
	}
	if label != "" && !bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		if enc, _ := charset.Lookup(label); enc != nil {
			return transformText(enc.NewDecoder(), body)
		}
	}
	t, err := decode(body)
	if err != nil {
		return "", err
	}
	return t.s, nil
}

func transformText(t transform.Transformer, body []byte) (string, error) {
	out, err := io.ReadAll(transform.NewReader(bytes.NewReader(body), t))
	if err != nil {
		return "", err
	}
	if looksBinary(out) {
		return "", errBinary
	}
	return strings.TrimPrefix(string(out), "\ufeff"), nil
}

// cleanText removes what would move a terminal's cursor, and makes line ends
// LF.
func cleanText(s string) string {
	var c cleaner
	out := c.feed([]byte(s))
	return strings.ReplaceAll(string(append(out, c.flush()...)), "\r", "\n")
}

// show returns the part of the page from offset on.
func (p *webPage) show(asked *url.URL, reply *webReply, offset int) (*synapse.ToolResult, error) {
	d := fetchURLDetails{URL: reply.url.String(), Status: reply.status, Type: p.kind, Title: p.title, Bytes: len(p.text), Cut: p.cut}
	offset = max(offset, 0)
	if offset > 0 && offset >= len(p.text) {
		return nil, fmt.Errorf("offset %d is past the end: the text has %d bytes", offset, len(p.text))
	}
	var head, foot []string
	if final := reply.url.String(); final != asked.String() {
		head = append(head, "redirected to "+final)
	}
	if p.title != "" && offset == 0 {
		head = append(head, "title: "+p.title)
	}
	shown, next := pageFrom(p.text, offset)
	d.First, d.Last = offset, next
	if next < len(p.text) {
		foot = append(foot, fmt.Sprintf("bytes %d-%d of %d; go on with offset %d", offset, next, len(p.text), next))
	} else if offset > 0 {
		foot = append(foot, fmt.Sprintf("bytes %d-%d, the end", offset, next))
	}
	if p.cut && next == len(p.text) {
		foot = append(foot, "the page is longer; no more of it is read")
	}
	if strings.TrimSpace(shown) == "" {
		foot = append(foot, "no text in it")
	}
	var out strings.Builder
	if len(head) > 0 {
		fmt.Fprintf(&out, "[%s]\n", strings.Join(head, "; "))
	}
	out.WriteString(strings.TrimRight(shown, "\n"))
	if len(foot) > 0 {
		if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "[%s]", strings.Join(foot, "; "))
	}
	return &synapse.ToolResult{Text: out.String(), Details: details(d)}, nil
}

// pageFrom returns what one call shows of s from offset on, and where the next
// one begins: at a line's start where one is near, else at a character's.
func pageFrom(s string, offset int) (shown string, next int) {
	for offset < len(s) && !utf8.RuneStart(s[offset]) {
		offset++
	}
	rest := s[offset:]
	if len(rest) <= fetchBytes {
		return rest, len(s)
	}
	shown = cut(rest, fetchBytes)
	if i := strings.LastIndexByte(shown, '\n'); i > fetchBytes*3/4 {
		shown = shown[:i+1]
	}
	return shown, offset + len(shown)
}
