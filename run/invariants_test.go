package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/model/script"
	"github.com/synapse-agents/synapse/policy"
	"github.com/synapse-agents/synapse/run"
)

// A chance makes the choices of one request out of a run of bytes. The same
// bytes and the same request give the same choices, whatever runs beside it.
type chance struct {
	data []byte
	at   int
}

func chanceOf(data []byte, conversation string, n int) *chance {
	h := fnv.New32a()
	fmt.Fprint(h, conversation)
	return &chance{data: data, at: int(h.Sum32()%1021) + 29*n}
}

// n returns a number below max.
func (c *chance) n(max int) int {
	if len(c.data) == 0 {
		return 0
	}
	c.at++
	return int(c.data[c.at%len(c.data)]) % max
}

// A chaos is a world in which bytes decide what the models say, what the tools
// do, which limits hold and when somebody cancels.
type chaos struct {
	*bench
	data []byte

	mu       sync.Mutex
	requests map[string][]request // by conversation
	written  map[string]bool      // the calls whose start is in the journal
	broken   []string             // promises that were broken while it ran
}

// A request is what a model was sent, and what that was then.
type request struct {
	req  *synapse.Request
	text string
}

func newChaos(t *testing.T, data []byte) *chaos {
	c := &chaos{data: data, requests: map[string][]request{}, written: map[string]bool{}}
	c.bench = newBench(t, script.Play(c.play))
	c.local.Append = c.append
	c.local.MaxParallel = 1 + chanceOf(data, "parallel", 0).n(5)
	c.local.Retry.Attempts = 3
	c.local.Ask = func(context.Context, synapse.Ask) (synapse.Answer, error) {
		time.Sleep(time.Second)
		switch ch := chanceOf(data, "answers", 0); ch.n(3) {
		case 0:
			return synapse.Answer{Allow: true}, nil
		case 1:
			return synapse.Answer{Reason: "no"}, nil
		}
		return synapse.Answer{}, errors.New("nobody came")
	}
	for i := range c.tools {
		c.tools[i].Run = c.tool(&c.tools[i], c.tools[i].Run)
	}
	flaky := echoTool("flaky")
	flaky.Parallel = true
	flaky.Run = c.tool(&flaky, func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		switch chanceOf(data, in.Key, 0).n(5) {
		case 0:
			return nil, errors.New("it failed")
		case 1:
			panic("it panicked")
		case 2:
			return nil, nil
		case 3:
			<-ctx.Done() // its run's end is the only thing that stops it
			return nil, ctx.Err()
		}
		return &synapse.ToolResult{Text: strings.Repeat("long ", 60_000), Details: json.RawMessage(`{"n":1}`)}, nil
	})
	c.tools = append(c.tools, flaky)

	names := []string{"read", "write", "flaky", "task", "task_output", "task_stop"}
	c.graph.Specs = nil
	c.spec("main", names...)
	c.child("middle", names...)
	c.child("other", "read", "flaky")
	c.edge("middle", "leaf", "leaf")
	c.edge("middle", "other", "other", "")
	c.spec("leaf", "read", "write")
	for i := range c.graph.Specs {
		s := &c.graph.Specs[i]
		ch := chanceOf(data, s.Agent, 0)
		s.Limits = synapse.Limits{
			Turns: ch.n(6), ToolCalls: 4 * ch.n(3), Tokens: int64(100 * ch.n(5)),
			CostUSD: float64(ch.n(3)), Time: synapse.Duration(time.Duration(20*ch.n(4)) * time.Second),
		}
		if s.Agent == "main" {
			s.Limits = synapse.Limits{Turns: 8, Spawns: 12, Tokens: int64(2000 * ch.n(2)), Time: synapse.Duration(10 * time.Minute)}
		}
		if ch.n(4) == 0 {
			s.Output = number
		}
		if ch.n(3) == 0 {
			s.Policy.Rules = []policy.Source{{Origin: "test", Rules: []policy.Rule{
				{Tool: "write", Pattern: "*", Action: policy.Ask}, {Tool: "task", Pattern: "leaf", Action: policy.Deny},
			}}}
		}
		s.Background = ch.n(5) == 0
	}
	return c
}

// tool wraps a tool: nothing with an effect runs unless its start is written,
// and nothing starts once its run is over.
func (c *chaos) tool(t *synapse.Tool, inner synapse.ToolFunc) synapse.ToolFunc {
	harmless := t.ReadOnly
	return func(ctx context.Context, in *synapse.Invocation) (*synapse.ToolResult, error) {
		c.mu.Lock()
		if ctx.Err() != nil {
			c.broken = append(c.broken, in.Key+" was started after the end")
		}
		if !c.written[in.Key] && !harmless {
			c.broken = append(c.broken, in.Key+" was started before it was written")
		}
		c.mu.Unlock()
		in.Output("working")
		time.Sleep(time.Duration(chanceOf(c.data, in.Key, 1).n(4)) * time.Second)
		return inner(ctx, in)
	}
}

func (c *chaos) append(ctx context.Context, events []*synapse.Event) error {
	c.mu.Lock()
	for _, e := range events {
		if b, ok := e.Body.(*synapse.ToolStarted); ok {
			c.written[e.Run+"/"+b.Key] = true
		}
	}
	c.mu.Unlock()
	return c.bench.append(ctx, events)
}

var taskID = regexp.MustCompile(`Task: (t-\w+)`)

// play decides a turn.
func (c *chaos) play(n int, req *synapse.Request) script.Turn {
	key := req.System + script.FirstUser(req)
	raw, err := json.Marshal(req.Messages)
	if err != nil {
		return script.Turn{Err: err}
	}
	c.mu.Lock()
	c.requests[key] = append(c.requests[key], request{req, string(raw)})
	c.mu.Unlock()

	ch := chanceOf(c.data, key, n)
	turn := script.Turn{Delay: time.Duration(ch.n(5)) * time.Second, Check: whole, Usage: synapse.Usage{
		InputTokens: int64(1 + ch.n(40)), OutputTokens: int64(ch.n(20)), CacheReadTokens: int64(ch.n(3)), CostUSD: ptr(float64(ch.n(8)) / 16),
	}}
	switch ch.n(8) {
	case 0:
		turn.Text = `{"n":1}`
	case 1:
		turn.Text = "so far"
		turn.Reasoning = "hm"
	}
	switch ch.n(12) {
	case 0:
		turn.Err = &synapse.ProviderError{Kind: []synapse.ErrorKind{synapse.ErrorServer, synapse.ErrorRateLimit, synapse.ErrorAuth}[ch.n(3)]}
	case 1:
		turn.Err = errors.New("no provider's error")
	case 2:
		turn.Stop = []synapse.StopReason{synapse.StopLength, synapse.StopFilter, synapse.StopUnknown}[ch.n(3)]
	case 3:
		turn.Usage.CostUSD = nil
	case 4:
		turn.Hang = ch.n(2) == 0
	}
	if n >= 10 || ch.n(4) == 0 {
		if turn.Text == "" && ch.n(4) > 0 {
			turn.Text = "done"
		}
		return turn
	}
	for i := range 1 + ch.n(4) {
		turn.Calls = append(turn.Calls, c.call(ch, req, fmt.Sprintf("%s.%d.%d", script.FirstUser(req), n, i)))
	}
	return turn
}

// call decides a call. Prompts are unique, so that they tell conversations apart.
func (c *chaos) call(ch *chance, req *synapse.Request, prompt string) synapse.ToolCall {
	args := map[string]any{"description": "a test", "prompt": prompt}
	id := "t-none"
	var ids []string
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			text := p.Text
			if p.Result != nil {
				text = p.Result.Text
			}
			for _, m := range taskID.FindAllStringSubmatch(text, -1) {
				ids = append(ids, m[1])
			}
		}
	}
	if len(ids) > 0 {
		id = ids[ch.n(len(ids))]
	}
	call := synapse.ToolCall{}
	switch ch.n(14) {
	case 0, 1:
		call = read(prompt)
	case 2:
		call = script.Call("write", map[string]any{"text": prompt})
	case 3:
		call = script.Call("flaky", map[string]any{"text": prompt})
	case 4, 5, 6:
		args["subagent_type"] = []string{"middle", "other", "leaf", "Middle", "nobody"}[ch.n(5)]
		call = script.Call("task", args)
	case 7:
		args["subagent_type"], args["background"] = []string{"middle", "other", "leaf"}[ch.n(3)], true
		call = script.Call("task", args)
	case 8:
		args["task_id"] = id
		call = script.Call("task", args)
	case 9:
		call = script.Call("task_output", map[string]any{"task_id": id, "wait": ch.n(20)})
	case 10:
		call = script.Call("task_stop", map[string]any{"task_id": id})
	case 11:
		call = synapse.ToolCall{Name: "read", Args: []string{"", "{", "null", `{"text":1}`, `{"Text":"x"}`, `{"text":"a"}{}`, "text=a"}[ch.n(7)]}
	case 12:
		call = script.Call([]string{"rocket", "", "Read"}[ch.n(3)], map[string]any{"text": "x"})
	case 13:
		args["subagent_type"] = "other"
		delete(args, []string{"prompt", "description", "subagent_type"}[ch.n(3)])
		call = script.Call("task", args)
	}
	if ch.n(6) == 0 {
		call.ID = "same"
	}
	return call
}

// live runs the world once and checks what always holds.
func (c *chaos) live() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	if ch := chanceOf(c.data, "cancel", 0); ch.n(4) == 0 {
		time.AfterFunc(time.Duration(ch.n(40))*time.Second, cancel)
	}
	r := c.run(ctx, "go")
	for _, b := range c.broken {
		c.t.Error(b)
	}
	c.checkUsage(r)
	c.checkEnds(r)
	c.checkHistory(r)
}

// checkUsage: what a reply cost is in the sums of its run and of every run above
// it, once, and nothing else is.
func (c *chaos) checkUsage(r *record) {
	c.t.Helper()
	own, total := map[string]synapse.Usage{}, map[string]synapse.Usage{}
	parent := map[string]string{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case *synapse.RunStarted:
			own[e.Run], total[e.Run], parent[e.Run] = synapse.Usage{}, synapse.Usage{}, e.ParentRun
		case *synapse.ModelReplied:
			own[e.Run] = own[e.Run].Add(b.Usage)
			for id := e.Run; id != ""; id = parent[id] {
				total[id] = total[id].Add(b.Usage)
			}
		case *synapse.RunFinished:
			// Dollars are sixteenths: sums of them are exact in any order.
			if diff := cmp.Diff(own[e.Run], b.Usage); diff != "" {
				c.t.Errorf("usage of run %s (-replies +outcome):\n%s", e.Run, diff)
			}
			if diff := cmp.Diff(total[e.Run], b.Total); diff != "" {
				c.t.Errorf("total of run %s (-replies +outcome):\n%s", e.Run, diff)
			}
		}
	}
}

// checkEnds: an end that is no completion has a cause, a completion has an
// answer, limits were kept, and no question is left open.
func (c *chaos) checkEnds(r *record) {
	c.t.Helper()
	limits := map[string]synapse.Limits{}
	open := map[string]bool{}
	running := map[string]bool{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case *synapse.RunStarted:
			limits[e.Run] = b.Limits
			running[e.Run] = true
			if above, ok := limits[e.ParentRun]; ok && e.ParentRun != "" {
				if !running[e.ParentRun] {
					c.t.Errorf("run %s started below one that has ended", e.Run)
				}
				if above.Tokens > 0 && (b.Limits.Tokens == 0 || b.Limits.Tokens > above.Tokens) ||
					above.Spawns > 0 && (b.Limits.Spawns == 0 || b.Limits.Spawns > above.Spawns) {
					c.t.Errorf("run %s has the limits %+v below %+v", e.Run, b.Limits, above)
				}
			}
		case *synapse.ApprovalAsked:
			open[b.Ask.ID] = true
		case *synapse.ApprovalAnswered:
			if !open[b.ID] {
				c.t.Errorf("question %s was answered though it isn't open", b.ID)
			}
			delete(open, b.ID)
		case *synapse.RunFinished:
			running[e.Run] = false
			if b.Status == synapse.StatusCompleted && b.Text == "" || b.Status != synapse.StatusCompleted && b.Cause == "" {
				c.t.Errorf("run %s ended as %+v", e.Run, b.Outcome)
			}
			if b.Status == synapse.StatusPartial && b.Limit == "" {
				c.t.Errorf("run %s is partial by no limit: %+v", e.Run, b.Outcome)
			}
			// A last turn may be followed by three corrections of its result.
			if most := limits[e.Run].Turns; most > 0 && b.Turns > most+3 {
				c.t.Errorf("run %s took %d turns of %d", e.Run, b.Turns, most)
			}
		}
	}
	for id := range open {
		c.t.Errorf("question %s is open", id)
	}
	if spawned := len(bodies[*synapse.ChildStarted](r, "")); spawned > 12 {
		c.t.Errorf("%d sub-agents were started of 12", spawned)
	}
}

// checkHistory: what a model was sent has not changed since, and is what the
// fold of the events up to then makes, through JSON too.
func (c *chaos) checkHistory(r *record) {
	c.t.Helper()
	runs := map[string]string{} // conversation → run
	byRun := map[string][]*synapse.Event{}
	for _, e := range r.events {
		if b, ok := e.Body.(*synapse.RunStarted); ok && !b.Resumed {
			runs[b.Spec.System+b.Input[0].Text()] = e.Run
		}
		if e.Kind.Stored() {
			raw, err := json.Marshal(e)
			if err != nil {
				c.t.Fatal(err)
			}
			read := new(synapse.Event)
			if err := json.Unmarshal(raw, read); err != nil {
				c.t.Fatal(err)
			}
			byRun[e.Run] = append(byRun[e.Run], read)
		}
	}
	for key, requests := range c.requests {
		id, ok := runs[key]
		if !ok {
			c.t.Errorf("nobody's conversation: %q", key)
		}
		for i, q := range requests {
			now, err := json.Marshal(q.req.Messages)
			if err != nil {
				c.t.Fatal(err)
			}
			if string(now) != q.text {
				c.t.Errorf("request %d of run %s has changed since it was sent", i+1, id)
			}
			events := byRun[id]
			end := slices.IndexFunc(events, func(e *synapse.Event) bool {
				b, ok := e.Body.(*synapse.ModelRequested)
				return ok && b.Messages == len(q.req.Messages)
			})
			if end < 0 {
				c.t.Errorf("no event tells of request %d of run %s", i+1, id)
				continue
			}
			st, err := run.Fold(func(yield func(*synapse.Event, error) bool) {
				for _, e := range events[:end+1] {
					if !yield(e, nil) {
						return
					}
				}
			}, id)
			if err != nil {
				c.t.Error(err)
				continue
			}
			folded, err := json.Marshal(st.Messages)
			if err != nil {
				c.t.Fatal(err)
			}
			if string(folded) != q.text {
				at := 0
				for at < len(folded) && at < len(q.text) && folded[at] == q.text[at] {
					at++
				}
				from := max(at-200, 0)
				c.t.Errorf("run %s: the fold makes\n%.400s\nof what was sent as\n%.400s", id, folded[from:], q.text[from:])
			}
		}
	}
}

// TestInvariants lets two hundred random worlds run.
func TestInvariants(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		data := make([]byte, 64+seed*8)
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, data).live() })
		})
	}
}

// FuzzLoop is the same with bytes that a fuzzer chooses.
func FuzzLoop(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte("\x00\x05\x02\x07\x01\x01\x03\x04\x04\x08\x0b\x0d"))
	f.Add([]byte(strings.Repeat("\x07\x02\x09\x04\x01\x03", 20)))
	rng := rand.New(rand.NewPCG(7, 7))
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			t.Skip("more than a world needs")
		}
		synctest.Test(t, func(t *testing.T) { newChaos(t, data).live() })
	})
}
