package tool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

// The ways out that are tried here are those of files and of web requests: 110
// paths and 182 addresses, each in several ways, and races. Those of shell
// commands, more than 470, are tried where commands are judged, in package
// policy: TestDeniedHoweverWritten and TestUncertainAsks.

// secret is what stands in the files outside.
const secret = "TOP-SECRET"

// jail makes a workspace with a neighbour that nothing may reach, and links
// from the one to the other.
func jail(t *testing.T) (b *bench, outside string) {
	t.Helper()
	top := t.TempDir()
	outside = filepath.Join(top, "outside")
	dir := filepath.Join(top, "ws")
	put(t, filepath.Join(outside, "f"), secret+"\n")
	put(t, filepath.Join(outside, "sub/g"), secret+"\n")
	put(t, filepath.Join(top, "ws-twin/f"), secret+"\n") // its name begins like the workspace's
	put(t, filepath.Join(dir, "in.txt"), "inside\n")
	put(t, filepath.Join(dir, "dir/in.txt"), "inside\n")
	for name, target := range map[string]string{
		"l-abs":         filepath.Join(outside, "f"),
		"l-rel":         "../outside/f",
		"l-dir-abs":     outside,
		"l-dir-rel":     "../outside",
		"l-up":          "..",
		"l-root":        "/",
		"l-twin":        dir + "-twin/f",
		"l-detour":      "dir/../../outside/f",
		"l-dots":        "./.././outside//f",
		"l-chain":       "l-rel",
		"l-chain-dir":   "dir/l-deep",
		"dir/l-deep":    "../../outside",
		"dir/l-chain":   "../l-chain",
		"l-through":     "l-dir-rel/sub/g",
		"l-back":        "../ws/../outside/f",
		"l-loop":        "l-loop",
		"l-loop-a":      "l-loop-b",
		"l-loop-b":      "l-loop-a",
		"l-dangling":    "../outside/new",
		"l-proc-root":   "/proc/self/root" + filepath.Join(outside, "f"),
		"l-proc-cwd":    "/proc/self/cwd",
		"l-proc-fd":     "/proc/self/fd/0",
		"l-dev":         "/dev/zero",
		"l-passwd":      "/etc/passwd",
		"l-self":        ".",
		"l-blank":       " ../outside/f",
		"l-host-inside": filepath.Join(dir, "..", "outside/f"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &bench{t, dir, w}, outside
}

// filePaths are paths that lead out, or seem to.
func filePaths(dir, outside string) []string {
	paths := []string{
		// Up.
		"../outside/f", "/../outside/f", "./../outside/f", "dir/../../outside/f", "dir/./.././../outside/f", "../ws/../outside/f",
		"//../outside/f", "..//outside//f", "dir/../../ws/../outside/f", "a/b/../../../outside/f", "../../../../../../etc/passwd", "..",
		"../", "../ws-twin/f", "dir/..//../outside/f", "l-self/../../outside/f", ".//..//outside/f", "in.txt/../../outside/f", "nope/../../outside/f",
		// Absolute.
		outside + "/f", outside, dir + "/../outside/f", dir + "-twin/f", dir + "/dir/../../outside/f", "/etc/passwd", "/etc/../etc/shadow", "//etc/passwd",
		"/proc/self/root/etc/passwd", "/proc/self/cwd/../outside/f", "/proc/1/environ", "/proc/self/mem", "/proc/self/fd/0", "/dev/stdin", "/dev/zero", "/dev/fd/0", "/sys/kernel",
		// Links.
		"l-abs", "l-rel", "l-dir-abs/f", "l-dir-rel/f", "l-dir-rel/sub/g", "l-dir-rel/../outside/f", "l-up/outside/f", "l-root/etc/passwd", "l-root" + outside + "/f",
		"l-twin", "l-detour", "l-dots", "l-chain", "l-chain-dir/f", "dir/l-deep/f", "dir/l-chain", "l-through", "l-back", "l-loop", "l-loop/f", "l-loop-a", "l-dangling", "l-dangling/f",
		"l-proc-root", "l-proc-cwd/f", "l-proc-fd", "l-dev", "l-passwd", "l-self/l-abs", "l-self/l-self/l-rel", "dir/../l-abs", "l-blank", "l-host-inside", dir + "/l-abs", "l-dir-abs", "l-dir-rel/", "l-up", "l-root",
		// What others understand as a way up or out, and what is a plain name here.
		`..\outside\f`, `dir\..\..\outside\f`, "..%2foutside%2ff", "%2e%2e/outside/f", "..%00/outside/f", "．．/outside/f", "‥/outside/f", "..／outside／f", "..∕outside∕f",
		"..\u200b/outside/f", ".\u0000./outside/f", "../outside/f\x00.txt", "~/outside/f", "~root/.ssh/id_rsa", "$HOME/.ssh/id_rsa", "`pwd`/../outside/f", "file://" + outside + "/f", "file:../outside/f",
		`\\?\C:\Windows\win.ini`, `C:\Windows\win.ini`, "C:/Windows/win.ini", "\\\\server\\share\\f", "CON", "NUL", "f::$DATA", ".. /outside/f", " ../outside/f", "../outside/f ", "...//outside/f", "..;/outside/f",
		"L-ABS", "In.TXT/../../outside/f", strings.Repeat("../", 200) + "etc/passwd", strings.Repeat("a/../", 3000) + "../outside/f", strings.Repeat("a/", 3000) + "f", strings.Repeat("x", 5000),
	}
	return paths
}

func TestFileEscapes(t *testing.T) {
	b, outside := jail(t)
	before := tree(t, filepath.Dir(outside))
	paths := filePaths(b.dir, outside)
	for _, p := range paths {
		calls := []struct {
			tool string
			args args
		}{
			{"read_file", args{"path": p}},
			{"find_files", args{"path": p, "pattern": "*"}},
			{"find_files", args{"pattern": p}},
			{"search_files", args{"path": p, "pattern": secret + "|root:"}},
			{"search_files", args{"pattern": secret, "glob": p}},
			{"edit_file", args{"path": p, "old_string": secret, "new_string": "CHANGED"}},
			{"patch", args{"patch": envelope("*** Update File: " + p + "\n@@\n-" + secret + "\n+CHANGED\n")}},
			{"patch", args{"patch": envelope("*** Delete File: " + p + "\n")}},
			{"patch", args{"patch": envelope("*** Update File: " + p + "\n*** Move to: moved\n")}},
			{"patch", args{"patch": "--- a/" + p + "\n+++ b/" + p + "\n@@ -1 +1 @@\n-" + secret + "\n+CHANGED\n"}},
			{"patch", args{"patch": "diff --git a/x b/x\nrename from " + p + "\nrename to moved\n"}},
		}
		for _, c := range calls {
			if strings.ContainsAny(p, "\n\x00") && c.tool == "patch" {
				continue // no path of a patch
			}
			r := b.run(c.tool, c.args)
			if strings.Contains(r.Text, secret+"\n") || strings.Contains(r.Text, "1\t"+secret) || strings.Contains(r.Text, "root:x:") {
				t.Errorf("%s %q got out: %s", c.tool, p, r.Text)
			}
			reads := c.tool != "find_files" && c.args["glob"] == nil
			if reads && !r.IsError && c.tool != "search_files" && c.tool != "read_file" {
				t.Errorf("%s %q was not refused: %s", c.tool, p, r.Text)
			}
			if c.tool == "read_file" && !r.IsError && !strings.Contains(r.Text, "is a directory:\n") {
				t.Errorf("read_file %q was not refused: %s", p, r.Text)
			}
		}
	}
	// Nothing inside was made, changed or removed either: each of the paths
	// names nothing there.
	if diff := cmp.Diff(before, tree(t, filepath.Dir(outside))); diff != "" {
		t.Errorf("the files have changed:\n%s", diff)
	}
	if len(paths) < 100 {
		t.Errorf("only %d paths were tried", len(paths))
	}
}

// Writing to any of the paths makes no file outside, and changes none.
func TestWriteEscapes(t *testing.T) {
	b, outside := jail(t)
	top := filepath.Dir(outside)
	beyond := func() files {
		out := files{}
		for name, content := range tree(t, top) {
			if !strings.HasPrefix(name, "ws/") {
				out[name] = content
			}
		}
		return out
	}
	before := beyond()
	for _, p := range filePaths(b.dir, outside) {
		for _, target := range []string{p, p + "/new", p + ".new"} {
			b.run("write_file", args{"path": target, "content": "CHANGED"})
			if strings.ContainsAny(target, "\n\x00") {
				continue
			}
			b.run("patch", args{"patch": envelope("*** Add File: " + target + "\n+CHANGED\n")})
			b.run("patch", args{"patch": envelope("*** Update File: in.txt\n*** Move to: " + target + "\n")})
			if _, err := os.Stat(filepath.Join(b.dir, "in.txt")); err != nil {
				put(t, filepath.Join(b.dir, "in.txt"), "inside\n") // it was moved within
			}
		}
	}
	if diff := cmp.Diff(before, beyond()); diff != "" {
		t.Errorf("the files outside have changed:\n%s", diff)
	}
	for _, name := range []string{"/etc/passwd.new", "/proc/new", "/dev/zero.new"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// What is no regular file is neither opened, replaced, moved nor deleted.
func TestSpecialFileEscapes(t *testing.T) {
	b, _ := jail(t)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o666); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	names := []string{"pipe", "dir/../pipe", "l-pipe"}
	if err := os.Symlink("pipe", filepath.Join(b.dir, "l-pipe")); err != nil {
		t.Fatal(err)
	}
	for _, dev := range []struct {
		name string
		mode uint32
		num  int
	}{{"null", syscall.S_IFCHR, 1<<8 | 3}, {"zero", syscall.S_IFCHR, 1<<8 | 5}, {"disk", syscall.S_IFBLK, 7 << 8}} {
		if err := syscall.Mknod(filepath.Join(b.dir, dev.name), dev.mode|0o666, dev.num); err == nil {
			names = append(names, dev.name)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, p := range names {
			for _, c := range []struct {
				tool string
				args args
			}{
				{"read_file", args{"path": p}},
				{"search_files", args{"path": p, "pattern": "x"}},
				{"edit_file", args{"path": p, "old_string": "a", "new_string": "b"}},
				{"write_file", args{"path": p, "content": "x"}},
				{"patch", args{"patch": envelope("*** Update File: " + p + "\n@@\n-a\n+b\n")}},
				{"patch", args{"patch": envelope("*** Delete File: " + p + "\n")}},
				{"patch", args{"patch": envelope("*** Add File: " + p + "\n+x\n")}},
				{"patch", args{"patch": envelope("*** Update File: " + p + "\n*** Move to: moved\n")}},
				{"patch", args{"patch": envelope("*** Update File: in.txt\n*** Move to: " + p + "\n")}},
			} {
				if r := b.run(c.tool, c.args); !r.IsError {
					t.Errorf("%s %q was not refused: %s", c.tool, p, r.Text)
				}
			}
		}
		if r := b.run("search_files", args{"pattern": "inside"}); !strings.Contains(r.Text, "in.txt:1:inside") {
			t.Errorf("search: %s", r.Text)
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("a special file made a tool hang")
	}
	for _, p := range names {
		if info, err := os.Lstat(filepath.Join(b.dir, p)); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s is now %v (%v)", p, info, err)
		}
	}
}

// A hard link can't be told from any other file, which the workspace's
// documentation says: it is read. Writing leaves the file that it shares as it
// was.
func TestHardLinksAreReplaced(t *testing.T) {
	for name, a := range map[string]args{
		"write_file": {"path": "hard", "content": "CHANGED"},
		"edit_file":  {"path": "hard", "old_string": secret, "new_string": "CHANGED"},
		"patch":      {"patch": envelope("*** Update File: hard\n@@\n-" + secret + "\n+CHANGED\n")},
	} {
		b, outside := jail(t)
		if err := os.Link(filepath.Join(outside, "f"), filepath.Join(b.dir, "hard")); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
		if got := b.ok("read_file", args{"path": "hard"}); got != "1\t"+secret {
			t.Errorf("read: %q", got)
		}
		b.ok(name, a)
		if got, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(got) != secret+"\n" {
			t.Errorf("%s: the file outside is %q (%v)", name, got, err)
		}
		if got := b.read("hard"); !strings.HasPrefix(got, "CHANGED") {
			t.Errorf("%s: the link is %q", name, got)
		}
	}
}

// A directory is swapped for a link out, and back, under patches that add,
// edit, move and delete in it.
func TestPatchOfSwappedDirectory(t *testing.T) {
	b, outside := jail(t)
	before := tree(t, outside)
	put(t, filepath.Join(b.dir, "real/f"), "inside\n")
	d := filepath.Join(b.dir, "swap")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := "real"
			if i%2 == 1 {
				target = outside
			}
			tmp := filepath.Join(b.dir, "tmp-link")
			_ = os.Symlink(target, tmp)
			_ = os.Rename(tmp, d)
		}
	})
	applied := 0
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); runtime.Gosched() {
		for _, body := range []string{
			"*** Add File: swap/n\n+x\n", "*** Update File: swap/f\n@@\n-" + secret + "\n+CHANGED\n", "*** Update File: swap/f\n@@\n-inside\n+inside\n+more\n",
			"*** Update File: swap/f\n@@\n-more\n", "*** Delete File: swap/n\n", "*** Update File: swap/f\n*** Move to: swap/m\n", "*** Update File: swap/m\n*** Move to: swap/f\n", "*** Delete File: swap/sub/g\n",
		} {
			r := b.run("patch", args{"patch": envelope(body)})
			if !r.IsError {
				applied++
			}
			if strings.Contains(r.Text, secret) {
				t.Errorf("a patch read outside: %s", r.Text)
			}
		}
	}
	close(stop)
	wg.Wait()
	if applied == 0 {
		t.Error("no patch was applied: the race was not run")
	}
	if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
		t.Errorf("the files outside have changed:\n%s", diff)
	}
}

// privateAddresses are not on the public net, in their plain spelling.
var privateAddresses = []string{
	"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
	"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "168.63.129.16", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
	"203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"::", "::1", "fe80::1", "febf::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1", "2001::1", "2001:2::1", "2001:10::1",
	"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1",
	"2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::1", "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2600::5efe:10.0.0.1", "2600::200:5efe:192.168.0.1",
}

// fetchURLs are web addresses that are refused before anything is asked of the
// net.
var fetchURLs = []string{
	// Other spellings of this machine.
	"http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://a.localhost/", "http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7F.0.0.1/", "http://0x7f.1/",
	"http://127.1/", "http://127.0.1/", "http://0177.0.0.1/", "http://0177.1/", "http://127.000.000.001/", "http://127.0.0.1./", "http://0/", "http://00/", "http://0x0/", "http://4294967295/", "http://99999999999/",
	"http://1.2.3.4.5/", "http://256.0.0.1/", "http://0x/", "http://a.0x7f/", "http://a.1/", "http://127.0.0.1%20/", "http://１２７.0.0.1/", "http://127。0。0。1/", "http://①②⑦.0.0.1/", "http://ⓛocalhost/", "http://127.0.0.1../", "http://localhost../",
	"http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[0000::0001]/", "http://[::ffff:7f00:1]/", "http://[::ffff:127.0.0.1]/", "http://[::]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%25lo]:80/", "http://[::1%25lo]/", "http://[::1]:80/", "http://[1::2::3]/", "http://[127.0.0.1]/", "http://[localhost]/",
	// Even a public IPv4 address is not taken in an IPv6 form.
	"http://[::ffff:1.1.1.1]/", "http://[64:ff9b::1.1.1.1]/", "http://[2002:101:101::1]/", "http://[2001:0:101:101::1]/", "http://[::1.1.1.1]/",
	// Names that only look like a host of somebody else.
	"http://example.com@127.0.0.1/", "http://user:pass@example.com/", "http://example.com:80@10.0.0.1/", "http://@127.0.0.1/", "http://a@b@c/", "http://example.com%40127.0.0.1/", "http://127.0.0.1\\@example.com/", "http://example.com\\.127.0.0.1/", "http:\\\\127.0.0.1\\", "http://127.0.0.1#@example.com/", "http://127.0.0.1?@example.com/", "//127.0.0.1/", "http:///127.0.0.1/", "http:127.0.0.1/", "http:/127.0.0.1/", "127.0.0.1/x", "127.0.0.1:80/", "localhost/x", "10.1/x",
	"http://exa mple.com/", "http://example.com\t/", "http://example.com\n.evil/", "http://example.com\r\nHost: x/", "http://\u202eexample.com/", "http://exam\u00adple\u200b.com\u0000/", "http://.example.com/", "http://example..com/", "http://./", "http://../", "http://%31%32%37.0.0.1/", "http://%6c%6fcalhost/", "http:// /", "http://", "http://:80/", "http://?x", "",
	// Other schemes.
	"file:///etc/passwd", "file://localhost/etc/passwd", "FILE:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "data:text/html,hi", "data:text/plain;base64,aGk=", "ftp://example.com/x", "javascript:alert(1)", "dict://127.0.0.1:11211/stat", "ldap://example.com/", "jar:http://example.com!/x", "view-source:http://example.com", "ws://example.com/", "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", "about:blank", "blob:http://example.com/1", "netdoc:///etc/passwd", "/etc/passwd", "mailto:a@example.com", "tel:1", "urn:x:y",
	// Other protocols' ports, and no ports.
	"http://example.com:22/", "http://example.com:25/", "http://example.com:6379/", "http://example.com:11211/", "http://example.com:2375/", "http://example.com:0/", "http://example.com:65536/", "http://example.com:-1/", "http://example.com:99999999999999999999/", "http://example.com:8o/", "http://example.com:3306/", "http://example.com:00025/",
}

func TestFetchEscapes(t *testing.T) {
	var asked atomic.Int64
	b := open(t, tool.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		asked.Add(1)
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}, nil)
	for _, u := range fetchURLs {
		if r := b.run("fetch_url", args{"url": u}); !r.IsError {
			t.Errorf("%q was not refused: %s", u, r.Text)
		}
		if n := asked.Swap(0); n > 0 {
			t.Errorf("%q was looked up", u)
		}
	}
	for _, a := range privateAddresses {
		host := a
		if strings.Contains(a, ":") {
			host = "[" + a + "]"
		}
		for _, u := range []string{"http://" + host + "/", "https://" + host + ":8443/x?y"} {
			r := b.run("fetch_url", args{"url": u})
			if !r.IsError || !strings.Contains(r.Text, "only public addresses are fetched") {
				t.Errorf("%s was not refused: %s", u, r.Text)
			}
		}
	}
	if n := len(fetchURLs) + len(privateAddresses); n < 150 {
		t.Errorf("only %d addresses were tried", n)
	}
}

// A name that resolves to what is not public is not connected to, whatever
// else it resolves to, and whatever it resolved to before.
func TestFetchEscapesByName(t *testing.T) {
	var reached atomic.Int64
	here := web(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	port := here[strings.LastIndexByte(here, ':')+1:]
	for _, a := range privateAddresses {
		b := open(t, tool.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		}}, nil)
		r := b.run("fetch_url", args{"url": "http://name.example:" + port + "/"})
		if !r.IsError || !strings.Contains(r.Text, "only public addresses are fetched") {
			t.Errorf("a name for %s was not refused: %s", a, r.Text)
		}
	}
	// All of a name's addresses are tried, as none of them is public.
	b := open(t, tool.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1%lo"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}, nil
	}}, nil)
	b.fails("fetch_url", args{"url": "http://name.example:" + port + "/"}, "only public addresses are fetched")
	// With no resolver of our own, the system's answer is judged.
	system := open(t, tool.Options{}, nil)
	for _, host := range []string{"localhost", "ip6-localhost", "ip6-loopback"} {
		system.fails("fetch_url", args{"url": "http://" + host + ":" + port + "/"}, "")
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("this machine was reached %d times", n)
	}
	// The same server is reached when the options allow it: it was not dead.
	allowed := open(t, tool.Options{AllowPrivate: true, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}, nil)
	allowed.ok("fetch_url", args{"url": "http://name.example:" + port + "/"})
	if reached.Load() != 1 {
		t.Error("the server was not reached with AllowPrivate")
	}
}

// A server that may be asked redirects to what may not be. It is asked through
// a proxy here, as no public server is at hand.
func TestFetchEscapesByRedirect(t *testing.T) {
	targets := append([]string{}, fetchURLs...)
	for _, a := range privateAddresses {
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		targets = append(targets, "http://"+a+"/")
	}
	var strayed atomic.Value
	proxy := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "public.example" {
			strayed.Store(r.URL.String())
			return
		}
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err != nil || i >= len(targets) {
			strayed.Store(r.URL.String())
			return
		}
		w.Header()["Location"] = []string{strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(targets[i])}
		w.WriteHeader(http.StatusFound)
	})
	b := open(t, tool.Options{UseProxy: true, Environ: []string{"http_proxy=" + proxy}}, nil)
	for i, to := range targets {
		// A relative target stays on the same server.
		if !strings.Contains(to, ":") && !strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\r\n\x00") || strings.HasPrefix(to, "http:/127") || strings.HasPrefix(to, "http:127") {
			continue
		}
		r := b.run("fetch_url", args{"url": fmt.Sprintf("http://public.example/%d", i)})
		if !r.IsError {
			t.Errorf("a redirect to %q was followed: %s", to, r.Text)
		}
		if s := strayed.Swap(""); s != nil && s != "" {
			t.Errorf("a redirect to %q led to %s", to, s)
		}
	}
}
