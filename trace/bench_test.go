package trace_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

func journals(b *testing.B, run func(b *testing.B, j trace.Journal)) {
	b.Run("memory", func(b *testing.B) { run(b, new(trace.Memory)) })
	b.Run("sqlite", func(b *testing.B) {
		run(b, openSQLite(b, filepath.Join(b.TempDir(), "journal.db"), trace.SQLiteOptions{}))
	})
}

// synced and unsynced are events of a usual size.
func unsynced(seq int64) *synapse.Event {
	return tracetest.Run{Trace: "t", ID: "r", Agent: "main"}.Event(seq, &synapse.ToolFinished{
		Result: synapse.ToolResult{CallID: "call_0123456789", Name: "read_file", Text: text}, Elapsed: 1234567})
}

func synced(seq int64) *synapse.Event {
	return tracetest.Run{Trace: "t", ID: "r", Agent: "main"}.Event(seq, &synapse.ToolStarted{
		Call: synapse.ToolCall{ID: "call_0123456789", Name: "execute", Args: `{"command":"go test ./..."}`}, Intent: "see what fails", Key: "t1/tool/0", Effect: synapse.EffectUnsafe})
}

var text = fmt.Sprintf("%0500d", 0)

func BenchmarkAppend(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func(int64) *synapse.Event
	}{{"unsynced", unsynced}, {"synced", synced}} {
		for _, size := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/batch=%d", kind.name, size), func(b *testing.B) {
				journals(b, func(b *testing.B, j trace.Journal) {
					b.ReportAllocs()
					batch := make([]*synapse.Event, size)
					seq := int64(0)
					for b.Loop() {
						for i := range batch {
							seq++
							batch[i] = kind.make(seq)
						}
						if err := j.Append(b.Context(), batch...); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(seq), "ns/event")
				})
			})
		}
	}
}

// BenchmarkAppendFanOut has 64 runs of a trace append at once, each waiting
// until its event is on the disk.
func BenchmarkAppendFanOut(b *testing.B) {
	journals(b, func(b *testing.B, j trace.Journal) {
		var seq atomic.Int64
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := j.Append(b.Context(), synced(seq.Add(1))); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func BenchmarkEvents(b *testing.B) {
	const n = 100_000
	journals(b, func(b *testing.B, j trace.Journal) {
		batch := make([]*synapse.Event, 0, 1000)
		for seq := int64(1); seq <= n; seq++ {
			if batch = append(batch, unsynced(seq)); len(batch) == cap(batch) {
				if err := j.Append(b.Context(), batch...); err != nil {
					b.Fatal(err)
				}
				batch = batch[:0]
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			i := 0
			for _, err := range j.Events(b.Context(), trace.Query{Trace: "t"}) {
				if err != nil {
					b.Fatal(err)
				}
				i++
			}
			if i != n {
				b.Fatalf("%d events", i)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
	})
}
