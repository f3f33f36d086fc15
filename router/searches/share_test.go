package searches

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/router/clustertest"
	"facet/shard"
	"facet/shard/scan"
)

// TestSharedLimitLosesNoHit leaves hits out as shards with a shared limit may, even if hits went that
// the limit counted on. The candidates are those of all hits, or the search is known to be incomplete.
func TestSharedLimitLosesNoHit(t *testing.T) {
	t.Parallel()
	complete, lost := 0, 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(10)
		floor := scan.NewFloor(limit)
		all, ids := make([][]NotedHit, 1+random.IntN(5)), random.Perm(100)
		for i := range all {
			for e := range random.IntN(15) {
				n := ids[i*15+e]
				all[i] = append(all[i], NotedHit{Hit: shard.Hit{Subject: clustertest.Subject(n), Event: clustertest.Event(n), Score: 7000 + random.IntN(5)}})
			}
			all[i] = best(all[i], limit)
		}
		lists, there := make([][]NotedHit, len(all)), make([][]NotedHit, len(all))
		for i := range all {
			scores := []int{}
			for _, h := range all[i] {
				scores = append(scores, h.Score)
			}
			floor.Raise(i, scores)
			for n, h := range all[i] {
				if seed%2 == 0 && n < 2 && random.IntN(6) == 0 {
					continue // erased
				}
				there[i] = append(there[i], h)
				if h.Score >= floor.Least() {
					lists[i] = append(lists[i], h)
				}
			}
			lists[i] = withFloor(lists[i], floor)
		}
		ok := withoutFloors(lists, limit)
		differs := cmp.Diff(CandidatesOf(BestHits(there, limit)), CandidatesOf(BestHits(lists, limit)))
		switch {
		case ok && differs != "":
			t.Fatalf("seed %d, limit %d, least %d: %s", seed, limit, floor.Least(), differs)
		case seed%2 == 1 && !ok:
			t.Fatalf("seed %d, limit %d, least %d: nothing was erased, but the search is incomplete", seed, limit, floor.Least())
		case ok:
			complete++
		case differs != "":
			lost++
		}
	}
	if complete < 3000 || lost < 20 {
		t.Errorf("%d searches were complete, %d have lost a hit", complete, lost)
	}
}

func TestSharedLimitLivesAsLongAsSearches(t *testing.T) {
	t.Parallel()
	var s sharing
	name := id.UUID{1}
	a, leaveA := s.join(name, 3)
	b, leaveB := s.join(name, 3)
	other, leaveOther := s.join(id.UUID{2}, 3)
	if a == nil || a != b || a == other || len(s.of) != 2 {
		t.Fatalf("floors %p, %p and %p, %d known", a, b, other, len(s.of))
	}
	leaveA()
	if again, leave := s.join(name, 3); again != a {
		t.Error("the floor went before its last search")
	} else {
		leave()
	}
	leaveB()
	leaveOther()
	if len(s.of) != 0 {
		t.Errorf("%d floors are left", len(s.of))
	}
	if none, leave := s.join(id.UUID{}, 3); none != nil {
		t.Error("a search without a name shares")
	} else {
		leave()
	}
}
