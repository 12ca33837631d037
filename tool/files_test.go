package tool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

func utf16Text(s string, big, bom bool) string {
	var b strings.Builder
	units := utf16.Encode([]rune(s))
	if bom {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		hi, lo := byte(u>>8), byte(u)
		if !big {
			hi, lo = lo, hi
		}
		b.WriteByte(hi)
		b.WriteByte(lo)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	b := open(t, tool.Options{}, map[string]string{
		"a.txt": "one\ntwo\n\nfour", "empty": "", "crlf": "a\r\nb\r\n", "bom": "\xef\xbb\xbfa\n",
		"le": utf16Text("hé\nb\n", false, true), "be": utf16Text("hé\nb\n", true, true), "bare": utf16Text("plain text\n", false, false),
		"latin": "na\xefve \x93q\x94\n", "cut": "日本 ok \xe6\x97\n", "long": long.String(), "wide": strings.Repeat("x", 3000) + "\nnext\n",
		"bin": "\x7fELF\x02\x01\x00\x00", "d/config.go": "x", "d/e/main_test.go": "x", "many/x": "",
	})
	for _, test := range []struct {
		name string
		args args
		want string
	}{
		{"plain", args{"path": "a.txt"}, "1\tone\n2\ttwo\n3\t\n4\tfour"},
		{"offset", args{"path": "a.txt", "offset": 3}, "3\t\n4\tfour\n[lines 3-4 of 4]"},
		{"limit", args{"path": "a.txt", "offset": 2, "limit": 1}, "2\ttwo\n[lines 2-2 of 4; go on with offset 3]"},
		{"from the end", args{"path": "a.txt", "offset": -2}, "3\t\n4\tfour\n[lines 3-4 of 4]"},
		{"beyond the start", args{"path": "a.txt", "offset": -99, "limit": 1}, "1\tone\n[lines 1-1 of 4; go on with offset 2]"},
		{"huge limit", args{"path": "a.txt", "offset": 4, "limit": 1 << 62}, "4\tfour\n[lines 4-4 of 4]"},
		{"empty", args{"path": "empty"}, "[the file is empty]"},
		{"CRLF", args{"path": "crlf"}, "1\ta\n2\tb\n[CRLF]"},
		{"BOM", args{"path": "bom"}, "1\ta\n[BOM]"},
		{"UTF-16LE", args{"path": "le"}, "1\thé\n2\tb\n[UTF-16LE]"},
		{"UTF-16BE", args{"path": "be"}, "1\thé\n2\tb\n[UTF-16BE]"},
		{"UTF-16 without a mark", args{"path": "bare"}, "1\tplain text\n[UTF-16LE]"},
		{"8 bits", args{"path": "latin"}, "1\tnaïve “q”\n[windows-1252]"},
		{"broken UTF-8", args{"path": "cut"}, "1\t日本 ok \uFFFD"},
		{"a long line", args{"path": "wide"}, "1\t" + strings.Repeat("x", 2000) + "[line cut: 1000 bytes more]\n2\tnext"},
		{"a directory", args{"path": "d"}, "d is a directory:\nconfig.go\ne/"},
	} {
		if diff := cmp.Diff(test.want, b.ok("read_file", test.args)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	got := b.ok("read_file", args{"path": "long"})
	if !strings.HasSuffix(got, "\n2000\tline 2000\n[lines 1-2000 of 5000; go on with offset 2001]") {
		t.Errorf("long file ends with %q", got[len(got)-80:])
	}
	got = b.ok("read_file", args{"path": "long", "limit": 5000})
	if len(got) > 51<<10 || !strings.Contains(got, "of 5000; go on with offset ") {
		t.Errorf("%d bytes, end %q", len(got), got[len(got)-80:])
	}
	b.fails("read_file", args{"path": "a.txt", "offset": 5}, "offset 5 is past the end: a.txt has 4 lines")
	b.fails("read_file", args{"path": "bin"}, "bin is a binary file (an ELF executable, 8 bytes)")
	b.fails("read_file", args{"path": "config.go"}, "did you mean d/config.go?")
	b.fails("read_file", args{"path": "d/confg.go"}, "did you mean d/config.go?")
	b.fails("read_file", args{"path": "x/y/main_test.go"}, "did you mean d/e/main_test.go?")
	b.fails("read_file", args{"path": "A.TXT"}, "did you mean a.txt?")
	if text := b.fails("read_file", args{"path": "zzz/qqq.unlike"}, "no such file or directory"); strings.Contains(text, "did you mean") {
		t.Errorf("a guess out of nothing: %s", text)
	}
}

func TestReadHugeFileByLine(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	line := strings.Repeat("y", 99)
	f, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 17 << 20 / 90
	lines -= lines % 1000
	thousand := strings.Repeat(line[:90]+"\n"+line[:91]+"\n", 500)
	for range lines / 1000 {
		if _, err := f.WriteString(thousand); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("the end"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	lines++
	want := fmt.Sprintf("%d\tthe end\n[lines %d-%d of %d]", lines, lines, lines, lines)
	if got := b.ok("read_file", args{"path": "log", "offset": -1}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = fmt.Sprintf("2\t%s\n[lines 2-2 of %d; go on with offset 3]", line[:91], lines)
	if got := b.ok("read_file", args{"path": "log", "offset": 2, "limit": 1}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadImage(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00data", 4000)
	b := open(t, tool.Options{}, map[string]string{"p.png": png, "odd.txt": "GIF89a\x01\x00", "big.jpg": "\xff\xd8\xff" + strings.Repeat("j", 6<<20)})
	r := b.run("read_file", args{"path": "p.png"})
	if r.IsError || len(r.Media) != 1 || r.Media[0].Type != "image/png" || r.Media[0].Name != "p.png" || string(r.Media[0].Data) != png {
		t.Errorf("png: error %v, %q, %d media", r.IsError, r.Text, len(r.Media))
	}
	if r := b.run("read_file", args{"path": "odd.txt"}); len(r.Media) != 1 || r.Media[0].Type != "image/gif" {
		t.Errorf("gif by content: %q", r.Text)
	}
	b.fails("read_file", args{"path": "big.jpg"}, "is an image of 6291.5 KB; at most 5242.9 KB")
}

type change struct {
	Created        bool
	Added, Removed int
	Diff           string
}

func changeOf(t *testing.T, raw json.RawMessage) change {
	t.Helper()
	var c change
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("details %s: %v", raw, err)
	}
	return c
}

func TestWriteFile(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"a.txt": "one\ntwo\nthree\n", "crlf": "a\r\nb\r\n", "bom": "\xef\xbb\xbfa\n", "le": utf16Text("a\r\nb\r\n", false, true), "latin": "\xe9\xe8\n", "bin": "\x00\x01", "d/x": ""})
	if err := os.Chmod(filepath.Join(b.dir, "a.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, content, text, file string
	}{
		{"new/deep/f", "x\ny\n", "Created new/deep/f: 2 lines.", "x\ny\n"},
		{"a.txt", "one\n2\nthree\n", "Overwrote a.txt: 3 lines.", "one\n2\nthree\n"},
		{"a.txt", "one\n2\nthree\n", "a.txt has this content already (3 lines).", "one\n2\nthree\n"},
		{"crlf", "a\nc\n", "Overwrote crlf: 2 lines (kept: CRLF).", "a\r\nc\r\n"},
		{"bom", "b\n", "Overwrote bom: 1 line (kept: BOM).", "\xef\xbb\xbfb\n"},
		{"le", "ü\nb\n", "Overwrote le: 2 lines (kept: UTF-16LE, CRLF).", utf16Text("ü\r\nb\r\n", false, true)},
		{"latin", "ù€\n", "Overwrote latin: 1 line (kept: windows-1252).", "\xf9\x80\n"},
		{"latin", "日本\n", "Overwrote latin: 1 line (it is UTF-8 now; the file is in an 8-bit encoding (read as windows-1252), which has no '日').", "日本\n"},
		{"bin", "text\n", "Overwrote bin: 1 line (it was binary).", "text\n"},
		{"e", "", "Created e: 0 lines.", ""},
	} {
		if got := b.ok("write_file", args{"path": test.name, "content": test.content}); got != test.text {
			t.Errorf("%s: %q, want %q", test.name, got, test.text)
		}
		if got := b.read(test.name); got != test.file {
			t.Errorf("%s holds %q, want %q", test.name, got, test.file)
		}
	}
	if info, err := os.Stat(filepath.Join(b.dir, "a.txt")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode of a.txt: %v %v", info.Mode(), err)
	}
	r := b.run("write_file", args{"path": "a.txt", "content": "one\n2\n3\n"})
	want := change{false, 1, 1, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n 2\n-three\n+3\n"}
	if diff := cmp.Diff(want, changeOf(t, r.Details)); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	r = b.run("write_file", args{"path": "n", "content": "x"})
	want = change{true, 1, 0, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"}
	if diff := cmp.Diff(want, changeOf(t, r.Details)); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	b.fails("write_file", args{"path": "d", "content": "x"}, "d is a directory")
	b.fails("write_file", args{"path": "/", "content": "x"}, "is the workspace's root")
	b.fails("write_file", args{"path": "dir/", "content": "x"}, "names a directory")
	b.fails("write_file", args{"path": "a.txt/x", "content": "x"}, "not a directory")
	entries, err := filepath.Glob(filepath.Join(b.dir, ".synapse-tmp-*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("temporary files left: %v %v", entries, err)
	}
}

// Readers see one content or the other, and parallel writers leave one whole.
func TestWritesAreAtomic(t *testing.T) {
	contents := []string{strings.Repeat("a", 200_000), strings.Repeat("b", 100_000)}
	b := open(t, tool.Options{}, map[string]string{"f": contents[0]})
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			data, err := os.ReadFile(filepath.Join(b.dir, "f"))
			if err != nil || string(data) != contents[0] && string(data) != contents[1] {
				t.Errorf("a reader saw %d bytes (%v)", len(data), err)
				return
			}
		}
	})
	for _, c := range contents {
		writers.Go(func() {
			for range 20 {
				if r, err := b.tool("write_file").Run(t.Context(), invocation(t, args{"path": "f", "content": c})); err != nil || r.IsError {
					t.Errorf("write: %v %v", r, err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// The edits of parallel agents in one file don't lose each other.
func TestParallelEditsAllCount(t *testing.T) {
	var content strings.Builder
	for i := range 20 {
		fmt.Fprintf(&content, "line %02d\n", i)
	}
	b := open(t, tool.Options{}, map[string]string{"f": content.String()})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			in := invocation(t, args{"path": "f", "old_string": fmt.Sprintf("line %02d", i), "new_string": fmt.Sprintf("done %02d", i)})
			if r, err := b.tool("edit_file").Run(t.Context(), in); err != nil || r.IsError {
				t.Errorf("edit %d: %v %v", i, r, err)
			}
		})
	}
	wg.Wait()
	if got := b.read("f"); got != strings.ReplaceAll(content.String(), "line", "done") {
		t.Errorf("edits were lost:\n%s", got)
	}
}

// patch(1) is the second judge of diffs: applied to the old content they must
// give the new.
func TestDiffsApply(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("patch is not installed")
	}
	numbers := func(n int) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprint(i))
		}
		return lines
	}
	join := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	scattered := numbers(100)
	for i := 3; i < 100; i += 11 {
		scattered[i] = "changed"
	}
	moved := append(numbers(100)[50:], numbers(50)...)
	huge := numbers(3000)
	for i := range huge {
		huge[i] += " new"
	}
	for name, pair := range map[string][2]string{
		"one line":          {"a\nb\nc\n", "a\nx\nc\n"},
		"insert":            {"a\nb\n", "a\nnew\nb\n"},
		"delete":            {"a\nb\nc\n", "a\nc\n"},
		"first":             {"a\nb\n", "b\n"},
		"no end":            {"a\nb", "a\nc"},
		"end added":         {"a\nb", "a\nb\n"},
		"end removed":       {"a\nb\n", "a\nb"},
		"scattered":         {join(numbers(100)), join(scattered)},
		"moved":             {join(numbers(100)), join(moved)},
		"all of it":         {join(numbers(3000)), join(huge)},
		"repeated":          {"x\nx\nx\nx\n", "x\nx\ny\nx\nx\nx\n"},
		"nothing in common": {"a\nb\n", "c\nd\ne\n"},
	} {
		b := open(t, tool.Options{}, map[string]string{"f": pair[0]})
		c := changeOf(t, b.run("write_file", args{"path": "f", "content": pair[1]}).Details)
		dir := t.TempDir()
		put(t, filepath.Join(dir, "f"), pair[0])
		cmd := exec.Command("patch", "-s", "-p1")
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(c.Diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: patch: %v: %s\n%s", name, err, out, c.Diff)
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || !bytes.Equal(got, []byte(pair[1])) {
			t.Errorf("%s: patched to %q (%v), want %q", name, got, err, pair[1])
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("a\nb\n"), 1, 1)
	f.Add([]byte("\xff\xfea\x00"), -1, 0)
	f.Add([]byte("\xef\xbb\xbf\r\n\r"), 2, -5)
	f.Add([]byte("caf\xe9"), 1<<62, 1<<62)
	f.Add([]byte("x"), -1<<63, 1<<63-1)
	dir := f.TempDir()
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, content []byte, offset, limit int) {
		put(t, filepath.Join(dir, "f"), string(content))
		b := &bench{t, dir, w}
		r := b.run("read_file", args{"path": "f", "offset": offset, "limit": limit})
		if len(r.Text) > 60<<10 {
			t.Errorf("%d bytes", len(r.Text))
		}
	})
}
