//go:build !linux

package machine

import (
	"errors"
	"time"
)

var errLinux = errors.New("this benchmark needs Linux: it keeps processes on cores")

// StayOn does nothing: this system chooses the core.
func StayOn(int) error { return nil }

// Exec returns an error, because it needs Linux.
func Exec(string, []string) error { return errLinux }

// ExecOn returns an error, because it needs Linux.
func ExecOn(int, string, []string) error { return errLinux }

// MapHuge returns ordinary memory.
func MapHuge(size int) (memory []byte, release func() error, err error) {
	return make([]byte, size), func() error { return nil }, nil
}

// ThreadTime panics, because it needs Linux.
func ThreadTime() time.Duration { panic(errLinux) }
