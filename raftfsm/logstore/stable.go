package logstore

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// The keys that raft uses.
const (
	keyTerm          = "CurrentTerm"
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
)

// errNotFound is returned for a key that has no value. raft compares its text.
var errNotFound = errors.New("not found")

// Stable is a raft.StableStore. It keeps the term and the vote in the record of the log. raft
// writes the term of a vote and its candidate one after the other, and a crash between the two
// would leave a vote of the new term for the old candidate (hashicorp/raft #661). So Stable
// holds the term until the candidate comes, and writes both at once.
type Stable struct {
	disk   Disk
	health *health.Monitor
	// voteTerm is the term that raft has set for its next vote. Only raft's main goroutine
	// writes votes.
	voteTerm uint64
}

var _ raft.StableStore = (*Stable)(nil)

// NewStable returns the term and vote on d. It reports writes and errors to h.
func NewStable(d Disk, h *health.Monitor) *Stable { return &Stable{disk: d, health: h} }

// Term returns the last term that the member knew, or 0 if it never knew one.
func (s *Stable) Term() uint64 { return s.disk.Record().Term }

// SetTerm writes the term.
func (s *Stable) SetTerm(term uint64) error {
	return s.save(keyTerm, func(r *Record) { r.Term = term })
}

// Set writes the candidate of a vote, together with the term that SetUint64 holds.
func (s *Stable) Set(key, value []byte) error {
	if string(key) != keyVoteCandidate {
		return unknown(key)
	}
	return s.save(keyVoteCandidate, func(r *Record) { r.VoteTerm, r.Candidate = s.voteTerm, string(value) })
}

// SetUint64 writes the term, or holds the term of a vote until Set gets the candidate. raft
// panics when its term can't be written. By then the group is out of service, so SetUint64
// returns nil.
func (s *Stable) SetUint64(key []byte, value uint64) error {
	switch string(key) {
	case keyVoteTerm:
		s.voteTerm = value
		return nil
	case keyTerm:
		if err := s.SetTerm(value); err != nil && s.health.Failed() == nil {
			return err
		}
		return nil
	default:
		return unknown(key)
	}
}

// Get reads the candidate of the last vote, or returns errNotFound.
func (s *Stable) Get(key []byte) ([]byte, error) {
	r := s.disk.Record()
	switch {
	case string(key) != keyVoteCandidate:
		return nil, unknown(key)
	case r.VoteTerm == 0:
		return nil, errNotFound
	default:
		return []byte(r.Candidate), nil
	}
}

// GetUint64 reads the term, or that of the last vote, or returns errNotFound.
func (s *Stable) GetUint64(key []byte) (term uint64, err error) {
	switch r := s.disk.Record(); string(key) {
	case keyVoteTerm:
		term = r.VoteTerm
	case keyTerm:
		term = r.Term
	default:
		return 0, unknown(key)
	}
	if term == 0 {
		return 0, errNotFound
	}
	return term, nil
}

func unknown(key []byte) error { return fmt.Errorf("bug: raft has a new key, %s", key) }

func (s *Stable) save(key string, change func(*Record)) error {
	return write(s.health, "write "+key, func() error { return s.disk.Save(change) })
}
