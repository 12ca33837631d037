package replay

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/run"
)

// A Recorder keeps the requests of one trace with their answers. It may be used
// from several goroutines.
type Recorder struct {
	normal *normal

	mu    sync.Mutex
	turns []*Turn
	seen  map[string]*conversation // by the run's path
	specs map[string]string        // the names of specs, by their JSON
	rec   *Recording
	ids   map[string]string // the ids that runs have, to those they get in the file
}

// A conversation is what a run's last request had.
type conversation struct {
	messages []string // as JSON
	reply    string
}

// NewRecorder returns a recorder of a request with this prompt.
func NewRecorder(prompt string, opt Options) *Recorder {
	sum := sha256.Sum256([]byte(prompt))
	r := &Recorder{
		normal: newNormal(opt), seen: map[string]*conversation{}, specs: map[string]string{}, ids: map[string]string{},
		// The id follows from the prompt, and task ids from it: recorded again, the
		// file is the same.
		rec: &Recording{Trace: base32.StdEncoding.EncodeToString(sum[:10]), Specs: map[string]*Spec{}},
	}
	r.rec.Prompt = r.normal.text(prompt)
	return r
}

// Intercept has the model asked and keeps what it answers.
func (r *Recorder) Intercept(ctx context.Context, req *run.ModelRequest, ask run.AskModel) (*synapse.Reply, error) {
	asked, err := r.begin(req)
	if err != nil {
		return nil, err
	}
	reply, askErr := ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	var provider *synapse.ProviderError
	switch {
	case askErr == nil:
		if asked.turn.Reply, err = r.normal.reply(reply); err != nil {
			return nil, fmt.Errorf("record a reply: %w", err)
		}
		asked.conversation.reply = encode(asked.turn.Reply.Message)
	case errors.As(askErr, &provider):
		message := provider.Message
		if message == "" && provider.Err != nil {
			message = provider.Err.Error()
		}
		asked.turn.Failure = &Failure{Provider: provider.Provider, Model: provider.Model, Kind: provider.Kind, Status: provider.Status, Message: r.normal.text(message)}
	default: // it was stopped: there is nothing to play
		return reply, askErr
	}
	r.turns = append(r.turns, asked.turn)
	return reply, askErr
}

// asked is a request that is under way.
type asked struct {
	turn         *Turn
	conversation *conversation
}

// begin keeps what is asked.
func (r *Recorder) begin(req *run.ModelRequest) (*asked, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec.Main == "" || req.ParentRun == "" {
		r.rec.Main, r.rec.Model = req.Agent, req.Model.String()
		r.ids[req.Trace] = r.rec.Trace
	}
	if _, known := r.ids[req.Run]; !known {
		parent, ok := r.ids[req.ParentRun]
		if !ok {
			parent = req.ParentRun
		}
		if req.Run == run.TaskID(req.Trace, req.ParentRun, req.Key) {
			r.ids[req.Run] = run.TaskID(r.rec.Trace, parent, req.Key)
		}
	}
	spec, err := specOf(req, r.normal)
	if err != nil {
		return nil, fmt.Errorf("record a request: %w", err)
	}
	t := &Turn{Run: req.Path, Turn: req.Turn, Spec: r.name(req.Agent, spec)}
	last := r.seen[req.Path]
	now := &conversation{}
	r.seen[req.Path] = now
	for _, m := range req.Request.Messages {
		m, err := r.normal.message(m)
		if err != nil {
			return nil, fmt.Errorf("record a request: %w", err)
		}
		now.messages = append(now.messages, encode(m))
		t.Messages = append(t.Messages, m)
	}
	if last != nil && last.reply != "" && follows(now.messages, append(last.messages[:len(last.messages):len(last.messages)], last.reply)) {
		t.From = len(last.messages) + 1
		t.Messages = t.Messages[t.From:]
	}
	return &asked{t, now}, nil
}

func follows(messages, before []string) bool {
	if len(messages) < len(before) {
		return false
	}
	for i := range before {
		if messages[i] != before[i] {
			return false
		}
	}
	return true
}

// name returns the name of a spec, the agent's with a number where it has several.
func (r *Recorder) name(agent string, s *Spec) string {
	key := encode(s)
	if name, ok := r.specs[agent+"\x00"+key]; ok {
		return name
	}
	name := agent
	for n := 2; r.rec.Specs[name] != nil; n++ {
		name = agent + "#" + strconv.Itoa(n)
	}
	r.specs[agent+"\x00"+key], r.rec.Specs[name] = name, s
	return name
}

func specOf(req *run.ModelRequest, n *normal) (*Spec, error) {
	q := req.Request
	s := &Spec{
		Model: req.Model.String(), Effort: q.Effort, Temperature: q.Temperature, TopP: q.TopP, MaxTokens: q.MaxTokens,
		System: n.text(q.System),
	}
	for _, d := range q.Tools {
		schema, err := canonical(d.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", d.Name, err)
		}
		s.Tools = append(s.Tools, &synapse.ToolDef{Name: d.Name, Description: n.text(d.Description), Schema: schema})
	}
	return s, nil
}

// canonical is a JSON value whose objects have their names in order.
func canonical(data json.RawMessage) (json.RawMessage, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.RawMessage(encode(v)), nil
}

func encode(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error() // what was decoded from JSON can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Recording returns what was kept, once the request has ended. An error says why
// that is nothing to play.
func (r *Recorder) Recording() (*Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) == 0 {
		return nil, errors.New("no model answered: there is nothing to record")
	}
	var pairs []string
	for id, name := range r.ids {
		pairs = append(pairs, id, name)
	}
	ids := strings.NewReplacer(pairs...)
	for _, t := range r.turns {
		for i := range t.Messages {
			rewrite(&t.Messages[i], ids.Replace)
		}
		if t.Reply != nil {
			rewrite(&t.Reply.Message, ids.Replace)
		}
	}
	r.rec.Turns = r.turns
	return r.rec, nil
}
