package raftfsm

import (
	"time"

	"github.com/hashicorp/raft"

	"facet/internal/id"
)

// Status describes a group as one of its members sees it, for people and metrics. The
// fields are read one after the other, not at one instant.
type Status struct {
	Group       id.Shard
	Self        id.Member
	State       string        // "Follower", "Candidate", "Leader", "Shutdown", or "Failed" after Config.Fatal
	Term        uint64        // the present term
	Leader      id.Member     // empty when unknown
	Last        uint64        // index of the newest entry on disk here
	Commit      uint64        // index up to which a quorum has the log, as far as known here
	Applied     uint64        // index that the machine has applied
	Snapshot    uint64        // index of the newest snapshot here; 0: none
	LastContact time.Duration // since the leader was last heard; 0 on the leader, -1 when never
	Stalled     time.Duration // for how long the disk has owed an answer
	Led         uint64        // how often this member became the leader since Open
	Proposals   int           // commands that wait for their answer here
	Erased      time.Time     // when the last whole round of Erase ended here; zero: none since Open
	EraseTook   time.Duration // how long that round took
	ErasedTo    uint64        // what commands up to this index have removed is not on the disk here; 0: not known
	Servers     []Server      // the members, as far as known here
	ConfigIndex uint64        // index of the configuration that named them; 0: not yet committed here
}

// AppliedAll reports whether g's member has nothing in its log that it will apply once it is committed.
func AppliedAll(g *Group) bool { return g.raft.AppliedIndex() >= g.raft.LastIndex() }

// Status returns the member's present view of the group.
func (g *Group) Status() Status {
	s := Status{
		Group:       g.cfg.Group,
		Self:        g.cfg.Self,
		State:       g.raft.State().String(),
		Term:        g.raft.CurrentTerm(),
		Last:        g.raft.LastIndex(),
		Commit:      g.raft.CommitIndex(),
		Applied:     g.Applied(),
		Snapshot:    g.snapshots.Newest(),
		LastContact: -1,
		Stalled:     g.health.Owed(),
		Led:         g.led.Load(),
		Proposals:   len(g.slots),
	}
	if g.health.Failed() != nil {
		s.State = "Failed"
	}
	if r := g.eraser.last.Load(); r != nil {
		s.Erased, s.EraseTook, s.ErasedTo = r.end, r.took, g.eraser.erasedTo(r)
	}
	s.Leader, _ = g.Leader()
	if at := g.raft.LastContact(); g.raft.State() == raft.Leader {
		s.LastContact = 0
	} else if !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	s.Servers, s.ConfigIndex, _ = g.Servers()
	return s
}
