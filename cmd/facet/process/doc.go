// Package process handles operating system processes for facet. It has pid files
// that prove which process runs on a folder and child processes that die with their
// parent. It stops a process only when it is certain that the process is facet's.
//
// A pid file is locked by the process that it names (POSIX record locks, fcntl
// F_SETLK). Only the lock counts; the text is for people. The lock ends with its
// process in any case, and the kernel reports which process holds it. So a process
// number that was reused is never taken for facet's.
//
// It also reports whether a file is a terminal.
//
// The package imports the standard library only.
package process
