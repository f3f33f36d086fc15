package engine_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
)

// lockedKiB returns how much memory of this process is locked.
func lockedKiB(t *testing.T) (n int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmLck:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The test is not parallel: it counts the locked memory of the whole process.
func TestPixelsAreLocked(t *testing.T) {
	probe := make([]byte, 4<<20)
	if err := syscall.Mlock(probe); err != nil {
		t.Skipf("the system does not let this process lock memory: %v", err)
	}
	if err := syscall.Munlock(probe); err != nil {
		t.Fatal(err)
	}
	before := lockedKiB(t)
	e := enginetest.New(t, engine.Config{Workers: 1})
	if _, err := e.Extract(t.Context(), enginetest.Photo(t, "scikit-image/astronaut.png")); err != nil {
		t.Fatal(err)
	}
	if got := lockedKiB(t) - before; got < 3*512*512/1024 {
		t.Errorf("%d KiB are locked, want the pixels", got)
	}
	e.Close()
	if got := lockedKiB(t); got != before {
		t.Errorf("%d KiB are locked after the end, %d before", got, before)
	}
}
