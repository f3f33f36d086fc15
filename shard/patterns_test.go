package shard

import (
	"math/rand/v2"
	"slices"
	"testing"

	"facet/shard/scan"
)

// Rows with random tags come and go. The tags of each match a search if all of its events do.
func TestPatternMatchesIfEachEventDoes(t *testing.T) {
	t.Parallel()
	type row struct {
		tags   []uint32
		events [][]uint32
	}
	r := rand.New(rand.NewPCG(7, 7))
	some := func(most int) (tags []uint32) {
		for range r.IntN(most + 1) {
			tags = append(tags, r.Uint32N(4)+firstPattern*r.Uint32N(2))
		}
		return tags
	}
	var p patterns
	var rows []row
	for range 3000 {
		if len(rows) > 20 || len(rows) > 0 && r.IntN(3) == 0 {
			at := r.IntN(len(rows))
			p.release(rows[at].tags)
			rows = slices.Delete(rows, at, at+1)
			continue
		}
		var of row
		for range 2 + r.IntN(3) {
			tags := some(3)
			of.events = append(of.events, tags)
		}
		of.tags = p.take(of.events)
		rows = append(rows, of)
		q := append(some(3), r.Uint32N(4))
		want := p.matching(q)
		for _, of := range rows {
			misses := slices.ContainsFunc(of.events, func(tags []uint32) bool { return !scan.Tagged(tags, q) })
			if scan.Tagged(of.tags, want) == misses {
				t.Fatalf("search for %v finds a row with events %v: %v, want %v", q, of.events, misses, !misses)
			}
		}
	}
	for _, of := range rows {
		p.release(of.tags)
	}
	if len(p.byText) > 0 || p.bytes != 0 || len(p.free) != len(p.byNumber) {
		t.Errorf("%d patterns, %d bytes and %d of %d numbers stay", len(p.byText), p.bytes, len(p.free), len(p.byNumber))
	}
}
