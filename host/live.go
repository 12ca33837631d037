package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/run"
	"github.com/synapse-agents/synapse/trace"
)

// ErrLive says that a request goes on in a process that is alive: nobody else may
// take it up.
var ErrLive = errors.New("it goes on in another process")

// mailEvery is how often a request looks for what other processes tell its runs.
const mailEvery = 250 * time.Millisecond

// stream runs an input and yields its events. While it goes on, this process
// alone has the trace, and what others leave for its runs reaches them.
func (h *Host) stream(ctx context.Context, p *run.Program, in run.Input) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		switch {
		case in.From != nil:
			in.Trace = in.From.Trace
		case in.Trace == "":
			in.Trace = rand.Text()[:16]
		}
		if in.Workspace == "" {
			in.Workspace = h.opt.Workspace
		}
		release, err := claim(h.liveDir, in.Trace)
		if err != nil {
			yield(nil, err)
			return
		}
		defer release()
		box, _ := h.journal.(trace.Mailbox)
		if box != nil {
			ctx, stop := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.deliver(ctx, box, in.Trace)
			}()
			defer func() {
				stop()
				<-done
			}()
		}
		for e, err := range h.local.Run(ctx, p, in) {
			if err == nil && box != nil {
				if sig, ok := e.Body.(*synapse.Signalled); ok && sig.ID != "" {
					// It is in the journal: nothing is lost when the mail goes. What
					// stays is left out by its id when the trace is resumed.
					_ = box.Taken(context.WithoutCancel(ctx), sig.ID)
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// deliver hands mail for the runs of a trace on, each once.
func (h *Host) deliver(ctx context.Context, box trace.Mailbox, id string) {
	ticker := time.NewTicker(mailEvery)
	defer ticker.Stop()
	seen := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		mail, err := box.Mail(ctx, id)
		if err != nil {
			continue // the next look may succeed, and the journal says so itself when it is broken
		}
		for _, m := range mail {
			if !seen[m.ID] {
				seen[m.ID] = h.local.Signal(m.Run, m.Signal)
			}
		}
	}
}

// Signal tells a run of this host's something: see [run.Local.Signal].
func (h *Host) Signal(id string, sig synapse.Signal) bool { return h.local.Signal(id, sig) }

// Resume goes on with a request whose process has died. What was done is not done
// again, see [run.Restore]; the agents keep the definition, prompt, tools, model
// and limits that they had, but for restrictions that have been added since. The
// error is [run.ErrEnded] for a request that has ended, and [ErrLive] for one that
// goes on.
func (h *Host) Resume(ctx context.Context, id string) iter.Seq2[*synapse.Event, error] {
	return func(yield func(*synapse.Event, error) bool) {
		at, err := h.checkpoint(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		h.stream(ctx, h.current().program, run.Input{From: at})(yield)
	}
}

// Past returns the events that the journal has of a request now.
func (h *Host) Past(ctx context.Context, id string) iter.Seq2[*synapse.Event, error] {
	past, err := trace.Collect(h.journal.Events(ctx, trace.Query{Trace: id}))
	if err != nil {
		return func(yield func(*synapse.Event, error) bool) { yield(nil, err) }
	}
	return trace.Of(past...)
}

// checkpoint reads where a trace was cut off.
func (h *Host) checkpoint(ctx context.Context, id string) (*run.Checkpoint, error) {
	if h.IsLive(id) {
		return nil, fmt.Errorf("resume trace %s: %w", id, ErrLive)
	}
	var before *run.State
	for s, err := range h.journal.Traces(ctx, trace.TraceQuery{Trace: id}) {
		if err != nil {
			return nil, err
		}
		if s.After == "" {
			continue
		}
		if before, err = h.conversation(ctx, s.After); err != nil {
			return nil, err
		}
	}
	at, err := run.Restore(h.journal.Events(ctx, trace.Query{Trace: id}), func(id string) iter.Seq2[*synapse.Event, error] {
		return h.history(ctx, id)
	}, before)
	if err != nil {
		return nil, err
	}
	if box, ok := h.journal.(trace.Mailbox); ok {
		var taken []string // by the process that died, just before it could say so
		for e, err := range h.journal.Events(ctx, trace.Query{Trace: id, Kinds: []synapse.EventKind{synapse.KindSignalled}}) {
			if err != nil {
				return nil, err
			}
			if sig := e.Body.(*synapse.Signalled); sig.ID != "" {
				taken = append(taken, sig.ID)
			}
		}
		if err := box.Taken(ctx, taken...); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// conversation folds what was said up to the end of a trace.
func (h *Host) conversation(ctx context.Context, id string) (*run.State, error) {
	return Conversation(ctx, h.journal, id)
}

// Conversation reads what was said up to the end of a request, from its beginning
// in an earlier one.
func Conversation(ctx context.Context, j trace.Journal, id string) (*run.State, error) {
	var chain []string
	for next := id; next != ""; {
		if len(chain) > maxChain {
			return nil, fmt.Errorf("the conversation of trace %s has no beginning", id)
		}
		chain = append(chain, next)
		var sum *trace.Summary
		for s, err := range j.Traces(ctx, trace.TraceQuery{Trace: next}) {
			if err != nil {
				return nil, err
			}
			sum = s
		}
		if sum == nil {
			return nil, fmt.Errorf("the conversation of trace %s needs trace %s, which is not in the journal", id, next)
		}
		next = sum.After
	}
	var st *run.State
	for _, id := range slices.Backward(chain) {
		var err error
		if st, err = run.FoldAfter(st, j.Events(ctx, trace.Query{Trace: id, Run: id}), id); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// maxChain bounds how many requests a conversation has: a chain that is longer
// runs in a circle.
const maxChain = 100_000

// IsLive reports whether a request goes on in some process.
func (h *Host) IsLive(id string) bool { return isLive(h.liveDir, id) }

// IsLive reports whether a request goes on in some process of the user's.
func IsLive(opt Options, id string) bool {
	state := stateDir(opt)
	return state != "" && isLive(filepath.Join(state, liveFolder), id)
}

// liveFolder has a locked file for each request that goes on.
const liveFolder = "live"

// claim takes a trace for this process until release is called. The lock goes with
// the process, however that ends. Without a directory there is nobody to share
// with.
func claim(dir, id string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("claim trace %s: %w", id, err)
	}
	path := filepath.Join(dir, liveName(id))
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("claim trace %s: %w", id, err)
		}
		if err := lockFile(f); err != nil {
			f.Close()
			if errors.Is(err, errLocked) {
				return nil, fmt.Errorf("trace %s: %w", id, ErrLive)
			}
			return nil, fmt.Errorf("claim trace %s: %w", id, err)
		}
		// Whoever released it in between has removed the file that is locked now.
		if held, err := f.Stat(); err == nil {
			if there, err := os.Stat(path); err == nil && os.SameFile(held, there) {
				return func() { os.Remove(path); f.Close() }, nil
			}
		}
		f.Close()
	}
}

func isLive(dir, id string) bool {
	if dir == "" {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, liveName(id)), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return lockFile(f) != nil
}

// liveName is a trace's file name: an id may come from a program and hold anything.
func liveName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '-':
			return r
		}
		return '_'
	}, id) + ".lock"
}
