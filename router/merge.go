package router

import (
	"cmp"
	"slices"
	"time"

	"facet/internal/id"
	"facet/shard"
	"facet/shard/scan"
)

// bestHits joins the lists of the shards and keeps the best limit events. Each list already is the best
// limit of its shard. With CountSubjects a list has one event for each subject, so limiting events limits
// subjects.
func bestHits(lists [][]notedHit, limit int) []notedHit {
	hits := slices.Concat(lists...)
	slices.SortFunc(hits, func(a, b notedHit) int { return scan.Compare(a.Hit, b.Hit) })
	return hits[:min(limit, len(hits))]
}

// notesOf returns the sealed notes of the subjects of hits.
func notesOf(hits []notedHit) map[id.Subject]shard.Active {
	notes := map[id.Subject]shard.Active{}
	for _, h := range hits {
		if len(h.Noted.Note) > 0 {
			notes[h.Subject] = h.Noted
		}
	}
	return notes
}

// divide returns the candidates of sorted hits, and those of which no hit reaches the threshold. The hits of
// a candidate below the threshold are left out.
func divide(hits []notedHit, threshold int) (candidates, doubtful []Candidate) {
	below := slices.IndexFunc(hits, func(h notedHit) bool { return h.Rank() < threshold })
	if below < 0 {
		return candidatesOf(hits), nil
	}
	candidates = candidatesOf(hits[:below])
	doubtful = candidatesOf(slices.DeleteFunc(hits[below:], func(h notedHit) bool {
		return slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Subject == h.Subject })
	}))
	return candidates, doubtful
}

// candidatesOf groups sorted hits by subject.
func candidatesOf(hits []notedHit) []Candidate {
	candidates := []Candidate{}
	for _, h := range hits {
		event := CandidateEvent{Event: h.Event, Score: h.Score}
		at := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Subject == h.Subject })
		if at >= 0 {
			candidates[at].Events = append(candidates[at].Events, event)
			continue
		}
		candidates = append(candidates, Candidate{
			Subject: h.Subject, Score: h.Rank(), SubjectScore: h.SubjectScore, Events: []CandidateEvent{event},
		})
	}
	return candidates
}

func entryOf(e shard.Entry, note *Note) Entry {
	return Entry{Subject: e.Subject, Event: e.Event, Deleted: e.Deleted, Updated: time.UnixMilli(e.Time).UTC(), Note: note}
}

// placed is an entry with its place in the order of all shards' entries.
type placed struct {
	Entry
	shard    id.Shard
	at       int // index in the piece of its shard
	sequence uint64
	// noted has the subject's note, if it has one.
	noted shard.Active
}

// place returns the i-th entry e of a list.
func (l shardList) place(i int, e shard.Entry) placed {
	p := placed{Entry: entryOf(e, nil), shard: l.shard, at: i}
	if i < len(l.Noted) {
		p.noted = l.Noted[i]
	}
	if i < len(l.Sequences) { // soonest has none
		p.sequence = l.Sequences[i]
	}
	if !e.Deleted {
		var own int64
		if i < len(l.Expires) {
			own = l.Expires[i]
		}
		p.Expires = expiresAt(l.kept, e.Time, own)
	}
	return p
}

// soonest merges the shards' lists in the order in which their entries expire. Entries of
// the same time are in the order of their shards.
func soonest(lists []shardList) (all []placed) {
	for _, l := range lists {
		for i, e := range l.Entries {
			all = append(all, l.place(i, e))
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.shard, b.shard), cmp.Compare(a.at, b.at))
	})
	return all
}

// window merges the shards' lists, each in the given order and cut after piece
// entries. It returns at most length entries from index start on. Entries of the
// same time are in the order of their shards' numbers, and of their places in their
// shard's list. whole is false when an entry that was cut off may belong to the
// window.
func window(lists []shardList, piece, start, length int, order Order) (page []placed, whole bool) {
	var all []placed
	for _, l := range lists {
		for i, e := range l.Entries {
			all = append(all, l.place(i, e))
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		by := cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.shard, b.shard))
		if order == Descending {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.at, b.at))
	})
	end := min(start+length, len(all))
	page = all[min(start, end):end]
	// A list of piece entries was cut: its shard may have more entries after the last.
	for i, e := range all[:end] {
		if e.at == piece-1 && i < start+length-1 {
			return page, false
		}
	}
	return page, end == start+length || !slices.ContainsFunc(lists, func(l shardList) bool { return len(l.Entries) == piece })
}
