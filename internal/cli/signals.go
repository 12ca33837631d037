package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string {
	if e.signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

func (e signalError) code() int {
	if e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// interrupts says what SIGINT and SIGTERM do: the first ends the program's
// context, so that everything stops in good order; the next ends the process at
// once, for when that takes too long. While a conversation's request runs, the
// first SIGINT stops just that.
type interrupts struct {
	restore func() // gives the terminal back before the process ends at once

	mu      sync.Mutex
	request func() // stops the request that is going on, if that is what SIGINT means now
}

// watch returns a context that the signals end, and a function that ends the
// watch.
func (i *interrupts) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				switch {
				case s == os.Interrupt && i.stopRequest():
				case ctx.Err() == nil:
					cancel(signalError{s})
				default:
					i.restore()
					os.Exit(signalError{s}.code())
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// stopRequest stops the request that is going on. It reports whether there was
// one that has not been stopped yet.
func (i *interrupts) stopRequest() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.request == nil {
		return false
	}
	i.request()
	i.request = nil
	return true
}

// during returns a context for one request, which SIGINT ends instead of the
// program's, and a function to call after it.
func (i *interrupts) during(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.request = func() { cancel(signalError{os.Interrupt}) }
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.request = nil
		i.mu.Unlock()
		cancel(nil)
	}
}
