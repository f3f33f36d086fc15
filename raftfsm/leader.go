package raftfsm

import (
	"sync"

	"github.com/hashicorp/raft"
)

// observationsMax is how many changes of the leader may wait for run. Further changes are
// dropped, because every waiting change already wakes the same callers.
const observationsMax = 16

// leaderWatch wakes callers when the leader changes.
type leaderWatch struct {
	seen chan raft.Observation

	mu   sync.Mutex // guards next
	next chan struct{}
}

// LeaderChanged returns a channel that is closed when Leader changes: to another member,
// to none, or from none to one. Call LeaderChanged before Leader.
func (g *Group) LeaderChanged() <-chan struct{} {
	g.leader.mu.Lock()
	defer g.leader.mu.Unlock()
	return g.leader.next
}

// observe subscribes to the changes that r reports. run handles them.
func (l *leaderWatch) observe(r *raft.Raft) {
	l.seen, l.next = make(chan raft.Observation, observationsMax), make(chan struct{})
	r.RegisterObserver(raft.NewObserver(l.seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
}

// run closes the channel of LeaderChanged after every change, until stop is closed.
func (l *leaderWatch) run(stop <-chan struct{}) {
	for {
		select {
		case <-l.seen:
			l.mu.Lock()
			close(l.next)
			l.next = make(chan struct{})
			l.mu.Unlock()
		case <-stop:
			return
		}
	}
}
