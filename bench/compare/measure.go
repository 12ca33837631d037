package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// A cost is what one run of a workload takes.
type cost struct {
	CPU, Wall float64 // milliseconds
	Allocs    uint64
}

// measure runs a workload until about a second of processor time is used, or
// once when it waits most of the time.
func measure(l library, w *world) (cost, error) {
	run, err := l.open(w)
	if err != nil {
		return cost{}, err
	}
	once := func(ctx context.Context) error {
		w.requests.Store(0)
		text, err := run(ctx)
		if err != nil {
			return err
		}
		if text != answer {
			return fmt.Errorf("%s answered %q", l.name, text)
		}
		want := int64(w.turns)
		if w.children > 0 {
			want = int64(w.children*w.turns + 2)
		}
		if got := w.requests.Load(); got != want {
			return fmt.Errorf("%s made %d requests, want %d", l.name, got, want)
		}
		return nil
	}
	ctx := context.Background()
	n := 1
	if w.delay == 0 {
		for range 5 { // to warm up, and to see how long it takes
			start := cpuTime()
			if err := once(ctx); err != nil {
				return cost{}, err
			}
			n = int(min(max(time.Second/max(cpuTime()-start, time.Microsecond), 10), 2000))
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), cpuTime()
	for range n {
		if err := once(ctx); err != nil {
			return cost{}, err
		}
	}
	wall, used := time.Since(start), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	per := func(d time.Duration) float64 { return float64(d) / 1e6 / float64(n) }
	return cost{CPU: per(used), Wall: per(wall), Allocs: (after.Mallocs - before.Mallocs) / uint64(n)}, nil
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An ending is what became of a run in which something broke.
type ending struct{ What string }

// breakIt runs twenty children, with a fault, and says what became of it.
func breakIt(l library, fault string) ending {
	w := &world{turns: 3, children: 20, fault: fault}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var before int
	if fault == "cancel" {
		w.fault, w.delay = "", 200*time.Millisecond
		before = runtime.NumGoroutine()
		time.AfterFunc(300*time.Millisecond, func() { // the children wait for their first reply
			w.cancelled.Store(true)
			cancel()
		})
	}
	run, err := l.open(w)
	if err != nil {
		return ending{"can't be prepared: " + err.Error()}
	}
	start := time.Now()
	text, err := run(ctx)
	took := time.Since(start)
	if fault == "cancel" {
		time.Sleep(time.Second)
		left := max(runtime.NumGoroutine()-before, 0)
		return ending{fmt.Sprintf("returns after %d ms, %d requests and tool calls begun since, %d goroutines left",
			(took-300*time.Millisecond)/time.Millisecond, w.late.Load(), left)}
	}
	switch {
	case err != nil:
		line := err.Error()
		if len(line) > 60 {
			line = line[:60] + "…"
		}
		return ending{"aborts: " + oneLine(line)}
	case text == answer:
		return ending{"goes on"}
	}
	return ending{fmt.Sprintf("goes on, answers %q", text)}
}

func oneLine(s string) string {
	out := []rune(s)
	for i, r := range out {
		if r == '\n' || r == '\t' {
			out[i] = ' '
		}
	}
	return string(out)
}
