//go:build unix

package imaging

import "syscall"

// limitChild limits the CPU time of a child, in case its parent has died.
func limitChild() {
	seconds := uint64(2 * childTime.Seconds())
	// Without this limit the parent's time-out is the only guard.
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}
