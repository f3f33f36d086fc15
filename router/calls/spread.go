package calls

import (
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
	// A member whose read failed is passed over for shunMin at first. The time
	// doubles with each failure up to shunMax.
	shunMin = time.Second
	shunMax = 30 * time.Second
	// A member that is late and has answered nothing meanwhile is called only if there is no other, for
	// lateMin at first. The time doubles up to lateMax.
	lateMin = 100 * time.Millisecond
	lateMax = 5 * time.Second
)

// outcome is the end of a read at a member.
type outcome uint8

const (
	answered  outcome = iota // perhaps by an error that all members would give
	failed                   // another member may answer
	slow                     // no answer in time
	abandoned                // the caller wants no answer any more
)

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
	busy    int       // reads without an answer yet
	since   time.Time // of the last answer, or when it was first busy after it
	shunned time.Time // end of the time in which it is passed over
	shun    time.Duration
	passed  time.Time // end of the time in which the others are called first
	pass    time.Duration
}

func newSpread(groups Groups, self id.Member) *spread {
	return &spread{groups: groups, self: self, known: make(map[id.Member]*memberLoad)}
}

// choose returns the member to call for a read, not one of those asked already. The caller calls end
// after the read. Of the members with the fewest reads it prefers this node, which costs no
// call, and otherwise takes turns. ok is false when all members are shunned.
func (s *spread) choose(group id.Shard, asked ...id.Member) (id.Member, bool) {
	members := s.groups.Members(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	now := time.Now()
	best, least := id.Member(""), load{}
	for i := range members {
		m := members[(s.turn+i)%len(members)]
		b := s.known[m]
		if b == nil {
			b = &memberLoad{}
		}
		if now.Before(b.shunned) || slices.Contains(asked, m) {
			continue
		}
		l := load{now.Before(b.passed), b.busy, m != s.self}
		if best == "" || l.less(least) {
			best, least = m, l
		}
	}
	if best == "" {
		return "", false
	}
	b := s.known[best]
	if b == nil {
		s.forget(members, now)
		b = &memberLoad{}
		s.known[best] = b
	}
	if b.busy++; b.busy == 1 {
		b.since = now
	}
	return best, true
}

// load orders members: the least one is called.
type load struct {
	passed bool
	busy   int
	remote bool
}

func (a load) less(b load) bool {
	if a.passed != b.passed {
		return b.passed
	}
	if a.busy != b.busy {
		return a.busy < b.busy
	}
	return b.remote && !a.remote
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
		if b.busy == 0 && now.After(b.shunned) && now.After(b.passed) && !slices.Contains(members, m) {
			delete(s.known, m)
		}
	}
}

// end records the end of a read. A member whose read failed is not called for a while. One that gave
// no answer is called after the others for a while.
func (s *spread) end(m id.Member, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, now := s.known[m], time.Now()
	b.busy--
	switch {
	case o == answered:
		b.since, b.shun, b.pass, b.passed = now, 0, 0, time.Time{}
	case o == slow:
		b.passOver(now)
	case o == failed && !now.Before(b.shunned): // else an earlier read failed at the same time
		b.shun = min(max(2*b.shun, shunMin), shunMax)
		b.shunned = now.Add(b.shun)
	}
}

// late records that a read at m takes longer than usual. A member that has answered others meanwhile is
// slow, and is called as before. One that has not may be silent: until it answers, the others are called
// first, for a while, and the caller lets this read go on if late returns true.
func (s *spread) late(m id.Member, usual time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, now := s.known[m], time.Now()
	if b == nil || now.Sub(b.since) < usual || now.Before(b.passed) { // b is nil for a member that was removed
		return false
	}
	b.passOver(now)
	return true
}

func (b *memberLoad) passOver(now time.Time) {
	if now.Before(b.passed) {
		return
	}
	b.pass = min(max(2*b.pass, lateMin), lateMax)
	b.passed = now.Add(b.pass)
}

// silent reports whether another node has answered nothing for silenceMax.
func (s *spread) silent(m id.Member) bool { return m != s.self && s.quiet(m, silenceMax) }

// quiet reports whether a member that is asked has answered nothing for d.
func (s *spread) quiet(m id.Member, d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.known[m]
	return b != nil && time.Since(b.since) >= d
}
