package raftfsm

import (
	"sync"

	"github.com/hashicorp/raft"
)

// observationsMax is how many changes of leader may wait to be told: more are one.
const observationsMax = 16

// leaderWatch tells of changes of the leader.
type leaderWatch struct {
	seen chan raft.Observation

	mu   sync.Mutex // guards next
	next chan struct{}
}

// LeaderChanged gives a channel that is closed when the leader that this member knows
// of changes: to another, to none or to one again. Take it before looking at Leader.
func (g *Group) LeaderChanged() <-chan struct{} {
	g.leader.mu.Lock()
	defer g.leader.mu.Unlock()
	if g.leader.next == nil {
		g.leader.next = make(chan struct{})
	}
	return g.leader.next
}

// observeLeader begins to take note of changes, for watchLeader.
func (g *Group) observeLeader() {
	g.leader.seen = make(chan raft.Observation, observationsMax)
	g.raft.RegisterObserver(raft.NewObserver(g.leader.seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
}

// watchLeader closes the channels of LeaderChanged. Owned by Open; ends with stop.
func (g *Group) watchLeader() {
	for {
		select {
		case <-g.leader.seen:
			g.leader.mu.Lock()
			if g.leader.next != nil {
				close(g.leader.next)
				g.leader.next = nil
			}
			g.leader.mu.Unlock()
		case <-g.stop:
			return
		}
	}
}
