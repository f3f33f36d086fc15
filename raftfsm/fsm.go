package raftfsm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/raftfsm/snapshots"
)

// fsm stands between raft and the Machine. It records which entries the machine has
// applied, and wakes the callers that wait for an index. raft's AppliedIndex counts
// entries that are only queued for the machine.
type fsm struct {
	group   id.Shard
	machine Machine
	health  *health.Monitor
	checks  *checks

	applied atomic.Uint64 // index that the machine has applied
	moved   chan struct{} // capacity 1: applied has changed since it was last emptied

	// mu guards term, termMove, waiters, config and configAt. It is never held during a
	// call to the machine.
	mu       sync.Mutex
	term     uint64        // of the newest entry of ours that was applied
	termMove chan struct{} // closed and replaced when term changes
	waiters  []*waiter     // lowest index first
	config   []Server      // the newest applied configuration
	configAt uint64        // its index
}

var (
	_ raft.FSM                = (*fsm)(nil)
	_ raft.ConfigurationStore = (*fsm)(nil)
)

func newFSM(group id.Shard, m Machine, h *health.Monitor) *fsm {
	return &fsm{group: group, machine: m, health: h, checks: newChecks(), moved: make(chan struct{}, 1), termMove: make(chan struct{})}
}

// Apply applies one committed entry. It returns the machine's answer as []byte, or an
// error if the group was taken out. Apply takes the group out if the entry is damaged or
// was written by a newer release: to skip the entry would make the replicas differ, and
// to panic would end every other group of the node.
func (f *fsm) Apply(l *raft.Log) any {
	if err := f.health.Failed(); err != nil {
		return err
	}
	kind, payload, err := decodeEntry(f.group, l.Data)
	if err != nil {
		err = fmt.Errorf("apply entry %d: %w", l.Index, err)
		f.health.Fail(err)
		return err
	}
	var answer []byte
	if kind == kindCommand {
		answer = f.machine.Apply(l.Index, payload)
		f.checks.applied(l.Index, payload, f.machine)
	}
	f.advance(l.Index, l.Term)
	return answer
}

// StoreConfiguration records a committed configuration.
func (f *fsm) StoreConfiguration(index uint64, c raft.Configuration) {
	if f.health.Failed() != nil {
		return
	}
	f.noteConfiguration(index, c)
	f.advance(index, 0)
}

func (f *fsm) noteConfiguration(index uint64, c raft.Configuration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config, f.configAt = servers(c), index
}

// configuration returns the newest applied configuration and its index.
func (f *fsm) configuration() ([]Server, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config, f.configAt
}

// advance records that all entries up to index are applied. Term 0 keeps the recorded term.
func (f *fsm) advance(index, term uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied.Store(index)
	if term != 0 && term != f.term {
		f.term = term
		close(f.termMove)
		f.termMove = make(chan struct{})
	}
	n := 0
	for n < len(f.waiters) && f.waiters[n].index <= index {
		close(f.waiters[n].done)
		n++
	}
	f.waiters = slices.Delete(f.waiters, 0, n)
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// appliedTerm returns the term of the newest applied marker or command, and a channel that
// is closed when that term changes.
func (f *fsm) appliedTerm() (uint64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.term, f.termMove
}

// wait waits until index is applied. It returns an error when ctx ends, stop is closed or
// the group is taken out.
func (f *fsm) wait(ctx context.Context, index uint64, stop <-chan struct{}) error {
	if f.applied.Load() >= index {
		return nil
	}
	w := &waiter{index: index, done: make(chan struct{})}
	f.mu.Lock()
	if f.applied.Load() >= index {
		f.mu.Unlock()
		return nil
	}
	// A new waiter mostly has the highest index, so the insertion moves few others.
	i, _ := slices.BinarySearchFunc(f.waiters, index+1, func(w *waiter, index uint64) int { return cmp.Compare(w.index, index) })
	f.waiters = slices.Insert(f.waiters, i, w)
	f.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		f.forget(w)
		return fmt.Errorf("wait for index %d: %w", index, ctx.Err())
	case <-stop:
	case <-f.health.Broken():
	}
	f.forget(w)
	return ErrClosed
}

func (f *fsm) forget(w *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters = slices.DeleteFunc(f.waiters, func(other *waiter) bool { return other == w })
}

// Snapshot freezes the machine.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.health.Failed(); err != nil {
		return nil, err
	}
	frozen, err := f.machine.Freeze()
	if err != nil {
		return nil, fmt.Errorf("freeze the state: %w", err)
	}
	return &frozenSnapshot{frozen: frozen}, nil
}

// frozenSnapshot is the raft.FSMSnapshot of a Frozen.
type frozenSnapshot struct {
	frozen Frozen
	sink   *snapshots.Sink // nil until Persist
}

// Persist writes the snapshot. raft closes the sink.
func (s *frozenSnapshot) Persist(sink raft.SnapshotSink) error {
	own, ok := sink.(*snapshots.Sink)
	if !ok {
		return errors.New("bug: the snapshot's sink is not of this package")
	}
	s.sink = own
	stored, ok := s.frozen.(Stored)
	if how, segmented := own.Clean(); ok && segmented {
		files, err := stored.Settle(how)
		if err != nil {
			return err
		}
		own.Settled(files, stored.Adopt)
	}
	return own.WriteState(s.frozen)
}

// Release releases the frozen state, and removes the segments that only it needed.
func (s *frozenSnapshot) Release() {
	s.frozen.Release()
	if s.sink != nil {
		s.sink.Collect()
	}
}

// Restore replaces the machine's state by that of a snapshot. The checksum of the snapshot
// was verified when the snapshot was written and when it was opened, so an error here
// means that the machine can't read it.
func (f *fsm) Restore(source io.ReadCloser) error {
	if wrapped, ok := source.(raft.ReadCloserWrapper); ok {
		source = wrapped.WrappedReadCloser()
	}
	s, ok := source.(*snapshots.Snapshot)
	if !ok {
		return errors.New("bug: the snapshot is not of this package")
	}
	if err := f.health.Failed(); err != nil {
		return err
	}
	meta := s.Meta()
	if err := s.Restore(f.machine.Restore); err != nil {
		err = fmt.Errorf("restore snapshot %s: %w", meta.ID, err)
		f.health.Fail(err)
		return err
	}
	f.noteConfiguration(meta.ConfigurationIndex, meta.Configuration)
	f.advance(meta.Index, 0)
	return nil
}

// waiter is one caller that waits for an index.
type waiter struct {
	index uint64
	done  chan struct{}
}
