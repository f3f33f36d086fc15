// Package launch starts programs, and clusters of facet serve, for tests and tools.
package launch

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"facet/internal/testkit"
)

const (
	// stopTimeout is the longest that a process may take to end after SIGTERM.
	stopTimeout = 90 * time.Second
	// tailBytes is how much of a log Tail returns.
	tailBytes = 6000
)

// Process is a running program. Its methods are safe for concurrent use.
type Process struct {
	Out testkit.Buffer // its output, unless the command names another place

	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
}

// Start starts a command by start: cmd.Start, or the Start of a process.Starter, whose
// processes die with this one.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = &p.Out, &p.Out
	}
	if err := start(cmd); err != nil {
		return nil, err
	}
	go func() { // ends with the program
		_ = cmd.Wait() // its state has the exit status
		close(p.exited)
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits until the process has ended, and returns its exit status.
func (p *Process) Wait() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// EndsWithin reports whether the process ends by itself within d.
func (p *Process) EndsWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// Signal sends a signal. It does nothing if the process has ended.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// End sends a signal that ends the process, and waits for the end. It reports whether
// the process has ended by the signal; otherwise it has killed the process.
func (p *Process) End(s syscall.Signal) bool {
	p.Signal(s)
	ended := p.EndsWithin(stopTimeout)
	p.Signal(syscall.SIGKILL)
	<-p.exited
	return ended
}

// Tail returns the end of a log.
func Tail(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-tailBytes):])
}
