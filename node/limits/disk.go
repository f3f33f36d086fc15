package limits

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The part of the data directory's file system that registrations leave free by default.
// The log, snapshots and deletions need it.
const (
	reserveShare = 5 // per cent
	reserveMin   = 1 << 30
	// spaceInterval is how often the free space is measured.
	spaceInterval = time.Second
)

// space refuses further events before the disk is full. A group whose log can't be written
// is out of service, and not even a deletion is possible then.
type space struct {
	reserve atomic.Int64 // 0: by the size of the file system
	// look measures. It may hang, so only step calls it.
	look atomic.Pointer[func() (free, size uint64, err error)]

	// full, free and size have the result of the last measurement.
	full       atomic.Bool
	free, size atomic.Uint64
	failed     bool // whether the last step failed; used by step alone
}

// newSpace returns the space of dir's file system. reserve is in bytes; 0 is the default.
func newSpace(reserve int64, dir string) *space {
	s := &space{}
	s.reserve.Store(reserve)
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

// kept returns how many bytes stay free of a file system of size bytes.
func (s *space) kept(size uint64) uint64 {
	if r := s.reserve.Load(); r > 0 {
		return uint64(r)
	}
	return max(size/100*reserveShare, reserveMin)
}

// Room returns how many bytes of dir's file system are free, and below how many a node with the
// default reserve refuses registrations.
func Room(dir string) (free, reserve uint64, err error) {
	s := newSpace(0, dir)
	_, err = s.measure()
	return s.free.Load(), s.kept(s.size.Load()), err
}

// measure takes a measurement and reports whether full has changed.
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
		log.Warn("the free space of the disk can't be measured", "err", err)
	case changed && s.full.Load():
		log.Error("the disk is nearly full: registrations are refused", "free", s.free.Load())
	case changed:
		log.Info("the disk has space again: registrations are accepted", "free", s.free.Load())
	}
	s.failed = err != nil
	return err
}
