package limits

import (
	"context"
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

// Space says no to further events before the disk is full: a group whose log can't
// be written is out of service, and nothing can be deleted from it either.
type Space struct {
	reserve int64 // 0: by the size of the file system
	// look measures; it may hang, and is not called by those who ask.
	look atomic.Pointer[func() (free, size uint64, err error)]

	full atomic.Bool
	// free and size are the last measurement's.
	free, size atomic.Uint64
}

// NewSpace returns the Space of the file system of dir. reserve is in bytes, 0 for the
// default.
func NewSpace(reserve int64, dir string) *Space {
	s := &Space{reserve: reserve}
	s.SetLook(func() (uint64, uint64, error) {
		var system unix.Statfs_t
		if err := unix.Statfs(dir, &system); err != nil {
			return 0, 0, fmt.Errorf("measure the free space of the data directory: %w", err)
		}
		block := uint64(system.Bsize)
		return system.Bavail * block, system.Blocks * block, nil
	})
	return s
}

// SetLook replaces the measurement: tests do.
func (s *Space) SetLook(look func() (free, size uint64, err error)) { s.look.Store(&look) }

// kept gives how much stays free of a file system of size bytes.
func (s *Space) kept(size uint64) uint64 {
	if s.reserve > 0 {
		return uint64(s.reserve)
	}
	return max(size/100*reserveShare, reserveMin)
}

// measure takes a measurement. It tells whether Full has changed.
func (s *Space) measure() (changed bool, err error) {
	free, size, err := (*s.look.Load())()
	if err != nil {
		return false, err
	}
	s.free.Store(free)
	s.size.Store(size)
	full := free < s.kept(size)
	return s.full.Swap(full) != full, nil
}

// Run measures until ctx ends.
func (s *Space) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	failed := false
	for {
		changed, err := s.measure()
		switch {
		case err != nil && !failed:
			log.Warn("whether the disk is full is not known", "err", err)
		case changed && s.full.Load():
			log.Error("the disk is nearly full: registrations are refused", "free", s.free.Load())
		case changed:
			log.Info("the disk has space again: registrations are taken", "free", s.free.Load())
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Full tells whether too little of the disk is free for further events.
func (s *Space) Full() bool { return s.full.Load() }

// Reserve gives how much of the disk stays free.
func (s *Space) Reserve() uint64 { return s.kept(s.size.Load()) }

// Alarm says in words that the disk is full, or nothing.
func (s *Space) Alarm() []string {
	if !s.Full() {
		return nil
	}
	return []string{fmt.Sprintf("the disk is nearly full, with %d MiB free: registrations are refused", s.free.Load()>>20)}
}

// Room is what further events need.
type Room struct {
	Memory *Memory
	Space  *Space
}

// Full tells whether there is no memory or no disk for further events (router.Memory).
func (r Room) Full() bool { return r.Space.Full() || r.Memory.Full() }
