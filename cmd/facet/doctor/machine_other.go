//go:build !linux

package doctor

import (
	"os"
	"time"
)

// datasync flushes a file to the disk.
func datasync(f *os.File) error { return f.Sync() }

// The others are not known on this system.
func fileSystem(string) (kind string, size uint64)              { return "", 0 }
func hugePages() string                                         { return "" }
func clockError() (off time.Duration, synchronised, known bool) { return 0, false, false }
func filesMax(int) (uint64, bool)                               { return 0, false }
func portOwner(string, int) (pid int, name string)              { return 0, "" }
