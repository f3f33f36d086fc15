package duplicates

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"facet/internal/id"
	"facet/router/clustertest"
	"facet/shard"
	"facet/shard/job"
)

// Two subjects are in one group exactly if a chain of pairs leads from one to the other.
func TestGroupsAreConnectedComponents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 2 + r.IntN(60)
		var pairs []job.Pair
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
			reach[i][i] = true
		}
		for score := 9999; score > 9999-r.IntN(60); score-- {
			a, b := r.IntN(n), r.IntN(n)
			if a == b {
				continue
			}
			pairs = append(pairs, job.Pair{A: clustertest.Subject(min(a, b)), B: clustertest.Subject(max(a, b)), Score: score})
			reach[a][b], reach[b][a] = true, true
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		group, last, best := map[int]int{}, 0, 10_000
		for _, p := range grouped(pairs) {
			if p.Group < last || p.Group > last+1 || p.Group == last && p.Score > best {
				t.Fatalf("seed %d: group %d with score %d after group %d with %d", seed, p.Group, p.Score, last, best)
			}
			last, best = p.Group, p.Score
			for _, s := range p.Subjects {
				group[int(s.Subject.UUID[0])<<8|int(s.Subject.UUID[1])] = p.Group
			}
		}
		for a, x := range group {
			for b, y := range group {
				if (x == y) != reach[a][b] {
					t.Fatalf("seed %d: %d is in group %d, %d in %d, connected %v", seed, a, x, b, y, reach[a][b])
				}
			}
		}
	}
}

func TestCursorIsOfOneReport(t *testing.T) {
	t.Parallel()
	report, other := id.Batch{UUID: id.UUID{1}}, id.Batch{UUID: id.UUID{2}}
	text := duplicatesCursor(report, 50, 20)
	if next, ok := readDuplicatesCursor(report, 50, text); next != 20 || !ok {
		t.Errorf("%d, %v", next, ok)
	}
	if _, ok := readDuplicatesCursor(report, 49, text); ok {
		t.Error("a cursor holds after pairs went")
	}
	if _, ok := readDuplicatesCursor(other, 50, text); ok {
		t.Error("a cursor holds for another report")
	}
	for _, bad := range []string{"A", text[1:], text + "A", duplicatesCursor(report, 50, 50)} {
		if _, ok := readDuplicatesCursor(report, 50, bad); ok {
			t.Errorf("%q holds", bad)
		}
	}
}

func TestEachProbeIsComparedOnce(t *testing.T) {
	t.Parallel()
	probes := make([]shard.Probe, 100)
	for i := range probes {
		probes[i].Subject = clustertest.Subject(i)
	}
	var compared []shard.Probe
	_, err := inPieces(probes, func(left []shard.Probe) (pairsAnswer, error) {
		done := min(len(compared)%7+1, len(left))
		compared = append(compared, left[:done]...)
		return pairsAnswer{Done: done}, nil
	})
	if err != nil || !reflect.DeepEqual(compared, probes) {
		t.Errorf("%d of %d probes compared: %v", len(compared), len(probes), err)
	}
	for _, done := range []int{-1, 0, 101} {
		if _, err := inPieces(probes, func([]shard.Probe) (pairsAnswer, error) { return pairsAnswer{Done: done}, nil }); err == nil {
			t.Errorf("%d done of %d probes is no error", done, len(probes))
		}
	}
}
