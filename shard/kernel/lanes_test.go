package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The limit of lanes excludes no row that the limit of rows leaves, and is the largest such limit.
func TestLaneLimitIsTight(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 5))
	for range 10_000 {
		drop := uint(r.IntN(5))
		turned := turned{row: int32(r.IntN(1<<24) - 1<<23), positive: int32(r.IntN(1 << 16))}
		limit := turned.laneLimit(drop)
		if most := (turned.positive << drop) - turned.positive; limit<<drop+most < turned.row || (limit-1)<<drop+most >= turned.row {
			t.Fatalf("%d for rows from %d on, %d bits less and %d in them", limit, turned.row, drop, most)
		}
	}
	if l := (&turned{row: math.MinInt32, positive: 1}).laneLimit(2); l != math.MinInt32 {
		t.Errorf("%d where the limit of rows excludes nothing", l)
	}
}

// The sums of each run fit 16 bits for the worst rows, and no run could be longer.
func TestRunsOfLanesFit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 6))
	for range 300 {
		l := lanes{lines: 16 * (1 + r.IntN(16))}
		l.probes = make([]int8, l.lines*laneCount*4)
		size := 1 + r.IntN(127)
		for i := range l.probes {
			l.probes[i] = int8(r.IntN(2*size+1) - size)
		}
		l.run(2)
		line := 0
		fits := func(from, n int) bool {
			var sums [2][2 * laneCount]int
			for i, q := range l.probes[from*laneCount*4:][:n*laneCount*4] {
				sums[0][i/2%(2*laneCount)] += 63 * min(int(q), 0)
				sums[1][i/2%(2*laneCount)] += 63 * max(int(q), 0)
			}
			return slices.Min(sums[0][:]) >= math.MinInt16 && slices.Max(sums[1][:]) <= math.MaxInt16
		}
		for _, n := range l.runs {
			if !fits(line, int(n)) {
				t.Fatalf("%d lines from %d on do not fit", n, line)
			}
			if line += int(n); line < l.lines && n < math.MaxUint8 && fits(line-int(n), int(n)+1) {
				t.Fatalf("%d lines from %d on could be one more", n, line-int(n))
			}
		}
		if line != l.lines {
			t.Fatalf("the runs have %d lines of %d", line, l.lines)
		}
	}
}
