package raftfsm

import (
	"github.com/hashicorp/raft"

	"facet/raftfsm/transport"
)

// Mark states how far a member has got (transport.Mark).
type Mark = transport.Mark

// Marks keeps what the members of a group have acknowledged (transport.Marks).
type Marks = transport.Marks

// Standing describes what this member has on its disk.
type Standing struct {
	Term uint64
	Last uint64 // index of the last entry, or of the snapshot if that is later
	// Leads reports whether the member leads Term. Then its log is Term's up to Last.
	Leads bool
}

// Standing returns what this member has on its disk. It never returns less than what the
// member had when Standing was called. sound is false if a write has failed: then raft may know of a term
// that the disk does not have.
func (g *Group) Standing() (s Standing, sound bool) {
	before := g.raft.CurrentTerm()
	led := g.raft.State() == raft.Leader
	last := g.raft.LastIndex() // before the term: a leader of a later term may cut the log
	s = Standing{Term: g.raft.CurrentTerm(), Last: last}
	s.Leads = led && g.raft.State() == raft.Leader && s.Term == before
	return s, g.health.Failed() == nil // after the term, which raft takes after the failure
}

// Gate keeps this member out of elections until its node has asked its peers, if it has
// Config.Marks. Until then a member with state does not receive its leader's log either.
func (g *Group) Gate() *transport.Gate { return g.transport.Gate }
