package trace_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
	"github.com/synapse-agents/synapse/trace/tracetest"
)

var equal = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)}

// rawDB opens the file beside the journal, as another program would.
func rawDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func rawExec(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := rawDB(t, path)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func readAll(t *testing.T, j trace.Journal, q trace.Query) []*synapse.Event {
	t.Helper()
	events, err := trace.Collect(j.Events(t.Context(), q))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func mustAppend(t *testing.T, j trace.Journal, events ...*synapse.Event) {
	t.Helper()
	if err := j.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// filled makes a journal file that holds one conversation, and closes it.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	mustAppend(t, j, tracetest.Conversation("t")...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSQLiteReopen(t *testing.T) {
	path := filled(t)
	j := openSQLite(t, path, trace.SQLiteOptions{})
	want := tracetest.Conversation("t")
	if diff := cmp.Diff(want, readAll(t, j, trace.Query{}), equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := j.Append(t.Context(), want[3]); !errors.Is(err, trace.ErrDuplicate) {
		t.Errorf("an event of the last time: got error %v", err)
	}
	run := tracetest.Run{Trace: "t", ID: "t-main", Agent: "main"}
	mustAppend(t, j, run.Event(100, &synapse.Warning{}))
	for s, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
		if err != nil || s.Runs != 2 || s.Status != synapse.StatusCompleted || s.Usage.InputTokens != 400 {
			t.Errorf("summary %+v, error %v", s, err)
		}
	}
	if err := j.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSQLiteReadOnly(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "sub", "journal.db")
	if _, err := trace.OpenSQLite(t.Context(), missing, trace.SQLiteOptions{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got error %v", err)
	}
	if _, err := os.Stat(filepath.Dir(missing)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("reading made a directory")
	}
	path := filled(t)
	j := openSQLite(t, path, trace.SQLiteOptions{ReadOnly: true})
	if got := readAll(t, j, trace.Query{Trace: "t"}); len(got) != len(tracetest.Conversation("t")) {
		t.Errorf("%d events", len(got))
	}
	if err := j.Append(t.Context(), tracetest.Conversation("u")...); err == nil || !strings.Contains(err.Error(), "reading only") {
		t.Errorf("append: got error %v", err)
	}
	// A writer in the meantime is seen.
	w := openSQLite(t, path, trace.SQLiteOptions{})
	mustAppend(t, w, tracetest.Conversation("u")...)
	if got := readAll(t, j, trace.Query{Trace: "u"}); len(got) != len(tracetest.Conversation("u")) {
		t.Errorf("%d events of the writer are seen", len(got))
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Append(t.Context(), tracetest.Conversation("v")...); !errors.Is(err, trace.ErrClosed) {
		t.Errorf("append after close: got error %v", err)
	}
}

func TestSQLitePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	mustAppend(t, j, tracetest.Conversation("t")...)
	for name, want := range map[string]fs.FileMode{
		filepath.Dir(dir): 0o700, dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has permissions %o, want %o", name, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "journal.db") || strings.Contains(e.Name(), "new") {
			t.Errorf("%s is left over", e.Name())
		}
	}
}

func TestSQLitePaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "a?mode=memory", "a#b", "a%41b", "日本.db", ":memory:", "file:x", "a&b=c;d", "plain"} {
		path := filepath.Join(dir, name)
		j, err := trace.OpenSQLite(t.Context(), path, trace.SQLiteOptions{})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		mustAppend(t, j, tracetest.Conversation(name)...)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not where the journal went: %v", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 9 {
		t.Errorf("%d files, want 9: %v", len(entries), err)
	}
	t.Chdir(dir)
	j := openSQLite(t, "relative.db", trace.SQLiteOptions{})
	t.Chdir("/")
	mustAppend(t, j, tracetest.Conversation("t")...) // the directory of the process may change
	if j.Path() != filepath.Join(dir, "relative.db") {
		t.Errorf("path is %s", j.Path())
	}
	if _, err := trace.OpenSQLite(t.Context(), "", trace.SQLiteOptions{}); err == nil {
		t.Error("no path is a path")
	}
}

func TestSQLiteStoresSpecOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	system := strings.Repeat("Be careful. ", 10_000) // 120 kB, a thousand times
	for i := range 1000 {
		run := tracetest.Run{Trace: "t", ID: fmt.Sprint("child", i), Parent: "main"}
		spec := &synapse.Spec{Agent: "explore", System: system} // equal, not the same
		mustAppend(t, j, run.Event(int64(i+1), &synapse.RunStarted{Spec: spec, Depth: 1}))
	}
	var specs int
	if err := rawDB(t, path).QueryRow("SELECT count(*) FROM blobs").Scan(&specs); err != nil || specs != 1 {
		t.Errorf("%d specs are stored (%v), want 1", specs, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if size := len(contents(t, path)); size > 1<<20 {
		t.Errorf("the file has %d bytes", size)
	}
	var shared *synapse.Spec
	for e, err := range openSQLite(t, path, trace.SQLiteOptions{}).Events(t.Context(), trace.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		spec := e.Body.(*synapse.RunStarted).Spec
		if spec.System != system {
			t.Fatal("the spec has changed")
		}
		if shared != nil && shared != spec {
			t.Fatal("a reader holds the spec more than once")
		}
		shared = spec
	}
}

// TestSQLiteDurability looks at how the writer's last transaction was
// committed: with a sync of the disk (2) or without (1).
func TestSQLiteDurability(t *testing.T) {
	j := openSQLite(t, filepath.Join(t.TempDir(), "journal.db"), trace.SQLiteOptions{})
	run := tracetest.Run{Trace: "t", ID: "r"}
	seq := int64(0)
	event := func(b synapse.Body) *synapse.Event {
		seq++
		return run.Event(seq, b)
	}
	for _, tt := range []struct {
		events []*synapse.Event
		want   int
	}{
		{[]*synapse.Event{event(&synapse.Warning{})}, 1},
		{[]*synapse.Event{event(&synapse.ToolStarted{Effect: synapse.EffectUnsafe})}, 2},
		{[]*synapse.Event{event(&synapse.ToolFinished{})}, 1},
		{[]*synapse.Event{event(&synapse.Warning{}), event(&synapse.Conclusion{}), event(&synapse.Warning{})}, 2},
		{[]*synapse.Event{event(&synapse.ToolStarted{Effect: synapse.EffectRead})}, 1},
	} {
		mustAppend(t, j, tt.events...)
		if got, err := trace.SyncLevel(j); err != nil || got != tt.want {
			t.Errorf("after %s: level %d (%v), want %d", tt.events[0].Kind, got, err, tt.want)
		}
	}
}

func TestDurable(t *testing.T) {
	run := tracetest.Run{Trace: "t", ID: "r"}
	got := map[synapse.EventKind]bool{}
	for _, e := range tracetest.Every("t") {
		got[e.Kind] = trace.Durable(e)
	}
	want := map[synapse.EventKind]bool{
		synapse.KindRunStarted: true, synapse.KindToolStarted: true, synapse.KindApprovalAnswered: true,
		synapse.KindChildStarted: true, synapse.KindConclusion: true, synapse.KindRunFinished: true,
		synapse.KindModelRequested: false, synapse.KindModelReplied: false, synapse.KindToolFinished: false,
		synapse.KindApprovalAsked: false, synapse.KindChildFinished: false, synapse.KindWarning: false, synapse.KindRetry: false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for effect, want := range map[synapse.Effect]bool{synapse.EffectRead: false, synapse.EffectKeyed: true, synapse.EffectUnsafe: true, "": true} {
		if got := trace.Durable(run.Event(1, &synapse.ToolStarted{Effect: effect})); got != want {
			t.Errorf("a call with effect %q: %t, want %t", effect, got, want)
		}
	}
	if trace.Durable(run.Event(1, &synapse.Text{})) {
		t.Error("a delta is durable")
	}
	if !trace.Durable(&synapse.Event{Kind: "of tomorrow"}) {
		t.Error("an unknown kind is not durable")
	}
}

// hold takes the file's write lock, as another process would, until the
// returned function is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	conn, err := rawDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
}

func TestSQLiteGroupCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	groups := make(chan int, 100)
	trace.Transactions(j, func(n int) { groups <- n })
	release := hold(t, path)
	defer release()

	const n = 20
	run := tracetest.Run{Trace: "t", ID: "r"}
	errs := make(chan error, n)
	send := func(i int) { errs <- j.Append(t.Context(), run.Event(int64(i+1), &synapse.Conclusion{})) }
	go send(0)
	if got := <-groups; got != 1 { // it waits for the lock now
		t.Fatalf("the first transaction has %d appends", got)
	}
	for i := 1; i < n; i++ {
		go send(i)
	}
	if got := readAll(t, j, trace.Query{}); len(got) != 0 { // a writer that waits keeps no reader waiting
		t.Errorf("%d events are there too early", len(got))
	}
	// One that gives up while it waits in the queue leaves nothing.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := j.Append(ctx, run.Event(1000, &synapse.Conclusion{})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want a deadline exceeded", err)
	}
	time.Sleep(50 * time.Millisecond) // all have queued up; a late one costs a transaction, not the test
	release()
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	close(groups)
	transactions := 1
	for range groups {
		transactions++
	}
	if transactions > n/2 {
		t.Errorf("%d appends took %d transactions", n, transactions)
	}
	if got := readAll(t, j, trace.Query{}); len(got) != n {
		t.Errorf("%d events, want %d", len(got), n)
	}
}

// TestSQLiteGroupWithDuplicate has one bad append among good ones of one group.
func TestSQLiteGroupWithDuplicate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	run := tracetest.Run{Trace: "t", ID: "r"}
	mustAppend(t, j, run.Start(5, "x"))
	release := hold(t, path)
	defer release()
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs { // seqs 1 to 10, of which 5 is taken
		wg.Go(func() {
			child := tracetest.Run{Trace: "t", ID: fmt.Sprint("child", i), Parent: "r"}
			errs[i] = j.Append(t.Context(), child.Start(int64(i+1), "y"), child.Event(int64(i+101), &synapse.Warning{}))
		})
	}
	time.Sleep(50 * time.Millisecond)
	release()
	wg.Wait()
	for i, err := range errs {
		if duplicate := i+1 == 5; errors.Is(err, trace.ErrDuplicate) != duplicate || err != nil && !duplicate {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if got := readAll(t, j, trace.Query{}); len(got) != 19 {
		t.Errorf("%d events, want 19", len(got))
	}
	for s, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
		if err != nil || s.Runs != 10 {
			t.Errorf("%d runs, error %v; want 10", s.Runs, err)
		}
	}
}

func TestSQLiteBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{BusyTimeout: 50 * time.Millisecond})
	release := hold(t, path)
	run := tracetest.Run{Trace: "t", ID: "r"}
	err := j.Append(t.Context(), run.Event(1, &synapse.Warning{}))
	if err == nil || !strings.Contains(err.Error(), "another process has kept it locked") {
		t.Errorf("got error %v", err)
	}
	release()
	mustAppend(t, j, run.Event(1, &synapse.Warning{}))
}

func TestSQLiteMaxBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{MaxBytes: 400 << 10})
	run := tracetest.Run{Trace: "t", ID: "r"}
	var stored int
	var err error
	for i := range 100 {
		text := strings.Repeat("x", 10<<10)
		if err = j.Append(t.Context(), run.Event(int64(2*i+1), &synapse.Warning{}), run.Event(int64(2*i+2), &synapse.Conclusion{Content: text})); err != nil {
			break
		}
		stored += 2
	}
	if err == nil || !strings.Contains(err.Error(), "the disk is full, or the journal has reached its size limit") {
		t.Fatalf("after %d events: got error %v", stored, err)
	}
	if got := readAll(t, j, trace.Query{}); len(got) != stored || stored < 40 {
		t.Errorf("%d events are there, %d were accepted", len(got), stored)
	}
	if err := j.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	j = openSQLite(t, path, trace.SQLiteOptions{}) // there is room again
	mustAppend(t, j, run.Event(1000, &synapse.Conclusion{Content: strings.Repeat("x", 1<<20)}))
}

func TestSQLiteClose(t *testing.T) {
	j := openSQLite(t, filepath.Join(t.TempDir(), "journal.db"), trace.SQLiteOptions{})
	run := tracetest.Run{Trace: "t", ID: "r"}
	var wg sync.WaitGroup
	accepted := make(chan int64, 200)
	for i := range 200 {
		wg.Go(func() {
			err := j.Append(t.Context(), run.Event(int64(i+1), &synapse.Warning{}))
			switch {
			case err == nil:
				accepted <- int64(i + 1)
			case !errors.Is(err, trace.ErrClosed):
				t.Errorf("append while closing: %v", err)
			}
		})
	}
	for range 3 {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := j.Append(t.Context(), run.Event(1000, &synapse.Warning{})); !errors.Is(err, trace.ErrClosed) {
		t.Errorf("append: got error %v", err)
	}
	for _, err := range j.Events(t.Context(), trace.Query{}) {
		if !errors.Is(err, trace.ErrClosed) {
			t.Errorf("read: got error %v", err)
		}
	}
	for _, err := range j.Traces(t.Context(), trace.TraceQuery{}) {
		if !errors.Is(err, trace.ErrClosed) {
			t.Errorf("list: got error %v", err)
		}
	}
	if err := j.Check(t.Context()); !errors.Is(err, trace.ErrClosed) {
		t.Errorf("check: got error %v", err)
	}
	close(accepted)
	again := openSQLite(t, j.Path(), trace.SQLiteOptions{})
	if got := readAll(t, again, trace.Query{}); len(got) != len(accepted) {
		t.Errorf("%d events are there, %d were accepted", len(got), len(accepted))
	}
	if _, err := os.Stat(j.Path() + "-wal"); err != nil {
		t.Errorf("the log of the open journal: %v", err)
	}
}

// TestSQLiteOpenedTwice has many journals on one new file in one process.
func TestSQLiteOpenedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			j, err := trace.OpenSQLite(t.Context(), path, trace.SQLiteOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range tracetest.Conversation(fmt.Sprint("t", i)) {
				if err := j.Append(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	j := openSQLite(t, path, trace.SQLiteOptions{})
	if got, want := len(readAll(t, j, trace.Query{})), 8*len(tracetest.Conversation("t")); got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	if err := j.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSQLiteTornLog cuts the write-ahead log anywhere, as a power failure may:
// what is left of the history is its beginning.
func TestSQLiteTornLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	j := openSQLite(t, path, trace.SQLiteOptions{})
	want := tracetest.Conversation("t")
	for _, e := range want {
		mustAppend(t, j, e)
	}
	file, log := contents(t, path), contents(t, path+"-wal")
	lengths := map[int]bool{}
	for i := range 40 {
		copied := filepath.Join(t.TempDir(), "copy.db")
		cut := len(log) * i / 39
		if err := errors.Join(os.WriteFile(copied, file, 0o600), os.WriteFile(copied+"-wal", log[:cut], 0o600)); err != nil {
			t.Fatal(err)
		}
		torn, err := trace.OpenSQLite(t.Context(), copied, trace.SQLiteOptions{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		got := readAll(t, torn, trace.Query{})
		lengths[len(got)] = true
		if diff := cmp.Diff(want[:len(got)], got, equal); diff != "" {
			t.Errorf("cut at %d (-want +got):\n%s", cut, diff)
		}
		if err := errors.Join(torn.Check(t.Context()), torn.Close()); err != nil {
			t.Error(err)
		}
	}
	if len(lengths) < len(want)/2 || !lengths[len(want)] {
		t.Errorf("the cuts left histories of %d lengths only", len(lengths))
	}
}
