package tool_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse/tool"
)

// tree returns the files below dir with their contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			files[filepath.ToSlash(rel)] = "-> " + target
			return err
		}
		data, err := os.ReadFile(p)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type files = map[string]string

func envelope(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

func TestPatch(t *testing.T) {
	const code = "package a\n\nfunc one() {\n\tx := 1\n\tuse(x)\n}\n\nfunc two() {\n\tx := 1\n\tuse(x)\n}\n"
	for _, test := range []struct {
		name   string
		before files
		patch  string
		text   string
		after  files
	}{
		{
			"unified", files{"f": "a\nb\nc\nd\n"},
			"--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n",
			"Updated f: line 1.", files{"f": "a\nB\nc\nd\n"},
		}, {
			"git, several files", files{"f": "a\nb\n", "gone": "x\n", "old name": "keep\nthis\n"},
			"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ section\n a\n-b\n+B\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/new/deep.txt b/new/deep.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/deep.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\ndiff --git a/old name b/new name\nsimilarity index 50%\nrename from old name\nrename to new name\n--- a/old name\n+++ b/new name\n@@ -1,2 +1,2 @@\n keep\n-this\n+that\n",
			"Updated f: line 1.\nDeleted gone.\nCreated new/deep.txt: 2 lines.\nMoved old name to new name: line 1.",
			files{"f": "a\nB\n", "new/deep.txt": "one\ntwo", "new name": "keep\nthat\n"},
		}, {
			"git, files without hunks", files{"e": "", "m": "\x00\x01binary", "x": "y"},
			"diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\ndiff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\ndiff --git a/m b/sub/m\nsimilarity index 100%\nrename from m\nrename to sub/m\n",
			"Deleted e.\nCreated n: 0 lines.\nMoved m to sub/m.", files{"n": "", "sub/m": "\x00\x01binary", "x": "y"},
		}, {
			"git, quoted names", files{"ä b": "1\n"},
			"diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\n--- \"a/\\303\\244 b\"\n+++ \"b/\\303\\244 b\"\n@@ -1 +1 @@\n-1\n+2\n",
			"Updated ä b: line 1.", files{"ä b": "2\n"},
		}, {
			"no prefixes, times", files{"src/f.c": "1\n"},
			"--- src/f.c.orig\t2020-01-01 10:00:00\n+++ src/f.c\t2020-01-02 10:00:00\n@@ -1 +1 @@\n-1\n+2\n",
			"Updated src/f.c: line 1.", files{"src/f.c": "2\n"},
		}, {
			"a folder a", files{"a/f": "1\n"}, "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-1\n+2\n", "Updated a/f: line 1.", files{"a/f": "2\n"},
		}, {
			"mnemonic prefixes", files{"f": "1\n"}, "--- i/f\n+++ w/f\n@@ -1 +1 @@\n-1\n+2\n", "Updated f: line 1.", files{"f": "2\n"},
		}, {
			"a mail", files{"f": "1\n2\n"},
			"From 0123 Mon Sep 17\nSubject: x\n\n- a point\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n-- \n2.40.0\n\n",
			"Updated f: line 1.", files{"f": "one\n2\n"},
		}, {
			"Markdown around it", files{"f": "1\n"}, "Here:\n```diff\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n```\n", "Updated f: line 1.", files{"f": "2\n"},
		}, {
			"lines like headers", files{"f.sql": "-- a\nb\n", "g": "1\n"},
			"--- a/f.sql\n+++ b/f.sql\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+2\n",
			"Updated f.sql: line 1.\nUpdated g: line 1.", files{"f.sql": "++ b\nb\n", "g": "2\n"},
		}, {
			"wrong counts", files{"f": "a\nb\nc\nd\ne\n"},
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n+C\n c\n d\n@@ -5,9 +5,9 @@\n-e\n+E\n\n",
			"Updated f: lines 1, 5.", files{"f": "a\nB\nC\nc\nd\nE\n"},
		}, {
			"no numbers", files{"f": "a\nb\nc\n"}, "--- a/f\n+++ b/f\n@@\n a\n-b\n+B\n@@ ... @@\n-c\n+C\n", "Updated f: lines 1, 3.", files{"f": "a\nB\nC\n"},
		}, {
			"stale numbers", files{"f": "0\n0\n0\n" + code}, "--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n func one() {\n-\tx := 1\n+\tx := 2\n", "Updated f: line 6.",
			files{"f": "0\n0\n0\n" + strings.Replace(code, "x := 1", "x := 2", 1)},
		}, {
			"right numbers choose", files{"f": code}, "--- a/f\n+++ b/f\n@@ -9,2 +9,2 @@\n-\tx := 1\n+\tx := 2\n \tuse(x)\n", "Updated f: line 9.",
			files{"f": strings.Replace(code, "two() {\n\tx := 1", "two() {\n\tx := 2", 1)},
		}, {
			"the shift of the hunk before is counted in", files{"f": "new\n" + code}, "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-package a\n+package b\n@@ -9,2 +9,2 @@\n-\tx := 1\n+\tx := 2\n \tuse(x)\n", "Updated f: lines 2, 10.",
			files{"f": "new\n" + strings.Replace(strings.Replace(code, "two() {\n\tx := 1", "two() {\n\tx := 2", 1), "package a", "package b", 1)},
		}, {
			"old line end added", files{"f": "a\nb"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "Updated f: line 1.", files{"f": "a\nb\n"},
		}, {
			"last line end removed", files{"f": "a\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "Updated f: line 1.", files{"f": "a\nc"},
		}, {
			"no last line end kept", files{"f": "a\nb"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n b\n+c\n", "Updated f: line 1.", files{"f": "a\nb\nc"},
		}, {
			"envelope", files{"f": "a\nb\nc\n", "g": "x\n", "h": "1\n2\n", "i": "same\n"},
			envelope("*** Update File: f\n@@\n a\n-b\n+B\n*** Delete File: g\n*** Add File: n/new.txt\n+one\n+\n+two\n*** Update File: h\n*** Move to: sub/h2\n@@\n-2\n+3\n*** Update File: i\n*** Move to: j\n"),
			"Updated f: line 1.\nDeleted g.\nCreated n/new.txt: 3 lines.\nMoved h to sub/h2: line 2.\nMoved i to j.",
			files{"f": "a\nB\nc\n", "n/new.txt": "one\n\ntwo\n", "sub/h2": "1\n3\n", "j": "same\n"},
		}, {
			"envelope without @@", files{"f": "a\nb\n"}, envelope("*** Update File: f\n a\n-b\n+B\n"), "Updated f: line 1.", files{"f": "a\nB\n"},
		}, {
			"anchor", files{"f": code}, envelope("*** Update File: f\n@@ func two() {\n-\tx := 1\n+\tx := 2\n"), "Updated f: line 9.",
			files{"f": strings.Replace(code, "two() {\n\tx := 1", "two() {\n\tx := 2", 1)},
		}, {
			"anchor that is the line's beginning, and in the hunk too", files{"f": code}, envelope("*** Update File: f\n@@ func two\n func two() {\n-\tx := 1\n+\tx := 2\n"), "Updated f: line 8.",
			files{"f": strings.Replace(code, "two() {\n\tx := 1", "two() {\n\tx := 2", 1)},
		}, {
			"anchors within anchors", files{"f": "class A\n  def f\n    1\nclass B\n  def g\n    1\n  def f\n    1\n"}, envelope("*** Update File: f\n@@ class B\n@@   def f\n-    1\n+    2\n"), "Updated f: line 8.",
			files{"f": "class A\n  def f\n    1\nclass B\n  def g\n    1\n  def f\n    2\n"},
		}, {
			"the order of hunks chooses", files{"f": "x\n1\ny\nx\n1\n"}, envelope("*** Update File: f\n@@\n y\n-x\n+z\n@@\n-1\n+2\n"), "Updated f: lines 3, 5.", files{"f": "x\n1\ny\nz\n2\n"},
		}, {
			"hunks out of order", files{"f": "a\nb\nc\n"}, envelope("*** Update File: f\n@@\n-c\n+C\n@@\n-a\n+A\n"), "Updated f: lines 3, 1.", files{"f": "A\nb\nC\n"},
		}, {
			"two parts for one file", files{"f": "a\nb\nc\n"}, envelope("*** Update File: f\n@@\n-a\n+A\n*** Update File: ./f\n@@\n-c\n+C\n"), "Updated f: lines 1, 3.", files{"f": "A\nb\nC\n"},
		}, {
			"end of file chooses", files{"f": "x\na\nx\n"}, envelope("*** Update File: f\n@@\n-x\n+y\n*** End of File\n"), "Updated f: line 3.", files{"f": "x\na\ny\n"},
		}, {
			"only additions: after the anchor", files{"f": "a\nb\n"}, envelope("*** Update File: f\n@@ a\n+new\n"), "Updated f: line 2.", files{"f": "a\nnew\nb\n"},
		}, {
			"only additions: at the end", files{"f": "a\nb\n"}, envelope("*** Update File: f\n@@\n+new\n"), "Updated f: line 3.", files{"f": "a\nb\nnew\n"},
		}, {
			"only additions: an empty file", files{"f": ""}, "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", "Updated f: line 1.", files{"f": "a\nb\n"},
		}, {
			"an insertion where the next hunk begins", files{"f": "a\nb\n"}, envelope("*** Update File: f\n@@\n-b\n+B\n@@ a\n+new\n"), "Updated f: lines 2, 2.", files{"f": "a\nnew\nB\n"},
		}, {
			"lost blank of an empty context line", files{"f": "a\n\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", "Updated f: line 1.", files{"f": "a\n\nB\n"},
		}, {
			"blanks at line ends", files{"f": "a  \nb\t\nc\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "a  \nB\nc\n"},
		}, {
			"spaces for tabs", files{"f": "if x {\n\tfor {\n\t\ta()\n\t}\n}\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,5 @@\n if x {\n     for {\n-        a()\n+        b()\n+            c()\n+\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "if x {\n\tfor {\n\t\tb()\n\t\t\tc()\n\n\t}\n}\n"},
		}, {
			"tabs for spaces", files{"f": "if x:\n    a()\n"}, "--- a/f\n+++ b/f\n@@\n if x:\n-\ta()\n+\tif y:\n+\t\ta()\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "if x:\n    if y:\n        a()\n"},
		}, {
			"less indentation", files{"f": "    a()\n      b()\n"}, "--- a/f\n+++ b/f\n@@\n a()\n-  b()\n+  c()\n+    d()\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "    a()\n      c()\n        d()\n"},
		}, {
			"more indentation", files{"f": "a()\n  b()\n"}, "--- a/f\n+++ b/f\n@@\n     a()\n-      b()\n+      c()\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "a()\n  c()\n"},
		}, {
			"blanks within", files{"f": "x  =  1\ny = 2\n"}, "--- a/f\n+++ b/f\n@@\n x = 1\n-y = 2\n+y = 3\n",
			"Updated f: line 1 (white space differed from the patch; the file's was kept).", files{"f": "x  =  1\ny = 3\n"},
		}, {
			"CRLF", files{"f": "a\r\nb\r\nc\r\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n", "Updated f: line 1.", files{"f": "a\r\nB\r\nBB\r\nc\r\n"},
		}, {
			"CRLF in the patch's lines", files{"f": "a\r\nb\r\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", "Updated f: line 1.", files{"f": "a\r\nB\r\n"},
		}, {
			"CRLF all over the patch", files{"f": "a\nb\n"}, "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n--- /dev/null\r\n+++ b/n\r\n@@ -0,0 +1 @@\r\n+x\r\n", "Updated f: line 1.\nCreated n: 1 line.", files{"f": "a\nB\n", "n": "x\n"},
		}, {
			"CRLF of a new file", files{}, "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n", "Created f: 2 lines.", files{"f": "a\r\nb\r\n"},
		}, {
			"mixed line ends", files{"f": "a\r\nb\nc\r\nd\n"}, "--- a/f\n+++ b/f\n@@\n a\n-b\n+B\n c\n+C\n", "Updated f: line 1.", files{"f": "a\r\nB\nc\r\nC\r\nd\n"},
		}, {
			"BOM", files{"f": "\xef\xbb\xbfa\nb\n"}, "--- a/f\n+++ b/f\n@@\n-a\n+A\n", "Updated f: line 1.", files{"f": "\xef\xbb\xbfA\nb\n"},
		}, {
			"UTF-16", files{"f": utf16Text("é\r\nb\r\n", false, true)}, "--- a/f\n+++ b/f\n@@\n-é\n+ü\n b\n", "Updated f: line 1.", files{"f": utf16Text("ü\r\nb\r\n", false, true)},
		}, {
			"8 bits", files{"f": "caf\xe9\nx\n"}, "--- a/f\n+++ b/f\n@@\n-café\n+thé\n x\n", "Updated f: line 1.", files{"f": "th\xe9\nx\n"},
		}, {
			"added, but there with this content", files{"f": "a\n"}, envelope("*** Add File: f\n+a\n"), "Created f: 1 line (it has this content already).", files{"f": "a\n"},
		}, {
			"emptied", files{"f": "a\n"}, "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n", "Updated f: line 1.", files{"f": ""},
		}, {
			"a Markdown file with marks in it", files{"f": "*** x\n"}, envelope("*** Update File: f\n@@\n-*** x\n+*** End Patch\n"), "Updated f: line 1.", files{"f": "*** End Patch\n"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := open(t, tool.Options{}, test.before)
			if got := b.ok("patch", args{"patch": test.patch}); got != test.text {
				t.Errorf("result %q, want %q", got, test.text)
			}
			if diff := cmp.Diff(test.after, tree(t, b.dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchRefuses(t *testing.T) {
	const code = "func a() {\n\tif x {\n\t\treturn 1\n\t}\n}\n\nfunc b(s string) string {\n\treturn “quoted” + s\n}\n"
	before := files{"f": code, "dup": "a\nx\nb\nx\n", "bin": "\x00\x01", "e1": "caf\xe9\n"}
	header := "--- a/f\n+++ b/f\n"
	for _, test := range []struct{ name, patch, want string }{
		{"empty", " \n", "patch: the patch is empty"},
		{"no patch", "hello\n", `patch: no file is named in the patch; it takes a unified diff ("--- a/f", "+++ b/f", "@@ -1,3 +1,4 @@"), or "*** Begin Patch" with "*** Update File: f"`},
		{"NUL", "--- a/f\n+++ b/f\n@@\n-\x00\n", "patch: the patch holds a NUL byte; binary files are not patched"},
		{"cut off", "*** Begin Patch\n*** Update File: f\n@@\n-func a() {\n+x\n", "patch: line 5 of the patch: the patch breaks off without *** End Patch; send it whole"},
		{"no path", envelope("*** Update File:\n@@\n-a\n"), "patch: line 2 of the patch: the file's path is missing"},
		{"no hunk", envelope("*** Update File: f\n"), "patch: line 2 of the patch: nothing is changed in f"},
		{"no change", envelope("*** Update File: f\n@@\n func a() {\n"), "patch: line 3 of the patch: the hunk changes nothing: it has no line that begins with - or +"},
		{"no sign", envelope("*** Update File: f\n@@\n-func a() {\nfunc c() {\n"), `patch: line 5 of the patch: "func c() {" begins with neither a blank (context) nor - nor +`},
		{"no sign in a new file", envelope("*** Add File: n\n+a\nb\n"), `patch: line 4 of the patch: "b": each line of a new file begins with +`},
		{"outside", envelope("*** Delete File: f\nwhat\n"), `patch: line 3 of the patch: "what" is in no file; want *** Update File:, *** Add File:, *** Delete File: or *** End Patch`},
		{"moved nowhere", envelope("*** Update File: f\n*** Move to: f\n"), "patch: line 2 of the patch: f is moved to where it is"},
		{"hunk without a file", "@@ -1 +1 @@\n-a\n+b\n", "patch: line 1 of the patch: a hunk without a file; --- a/path and +++ b/path come before it"},
		{"merge", header + "@@@ -1 -1 +1 @@@\n- a\n", "patch: line 3 of the patch: the diff of a merge, with several old sides, is not taken"},
		{"symbolic link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n", `patch: line 2 of the patch: a file of mode "120000" can't be created: only regular files can`},
		{"copy", "diff --git a/f b/g\ncopy from f\ncopy to g\n", "patch: line 2 of the patch: copies are not taken; add the file with all its lines"},
		{"binary", "diff --git a/f b/f\nindex 1..2\nGIT binary patch\n", "patch: line 3 of the patch: binary files are not patched"},
		{"mode", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "patch: line 1 of the patch: a change of mode alone is not taken; use chmod"},
		{"after the end", header + "@@ -1,1 +1,1 @@\n-func a() {\n+func c() {\n\n+more\n", `patch: line 7 of the patch: "+more" stands after the end of a hunk; correct the numbers in its @@ line`},
		{"additions without context", header + "@@ -2,0 +3 @@\n+x\n", "patch: nothing was changed: f: hunk (line 3 of the patch): it has + lines alone, so nothing tells whether line 2 is still the right place; give lines around them"},
		{"missing file", envelope("*** Update File: ff\n@@\n-a\n+b\n"), "patch: nothing was changed: ff: no such file or directory; did you mean f?"},
		{"exists", envelope("*** Add File: f\n+a\n"), "patch: nothing was changed: f exists already; give an update of it, or delete it first"},
		{"target exists", envelope("*** Update File: f\n*** Move to: dup\n"), "patch: nothing was changed: f can't be moved to dup, which exists"},
		{"twice", envelope("*** Update File: f\n@@\n-func a() {\n+x\n*** Delete File: f\n"), "patch: nothing was changed: line 6 of the patch: f has a part of its own already"},
		{"binary file", envelope("*** Update File: bin\n@@\n-a\n+b\n"), "patch: nothing was changed: bin is a binary file (of unknown type, 2 bytes)"},
		{"no such character", envelope("*** Update File: e1\n@@\n-café\n+日\n"), "patch: nothing was changed: e1: the file is in an 8-bit encoding (read as windows-1252), which has no '日'; write_file turns the file into UTF-8"},
		{"deletes less than all", "--- a/dup\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-x\n-b\n", "patch: nothing was changed: dup has more lines than the patch deletes; it may have changed since"},
		{"ambiguous", envelope("*** Update File: dup\n@@\n-x\n+y\n"), "patch: nothing was changed: dup: hunk (line 3 of the patch): its text stands 2 times in dup (lines 2, 4); give more lines around it, or an @@ line with a line above it"},
		{"ambiguous with stale numbers", "--- a/dup\n+++ b/dup\n@@ -3 +3 @@\n-x\n+y\n", "patch: nothing was changed: dup: hunk (line 3 of the patch): its text stands 2 times in dup (lines 2, 4); give more lines around it, or an @@ line with a line above it"},
		{"anchor not there", envelope("*** Update File: f\n@@ func c() {\n+x\n"), "patch: nothing was changed: f: hunk (line 3 of the patch): the line \"func c() {\" of its @@ was not found in f. Shown are the nearest lines, line 1 is \"func a() {\", the line \"func c() {\" of its @@ has \"func c() {\":\n1\tfunc a() {\nRead the file again if it may have changed."},
		{"anchor twice", envelope("*** Update File: dup\n@@ x\n+y\n"), `patch: nothing was changed: dup: hunk (line 3 of the patch): the line "x" of its @@ stands 2 times in dup (lines 2, 4); give lines around the new ones`},
		{"into another hunk", envelope("*** Update File: dup\n@@\n a\n x\n-b\n+c\n@@ a\n+y\n"), "patch: nothing was changed: dup: hunk 2 of 2 (line 8 of the patch): it goes into the middle of a hunk before it, after line 1; make them one"},
		{"quotes", header + "@@\n-\treturn \"quoted\" + s\n+\treturn s\n", "patch: nothing was changed: f: hunk (line 3 of the patch): its text was not found in f. Line 8 differs only in the kind of quotes, dashes or blanks, line 8 is \"\\treturn “quoted” + s\", its text has \"\\treturn \\\"quoted\\\" + s\":\n8\t\treturn “quoted” + s\nCopy the text from there."},
		{"nearest", header + "@@\n func a() {\n-\tif y {\n+\tif z {\n", "patch: nothing was changed: f: hunk (line 3 of the patch): its text was not found in f. Shown are the nearest lines, line 2 is \"\\tif x {\", its text has \"\\tif y {\":\n1\tfunc a() {\n2\t\tif x {\nRead the file again if it may have changed."},
		{"part of a line", header + "@@\n-\treturn\n+\treturn 2\n", "patch: nothing was changed: f: hunk (line 3 of the patch): its text was not found in f. Shown are the nearest lines, line 3 is \"\\t\\treturn 1\", its text has \"\\treturn\":\n3\t\t\treturn 1\nRead the file again if it may have changed."},
		{"applied before", header + "@@\n-\treturn 0 or so\n+func b(s string) string {\n", "patch: nothing was changed: f: hunk (line 3 of the patch): its text was not found in f; its new text stands there already, at line 7: it may have been applied before"},
		{"indentation that can't be told", envelope("*** Update File: f\n@@\n-   if x {\n-         return 1\n+   if y {\n"), "patch: nothing was changed: f: hunk (line 3 of the patch): its text stands at line 2 but for the indentation, and how to indent \"   if y {\" there can't be told from it; copy the file's blanks"},
		{"all that is wrong", envelope("*** Update File: f\n@@\n-nope nope\n+x\n@@\n-func a() {\n+y\n@@\n-never never\n+x\n*** Delete File: zz\n*** Add File: ok\n+a\n"), "patch: nothing was changed\nf: hunk 1 of 3 (line 3 of the patch): its text was not found in f, nor anything like it, in its 9 lines; read the file first\nf: hunk 3 of 3 (line 9 of the patch): its text was not found in f, nor anything like it, in its 9 lines; read the file first\nzz: no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := open(t, tool.Options{}, before)
			got := b.fails("patch", args{"patch": test.patch}, "")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tree(t, b.dir)); diff != "" {
				t.Errorf("the files were changed:\n%s", diff)
			}
		})
	}
}

// Every path that a patch can touch is told to the rules, as it is written.
func TestPatchSubjects(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	find := b.tool("patch").Subjects
	for _, test := range []struct {
		patch string
		want  []string
	}{
		{envelope("*** Update File: a\n*** Move to: /b/../c\n@@\n-x\n+y\n*** Delete File: d\n*** Add File: ../e\n+x\n"), []string{"a", "/b/../c", "d", "../e"}},
		{"diff --git a/x b/y\nrename from x\nrename to y\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", []string{"x", "y", "g"}},
	} {
		raw, err := json.Marshal(args{"patch": test.patch})
		if err != nil {
			t.Fatal(err)
		}
		got, err := find(raw)
		if err != nil {
			t.Errorf("%q: %v", test.patch, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.patch, diff)
		}
	}
	for _, raw := range []string{`{"patch":"x"}`, `{"patch":1}`, `{}`, `[]`} {
		if got, err := find(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: no error, subjects %q", raw, got)
		}
	}
}

func TestPatchDetails(t *testing.T) {
	b := open(t, tool.Options{}, files{"f": "1\n2\n", "g": "x\n", "h": "a\nb\n"})
	r := b.run("patch", args{"patch": envelope("*** Update File: f\n@@\n-2\n+two\n*** Delete File: g\n*** Update File: h\n*** Move to: i\n@@\n-b\n+B\n*** Add File: n\n+new\n")})
	want := `{"files":[{"path":"f","added":1,"removed":1,"diff":"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n"},{"path":"g","deleted":true,"added":0,"removed":1,"diff":"--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},{"path":"i","from":"h","added":1,"removed":1,"diff":"--- a/h\n+++ b/i\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"},{"path":"n","created":true,"added":1,"removed":0,"diff":"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"}]}`
	if diff := cmp.Diff(want, string(r.Details)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What fails after files have begun to change is undone: here a directory that
// lets nothing be deleted.
func TestPatchIsUndone(t *testing.T) {
	if os.Geteuid() == 0 {
		if _, err := exec.LookPath("chattr"); err != nil {
			t.Skip("as root every directory can be written")
		}
	}
	before := files{"f": "1\n2\n", "locked/g": "x\n", "m": "move\n", "n": "edit\n"}
	b := open(t, tool.Options{}, before)
	locked := filepath.Join(b.dir, "locked")
	if os.Geteuid() == 0 {
		if err := exec.Command("chattr", "+i", filepath.Join(locked, "g")).Run(); err != nil {
			t.Skipf("as root every directory can be written: chattr: %v", err)
		}
		t.Cleanup(func() { _ = exec.Command("chattr", "-i", filepath.Join(locked, "g")).Run() })
	} else {
		if err := os.Chmod(locked, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(locked, 0o755) })
	}
	if err := os.Chmod(filepath.Join(b.dir, "f"), 0o640); err != nil {
		t.Fatal(err)
	}
	got := b.fails("patch", args{"patch": envelope("*** Update File: f\n@@\n-2\n+two\n*** Add File: new/dir/h\n+new\n*** Update File: m\n*** Move to: other/m\n*** Update File: n\n*** Move to: other/n\n@@\n-edit\n+EDIT\n*** Delete File: locked/g\n")}, "patch: nothing was changed: locked/g: delete: ")
	if diff := cmp.Diff(before, tree(t, b.dir)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", got, diff)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "f")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("f is %v (%v), want its old mode", info.Mode(), err)
	}
	for _, dir := range []string{"new", "other"} {
		if _, err := os.Stat(filepath.Join(b.dir, dir)); err == nil {
			t.Errorf("the directory %s is left", dir)
		}
	}
}

// A patch that was cut off at any point is finished when it runs again with
// its key, and none of it is done twice.
func TestPatchHonoursItsKey(t *testing.T) {
	before := files{"add": "a\n", "del": "x\n", "mv": "same\n", "mvedit": "1\n"}
	patch := envelope("*** Update File: add\n@@\n a\n+a\n*** Delete File: del\n*** Update File: mv\n*** Move to: mv2\n*** Update File: mvedit\n*** Move to: mvedit2\n@@\n-1\n+2\n*** Add File: new\n+n\n")
	after := files{"add": "a\na\n", "mv2": "same\n", "mvedit2": "2\n", "new": "n\n"}
	// Each is a state in which a crash may have left the workspace.
	for name, cut := range map[string]files{
		"before anything":       before,
		"after all":             after,
		"after the first":       {"add": "a\na\n", "del": "x\n", "mv": "same\n", "mvedit": "1\n"},
		"within a move":         {"add": "a\na\n", "del": "x\n", "mv2": "same\n", "mvedit": "1\n", "mvedit2": "2\n"},
		"before the deletions":  {"add": "a\na\n", "del": "x\n", "mv2": "same\n", "mvedit": "1\n", "mvedit2": "2\n", "new": "n\n"},
		"with a leftover":       {"add": "a\na\n", "del": "x\n", "mv2": "same\n", "mvedit2": "2\n", "new": "n\n"},
		"somebody else went on": {"add": "// more\na\na\n", "del": "x\n", "mv2": "same, changed\n", "mvedit": "1\n", "new": "n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := tool.Options{Receipts: filepath.Join(t.TempDir(), "receipts")}
			b := open(t, opt, before)
			in := invocation(t, args{"patch": patch})
			in.Key = "k1"
			if r := b.call("patch", in); r.IsError {
				t.Fatal(r.Text)
			}
			if diff := cmp.Diff(after, tree(t, b.dir)); diff != "" {
				t.Fatalf("first run (-want +got):\n%s", diff)
			}
			entries, err := os.ReadDir(b.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range entries {
				if err := os.Remove(filepath.Join(b.dir, d.Name())); err != nil {
					t.Fatal(err)
				}
			}
			for name, content := range cut {
				put(t, filepath.Join(b.dir, name), content)
			}
			w, err := tool.Open(b.dir, opt) // another process
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			again := &bench{t, b.dir, w}
			r := again.call("patch", in)
			if r.IsError {
				t.Fatalf("second run: %s", r.Text)
			}
			want := after
			if name == "somebody else went on" {
				want = files{"add": "// more\na\na\n", "mv2": "same, changed\n", "mvedit2": "2\n", "new": "n\n"}
			}
			if diff := cmp.Diff(want, tree(t, b.dir)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", r.Text, diff)
			}
		})
	}
}

// What was to be deleted and has been written anew since is not deleted when
// the call runs again.
func TestPatchDeletesOnlyWhatItSaw(t *testing.T) {
	b := open(t, tool.Options{}, files{"f": "x\n"})
	in := invocation(t, args{"patch": envelope("*** Delete File: f\n")})
	in.Key = "k"
	b.call("patch", in)
	put(t, filepath.Join(b.dir, "f"), "new work\n")
	if r := b.call("patch", in); !r.IsError || !strings.Contains(r.Text, "f was changed by someone else meanwhile") {
		t.Errorf("%v %s", r.IsError, r.Text)
	}
	if got := b.read("f"); got != "new work\n" {
		t.Errorf("f = %q", got)
	}
}

// Patches that share files, in opposite orders, and single edits between them:
// nothing is lost and nothing waits forever.
func TestParallelPatches(t *testing.T) {
	const n = 12
	start := files{}
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("f%d", i)
		names = append(names, name)
		start[name] = "top\n"
	}
	b := open(t, tool.Options{}, start)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var body strings.Builder
			for j := range names {
				name := names[j]
				if i%2 == 1 {
					name = names[len(names)-1-j]
				}
				fmt.Fprintf(&body, "*** Update File: %s\n@@\n top\n+patch %d\n", name, i)
			}
			if r := b.run("patch", args{"patch": envelope(body.String())}); r.IsError {
				t.Error(r.Text)
			}
			if r := b.run("edit_file", args{"path": "f0", "old_string": "top\n", "new_string": fmt.Sprintf("top\nedit %d\n", i)}); r.IsError {
				t.Error(r.Text)
			}
		})
	}
	wg.Wait()
	for name, content := range tree(t, b.dir) {
		want := n + 1
		if name == "f0" {
			want += n
		}
		if got := strings.Count(content, "\n"); got != want {
			t.Errorf("%s has %d lines, want %d:\n%s", name, got, want, content)
		}
	}
}

// Random changes, told by diff and by git, must give what git makes of them.
func TestPatchAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	rng := rand.New(rand.NewPCG(7, 11))
	randomText := func(lines int) string {
		var out strings.Builder
		for range lines {
			out.WriteString([]string{"", "a", "b", "\tc", "-- d", "++ e", "@@ f", "*** g", " h", "i  ", "ж", "\\ j"}[rng.IntN(12)])
			out.WriteByte('\n')
		}
		s := out.String()
		if rng.IntN(4) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	change := func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(lines))
			switch rng.IntN(3) {
			case 0:
				lines[at] = randomText(1)
			case 1:
				lines = append(lines[:at:at], lines[at+1:]...)
			default:
				lines = append(lines[:at:at], append([]string{randomText(1)}, lines[at:]...)...)
			}
			if len(lines) == 0 {
				break
			}
		}
		return strings.Join(lines, "")
	}
	for round := range 40 {
		oldDir, newDir := t.TempDir(), t.TempDir()
		for i := range 4 {
			name := fmt.Sprintf("dir %d/f%d", i%2, i)
			text := randomText(rng.IntN(40))
			put(t, filepath.Join(oldDir, name), text)
			switch rng.IntN(6) {
			case 0: // deleted
			case 1:
				put(t, filepath.Join(newDir, name+" moved"), change(text))
			case 2:
				put(t, filepath.Join(newDir, name+" new"), randomText(5))
				fallthrough
			default:
				put(t, filepath.Join(newDir, name), change(text))
			}
		}
		repo := t.TempDir()
		run := func(arg ...string) string {
			t.Helper()
			cmd := exec.Command(git, append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"}, arg...)...)
			cmd.Dir = repo
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_DIR="+filepath.Join(repo, ".git"))
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("git %s: %v", arg, err)
			}
			return string(out)
		}
		run("init", "-q")
		run("--work-tree="+oldDir, "add", "-A")
		run("commit", "-q", "--allow-empty", "-m", "old")
		run("--work-tree="+newDir, "add", "-A")
		patch := run("diff", "--cached", fmt.Sprintf("-U%d", 1+rng.IntN(4)), "--find-renames=30%")
		if patch == "" {
			continue
		}
		b := open(t, tool.Options{}, tree(t, oldDir))
		r := b.run("patch", args{"patch": patch})
		// Repeated lines may make a place ambiguous only where the numbers
		// are off, and git's never are.
		if r.IsError {
			t.Fatalf("round %d: %s\n%s", round, r.Text, patch)
		}
		if d := cmp.Diff(tree(t, newDir), tree(t, b.dir)); d != "" {
			t.Fatalf("round %d (-want +got):\n%s\n%s", round, d, patch)
		}
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	f.Add("a\r\nb\r\n", envelope("*** Update File: f\n@@ a\n-b\n+B\n*** End of File\n"))
	f.Add("\tx\n", envelope("*** Update File: f\n*** Move to: g\n@@\n-    x\n+    y\n*** Add File: d/n\n+1\n*** Delete File: other\n"))
	f.Add("x", "diff --git a/f b/h\nrename from f\nrename to h\n")
	f.Add("", "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n")
	f.Add("1\n1\n", "--- \"a/\\146\"\n+++ b/f\t2020\n@@@\n@@ -1 +1,2 @@\n-1\n@@\n\n+2\n-- \n1")
	f.Add("q", envelope("*** Update File: ../f\n@@\n-q\n+r\n*** Add File: /abs\n+\n*** Delete File: link\n"))
	outer := f.TempDir()
	dir := filepath.Join(outer, "w")
	put(f, filepath.Join(outer, "f"), "outside")
	put(f, filepath.Join(dir, "f"), "")
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { w.Close() })
	key := 0
	f.Fuzz(func(t *testing.T, content, patch string) {
		b := &bench{t, dir, w}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range entries {
			if err := os.RemoveAll(filepath.Join(dir, d.Name())); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(dir, "f"), content)
		put(t, filepath.Join(dir, "other"), "o\n")
		if err := os.Symlink("../f", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		before := tree(t, b.dir)
		in := invocation(t, args{"patch": patch})
		key++
		in.Key = fmt.Sprint(key)
		subjects, subjectErr := b.tool("patch").Subjects(in.Args)
		r := b.call("patch", in)
		after := tree(t, b.dir)
		if got, err := os.ReadFile(filepath.Join(outer, "f")); err != nil || string(got) != "outside" {
			t.Fatalf("the file outside is %q (%v)", got, err)
		}
		if (r.IsError || subjectErr != nil) && !cmp.Equal(before, after) {
			t.Fatalf("refused (%v, %v), and changed: %s\n%s", r.Text, subjectErr, cmp.Diff(before, after), patch)
		}
		if r.IsError && r.Text == "" {
			t.Fatal("an error without words")
		}
		if r.IsError {
			return
		}
		named := map[string]bool{}
		for _, s := range subjects {
			named[strings.TrimPrefix(filepath.Clean("/"+s), "/")] = true
		}
		for name := range after {
			if before[name] != after[name] && !named[name] {
				t.Fatalf("%s was changed, which is not among %q", name, subjects)
			}
		}
		for name := range before {
			if _, ok := after[name]; !ok && !named[name] {
				t.Fatalf("%s was deleted, which is not among %q", name, subjects)
			}
		}
		// Again with its key: nothing is done twice.
		if r := b.call("patch", in); !cmp.Equal(after, tree(t, b.dir)) {
			t.Fatalf("the second run (%s) changed: %s", r.Text, cmp.Diff(after, tree(t, b.dir)))
		}
	})
}

// A patch of many hunks against a long file is no burden.
func TestLargePatch(t *testing.T) {
	var text, patch strings.Builder
	patch.WriteString("*** Begin Patch\n*** Update File: f\n")
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d\n", i)
		if i%20 == 0 {
			fmt.Fprintf(&patch, "@@\n-line %d\n+LINE %d\n", i, i)
		}
	}
	patch.WriteString("*** End Patch\n")
	b := open(t, tool.Options{}, files{"f": text.String()})
	b.ok("patch", args{"patch": patch.String()})
	if got := strings.Count(b.read("f"), "LINE"); got != 1000 {
		t.Errorf("%d lines were changed", got)
	}
	runtime.KeepAlive(b)
}
