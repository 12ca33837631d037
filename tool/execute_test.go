package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/tool"
)

func TestExecute(t *testing.T) {
	b := open(t, tool.Options{
		Environ: append(os.Environ(), "KEPT=yes", "OPENAI_API_KEY=sk-1", "MY_API_KEY=sk-2"),
		HideEnv: []string{"OPENAI_API_KEY", "MY_*"},
	}, map[string]string{"sub/f": "x\n"})
	for _, test := range []struct {
		name, command, want string
		fails               bool
	}{
		{"output", "echo hi; echo there >&2", "hi\nthere", false},
		{"directory", "cat sub/f && [ \"$PWD\" = \"$(pwd)\" ] && pwd", "x\n" + b.dir, false},
		{"nothing", "true", "[no output, exit code 0]", false},
		{"exit code", "echo bad; exit 3", "bad\n[exit code 3]", true},
		{"no such command", "nosuchcommand 2>/dev/null", "[exit code 127]", true},
		{"signal", "kill -SEGV $$", "[killed by signal segmentation fault]", true},
		{"stdin is empty", "cat; echo done", "done", false},
		{"no terminal", "(: </dev/tty) 2>/dev/null && echo tty || echo none", "none", false},
		{"environment", "echo $KEPT-$OPENAI_API_KEY-$MY_API_KEY-$TERM-$PAGER", "yes---dumb-cat", false},
		{"bash", "[[ -n $BASH_VERSION ]] && echo bash", "bash", false},
		{"colours", `printf '\033[1;31mred\033[0m \033]0;title\007plain\033(B \033]8;;http://x\033\\link\033]8;;\033\\\n'`, "red plain link", false},
		{"controls", `printf 'a\001b\010c\177d\000e\302\233fg\n'`, "abcde\u0067", false},
		{"progress", `printf '10%%\r50%%\r100%%\ndone\r\n'`, "100%\ndone", false},
		{"broken UTF-8", `printf 'a\377b\303'`, "a\uFFFDb\uFFFD", false},
		{"long argument", "echo " + strings.Repeat("x", 100_000) + " | wc -c", "100001", false},
	} {
		r := b.run("execute", args{"command": test.command})
		if r.IsError != test.fails || r.Text != test.want {
			t.Errorf("%s: error %v\n got %q\nwant %q", test.name, r.IsError, r.Text, test.want)
		}
	}
	b.fails("execute", args{"command": "  "}, "the command is empty")
	b.fails("execute", args{"command": "a\x00b"}, "NUL byte")
}

func TestExecuteDetails(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	type details struct {
		ExitCode int    `json:"exit_code"`
		Signal   string `json:"signal"`
		TimedOut bool   `json:"timed_out"`
		Bytes    int64  `json:"bytes"`
		LeftOut  int64  `json:"left_out"`
	}
	for command, want := range map[string]details{
		"echo hi":    {Bytes: 3},
		"exit 7":     {ExitCode: 7},
		"kill -9 $$": {ExitCode: -1, Signal: "killed"},
	} {
		var got details
		if err := json.Unmarshal(b.run("execute", args{"command": command}).Details, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

func TestExecuteKeepsHeadAndTail(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	r := b.run("execute", args{"command": "echo first; yes 'some words on a line' | head -n 200000; echo last"})
	if len(r.Text) > 31<<10 || !strings.HasPrefix(r.Text, "first\nsome words") || !strings.HasSuffix(r.Text, "on a line\nlast") {
		t.Errorf("%d bytes: %q … %q", len(r.Text), r.Text[:40], r.Text[len(r.Text)-40:])
	}
	var d struct {
		Bytes   int `json:"bytes"`
		LeftOut int `json:"left_out"`
	}
	if err := json.Unmarshal(r.Details, &d); err != nil {
		t.Fatal(err)
	}
	total := len("first\nlast\n") + 200000*len("some words on a line\n")
	note := fmt.Sprintf("\n[%.1f KB left out here]\n", float64(d.LeftOut)/1e3)
	shown := len(r.Text) + len("\n") - len(note) + len("\n")
	if d.Bytes != total || d.LeftOut != total-shown || !strings.Contains(r.Text, note) {
		t.Errorf("%d bytes, %d left out, %d shown of %d; note %q", d.Bytes, d.LeftOut, shown, total, note)
	}
	// A progress bar doesn't crowd out what was said before it.
	r = b.run("execute", args{"command": `echo first; for i in $(seq 1 20000); do printf '\rprogress %s' $i; done; echo; echo last`})
	if r.Text != "first\nprogress 20000\nlast" {
		t.Errorf("progress: %.200q", r.Text)
	}
}

func TestExecuteStreams(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	in := invocation(t, args{"command": `echo one; while [ ! -e go ]; do sleep 0.01; done; printf '\033[1mtwo\n'`})
	var mu sync.Mutex
	var got strings.Builder
	in.Output = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		// The command waits for this file: output that came only at its end
		// would be too late.
		if got.Len() == 0 {
			put(t, filepath.Join(b.dir, "go"), "")
		}
		got.WriteString(s)
	}
	if r := b.call("execute", in); r.Text != "one\ntwo" || got.String() != "one\ntwo\n" {
		t.Errorf("result %q, streamed %q", r.Text, got.String())
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// pids reads the process numbers that a command has written to files.
func (b *bench) pids(names ...string) []int {
	b.t.Helper()
	var pids []int
	for _, name := range names {
		var text string
		for deadline := time.Now().Add(10 * time.Second); text == ""; time.Sleep(5 * time.Millisecond) {
			data, _ := os.ReadFile(filepath.Join(b.dir, name))
			if text = strings.TrimSpace(string(data)); text == "" && time.Now().After(deadline) {
				b.t.Fatalf("%s was not written", name)
			}
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			b.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func (b *bench) gone(pids []int) {
	b.t.Helper()
	for _, pid := range pids {
		for deadline := time.Now().Add(30 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				b.t.Errorf("process %d is still alive", pid)
				syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// spawn starts a child, a grandchild, one in another process group and one in
// another session, each of which notes its number.
const spawn = `
echo $$ > shell
sleep 300 & echo $! > child
(sleep 300 & echo $! > grandchild; wait) &
set -m; sleep 300 & echo $! > othergroup; set +m
setsid sh -c 'echo $$ > session; sleep 300' &
while [ ! -s session ]; do sleep 0.01; done
`

var spawned = []string{"shell", "child", "grandchild", "othergroup", "session"}

func TestCancelKillsEveryProcess(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan *synapse.ToolResult, 1)
	go func() {
		r, err := b.tool("execute").Run(ctx, invocation(t, args{"command": "echo started;" + spawn + "touch ready; wait"}))
		if err != nil {
			t.Errorf("execute: %v", err)
		}
		done <- r
	}()
	pids := b.pids(spawned...)
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("process %d is not alive before the cancel", pid)
		}
	}
	cancel()
	select {
	case r := <-done:
		if r == nil || !r.IsError || r.Text != "started\n[cancelled and was killed]" {
			t.Errorf("result: %+v", r)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the tool did not return after a cancel")
	}
	b.gone(pids)
}

func TestBackgroundProcessesDieWithTheCommand(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	start := time.Now()
	r := b.run("execute", args{"command": spawn + "echo done"})
	if r.IsError || r.Text != "done\n[processes it left in the background were killed]" {
		t.Errorf("result: %v %q", r.IsError, r.Text)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s: it waited for the background", took)
	}
	b.gone(b.pids(spawned...))
}

func TestTimeoutKillsWhatIgnoresTheSignal(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	start := time.Now()
	r := b.run("execute", args{"command": `trap '' TERM; echo $$ > shell; echo before; while :; do sleep 0.05; done`, "timeout": 1})
	if !r.IsError || r.Text != "before\n[timed out after 1s and was killed]" {
		t.Errorf("result: %v %q", r.IsError, r.Text)
	}
	if took := time.Since(start); took < 3*time.Second || took > time.Minute {
		t.Errorf("took %s, want the timeout and the grace period", took)
	}
	b.gone(b.pids("shell"))
}

// What minds the signal has time to tidy up.
func TestTimeoutLetsTheCommandTidyUp(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	r := b.run("execute", args{"command": `trap 'echo tidied; exit 0' TERM; while :; do sleep 0.05; done`, "timeout": 1})
	if !r.IsError || !strings.Contains(r.Text, "tidied\n[timed out after 1s and was killed]") {
		t.Errorf("result: %v %q", r.IsError, r.Text)
	}
}

func TestExecuteInParallel(t *testing.T) {
	b := open(t, tool.Options{}, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := fmt.Sprintf("out %d", i)
			r, err := b.tool("execute").Run(context.Background(), invocation(t, args{"command": "sleep 0.1; echo " + want}))
			if err != nil || r.Text != want {
				t.Errorf("%d: %v %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

// A workspace can't bring its own shell.
func TestShellIsNotTakenFromTheWorkspace(t *testing.T) {
	b := open(t, tool.Options{Environ: []string{"PATH=.:bin:/usr/bin:/bin"}}, nil)
	for _, name := range []string{"bash", "bin/bash"} {
		put(t, filepath.Join(b.dir, name), "#!/bin/sh\necho hijacked\n")
		if err := os.Chmod(filepath.Join(b.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.ok("execute", args{"command": "echo real"}); got != "real" {
		t.Errorf("got %q", got)
	}
}
