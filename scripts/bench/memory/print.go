package memory

import (
	"fmt"
	"math"
	"slices"

	"facet/scripts/bench/table"
)

// Goals for templates of 192 numbers, in bytes an event, and for the estimate. With fewer events the last
// chunks of the shards, which are partly empty, weigh more.
const (
	goalDim      = 192
	goalEvents   = 10_000_000
	codeGoal     = 270
	recordGoal   = 96
	estimateGoal = .1 // of the resident memory
)

// extrapolated is the number of events for which the bench computes a node's memory.
const extrapolated = 50_000_000

// print prints the bytes of an event. empty is the node with one event; all and some have the events,
// some with exact numbers on disk.
func (b *bench) print(dim int, empty, all, some state, peers map[string]float64) error {
	n := float64(b.events)
	each := func(v func(s *state) float64) []string {
		cells := make([]string, 0, 2)
		for _, s := range []*state{&all, &some} {
			cells = append(cells, fmt.Sprintf("%.0f", (v(s)-v(&empty))/n))
		}
		return cells
	}
	other := func(s *state) float64 { return s.resident - s.planes - s.codes - s.exact - s.records - s.goHeap }
	lines := [][]string{
		append([]string{"planes of 4-bit codes"}, each(func(s *state) float64 { return s.planes })...),
		append([]string{"8-bit codes"}, each(func(s *state) float64 { return s.codes })...),
		append([]string{"exact numbers"}, each(func(s *state) float64 { return s.exact })...),
		append([]string{"records"}, each(func(s *state) float64 { return s.records })...),
		append([]string{"Go heap"}, each(func(s *state) float64 { return s.goHeap })...),
		append([]string{"other"}, each(other)...),
		append([]string{"**resident**"}, each(func(s *state) float64 { return s.resident })...),
		append([]string{"by the node's estimate"}, each(func(s *state) float64 { return s.estimate })...),
	}
	title := fmt.Sprintf("%d templates of %d numbers: bytes an event, beyond the %.0f MB of a node with one event", b.events, dim, empty.resident/1e6)
	if err := table.Write(b.out, title, []string{"", "all in memory", fmt.Sprintf("memory: %d MiB", b.memory)}, lines); err != nil {
		return err
	}
	cold := (some.resident - empty.resident) / n
	rows := []table.Row{
		{What: "planes and codes", Value: (some.planes + some.codes) / n, Unit: "bytes"},
		{What: "records, and the Go heap of events", Value: (some.records + some.goHeap - empty.goHeap) / n, Unit: "bytes", Goal: recordGoal, Most: true},
		{What: "estimate / resident, all in memory: distance from 1", Value: off(&all, &empty), Goal: estimateGoal, Most: true},
		{What: "estimate / resident, exact numbers on disk: distance from 1", Value: off(&some, &empty), Goal: estimateGoal, Most: true},
		{What: "templates on disk", Value: some.cold / n * 100, Unit: "%"},
		{What: "resident, the whole process, all in memory", Value: all.resident / 1e9, Unit: "GB"},
		{What: "resident, the whole process, exact numbers on disk", Value: some.resident / 1e9, Unit: "GB"},
		{What: "search in a shard, all in memory", Value: all.search, Unit: "ms"},
		{What: "search in a shard, exact numbers on disk", Value: some.search, Unit: "ms", About: fmt.Sprintf("%.2f ×", some.search/all.search)},
		{
			What: fmt.Sprintf("extrapolated: a node with %d million events", extrapolated/1_000_000), Value: (empty.resident + cold*extrapolated) / 1e9, Unit: "GB",
			About: "not measured: bytes an event × events",
		},
	}
	if dim == goalDim && b.events >= goalEvents {
		rows[0].Goal, rows[0].Most = codeGoal, true
	}
	names := make([]string, 0, len(peers))
	for name := range peers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, table.Row{What: "FAISS " + name, Value: peers[name], Unit: "bytes", About: fmt.Sprintf("facet takes %.2f ×, all in memory, and %.2f ×", (all.resident-empty.resident)/n/peers[name], cold/peers[name])})
	}
	return table.Print(b.out, "Beside goals and FAISS", rows)
}

// off returns how far the estimate of the events' memory is from what is resident, as a part of it.
func off(s, empty *state) float64 {
	return math.Abs(s.estimate/(s.resident-empty.resident) - 1)
}
