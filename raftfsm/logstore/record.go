package logstore

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// Record describes what a member has flushed. Each write of the log, the term and the vote
// contains it, so it costs no further flush. A member whose files hold less than its record
// does not open (Log.Complete). A later version may add fields.
type Record struct {
	// Last is the index of the newest entry, and LastTerm its term; 0 if that is not known.
	// The log may have no entries: a snapshot then holds what it had.
	Last     uint64 `cbor:"1,keyasint,omitempty"`
	LastTerm uint64 `cbor:"2,keyasint,omitempty"`
	// Term is the last term that the member knew; 0: it never knew one.
	Term uint64 `cbor:"3,keyasint,omitempty"`
	// VoteTerm and Candidate are its last vote; 0: it has not voted.
	VoteTerm  uint64 `cbor:"4,keyasint,omitempty"`
	Candidate string `cbor:"5,keyasint,omitempty"`
	// Commit is the highest index that the member knew to be committed. It may be a second
	// old.
	Commit uint64 `cbor:"6,keyasint,omitempty"`
}

// entry returns the sealed entry that holds the record.
func (r Record) entry() (*raft.Log, error) {
	b, err := cbor.Marshal(r)
	return seal(&raft.Log{Index: recordIndex, Type: raft.LogNoop, Data: b}), err
}

// readRecord returns the record, or the zero Record of a file to which nothing was written.
func readRecord(from raft.LogStore) (r Record, err error) {
	var l raft.Log
	switch err := from.GetLog(recordIndex, &l); {
	case errors.Is(err, raft.ErrLogNotFound):
		return r, nil
	case err != nil:
		return r, err
	}
	if err := unseal(recordIndex, &l); err != nil {
		return r, err
	}
	if err := cbor.Unmarshal(l.Data, &r); err != nil {
		return r, fmt.Errorf("the record of the log: %w: %w", health.ErrCorrupt, err)
	}
	return r, nil
}

// gone returns an error that wraps ErrGone.
func gone(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrGone)...)
}

// Complete returns ErrGone if the log or the snapshot that ends at the given index and term
// has less than the member has flushed. Such a member has forgotten entries that it
// acknowledged, so it must not vote. index is 0 without a snapshot. Complete comes before the
// log is made to agree with the snapshot.
func (s *Log) Complete(index, term uint64) error {
	first, firstErr := s.FirstIndex()
	last, lastErr := s.LastIndex()
	if err := errors.Join(firstErr, lastErr); err != nil {
		return err
	}
	r := s.disk.Record()
	if first > index+1 {
		return gone("the log begins at entry %d, and the newest snapshot ends at %d", first, index)
	}
	if first > 0 && last == 0 {
		return gone("the log has entries, and no record of what was written")
	}
	var at raft.Log // the newest entry
	if last > 0 {
		if err := s.read(last, &at); errors.Is(err, raft.ErrLogNotFound) {
			return gone("entry %d was written, and the log has none", last)
		} else if err != nil {
			return err
		}
	}
	if newest := max(at.Term, term); r.Term < newest {
		return gone("the member has entries of term %d and knows the term %d", newest, r.Term)
	}
	s.disk.Commit(r.Commit)
	if term > at.Term || term == at.Term && index > last {
		last, at.Term = index, term
	}
	switch {
	case at.Term < r.LastTerm || at.Term == r.LastTerm && last < r.Last:
		return gone("the log and the snapshot end at entry %d of term %d, and entry %d of term %d was written", last, at.Term, r.Last, r.LastTerm)
	case last < r.Commit:
		return gone("the log and the snapshot end at entry %d, and entries up to %d are committed", last, r.Commit)
	}
	return nil
}
