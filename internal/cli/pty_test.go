//go:build linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fullscreen "github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// A terminal runs the program as a user would: at a terminal, with the endpoint
// as its model.
type terminal struct {
	t         *testing.T
	home      string
	workspace string
	env       []string

	pty, tty *os.File
	cmd      *exec.Cmd

	mu   sync.Mutex
	vt   *vt
	full *fullscreen.Emulator // in its place, where the program draws on the whole screen
}

func newTerminal(t *testing.T, columns, rows int) *terminal {
	t.Helper()
	server := newEndpoint()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	root := t.TempDir()
	m := &terminal{t: t, home: filepath.Join(root, "home"), workspace: filepath.Join(root, "ws"), vt: newVT(columns, rows)}
	m.write("home/.synapse/settings.json", `{"probe_local": false}`)
	m.write("ws/a.txt", "contents\n")
	m.env = []string{
		"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "TZ=UTC", "GORACE=atexit_sleep_ms=0",
		"OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_API_KEY=" + endpointKey,
	}
	var err error
	if m.pty, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { m.pty.Close() })
	fd := int(m.pty.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	if m.tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { m.tty.Close() })
	m.resize(columns, rows)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := m.pty.Read(buf)
			if err != nil {
				return
			}
			m.mu.Lock()
			if m.full != nil {
				m.full.Write(buf[:n])
			} else {
				m.vt.write(string(buf[:n]))
			}
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *terminal) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(filepath.Dir(m.home), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// resize makes the terminal larger, or smaller where nothing is shown yet: the vt
// does not break lines anew.
func (m *terminal) resize(columns, rows int) {
	m.t.Helper()
	m.mu.Lock()
	m.vt.columns, m.vt.rows = columns, rows
	if m.full != nil {
		m.full.Resize(columns, rows)
	}
	m.mu.Unlock()
	if err := unix.IoctlSetWinsize(int(m.pty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
		m.t.Fatal(err)
	}
}

// start runs the program.
func (m *terminal) start(args ...string) {
	m.t.Helper()
	m.cmd = exec.Command("synapse", args...)
	m.cmd.Dir, m.cmd.Env = m.workspace, m.env
	m.cmd.Stdin, m.cmd.Stdout, m.cmd.Stderr = m.tty, m.tty, m.tty
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *terminal) typed(text string) {
	m.t.Helper()
	if _, err := m.pty.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

func (m *terminal) screen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full != nil {
		return m.full.String()
	}
	return m.vt.screen()
}

func (m *terminal) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vt.text()
}

// sees waits until the screen matches.
func (m *terminal) sees(pattern string) {
	m.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for range 400 {
		if re.MatchString(m.screen()) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	m.cmd.Process.Kill()
	m.t.Fatalf("never saw %q:\n%s", pattern, m.screen())
}

// ends waits for the program's end, its exit code and that the terminal is as it
// was.
func (m *terminal) ends(code int) {
	m.t.Helper()
	ended := make(chan struct{})
	go func() {
		m.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		m.cmd.Process.Kill()
		<-ended
		m.t.Fatalf("it never ended:\n%s", m.screen())
	}
	if got := m.cmd.ProcessState.ExitCode(); got != code {
		m.t.Errorf("exit code %d, want %d:\n%s", got, code, m.text())
	}
	state, err := unix.IoctlGetTermios(int(m.tty.Fd()), unix.TCGETS)
	if err != nil || state.Lflag&unix.ECHO == 0 {
		m.t.Errorf("the terminal does not echo any more (%v)", err)
	}
	time.Sleep(50 * time.Millisecond) // for what is still on its way
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.vt.unknown) > 0 {
		m.t.Errorf("control bytes %q", m.vt.unknown)
	}
}

func TestTerminalTree(t *testing.T) {
	m := newTerminal(t, 70, 20)
	m.start("run", "[[task explore: ⟦slow 900ms⟧⟦say one⟧]][[task tester: ⟦slow 900ms⟧⟦say two⟧]]")
	m.sees(`main · waiting for 2 sub-agents · 1 turn · 110 tokens`)
	m.typed("typed meanwhile\rand more\r")
	m.sees(`explore · ask explore · thinking · 1 turn · 0 tokens`)
	m.ends(0)
	got := m.text()
	want := `^✓ main · 2 turns · 220 tokens · \d\.\ds\n├─ ✓ \w+ · ask \w+ · 1 turn · 110 tokens · \d\.\ds\n└─ ✓ \w+ · ask \w+ · 1 turn · 110 tokens · \d\.\ds\nresults:\n`
	if !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("it leaves\n%s\nwant %s", got, want)
	}
	if strings.Contains(got, "typed") || strings.Contains(got, "thinking") || strings.Count(got, "─ ✓ explore ·") != 1 {
		t.Errorf("something is left on the screen:\n%s", got)
	}
}

// TestTerminalManyRuns wants a tree that is higher than the screen to stay within
// it while it is live, and each run once in what is left.
func TestTerminalManyRuns(t *testing.T) {
	m := newTerminal(t, 60, 8)
	m.start("run", strings.Repeat("[[task explore: ⟦slow 1200ms⟧⟦say x⟧]]", 30))
	m.sees(`… and \d+ that go on, 0 that have ended`)
	if rows := strings.Count(m.screen(), "\n"); rows > 8 {
		t.Errorf("%d rows on a screen of 8:\n%s", rows, m.screen())
	}
	m.ends(0)
	got := m.text()
	if n := strings.Count(got, "─ ✓ explore · ask explore"); n != 30 {
		t.Errorf("%d runs are left of 30:\n%s", n, got)
	}
	if strings.Contains(got, "that go on") || strings.Count(got, "main ·") != 1 {
		t.Errorf("something is left of the live tree:\n%s", got)
	}
}

func TestTerminalResize(t *testing.T) {
	m := newTerminal(t, 50, 10)
	m.start("run", "[[task explore: ⟦slow 1500ms⟧⟦say x⟧]]")
	m.sees(`└─ . explore · ask .*… · 1 turn · 0 tokens · `) // what it does gives way to the figures
	m.resize(90, 24)
	m.sees(`└─ . explore · ask explore · thinking · 1 turn`)
	m.ends(0)
	if got := m.text(); strings.Count(got, "─ ✓ explore ·") != 1 {
		t.Errorf("something is left from before:\n%s", got)
	}
}

// TestTerminalWide has names and descriptions that take two columns a letter.
func TestTerminalWide(t *testing.T) {
	m := newTerminal(t, 40, 10)
	m.write("ws/.synapse/agents/wide.md", "---\nname: 研究者研究者研究者研究者研究者研究者研究者\ndescription: 조사하고 보고한다\n---\nb\n")
	m.start("run", "[[task 研究者研究者研究者研究者研究者研究者研究者: ⟦slow 800ms⟧⟦say x⟧]]")
	m.sees(`└─ . 研究者研究者`)
	m.ends(0)
	if got := m.text(); strings.Count(got, "研究者研究者研究者研") != 2 { // its row, and the result
		t.Errorf("rows broke:\n%s", got)
	}
	m = newTerminal(t, 40, 10)
	m.write("ws/.synapse/agents/wide.md", "---\nname: 研究者\ndescription: 조사하고 보고한다 조사하고 보고한다 조사하고 보고한다\n---\nb\n")
	m.start("agents", "list")
	m.ends(0)
	for line := range strings.Lines(m.text()) {
		if strings.HasPrefix(line, "研究者") && !strings.Contains(line, "project") {
			t.Errorf("a row broke: %q", line)
		}
	}
}

func TestTerminalConversation(t *testing.T) {
	m := newTerminal(t, 80, 24)
	m.start("chat")
	m.sees(`^>$`)
	m.typed("[[say hello]]\r")
	m.sees(`^hello\n>$`)

	// Ctrl+C stops the request, and the conversation goes on.
	m.typed("[[hang]]\r")
	m.sees(`main · thinking`)
	m.typed("\x03")
	m.sees(`■ main · cancelled.*\nsynapse: cancelled\n>$`)
	m.typed("[[say still \\\r")
	m.sees(`^\.$`)
	m.typed("here]]\r")
	m.sees(`^still\nhere\n>$`)

	// At the prompt it ends the program.
	m.typed("\x03")
	m.ends(130)
}

// TestTerminalTerminated wants SIGTERM to end a conversation, whatever it is at.
func TestTerminalTerminated(t *testing.T) {
	for _, tt := range []struct{ name, prompt, at string }{
		{"at the prompt", "", `^>$`},
		{"in a request", "[[hang]]\r", `main · thinking`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTerminal(t, 80, 24)
			m.start("chat")
			m.sees(`^>$`)
			m.typed(tt.prompt)
			m.sees(tt.at)
			if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			m.ends(143)
		})
	}
}

// TestTerminalEnd wants Ctrl+D at the prompt to end a conversation in peace.
func TestTerminalEnd(t *testing.T) {
	m := newTerminal(t, 80, 24)
	m.start("chat")
	m.sees(`^>$`)
	m.typed("[[status 400]]\r")
	m.sees(`^synapse: failed: .*\n(.*\n)?>$`)
	m.typed("\x04")
	m.ends(0)
}

// TestTerminalInterruptTwice wants the second Ctrl+C not to wait, and the
// terminal to be as it was.
func TestTerminalInterruptTwice(t *testing.T) {
	m := newTerminal(t, 80, 24)
	m.start("run", `[[call execute {"command": "trap '' TERM INT; echo $$ >pid; sleep 60 & wait; sleep 60", "intent": "to wait"}]]`)
	m.sees(`execute: to wait`)
	if !await(filepath.Join(m.workspace, "pid")) {
		t.Fatal("the command never ran")
	}
	m.typed("\x03")
	time.Sleep(100 * time.Millisecond)
	m.typed("\x03")
	begun := time.Now()
	m.ends(130)
	if d := time.Since(begun); d > 3*time.Second {
		t.Errorf("the second Ctrl+C waited for %v", d)
	}
}

func TestTerminalQuestion(t *testing.T) {
	m := newTerminal(t, 80, 24)
	m.write("home/.synapse/settings.json", `{"probe_local": false, "permissions": {"execute": "ask"}}`)
	call := `[[slow 600ms]][[call execute {"command": "touch made", "intent": "to make a file"}]]`
	made := filepath.Join(m.workspace, "made")

	// What is typed before the question is not its answer.
	m.start("run", call)
	m.sees(`main · thinking`)
	m.typed("y\r")
	m.sees(`main wants to run execute\n  why:  to make a file\n  with: .*touch made.*\n  rule: (?s:.*)\nAllow it\? \[y\]es, \[a\]lways in this session, \[n\]o, or say why not:$`)
	time.Sleep(200 * time.Millisecond)
	if _, err := os.Stat(made); err == nil {
		t.Error("a line typed before the question allowed the call")
	}
	m.typed("not today\r")
	m.ends(0)
	if got := m.text(); !strings.Contains(got, "denied execute: the user did not allow it: not today") {
		t.Errorf("the denial is not shown:\n%s", got)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a call ran that was refused")
	}

	m.start("run", call)
	m.sees(`say why not:$`)
	m.typed("y\r")
	m.ends(0)
	if _, err := os.Stat(made); err != nil {
		t.Error("a call did not run that was allowed")
	}

	// Ctrl+C at a question ends the run.
	m.start("run", call)
	m.sees(`say why not:$`)
	m.typed("\x03")
	m.ends(130)
}

// TestTerminalPlain wants plain lines where no live tree can be drawn.
func TestTerminalPlain(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		env  string
	}{
		{"dumb", nil, "TERM=dumb"},
		{"verbose", []string{"-v"}, ""},
		{"stream", []string{"--output-format", "stream-json"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTerminal(t, 200, 50)
			m.env = append(m.env, tt.env)
			m.start(append(tt.args, "run", "[[task explore: ⟦say x⟧]]")...)
			m.ends(0)
			if got := m.text(); !strings.Contains(got, "▸ explore started: ask explore\n") || strings.Contains(got, "─ ✓") {
				t.Errorf("it shows\n%s", got)
			}
		})
	}
}

// TestStdinLeftOpen wants a prompt that was given not to wait for ever for a pipe
// into which nothing comes, and a signal to end the wait.
func TestStdinLeftOpen(t *testing.T) {
	m := newTerminal(t, 80, 24)
	for _, tt := range []struct {
		name   string
		args   []string
		signal bool
		code   int
		says   string
	}{
		{"with a prompt", []string{"run", "[[say fine]]"}, false, 0, "going on without it"},
		{"without one", []string{"run"}, true, 130, "interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			defer write.Close()
			cmd := exec.Command("synapse", tt.args...)
			var out, errs strings.Builder
			cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = m.workspace, m.env, read, &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.signal {
				time.Sleep(700 * time.Millisecond)
				cmd.Process.Signal(os.Interrupt)
			}
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tt.code || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("exit code %d, want %d; %q on standard error", got, tt.code, errs.String())
			}
			if tt.code == 0 && out.String() != "fine\n" {
				t.Errorf("the answer is %q", out.String())
			}
		})
	}
}
