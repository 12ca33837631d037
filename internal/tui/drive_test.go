package tui_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/internal/tui"
	"github.com/synapse-agents/synapse/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A driver runs a model as the terminal's library does, but for the drawing and
// the clock: commands run beside it, what they bring is taken in, and time stands
// still until the test lets it go on.
type driver struct {
	t    *testing.T
	m    *tui.Model
	msgs chan tea.Msg
	ctx  context.Context
	ask  *tui.Questions
	quit bool
}

// drive runs a test with a model of the options, in a bubble of its own time.
func drive(t *testing.T, opt options, columns, rows int, test func(d *driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opt.Questions = tui.NewQuestions(opt.grants)
		d := &driver{ask: opt.Questions, t: t, msgs: make(chan tea.Msg, 10000), ctx: ctx}
		d.m = tui.New(ctx, opt.Options)
		d.run(d.m.Init())
		d.send(tea.WindowSizeMsg{Width: columns, Height: rows})
		defer func() {
			cancel()
			time.Sleep(time.Minute) // what waits for a time ends too
		}()
		test(d)
	})
}

// run runs a command.
func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				d.run(c)
			}
		default:
			d.msgs <- msg
		}
	}()
}

// settle takes in what commands bring until nothing comes without time going on.
func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			if _, ok := msg.(tea.QuitMsg); ok {
				d.quit = true
				continue
			}
			_, cmd := d.m.Update(msg)
			d.run(cmd)
		default:
			return
		}
	}
}

func (d *driver) send(msg tea.Msg) {
	_, cmd := d.m.Update(msg)
	d.run(cmd)
	d.settle()
}

// pass lets time go on.
func (d *driver) pass(t time.Duration) {
	for end := time.Now().Add(t); time.Now().Before(end); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
		d.settle()
	}
}

// press presses keys by their names.
func (d *driver) press(keys ...string) {
	for _, k := range keys {
		d.send(tea.KeyPressMsg(keyOf(k)))
	}
}

// keyOf is the key of a name, as the library spells it.
func keyOf(name string) tea.Key {
	var k tea.Key
	for {
		switch {
		case strings.HasPrefix(name, "ctrl+"):
			k.Mod |= tea.ModCtrl
			name = name[5:]
		case strings.HasPrefix(name, "alt+"):
			k.Mod |= tea.ModAlt
			name = name[4:]
		case strings.HasPrefix(name, "shift+"):
			k.Mod |= tea.ModShift
			name = name[6:]
		default:
			codes := map[string]rune{
				"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
				"right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
				"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "space": tea.KeySpace,
			}
			if code, ok := codes[name]; ok {
				k.Code = code
				if name == "space" {
					k.Text = " "
				}
				return k
			}
			k.Code = []rune(name)[0]
			if k.Mod == 0 {
				k.Text = name
			}
			return k
		}
	}
}

// write types text.
func (d *driver) write(text string) {
	for _, r := range text {
		if r == ' ' {
			d.press("space")
			continue
		}
		d.send(tea.KeyPressMsg(tea.Key{Code: r, Text: string(r)}))
	}
}

// frame is what is on the screen, without styles.
func (d *driver) frame() string {
	d.t.Helper()
	return ansi.Strip(d.m.View().Content)
}

func (d *driver) sees(parts ...string) {
	d.t.Helper()
	for _, p := range parts {
		if !strings.Contains(d.frame(), p) {
			d.t.Fatalf("%q is not on the screen:\n%s", p, d.frame())
		}
	}
}

func (d *driver) misses(parts ...string) {
	d.t.Helper()
	for _, p := range parts {
		if strings.Contains(d.frame(), p) {
			d.t.Fatalf("%q is on the screen:\n%s", p, d.frame())
		}
	}
}

// checkFrame wants a frame to fill the screen and not more than that.
func checkFrame(t *testing.T, content string, columns, rows int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) != rows {
		t.Errorf("%d lines on a screen of %d:\n%s", len(lines), rows, ansi.Strip(content))
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > columns {
			t.Errorf("line %d has %d columns of %d: %q", i, w, columns, ansi.Strip(l))
		}
		for _, r := range ansi.Strip(l) {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Errorf("line %d holds the control character %q", i, r)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not as it was (-update writes it):\n%s", file, got)
	}
}

// A session plays requests: each takes the next function, which yields events.
type session struct {
	mu    sync.Mutex
	plays []func(ctx context.Context, s *stage)
	sent  []string
}

func (s *session) Send(ctx context.Context, prompt string) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		s.mu.Lock()
		s.sent = append(s.sent, prompt)
		n := len(s.sent)
		play := s.plays[(n-1)%len(s.plays)]
		s.mu.Unlock()
		st := &stage{yield: yield, trace: fmt.Sprintf("trace%d", n), prompt: prompt}
		play(ctx, st)
	}
}

// A stage makes the events of a request.
type stage struct {
	yield  func(*synapse.Event, error) bool
	trace  string
	prompt string
	seq    int64
	agents map[string]string // by run
	parent map[string]string
	turns  map[string]int
}

func (s *stage) emit(run string, body synapse.Body) {
	s.seq++
	s.yield(&synapse.Event{V: 1, Seq: s.seq, Time: time.Now(), Trace: s.trace, Run: run, ParentRun: s.parent[run], Agent: s.agents[run], Kind: body.Kind(), Body: body}, nil)
}

func (s *stage) begin(run, parent, agent, what, prompt string) {
	if s.agents == nil {
		s.agents, s.parent, s.turns = map[string]string{}, map[string]string{}, map[string]int{}
	}
	s.agents[run], s.parent[run] = agent, parent
	s.emit(run, &synapse.RunStarted{
		Background: agent == "coder", Description: what, Input: []synapse.Message{synapse.UserText(prompt)},
		Spec: &synapse.Spec{
			Agent: agent, Model: synapse.ModelRef{Provider: "openai", Name: "gpt-5"}, Effort: synapse.EffortHigh,
			Policy: policy.Policy{Allow: []string{"read_file", "search_files"}, Block: map[string]policy.Reason{"task": {Code: policy.NoSpawn}, "edit_file": {Code: policy.ReadOnly}}},
			Limits: synapse.Limits{Turns: 30},
		},
	})
}

// turn asks the model, which replies with text and calls.
func (s *stage) turn(run, text string, calls ...synapse.ToolCall) {
	s.turns[run]++
	s.emit(run, &synapse.ModelRequested{Turn: s.turns[run], Model: synapse.ModelRef{Provider: "openai", Name: "gpt-5"}})
	time.Sleep(100 * time.Millisecond)
	m := synapse.AssistantText(text)
	if text == "" {
		m.Parts = nil
	}
	for piece := range strings.SplitAfterSeq(text, " ") {
		if piece != "" {
			s.emit(run, &synapse.Text{Text: piece})
		}
	}
	for i := range calls {
		m.Parts = append(m.Parts, synapse.Part{Kind: synapse.PartCall, Call: &calls[i]})
	}
	price := 0.0125
	s.emit(run, &synapse.ModelReplied{Turn: s.turns[run], Reply: synapse.Reply{
		Message: m, Stop: synapse.StopEnd, Usage: synapse.Usage{Requests: 1, InputTokens: 1200, OutputTokens: 90, CostUSD: &price},
	}})
}

func (s *stage) tool(run string, call synapse.ToolCall, intent string, r synapse.ToolResult) {
	s.emit(run, &synapse.ToolStarted{Call: call, Intent: intent, Effect: synapse.EffectRead})
	time.Sleep(50 * time.Millisecond)
	r.CallID, r.Name = call.ID, call.Name
	s.emit(run, &synapse.ToolFinished{Result: r, Elapsed: synapse.Duration(50 * time.Millisecond)})
}

func (s *stage) end(run string, status synapse.Status, cause string) {
	s.emit(run, &synapse.RunFinished{Outcome: synapse.Outcome{Status: status, Cause: cause, Turns: s.turns[run]}})
}

func call(id, name, args string) synapse.ToolCall {
	return synapse.ToolCall{ID: id, Name: name, Args: args}
}

const editDiff = "--- a/policy/policy.go\n+++ b/policy/policy.go\n@@ -24,3 +24,4 @@\n // against rm does not stop a script.\n-package policy\n+package policy // 研究\n+\n // Action is what a rule says.\n"

// conversation is a request with everything in it.
func conversation(_ context.Context, s *stage) {
	s.begin("main1", "", "main", "", s.prompt)
	s.emit("main1", &synapse.Reasoning{Text: "The user wants two things.\nFirst the edit."})
	edit := call("c1", "edit_file", `{"path":"policy/policy.go","old_string":"package policy","new_string":"…"}`)
	run := call("c2", "execute", `{"command":"go test ./..."}`)
	s.turn("main1", "I'll make **one** change and run the tests.", edit, run)
	details, _ := json.Marshal(map[string]any{"path": "policy/policy.go", "added": 2, "removed": 1, "diff": editDiff})
	s.tool("main1", edit, "mark the package", synapse.ToolResult{Text: "edited", Details: details})
	s.tool("main1", run, "see whether it still works", synapse.ToolResult{Text: "ok policy 0.1s\nok run 2.2s\n\x1b[31mFAIL\x1b[0m 界\x07"})
	s.emit("main1", &synapse.Warning{Code: "x", Message: "the journal is slow"})
	look := call("c3", "read_file", `{"path":"docs/diagram.png"}`)
	s.turn("main1", "", look)
	s.tool("main1", look, "look at the picture", synapse.ToolResult{Text: "", Media: []synapse.Media{{Name: "diagram.png", Type: "image/png", Data: make([]byte, 4096)}}})
	denied := call("c4", "execute", `{"command":"rm -rf /"}`)
	s.turn("main1", "", denied)
	s.emit("main1", &synapse.ToolFinished{Result: synapse.ToolResult{CallID: "c4", Name: "execute", IsError: true, Text: "permission denied"}, Denied: "the rule execute \"rm *\" denies it"})
	s.turn("main1", "# Done\n\nChanged `policy.go`. See [the docs](https://example.org) and ![a diagram](x.png).\n\n| File | Lines | Why |\n|---|---:|---|\n| policy.go | 3 | 标记包 marks it |\n\n1. One *thing*\n   - nested\n\n```go\nfunc add(a, b int) int { return a + b } // 👩‍👩‍👧 sum\n```\n\n> quoted")
	s.emit("main1", &synapse.Conclusion{Content: "Done"})
	s.end("main1", synapse.StatusCompleted, "")
}

// delegation is a request with sub-agents in every state; they stay in it for as
// long as the request is not interrupted.
func delegation(ctx context.Context, s *stage) {
	s.begin("main2", "", "main", "", s.prompt)
	names := []string{"explore", "tester", "研究者", "reviewer", "analyst", "coder", "later"}
	var calls []synapse.ToolCall
	for i, n := range names {
		calls = append(calls, call(fmt.Sprint("t", i), "task", fmt.Sprintf(`{"subagent_type":%q,"description":"part %d"}`, n, i)))
	}
	s.turn("main2", "Seven parts, seven agents.", calls...)
	for i, n := range names {
		s.emit("main2", &synapse.ToolStarted{Call: calls[i], Intent: "to delegate"})
		s.emit("main2", &synapse.ChildStarted{Task: fmt.Sprint("r", i), Agent: n, Description: fmt.Sprint("part ", i), CallID: calls[i].ID, Background: n == "coder"})
	}
	child := func(i int) string {
		id := fmt.Sprint("r", i)
		s.begin(id, "main2", names[i], fmt.Sprint("part ", i), fmt.Sprintf("Do part %d and report.", i))
		return id
	}
	done := func(i int, status synapse.Status, cause string) {
		s.end(fmt.Sprint("r", i), status, cause)
		s.emit("main2", &synapse.ChildFinished{Task: fmt.Sprint("r", i), Agent: names[i], CallID: calls[i].ID, Outcome: synapse.Outcome{Status: status, Cause: cause}})
		s.emit("main2", &synapse.ToolFinished{Result: synapse.ToolResult{CallID: calls[i].ID, Name: "task", Text: "report"}})
	}
	r := child(0)
	s.turn(r, "Found **it**.")
	done(0, synapse.StatusCompleted, "")
	r = child(1)
	s.turn(r, "")
	done(1, synapse.StatusFailed, "the provider is out of service")
	r = child(2)
	read := call("a", "read_file", `{"path":"policy/check.go"}`)
	s.turn(r, "Reading.", read)
	s.emit(r, &synapse.ToolStarted{Call: read, Intent: "find the check"})
	r = child(3)
	x := call("b", "execute", `{"command":"make"}`)
	s.turn(r, "", x)
	s.emit(r, &synapse.ApprovalAsked{Ask: synapse.Ask{ID: "q", Run: r, Agent: "reviewer", Tool: "execute"}})
	r = child(4)
	s.turn(r, "", call("n", "task", `{"subagent_type":"explore","description":"deeper"}`))
	s.emit(r, &synapse.ToolStarted{Call: call("n", "task", `{}`)})
	s.emit(r, &synapse.ChildStarted{Task: "r4a", Agent: "explore", Description: "deeper", CallID: "n"})
	s.begin("r4a", r, "explore", "deeper", "Look deeper.")
	s.emit("r4a", &synapse.ModelRequested{Turn: 1})
	r = child(5)
	s.emit(r, &synapse.ModelRequested{Turn: 1})
	<-ctx.Done()
	for _, id := range []string{"r2", "r3", "r4a", "r4", "r5"} {
		s.end(id, synapse.StatusCancelled, "")
	}
	s.end("main2", synapse.StatusCancelled, "")
}

// world is a backend that holds everything in memory.
type world struct {
	mu       sync.Mutex
	off      map[string]bool
	edits    []tui.ModelEdit
	layer    string
	drafts   []tui.Draft
	history  []string
	theme    string
	stopped  []string
	steered  string
	failSave bool
}

func (w *world) Agents(context.Context) (tui.AgentList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var l tui.AgentList
	for _, n := range []string{"analyst", "explore", "general-purpose", "reviewer", "研究者"} {
		l.Agents = append(l.Agents, tui.Agent{
			Name: n, Description: "Use it to " + n + ".", Source: "builtin", Model: "openai:gpt-5", Effort: "high", On: !w.off[n], Callable: true,
		})
	}
	l.Agents[3].Source, l.Agents[3].Path, l.Agents[3].Shadows = "project (claude)", "/ws/.claude/agents/reviewer.md", []string{"/home/u/.synapse/agents/reviewer.md"}
	l.Problems = []tui.Problem{
		{Name: "reviewer", Text: "reviewer.md:4:1: warning: unknown field `colour` (unknown-field)"},
		{Text: "broken.md:2:1: error: no description (no-description)", Bad: true},
	}
	return l, nil
}

func (w *world) Switch(_ context.Context, name string, on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "analyst" {
		return errors.New("agent \"analyst\" is off by its own definition")
	}
	if w.off == nil {
		w.off = map[string]bool{}
	}
	w.off[name] = !on
	return nil
}

func (w *world) Explain(_ context.Context, name string) (tui.Sheet, error) {
	return tui.Sheet{Title: cmp.Or(name, "main"), Sections: []tui.Section{
		{Rows: []tui.Row{{Cells: []string{"model", "openai:gpt-5 (inherit)"}}}},
		{Title: "Tools", Rows: []tui.Row{{Cells: []string{"✓ read_file", "allowed"}, Tone: tui.Good}, {Cells: []string{"✗ edit_file", "readonly (user settings)"}, Tone: tui.Faint}}},
	}}, nil
}

func (w *world) Models(context.Context) (tui.ModelPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	value := func(key, other string) string {
		for _, e := range w.edits {
			if e.Key == key && e.Value != "inherit" {
				other = e.Value
			}
		}
		return other
	}
	p := tui.ModelPage{
		Choices: []tui.Choice{{Value: "inherit", About: "say nothing here"}, {Value: "anthropic:claude-sonnet-4-5"}, {Value: "openai:gpt-5", About: "in use"}, {Value: "fast", About: "alias of openai:gpt-5-mini"}},
		Efforts: []string{"inherit", "off", "low", "high"},
		Layers:  []tui.Layer{{Name: "user", Path: "/home/u/.synapse/settings.json"}, {Name: "project", Path: "/ws/.synapse/settings.json"}},
	}
	p.Rows = append(p.Rows, tui.ModelRow{Name: "main", About: "which you talk to", Model: value("model", "openai:gpt-5"), ModelFrom: "environment AGENT_MODEL", ModelKey: "model", EffortKey: "reasoning_effort"})
	for _, n := range []string{"analyst", "reviewer"} {
		p.Rows = append(p.Rows, tui.ModelRow{
			Name: n, About: "Use it to " + n + ".", Model: value("m."+n, "openai:gpt-5"), ModelFrom: "inherit", Effort: value("e."+n, "high"), EffortFrom: "definition",
			ModelKey: "m." + n, EffortKey: "e." + n,
		})
	}
	return p, nil
}

func (w *world) Save(_ context.Context, layer string, edits []tui.ModelEdit) ([]tui.Saved, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failSave {
		return nil, errors.New("settings.json: the file has changed since it was read")
	}
	w.layer = layer
	w.edits = append(w.edits, edits...)
	var out []tui.Saved
	for _, e := range edits {
		s := tui.Saved{Text: "saved " + e.Key + " to " + layer + " settings"}
		if e.Key == "model" {
			s.Text, s.Hidden = s.Text+"; it is hidden by environment AGENT_MODEL", true
		}
		out = append(out, s)
	}
	return out, nil
}

func (w *world) Preview(_ context.Context, d tui.Draft) (tui.Preview, error) {
	if d.Effort == "huge" {
		return tui.Preview{}, errors.New("reasoning_effort \"huge\": want one of off, minimal, low, medium, high, max")
	}
	s, _ := w.Explain(context.Background(), d.Name)
	return tui.Preview{Path: "/ws/.synapse/agents/" + d.Name + ".md", Text: "---\nname: " + d.Name + "\n---\nYou are it.\n", Explain: s}, nil
}

func (w *world) Write(_ context.Context, d tui.Draft) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drafts = append(w.drafts, d)
	return "/ws/.synapse/agents/" + d.Name + ".md", nil
}

func (w *world) Traces(context.Context) ([]tui.Trace, error) {
	return []tui.Trace{
		{ID: "T2", Started: "2026-01-02 10:00:00", Elapsed: "2.8s", Status: "completed", Prompt: "please 编辑 it", Cost: "$0.01", Runs: 3, Tokens: 6485},
		{ID: "T1", Started: "2026-01-01 10:00:00", Elapsed: "-", Status: "not ended", Prompt: "look", Cost: "$0", Runs: 1},
	}, nil
}

func (w *world) Trace(_ context.Context, id string) (tui.Sheet, error) {
	if id == "nope" {
		return tui.Sheet{}, errors.New("no trace \"nope\"")
	}
	return tui.Sheet{Title: "Trace " + id, Sections: []tui.Section{{Lines: []string{"✓ main: please", "└─ · read_file: why · 0.0s"}}}}, nil
}

// kept are the conversations of a world: each is the one with everything in it.
type kept struct{ *world }

func (k *kept) Conversations(context.Context) ([]tui.Kept, error) {
	return []tui.Kept{
		{ID: "s-2", Name: "policy", Updated: "2026-01-02 10:00:00", Prompt: "please 编辑 it", Status: "completed", Cost: "$0.05", Requests: 2, Tokens: 6485},
		{ID: "s-0", Updated: "2026-01-01 10:00:00", Prompt: "look", Status: "not ended", Cost: "none", Requests: 1},
	}, nil
}

func (k *kept) Open(_ context.Context, id string) (tui.Conversation, error) {
	play := func(play func(context.Context, *stage)) func(context.Context) tui.Events {
		return func(ctx context.Context) tui.Events {
			return func(yield func(*synapse.Event, error) bool) {
				play(ctx, &stage{prompt: "said before", trace: "t0", yield: func(e *synapse.Event, err error) bool {
					if !e.Kind.Stored() { // a journal has not seen how it came
						return true
					}
					return yield(e, err)
				}})
			}
		}
	}
	c := tui.Conversation{ID: id, Session: &session{plays: []func(context.Context, *stage){reply}}, Past: play(conversation)}
	switch id {
	case "s-0":
		c.Past, c.Resume = play(func(_ context.Context, s *stage) {
			s.begin("main1", "", "main", "", "cut off here")
			s.emit("main1", &synapse.ModelRequested{Turn: 1})
		}), play(func(_ context.Context, s *stage) {
			s.agents, s.parent, s.turns = map[string]string{"main1": "main"}, map[string]string{}, map[string]int{}
			s.emit("main1", &synapse.RunStarted{Resumed: true})
			s.turn("main1", "taken up again")
			s.end("main1", synapse.StatusCompleted, "")
		})
	case "nope":
		return c, errors.New("there is no conversation \"nope\"")
	}
	return c, nil
}

func (w *world) Config(context.Context) (tui.Sheet, error) {
	return tui.Sheet{Title: "Settings", Sections: []tui.Section{{Rows: []tui.Row{
		{Cells: []string{"model", "environment AGENT_MODEL", "openai:gpt-5"}},
		{Cells: []string{"excluded_tools", "user settings (~/.synapse/settings.json:3)", `["execute"]`}},
	}}}}, nil
}

func (w *world) Files(context.Context) ([]string, error) {
	return []string{"README.md", "internal/cli/run.go", "internal/tui/model.go", "docs/界面.md"}, nil
}

func (w *world) History(context.Context) ([]string, error) {
	return []string{"the first", "the second"}, nil
}

func (w *world) Remember(_ context.Context, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, text)
	return nil
}

func (w *world) SaveTheme(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.theme = name
	return nil
}

// options are those of the screen, and what questions are made of: their channels
// belong to the bubble of a test.
type options struct {
	tui.Options
	grants tui.Grants
}

// whole are options with everything there is.
func whole(w *world, plays ...func(context.Context, *stage)) (options, *session) {
	s := &session{plays: plays}
	return options{Options: tui.Options{
		Conversation: tui.Conversation{ID: "s-1", Session: s}, Conversations: &kept{w}, Agents: w, Models: w, Drafts: w, Traces: w, Config: w, Files: w, Memory: w,
		Status: func(context.Context) tui.Status {
			return tui.Status{Agent: "main", Model: "openai:gpt-5", Effort: "high", Window: 200_000, Workspace: "/ws", Notes: []string{"web_search is not offered: it needs a key"}}
		},
	}}, s
}
