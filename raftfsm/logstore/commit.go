package logstore

import (
	"bytes"

	"github.com/hashicorp/raft"

	"facet/raftfsm/health"
)

// A member never forgets what it knows to be committed. raft keeps its commit index in
// memory only, and removes any end of the log that a new leader contradicts. If a majority
// has lost acknowledged entries, for example because its disks were restored from old
// copies, the rest would follow without a word. So each write records the commit index, and
// Log refuses to remove a committed entry.

// Follow sets the function that returns raft's commit index.
func (s *Log) Follow(commit func() uint64) { s.commit.Store(&commit) }

// Commit returns the highest index that this member knows to be committed.
func (s *Log) Commit() uint64 {
	index := s.covered.Load()
	if commit := s.commit.Load(); commit != nil {
		index = max(index, (*commit)())
	}
	return s.disk.Commit(index)
}

// Cover records that a snapshot holds all entries up to index. Calls don't overlap.
func (s *Log) Cover(index uint64) { s.covered.Store(max(index, s.covered.Load())) }

// SaveCommit writes the commit index to the disk unless a write has recorded index or more.
func (s *Log) SaveCommit(index uint64) error {
	if s.disk.Record().Commit >= index {
		return nil
	}
	return s.write("write the commit index", func() error { return s.disk.Save(func(*Record) {}) })
}

// Contradiction returns a *health.RewriteError if this member has a committed entry of
// another term in the place of l, or of another content unless l has only index and term.
// It returns nil if the member does not know. from is the log as raft reads it.
//
// Members that have lost entries may reuse a term, so the contents count too.
func (s *Log) Contradiction(from raft.LogStore, l *raft.Log) error {
	commit := s.Commit()
	if l.Index == 0 || l.Index > commit {
		return nil
	}
	var own raft.Log
	if err := from.GetLog(l.Index, &own); err != nil {
		return nil // it was cut
	}
	// An entry without a time has no contents to compare: l, or the one at the end of an
	// installed snapshot (raftfsm/snapshots, reconcile.go).
	described := l.AppendedAt.IsZero() || own.AppendedAt.IsZero()
	if own.Term == l.Term && (described || own.Type == l.Type && bytes.Equal(own.Data, l.Data)) {
		return nil
	}
	return &health.RewriteError{From: l.Index, Commit: commit}
}

// rewritten takes the group out of service because other members replace committed entries
// from the index on.
func (s *Log) rewritten(from uint64) error {
	err := &health.RewriteError{From: from, Commit: s.Commit()}
	s.health.Fail(err)
	return err
}
