package replay_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/replay"
	"github.com/synapse-agents/synapse/run"
)

func request(turn int, text ...string) *run.ModelRequest {
	req := &run.ModelRequest{
		Trace: "TRACE", Run: "TRACE", Agent: "main", Path: "main", Turn: turn, Model: synapse.ModelRef{Provider: "p", Name: "m"},
		Request: &synapse.Request{Model: "m", System: "work in /home/me/ws with hunter2hunter2", Tools: []synapse.ToolDef{{Name: "ls", Description: "lists", Schema: []byte(`{"type":"object","a":1}`)}}},
	}
	for i, t := range text {
		if i%2 == 0 {
			req.Request.Messages = append(req.Request.Messages, synapse.UserText(t))
		} else {
			req.Request.Messages = append(req.Request.Messages, synapse.AssistantText(t))
		}
	}
	return req
}

func answer(text string, err error) run.AskModel {
	return func(context.Context) (*synapse.Reply, error) {
		if err != nil {
			return nil, err
		}
		return &synapse.Reply{Message: synapse.AssistantText(text), Stop: synapse.StopEnd}, nil
	}
}

// record keeps two turns and a failure, and returns the file.
func record(t *testing.T) []byte {
	t.Helper()
	r := replay.NewRecorder("hello", replay.Options{Workspace: []string{"/home/me/ws"}, Secrets: map[string]string{"PASSWORD": "hunter2hunter2", "SHORT": "me"}})
	for _, step := range []struct {
		req *run.ModelRequest
		ask run.AskModel
	}{
		{request(1, "hello"), answer("see /home/me/ws/a.go", nil)},
		{request(2, "hello", "see /home/me/ws/a.go", "at 2026-01-02 10:00:00, key sk-abcdefghijklmnopqrstuvwx"), answer("done", nil)},
		{request(3, "hello", "see /home/me/ws/a.go", "at 2026-01-02 10:00:00, key sk-abcdefghijklmnopqrstuvwx", "done", "more"), answer("", &synapse.ProviderError{Kind: synapse.ErrorAuth, Status: 401, Message: "no"})},
	} {
		if _, err := r.Intercept(t.Context(), step.req, step.ask); err != nil && step.req.Turn != 3 {
			t.Fatal(err)
		}
	}
	rec, err := r.Recording()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rec.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSecretsAndPathsStayOut(t *testing.T) {
	file := string(record(t))
	for _, secret := range []string{"hunter2", "sk-abc", "/home/me"} {
		if strings.Contains(file, secret) {
			t.Errorf("%q is in the file:\n%s", secret, file)
		}
	}
	for _, want := range []string{"$PASSWORD", "$SECRET", "$WORKSPACE/a.go", `"from":2`} {
		if !strings.Contains(file, want) {
			t.Errorf("%q is not in the file:\n%s", want, file)
		}
	}
}

func TestPlay(t *testing.T) {
	file := record(t)
	const key = "key sk-zzzzzzzzzzzzzzzzzzzzzzzzz" // any key reads the same
	never := func(context.Context) (*synapse.Reply, error) { panic("a model was asked") }
	play := func(opt replay.Options, reqs ...*run.ModelRequest) (*replay.Player, []string) {
		rec, err := replay.Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		opt.Workspace, opt.Secrets = []string{"/ci/build"}, map[string]string{"PASSWORD": "another-password"}
		p := replay.NewPlayer(rec, opt, nil)
		var got []string
		for _, req := range reqs {
			req.Request.System = "work in /ci/build with another-password"
			reply, err := p.Intercept(t.Context(), req, never)
			var provider *synapse.ProviderError
			switch {
			case errors.As(err, &provider):
				got = append(got, string(provider.Kind))
			case err != nil:
				got = append(got, "differs")
			default:
				got = append(got, reply.Message.Text())
			}
		}
		return p, got
	}
	same := func(date string) []*run.ModelRequest {
		second := "at " + date + ", " + key
		return []*run.ModelRequest{
			request(1, "hello"), request(2, "hello", "see /ci/build/a.go", second), request(3, "hello", "see /ci/build/a.go", second, "done", "more"),
		}
	}
	p, got := play(replay.Options{}, same("2026-01-02 10:00:00")...)
	if diff := cmp.Diff([]string{"see /ci/build/a.go", "done", "auth"}, got); diff != "" || p.Finish() != nil {
		t.Errorf("%s%v", diff, p.Finish())
	}
	if p, _ = play(replay.Options{}, same("2027-11-12 10:00:01")...); p.Finish() == nil || p.Finish().Turn != 2 || p.Finish().Part != "message 3, user" {
		t.Errorf("another date: %v", p.Finish())
	}
	if p, _ = play(replay.Options{Ignore: replay.Ignore{Dates: true}}, same("2027-11-12 10:00:01")...); p.Finish() != nil {
		t.Errorf("dates ignored: %v", p.Finish())
	}
	if p, _ = play(replay.Options{Ignore: replay.Ignore{Patterns: []*regexp.Regexp{regexp.MustCompile(`at \S+ \S+`)}}}, same("2027-11-12 10:00:01")...); p.Finish() != nil {
		t.Errorf("a pattern ignored: %v", p.Finish())
	}
	if p, _ = play(replay.Options{}, request(1, "hello")); p.Finish() == nil || p.Finish().Part != "2 of the 3 recorded requests were not made" {
		t.Errorf("cut short: %v", p.Finish())
	}
	for part, edit := range map[string]func(*run.ModelRequest){
		"model":                     func(r *run.ModelRequest) { r.Model.Name = "other" },
		"temperature":               func(r *run.ModelRequest) { r.Request.Temperature = new(float64) },
		"reasoning effort":          func(r *run.ModelRequest) { r.Request.Effort = synapse.EffortHigh },
		"tools":                     func(r *run.ModelRequest) { r.Request.Tools = nil },
		"tool ls":                   func(r *run.ModelRequest) { r.Request.Tools[0].Description = "other" },
		"message 1, user":           func(r *run.ModelRequest) { r.Request.Messages[0].Parts[0].Text = "hi" },
		"message 2, user":           func(r *run.ModelRequest) { r.Request.Messages = append(r.Request.Messages, synapse.UserText("and")) },
		"there was no such run":     func(r *run.ModelRequest) { r.Path = "main > explore@t1/tool/1" },
		"it was not asked so often": func(r *run.ModelRequest) { r.Turn = 9 },
	} {
		req := request(1, "hello")
		edit(req)
		if p, got := play(replay.Options{}, req); got[0] != "differs" || p.Finish().Part != part {
			t.Errorf("%s: %v", part, p.Finish())
		}
	}
	// The order of a schema's names says nothing.
	req := request(1, "hello")
	req.Request.Tools[0].Schema = []byte(`{"a": 1, "type": "object"}`)
	if _, got := play(replay.Options{}, req); got[0] == "differs" {
		t.Error("a schema in another order differs")
	}
}

// FuzzRead: a file is refused, or it is read, written and read to the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":"synapse-recording","version":1,"trace":"T","main":"m","model":"p:m","prompt":"","specs":1,"turns":1}
{"spec_name":"m","model":"p:m","system":""}
{"run":"m","turn":1,"spec":"m","failure":{"kind":"auth","message":""}}
`))
	f.Add([]byte(`{"format":"synapse-recording","version":2}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := replay.Read(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, replay.ErrDamaged) && !errors.Is(err, replay.ErrNewer) {
				t.Fatalf("an error of neither kind: %v", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := rec.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, err := replay.Read(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, first.Bytes())
		}
		if err := again.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v\n%s\n%s", err, first.Bytes(), second.Bytes())
		}
	})
}
