package limits

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// memoryShare is the part of the system's memory, in per cent, that events may take
	// unless the operator says otherwise: the models, requests and the page cache need
	// the rest.
	memoryShare = 75
	// memoryEvery is how old a measurement may be. What is admitted meanwhile is far
	// less than what is left.
	memoryEvery = 250 * time.Millisecond
	// memoryFileMax bounds what is read of a file of the system.
	memoryFileMax = 1 << 16
)

// memory says no to further events before the node runs out of memory.
type memory struct {
	budget int64
	// used measures what the events take.
	used func() int64

	// next is when to measure again, in nanoseconds since start; full is the last
	// measurement's.
	start time.Time
	next  atomic.Int64
	full  atomic.Bool
}

// newMemory returns a memory with a budget in bytes, 0 for the default, of which used
// returns how many are taken.
func newMemory(budget int64, used func() int64) *memory {
	if budget == 0 {
		budget = SystemMemory() / 100 * memoryShare
	}
	return &memory{budget: budget, used: used, start: time.Now()}
}

// Full reports whether events take all that they may (router.Memory).
func (m *memory) Full() bool {
	now := int64(time.Since(m.start))
	if next := m.next.Load(); now >= next && m.next.CompareAndSwap(next, now+int64(memoryEvery)) {
		m.full.Store(m.used() >= m.budget)
	}
	return m.full.Load()
}

// SystemMemory returns the memory that this process may take: the control group's limit or
// else the machine's memory. It returns
// math.MaxInt64 where the system does not say.
func SystemMemory() int64 {
	least := int64(math.MaxInt64)
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n, ok := parseLimit(readSome(name)); ok {
			least = min(least, n)
		}
	}
	if n, ok := parseTotal(readSome("/proc/meminfo")); ok {
		least = min(least, n)
	}
	return least
}

func readSome(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil // another system, or another kind of control group
	}
	defer f.Close()
	b := make([]byte, memoryFileMax)
	n, _ := f.Read(b)
	return b[:n]
}

// parseLimit reads a control group's limit; "max" is none.
func parseLimit(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil && n > 0
}

// parseTotal reads the line "MemTotal: n kB".
func parseTotal(b []byte) (n int64, ok bool) {
	for line := range bytes.Lines(b) {
		rest, found := bytes.CutPrefix(line, []byte("MemTotal:"))
		if !found {
			continue
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
		return n << 10, err == nil && n > 0 && n < math.MaxInt64>>10
	}
	return 0, false
}
