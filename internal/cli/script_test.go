//go:build unix

package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/synapse-agents/synapse/internal/cli"
)

var goldenDir string

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"synapse": synapse})
}

// synapse is the program, as cmd/synapse runs it.
func synapse() {
	p := &cli.Process{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}
	p.Home, _ = os.UserHomeDir()
	p.ExeDir = os.Getenv("TEST_EXE_DIR") // the test binary's own has no place for a layer
	os.Exit(cli.Main(context.Background(), p))
}

// TestScript runs every script of testdata/script with the real program, a home
// and a workspace of its own, and the endpoint at $SERVER. No script reaches the
// network.
func TestScript(t *testing.T) {
	var err error
	if goldenDir, err = filepath.Abs(filepath.Join("testdata", "golden")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			server := newEndpoint()
			env.Defer(func() {
				server.CloseClientConnections() // a hanging answer must not hang the test
				server.Close()
			})
			home := filepath.Join(env.WorkDir, "home")
			if err := os.MkdirAll(filepath.Join(home, ".synapse"), 0o755); err != nil {
				return err
			}
			// Nobody's model server on this machine may answer.
			settings := filepath.Join(home, ".synapse", "settings.json")
			if _, err := os.Stat(settings); errors.Is(err, os.ErrNotExist) {
				if err := os.WriteFile(settings, []byte("{\"probe_local\": false}\n"), 0o644); err != nil {
					return err
				}
			}
			env.Setenv("HOME", home)
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command sleeps a second under -race
			env.Setenv("SERVER", server.URL+"/v1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   cmdCode,
			"signal": cmdSignal,
			"gone":   cmdGone,
			"server": cmdServer,
			"golden": cmdGolden,
			"prefix": cmdPrefix,
		},
	})
}

// code N PROGRAM ARGS… runs a program and wants that exit code.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// golden NAME compares standard output with testdata/golden/NAME, but for what
// differs from run to run. With -update it writes that file.
func cmdGolden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: golden NAME")
	}
	got := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "$WORK")
	for _, v := range varying {
		got = v.pattern.ReplaceAllString(got, v.with)
	}
	path := filepath.Join(goldenDir, args[0])
	if *update {
		ts.Check(os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	ts.Check(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		ts.Fatalf("%s (-want +got):\n%s", path, diff)
	}
}

// varying is what no two runs have in common.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b[A-Z2-7]{16}\b`), "TRACE"},
	{regexp.MustCompile(`\bs-[a-z2-7]{12}\b`), "SESSION"},
	{regexp.MustCompile(`\bt-[0-9a-f]{10}\b`), "TASK"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b\d+\.\ds\b`), "TIME"},
}

// prefix N sets PREFIX to the first N letters of the trace id in standard output,
// in small letters.
func cmdPrefix(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	m := regexp.MustCompile(`"trace_id": "(\w+)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no trace id in standard output")
	}
	ts.Setenv("PREFIX", strings.ToLower(m[1][:n]))
}

// server makes the endpoint the model of what follows.
func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv("OPENAI_BASE_URL", ts.Getenv("SERVER"))
	ts.Setenv("OPENAI_API_KEY", endpointKey)
}

// signal INT|TERM CODE READY PROGRAM ARGS… starts a program, waits until the
// file READY holds something, sends the signal and wants that exit code. What the
// program prints goes to the files out and err.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal INT|TERM CODE READY PROGRAM ARGS…")
	}
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}[args[0]]
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(ts.Exec("env", "-0"))
	env := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00")
	program, err := exec.LookPath(args[3])
	ts.Check(err)
	cmd := exec.Command(program, args[4:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), env
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if !await(ts.MkAbs(args[2])) {
		cmd.Process.Kill()
		<-ended
		ts.Fatalf("%s never came; it said:\n%s", args[2], ts.ReadFile("err"))
	}
	ts.Check(cmd.Process.Signal(sig))
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		<-ended
		ts.Fatalf("it went on after %v", sig)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d; it said:\n%s", got, want, ts.ReadFile("err"))
	}
}

func await(file string) bool {
	for range 400 {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// gone FILE wants the process whose id the file holds to have ended.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	for range 100 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return // dead, and nobody has fetched its end
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("process %d still runs", pid)
}
