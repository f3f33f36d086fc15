//go:build unix && !linux

package process

import "syscall"

// BarDumps keeps the system from writing core dumps of this process and of processes that
// it starts.
func BarDumps() { _ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) }
