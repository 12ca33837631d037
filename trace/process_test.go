package trace_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

// These tests need processes that write. The test binary is one: with this
// variable set it does what the variable names instead of running tests.
const roleVariable = "TRACE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Args[1], os.Args[2]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play is the other process. It prints a line for each append that returned.
func play(role, path, name string) error {
	ctx := context.Background()
	if role == "nobody" {
		return playNobody(path)
	}
	j, err := trace.OpenSQLite(ctx, path, trace.SQLiteOptions{})
	if err != nil {
		return err
	}
	switch role {
	case "writer": // ten conversations, one event at a time
		for i := range 10 {
			for _, e := range tracetest.Conversation(fmt.Sprint(name, i)) {
				if err := j.Append(ctx, e); err != nil {
					return err
				}
			}
		}
	case "endless": // until somebody kills it
		run := tracetest.Run{Trace: name, ID: "r", Agent: "main"}
		for seq := int64(1); ; seq += 3 {
			batch := []*synapse.Event{
				run.Event(seq, &synapse.Warning{Message: strings.Repeat("w", 2000)}),
				run.Event(seq+1, &synapse.ToolStarted{Effect: synapse.EffectUnsafe}),
				run.Event(seq+2, &synapse.ToolFinished{Result: synapse.ToolResult{Text: strings.Repeat("r", int(seq%50)*100)}}),
			}
			if seq == 1 {
				batch[0] = run.Start(1, "go")
			}
			if err := j.Append(ctx, batch...); err != nil {
				return err
			}
			fmt.Println(seq + 2)
		}
	}
	return j.Close()
}

// start runs the test binary in a role.
func start(t *testing.T, role, path, name string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], path, name)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

func TestSQLiteProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "journal.db") // none of them finds it there
	names := []string{"a", "b", "c", "d"}
	var wait []func() error
	for _, name := range names {
		cmd, out := start(t, "writer", path, name)
		wait = append(wait, func() error {
			text, err := io.ReadAll(out)
			if err := errors.Join(err, cmd.Wait()); err != nil {
				return fmt.Errorf("writer %s: %w: %s", name, err, text)
			}
			return nil
		})
	}
	for _, w := range wait {
		if err := w(); err != nil {
			t.Error(err)
		}
	}
	j := openSQLite(t, path, trace.SQLiteOptions{})
	for _, name := range names {
		for i := range 10 {
			id := fmt.Sprint(name, i)
			if diff := cmp.Diff(tracetest.Conversation(id), readAll(t, j, trace.Query{Trace: id}), equal); diff != "" {
				t.Errorf("trace %s (-want +got):\n%s", id, diff)
			}
		}
	}
	if err := j.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if problems := trace.Verify(j.Events(t.Context(), trace.Query{})); len(problems) > 0 {
		t.Errorf("%d problems, the first: %s", len(problems), problems[0])
	}
}

// TestSQLiteKill kills a writer in mid-run, again and again, each time on the
// same file.
func TestSQLiteKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for round := range 5 {
		name := fmt.Sprint("t", round)
		cmd, out := start(t, "endless", path, name)
		lines := bufio.NewScanner(out)
		var acknowledged int64
		for lines.Scan() {
			seq, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the writer says %q", lines.Text())
			}
			acknowledged = seq
			if seq > 30 && acknowledged%int64(7+round) == 0 {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it died
			acknowledged, _ = strconv.ParseInt(lines.Text(), 10, 64)
		}
		_ = cmd.Wait()

		j, err := trace.OpenSQLite(t.Context(), path, trace.SQLiteOptions{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		events := readAll(t, j, trace.Query{Trace: name})
		if n := int64(len(events)); n < acknowledged || n%3 != 0 {
			t.Errorf("round %d: %d events are there, %d were acknowledged, in threes", round, n, acknowledged)
		}
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Fatalf("round %d: event %d at place %d", round, e.Seq, i)
			}
		}
		if err := j.Check(t.Context()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		// It is known what was cut off, and the trace goes on.
		tree, err := trace.Build(trace.Of(events...))
		if err != nil || len(tree.Open()) != 1 {
			t.Errorf("round %d: the run is not open (%v)", round, err)
		}
		var open []string
		for s, err := range j.Traces(t.Context(), trace.TraceQuery{Open: true}) {
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, s.Trace)
		}
		if len(open) != 1 || open[0] != name {
			t.Errorf("round %d: open traces %v", round, open)
		}
		run := tracetest.Run{Trace: name, ID: "r", Agent: "main"}
		mustAppend(t, j, run.End(int64(len(events)+1), synapse.StatusCancelled))
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSQLiteReadsBesideWriter follows a trace that another process writes.
func TestSQLiteReadsBesideWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	cmd, out := start(t, "endless", path, "t")
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the writer says nothing")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the scanner is not used any more
	j := openSQLite(t, path, trace.SQLiteOptions{ReadOnly: true})
	var last int64
	for deadline := time.Now().Add(20 * time.Second); last < 100; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d events are seen", last)
		}
		for e, err := range j.Events(t.Context(), trace.Query{Trace: "t", AfterSeq: last}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq != last+1 {
				t.Fatalf("event %d follows %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}
