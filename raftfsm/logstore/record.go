package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"facet/raftfsm/health"
)

const (
	recordVersion = 1
	recordBytes   = 1 + 6*8
)

// Record describes what a member has flushed. Each write of the log, the term and the vote
// writes it in its own transaction, so it costs no further flush. A member whose files hold
// less than its record does not open (Log.Complete).
type Record struct {
	// First and Last are the indices of the oldest and the newest entry. LastTerm is the term
	// of the newest; 0 if it is not known. Without entries First is Last+1: a snapshot then
	// holds what the log had.
	First, Last, LastTerm uint64
	Term                  uint64 // the last term that the member knew
	VoteTerm              uint64 // the term of its vote
	// Commit is the highest index that the member knew to be committed. It may be a second
	// old.
	Commit uint64
}

func (r *Record) encode() []byte {
	b := append(make([]byte, 0, recordBytes), recordVersion)
	for _, n := range []uint64{r.First, r.Last, r.LastTerm, r.Term, r.VoteTerm, r.Commit} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// decodeRecord reads a record. A later version may have more fields behind these.
func decodeRecord(b []byte) (r Record, err error) {
	if len(b) < recordBytes || b[0] < recordVersion {
		return r, fmt.Errorf("the record of the log has %d bytes: %w", len(b), health.ErrCorrupt)
	}
	for i, n := range []*uint64{&r.First, &r.Last, &r.LastTerm, &r.Term, &r.VoteTerm, &r.Commit} {
		*n = binary.LittleEndian.Uint64(b[1+8*i:])
	}
	return r, nil
}

// readRecord returns the record, or the zero Record of a file to which nothing was written.
func readRecord(conf *bbolt.Bucket) (r Record, err error) {
	sealed := conf.Get(keyRecord)
	if sealed == nil {
		return r, nil
	}
	b, err := unsealValue(keyRecord, sealed)
	if err == nil {
		r, err = decodeRecord(b)
	}
	return r, err
}

// note takes the term out of a value that Stable writes.
func (r *Record) note(key, value []byte) {
	if len(value) < 8 {
		return
	}
	switch term := binary.BigEndian.Uint64(value); {
	case bytes.Equal(key, keyTerm):
		r.Term = term
	case bytes.Equal(key, keyVote):
		r.VoteTerm = term
	}
}

// gone returns an error that wraps ErrGone.
func gone(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrGone)...)
}

// Complete returns ErrGone if the log, the term, the vote, or the snapshot that ends at the
// given index and term has less than the member has flushed. Such a member has forgotten
// entries that it acknowledged, or its vote, so it must not vote. index is 0 without a
// snapshot. Complete comes before the log is made to agree with the snapshot.
func (s *Log) Complete(stable *Stable, index, term uint64) error {
	first, firstErr := s.FirstIndex()
	last, lastErr := s.LastIndex()
	own, known, termErr := stable.Term()
	if err := errors.Join(firstErr, lastErr, termErr); err != nil {
		return err
	}
	if first > index+1 {
		return gone("the log begins at entry %d, and the newest snapshot ends at %d", first, index)
	}
	var at raft.Log // the newest entry
	if last > 0 {
		if err := s.read(last, &at); err != nil {
			return err
		}
	}
	if newest := max(at.Term, term); newest > 0 && !known || own < newest {
		return gone("the member has entries of term %d and knows the term %d", newest, own)
	}
	var r Record
	err := guarded(func() (err error) { r, err = s.disk.Record(); return err })
	if err != nil {
		return err
	}
	if r.Last == 0 && last > 0 {
		return gone("the log has entries, and no record of what was written")
	}
	s.disk.Commit(r.Commit)
	if term > at.Term || term == at.Term && index > last {
		last, at.Term = index, term
	}
	return r.check(stable, last, at.Term)
}

// check compares the record with the terms and the last entry that a member has.
func (r *Record) check(stable *Stable, last, lastTerm uint64) error {
	own, _, err := stable.Term()
	if err != nil {
		return err
	}
	vote, _, err := stable.vote()
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	switch {
	case own < r.Term:
		return gone("the term %d was written, and the term is %d", r.Term, own)
	case vote < r.VoteTerm:
		return gone("a vote of term %d was written, and the vote is of term %d", r.VoteTerm, vote)
	case lastTerm < r.LastTerm || lastTerm == r.LastTerm && last < r.Last:
		return gone("the log and the snapshot end at entry %d of term %d, and entry %d of term %d was written", last, lastTerm, r.Last, r.LastTerm)
	case last < r.Commit:
		return gone("the log and the snapshot end at entry %d, and entries up to %d are committed", last, r.Commit)
	}
	return nil
}
