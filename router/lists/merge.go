package lists

import (
	"cmp"
	"slices"
	"time"

	"facet/internal/id"
	"facet/router"
	"facet/router/cluster"
	"facet/shard"
)

func entryOf(e shard.Entry, note *router.Note) router.Entry {
	return router.Entry{Subject: e.Subject, Event: e.Event, Deleted: e.Deleted, Updated: time.UnixMilli(e.Time).UTC(), Note: note}
}

// placed is an entry with its place in the order of all shards' entries.
type placed struct {
	router.Entry
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
		p.Expires = cluster.ExpiresAt(l.kept, e.Time, own)
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
func window(lists []shardList, piece, start, length int, order router.Order) (page []placed, whole bool) {
	var all []placed
	for _, l := range lists {
		for i, e := range l.Entries {
			all = append(all, l.place(i, e))
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		by := cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.shard, b.shard))
		if order == router.Descending {
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

// shardList is the piece of a window that one shard holds.
type shardList struct {
	shard id.Shard
	listAnswer
	kept int64 // the gallery's retention in milliseconds, or 0
}
