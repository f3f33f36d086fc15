package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm"
	"facet/shard"
)

// Any replica of a group may answer a read, once it has applied what the leader had
// committed when the read began (raftfsm.ReadPoint): so searches cost the leader a
// round of heartbeats, and every node that has the shard can do the work. A replica
// that can't reach the leader gives no answer.
const (
	// pointWait bounds a replica's wait for the leader's word and its own catching up;
	// then the leader is asked instead.
	pointWait = 250 * time.Millisecond
	// silenceMax is how long a member may give no answer to anything before another is
	// asked: one that is paused keeps its connections.
	silenceMax = 2 * time.Second
	// shunMin and shunMax bound how long a member is passed over that gave no answer;
	// it doubles each time.
	shunMin = time.Second
	shunMax = 30 * time.Second
)

// askAny carries out a read at one of the replicas of group, or else at its leader.
func askAny[Q, A any](ctx context.Context, r *Router, m method[Q, A], group id.Shard, q Q) (A, error) {
	if member, ok := r.spread.choose(group); ok {
		a, err := tryReplica(ctx, r, m, group, member, q)
		if _, again := retryable(err); err == nil || !again || ctx.Err() != nil {
			return a, err
		}
	}
	return ask(ctx, r, m, group, q)
}

// tryReplica tries m once at member, which choose has chosen, whether or not it leads.
func tryReplica[Q, A any](ctx context.Context, r *Router, m method[Q, A], group id.Shard, member id.Member, q Q) (A, error) {
	try, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	silent := time.AfterFunc(silenceMax, func() {
		if r.spread.silent(member) {
			cancel()
		}
	})
	defer silent.Stop()
	var a A
	var err error
	if member == r.peers.Self() {
		a, err = m.run(try, r, group, q)
	} else {
		a, err = callPeer(try, r, m, group, member, q)
	}
	if err != nil && try.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	_, failed := retryable(err)
	r.spread.end(member, err != nil && failed)
	return a, err
}

// errBehind says that a replica did not get the leader's word, or did not catch up,
// in time.
var errBehind = &Error{Kind: Unavailable, Message: "a replica is behind; try again", RetryAfter: retryAfter}

// readAny is read on any replica.
func (r *Router) readAny(ctx context.Context, group id.Shard) (*shard.Shard, error) {
	g, s, err := r.lead(group)
	if err != nil {
		return nil, err
	}
	if leader, known := g.Leader(); !known || leader == r.peers.Self() || mutant.FollowerRead {
		return r.read(ctx, group) // it says whether this replica leads
	}
	return s, r.follow(group).join(ctx)
}

// follow gives the rounds in which this replica of a group catches up with its leader.
func (r *Router) follow(group id.Shard) *rounds {
	r.followMu.Lock()
	defer r.followMu.Unlock()
	f := r.follows[group]
	if f == nil {
		f = &rounds{run: func(ctx context.Context) error { return r.catchUp(ctx, group) }}
		r.follows[group] = f
	}
	return f
}

// catchUp waits until this node's replica of a group has applied what its leader had
// committed at the call.
func (r *Router) catchUp(ctx context.Context, group id.Shard) error {
	g, ok := r.groups.Group(group)
	if !ok {
		return &raftfsm.NotLeaderError{}
	}
	leader, known := g.Leader()
	if !known || leader == r.peers.Self() {
		return &raftfsm.NotLeaderError{}
	}
	wait, cancel := context.WithTimeout(ctx, pointWait)
	defer cancel()
	p, err := callPeer(wait, r, groupPoint, group, leader, struct{}{})
	if err == nil {
		err = g.WaitPoint(wait, p)
	}
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return errBehind
	}
	return err
}

// groupPoint gives the leader's word for a read on another replica.
var groupPoint = method[struct{}, raftfsm.ReadPoint]{"group.point", func(ctx context.Context, r *Router, group id.Shard, _ struct{}) (raftfsm.ReadPoint, error) {
	g, ok := r.groups.Group(group)
	if !ok {
		return raftfsm.ReadPoint{}, &raftfsm.NotLeaderError{}
	}
	return g.ReadPoint(ctx)
}}

// spread knows what this node has asked of which member, and chooses the one that has
// the least to do for it.
type spread struct {
	groups Groups
	self   id.Member

	mu    sync.Mutex // guards what follows
	turn  int
	known map[id.Member]*burden
}

// burden is what a member has to do for this node.
type burden struct {
	busy     int       // reads that it has not answered
	answered time.Time // when it answered the last
	shunned  time.Time // until when it is passed over
	shun     time.Duration
}

func newSpread(groups Groups, self id.Member) *spread {
	return &spread{groups: groups, self: self, known: make(map[id.Member]*burden)}
}

// choose gives the member to ask for a read, which ends with end: of those that have the least to do, this
// node, which costs no call, else each in its turn.
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
			b = &burden{}
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
		s.known[best] = &burden{}
	}
	s.known[best].busy++
	return best, true
}

// burdensMax bounds the members that are known: more than a cluster has, unless many
// were replaced.
const burdensMax = 256

// forget drops what is known of members that have nothing to do, when there are many.
func (s *spread) forget(members []id.Member, now time.Time) {
	if len(s.known) < burdensMax {
		return
	}
	for m, b := range s.known {
		if b.busy == 0 && now.After(b.shunned) && !slices.Contains(members, m) {
			delete(s.known, m)
		}
	}
}

// end notes that a read has ended, and shuns the member for a while if it failed.
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
		return // for an earlier read that failed at the same time
	}
	b.shun = min(max(2*b.shun, shunMin), shunMax)
	b.shunned = now.Add(b.shun)
}

// silent tells whether a member has answered nothing for silenceMax.
func (s *spread) silent(m id.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m != s.self && time.Since(s.known[m].answered) >= silenceMax
}

// scatterAny is scatter for reads that any replica may answer.
func scatterAny[Q, A any](ctx context.Context, r *Router, m method[Q, A], shards []id.Shard, q Q) ([]A, error) {
	return scatterBy(ctx, len(shards), func(ctx context.Context, i int) (A, error) { return askAny(ctx, r, m, shards[i], q) })
}
