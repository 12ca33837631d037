package run

import "github.com/synapse-agents/synapse"

// heed takes what somebody has told the run since its last turn. A run that is
// told to pause waits here. The error is that the run is ending.
func (l *loop) heed() error {
	next := l.rt.Signal()
	for l.paused || next.Ready() {
		var sig synapse.Signal
		if err := next.Get(&sig); err != nil {
			return err
		}
		l.rt.Emit(&synapse.Signalled{Signal: sig})
		switch sig.Kind {
		case synapse.SignalPause:
			l.paused = true
		case synapse.SignalContinue:
			l.paused = false
		case synapse.SignalSend:
			l.paused = false
			l.added = append(l.added, synapse.UserText(sig.Text))
		}
	}
	return nil
}

// spokenTo reports whether somebody has told the run something that it has not
// heeded. A run does not end over that.
func (l *loop) spokenTo() bool { return !l.cut && l.rt.Signal().Ready() }
