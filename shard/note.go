package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// A note is what a subject has beside its faces: an external id, user data and a salt. The subject's first
// active event carries it, in the sealed part of its entry:
//
//	sealed face | sealed note
//
// So a note needs no memory but its length, lies on the disk where the face lies, and leaves the disk
// when the entry does. An update of the subject replaces both. When the event that carries the note
// is removed, the next event of the subject becomes another entry, which carries it (Heir).
//
// A sealed note is
//
//	version: 1 byte | name of the external id: 10 bytes | sealed text
//
// The text is CBOR. The additional data bind it to the version, the name and the place of the face.
const (
	noteVersion = 1
	noteHead    = 1 + len(ExternalName{})

	// UserDataMax is the most bytes of user data.
	UserDataMax = 1024
	// ExternalIDMax is the most bytes of an external id: 128 characters.
	ExternalIDMax = 128 * 4
	// NoteMax is the largest sealed note in bytes.
	NoteMax = noteHead + seal.Overhead + ExternalIDMax + UserDataMax + 16 + 2 + SaltBytes
	// SaltBytes is the length of a salt.
	SaltBytes = 16
)

// ErrNote is returned for a sealed note of a form that this version does not read.
var ErrNote = errors.New("shard: unknown form of a sealed note")

// Note is what a subject has beside its faces. The zero Note is nothing.
type Note struct {
	// ExternalID is the client's own name of the subject, or empty.
	ExternalID string `cbor:"1,keyasint,omitempty"`
	// UserData is a JSON object, or nil.
	UserData []byte `cbor:"2,keyasint,omitempty"`
	// Salt goes into the name that audit records have of the subject. It is gone when the subject is
	// erased, so nobody can tell any more whom the name meant. It is zero for subjects that were enrolled
	// while their tenant had no audit log.
	Salt [SaltBytes]byte `cbor:"3,keyasint,omitzero"`
}

// IsZero reports whether the note says nothing.
func (n Note) IsZero() bool {
	return n.ExternalID == "" && len(n.UserData) == 0 && n.Salt == [SaltBytes]byte{}
}

// ExternalName stands for an external id where nobody may read it: 80 bits of a MAC with the
// gallery's key. Two of a million external ids of a gallery have the same name with a probability of
// 4·10⁻¹³; then the second one counts as taken. The zero name is none.
type ExternalName [10]byte

// IsZero reports whether n names no external id.
func (n ExternalName) IsZero() bool { return n == ExternalName{} }

// NameExternal returns the name of an external id of a gallery.
func NameExternal(key *seal.Key, g id.Gallery, generation uint32, externalID string) ExternalName {
	b := append([]byte("facet external id 1"), g.UUID[:]...)
	b = binary.BigEndian.AppendUint32(b, generation)
	mac := key.MAC(append(b, externalID...))
	return ExternalName(mac[:])
}

// headNote is the head of a note's text.
var headNote = codec.Head{Code: 1, Version: 1}

// SealNote encrypts a note for the place of the face that it goes with. The zero Note becomes nil.
func SealNote(key *seal.Key, ref FaceRef, n Note) []byte {
	if n.IsZero() {
		return nil
	}
	head := make([]byte, noteHead)
	head[0] = noteVersion
	if n.ExternalID != "" {
		name := NameExternal(key, ref.Gallery, ref.Generation, n.ExternalID)
		copy(head[1:], name[:])
	}
	return append(head, key.Seal(codec.Encode(headNote, n), noteAAD(ref, head))...)
}

func noteAAD(ref FaceRef, head []byte) []byte {
	return append([]byte("facet note"), ref.aad(head)...)
}

// OpenNote decrypts a note that SealNote made; nil is the zero Note. The error wraps seal.ErrOpen,
// ErrNote or codec.ErrMalformed.
func OpenNote(key *seal.Key, ref FaceRef, sealed []byte) (Note, error) {
	if len(sealed) == 0 {
		return Note{}, nil
	}
	if len(sealed) < noteHead || len(sealed) > NoteMax || sealed[0] != noteVersion {
		return Note{}, fmt.Errorf("open the note of subject %s: %w", ref.Subject, ErrNote)
	}
	head := sealed[:noteHead:noteHead]
	plain, err := key.Open(sealed[noteHead:], noteAAD(ref, head))
	var n Note
	if err == nil {
		err = codec.Decode(plain, headNote, &n)
	}
	if err != nil {
		return Note{}, fmt.Errorf("open the note of subject %s: %w", ref.Subject, err)
	}
	return n, nil
}

// ExternalOf returns the name of the external id in a sealed note, or the zero name. Only opening
// the note proves it.
func ExternalOf(sealed []byte) (n ExternalName) {
	if len(sealed) >= noteHead {
		copy(n[:], sealed[1:])
	}
	return n
}

// newDraft returns an entry with a sealed face, the note that it carries, and its time of expiry.
func newDraft(f record.Fields, face, note []byte, expires int64) *draft {
	f.SealedLen, f.NoteLen = uint16(len(face)), uint16(len(note))
	d := &draft{f, face, expires}
	if len(note) > 0 {
		d.sealed = append(append(make([]byte, 0, len(face)+len(note)), face...), note...)
	}
	return d
}

// split splits the sealed part of an entry into its face and its note.
func split(e *entry, sealed []byte) (face, note []byte) {
	if e.NoteLen == 0 {
		return sealed, nil
	}
	n := len(sealed) - int(e.NoteLen)
	return sealed[:n:n], sealed[n:]
}

// fits reports whether an entry may have such a face and such a note.
func fits(deleted bool, face, note []byte) bool {
	return len(face) <= SealedMax && (len(note) == 0 || !deleted && len(face) > 0 && len(note) <= NoteMax)
}

// NotesOf returns the sealed notes of subjects, with the events that carry them, or nil for a subject
// that is gone or has none. The error wraps ErrGeneration, or is that of the disk.
func (s *Shard) NotesOf(g id.Gallery, generation uint32, subjects []id.Subject) ([]Active, error) {
	entries, done, err := s.carriers(g, generation, subjects)
	if err != nil || entries == nil {
		return nil, err
	}
	defer done()
	out := make([]Active, len(subjects))
	for i, e := range entries {
		if e == nil {
			continue
		}
		_, note, err := s.sealed.parts(e)
		if errors.Is(err, segment.ErrMissing) {
			continue // the subject was removed or updated meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read the note of subject %s: %w", e.Subject, err)
		}
		out[i] = Active{Event: e.Event, Revision: e.Revision, Note: note}
	}
	return out, nil
}

// carriers returns the entries that carry the notes of subjects, each nil without a note. It returns
// nil if none has one. Otherwise the caller calls done when it has read them.
func (s *Shard) carriers(g id.Gallery, generation uint32, subjects []id.Subject) (entries []*entry, done func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return nil, nil, err
	}
	for i, subject := range subjects {
		if e := sl.first(subject); !e.none() && e.NoteLen > 0 {
			if entries == nil {
				entries = make([]*entry, len(subjects))
			}
			entries[i] = e.entry
		}
	}
	if entries == nil {
		return nil, nil, nil
	}
	return entries, sl.Pin(), nil
}

// NotedSubject is a subject with an external id.
type NotedSubject struct {
	Subject id.Subject
	Name    ExternalName
}

// notedSpan is the most entries that NotedAfter looks at while writes wait.
const notedSpan = 4096

// NotedAfter returns at most n subjects with an external id, whose entries follow a sequence. next is
// the sequence for the next call, or 0 at the end. The error wraps ErrGeneration, or is that of the
// disk.
func (s *Shard) NotedAfter(g id.Gallery, generation uint32, after uint64, n int) (list []NotedSubject, next uint64, err error) {
	entries, next, done, err := s.notedEntries(g, generation, after, n)
	if err != nil || done == nil {
		return nil, 0, err
	}
	defer done()
	for _, e := range entries {
		_, note, err := s.sealed.parts(e)
		if errors.Is(err, segment.ErrMissing) {
			continue // the entry is gone by now
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read the note of subject %s: %w", e.Subject, err)
		}
		if name := ExternalOf(note); !name.IsZero() {
			list = append(list, NotedSubject{e.Subject, name})
		}
	}
	return list, next, nil
}

// notedEntries returns entries with a note. The caller calls done, unless it is nil, when it has read them.
func (s *Shard) notedEntries(g id.Gallery, generation uint32, after uint64, n int) (entries []*entry, next uint64, done func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return nil, 0, nil, err
	}
	seen := 0
	for _, e := range sl.entries.All(after + 1) {
		if len(entries) == n || seen == notedSpan {
			next = e.Sequence() - 1
			break
		}
		seen++
		if e.NoteLen > 0 {
			entries = append(entries, e)
		}
	}
	return entries, next, sl.Pin(), nil
}

// Galleries returns the galleries that have a slice here, in order.
func (s *lockedState) Galleries() []id.Gallery {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(s.state.slices), func(a, b id.Gallery) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
}
