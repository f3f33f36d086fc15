package router

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/shard"
	"facet/shard/scan"
)

// hidden lets cmp compare the sealed notes of candidates.
var hidden = cmp.AllowUnexported(Candidate{})

func subjectOf(n int) id.Subject { return id.Subject{UUID: id.UUID{byte(n >> 8), byte(n)}} }
func eventOf(n int) id.Event     { return id.Event{UUID: id.UUID{byte(n >> 8), byte(n)}} }

// TestMergeIgnoresTheLayout distributes one list of hits over 1 to 7 shards in many
// ways. The candidates are always those of the whole list.
func TestMergeIgnoresTheLayout(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var all []notedHit
		for e := range 60 {
			all = append(all, notedHit{Hit: shard.Hit{Subject: subjectOf(random.IntN(20)), Event: eventOf(e), Score: 7000 + random.IntN(5)}})
		}
		limit := 1 + random.IntN(50)
		want := candidatesOf(bestHits([][]notedHit{best(all, limit)}, limit))
		lists := make([][]notedHit, 1+random.IntN(7))
		for _, h := range all {
			at := int(h.Subject.UUID[1]) % len(lists) // all events of a subject lie on one shard
			lists[at] = append(lists[at], h)
		}
		for i := range lists {
			lists[i] = best(lists[i], limit)
		}
		if diff := cmp.Diff(want, candidatesOf(bestHits(lists, limit)), hidden); diff != "" {
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
		var all, above []notedHit
		for e := range 60 {
			h := notedHit{Hit: shard.Hit{Subject: subjectOf(random.IntN(30)), Event: eventOf(e), Score: 6000 + random.IntN(2000)}}
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
		want := candidatesOf(bestHits([][]notedHit{above}, limit))
		candidates, doubtful := divide(bestHits([][]notedHit{all}, limit), 7000)
		if diff := cmp.Diff(want, candidates, hidden); diff != "" {
			t.Fatalf("seed %d, limit %d: %s", seed, limit, diff)
		}
		events := 0
		for _, c := range append(candidates, doubtful...) {
			events += len(c.Events)
		}
		for _, d := range doubtful {
			if d.Score >= 7000 || slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Subject == d.Subject }) {
				t.Fatalf("seed %d: %+v is doubtful", seed, d)
			}
		}
		if events > limit || len(all) > limit && len(candidates) == 0 && len(doubtful) == 0 {
			t.Fatalf("seed %d: %d events of %d", seed, events, limit)
		}
	}
}

func best(hits []notedHit, limit int) []notedHit {
	hits = slices.Clone(hits)
	slices.SortFunc(hits, func(a, b notedHit) int { return scan.Compare(a.Hit, b.Hit) })
	return hits[:min(limit, len(hits))]
}

func TestMergeGroupsEventsBySubject(t *testing.T) {
	t.Parallel()
	got := candidatesOf(bestHits([][]notedHit{
		{{Hit: shard.Hit{Subject: subjectOf(1), Event: eventOf(1), Score: 9000}}, {Hit: shard.Hit{Subject: subjectOf(1), Event: eventOf(2), Score: 7100}}},
		{{Hit: shard.Hit{Subject: subjectOf(2), Event: eventOf(3), Score: 9000}}, {Hit: shard.Hit{Subject: subjectOf(3), Event: eventOf(4), Score: 7000}}},
	}, 3))
	want := []Candidate{
		{Subject: subjectOf(1), Score: 9000, Events: []CandidateEvent{{eventOf(1), 9000}, {eventOf(2), 7100}}},
		{Subject: subjectOf(2), Score: 9000, Events: []CandidateEvent{{eventOf(3), 9000}}},
	}
	if diff := cmp.Diff(want, got, hidden); diff != "" {
		t.Error(diff)
	}
}

// TestWindowsAreCutsOfOneOrder reads a list page by page. Its entries often share
// their time.
func TestWindowsAreCutsOfOneOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	lists := make([]shardList, 3)
	n := 0
	for i := range lists {
		lists[i].shard = id.Shard(i + 1)
		at := int64(0)
		for range 30 {
			at += int64(random.IntN(2))
			lists[i].Entries = append(lists[i].Entries, shard.Entry{Event: eventOf(n), Time: at})
			n++
		}
	}
	whole, _ := window(lists, 1000, 0, 1000, Ascending)
	if len(whole) != n {
		t.Fatalf("got %d entries, want %d", len(whole), n)
	}
	var pages []placed
	for start := 0; start < n; start += 7 {
		page, _ := window(lists, 1000, start, 7, Ascending)
		pages = append(pages, page...)
	}
	if diff := cmp.Diff(fmt.Sprint(whole), fmt.Sprint(pages)); diff != "" {
		t.Error(diff)
	}
}
