package tool

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// A running command: its processes, and what they print.
type running struct {
	cmd        *exec.Cmd
	group      *group
	out        *output
	exited     chan struct{} // closed when the shell itself has ended
	drained    chan struct{} // closed when nobody can print any more
	pipe       *os.File
	started    time.Time
	took       time.Duration
	state      *os.ProcessState // set when exited is closed
	leftBehind bool
}

// startCommand starts cmd in a process group of its own, with stdin empty and
// both outputs in one pipe, in the order in which they are printed.
func startCommand(cmd *exec.Cmd, emit func(string)) (*running, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	group := prepareGroup(cmd)
	cmd.Stdout, cmd.Stderr = w, w
	run := &running{
		cmd: cmd, group: group, pipe: r, started: time.Now(),
		out:    &output{emit: emit},
		exited: make(chan struct{}), drained: make(chan struct{}),
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	w.Close() // the command's copy is the one that counts
	group.started(cmd.Process.Pid)
	go func() {
		defer close(run.drained)
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			run.out.write(buf[:n])
			if err != nil {
				return // EOF, or finish lost patience
			}
		}
	}()
	go func() {
		defer close(run.exited)
		// The outputs are files, so Wait waits for the shell and for nothing
		// that it left behind. How it ended is in the state, not the error.
		_ = cmd.Wait()
		run.state = cmd.ProcessState
		run.took = time.Since(run.started)
	}()
	return run, nil
}

// stop asks the whole group to end, and makes it when it has not after a grace
// period. It returns when the shell has ended.
func (r *running) stop() {
	r.group.terminate()
	timer := time.NewTimer(executeGrace)
	defer timer.Stop()
	select {
	case <-r.exited:
	case <-timer.C:
	}
	r.group.kill()
	<-r.exited
}

// finish kills what the shell has left behind and collects the last output.
// A process that holds the pipe open out of our reach can't make it hang.
func (r *running) finish() {
	r.leftBehind = r.group.kill()
	// Of what is in the pipe nothing is lost: reading it takes no time.
	_ = r.pipe.SetReadDeadline(time.Now().Add(executeGrace))
	<-r.drained
	r.pipe.Close()
	r.out.close()
}
