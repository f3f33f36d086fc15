package limits

import (
	"math"
	"testing"
)

func TestSystemMemoryIsParsed(t *testing.T) {
	t.Parallel()
	f := func(read func([]byte) (int64, bool), text string, want int64, wantOK bool) {
		t.Helper()
		if got, ok := read([]byte(text)); ok != wantOK || ok && got != want {
			t.Errorf("%q: got %d, %v, want %d, %v", text, got, ok, want, wantOK)
		}
	}
	f(parseLimit, "1073741824\n", 1<<30, true)
	f(parseLimit, "max\n", 0, false)
	f(parseLimit, "", 0, false)
	f(parseLimit, "-1\n", 0, false)
	f(parseLimit, "99999999999999999999\n", 0, false)
	f(parseTotal, "MemTotal:       24576 kB\nMemFree:  1 kB\n", 24<<20, true)
	f(parseTotal, "Other: 5 kB\nMemTotal: 1 kB", 1024, true)
	f(parseTotal, "MemFree: 1 kB\n", 0, false)
	f(parseTotal, "MemTotal: x kB\n", 0, false)
	f(parseTotal, "MemTotal: 9223372036854775807 kB\n", 0, false)
	if n := SystemMemory(); n < 64<<20 || n == math.MaxInt64 {
		t.Errorf("this machine has %d bytes of memory", n)
	}
}

func FuzzSystemMemory(f *testing.F) {
	f.Add([]byte("MemTotal: 24576 kB\n"))
	f.Add([]byte("max\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, read := range map[string]func([]byte) (int64, bool){"limit": parseLimit, "total": parseTotal} {
			if n, ok := read(b); ok && n <= 0 {
				t.Errorf("%s of %q: %d", name, b, n)
			}
		}
	})
}

func TestMemoryIsFullAtItsBudget(t *testing.T) {
	t.Parallel()
	used, asked := int64(99), 0
	m := newMemory(100, func() int64 { asked++; return used })
	f := func(now int64, want bool) {
		t.Helper()
		used = now
		m.next.Store(0) // the measurement is old
		for range 3 {
			if got := m.Full(); got != want {
				t.Errorf("%d bytes of 100: full is %v, want %v", now, got, want)
			}
		}
	}
	f(99, false)
	f(100, true)
	f(99, false)
	if asked != 3 {
		t.Errorf("measured %d times, want once in %v", asked, memoryInterval)
	}
	if m := newMemory(0, func() int64 { return 0 }); m.budget.Load() < 1<<20 || m.Full() {
		t.Errorf("a budget of %d bytes by default", m.budget.Load())
	}
}
