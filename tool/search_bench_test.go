package tool_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/tool"
)

// largeTree makes a tree like that of a large project: 50,000 files in some
// 5,000 directories, of a few kilobytes each, with binaries and ignored files
// among them. The word Needle stands in one of a thousand.
func largeTree(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return err nil if for range string int context package import struct interface the a of value error name path file read write open close type var const map slice byte")
	var text bytes.Buffer
	for text.Len() < 1<<20 {
		for range 3 + rng.IntN(9) {
			text.WriteString(words[rng.IntN(len(words))])
			text.WriteByte(" \t(.)"[rng.IntN(5)])
		}
		text.WriteByte('\n')
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	write(".gitignore", []byte("*.o\n/build/\n"))
	sub := ""
	for i := range 50_000 {
		if i%10 == 0 {
			sub = fmt.Sprintf("d%02d/e%02d/f%02d", i/10%17, i/10%71, i/10/100)
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		size := 200 + int(rng.ExpFloat64()*4000)
		from := rng.IntN(text.Len() - 40_000)
		data := bytes.Clone(text.Bytes()[from : from+min(size, 40_000)])
		name := fmt.Sprintf("%s/file%05d.go", sub, i)
		switch {
		case i%1000 == 0:
			data = append(data, "\n// the Needle stands here\n"...)
		case i%50 == 7:
			name, data = fmt.Sprintf("%s/image%05d.png", sub, i), append([]byte("\x89PNG\r\n\x1a\n\x00\x00"), data...)
		case i%50 == 8:
			name = fmt.Sprintf("%s/object%05d.o", sub, i)
		}
		write(name, data)
	}
	return dir
}

// BenchmarkSearchAgainstRipgrep gives, beside the time of a search, how many
// times as long as rg's it is. Both are run in turn, so that what else the
// machine does falls on both.
func BenchmarkSearchAgainstRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed")
	}
	dir := largeTree(b)
	w, err := tool.Open(dir, tool.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	bench := &bench{b, dir, w}
	for _, test := range []struct {
		name string
		args args
		rg   []string
	}{
		{"literal", args{"pattern": "Needle"}, []string{"Needle"}},
		{"regexp", args{"pattern": `the \w+dle stands`}, []string{`the \w+dle stands`}},
		{"ignore case", args{"pattern": "needle", "ignore_case": true}, []string{"-i", "needle"}},
		{"no literal", args{"pattern": `[A-Z][a-z]+ st`}, []string{`[A-Z][a-z]+ st`}},
		{"files", args{"pattern": "Needle", "mode": "files"}, []string{"-l", "Needle"}},
	} {
		b.Run(test.name, func(b *testing.B) {
			var ours, theirs, ourCPU, theirCPU time.Duration
			for b.Loop() {
				start, used := time.Now(), processorTime(b)
				got := bench.ok("search_files", test.args)
				ours += time.Since(start)
				ourCPU += processorTime(b) - used
				start = time.Now()
				cmd := exec.Command(rg, append([]string{"--hidden", "--line-number", "--no-heading", "--color=never", "--no-require-git"}, append(test.rg, dir)...)...)
				cmd.Env = []string{"RIPGREP_CONFIG_PATH="}
				out, err := cmd.Output()
				theirs += time.Since(start)
				theirCPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				if err != nil || bytes.Count(out, []byte("\n")) != hitLines(got) {
					b.Fatalf("rg: %v, %d lines; ours: %d lines", err, bytes.Count(out, []byte("\n")), hitLines(got))
				}
			}
			b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/search")
			b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "ms/rg")
			b.ReportMetric(float64(ours)/float64(theirs), "times-rg")
			b.ReportMetric(float64(ourCPU)/float64(theirCPU), "cpu-times-rg")
			b.ReportMetric(0, "ns/op") // of both together it says nothing
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// hitLines counts the lines of a search's result that are no notes.
func hitLines(result string) int {
	n := 0
	for line := range strings.SplitSeq(result, "\n") {
		if !strings.HasPrefix(line, "[") {
			n++
		}
	}
	return n
}
