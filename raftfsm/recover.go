package raftfsm

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"facet/internal/id"
	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
)

// A group that has lost its quorum for good can't elect a leader. Recover makes one
// survivor its only voter: it appends a configuration of a new term to the survivor's log,
// and raft obeys the last configuration of its log. Unlike raft.RecoverCluster, Recover
// writes one transaction, and needs neither a new snapshot nor the machine. As with
// raft.RecoverCluster, entries that were never committed become committed.

// Replica describes the files of a stopped member.
type Replica struct {
	// Last is the index of the last entry, and LastTerm its term. All entries up to
	// Snapshot are known to be committed; 0: none.
	Last, LastTerm, Snapshot uint64
	// Term is the last term that the member knew of.
	Term uint64
	// Members are the members of the newest configuration.
	Members []Server
}

// Stopped is a member that does not run.
type Stopped struct {
	group *Group
	Replica
}

// OpenStopped opens and verifies the files in cfg.Dir as Open does, and does not start the
// member. cfg needs Group, Self and Dir. m must be empty, and stays empty until Replay.
// The caller closes the result.
func OpenStopped(cfg Config, m Machine) (*Stopped, error) {
	cfg = cfg.withDefaults()
	g := &Group{cfg: cfg, health: health.New(cfg.Timing.Stall, cfg.Timing.StallFatal)}
	if err := g.openStores(m, logstore.OpenDisk); err != nil {
		return nil, fmt.Errorf("open group %d: %w", cfg.Group, err)
	}
	g.fsm = newFSM(cfg.Group, m, g.health)
	s := &Stopped{group: g}
	if err := s.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read group %d: %w", cfg.Group, err), s.Close())
	}
	return s, nil
}

// Close closes the files.
func (s *Stopped) Close() error {
	s.group.health.Close()
	s.group.snapshots.Close()
	return s.group.disk.Close()
}

// read fills in s.Replica.
func (s *Stopped) read() error {
	list, err := s.group.snapshots.List()
	if err != nil {
		return err
	}
	if len(list) > 0 {
		s.Snapshot, s.Last, s.LastTerm = list[0].Index, list[0].Index, list[0].Term
		s.Members = servers(list[0].Configuration)
	}
	s.Term = s.group.stable.Term()
	return s.entries(func(l *raft.Log) error {
		s.Last, s.LastTerm = l.Index, l.Term
		if l.Type == raft.LogConfiguration {
			s.Members = servers(raft.DecodeConfiguration(l.Data))
		}
		return nil
	})
}

// entries visits the entries behind the snapshot.
func (s *Stopped) entries(visit func(*raft.Log) error) error {
	first, err := s.group.logs.FirstIndex()
	if err != nil {
		return err
	}
	return s.visit(max(first, s.Snapshot+1), visit)
}

// visit visits the entries from first on.
func (s *Stopped) visit(first uint64, visit func(*raft.Log) error) error {
	last, err := s.group.logs.LastIndex()
	if err != nil {
		return err
	}
	for index := max(first, 1); index <= last; index++ {
		var l raft.Log
		if err := s.group.logs.GetLog(index, &l); err != nil {
			return fmt.Errorf("read entry %d of the log: %w", index, err)
		}
		if err := s.group.health.Failed(); err != nil {
			return err
		}
		if err := visit(&l); err != nil {
			return err
		}
	}
	return nil
}

// Commands visits the commands in the log, committed or not. Earlier ones are only in the
// snapshot.
func (s *Stopped) Commands(visit func(index uint64, cmd []byte) error) error {
	first, err := s.group.logs.FirstIndex()
	if err != nil {
		return err
	}
	return s.visit(first, func(l *raft.Log) error {
		if l.Type != raft.LogCommand {
			return nil
		}
		kind, cmd, err := decodeEntry(s.group.cfg.Group, l.Data)
		if err != nil || kind != kindCommand {
			return err
		}
		return visit(l.Index, cmd)
	})
}

// Replay restores the machine from the member's snapshot and applies all later entries,
// committed or not.
func (s *Stopped) Replay() error {
	list, err := s.group.snapshots.List()
	if err != nil {
		return err
	}
	if len(list) > 0 {
		_, r, err := s.group.snapshots.Open(list[0].ID)
		if err != nil {
			return err
		}
		if err := errors.Join(s.group.fsm.Restore(r), r.Close()); err != nil {
			return err
		}
	}
	return s.entries(func(l *raft.Log) error {
		if l.Type != raft.LogCommand {
			return nil
		}
		if err, failed := s.group.fsm.Apply(l).(error); failed {
			return err
		}
		return nil
	})
}

// Recover makes the member the only one of its group, and appends commands as the first
// of its new term. It writes all of that or nothing.
func (s *Stopped) Recover(commands ...[]byte) error {
	if s.Last == 0 {
		return fmt.Errorf("recover group %d: the member has no entry", s.group.cfg.Group)
	}
	term := max(s.Term, s.LastTerm) + 1
	if err := s.group.stable.SetTerm(term); err != nil {
		return fmt.Errorf("recover group %d: %w", s.group.cfg.Group, err)
	}
	self := s.group.cfg.Self
	entries := []*raft.Log{{
		Index: s.Last + 1, Term: term, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{
			{Suffrage: raft.Voter, ID: raft.ServerID(self), Address: raft.ServerAddress(self)},
		}}),
	}}
	for i, c := range commands {
		if len(c) > CommandBytesMax {
			return fmt.Errorf("recover group %d: %w", s.group.cfg.Group, ErrTooLarge)
		}
		entries = append(entries, &raft.Log{
			Index: s.Last + 2 + uint64(i), Term: term, Type: raft.LogCommand, Data: encodeEntry(s.group.cfg.Group, kindCommand, c),
		})
	}
	if err := s.group.logs.StoreLogs(entries); err != nil {
		return fmt.Errorf("recover group %d: %w", s.group.cfg.Group, err)
	}
	s.Last, s.LastTerm, s.Term = s.Last+uint64(len(entries)), term, term
	s.Members = []Server{{Member: self, Voter: true}}
	return nil
}

// Self returns the name of the member.
func (s *Stopped) Self() id.Member { return s.group.cfg.Self }
