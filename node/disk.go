package node

import (
	"context"
	"fmt"
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
}

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

// kept gives how much stays free of a file system of size bytes.
func (s *space) kept(size uint64) uint64 {
	if s.reserve > 0 {
		return uint64(s.reserve)
	}
	return max(size/100*reserveShare, reserveMin)
}

// measure takes a measurement. It tells whether Full has changed.
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

// watchSpace measures until ctx ends.
func (n *Node) watchSpace(ctx context.Context) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	failed := false
	for {
		changed, err := n.space.measure()
		switch {
		case err != nil && !failed:
			n.log.Warn("whether the disk is full is not known", "err", err)
		case changed && n.space.full.Load():
			n.log.Error("the disk is nearly full: registrations are refused", "free", n.space.free.Load())
		case changed:
			n.log.Info("the disk has space again: registrations are taken", "free", n.space.free.Load())
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// room is what further events need.
type room struct {
	memory *memory
	space  *space
}

// Full tells whether there is no memory or no disk for further events (router.Memory).
func (r room) Full() bool { return r.space.full.Load() || r.memory.Full() }

// alarms says in words what is damaged or full on this node.
func (n *Node) alarms() []string {
	list := append(n.groups.outages.alarms(), n.checks.alarms()...)
	if n.space.full.Load() {
		list = append(list, fmt.Sprintf("the disk is nearly full, with %d MiB free: registrations are refused", n.space.free.Load()>>20))
	}
	return list
}
