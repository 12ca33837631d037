package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-agents/synapse/agents"
)

// BenchmarkLoad5000 reads a directory of 5,000 definitions on one core, about
// one in sixteen of which is not valid YAML, as in the wild.
func BenchmarkLoad5000(b *testing.B) {
	const files = 5000
	dir := b.TempDir()
	body := strings.Repeat("You keep the tide tables and answer with times in UTC.\n", 60)
	for i := range files {
		colon := ""
		if i%16 == 0 {
			colon = ": that is"
		}
		text := fmt.Sprintf("---\nname: agent-%d\ndescription: Use for harbour %d%s, whenever somebody asks about high or low water, day or night.\ntools: Read, Grep, Bash(git log:*)\nmodel: inherit\ncolor: blue\n---\n\n%s", i, i, colon, body)
		sub := filepath.Join(dir, fmt.Sprintf("team-%02d", i%50))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("agent-%d.md", i)), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		reg, diags := agents.Merge(agents.LoadDir(dir, agents.LayerUser, agents.LoadOptions{}))
		if reg.Len() != files || agents.HasErrors(diags) {
			b.Fatalf("%d agents, %d diagnostics", reg.Len(), len(diags))
		}
	}
	b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
	b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/op") // the one to look at on a busy machine
}

// cpu returns the processor time this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkLookup(b *testing.B) {
	var defs []*agents.Definition
	for i := range 1000 {
		defs = append(defs, def(fmt.Sprintf("agent-%d", i), "x"))
	}
	reg, _ := agents.Merge(layerOf(agents.LayerUser, defs...))
	for b.Loop() {
		if _, err := reg.Lookup("AGENT 999"); err != nil {
			b.Fatal(err)
		}
	}
}
