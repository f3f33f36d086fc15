package process

import "golang.org/x/sys/unix"

// undump bars core dumps, and other processes of the same user from this one's memory.
func undump() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
