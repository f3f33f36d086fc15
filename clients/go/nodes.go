package client

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"
)

// nodes chooses the node for each try: in turn, but for those that rest because
// they gave no answer. It is safe for concurrent use.
type nodes struct {
	hosts []string
	next  atomic.Uint32
	rests []atomic.Int64 // until when, Unix nanoseconds
}

// openNodes begins at any of the hosts, so that many clients do not all begin at
// the same one.
func openNodes(hosts []string) *nodes {
	n := &nodes{hosts: hosts, rests: make([]atomic.Int64, len(hosts))}
	n.next.Store(rand.Uint32N(uint32(len(hosts))))
	return n
}

// pick gives the index of the next node; when all rest, of the next one anyway.
func (n *nodes) pick(now time.Time) int {
	first := int(n.next.Add(1) % uint32(len(n.hosts)))
	for i := range n.hosts {
		if at := (first + i) % len(n.hosts); n.rests[at].Load() <= now.UnixNano() {
			return at
		}
	}
	return first
}

// rest leaves a node alone for a while.
func (n *nodes) rest(i int, now time.Time) { n.rests[i].Store(now.Add(restTime).UnixNano()) }

// wake takes a node that answers into use again.
func (n *nodes) wake(i int) { n.rests[i].Store(0) }

func dialer() *net.Dialer { return &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second} }
