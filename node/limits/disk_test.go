package limits

import (
	"errors"
	"math"
	"testing"
)

func TestDiskIsFullBelowItsReserve(t *testing.T) {
	t.Parallel()
	f := func(reserve int64, size, free uint64, want bool) {
		t.Helper()
		s := newSpace(reserve, t.TempDir())
		s.setLook(func() (uint64, uint64, error) { return free, size, nil })
		if changed, err := s.measure(); err != nil || changed != want || s.full.Load() != want {
			t.Errorf("%d free of %d, reserve %d: full %v, changed %v, %v; want %v", free, size, reserve, s.full.Load(), changed, err, want)
		}
		s.setLook(func() (uint64, uint64, error) { return 0, 0, errors.New("input/output error") })
		if _, err := s.measure(); err == nil || s.full.Load() != want {
			t.Errorf("a measurement that fails: %v, full %v; want the last one's %v", err, s.full.Load(), want)
		}
		s.setLook(func() (uint64, uint64, error) { return math.MaxUint64, size, nil })
		if changed, err := s.measure(); err != nil || changed != want || s.full.Load() {
			t.Errorf("with space again: full %v, changed %v, %v", s.full.Load(), changed, err)
		}
	}
	f(0, 10<<30, 1<<30-1, true) // 1 GiB is more than 5 %
	f(0, 10<<30, 1<<30, false)
	f(0, 100<<30, 5<<30-100, true) // 5 % is more than 1 GiB
	f(0, 100<<30, 5<<30+100, false)
	f(1000, 100<<30, 999, true)
	f(1000, 100<<30, 1000, false)
	s := newSpace(0, t.TempDir())
	if free, size, err := (*s.look.Load())(); err != nil || free == 0 || size < free {
		t.Errorf("the disk of this test has %d bytes of %d: %v", free, size, err)
	}
	if free, reserve, err := Room(t.TempDir()); err != nil || free == 0 || reserve < reserveMin {
		t.Errorf("the disk of this test has %d bytes free, and a node leaves %d: %v", free, reserve, err)
	}
	if _, _, err := Room("/nowhere"); err == nil {
		t.Error("a folder that is not there has room")
	}
}
