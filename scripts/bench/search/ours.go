package search

import (
	"encoding/binary"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/scan"
)

// ours is the kernel, filled with the rows of a set.
type ours struct {
	set   *set
	m     *kernel.Matrix
	arena *kernel.Arena
	table *score.Table
	build time.Duration
}

func newOurs(s *set) (*ours, error) {
	table, err := s.table()
	if err != nil {
		return nil, err
	}
	o := &ours{set: s, arena: kernel.NewArena(0), table: table}
	if s.spectrum != nil {
		if err := o.arena.Suit(s.spectrum); err != nil {
			return nil, err
		}
	}
	owners := new(kernel.OwnerList)
	if o.m, err = kernel.New(o.arena, s.dim, owners); err != nil {
		return nil, err
	}
	n := len(s.rows) / s.dim
	for i := range n {
		// The order of the subjects is unrelated to the order of the rows.
		owner := new(kernel.Owner)
		binary.BigEndian.PutUint32(owner.Subject.UUID[:], uint32(i)*2654435761)
		binary.BigEndian.PutUint32(owner.Event.UUID[:], uint32(i))
		owners.Add(owner, nil)
	}
	begin := time.Now()
	for i := range n {
		if _, err := o.m.Add(uint32(i+1), s.row(i)); err != nil {
			return nil, err
		}
	}
	o.build = time.Since(begin)
	return o, nil
}

func (s *set) row(i int) []float32 { return s.rows[i*s.dim : (i+1)*s.dim] }

// rowOf returns the row of a hit.
func rowOf(e id.Event) int { return int(binary.BigEndian.Uint32(e.UUID[:])) }

// ask describes a way of searching.
type ask struct {
	limit, threshold, batch int
}

func (o *ours) queries(probes []float32, a ask) []scan.Query {
	qs := make([]scan.Query, len(probes)/o.set.dim)
	for i := range qs {
		qs[i] = scan.Query{Probe: probes[i*o.set.dim : (i+1)*o.set.dim], Limit: a.limit, Threshold: a.threshold}
	}
	return qs
}

// time searches with all probes. For each batch it returns the time of one probe.
func (o *ours) time(probes []float32, a ask) (ms []float64, hits [][]scan.Hit, err error) {
	qs := o.queries(probes, a)
	for i := 0; i < len(qs); i += a.batch {
		part := qs[i:min(i+a.batch, len(qs))]
		var found [][]scan.Hit
		begin := time.Now()
		if a.batch == 1 {
			found = make([][]scan.Hit, 1)
			found[0], err = o.m.Search(o.table, part[0])
		} else {
			found, err = o.m.SearchAll(o.table, part)
		}
		if err != nil {
			return nil, nil, err
		}
		ms = append(ms, time.Since(begin).Seconds()*1e3/float64(len(part)))
		hits = append(hits, found...)
	}
	return ms, hits, nil
}

// check compares the kernel's best 50 for each probe with those of the plain scan,
// without a threshold and with each threshold of the set. It returns the number of
// compared hits and the number of wrong ones.
func (o *ours) check(probes []float32) (compared, wrong int, err error) {
	rows := func(yield func(scan.Row) bool) {
		var r scan.Row
		for i := range len(o.set.rows) / o.set.dim {
			binary.BigEndian.PutUint32(r.Subject.UUID[:], uint32(i)*2654435761)
			binary.BigEndian.PutUint32(r.Event.UUID[:], uint32(i))
			if r.Template = o.set.row(i); !yield(r) {
				return
			}
		}
	}
	const batch = 32
	qs := o.queries(probes, ask{limit: 50})
	for i := 0; i < len(qs); i += batch {
		part := qs[i:min(i+batch, len(qs))]
		for j := range part {
			part[j].Threshold = o.set.least[(i+j)%len(o.set.least)].score
			if (i+j)%2 == 0 {
				part[j].Threshold = 0
			}
		}
		together, err := o.m.SearchAll(o.table, part)
		if err != nil {
			return 0, 0, err
		}
		for j, q := range part {
			want := scan.TopK(rows, o.table, q)
			alone, err := o.m.Search(o.table, q)
			if err != nil {
				return 0, 0, err
			}
			compared += len(want)
			wrong += differ(together[j], want) + differ(alone, want)
		}
	}
	return compared, wrong, nil
}

func differ(got, want []scan.Hit) (n int) {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			n++
		}
	}
	return n
}

// score returns the kernel's score of a probe and a row of a peer's answer.
func (o *ours) score(probe []float32, row int) int {
	return o.table.Score(score.Dot(probe, o.set.row(row)))
}

// recall returns the share of our hits that a peer found. A row of the peer counts as
// found if its score is at least that of our worst hit, whichever of equal rows it is.
// Only hits with a score of at least least count. Without such hits recall returns NaN.
func (o *ours) recall(probes []float32, ids [][]int, hits [][]scan.Hit, least int) float64 {
	found, all := 0, 0
	for i, want := range hits {
		want = atLeast(want, least)
		if len(want) == 0 {
			continue
		}
		all += len(want)
		worst, good := want[len(want)-1].Score, 0
		for _, row := range ids[i] {
			if row >= 0 && o.score(probes[i*o.set.dim:(i+1)*o.set.dim], row) >= worst {
				good++
			}
		}
		found += min(good, len(want))
	}
	return float64(found) / float64(all)
}

// missed returns the number of a peer's rows that belong among our hits but are missing
// there.
func (o *ours) missed(probes []float32, ids [][]int, hits [][]scan.Hit) (n int) {
	for i, want := range hits {
		have := make(map[int]bool)
		for _, h := range want {
			have[rowOf(h.Event)] = true
		}
		for _, row := range ids[i] {
			if row >= 0 && !have[row] && o.score(probes[i*o.set.dim:(i+1)*o.set.dim], row) > want[len(want)-1].Score {
				n++
			}
		}
	}
	return n
}

func atLeast(hits []scan.Hit, least int) []scan.Hit {
	for i, h := range hits {
		if h.Score < least {
			return hits[:i]
		}
	}
	return hits
}
