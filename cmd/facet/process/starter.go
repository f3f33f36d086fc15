package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// Starter starts child processes that get SIGTERM when this process dies (on Linux;
// elsewhere they continue). The kernel sends the signal when the *thread* that
// started the child ends. So one goroutine that keeps its thread starts them all.
type Starter struct {
	requests chan request // unbuffered: Start waits until the goroutine is free
	wg       sync.WaitGroup
	closing  sync.Once
}

type request struct {
	cmd    *exec.Cmd
	answer chan error
}

// OpenStarter starts the goroutine; Close ends it.
func OpenStarter() *Starter {
	s := &Starter{requests: make(chan request)}
	s.wg.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			r.answer <- r.cmd.Start()
		}
	})
	return s
}

// Start starts cmd in a session of its own, so that a key pressed at the
// terminal reaches this process alone. The caller waits for the child.
func (s *Starter) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	r := request{cmd: cmd, answer: make(chan error, 1)}
	s.requests <- r
	return <-r.answer
}

// Close ends the goroutine and its thread. Children that still run get SIGTERM.
// Start must not be called any more.
func (s *Starter) Close() {
	s.closing.Do(func() { close(s.requests) })
	s.wg.Wait()
}
