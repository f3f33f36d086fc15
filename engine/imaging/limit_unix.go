//go:build unix

package imaging

import "syscall"

// limitChild limits the CPU time of a child, in case its parent has died. It bars core dumps and
// tracing: a child has a whole photo, and the parent's bar of tracing ends with exec.
func limitChild() {
	seconds := uint64(2 * childTime.Seconds())
	// Without this limit the parent's time-out is the only guard.
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	barTracing()
}
