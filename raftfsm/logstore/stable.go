package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// The keys that raft uses, and the keys that this package adds.
var (
	keyTerm          = []byte("CurrentTerm")
	keyVoteTerm      = []byte("LastVoteTerm")
	keyVoteCandidate = []byte("LastVoteCand")
	keyVote          = []byte("Vote")   // term and candidate as one value
	keyRecord        = []byte("Record") // Record
)

// Stable is a raft.StableStore. It keeps the term and the vote, each sealed with a
// CRC-32C. raft writes the term of a vote and its candidate one after the other, and a
// crash between the two would leave a vote of the new term for the old candidate
// (hashicorp/raft #661). So Stable holds the term until the candidate comes, and writes
// both as one value.
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

// Term returns the last term that the member knew of. known is false if it never knew one.
func (s *Stable) Term() (term uint64, known bool, err error) {
	term, err = s.GetUint64(keyTerm)
	if errors.Is(err, errNotFound) {
		return 0, false, nil
	}
	return term, err == nil, err
}

// SetTerm writes the term.
func (s *Stable) SetTerm(term uint64) error { return s.SetUint64(keyTerm, term) }

// Set writes a value. It writes the candidate of a vote together with the term that
// SetUint64 holds.
func (s *Stable) Set(key, value []byte) error {
	if bytes.Equal(key, keyVoteCandidate) {
		vote := binary.BigEndian.AppendUint64(nil, s.voteTerm)
		return s.put(keyVote, append(vote, value...))
	}
	return s.put(key, value)
}

// SetUint64 writes a number. It holds the term of a vote until Set gets the candidate. raft
// panics when its term can't be written. By then the group is out of service, so
// SetUint64 returns nil.
func (s *Stable) SetUint64(key []byte, value uint64) error {
	if bytes.Equal(key, keyVoteTerm) {
		s.voteTerm = value
		return nil
	}
	err := s.put(key, binary.BigEndian.AppendUint64(nil, value))
	if err != nil && s.health.Failed() != nil && bytes.Equal(key, keyTerm) {
		return nil
	}
	return err
}

// Get reads a value, or returns errNotFound.
func (s *Stable) Get(key []byte) ([]byte, error) {
	if bytes.Equal(key, keyVoteCandidate) {
		_, candidate, err := s.vote()
		return candidate, err
	}
	return s.get(key)
}

// GetUint64 reads a number, or returns errNotFound.
func (s *Stable) GetUint64(key []byte) (uint64, error) {
	if bytes.Equal(key, keyVoteTerm) {
		term, _, err := s.vote()
		return term, err
	}
	value, err := s.get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%s has %d bytes: %w", key, len(value), health.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(value), nil
}

func (s *Stable) vote() (term uint64, candidate []byte, err error) {
	value, err := s.get(keyVote)
	if err != nil {
		return 0, nil, err
	}
	if len(value) < 8 {
		return 0, nil, fmt.Errorf("vote has %d bytes: %w", len(value), health.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(value), value[8:], nil
}

// Verify reads the term and the vote. A member with a damaged vote must not vote.
func (s *Stable) Verify() error {
	_, termErr := s.GetUint64(keyTerm)
	_, _, voteErr := s.vote()
	for _, err := range []error{termErr, voteErr} {
		if err != nil && !errors.Is(err, errNotFound) {
			return err
		}
	}
	return nil
}

// stableSum returns the checksum over key and value.
func stableSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// sealValue returns the stored form of a value: the value and its checksum.
func sealValue(key, value []byte) []byte {
	sealed := append(make([]byte, 0, len(value)+4), value...)
	return binary.LittleEndian.AppendUint32(sealed, stableSum(key, value))
}

// unsealValue checks the stored form of a value and removes the checksum.
func unsealValue(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - 4
	if n < 0 || binary.LittleEndian.Uint32(sealed[n:]) != stableSum(key, sealed[:n]) {
		return nil, fmt.Errorf("%s: %w", key, health.ErrCorrupt)
	}
	return sealed[:n], nil
}

func (s *Stable) put(key, value []byte) error {
	if err := s.health.Failed(); err != nil {
		return err
	}
	sealed := sealValue(key, value)
	answered := s.health.Writing()
	err := guarded(func() error { return s.disk.Set(key, sealed) })
	answered()
	if err != nil {
		err = fmt.Errorf("write %s: %w", key, err)
		s.health.Fail(err)
	}
	return err
}

func (s *Stable) get(key []byte) (value []byte, err error) {
	err = guarded(func() (err error) { value, err = s.disk.Get(key); return err })
	switch {
	case errors.Is(err, errNotFound):
		return nil, errNotFound
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return unsealValue(key, value)
}
