//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package imaging

import "os"

// Without locks nobody can tell whether another process uses a folder.
const canLock = false

// lockFolder opens a folder that this process has just made.
func lockFolder(path string) (*os.File, error) { return os.Open(path) }
