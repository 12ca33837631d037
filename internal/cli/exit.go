package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/synapse-agents/synapse"
	"github.com/synapse-agents/synapse/host"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3   // a limit was reached
	exitChildFailed = 4   // a child failed, and the answer says so
	exitUnsupported = 5   // the model at hand can't do this
	exitDiffers     = 6   // a replay is not what was recorded
	exitUnavailable = 75  // the provider is out of service: worth retrying
	exitConfig      = 78  // a setting, a definition or a key
	exitTimedOut    = 124 // the time limit
	exitInterrupted = 130 // SIGINT
	exitTerminated  = 143 // SIGTERM
)

// A codedError ends the program with its code. A quiet one has said what there
// is to say already.
type codedError struct {
	code  int
	err   error
	quiet bool
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// exit prints an error and returns the exit code for it.
func (a *app) exit(ctx context.Context, err error) int {
	code := exitDone
	var coded *codedError
	switch {
	case err == nil:
	case errors.As(err, &coded):
		code = coded.code
	case host.IsConfig(err):
		code = exitConfig
	default:
		code = exitFailed
	}
	if s, ok := context.Cause(ctx).(signalError); ok && err != nil {
		code = s.code()
		if errors.Is(err, context.Canceled) {
			err = s
		}
	}
	if err != nil && (coded == nil || !coded.quiet) {
		fmt.Fprintln(a.p.Stderr, "synapse:", clean(err.Error()))
	}
	return code
}

// codeOf maps the end of the main agent's run to an exit code.
func codeOf(out synapse.Outcome) int {
	switch out.Status {
	case synapse.StatusCompleted:
		if out.Failed > 0 {
			return exitChildFailed
		}
		return exitDone
	case synapse.StatusPartial:
		return exitPartial
	case synapse.StatusTimedOut:
		return exitTimedOut
	case synapse.StatusCancelled:
		return exitInterrupted
	}
	switch out.ErrorKind {
	case synapse.ErrorUnsupported:
		return exitUnsupported
	case synapse.ErrorAuth, synapse.ErrorNotFound:
		return exitConfig
	case synapse.ErrorRateLimit, synapse.ErrorOverloaded, synapse.ErrorServer, synapse.ErrorNetwork, synapse.ErrorStream, synapse.ErrorMalformed:
		return exitUnavailable
	}
	return exitFailed
}
