package router

import (
	"cmp"
	"slices"

	"facet/internal/id"
	"facet/shard"
	"facet/shard/scan"
)

// merge joins the shards' lists, each already the best limit of its shard, keeps
// the best limit of all, and groups them by subject. With CountSubjects each
// shard gave one event a subject, so cutting events cuts subjects.
func merge(lists [][]shard.Hit, limit int) []Candidate {
	hits := slices.Concat(lists...)
	slices.SortFunc(hits, scan.Compare)
	hits = hits[:min(limit, len(hits))]
	candidates := []Candidate{}
	for _, h := range hits {
		event := CandidateEvent{Event: h.Event, Score: h.Score}
		at := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Subject == h.Subject })
		if at >= 0 {
			candidates[at].Events = append(candidates[at].Events, event)
			continue
		}
		candidates = append(candidates, Candidate{Subject: h.Subject, Score: h.Score, Events: []CandidateEvent{event}})
	}
	return candidates
}

// window merges the shards' lists, each in ascending order and cut after piece
// entries, and gives the entries from start on, at most length. Entries of one time
// keep the order of the shards' numbers, and those of one shard their own. It is
// whole unless something that was cut off may belong to it.
func window(lists []shardList, piece, start, length int) (entries []Entry, whole bool) {
	type place struct {
		shard id.Shard
		at    int
		Entry
	}
	var all []place
	for _, l := range lists {
		for i, e := range l.entries {
			all = append(all, place{l.shard, i, e})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.shard, b.shard), cmp.Compare(a.at, b.at))
	})
	end := min(start+length, len(all))
	for _, e := range all[min(start, end):end] {
		entries = append(entries, e.Entry)
	}
	// Behind the last entry of a list that was cut, others of that shard may follow.
	for i, e := range all[:end] {
		if e.at == piece-1 && i < start+length-1 {
			return entries, false
		}
	}
	return entries, end == start+length || !slices.ContainsFunc(lists, func(l shardList) bool { return len(l.entries) == piece })
}
