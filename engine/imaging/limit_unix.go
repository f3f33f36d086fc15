//go:build unix

package imaging

import "syscall"

// limitChild ends a child that nobody ended, should its parent have died.
func limitChild() {
	seconds := uint64(2 * childTime.Seconds())
	// A limit that can't be set is one guard less of two.
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}
