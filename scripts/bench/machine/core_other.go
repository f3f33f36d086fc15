//go:build !linux

package machine

import (
	"errors"
	"time"
)

var errLinux = errors.New("this benchmark needs Linux: it keeps processes on cores")

// StayOn does nothing: the system puts the process where it likes.
func StayOn(int) error { return nil }

// ExecOn needs Linux.
func ExecOn(int, string, []string) error { return errLinux }

// MapHuge returns memory as it comes.
func MapHuge(size int) (memory []byte, release func() error, err error) {
	return make([]byte, size), func() error { return nil }, nil
}

// ThreadTime needs Linux.
func ThreadTime() time.Duration { panic(errLinux) }
