// Command size measures what the program weighs: a build with an empty cache,
// the binary, and the modules that cost most of both.
//
//	cd bench && go run ./size -tags "$TAGS"
//	cd bench && go run ./size -build=false   # the binary alone, in seconds
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// What the project holds itself to.
const (
	mostBytes = 60e6
	mostWall  = 4 * time.Minute
	shown     = 10
)

func main() {
	tags := flag.String("tags", "", "build `tags`")
	cold := flag.Bool("build", true, "build everything anew, with an empty cache")
	flag.Parse()
	if err := measure(*tags, *cold); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// A weight is what one module costs.
type weight struct {
	module  string
	compile time.Duration // of processor time
	bytes   int64         // of code and data in the binary
}

func measure(tags string, cold bool) error {
	dir, err := os.MkdirTemp("", "synapse-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := builder{dir: dir, tags: tags}
	modules, err := b.modules()
	if err != nil {
		return err
	}
	weights := map[string]*weight{}
	of := func(pkg string) *weight {
		m := modules[pkg]
		if m == "" {
			m = "standard library"
		}
		if weights[m] == nil {
			weights[m] = &weight{module: m}
		}
		return weights[m]
	}

	fmt.Printf("%s, %d processors, %s/%s, %d packages\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, len(modules))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if cold {
		took, err := b.cold()
		if err != nil {
			return err
		}
		for pkg, spent := range took.packages {
			of(pkg).compile += spent
		}
		fmt.Fprintf(out, "a build with an empty cache: wall\t%.0f s\tat most %.0f\t%s\n", took.wall.Seconds(), mostWall.Seconds(), verdict(took.wall <= mostWall))
		fmt.Fprintf(out, "  CPU\t%.0f s\t\t\n", took.cpu.Seconds())
	}
	size, err := b.binary(true)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the binary, stripped\t%.1f MB\tat most %.0f\t%s\n", float64(size)/1e6, mostBytes/1e6, verdict(float64(size) <= mostBytes))
	if err := out.Flush(); err != nil {
		return err
	}
	symbols, err := b.symbols()
	if err != nil {
		return err
	}
	for name, bytes := range symbols {
		if pkg := packageOf(name); modules[pkg] != "" || !strings.Contains(pkg, ".") {
			of(pkg).bytes += bytes
		}
	}

	all := make([]*weight, 0, len(weights))
	for _, w := range weights {
		if w.module != "standard library" {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *weight) int {
		return cmp.Or(cmp.Compare(b.compile, a.compile), cmp.Compare(b.bytes, a.bytes))
	})
	fmt.Fprintln(out, "\nmodule\tCPU s to compile\tMB of code and data")
	for _, w := range append(all[:min(shown, len(all))], of("")) {
		fmt.Fprintf(out, "%s\t%.1f\t%.2f\n", w.module, w.compile.Seconds(), float64(w.bytes)/1e6)
	}
	return out.Flush()
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "MISSED"
}

// A builder builds the program in dir.
type builder struct{ dir, tags string }

// command runs go in the main module.
func (b *builder) command(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	return cmd
}

func (b *builder) build(out string, more ...string) *exec.Cmd {
	args := append([]string{"build", "-trimpath", "-tags", b.tags, "-o", filepath.Join(b.dir, out)}, more...)
	return b.command(append(args, "./cmd/synapse")...)
}

// modules returns the module of each package of the program, "" for the
// standard library's.
func (b *builder) modules() (map[string]string, error) {
	data, err := b.command("list", "-deps", "-tags", b.tags, "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", "./cmd/synapse").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages (run this in bench/): %w", err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(data)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules[pkg] = module
	}
	return modules, nil
}

// A build is what one took.
type build struct {
	wall, cpu time.Duration
	packages  map[string]time.Duration // processor time
}

// cold builds with an empty cache.
func (b *builder) cold() (build, error) {
	graph := filepath.Join(b.dir, "actions.json")
	cmd := b.build("cold", "-ldflags=-s -w", "-debug-actiongraph="+graph)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(b.dir, "cache"))
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return build{}, fmt.Errorf("build: %w\n%s", err, out)
	}
	took := build{
		wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		packages: map[string]time.Duration{},
	}
	data, err := os.ReadFile(graph)
	if err != nil {
		return took, err
	}
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(data, &actions); err != nil {
		return took, fmt.Errorf("read what the build did: %w", err)
	}
	for _, a := range actions {
		if a.Mode == "build" {
			took.packages[a.Package] += a.CmdUser + a.CmdSys
		}
	}
	return took, nil
}

// binary builds the program, stripped or with its symbols, and returns its size.
func (b *builder) binary(stripped bool) (int64, error) {
	flags := ""
	if stripped {
		flags = "-s -w"
	}
	if out, err := b.build("synapse", "-ldflags="+flags).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	info, err := os.Stat(filepath.Join(b.dir, "synapse"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// symbols returns the sizes of what is in the binary by name. What is zero at
// the start is not in the file and not counted.
func (b *builder) symbols() (map[string]int64, error) {
	if _, err := b.binary(false); err != nil {
		return nil, err
	}
	data, err := b.command("tool", "nm", "-size", filepath.Join(b.dir, "synapse")).Output()
	if err != nil {
		return nil, fmt.Errorf("list symbols: %w", err)
	}
	type symbol struct {
		address, size int64
		name          string
	}
	var all []symbol
	at := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue // without an address: of another file
		}
		address, err1 := strconv.ParseInt(fields[0], 16, 64)
		size, err2 := strconv.ParseInt(fields[1], 10, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		name := strings.Join(fields[3:], " ")
		all = append(all, symbol{address, size, name})
		at[name] = address
	}
	sizes := map[string]int64{}
	for _, s := range all {
		if s.address >= at["runtime.bss"] && s.address < at["runtime.ebss"] || s.address >= at["runtime.noptrbss"] && s.address < at["runtime.enoptrbss"] {
			continue
		}
		sizes[s.name] += s.size
	}
	return sizes, lines.Err()
}

// packageOf returns the package of a symbol: what stands before the first dot
// after the last slash of the name proper.
func packageOf(symbol string) string {
	for _, prefix := range []string{"type:", "go:"} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol = strings.TrimLeft(symbol, "*[]")
	if i := strings.IndexAny(symbol, "([{"); i >= 0 { // a receiver, an argument
		symbol = symbol[:i]
	}
	slash := strings.LastIndexByte(symbol, '/') + 1
	if dot := strings.IndexByte(symbol[slash:], '.'); dot >= 0 {
		symbol = symbol[:slash+dot]
	}
	return strings.ReplaceAll(symbol, "%2e", ".")
}
