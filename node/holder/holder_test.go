package holder_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/holder"
)

const copied = "10.0.0.9:7000" // the address of a copy

// wantEnded checks that a process ended because of the one at address.
func wantEnded(t *testing.T, p *process, address string) {
	t.Helper()
	if err := p.err(); !errors.Is(err, holder.ErrHeld) || !strings.Contains(err.Error(), address) {
		t.Errorf("the process at %s: got %v, want the end because of %s", p.address, err, address)
	}
}

func wantActs(t *testing.T, w *town, p *process) {
	t.Helper()
	if err := p.err(); err != nil || !w.leads(p) {
		t.Errorf("the process at %s: error %v, leads %v", p.address, err, w.leads(p))
	}
}

func TestRestartInPlaceActsAtOnce(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		first := w.all[0]
		for _, pause := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
			for range 20 {
				token := first.Token()
				first.kill()
				time.Sleep(pause)
				first.start()
				if !w.leads(first) || first.Token() != token {
					t.Fatalf("after %s: it does not act at once", pause)
				}
				time.Sleep(700 * time.Millisecond)
			}
		}
		wantActs(t, w, first)
		for _, p := range w.all {
			if a := p.Alarms(); len(a) > 0 {
				t.Errorf("the process at %s reports %q", p.address, a)
			}
		}
	})
}

func TestCopyEndsWhileHolderIsHeard(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		second := w.copyOf(w.all[0], copied)
		second.start()
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			if w.leads(second) {
				t.Fatal("the copy acts")
			}
		}
		wantEnded(t, second, w.all[0].address)
		wantActs(t, w, w.all[0])
		for _, p := range w.all[1:3] {
			a := p.Alarms()
			if len(a) != 1 || !strings.Contains(a[0], w.all[0].address) || !strings.Contains(a[0], copied) || p.Duplicates() != 1 {
				t.Errorf("the process at %s reports %q", p.address, a)
			}
			if at, ok := p.Address(w.members[0]); !ok || at != w.all[0].address {
				t.Errorf("the process at %s finds the member at %q", p.address, at)
			}
		}
		time.Sleep(6 * time.Minute)
		if a := w.all[1].Alarms(); len(a) > 0 {
			t.Errorf("long after: %q", a)
		}
	})
}

// With two of three copies' votes on each side of a split, both sides would have a leader.
func TestCopyWaitsWhileNetworkIsSplit(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		second := w.copyOf(w.all[0], copied)
		w.split(w.all[:2], w.all[2:])
		second.start()
		time.Sleep(time.Minute)
		if err := second.Err(); !errors.Is(err, holder.ErrWaiting) || w.leads(second) || second.err() != nil {
			t.Errorf("the copy with one other node of two: %v", err)
		}
		wantActs(t, w, w.all[0])
		w.heal()
		time.Sleep(3 * time.Second)
		wantEnded(t, second, w.all[0].address)
		wantActs(t, w, w.all[0])
	})
}

func TestMovedProcessTakesOverAfterSilence(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		f := func(from *process, address string, end func(), soonest, latest time.Duration) *process {
			t.Helper()
			next := w.copyOf(from, address)
			began := time.Now() // the last claim of a process that can't be heard takes a second
			end()
			next.start()
			for ; ; time.Sleep(50 * time.Millisecond) {
				since := time.Since(began)
				if err := next.err(); err != nil || since > latest {
					t.Fatalf("it does not act after %s: %v", since, err)
				}
				if w.leads(next) {
					if since < soonest {
						t.Fatalf("it acts after %s", since)
					}
					return next
				}
			}
		}
		killed := f(w.all[0], copied, w.all[0].kill, time.Second, 3*time.Second)
		time.Sleep(time.Second)
		stopped := f(killed, "10.0.0.10:7000", killed.end, 0, 500*time.Millisecond)
		time.Sleep(time.Second)
		stopped.kill()
		stopped.start()
		wantActs(t, w, stopped)
		for _, p := range w.all {
			if p.Holder != nil && len(p.Alarms()) > 0 {
				t.Errorf("the process at %s reports %q", p.address, p.Alarms())
			}
		}
	})
}

// With round trips of half a second a claim still gets its answer.
func TestFarProcessTakesOver(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		w.delay = 260 * time.Millisecond // and a little, for the processors
		next := w.copyOf(w.all[0], copied)
		w.all[0].kill()
		next.start()
		time.Sleep(5 * time.Second)
		wantActs(t, w, next)
	})
}

// All nodes get other addresses at once: each is a newcomer, and asks newcomers.
func TestMovedClusterComesUp(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		var moved []*process
		for i, p := range w.all[:3] {
			p.kill()
			moved = append(moved, w.copyOf(p, fmt.Sprintf("10.0.1.%d:7000", i+1)))
		}
		for _, p := range moved {
			p.start()
		}
		time.Sleep(4 * time.Second)
		for _, p := range moved {
			wantActs(t, w, p)
			if a := p.Alarms(); len(a) > 0 {
				t.Errorf("the process at %s reports %q", p.address, a)
			}
		}
	})
}

// The other nodes remember a takeover when they have restarted.
func TestOldHolderEndsAfterTakeover(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		first := w.all[0]
		second := w.copyOf(first, copied)
		w.split(w.all[:1], w.all[1:])
		second.start()
		time.Sleep(5 * time.Second)
		wantActs(t, w, second)
		if w.leads(first) {
			t.Error("the old holder could lead")
		}
		for _, p := range w.all[1:3] {
			p.kill()
			p.start()
		}
		if w.leads(first) {
			t.Error("after a restart of the others the old holder could lead")
		}
		time.Sleep(time.Second)
		w.heal()
		time.Sleep(time.Second)
		wantEnded(t, first, copied)
		wantActs(t, w, second)
		// It is started again by mistake, and again when the other one is gone.
		first.end()
		first.start()
		time.Sleep(5 * time.Second)
		wantEnded(t, first, copied)
		second.kill()
		first.end()
		time.Sleep(3 * time.Second)
		first.start()
		time.Sleep(3 * time.Second)
		wantActs(t, w, first)
	})
}

func TestDamagedPlaceIsRefused(t *testing.T) {
	virtual(t, 3, func(t *testing.T, w *town) {
		first := w.all[0]
		first.kill()
		file := filepath.Join(first.dir, "place")
		raw, err := os.ReadFile(file)
		must.Do(t, err)
		raw[len(raw)/2] ^= 1
		must.Do(t, os.WriteFile(file, raw, 0o600))
		if _, err := holder.Open(holder.Config{Dir: first.dir, Address: first.address, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "place") {
			t.Errorf("a damaged file: got %v", err)
		}
	})
}

// Processes on a directory and its copies start, die and are cut off at random. Two of them
// must never be able to lead at once.
func TestTwoProcessesNeverBothLead(t *testing.T) {
	for seed := range uint64(40) {
		t.Run("", func(t *testing.T) {
			virtual(t, 3+2*int(seed%2), func(t *testing.T, w *town) { attack(t, w, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func attack(t *testing.T, w *town, random *rand.Rand) {
	n := len(w.members)
	double := []*process{w.all[0], w.copyOf(w.all[0], copied), w.copyOf(w.all[0], "10.0.0.10:7000")}
	led := 0
	for range 120 {
		switch p := w.all[random.IntN(len(w.all))]; random.IntN(8) {
		case 0, 1, 2:
			p = double[random.IntN(len(double))]
			fallthrough
		case 3:
			if p.Holder != nil {
				p.kill()
			}
			p.start()
		case 4:
			if p.Holder != nil {
				p.end()
			}
		case 5, 6:
			w.heal()
			all := append([]*process{}, w.all...)
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			w.split(all[:n/2+1], all[n/2+1:])
		case 7:
			w.heal()
		}
		for end := time.Now().Add(time.Duration(random.IntN(4000)) * time.Millisecond); time.Now().Before(end); time.Sleep(47 * time.Millisecond) {
			for voters := 3; voters <= n; voters += 2 { // a shard, and meta
				leads := ""
				for _, p := range double {
					if w.leadsOf(p, voters) {
						leads += " " + p.address
						led++
					}
				}
				if strings.Count(leads, " ") > 1 {
					t.Fatalf("both lead a group of %d:%s", voters, leads)
				}
			}
		}
	}
	if led == 0 {
		t.Error("no process ever led")
	}
}
