package memscan

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread copies while signals interrupt it. The end of what it copies, which Go keeps in
// registers meanwhile, is found on its signal stack.
func TestRegistersInSignalFrameAreFound(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("signal frames of x86-64 only")
	}
	var stop atomic.Bool
	defer stop.Store(true)
	from := random(3, 1<<18)
	p := New()
	p.Add("end", from[len(from)-128:])
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		for to := make([]byte, len(from)); !stop.Load(); {
			copy(to, from)
		}
	}()
	copier := <-thread
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if err := unix.Tgkill(os.Getpid(), copier, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
		found, _, err := p.In(os.Getpid())
		if err != nil {
			t.Skipf("the memory can't be read: %v", err)
		}
		if in, others := found.Registers(); len(in) > 0 && len(others) >= 2 {
			return
		}
	}
	t.Error("the registers were not found")
}
