package process

import "syscall"

// prSetDumpable is PR_SET_DUMPABLE of prctl(2).
const prSetDumpable = 4

// BarDumps keeps the memory of this process from the disk and from other processes of its
// user: the system writes no core dump, pipes none to a program, and lets only the
// superuser trace the process. Processes that it starts get the limit of core dumps, too.
// A process may do this to itself always.
func BarDumps() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0)
}
