// Package process owns what facet knows of operating system processes: a pid file
// that proves who runs on a folder, child processes that die with their parent,
// and the stopping of processes that are certainly ours.
//
// A pid file is locked by the process that it names (POSIX record locks, fcntl
// F_SETLK). The lock is the truth and the text is for people: a lock ends with its
// process however that died, and the kernel tells who holds it, so a number that
// was given to a stranger meanwhile is never taken for ours.
//
// The package imports the standard library only.
package process
