//go:build unix

package engine

import (
	"syscall"
	"unsafe"
)

// locked is memory that the system may not write to swap. It has nothing where the
// system refuses: RLIMIT_MEMLOCK bounds what a process may lock.
type locked struct{ pix []uint8 }

// hold locks pix and unlocks what was locked before. Its memory must be pix's alone.
func (l *locked) hold(pix []uint8) {
	if unsafe.SliceData(l.pix) == unsafe.SliceData(pix) && len(l.pix) == len(pix) {
		return
	}
	l.release()
	if len(pix) > 0 && syscall.Mlock(pix) == nil {
		l.pix = pix
	}
}

// release unlocks the memory.
func (l *locked) release() {
	if l.pix != nil {
		_ = syscall.Munlock(l.pix)
		l.pix = nil
	}
}
