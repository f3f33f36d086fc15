// Package process handles operating system processes for facet. It has pid files
// that prove which process runs on a folder, child processes that die with their
// parent, and the stopping of processes that are certainly ours.
//
// A pid file is locked by the process that it names (POSIX record locks, fcntl
// F_SETLK). Only the lock counts; the text is for people. A lock ends with its
// process in any case, and the kernel reports the holder. So a process number that
// was reused is never taken for ours.
//
// It also tells whether a file is a terminal.
//
// The package imports the standard library only.
package process
