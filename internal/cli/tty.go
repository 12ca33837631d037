package cli

import (
	"io"
	"os"
	"sync"
)

// A tty is the terminal that the user types at, nil where there is none. While a
// live view is drawn it does not echo: what is typed would shift the lines that
// the view draws over. It still gets to whoever reads next.
type tty struct {
	file *os.File

	mu     sync.Mutex
	speaks func() // gives the echo back; nil while it is there
}

func newTTY(in io.Reader) *tty {
	f, ok := in.(*os.File)
	if !ok || !isTerminal(in) {
		return nil
	}
	return &tty{file: f}
}

// hush turns the echo off, where it is on.
func (t *tty) hush() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if speaks := echoOff(t.file); speaks != nil {
		t.speaks = speaks
	}
}

// speak turns it on again. It may be called at any time, any number of times.
func (t *tty) speak() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.speaks != nil {
		t.speaks()
		t.speaks = nil
	}
}

// forget throws away what has been typed and not read: it was not meant as the
// answer to a question that had not been asked yet.
func (t *tty) forget() {
	if t != nil {
		discardInput(t.file)
	}
}

// onScreen reports whether what is written to the stream may move about on the
// screen: it is a terminal whose foreground the process is in.
func onScreen(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && inForeground(f)
}
