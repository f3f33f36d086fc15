package raftfsm

import (
	"time"

	"github.com/hashicorp/raft"

	"facet/raftfsm/transport"
)

// A follower learns from the leader's next append that an entry is committed. Without further
// entries, hashicorp/raft sends the next append after CommitTimeout. With a short one, every
// leader at rest wakes all its followers many times a second. So here it is long, and the
// leader sends such an append once after its last commit.

// commitPause is how long a leader waits for an append that tells of a commit anyway.
const commitPause = 50 * time.Millisecond

// commits follows the commits of a group.
type commits struct{ *Group }

// loop sends the commit index to the followers while this member leads. It writes the index to
// the disk when no other write has done so for commitTick. Owned by Open; ends with stop.
func (g commits) loop() {
	save, last := time.NewTimer(commitTick), g.log.Commit()
	defer save.Stop()
	saving := true
	for {
		select {
		case <-g.stop:
			return
		case <-g.health.Broken():
			return
		case <-g.fsm.moved:
			if !saving {
				saving, last = true, g.log.Commit()
				save.Reset(commitTick)
			}
			g.announce()
		case <-g.transport.Shrunk:
			g.mark() // raft sends the follower what it lacks with the next entry
		case <-save.C:
			if err := g.log.SaveCommit(last); err != nil {
				return // the group is out of service
			}
			now := g.log.Commit()
			if saving = now > last; saving {
				last = now
				save.Reset(commitTick)
			}
		}
	}
}

// announce sends the followers the newest commit index of this member, if it leads, unless they hear of it within commitPause.
func (g commits) announce() {
	p, leads := g.newest()
	select {
	case <-time.After(commitPause):
	case <-g.stop:
		return
	}
	if leads {
		g.transport.Announce(p)
	}
}

// newest returns the newest entry that this member has applied. It reports whether
// the entry is of the term that the member leads.
func (g commits) newest() (transport.Point, bool) {
	term, _ := g.fsm.appliedTerm() // before the index, which is then of this term or a later one
	p := transport.Point{Index: g.Applied(), Term: term, Leader: g.cfg.Self}
	return p, g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term
}
