// Command compare gives the same work to Synapse, to two other Go agent
// libraries and to a bare loop, and prints what it cost each of them, as ratios
// of one run on one machine. No model and no network are involved: the replies
// come from this process, after a delay.
//
//	cd bench && go run ./compare
//	cd bench && go run ./compare -delays 0 -faults=false
//
// Every cell is measured in a process of its own.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	var (
		delays = flag.String("delays", "0,20,200", "`milliseconds` until a reply of the model begins, separated by commas")
		faults = flag.Bool("faults", true, "print the table of faults too")
		one    = flag.String("one", "", "measure this cell only and print it as JSON (used by the command itself)")
	)
	flag.Parse()
	if *one != "" {
		if err := single(*one); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
		return
	}
	if err := tables(*delays, *faults); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// A workload is a kind of work.
type workload struct {
	name  string
	world func() *world
}

var workloads = []workload{
	{"one agent, 50 turns", func() *world { return &world{turns: 50} }},
	{"100 children × 3 turns", func() *world { return &world{turns: 3, children: 100} }},
}

func tables(delays string, faults bool) error {
	fmt.Printf("%s, %d processors, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, l := range versions() {
		fmt.Println(l)
	}
	for i, w := range workloads {
		for _, delay := range strings.Split(delays, ",") {
			fmt.Printf("\n%s, a reply after %s ms\n", w.name, delay)
			out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(out, "\tCPU ms\tallocations\twall ms\tCPU ratio\twall ratio\t")
			var floor cost
			for _, l := range libraries {
				var c cost
				failure, err := child(fmt.Sprintf("cost/%s/%d/%s", l.name, i, delay), &c)
				switch {
				case err != nil:
					return err
				case failure != "":
					fmt.Fprintf(out, "%s\t%s\t\t\t\t\t\n", l.name, failure)
					continue
				case l.name == libraries[0].name:
					floor = c
				}
				fmt.Fprintf(out, "%s\t%.2f\t%d\t%.1f\t%.1f\t%.2f\t\n", l.name, c.CPU, c.Allocs, c.Wall, c.CPU/floor.CPU, c.Wall/floor.Wall)
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	if !faults {
		return nil
	}
	fmt.Println("\nwhen something breaks (20 children)")
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\ta child's model fails\tunknown tool\ttool panics\tcancel while 20 children wait for their model")
	for _, l := range libraries[1:] {
		if l.name == "synapse on disk" {
			continue // no other loop
		}
		row := []string{l.name}
		for _, fault := range []string{"model", "unknown", "panic", "cancel"} {
			var f ending
			failure, err := child("fault/"+l.name+"/"+fault, &f)
			if err != nil {
				return err
			}
			if failure != "" {
				f.What = "the process dies: " + failure
			}
			row = append(row, f.What)
		}
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Flush()
}

// versions names the modules that are compared, as they are linked in.
func versions() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var out []string
	for _, m := range info.Deps {
		if strings.HasSuffix(m.Path, "/eino") || strings.HasSuffix(m.Path, "/fantasy") {
			out = append(out, m.Path+" "+m.Version)
		}
	}
	return out
}

// child measures a cell in a process of its own. failure is what a process that
// died said last.
func child(cell string, out any) (failure string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(self, "-one", cell)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return line, nil
	}
	if err != nil {
		return "", err
	}
	return "", json.Unmarshal(data, out)
}

func single(cell string) error {
	parts := strings.Split(cell, "/")
	if len(parts) < 3 {
		return fmt.Errorf("cell %q: want cost/LIBRARY/WORKLOAD/DELAY or fault/LIBRARY/FAULT", cell)
	}
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == parts[1] })
	if i < 0 {
		return fmt.Errorf("cell %q: there is no library %q", cell, parts[1])
	}
	var out any
	var err error
	if parts[0] == "fault" {
		out = breakIt(libraries[i], parts[2])
	} else {
		var n, delay int
		if _, err := fmt.Sscanf(strings.Join(parts[2:], " "), "%d %d", &n, &delay); err != nil || n < 0 || n >= len(workloads) {
			return fmt.Errorf("cell %q: there is no such workload", cell)
		}
		w := workloads[n].world()
		w.delay = time.Duration(delay) * time.Millisecond
		out, err = measure(libraries[i], w)
		if w.cleanup != nil {
			w.cleanup()
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
