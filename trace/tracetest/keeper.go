package tracetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/trace"
)

// request appends a request of a session.
func request(t *testing.T, j trace.Journal, session, name, after string, at int64) {
	t.Helper()
	run := Run{Trace: name, ID: name, Agent: "main"}
	start := run.Start(at, "ask "+name)
	body := start.Body.(*synapse.RunStarted)
	body.Session, body.After, body.Workspace = session, after, "/w"
	appendAll(t, j, start,
		run.Event(at+1, &synapse.ModelRequested{Turn: 1}), run.Event(at+2, reply(1, "done")), run.End(at+3, synapse.StatusCompleted))
}

// testSessions: requests of one conversation are a session, in order.
func testSessions(t *testing.T, j trace.Journal) {
	request(t, j, "s-1", "a", "", 10)
	request(t, j, "s-2", "b", "", 20)
	request(t, j, "s-1", "c", "a", 30)
	request(t, j, "", "lonely", "", 40)
	all, err := trace.Sessions(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].ID != "s-1" || all[1].ID != "s-2" {
		t.Fatalf("sessions %+v", all)
	}
	s := all[0]
	if diff := cmp.Diff([]string{"a", "c"}, s.Traces); diff != "" {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
	if s.Prompt != "ask a" || s.Last != "c" || s.Workspace != "/w" || s.Status != synapse.StatusCompleted || s.Usage.Requests != 2 ||
		!s.Started.Equal(Start.Add(10*time.Second)) || !s.Updated.Equal(Start.Add(33*time.Second)) {
		t.Errorf("session %+v", s)
	}
	for sum := range j.Traces(t.Context(), trace.TraceQuery{Trace: "c"}) {
		if sum.Session != "s-1" || sum.After != "a" || sum.Workspace != "/w" {
			t.Errorf("summary %+v", sum)
		}
	}
}

func keeper(t *testing.T, j trace.Journal) trace.Keeper {
	t.Helper()
	k, ok := j.(trace.Keeper)
	if !ok {
		t.Skip("this journal keeps no names")
	}
	return k
}

// testNames: a session has one name, and a name one session.
func testNames(t *testing.T, j trace.Journal) {
	k, ctx := keeper(t, j), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(k.Name(ctx, "s-1", "one"))
	must(k.Name(ctx, "s-2", "two"))
	must(k.Name(ctx, "s-1", "uno"))
	must(k.Name(ctx, "s-1", "uno"))
	if err := k.Name(ctx, "s-2", "uno"); !errors.Is(err, trace.ErrNameTaken) {
		t.Errorf("a name twice: %v", err)
	}
	must(k.Name(ctx, "s-3", "one")) // it is free again
	must(k.Name(ctx, "s-2", ""))
	names, err := k.Names(ctx)
	must(err)
	if diff := cmp.Diff(map[string]string{"s-1": "uno", "s-3": "one"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// testDelete: what is deleted is gone, with its mail, and nothing else is.
func testDelete(t *testing.T, j trace.Journal) {
	k, ctx := keeper(t, j), t.Context()
	request(t, j, "s-1", "a", "", 1)
	request(t, j, "s-1", "b", "a", 1)
	if m, ok := j.(trace.Mailbox); ok {
		if err := m.Post(ctx, trace.Mail{Trace: "a", Run: "a", Signal: synapse.Signal{ID: "1", Kind: synapse.SignalStop}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Delete(ctx, "a", "never there"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, j, trace.Query{Trace: "a"}); len(got) != 0 {
		t.Errorf("%d events are left", len(got))
	}
	if got := read(t, j, trace.Query{Run: "a"}); len(got) != 0 {
		t.Errorf("%d events of its run are left", len(got))
	}
	if got := read(t, j, trace.Query{}); len(got) != 4 {
		t.Errorf("%d events in all, want the other trace's 4", len(got))
	}
	if got := list(t, j, trace.TraceQuery{}); len(got) != 1 || got[0].Trace != "b" {
		t.Errorf("traces %+v", got)
	}
	if m, ok := j.(trace.Mailbox); ok {
		if got, err := m.Mail(ctx, "a"); err != nil || len(got) != 0 {
			t.Errorf("mail %v, %v", got, err)
		}
	}
	request(t, j, "s-1", "a", "", 1) // the place is free
}

// testMail: mail waits until it is taken, once for each id.
func testMail(t *testing.T, j trace.Journal) {
	m, ok := j.(trace.Mailbox)
	if !ok {
		t.Skip("this journal takes no mail")
	}
	ctx := t.Context()
	post := func(id, name string, at int) error {
		return m.Post(ctx, trace.Mail{
			Trace: name, Run: "r", Time: Start.Add(time.Duration(at) * time.Second),
			Signal: synapse.Signal{ID: id, Kind: synapse.SignalSend, Text: "text of " + id},
		})
	}
	for i, id := range []string{"b", "a", "c"} {
		if err := post(id, "t", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := post("d", "other", 9); err != nil {
		t.Fatal(err)
	}
	if err := post("a", "t", 10); err == nil {
		t.Error("an id twice is accepted")
	}
	if err := m.Post(ctx, trace.Mail{Trace: "t", Run: "r", Signal: synapse.Signal{ID: "x", Kind: "shout"}}); err == nil {
		t.Error("a signal that there is not is accepted")
	}
	ids := func() (ids []string) {
		t.Helper()
		all, err := m.Mail(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		for _, mail := range all {
			if mail.Text != "text of "+mail.ID || mail.Run != "r" || mail.Trace != "t" {
				t.Errorf("mail %+v", mail)
			}
			ids = append(ids, mail.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, ids()); diff != "" {
		t.Errorf("mail (-want +got):\n%s", diff)
	}
	if err := m.Taken(ctx, "a", "c", "no such"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, ids()); diff != "" {
		t.Errorf("mail that is left (-want +got):\n%s", diff)
	}
}
