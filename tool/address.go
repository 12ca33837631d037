package tool

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// A refusedAddress says why an address is not connected to.
type refusedAddress struct {
	addr netip.Addr
	why  string
}

func (e *refusedAddress) Error() string {
	return fmt.Sprintf("%s is %s; only public addresses are fetched", e.addr, e.why)
}

// parseURL reads the URL of something to fetch: http or https, a host, nothing
// that two programs could understand in two ways. private lets addresses
// through that are not public.
func parseURL(s string, private bool) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("the URL is empty")
	}
	if len(s) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes; at most %d are taken", len(s), maxURL)
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == '\\' || r >= 0x80 && r < 0xa0 {
			return nil, fmt.Errorf("the URL holds %q, which has to be written as %%%02X", r, r)
		}
	}
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "" && u.Host == "" && !strings.HasPrefix(s, "/") {
		u, err = url.Parse("https://" + s) // "example.com/x", as people write it
	}
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("%q is no URL: %w", cut(s, 200), err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q: only http:// and https:// are fetched", cut(s, 200))
	}
	if u.User != nil {
		return nil, errors.New("the URL holds a user name or an @ before its host; such URLs are not fetched")
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q names no host", cut(s, 200))
	}
	if err := checkHost(u, private); err != nil {
		return nil, err
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// checkHost brings a URL's host into its one spelling and refuses those whose
// spelling already tells that they are not public. Names are judged again by
// what they resolve to, when the connection is made.
func checkHost(u *url.URL, private bool) error {
	port := u.Port()
	u.Host = strings.TrimSuffix(u.Host, ":")
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("port %s: want 1 to 65535", port)
		}
		if !private && slices.Contains(foreignPorts, uint16(n)) {
			return fmt.Errorf("port %d belongs to another protocol; it is not fetched from", n)
		}
	}
	host := u.Hostname()
	if strings.Contains(host, "%") {
		return fmt.Errorf("host %q has a zone or an escape; write a plain name or address", host)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if why := embedsIPv4(addr); why != "" && !private {
			return &refusedAddress{addr, why}
		}
		return checkAddr(addr, private)
	}
	if strings.HasPrefix(u.Host, "[") {
		return fmt.Errorf("host %q is no address", u.Host)
	}
	// Digits and dots of other scripts become ASCII here, as they would on
	// the way to the resolver.
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return fmt.Errorf("host %q is no name: %w", host, err)
	}
	name := strings.ToLower(strings.TrimSuffix(ascii, "."))
	if name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return fmt.Errorf("host %q is no name", host)
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; looksNumeric(last) {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			return fmt.Errorf("host %q is a number; write an IPv4 address as four decimal numbers", host)
		}
		if err := checkAddr(addr, private); err != nil {
			return err
		}
	}
	if !private && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		return fmt.Errorf("%s is this machine; only public addresses are fetched", name)
	}
	u.Host = name
	if port != "" {
		u.Host += ":" + port
	}
	return nil
}

// looksNumeric reports whether resolvers take a host whose last label is this
// for an IPv4 address: in decimal, octal or hexadecimal.
func looksNumeric(label string) bool {
	if label == "" || label[0] < '0' || label[0] > '9' {
		return false
	}
	hex := strings.HasPrefix(label, "0x")
	for _, c := range strings.TrimPrefix(label, "0x") {
		digit := c >= '0' && c <= '9'
		if !digit && !(hex && c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// foreignPorts are those of other protocols, some of whose servers can be made
// to take a web request for one of their own.
var foreignPorts = []uint16{
	1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
	115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556,
	563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 2375, 2376, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432,
	6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 10080, 11211, 27017,
}

// A network is a block of addresses that are not public, and what it is.
type network struct {
	prefix netip.Prefix
	what   string
}

func networks(list ...string) []network {
	out := make([]network, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		out = append(out, network{netip.MustParsePrefix(list[i]), list[i+1]})
	}
	return out
}

// private4 are the blocks of IPv4 that are not on the public net.
var private4 = networks(
	"0.0.0.0/8", "an unspecified address",
	"10.0.0.0/8", "a private address",
	"100.64.0.0/10", "an address within a provider's network",
	"127.0.0.0/8", "a loopback address",
	"168.63.129.16/32", "a cloud provider's address for its own machines",
	"169.254.0.0/16", "a link-local address",
	"172.16.0.0/12", "a private address",
	"192.0.0.0/24", "a reserved address",
	"192.0.2.0/24", "an address for documentation",
	"192.88.99.0/24", "a 6to4 relay",
	"192.168.0.0/16", "a private address",
	"198.18.0.0/15", "an address for benchmarks",
	"198.51.100.0/24", "an address for documentation",
	"203.0.113.0/24", "an address for documentation",
	"224.0.0.0/4", "a multicast address",
	"240.0.0.0/4", "a reserved address",
)

// public6 is the one block of IPv6 that is public; private6 are the exceptions
// in it, and names for blocks outside.
var (
	public6  = netip.MustParsePrefix("2000::/3")
	private6 = networks(
		"::/128", "an unspecified address",
		"::1/128", "a loopback address",
		"fe80::/10", "a link-local address",
		"fc00::/7", "a private address",
		"fec0::/10", "a private address",
		"ff00::/8", "a multicast address",
		"2001:db8::/32", "an address for documentation",
		"3fff::/20", "an address for documentation",
		"2001::/23", "a reserved address",
	)
)

// embedding are the forms in which an IPv6 address holds an IPv4 address.
var embedding = networks(
	"::ffff:0:0/96", "an IPv4 address written as IPv6",
	"::ffff:0:0:0/96", "an IPv4 address written as IPv6",
	"64:ff9b::/96", "an IPv4 address behind NAT64",
	"64:ff9b:1::/48", "an IPv4 address behind NAT64",
	"2002::/16", "an IPv4 address behind 6to4",
	"2001::/32", "an IPv4 address behind Teredo",
	"::/96", "an IPv4 address written as IPv6",
)

// embedsIPv4 says in which form addr holds an IPv4 address, "" for none.
func embedsIPv4(addr netip.Addr) string {
	if !addr.Is6() || addr == netip.IPv6Unspecified() || addr == netip.IPv6Loopback() {
		return ""
	}
	for _, n := range embedding {
		if n.prefix.Addr().Is4In6() && addr.Is4In6() || n.prefix.Contains(addr) {
			return n.what
		}
	}
	// ISATAP: the IPv4 address is the last part of an interface's number.
	if b := addr.As16(); (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		return "an IPv4 address behind ISATAP"
	}
	return ""
}

// nat64 is the block in which a resolver on a network without IPv4 gives the
// addresses of hosts that have no other.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// checkAddr refuses an address that is not public, unless private is set.
func checkAddr(addr netip.Addr, private bool) error {
	if private {
		return nil
	}
	if addr.Zone() != "" {
		return &refusedAddress{addr, "an address of one link"}
	}
	judged := addr.Unmap()
	if nat64.Contains(judged) {
		b := judged.As16()
		judged = netip.AddrFrom4([4]byte(b[12:]))
	}
	blocks := private4
	if judged.Is6() {
		if why := embedsIPv4(judged); why != "" {
			return &refusedAddress{addr, why}
		}
		blocks = private6
	}
	for _, n := range blocks {
		if n.prefix.Contains(judged) {
			return &refusedAddress{addr, n.what}
		}
	}
	if judged.Is6() && !public6.Contains(judged) {
		return &refusedAddress{addr, "not a public address"}
	}
	return nil
}
