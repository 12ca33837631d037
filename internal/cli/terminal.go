package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/synapse-agents/synapse/internal/display"
)

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isInput reports whether a stream is a pipe, a socket or a file, which has an
// end, rather than a terminal or a device.
func isInput(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return stream != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// isFile reports whether a stream is a regular file: what is in it is there.
func isFile(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// colors reports whether escapes may be written to the stream.
func (a *app) colors(stream io.Writer) bool {
	return isTerminal(stream) && !a.flags.noColor && a.p.env("NO_COLOR") == "" && a.p.env("TERM") != "dumb"
}

// size returns the terminal's columns and rows.
func size(stream io.Writer) (columns, rows int) {
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w, h
		}
	}
	return 80, 24
}

// clean takes out of a text what a terminal would obey.
func clean(s string) string { return display.Clean(s) }

// cleanLine is clean for what must stay on one line.
func cleanLine(s string) string { return display.Line(s) }
