package limits

import (
	"context"
	"fmt"
	"log/slog"

	"facet/node/loop"
)

// Config configures a node's limits.
type Config struct {
	// Memory is the most bytes that events may take; 0 is three quarters of SystemMemory.
	Memory int64
	// Used returns how many bytes events take.
	Used func() int64
	// DiskReserve is how many bytes of the file system of Dir stay free; 0 is 5 % of it,
	// at least 1 GiB.
	DiskReserve int64
	Dir         string
	Log         *slog.Logger
}

// Limits reports whether a node has room for further events (router.Memory). It is safe for
// concurrent use.
type Limits struct {
	*loop.Loop
	memory *memory
	space  *space
	log    *slog.Logger
}

// New returns the limits of a node. Run measures the disk.
func New(c Config) *Limits {
	return &Limits{loop.New("limits"), newMemory(c.Memory, c.Used), newSpace(c.DiskReserve, c.Dir), c.Log}
}

// Run measures the disk each second until ctx ends.
func (l *Limits) Run(ctx context.Context) {
	l.Every(ctx, spaceInterval, func(context.Context) error { return l.space.step(l.log) })
}

// Full reports whether memory or disk is too short for further events.
func (l *Limits) Full() bool { return l.DiskFull() || l.memory.Full() }

// DiskFull reports whether too little of the disk is free for further events.
func (l *Limits) DiskFull() bool { return l.space.full.Load() }

// Alarms describes a full disk, for operators.
func (l *Limits) Alarms() []string {
	if !l.DiskFull() {
		return nil
	}
	return []string{fmt.Sprintf("the disk is nearly full, with %d MiB free: registrations are refused below the %d MiB of disk-reserve",
		l.space.free.Load()>>20, l.Reserve()>>20)}
}

// Budget returns the most bytes that events may take.
func (l *Limits) Budget() int64 { return l.memory.budget.Load() }

// Change sets the memory that events may take and the bytes of the disk that stay free, as Config
// has them.
func (l *Limits) Change(memory, diskReserve int64) {
	l.memory.setBudget(memory)
	l.space.reserve.Store(diskReserve)
}

// Reserve returns how many bytes of the disk stay free.
func (l *Limits) Reserve() uint64 { return l.space.kept(l.space.size.Load()) }

// MeasureBy replaces the measurement of the disk by look, for tests.
func (l *Limits) MeasureBy(look func() (free, size uint64, err error)) { l.space.setLook(look) }
