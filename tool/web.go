package tool

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	webTimeout   = 30 * time.Second
	webMaxBytes  = 5 << 20 // of a body, as it comes and unpacked
	webMaxHeader = 256 << 10
	webRedirects = 10
)

// A webClient makes single requests for tools. It keeps no connection and no
// cookie from one to the next.
type webClient struct {
	private bool // reaches addresses that are not public
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	proxy   func(*url.URL) (*url.URL, error) // nil for none
	// proxies are the places of the proxies, as "host:port". They are the
	// user's choice and may be anywhere.
	proxies []string
}

// newWebClient returns a client as the workspace's options say.
func (w *Workspace) newWebClient(private bool) *webClient {
	c := &webClient{private: private, lookup: w.opt.Lookup}
	if w.opt.UseProxy {
		c.proxy, c.proxies = proxyOf(w.opt.Environ)
	}
	return c
}

// proxyOf reads the proxies that an environment names.
func proxyOf(environ []string) (choose func(*url.URL) (*url.URL, error), places []string) {
	value := func(names ...string) string {
		for _, name := range names {
			for _, kv := range environ {
				if v, ok := strings.CutPrefix(kv, name+"="); ok && v != "" {
					return v
				}
			}
		}
		return ""
	}
	cfg := httpproxy.Config{
		HTTPProxy:  value("http_proxy", "HTTP_PROXY"),
		HTTPSProxy: value("https_proxy", "HTTPS_PROXY"),
		NoProxy:    value("no_proxy", "NO_PROXY"),
	}
	choose = cfg.ProxyFunc()
	for _, scheme := range []string{"http", "https"} {
		if p, err := choose(&url.URL{Scheme: scheme, Host: "proxy-for.invalid"}); err == nil && p != nil {
			places = append(places, placeOf(p))
		}
	}
	return choose, places
}

// placeOf returns where a connection for u goes, as "host:port".
func placeOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// A webReply is what came back: the body unpacked, and cut where it was too
// long.
type webReply struct {
	url    *url.URL // after redirects
	status int
	header http.Header
	body   []byte
	cut    bool
}

// mediaType returns the reply's type in lower case and its charset, "" where
// the server doesn't say.
func (r *webReply) mediaType() (kind, charset string) {
	value := r.header.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(value)
	if err != nil {
		kind, _, _ = strings.Cut(value, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	return kind, params["charset"]
}

// check reads a URL that the client is to fetch.
func (c *webClient) check(s string) (*url.URL, error) {
	u, err := parseURL(s, c.private)
	if err == nil && !c.private && slices.Contains(c.proxies, placeOf(u)) {
		return nil, fmt.Errorf("%s is the proxy itself", u.Host)
	}
	return u, err
}

// do sends a request and reads the reply. follow is asked about the URL of
// each redirect.
func (c *webClient) do(ctx context.Context, req *http.Request, follow func(*url.URL) error) (*webReply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, webTimeout, errSlow)
	defer cancel()
	transport := &http.Transport{
		DialContext:            c.dial,
		DisableKeepAlives:      true,
		DisableCompression:     true, // so that what comes in can be counted before it is unpacked
		MaxResponseHeaderBytes: webMaxHeader,
		TLSHandshakeTimeout:    10 * time.Second,
	}
	if c.proxy != nil {
		transport.Proxy = func(r *http.Request) (*url.URL, error) { return c.proxy(r.URL) }
	}
	client := &http.Client{
		Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > webRedirects {
				return fmt.Errorf("stopped after %d redirects", webRedirects)
			}
			next.Header.Del("Referer") // the page before is nobody else's business
			return follow(next.URL)
		},
	}
	req = req.WithContext(ctx)
	req.Header.Set("User-Agent", "synapse")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		return nil, webError(ctx, err)
	}
	defer resp.Body.Close()
	reply := &webReply{url: resp.Request.URL, status: resp.StatusCode, header: resp.Header}
	if reply.body, reply.cut, err = readBody(resp); err != nil {
		return nil, webError(ctx, err)
	}
	return reply, nil
}

var errSlow = fmt.Errorf("no answer within %s", webTimeout)

// webError takes from an error of net/http what a model can use.
func webError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the URL is in the message already
	}
	var dialing *net.OpError
	var refused *refusedAddress
	if errors.As(err, &dialing) && errors.As(err, &refused) {
		return refused // what was being dialed is in the message
	}
	return err
}

// dial connects to a host. The address is judged once it is known, right
// before the connection is made to it, so that a name that resolves to
// something else the second time gains nothing.
func (c *webClient) dial(ctx context.Context, network, address string) (net.Conn, error) {
	private := c.private || slices.Contains(c.proxies, address)
	d := net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			if network != "tcp4" && network != "tcp6" {
				return fmt.Errorf("connect by %s: only TCP is used", network)
			}
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", address, err)
			}
			return checkAddr(to.Addr(), private)
		},
	}
	if c.lookup == nil || slices.Contains(c.proxies, address) {
		return d.DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return d.DialContext(ctx, network, address)
	}
	addrs, err := c.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	err = fmt.Errorf("look up %s: it has no address", host)
	for _, a := range addrs {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, network, net.JoinHostPort(a.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// readBody reads and unpacks a body, as far as the limits go. Both what comes in
// and what comes out of it is counted, so that no bomb gets far.
func readBody(resp *http.Response) (body []byte, cut bool, err error) {
	in := &io.LimitedReader{R: resp.Body, N: webMaxBytes + 1}
	var r io.Reader = in
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(in)
		if errors.Is(err, io.EOF) {
			return nil, false, nil // an empty body
		}
		if err != nil {
			return nil, false, fmt.Errorf("unpack the reply: %w", err)
		}
		unpacked.Multistream(false) // one block is a reply; a run of empty ones is a trap
		r = unpacked
	default:
		return nil, false, fmt.Errorf("the reply is packed as %q, which was not asked for", enc)
	}
	var buf bytes.Buffer
	_, err = buf.ReadFrom(io.LimitReader(r, webMaxBytes+1))
	body = buf.Bytes()
	if len(body) > webMaxBytes {
		return body[:webMaxBytes], true, nil
	}
	if err != nil && in.N <= 0 {
		return body, true, nil // the packed form was too long
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the reply: %w", err)
	}
	return body, false, nil
}
