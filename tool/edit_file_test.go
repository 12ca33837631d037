package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

func TestEditFile(t *testing.T) {
	for _, test := range []struct {
		name, file, old, new string
		all                  bool
		text, want           string
	}{
		{"one", "a\nb\nc\n", "b", "x", false, "Edited f: line 2.", "a\nx\nc\n"},
		{"several lines", "a\nb\nc\n", "a\nb\n", "z\n", false, "Edited f: line 1.", "z\nc\n"},
		{"removed", "a\nb\n", "a\n", "", false, "Edited f: line 1.", "b\n"},
		{"all", "a b a\na", "a", "xx", true, "Edited f: 3 replacements, lines 1, 1, 2.", "xx b xx\nxx"},
		{"all of one", "a", "a", "b", true, "Edited f: line 1.", "b"},
		{"empty file", "", "", "new\n", false, "Edited f: line 1.", "new\n"},
		{"CRLF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "Edited f: line 1.", "x\r\ny\r\nz\r\nc\r\n"},
		{"CRLF in arguments", "a\nb\n", "a\r\nb", "c\r\nd", false, "Edited f: line 1.", "c\nd\n"},
		{"mixed line ends, the rest untouched", "a\r\nb\nc\r\nd\n", "b\nc\n", "B\nC\n", false, "Edited f: line 2.", "a\r\nB\r\nC\r\nd\n"},
		{"mixed, LF part", "a\r\nb\nc\nd\r\n", "b\nc\n", "B\nC\n", false, "Edited f: line 2.", "a\r\nB\nC\nd\r\n"},
		{"line end at the start", "a\r\nb\r\n", "\nb", "\nc", false, "Edited f: line 1.", "a\r\nc\r\n"},
		{"lone CR kept", "a\rb\r\nc\r\n", "c", "d", false, "Edited f: line 2.", "a\rb\r\nd\r\n"},
		{"BOM", "\xef\xbb\xbfa\n", "a", "b", false, "Edited f: line 1.", "\xef\xbb\xbfb\n"},
		{"UTF-16LE", utf16Text("hé\r\nb", false, true), "hé", "hü", false, "Edited f: line 1.", utf16Text("hü\r\nb", false, true)},
		{"UTF-16BE", utf16Text("a😀\n", true, true), "😀", "x", false, "Edited f: line 1.", utf16Text("ax\n", true, true)},
		{"UTF-16 without a mark", utf16Text("plain text\n", false, false), "plain", "some", false, "Edited f: line 1.", utf16Text("some text\n", false, false)},
		{"8 bits", "caf\xe9 \x80\n", "é €", "è ™", false, "Edited f: line 1.", "caf\xe8 \x99\n"},
		{"broken UTF-8 elsewhere", "日本 \xe6\x97\nx\n", "x", "é", false, "Edited f: line 2.", "日本 \xe6\x97\né\n"},
	} {
		b := open(t, tool.Options{}, map[string]string{"f": test.file})
		got := b.ok("edit_file", args{"path": "f", "old_string": test.old, "new_string": test.new, "replace_all": test.all})
		if got != test.text {
			t.Errorf("%s: %q, want %q", test.name, got, test.text)
		}
		if file := b.read("f"); file != test.want {
			t.Errorf("%s: file is %q, want %q", test.name, file, test.want)
		}
	}
}

func TestEditFileExplainsMisses(t *testing.T) {
	const code = "func a() {\n\tif x {\n\t\treturn 1 \n\t}\n}\n\nfunc b(s string) string {\n\treturn “quoted” + s\n}\n"
	for _, test := range []struct{ name, file, old, new, want string }{
		{"several", "x\ny\nx\n", "x", "z", "edit_file: old_string stands 2 times in f (lines 1, 3); add lines around it to make it unique, or set replace_all"},
		{"indentation", code, "    if x {", "y", "edit_file: old_string was not found in f. Line 2 differs only in indentation, line 2 begins with 1 tab, old_string has 4 spaces:\n2\t\tif x {\nCopy the text from there."},
		{"blanks at line ends", code, "\t\treturn 1\n\t}", "y", "edit_file: old_string was not found in f. Lines 3-4 differ only in blanks at line ends, line 3 ends with 1 space, old_string has no blank:\n3\t\t\treturn 1 \n4\t\t}\nCopy the text from there."},
		{"blanks within", code, "func  b(s  string)", "y", "edit_file: old_string was not found in f. Line 7 differs only in blanks, line 7 is \"func b(s string) string {\", old_string has \"func  b(s  string)\":\n7\tfunc b(s string) string {\nCopy the text from there."},
		{"quotes", code, `return "quoted" + s`, "y", "edit_file: old_string was not found in f. Line 8 differs only in the kind of quotes, dashes or blanks, line 8 is \"\\treturn “quoted” + s\", old_string has \"return \\\"quoted\\\" + s\":\n8\t\treturn “quoted” + s\nCopy the text from there."},
		{"case", code, "FUNC A()", "y", "edit_file: old_string was not found in f. Line 1 differs only in upper and lower case, line 1 is \"func a() {\", old_string has \"FUNC A()\":\n1\tfunc a() {\nCopy the text from there."},
		{"line breaks", code, "func a() { if x {", "y", "edit_file: old_string was not found in f. Lines 1-2 differ only in where the lines break:\n1\tfunc a() {\n2\t\tif x {\nCopy the text from there."},
		{"line numbers", code, "1\tfunc a() {\n2\t\tif x {", "y", "edit_file: old_string was not found in f: it holds the line numbers that read_file shows; leave them out"},
		{"escapes", code, `func a() {\n\tif x {`, "y", `edit_file: old_string was not found in f: it holds backslash escapes (\n, \t, \") where the file has the characters themselves`},
		{"there already", code, "no such text here at all 12345", "func b(s string) string", "edit_file: old_string was not found in f; new_string stands there already, at line 7: the edit may have been made before"},
		{"nearest", code, "func b(s string) int {\n\treturn “quoted” + s\n}", "y", "edit_file: old_string was not found in f. Shown are the nearest lines, line 7 is \"func b(s string) string {\", old_string has \"func b(s string) int {\":\n7\tfunc b(s string) string {\n8\t\treturn “quoted” + s\n9\t}\nRead the file again if it may have changed."},
		{"nearest single", code, "func b(t string) string {", "y", "edit_file: old_string was not found in f. Shown are the nearest lines, line 7 is \"func b(s string) string {\", old_string has \"func b(t string) string {\":\n7\tfunc b(s string) string {\nRead the file again if it may have changed."},
		{"nothing like it", code, "zzz qqq www", "y", "edit_file: old_string was not found in f, nor anything like it, in its 9 lines; read the file first"},
		{"blanks alone", code, "\n\n\n", "y", "edit_file: old_string was not found in f: it holds nothing but blanks; give the text around them too"},
		{"the same", code, "a", "a", "edit_file: old_string and new_string are the same; nothing to change"},
		{"empty", code, "", "a", "edit_file: old_string is empty and f is not; give the text to replace, or use write_file for the whole file"},
		{"binary", "\x00\x01", "a", "b", "edit_file: f is a binary file (of unknown type, 2 bytes)"},
		{"no such character", "caf\xe9\n", "caf", "日", "edit_file: f: the file is in an 8-bit encoding (read as windows-1252), which has no '日'; write_file turns the file into UTF-8"},
		{"broken UTF-16", "\xff\xfea\x00\x00\xd8b\x00", "a", "b", "edit_file: f is not valid UTF-16LE; an edit would damage what it can't read"},
	} {
		b := open(t, tool.Options{}, map[string]string{"f": test.file})
		got := b.fails("edit_file", args{"path": "f", "old_string": test.old, "new_string": test.new}, "")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if b.read("f") != test.file {
			t.Errorf("%s: the file was changed", test.name)
		}
	}
	b := open(t, tool.Options{}, map[string]string{"f": ""})
	b.fails("edit_file", args{"path": "g", "old_string": "a", "new_string": "b"}, "g: no such file or directory; did you mean f?")
	b.fails("edit_file", args{"path": "/", "old_string": "a", "new_string": "b"}, "workspace's root")
}

func TestEditDetails(t *testing.T) {
	b := open(t, tool.Options{}, map[string]string{"f": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	r := b.run("edit_file", args{"path": "f", "old_string": "5\n", "new_string": "five\nand a half\n"})
	want := change{false, 2, 1, "--- a/f\n+++ b/f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+and a half\n 6\n 7\n 8\n"}
	if diff := cmp.Diff(want, changeOf(t, r.Details)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A call that was cut off runs again with its key. Whether its edit took place
// is decided by the file, not by whether old_string is still to be found: an
// edit that adds to a line leaves it in place.
func TestEditHonoursItsKey(t *testing.T) {
	for _, kept := range []bool{false, true} {
		opt := tool.Options{}
		if kept {
			opt.Receipts = filepath.Join(t.TempDir(), "receipts")
		}
		b := open(t, opt, map[string]string{"f": "call()\nend\n", "g": "call()\n"})
		edit := func(b *bench, key, path string) string {
			in := invocation(t, args{"path": path, "old_string": "call()", "new_string": "call() + call2()"})
			in.Key = key
			r := b.call("edit_file", in)
			if r.IsError {
				t.Fatalf("kept %v, key %s: %s", kept, key, r.Text)
			}
			return r.Text
		}
		if got := edit(b, "k1", "f"); got != "Edited f: line 1." {
			t.Errorf("first: %q", got)
		}
		again := b
		if kept { // another process
			w, err := tool.Open(b.dir, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			again = &bench{t, b.dir, w}
		}
		if got := edit(again, "k1", "f"); got != "Edited f: already applied." {
			t.Errorf("kept %v, second: %q", kept, got)
		}
		if got := b.read("f"); got != "call() + call2()\nend\n" {
			t.Errorf("after the second run: %q", got)
		}
		// Somebody else went on with the file meanwhile.
		put(t, filepath.Join(b.dir, "f"), "// note\ncall() + call2()\nend\n")
		if got := edit(again, "k1", "f"); got != "Edited f: already applied." {
			t.Errorf("kept %v, third: %q", kept, got)
		}
		// Another key is another edit, and so is another file.
		if got := edit(again, "k2", "f"); got != "Edited f: line 2." {
			t.Errorf("another key: %q", got)
		}
		if got := edit(again, "k3", "g"); got != "Edited g: line 1." {
			t.Errorf("another file: %q", got)
		}
		// The run ended after its note and before its write.
		put(t, filepath.Join(b.dir, "g"), "call()\n")
		if got := edit(again, "k3", "g"); got != "Edited g: line 1." {
			t.Errorf("not yet applied: %q", got)
		}
	}
}

func TestOldReceiptsAreThrownAway(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "old"), "{}")
	put(t, filepath.Join(dir, "new"), "{}")
	long := time.Now().Add(-60 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "old"), long, long); err != nil {
		t.Fatal(err)
	}
	open(t, tool.Options{Receipts: dir}, nil)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "new" {
		t.Errorf("left: %v %v", entries, err)
	}
}

func FuzzEditFile(f *testing.F) {
	f.Add("a\nb\n", "b", "c", false)
	f.Add("a\r\nb\r\nc", "a\nb", "", true)
	f.Add("\tif x {\n", "    if x {", "y", false)
	f.Add("“q”", `"q"`, "\r\n", false)
	f.Add("aaa", "aa", "b", true)
	f.Add("\xff\xfea\x00", "a", "é", false)
	dir := f.TempDir()
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	f.Fuzz(func(t *testing.T, content, old, new string, all bool) {
		put(t, filepath.Join(dir, "f"), content)
		b := &bench{t, dir, w}
		r := b.run("edit_file", args{"path": "f", "old_string": old, "new_string": new, "replace_all": all})
		after := b.read("f")
		if r.IsError && after != content {
			t.Errorf("an error changed the file: %q -> %q: %s", content, after, r.Text)
		}
		plain := !strings.Contains(content+old+new, "\r") && isPlain(content+old+new)
		if !r.IsError && plain {
			if want := strings.ReplaceAll(content, old, new); old != "" && after != want {
				t.Errorf("%q: %q -> %q gave %q, want %q", content, old, new, after, want)
			}
		}
		if n := strings.Count(content, old); plain && old != "" && old != new && r.IsError != (n == 0 || n > 1 && !all) {
			t.Errorf("%d occurrences of %q in %q, all %v: error %v: %s", n, old, content, all, r.IsError, r.Text)
		}
	})
}

// isPlain reports whether a text is ASCII without control characters, so that
// no encoding is guessed from it.
func isPlain(s string) bool {
	for _, r := range s {
		if r >= 0x7f || r < 0x20 && r != '\n' && r != '\t' {
			return false
		}
	}
	return true
}
