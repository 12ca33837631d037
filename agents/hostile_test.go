package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/agents"
)

// few is how often a test of random things repeats: under the race detector, which
// makes each of them ten times as dear and finds nothing in pure functions, less.
func few(n int) int {
	if raceDetector {
		return n / 6
	}
	return n
}

// hostile makes files that are meant to use up memory or time. Each is as large
// as may be; under the race detector, where memory is not judged, smaller.
func hostile() map[string]func() string {
	const head, tail = "---\nname: a\ndescription: d\n", "\n---\nbody\n"
	room := agents.MaxFileSize
	if raceDetector {
		room /= 16
	}
	room -= len(head) + len(tail) + 100
	fill := func(prefix, unit, suffix string) string {
		return head + prefix + strings.Repeat(unit, (room-len(prefix)-len(suffix))/len(unit)) + suffix + tail
	}
	bomb := func(levels int, last string) string {
		var b strings.Builder
		b.WriteString("x0: &x0 [" + strings.Repeat("lol,", 20) + "]\n")
		for i := 1; i < levels; i++ {
			fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*x%d,", i-1), 20))
		}
		return head + b.String() + last + tail
	}
	merges := func() string {
		var b strings.Builder
		b.WriteString("m0: &m0 {k: v}\n")
		for i := 1; i < 40; i++ {
			fmt.Fprintf(&b, "m%d: &m%d {<<: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*m%d,", i-1), 40))
		}
		return head + b.String() + "<<: *m39\n" + tail
	}
	deep := func() string {
		var b strings.Builder
		for i := 0; b.Len() < room-2000 && i < 1400; i++ {
			b.WriteString(strings.Repeat(" ", i) + "k:\n")
		}
		return head + b.String() + tail
	}
	return map[string]func() string{
		"brackets":          func() string { return fill("x: ", "[", "") },
		"braces":            func() string { return fill("x: ", "{a: ", "") },
		"flow items":        func() string { return fill("x: [", "a,", "]") },
		"tools items":       func() string { return fill("tools: [", "a,", "]") },
		"tools text":        func() string { return fill("tools: ", "a,", "") },
		"tools distinct":    func() string { return head + "tools: " + distinct(room-20, " ") + tail },
		"tools commas":      func() string { return head + "tools: " + distinct(room-20, ", ") + tail },
		"skills distinct":   func() string { return head + "skills: " + distinct(room-20, ",") + tail },
		"tools blanks":      func() string { return fill("tools: ", "a ", "") },
		"tools parentheses": func() string { return fill("tools: ", "a(", "") },
		"denied blanks":     func() string { return fill("disallowed_tools: ", "a b, ", "") },
		"keys":              func() string { return fill("", "k: v\n", "") },
		"odd keys":          func() string { return fill("bad: a: b\n", "k: v\n", "") },
		"known keys":        func() string { return fill("", "tools: [a]\n", "") },
		"dashes":            func() string { return fill("x: ", "- ", "") },
		"list":              func() string { return fill("x:\n", "- a\n", "") },
		"colons":            func() string { return fill("about: ", "a: ", "") },
		"quotes":            func() string { return fill("about: ", `"a" `, "") },
		"question marks":    func() string { return fill("", "? ", "") },
		"anchors":           func() string { return fill("x: [", "&a a,", "]") },
		"tags":              func() string { return fill("x: [", "!a a,", "]") },
		"long description":  func() string { return fill("about: ", "word ", "") },
		"odd description":   func() string { return fill("notes: a: ", "word\n ", "") },
		"blank lines":       func() string { return fill("", "\n", "") },
		"comments":          func() string { return fill("", "# x\n", "") },
		"headings":          func() string { return "---\n" + strings.Repeat("# x\ny\n", room/6) },
		"no end":            func() string { return "---\nname: a\n" + strings.Repeat("k: v\n", room/5) },
		"html comments":     func() string { return strings.Repeat("<!-- x -->\n", room/11) },
		"rules":             func() string { return strings.Repeat("---\n", room/4) },
		"long rules":        func() string { return head + strings.Repeat("-----\nname: b\n", room/15) + tail },
		"long line":         func() string { return head + "x: " + strings.Repeat("a", room) + tail },
		"long key":          func() string { return head + strings.Repeat("a", room) + ": b" + tail },
		"bodies":            func() string { return head + tail + strings.Repeat("---\n", room/4) },
		"carriage returns":  func() string { return "---\r" + strings.Repeat("k: v\r", room/5) },
		"NULs":              func() string { return head + strings.Repeat("\x00", room) + tail },
		"not UTF-8":         func() string { return head + "x: " + strings.Repeat("\xff", room) + tail },
		"UTF-16":            func() string { return "\xff\xfe" + strings.Repeat("-\x00", room/2) },
		"alias bomb":        func() string { return bomb(30, "") },
		"alias in tools":    func() string { return bomb(30, "tools: *x29\n") },
		"alias in schema":   func() string { return bomb(30, "output_schema: {properties: {a: *x29}}\n") },
		"alias in rules":    func() string { return bomb(30, "permissions: {execute: *x29}\n") },
		"alias in skills":   func() string { return bomb(30, "skills: *x29\n") },
		"merge bomb":        merges,
		"nesting":           deep,
		"rules map":         func() string { return fill("permissions: {execute: {", "a: deny, ", "b: deny}}") },
		"spaces":            func() string { return fill("x: a", " ", "b: c") },
	}
}

// distinct is a list of names of which no two are the same.
func distinct(room int, sep string) string {
	var b strings.Builder
	for i := 0; b.Len() < room-10; i++ {
		fmt.Fprintf(&b, "t%d%s", i, sep)
	}
	return b.String()
}

const hostileChild = "SYNAPSE_TEST_HOSTILE"

// TestHostileFiles reads them in a process of its own and looks at the time
// each takes, and at the most memory that the process ever had.
func TestHostileFiles(t *testing.T) {
	switch os.Getenv(hostileChild) {
	case "idle":
		return
	case "all":
		for name, file := range hostile() {
			text := []byte(file())
			start := time.Now()
			d, diags := agents.Parse("x.md", text, agents.ParseOptions{})
			took := time.Since(start)
			checkDefinition(t, d, diags)
			if n := len(diags); n > 200 {
				t.Errorf("%s: %d diagnostics", name, n)
			}
			if took > time.Minute {
				t.Errorf("%s: took %v", name, took)
			}
			debug.FreeOSMemory()
			fmt.Printf("%-18s %5d ms, peak so far %d MiB\n", name, took.Milliseconds(), peak(t)>>20)
		}
		return
	}
	child := func(what string) (out []byte, rss int64) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHostileFiles$", "-test.v")
		cmd.Env = append(os.Environ(), hostileChild+"="+what)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	_, idle := child("idle")
	out, rss := child("all")
	t.Logf("%s%d MiB, of which the files took %d", out, rss>>20, (rss-idle)>>20)
	if grown := rss - idle; grown > 64<<20 && !raceDetector {
		t.Errorf("took %d MiB:\n%s", grown>>20, out)
	}
}

// peak returns the most memory this process has had, in bytes.
func peak(t *testing.T) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss << 10
}

// TestManyFindings: of a file in which much is wrong so much is said as can be
// read, and its error is among that.
func TestManyFindings(t *testing.T) {
	text := "---\nname: a\ndescription: d\n" + strings.Repeat("tools: [read_file]\n", 400) + "max_turns: many\n---\nbody\n"
	d, diags := agents.Parse("x.md", []byte(text), agents.ParseOptions{})
	if !d.Broken || !agents.HasErrors(diags) {
		t.Errorf("the error is lost: %v", diags)
	}
	if last := diags[len(diags)-1]; len(diags) > 200 || !strings.Contains(last.Message, "more findings in this file are left out") {
		t.Errorf("%d findings, the last is %q", len(diags), last.Message)
	}
}
