package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/router"
)

// syncedCluster is a cluster that counts its rounds of catching up. Each takes 10
// ms.
type syncedCluster struct {
	Cluster
	rounds atomic.Int64
	cut    atomic.Bool // rounds end with errCutOff
}

var errCutOff = errors.New("cut off")

func newBeliever() *syncedCluster {
	b := &syncedCluster{}
	b.sync.Run = func(context.Context) error {
		round := b.synced.begin()
		b.rounds.Add(1)
		time.Sleep(10 * time.Millisecond)
		if b.cut.Load() {
			return errCutOff
		}
		b.synced.last.Store(round)
		return nil
	}
	return b
}

func found() (int, bool) { return 1, true }

func notFound() (int, bool) { return 0, false }

// Steady look-ups wait for no round after the first one.
func TestSteadyLookUpsCostTwoRoundsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeliever()
		if _, err := ConfirmedLookup(t.Context(), &b.Cluster, found); err != nil || b.rounds.Load() != 1 {
			t.Fatalf("the first look-up: %v, %d rounds, want 1", err, b.rounds.Load())
		}
		for range 10_000 {
			time.Sleep(time.Millisecond)
			start := time.Now()
			if _, err := ConfirmedLookup(t.Context(), &b.Cluster, found); err != nil || time.Since(start) > 0 {
				t.Fatalf("a look-up waited %v: %v", time.Since(start), err)
			}
		}
		if n := b.rounds.Load(); n > 21 {
			t.Errorf("%d rounds in 10 s, want 2 a second", n)
		}
		b.sync.Close()
	})
}

// A record in the replica counts only for trustMax after the last round.
func TestFoundRecordExpiresWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeliever()
		if _, err := ConfirmedLookup(t.Context(), &b.Cluster, found); err != nil {
			t.Fatal(err)
		}
		b.cut.Store(true)
		synced := time.Now().Add(-10 * time.Millisecond) // when that round began
		for time.Since(synced) < 4*time.Second {
			_, err := ConfirmedLookup(t.Context(), &b.Cluster, found)
			if age := time.Since(synced); age < trustMax && err != nil || age >= trustMax+10*time.Millisecond && !errors.Is(err, errCutOff) {
				t.Fatalf("%v after the last contact: %v", age, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		b.cut.Store(false)
		if _, err := ConfirmedLookup(t.Context(), &b.Cluster, found); err != nil {
			t.Errorf("with the leader back: %v", err)
		}
		b.sync.Close()
	})
}

func TestMissingRecordIsAlwaysConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeliever()
		for n := range int64(3) {
			if _, err := ConfirmedLookup(t.Context(), &b.Cluster, notFound); router.KindOf(err) != router.NotFound || b.rounds.Load() != n+1 {
				t.Errorf("%v after %d rounds, want NotFound after %d", err, b.rounds.Load(), n+1)
			}
		}
		b.sync.Close()
	})
}
