package limits

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// What of the data directory's file system stays free of new registrations, unless
// the operator says otherwise: the log, snapshots and deletions need it.
const (
	reserveShare = 5 // per cent
	reserveMin   = 1 << 30
	// spaceEvery is how old a measurement may be.
	spaceEvery = time.Second
)

// space says no to further events before the disk is full: a group whose log can't
// be written is out of service, and nothing can be deleted from it either.
type space struct {
	reserve int64 // 0: by the size of the file system
	// look measures; it may hang, and is not called by those who ask.
	look atomic.Pointer[func() (free, size uint64, err error)]

	full atomic.Bool
	// free and size are the last measurement's.
	free, size atomic.Uint64
	failed     bool // the last step did; used by step alone
}

// newSpace returns the space of the file system of dir. reserve is in bytes, 0 for the
// default.
func newSpace(reserve int64, dir string) *space {
	s := &space{reserve: reserve}
	s.setLook(func() (uint64, uint64, error) {
		var system unix.Statfs_t
		if err := unix.Statfs(dir, &system); err != nil {
			return 0, 0, fmt.Errorf("measure the free space of the data directory: %w", err)
		}
		block := uint64(system.Bsize)
		return system.Bavail * block, system.Blocks * block, nil
	})
	return s
}

func (s *space) setLook(look func() (free, size uint64, err error)) { s.look.Store(&look) }

// kept returns how much stays free of a file system of size bytes.
func (s *space) kept(size uint64) uint64 {
	if s.reserve > 0 {
		return uint64(s.reserve)
	}
	return max(size/100*reserveShare, reserveMin)
}

// measure takes a measurement. changed reports whether full has.
func (s *space) measure() (changed bool, err error) {
	free, size, err := (*s.look.Load())()
	if err != nil {
		return false, err
	}
	s.free.Store(free)
	s.size.Store(size)
	full := free < s.kept(size)
	return s.full.Swap(full) != full, nil
}

// step takes a measurement and logs what has changed.
func (s *space) step(log *slog.Logger) error {
	changed, err := s.measure()
	switch {
	case err != nil && !s.failed:
		log.Warn("whether the disk is full is not known", "err", err)
	case changed && s.full.Load():
		log.Error("the disk is nearly full: registrations are refused", "free", s.free.Load())
	case changed:
		log.Info("the disk has space again: registrations are taken", "free", s.free.Load())
	}
	s.failed = err != nil
	return err
}
