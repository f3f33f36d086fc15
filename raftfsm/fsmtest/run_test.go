package fsmtest_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"facet/raftfsm"
	"facet/raftfsm/fsmtest"
)

// seeds is the number of seeded histories of each test over a whole state machine.
var seeds = flag.Uint64("seeds", 400, "run so many histories of each test over a whole state machine")

// eachSeed runs check with every seed, on all processors, and stops at the first
// that fails.
func eachSeed(t *testing.T, check func(t *testing.T, seed uint64)) {
	t.Helper()
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	workers := uint64(runtime.GOMAXPROCS(0))
	for w := range workers {
		t.Run(fmt.Sprintf("worker %d", w), func(t *testing.T) {
			t.Parallel()
			for seed := w; seed < n && !t.Failed(); seed += workers {
				check(t, seed)
			}
		})
	}
}

// sum is a machine that adds up bytes and has a fault.
type sum struct {
	total uint64
	fault fault
}

type fault int

const (
	none fault = iota
	forgetsInSnapshot
	addsOnRestore
	countsReplicas
	keepsCommand
)

var (
	born   int
	bornMu sync.Mutex
)

func newSum(f fault) *sum {
	s := &sum{fault: f}
	if f == countsReplicas {
		bornMu.Lock()
		defer bornMu.Unlock()
		born++
		s.total = uint64(born)
	}
	return s
}

func (s *sum) Apply(_ uint64, cmd []byte) []byte {
	s.total += uint64(cmd[0])
	if s.fault == keepsCommand {
		return cmd
	}
	return binary.BigEndian.AppendUint64(nil, s.total)
}

func (s *sum) Freeze() (raftfsm.Frozen, error) {
	if s.fault == forgetsInSnapshot {
		return frozenSum(s.total &^ 1), nil
	}
	return frozenSum(s.total), nil
}

func (s *sum) Restore(r io.Reader) error {
	var b [8]byte
	_, err := io.ReadFull(r, b[:])
	if s.fault != addsOnRestore {
		s.total = 0
	}
	s.total += binary.BigEndian.Uint64(b[:])
	return err
}

func (s *sum) Digest() (d [32]byte) {
	binary.BigEndian.PutUint64(d[:], s.total)
	return d
}

type frozenSum uint64

func (f frozenSum) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(f)))
	return int64(n), err
}

func (frozenSum) Release() {}

// catcher is a testing.TB that records a failure and does not fail.
type catcher struct {
	testing.TB
	failed bool
}

func (c *catcher) Helper()               {}
func (c *catcher) Failed() bool          { return c.failed }
func (c *catcher) Errorf(string, ...any) { c.failed = true }
func (c *catcher) Fatalf(string, ...any) {
	c.failed = true
	runtime.Goexit()
}

func runSum(f fault) (failed bool) {
	caught := &catcher{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(1, uint64(f)))
		commands := make([][]byte, 300)
		for i := range commands {
			commands[i] = []byte{byte(r.IntN(200))}
		}
		fsmtest.Run(caught, fsmtest.Case{
			Rand: r, New: func() raftfsm.Machine { return newSum(f) }, Commands: commands,
		})
	}()
	<-done
	return caught.failed
}

func TestRunFindsDivergence(t *testing.T) {
	t.Parallel()
	for f, want := range map[fault]bool{
		none: false, forgetsInSnapshot: true, addsOnRestore: true, countsReplicas: true, keepsCommand: true,
	} {
		if got := runSum(f); got != want {
			t.Errorf("fault %d: found %v, want %v", f, got, want)
		}
	}
}
