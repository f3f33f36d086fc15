package client

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"
)

// nodes chooses the node for each try: one after the other, except nodes that gave
// no answer lately. It is safe for concurrent use.
type nodes struct {
	hosts []string
	next  atomic.Uint32
	rests []atomic.Int64 // end of the time in which a node is left alone, Unix nanoseconds
}

// openNodes starts at a random host, so that many clients do not all start at the
// same one.
func openNodes(hosts []string) *nodes {
	n := &nodes{hosts: hosts, rests: make([]atomic.Int64, len(hosts))}
	n.next.Store(rand.Uint32N(uint32(len(hosts))))
	return n
}

// pick returns the index of the next node. When all are left alone, it returns the
// next one anyway.
func (n *nodes) pick(now time.Time) int {
	first := int(n.next.Add(1) % uint32(len(n.hosts)))
	for i := range n.hosts {
		if at := (first + i) % len(n.hosts); n.rests[at].Load() <= now.UnixNano() {
			return at
		}
	}
	return first
}

// rest leaves a node alone for restTime.
func (n *nodes) rest(i int, now time.Time) { n.rests[i].Store(now.Add(restTime).UnixNano()) }

// wake uses a node again that has answered.
func (n *nodes) wake(i int) { n.rests[i].Store(0) }

func dialer() *net.Dialer { return &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second} }
