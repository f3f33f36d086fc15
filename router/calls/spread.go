package calls

import (
	"context"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
)

// Any replica of a group may answer a read once it has applied everything that the
// leader had committed when the read started (raftfsm.ReadPoint). So a search costs
// the leader only a round of heartbeats, and every node with a replica can do the
// work. A replica that can't reach the leader does not answer.
const (
	// silenceMax is how long a member may answer nothing before another member is
	// called. A paused member keeps its connections.
	silenceMax = 2 * time.Second
	// A member that gave no answer is passed over for shunMin at first. The time
	// doubles with each failure up to shunMax.
	shunMin = time.Second
	shunMax = 30 * time.Second
)

// CallAny carries out a read at one of the replicas of group, or else at its
// leader.
func CallAny[H, Q, A any](ctx context.Context, c *Caller[H], m Method[H, Q, A], group id.Shard, q Q) (A, error) {
	if member, ok := c.spread.choose(group); ok {
		a, err := tryReplica(ctx, c, m, group, member, q)
		if _, again := retryable(err); err == nil || !again || ctx.Err() != nil {
			return a, err
		}
	}
	return CallLeader(ctx, c, m, group, q)
}

// tryReplica tries m once at member, which choose has returned.
func tryReplica[H, Q, A any](ctx context.Context, c *Caller[H], m Method[H, Q, A], group id.Shard, member id.Member, q Q) (A, error) {
	try, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	silent := time.AfterFunc(silenceMax, func() {
		if c.spread.silent(member) {
			cancel()
		}
	})
	defer silent.Stop()
	a, err := CallAt(try, c, m, group, member, q)
	if err != nil && try.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	_, failed := retryable(err)
	c.spread.end(member, err != nil && failed)
	return a, err
}

// spread counts the reads that each member has yet to answer to this node, and
// chooses the member with the fewest.
type spread struct {
	groups Groups
	self   id.Member

	// mu guards turn and known.
	mu    sync.Mutex
	turn  int
	known map[id.Member]*memberLoad
}

// memberLoad is the load of one member, and its recent failures.
type memberLoad struct {
	busy     int       // reads without an answer yet
	answered time.Time // of the last answer
	shunned  time.Time // end of the time in which it is passed over
	shun     time.Duration
}

func newSpread(groups Groups, self id.Member) *spread {
	return &spread{groups: groups, self: self, known: make(map[id.Member]*memberLoad)}
}

// choose returns the member to call for a read. The caller calls end after the
// read. Of the members with the fewest reads it prefers this node, which costs no
// call, and otherwise takes turns. ok is false when all members are shunned.
func (s *spread) choose(group id.Shard) (id.Member, bool) {
	members := s.groups.Members(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	now := time.Now()
	best, least := id.Member(""), 0
	for i := range members {
		m := members[(s.turn+i)%len(members)]
		b := s.known[m]
		if b == nil {
			b = &memberLoad{}
		}
		if now.Before(b.shunned) {
			continue
		}
		if best == "" || b.busy < least || b.busy == least && m == s.self {
			best, least = m, b.busy
		}
	}
	if best == "" {
		return "", false
	}
	if s.known[best] == nil {
		s.forget(members, now)
		s.known[best] = &memberLoad{}
	}
	s.known[best].busy++
	return best, true
}

// membersKnownMax is the most members that spread knows. A cluster has fewer, unless
// many were replaced.
const membersKnownMax = 256

// forget drops the members without reads when there are too many.
func (s *spread) forget(members []id.Member, now time.Time) {
	if len(s.known) < membersKnownMax {
		return
	}
	for m, b := range s.known {
		if b.busy == 0 && now.After(b.shunned) && !slices.Contains(members, m) {
			delete(s.known, m)
		}
	}
}

// end records the end of a read. It shuns the member for a while when the read
// failed.
func (s *spread) end(m id.Member, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, now := s.known[m], time.Now()
	b.busy--
	if !failed {
		b.answered, b.shun = now, 0
		return
	}
	if now.Before(b.shunned) {
		return // an earlier read failed at the same time
	}
	b.shun = min(max(2*b.shun, shunMin), shunMax)
	b.shunned = now.Add(b.shun)
}

// silent reports whether a member has answered nothing for silenceMax.
func (s *spread) silent(m id.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m != s.self && time.Since(s.known[m].answered) >= silenceMax
}

// ScatterAny is Scatter for reads that any replica may answer.
func ScatterAny[H, Q, A any](ctx context.Context, c *Caller[H], m Method[H, Q, A], shards []id.Shard, q Q) ([]A, error) {
	return ScatterBy(ctx, len(shards), func(ctx context.Context, i int) (A, error) { return CallAny(ctx, c, m, shards[i], q) })
}
