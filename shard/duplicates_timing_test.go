package shard

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
)

const (
	// pairShards is how many events a shard of BenchmarkDuplicates has, pairBlock how many share a block.
	pairShards, pairBlock = 50_000, 1024
	// planted is how many of these events are like an earlier one.
	planted = 100
)

// likeEarlier returns the number of the event that event i of n is like, if it is like one.
func likeEarlier(i, n int) (of int, ok bool) { return i * 31 % (n - planted), i >= n-planted }

func pairTemplate(i, n int) engine.Template {
	v := direction(rand.New(rand.NewPCG(uint64(i), 9)))
	if of, ok := likeEarlier(i, n); ok {
		for j, x := range pairTemplate(of, n) {
			v[j] = .9*x + .4359*v[j]
		}
	}
	return v
}

// pairGallery puts n events on shards.
func pairGallery(b *testing.B, n int) []*Shard {
	b.Helper()
	shards, key := make([]*Shard, n/pairShards), testKey(b, 1)
	for at := range shards {
		s := emptyShard()
		must.Do(b, s.Grant(Grant{testGallery, 1, 2 * pairShards}))
		for i := at; i < n; i += len(shards) {
			e := eventOf(testGallery, i)
			e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: pairTemplate(i, n)})
			put(b, s, e)
		}
		must.Do(b, s.open(b.Context(), s.state.slices[testGallery], key))
		shards[at] = s
	}
	return shards
}

// pairsOf compares a gallery with itself.
func pairsOf(b *testing.B, shards []*Shard) (all []Pair, comparisons float64) {
	b.Helper()
	key := testKey(b, 1)
	for i, s := range shards {
		ends, err := s.Blocks(testGallery, 1, pairBlock)
		must.Do(b, err)
		after := uint64(0)
		for _, end := range ends {
			probes, _, err := s.Probes(b.Context(), testGallery, 1, key, after, end)
			must.Do(b, err)
			after = end
			for j := i; j < len(shards); j++ {
				found, err := shards[j].Pairs(b.Context(), testGallery, 1, key, PairQuery{probes, 8000, i == j, 4096, time.Hour})
				if err != nil || !found.Complete {
					b.Fatal(found.Complete, err)
				}
				all = append(all, found.Pairs...)
				comparisons += float64(len(probes)) * pairShards
			}
		}
	}
	return all, comparisons
}

// processorTime returns the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDuplicates compares a gallery on shards of 50,000 with itself and demands the planted pairs.
// It reports the processor time of a comparison, and the minutes that a million on 20 shards would take by it.
func BenchmarkDuplicates(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			shards := pairGallery(b, n)
			defer func() {
				for _, s := range shards {
					s.Close()
				}
			}()
			want := map[[2]id.Subject]bool{}
			for i := n - planted; i < n; i++ {
				of, _ := likeEarlier(i, n)
				want[[2]id.Subject{eventOf(testGallery, of).Subject, eventOf(testGallery, i).Subject}] = true
			}
			var took time.Duration
			var compared float64
			for b.Loop() {
				begin := processorTime(b)
				pairs, comparisons := pairsOf(b, shards)
				took, compared = took+processorTime(b)-begin, compared+comparisons
				found := 0
				for _, p := range pairs {
					if want[[2]id.Subject{p.A, p.B}] {
						found++
					}
				}
				if found != planted {
					b.Errorf("%d of %d planted pairs are found among %d", found, planted, len(pairs))
				}
			}
			ns := float64(took.Nanoseconds()) / compared
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took.Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(ns, "ns/comparison")
			b.ReportMetric(ns*1e12*(1+1./20)/2/60e9, "minutes/million")
		})
	}
}
