package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard"
	"facet/shard/seal"
)

// BoundsOf returns what an application lets a search ask.
func BoundsOf(a metafsm.Application) router.SearchBounds {
	return router.SearchBounds{SearchThresholdMin: a.SearchThresholdMin, SearchLimitMax: a.SearchLimitMax}
}

// Gallery is a gallery together with the shards that it lies on.
type Gallery struct {
	metafsm.Gallery
	ShardIDs []id.Shard
}

// Holds reports whether the gallery is on a shard.
func (g Gallery) Holds(s id.Shard) bool {
	return slices.Contains(g.ShardIDs, s)
}

// dayMillis is a day in milliseconds.
const dayMillis = 24 * 3_600_000

// Kept returns the retention of the gallery in milliseconds, or 0.
func (g Gallery) Kept() int64 { return int64(g.RetentionDays) * dayMillis }

// Ends returns when a copy of an event expires that becomes another entry: not later than
// the event, in milliseconds since 1970, or 0 for never.
func (g Gallery) Ends(a shard.Active) int64 {
	if at := ExpiresAt(g.Kept(), a.Time, a.Expires); !at.IsZero() {
		return at.UnixMilli()
	}
	return 0
}

// ExpiresAt returns when an event expires that was updated at a time and has the time own,
// or 0: the earlier of own and the end of the gallery's retention kept, if that is not 0. It
// returns the zero time for never.
func ExpiresAt(kept, updated, own int64) time.Time {
	if end := updated + kept; kept > 0 && (own == 0 || end < own) {
		own = end
	}
	if own == 0 {
		return time.Time{}
	}
	return time.UnixMilli(own).UTC()
}

// ShardsOf returns the shards that a gallery is on.
func ShardsOf(meta *metafsm.Machine, g metafsm.Gallery) []id.Shard {
	record, _ := meta.Cluster()
	return metafsm.ShardsOf(g.ID, g.Shards, record.Shards)
}

// OpenNote decrypts the note of a subject that its event a carries. Without a note it returns nil.
func (g Gallery) OpenNote(key *seal.Key, subject id.Subject, a shard.Active) (*router.Note, error) {
	if len(a.Note) == 0 {
		return nil, nil
	}
	ref := g.FaceRef(subject, a.Event)
	ref.Revision = a.Revision
	n, err := shard.OpenNote(key, ref, a.Note)
	if err != nil {
		return nil, err
	}
	return &n, nil
}

// firstEpoch is the epoch of a gallery that never grew.
const firstEpoch = 1

// Purposes of derived ids. They are part of what a retry must find again.
const (
	purposeSubject = "subject"
	purposeEvent   = "event"
)

// Subject returns the id of the subject that an operation creates on a shard.
func (g Gallery) Subject(op id.Operation, home id.Shard) id.Subject {
	return id.Subject{UUID: id.Derive(g.IDKey[:], purposeSubject, op, home)}
}

// Event returns the id of the event that an operation creates on a shard.
func (g Gallery) Event(op id.Operation, home id.Shard) id.Event {
	return id.Event{UUID: id.Derive(g.IDKey[:], purposeEvent, op, home)}
}

// Home returns the shard on which op has its effect. The growth of a gallery
// changes the shard of an operation. But if an earlier try had its effect on the
// former shard, Home returns that one. known reports whether op had its effect on a
// shard.
func (g Gallery) Home(op id.Operation, known func(id.Shard) (bool, error)) (id.Shard, error) {
	at := func(n int) id.Shard { return g.ShardIDs[metafsm.Jump(binary.BigEndian.Uint64(op[:8]), n)] }
	home := at(len(g.ShardIDs))
	if g.Epoch == firstEpoch {
		return home, nil
	}
	last := home
	for n := len(g.ShardIDs) - 1; n > 0; n-- {
		earlier := at(n)
		if earlier == last {
			continue
		}
		last = earlier
		if done, err := known(earlier); err != nil || done {
			return earlier, err
		}
	}
	return home, nil
}

// FaceRef returns what the seal of a face of revision 0 is bound to.
func (g Gallery) FaceRef(subject id.Subject, event id.Event) shard.FaceRef {
	return shard.FaceRef{Gallery: g.ID, Generation: g.Generation, Subject: subject, Event: event}
}
