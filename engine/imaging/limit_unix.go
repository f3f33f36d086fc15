//go:build unix

package imaging

import "syscall"

// limitChild limits the processor time of a child. It bars core dumps and tracing: a child has a whole
// photo, and the parent's bar of tracing ends with exec.
func limitChild() {
	seconds := uint64(childProcessor.Seconds())
	// Without this limit the child ends with childWall.
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	barTracing()
}
