//go:build linux

package cli_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	fullscreen "github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// newScreen is a terminal that the program may draw on as it likes, and that
// answers what it asks.
func newScreen(t *testing.T, columns, rows int) *terminal {
	t.Helper()
	m := newTerminal(t, columns, rows)
	m.mu.Lock()
	m.full = fullscreen.NewEmulator(columns, rows)
	m.mu.Unlock()
	go func() {
		buf := make([]byte, 256)
		for {
			n, err := m.full.Read(buf)
			if err != nil {
				return
			}
			m.pty.Write(buf[:n])
		}
	}()
	// The emulator's own Close and Read race: the pipe between them is closed.
	t.Cleanup(func() { m.full.InputPipe().(io.Closer).Close() })
	return m
}

func (m *terminal) file(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.home, filepath.FromSlash(name)))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return string(data)
}

// TestScreen has a user go through a conversation with sub-agents, a question, the
// pages for models and agents, and out again.
func TestScreen(t *testing.T) {
	m := newScreen(t, 100, 30)
	m.write("home/.synapse/settings.json", `{"probe_local": false, "permissions": {"execute": "ask"}}`)
	m.start()
	m.sees(`Say what to do`)
	m.sees(`openai:mock-large`)

	m.typed("[[task explore: ⟦slow 900ms⟧⟦say one 界⟧]][[task tester: ⟦slow 900ms⟧⟦say two⟧]]\r")
	m.sees(`waiting for 2 sub-agents`)
	m.sees(`explore · ask explore · thinking`)
	m.typed("[[say the **second**]]\r") // waits
	m.sees(`⏎ \[\[say`)
	m.resize(70, 20)
	m.sees(`● results:`)
	m.sees(`● the second`)
	m.resize(100, 30)
	m.sees(`context \d+`)

	m.typed(`[[call execute {"command": "touch made", "intent": "to make a file"}]]` + "\r")
	m.sees(`main wants to run execute`)
	m.sees(`Yes, once`)
	time.Sleep(800 * time.Millisecond) // until keys are answers
	m.typed("r")
	m.sees(`Why not\?`)
	m.typed("not today\r")
	m.sees(`denied: the user did not allow it: not today`)
	if _, err := os.Stat(filepath.Join(m.workspace, "made")); err == nil {
		t.Error("a call ran that was refused")
	}
	m.typed(`[[call execute {"command": "touch made", "intent": "to make a file"}]]` + "\r")
	m.sees(`❯ y  Yes, once`)
	time.Sleep(800 * time.Millisecond)
	m.typed("p")
	m.sees(`✓ to make a file`)
	var grants map[string][]map[string]string
	if err := json.Unmarshal([]byte(m.file(".synapse/approvals.json")), &grants); err != nil || len(grants[m.workspace]) != 1 || grants[m.workspace][0]["subject"] != "touch made" {
		t.Errorf("kept %v (%v), want the one grant", grants, err)
	}

	// The model page saves to a file, and says so.
	m.typed("/subagent explore\r")
	m.sees(`❯ explore`)
	m.typed("\r")
	m.sees(`Model of explore`)
	m.typed("openai:mock-small\r")
	m.sees(`openai:mock-small \*`)
	m.typed("s")
	m.sees(`saved subagent_model_overrides.explore to user settings`)
	if s := m.file(".synapse/settings.json"); !strings.Contains(s, `"explore": "openai:mock-small"`) || !strings.Contains(s, `"execute": "ask"`) {
		t.Errorf("the settings are %s", s)
	}
	m.typed("q")
	m.sees(`❯ *$`)

	// The picker switches an agent off; the next message knows.
	m.typed("/subagents\r")
	m.sees(`\[✓\] explore`)
	m.typed("\x1b[B\r")
	m.sees(`\[ \] explore`)
	if s := m.file(".synapse/disabled.json"); !strings.Contains(s, "explore") {
		t.Errorf("disabled.json is %q", s)
	}
	m.typed("q")
	m.typed("[[task explore: ⟦say x⟧]]\r")
	m.sees(`explore.*(is off|switched off|disabled)`)

	// Esc interrupts, Ctrl+C twice leaves, and says how to look at it again.
	m.typed("[[hang]]\r")
	m.sees(`One moment`)
	m.typed("\x1b")
	m.sees(`■ cancelled`)
	m.typed("\x03")
	m.sees(`Ctrl\+C once more leaves`)
	m.typed("\x03")
	m.ends(0)
	m.sees(`synapse --resume s-[a-z0-9]+`)
	if s := m.file(".local/state/synapse/history.jsonl"); strings.Count(s, "\n") != 6 {
		t.Errorf("the history is %q", s)
	}
}

// TestScreenOffline runs against the model that is in the program.
func TestScreenOffline(t *testing.T) {
	m := newScreen(t, 90, 26)
	m.env = append(m.env, "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "NO_COLOR=1")
	m.write("ws/go.mod", "module x\n")
	m.write("ws/a.go", "package x\n\nfunc Check() {}\n")
	m.start("-m", "offline:rules")
	m.sees(`offline rules, not a language model`)
	m.typed("In parallel: count the Go files, and find where Check is defined\r")
	m.sees(`explore reports:`)
	m.sees(`2 sub-agents · ✓ 2 done`)
	m.typed("/trace\r")
	m.sees(`Past requests: 1`)
	m.typed("\r")
	m.sees(`✓ main: In parallel`)
	m.typed("\x1b")
	time.Sleep(200 * time.Millisecond)
	m.typed("\x1b")
	time.Sleep(200 * time.Millisecond)
	m.typed("\x04")
	m.ends(0)
}

// TestScreenTerminated wants a signal to give the terminal back.
func TestScreenTerminated(t *testing.T) {
	m := newScreen(t, 80, 24)
	m.start()
	m.sees(`Say what to do`)
	m.typed("[[hang]]\r")
	m.sees(`One moment`)
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.ends(143)
}

// TestScreenGoesOn goes on with a conversation after the program has ended, and
// with a request that it was killed in.
func TestScreenGoesOn(t *testing.T) {
	m := newScreen(t, 90, 30)
	state, err := unix.IoctlGetTermios(int(m.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	m.sees(`Say what to do`)
	m.typed("[[say the first]]\r")
	m.sees(`● the first`)
	m.typed("[[task explore: ⟦hang⟧]][[task tester: ⟦say two⟧]]\r")
	m.sees(`explore · ask explore · answering`)
	m.sees(`✓ tester`)
	m.cmd.Process.Kill()
	m.cmd.Wait()
	if err := unix.IoctlSetTermios(int(m.tty.Fd()), unix.TCSETS, state); err != nil { // as a shell does
		t.Fatal(err)
	}

	m.start("--continue")
	m.sees(`❯ \[\[say the first\]\]`)
	m.sees(`which was cut off`)
	m.sees(`waiting for 1 sub-agent`)
	// The one that hangs is stopped from its own view.
	m.typed("\x14")
	m.typed("\r")
	m.sees(`main › explore`)
	m.sees(`s stop`)
	m.typed("s")
	m.sees(`■ cancelled`)
	m.typed("q")
	m.sees(`● results:`)
	m.typed("\x1b")
	time.Sleep(200 * time.Millisecond)
	m.typed("[[say the last]]\r")
	m.sees(`● the last`)
	m.typed("/sessions\r")
	m.sees(`Conversations in this workspace: 1`)
	m.sees(`\[\[say the first\]\].*3 requests`)
	m.typed("q")
	m.typed("\x04")
	m.ends(0)
}

// TestScreenTrust wants a workspace's settings to be asked about once.
func TestScreenTrust(t *testing.T) {
	m := newScreen(t, 90, 24)
	m.write("ws/.synapse/settings.json", `{"providers": {"theirs": {"base_url": "https://example.org/v1", "models": ["m"]}}}`)
	m.start()
	m.sees(`Is this workspace yours\?`)
	m.sees(`providers`)
	m.typed("n")
	m.sees(`not trusted`)
	m.typed("\x04")
	m.ends(0)
	m.start()
	m.sees(`Say what to do`)
	time.Sleep(300 * time.Millisecond)
	if s := m.screen(); strings.Contains(s, "yours?") {
		t.Errorf("it is asked again:\n%s", s)
	}
	m.typed("\x04")
	m.ends(0)
	if s := m.file(".synapse/trust.json"); strings.Contains(s, m.workspace) {
		t.Errorf("it is trusted after a no: %s", s)
	}
}

// TestPlain wants a conversation without anything that moves where that is asked
// for, and where the terminal can't be drawn on.
func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		args []string
		env  string
	}{{[]string{"--plain"}, ""}, {nil, "TERM=dumb"}} {
		m := newTerminal(t, 80, 24)
		m.env = append(m.env, tt.env)
		m.start(tt.args...)
		m.sees(`^>$`)
		m.typed("[[task explore: ⟦say one⟧]]\r")
		m.sees(`^▸ explore started: ask explore$`)
		m.sees(`^✓ explore completed.*$`)
		m.typed("/quit\r")
		m.ends(0)
	}
}
