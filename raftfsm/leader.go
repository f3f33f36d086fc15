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

// observe begins to take note of changes that r knows of, for run.
func (l *leaderWatch) observe(r *raft.Raft) {
	l.seen = make(chan raft.Observation, observationsMax)
	r.RegisterObserver(raft.NewObserver(l.seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
}

// run closes the channels of LeaderChanged, until stop is closed.
func (l *leaderWatch) run(stop <-chan struct{}) {
	for {
		select {
		case <-l.seen:
			l.mu.Lock()
			if l.next != nil {
				close(l.next)
				l.next = nil
			}
			l.mu.Unlock()
		case <-stop:
			return
		}
	}
}
