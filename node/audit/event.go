package audit

import (
	"crypto/sha256"
	"slices"

	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/shard"
	"facet/shard/seal"
)

// Event is a record whose subjects and probe have no names yet.
type Event struct {
	*entry.Record
	// Found are the subjects that the answer named, with their scores. Named are those that the
	// request named.
	Found []Found
	Named []Subject
	// Probe is a hash of the photos that were searched or compared, or zero.
	Probe [sha256.Size]byte
}

// Subject is a subject and its salt: see shard.Note. The salt is zero if the subject has none.
type Subject struct {
	ID   id.Subject
	Salt [shard.SaltBytes]byte
}

// Found is a subject of an answer.
type Found struct {
	Subject
	Score int
}

// name returns the name that records have of the subject.
func (s Subject) name(key *seal.Key) entry.Name {
	text := s.ID.UUID[:]
	if s.Salt != ([shard.SaltBytes]byte{}) {
		text = append(slices.Clip(text), s.Salt[:]...)
	}
	return nameOf(key, "subject", text)
}

// name fills in the names of an event's subjects and probe.
func (e Event) name(key *seal.Key) {
	for _, f := range e.Found {
		e.Add(f.name(key), f.Score)
	}
	for _, s := range e.Named {
		n := s.name(key)
		e.Subjects = append(e.Subjects, n[:]...)
	}
	if e.Probe != ([sha256.Size]byte{}) {
		e.Record.Probe = nameOf(key, "probe", e.Probe[:])
	}
}

// nameOf returns the name of something of a kind.
func nameOf(key *seal.Key, kind string, text []byte) entry.Name {
	sum := key.MAC(append([]byte(kind+" "), text...))
	return entry.Name(sum[:entry.NameBytes])
}
