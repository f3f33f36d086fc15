package imaging

import "golang.org/x/sys/unix"

// barTracing lets only the superuser trace this process and read its memory.
func barTracing() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
