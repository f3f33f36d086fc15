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
	// memoryShare is the part of the system's memory, in per cent, that events may take by
	// default. The models, requests and the page cache need the rest.
	memoryShare = 75
	// memoryInterval is the longest time that a measurement is used. The registrations of
	// that time take far less than what is left.
	memoryInterval = 250 * time.Millisecond
	// memoryFileMax is the most bytes that are read of a system file.
	memoryFileMax = 1 << 16
)

// memory refuses further events before the node runs out of memory.
type memory struct {
	budget atomic.Int64 // bytes
	used   func() int64 // measures the bytes that events take

	// next is the time of the next measurement in nanoseconds since start. full is the
	// result of the last one.
	start time.Time
	next  atomic.Int64
	full  atomic.Bool
}

// newMemory returns a memory with a budget in bytes; 0 is the default.
func newMemory(budget int64, used func() int64) *memory {
	m := &memory{used: used, start: time.Now()}
	m.setBudget(budget)
	return m
}

// setBudget sets the budget in bytes; 0 is the default.
func (m *memory) setBudget(bytes int64) {
	if bytes == 0 {
		bytes = SystemMemory() / 100 * memoryShare
	}
	m.budget.Store(bytes)
}

// Full reports whether events take the whole budget.
func (m *memory) Full() bool {
	now := int64(time.Since(m.start))
	if next := m.next.Load(); now >= next && m.next.CompareAndSwap(next, now+int64(memoryInterval)) {
		m.full.Store(m.used() >= m.budget.Load())
	}
	return m.full.Load()
}

// SystemMemory returns the bytes that this process may take: the smaller of the control
// group's limit and the machine's memory. It returns math.MaxInt64 when both are unknown.
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

// parseLimit parses a control group's limit. "max" is no limit.
func parseLimit(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil && n > 0
}

// parseTotal parses the line "MemTotal: n kB".
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
