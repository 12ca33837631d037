// Command process measures the synapse binary as a user meets it: it builds it,
// starts it against a server of its own on loopback and prints what the process
// took.
//
//	cd bench && go run ./process
//	cd bench && go run ./process -bin ./synapse -runs 9
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	bin := flag.String("bin", "", "the `binary` to measure; built from this checkout when empty")
	runs := flag.Int("runs", 5, "how often everything is run; medians are printed")
	flag.Parse()
	if err := measure(*bin, max(*runs, 1)); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// A sample is what one process took.
type sample struct {
	wall, cpu, start time.Duration // start: until its first request
	rss              int64         // bytes, at most
	server           *server
}

func measure(bin string, runs int) error {
	dir, err := os.MkdirTemp("", "synapse-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if bin == "" {
		bin = filepath.Join(dir, "synapse")
		cmd := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", bin, "./cmd/synapse")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build synapse (run this in bench/): %w\n%s", err, out)
		}
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(work, fmt.Sprintf("file-%d.txt", i)), []byte(strings.Repeat("a line of text\n", 100)), 0o644); err != nil {
			return err
		}
	}

	fmt.Printf("%s, %d processors, %s/%s, medians of %d runs\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runs)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(what string, value, most float64, unit string) {
		verdict := "ok"
		if value > most {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "%s\t%.3g %s\tat most %g\t%s\n", what, value, unit, most, verdict)
	}
	e := experiment{bin: bin, dir: dir, work: work, runs: runs}

	fan, err := e.run(50, 3, 200*time.Millisecond, "run", "Share the work.")
	if err != nil {
		return err
	}
	row("50 children × 3 file reads, 200 ms a reply: wall", seconds(fan.wall), 1.4, "s")
	row("  CPU", seconds(fan.cpu), 0.5, "s")
	row("  peak RSS", float64(fan.rss)/1e6, 80, "MB")
	one, err := e.run(0, 0, 0, "run", "Say hello.")
	if err != nil {
		return err
	}
	row("one answer, a reply at once: CPU", seconds(one.cpu), 0.1, "s")
	row("  peak RSS", float64(one.rss)/1e6, 60, "MB")
	row("  first request after the start", seconds(one.start)*1e3, 60, "ms")
	fmt.Fprintf(out, "  wall\t%.3g ms\t\t\n", seconds(one.wall)*1e3)
	fresh := e
	fresh.newHome = true
	first, err := fresh.run(0, 0, 0, "run", "Say hello.")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  first request in a new home, which is set up\t%.3g ms\t\t\n", seconds(first.start)*1e3)
	version, err := e.run(0, 0, 0, "version")
	if err != nil {
		return err
	}
	row("synapse version: CPU", seconds(version.cpu)*1e3, 25, "ms")
	fmt.Fprintf(out, "first request of the main agent\t%d bytes\t\t\n", fan.server.firstOf["main"])
	fmt.Fprintf(out, "first request of a child\t%d bytes\t\t\n", fan.server.firstOf["child"])
	bytes, repeated := fan.server.shared()
	fmt.Fprintf(out, "prompt bytes that repeat an earlier request's beginning\t%.1f %% of %.0f kB\t\t\n", 100*float64(repeated)/float64(bytes), float64(bytes)/1e3)
	return out.Flush()
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// An experiment starts one binary in one place.
type experiment struct {
	bin, dir, work string
	runs           int
	newHome        bool // each process is the first of its user
}

// run starts the binary several times and returns the medians, each on its own.
func (e *experiment) run(children, reads int, delay time.Duration, args ...string) (sample, error) {
	var all []sample
	for i := range e.runs + 1 { // the first one warms the caches of the machine
		s, err := e.once(children, reads, delay, args)
		if err != nil {
			return s, fmt.Errorf("synapse %s: %w", strings.Join(args, " "), err)
		}
		if i > 0 {
			all = append(all, s)
		}
	}
	return sample{
		wall: median(all, func(s sample) time.Duration { return s.wall }), cpu: median(all, func(s sample) time.Duration { return s.cpu }),
		start: median(all, func(s sample) time.Duration { return s.start }), rss: median(all, func(s sample) int64 { return s.rss }), server: all[0].server,
	}, nil
}

func median[N int64 | time.Duration](all []sample, of func(sample) N) N {
	values := make([]N, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (e *experiment) once(children, reads int, delay time.Duration, args []string) (sample, error) {
	srv, err := serve(children, reads, delay)
	if err != nil {
		return sample{}, err
	}
	defer srv.close()
	home := filepath.Join(e.dir, "home")
	if e.newHome {
		home, err = os.MkdirTemp(e.dir, "home-")
	} else {
		err = os.MkdirAll(home, 0o700)
	}
	if err != nil {
		return sample{}, err
	}
	cmd := exec.Command(e.bin, args...)
	cmd.Dir = e.work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "OPENAI_BASE_URL=" + srv.url, "OPENAI_API_KEY=bench", "AGENT_MODEL=openai:bench", "NO_COLOR=1"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	s := sample{wall: time.Since(start), server: srv}
	if err != nil {
		return s, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return s, errors.New("this system tells nothing of a process's resources")
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.rss = usage.Maxrss
	if runtime.GOOS != "darwin" { // kilobytes everywhere else
		s.rss *= 1024
	}
	if args[0] == "version" {
		return s, nil
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	s.start = srv.first.Sub(start)
	want := 1
	if children > 0 {
		want = 2 + children*(reads+1)
	}
	if got := len(srv.prompts); got != want || !strings.Contains(stdout.String(), "lines of text") {
		return s, fmt.Errorf("it made %d requests, want %d, and said %q\n%s", got, want, stdout.String(), stderr.String())
	}
	return s, nil
}
