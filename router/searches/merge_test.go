package searches

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/router"
	"facet/router/clustertest"
	"facet/shard"
	"facet/shard/scan"
)

// TestMergeIgnoresTheLayout distributes one list of hits over 1 to 7 shards in many
// ways. The candidates are always those of the whole list.
func TestMergeIgnoresTheLayout(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var all []NotedHit
		for e := range 60 {
			all = append(all, NotedHit{Hit: shard.Hit{Subject: clustertest.Subject(random.IntN(20)), Event: clustertest.Event(e), Score: 7000 + random.IntN(5)}})
		}
		limit := 1 + random.IntN(50)
		want := CandidatesOf(BestHits([][]NotedHit{best(all, limit)}, limit))
		lists := make([][]NotedHit, 1+random.IntN(7))
		for _, h := range all {
			at := int(h.Subject.UUID[1]) % len(lists) // all events of a subject lie on one shard
			lists[at] = append(lists[at], h)
		}
		for i := range lists {
			lists[i] = best(lists[i], limit)
		}
		if diff := cmp.Diff(want, CandidatesOf(BestHits(lists, limit))); diff != "" {
			t.Fatalf("seed %d, %d shards, limit %d: %s", seed, len(lists), limit, diff)
		}
	}
}

// TestDoubtfulLeavesCandidatesAlone compares searches with and without a review band. The score of a subject's
// own template comes with its best hit.
func TestDoubtfulLeavesCandidatesAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var all, above []NotedHit
		for e := range 60 {
			h := NotedHit{Hit: shard.Hit{Subject: clustertest.Subject(random.IntN(30)), Event: clustertest.Event(e), Score: 6000 + random.IntN(2000)}}
			all = append(all, h)
		}
		all = best(all, len(all))
		seen := map[id.Subject]bool{}
		for i := range all {
			if h := &all[i]; !seen[h.Subject] && random.IntN(3) == 0 {
				h.SubjectScore = 6000 + random.IntN(2000)
			}
			seen[all[i].Subject] = true
			if all[i].Rank() >= 7000 {
				above = append(above, all[i])
			}
		}
		limit := 1 + random.IntN(50)
		want := CandidatesOf(BestHits([][]NotedHit{above}, limit))
		candidates, doubtful := divide(BestHits([][]NotedHit{all}, limit), 7000)
		if diff := cmp.Diff(want, candidates); diff != "" {
			t.Fatalf("seed %d, limit %d: %s", seed, limit, diff)
		}
		events := 0
		for _, c := range append(candidates, doubtful...) {
			events += len(c.Events)
		}
		for _, d := range doubtful {
			if d.Score >= 7000 || slices.ContainsFunc(candidates, func(c router.Candidate) bool { return c.Subject == d.Subject }) {
				t.Fatalf("seed %d: %+v is doubtful", seed, d)
			}
		}
		if events > limit || len(all) > limit && len(candidates) == 0 && len(doubtful) == 0 {
			t.Fatalf("seed %d: %d events of %d", seed, events, limit)
		}
	}
}

func best(hits []NotedHit, limit int) []NotedHit {
	hits = slices.Clone(hits)
	slices.SortFunc(hits, func(a, b NotedHit) int { return scan.Compare(a.Hit, b.Hit) })
	return hits[:min(limit, len(hits))]
}

func TestMergeGroupsEventsBySubject(t *testing.T) {
	t.Parallel()
	got := CandidatesOf(BestHits([][]NotedHit{
		{{Hit: shard.Hit{Subject: clustertest.Subject(1), Event: clustertest.Event(1), Score: 9000}}, {Hit: shard.Hit{Subject: clustertest.Subject(1), Event: clustertest.Event(2), Score: 7100}}},
		{{Hit: shard.Hit{Subject: clustertest.Subject(2), Event: clustertest.Event(3), Score: 9000}}, {Hit: shard.Hit{Subject: clustertest.Subject(3), Event: clustertest.Event(4), Score: 7000}}},
	}, 3))
	want := []router.Candidate{
		{Subject: clustertest.Subject(1), Score: 9000, Events: []router.CandidateEvent{{Event: clustertest.Event(1), Score: 9000}, {Event: clustertest.Event(2), Score: 7100}}},
		{Subject: clustertest.Subject(2), Score: 9000, Events: []router.CandidateEvent{{Event: clustertest.Event(3), Score: 9000}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
