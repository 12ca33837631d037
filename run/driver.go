package run

import (
	"iter"

	"github.com/synapse-agents/synapse"
)

// drive runs a loop as a coroutine of a goroutine of its own, the driver, and
// calls ended with the outcome. A call that the loop waits for alone runs in the
// driver: the loop has nothing else to do meanwhile, and to hand a call to
// another goroutine and back costs more than most turns. Calls that run beside
// others go to workers.
//
// A call that has to be given up takes its goroutine with it, and the loop goes
// on with another driver.
func (r *localRun) drive(in Start, ended func(synapse.Outcome)) {
	r.step, _ = iter.Pull(func(yield func(*future) bool) {
		growStack()
		r.inline = yield
		r.loop(in)
	})
	r.ended = ended
	growStack()
	r.steps()
}

// steps is the driver: it lets the loop go on until it waits for a call, and runs
// that.
func (r *localRun) steps() {
	mine := true
	defer func() {
		if mine { // a tool has ended this goroutine: the loop gets another one
			go r.steps()
		}
	}()
	for {
		f, more := r.step()
		if !more {
			mine = false
			r.ended(r.out)
			return
		}
		if !f.state.CompareAndSwap(futureOpen, futureDriven) {
			continue // given up before it began
		}
		if mine = f.run(); !mine {
			return
		}
	}
}

// hold keeps a call back for as long as it may turn out that the loop waits for
// it alone.
func (r *localRun) hold(f *future) {
	r.dispatch()
	r.held = f
}

// dispatch gives the call that was held back to a worker: the loop goes on, or
// waits for others too.
func (r *localRun) dispatch() {
	if f := r.held; f != nil {
		r.held = nil
		r.t.do(f)
	}
}

// await waits for a future. The driver runs it if it was held back.
func (r *localRun) await(f *future) {
	for !f.Ready() {
		if r.held != f {
			r.wait()
			continue
		}
		r.held = nil
		r.inline(f)
	}
}
