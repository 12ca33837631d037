// Package tui is the screen: one Bubble Tea model that reads the events of a
// conversation, draws them, and sends the user's messages and answers. It knows
// nothing of how requests are run or where settings are kept. What it needs of
// that it declares as small interfaces and functions in [Options], and a command
// whose interface is missing does not exist.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
)

// A Terminal is where the screen is shown.
type Terminal struct {
	In      io.Reader
	Out     io.Writer
	Environ []string // TERM and the like are looked up in it
}

// Run shows the screen until the user leaves it or the context ends. It gives the
// terminal back as it was, whatever happens, and returns what there is to say
// about going on later.
func Run(ctx context.Context, t Terminal, opt Options) (goodbye string, err error) {
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	m := New(requests, opt)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(t.Environ), tea.WithoutSignalHandler(), tea.WithFPS(60))
	_, err = p.Run()
	if opt.Questions != nil {
		opt.Questions.close()
	}
	cancel()
	m.requests.Wait() // its end is written down, and nothing of it is left behind
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && !errors.Is(err, tea.ErrProgramKilled):
		return "", fmt.Errorf("the screen: %w", err)
	}
	if opt.Goodbye != nil && m.said {
		goodbye = opt.Goodbye(m.conv.ID)
	}
	return goodbye, nil
}
