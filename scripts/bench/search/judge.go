package search

import (
	"fmt"

	"golang.org/x/sys/cpu"

	"facet/scripts/bench/table"
)

// figure is how many times longer a peer takes in one case. A goal may refer to it.
type figure struct {
	set, peer, kind, least string
	dim, rows              int
	ask
	ratio float64
}

// verdict has the figures of a run so far. All sets share one verdict.
type verdict struct {
	figures         []figure
	builds          []figure // CPU seconds of the peer to ours
	compared, wrong int
	missed          int // rows of peers that belong among the kernel's hits
	family          family
}

// family is the vector instructions of the processor. Each has goals of its own.
type family int

const (
	avx512 family = iota
	avx2
	others // no goals
)

func (f family) String() string { return [...]string{"AVX-512", "AVX2", "others"}[f] }

// here returns the family of this processor, without the instructions that GODEBUG switches off.
func here() family {
	switch {
	case cpu.X86.HasAVX512F:
		return avx512
	case cpu.X86.HasAVX2:
		return avx2
	}
	return others
}

const million = 1_000_000

// goal is a bound for the worst of the figures that of selects.
type goal struct {
	what string
	of   func(r figure) bool
	set  [2]float64 // by family; 0: none
}

// on returns a function that reports whether a figure belongs to this set and peer,
// with a million rows and the ten best candidates.
func on(set string, dim int, peer string) func(figure) bool {
	return func(r figure) bool {
		return r.rows == million && r.set == set && (dim == 0 || r.dim == dim) && r.peer == peer && r.limit == 10
	}
}

// with restricts a goal to a threshold, and to lone searches or to batches.
func with(of func(figure) bool, least string, alone bool) func(figure) bool {
	return func(r figure) bool {
		return of(r) && (least == "" || r.least == least) && alone == (r.batch == 1)
	}
}

// searchGoals are the goals in docs/performance.md.
var searchGoals = []goal{
	{"easy 128, ≥ .6: FAISS IndexFlatIP / ours", with(on("easy", 128, "flat"), "≥ .6", true), both(11)},
	{"easy 128, ≥ .5: FAISS IndexFlatIP / ours", with(on("easy", 128, "flat"), "≥ .5", true), both(7)},
	{"easy 128, no threshold: FAISS IndexFlatIP / ours", with(on("easy", 128, "flat"), "none", true), both(5)},
	{"easy 512, ≥ .5: FAISS IndexFlatIP / ours", with(on("easy", 512, "flat"), "≥ .5", true), [2]float64{13, 11}},
	{"easy 512, no threshold: FAISS IndexFlatIP / ours", with(on("easy", 512, "flat"), "none", true), both(3.5)},
	{"real, ≥ 7000: FAISS on the model's numbers / ours", with(on("real", 0, "model"), "≥ 7000", true), both(15)},
	{"real, ≥ 7000: FAISS IndexFlatIP / ours", with(on("real", 0, "flat"), "≥ 7000", true), [2]float64{7, 9}},
	{"hard, any threshold: FAISS IndexFlatIP / ours", with(on("hard", 0, "flat"), "", true), both(4)},
	{"easy 128, 32 at once, no threshold: FAISS IndexFlatIP / ours", with(on("easy", 128, "flat"), "none", false), [2]float64{20, 15}},
	{"hard 128, 32 at once, no threshold: FAISS IndexFlatIP / ours", with(on("hard", 128, "flat"), "none", false), [2]float64{20, 15}},
	{"easy 512, 32 at once, no threshold: FAISS IndexFlatIP / ours", with(on("easy", 512, "flat"), "none", false), [2]float64{20, 15}},
	{"real, 32 at once, no threshold: FAISS IndexFlatIP / ours", with(on("real", 0, "flat"), "none", false), [2]float64{20, 15}},
	{"easy 128, 32 at once, no threshold: sgemm / ours", with(on("easy", 128, "sgemm"), "none", false), [2]float64{6, 3}},
	{"easy 512, 32 at once, no threshold: sgemm / ours", with(on("easy", 512, "sgemm"), "none", false), [2]float64{6, 3}},
	{"real, 32 at once, no threshold: sgemm / ours", with(on("real", 0, "sgemm"), "none", false), [2]float64{6, 3}},
	{"real, ≥ 7000: FAISS PQ at .99 of the best / ours", with(on("real", 0, "pq"), "≥ 7000", true), [2]float64{1.2, 1}},
	{"easy 128, ≥ .6: FAISS PQ at .99 of the best / ours", with(on("easy", 128, "pq"), "≥ .6", true), [2]float64{1.2, 1}},
	{"easy 128, ≥ .5: FAISS PQ at .99 of the best / ours", with(on("easy", 128, "pq"), "≥ .5", true), both(1)},
	{"hard 128, ≥ .5: hnswlib at .99 of the hits / ours", with(on("hard", 128, "hnswlib"), "≥ .5", true), both(2)},
	{"hard 128, ≥ .5: usearch at .99 of the hits / ours", with(on("hard", 128, "usearch"), "≥ .5", true), both(2)},
}

// both returns the same goal for each family.
func both(goal float64) [2]float64 { return [2]float64{goal, goal} }

const (
	buildGoal   = 50
	hitsGoal    = 100_000
	buildingRow = "hard 128: hnswlib's CPU seconds until it can be searched / ours"
)

// rows returns a row for each goal that has figures.
func (v *verdict) rows() (rows []table.Row) {
	add := func(what string, figures []figure, set float64, of func(figure) bool) {
		row, best := table.Row{What: what, Unit: "×", Goal: set}, 0.
		for _, r := range figures {
			if !of(r) {
				continue
			}
			if row.Value == 0 || r.ratio < row.Value {
				row.Value = r.ratio
			}
			best = max(best, r.ratio)
		}
		if best > 0 {
			row.About = fmt.Sprintf("the worst figure; the best %.1f", best)
			rows = append(rows, row)
		}
	}
	for _, g := range searchGoals {
		if v.family < others && g.set[v.family] > 0 {
			add(g.what, v.figures, g.set[v.family], g.of)
		}
	}
	add(buildingRow, v.builds, buildGoal, on("hard", 128, "hnswlib"))
	if len(v.figures) > 0 {
		rows = append(rows, table.Row{What: "rows of peers that are worth more than ours", Value: float64(v.missed), Goal: .5, Most: true})
	}
	if v.compared > 0 {
		rows = append(rows, table.Row{
			What: "hits that differ from the plain scan", Value: float64(v.wrong), Goal: .5, Most: true, About: fmt.Sprintf("of %d; the goal is none of %d", v.compared, hitsGoal),
		})
	}
	return rows
}
