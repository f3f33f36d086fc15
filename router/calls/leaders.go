package calls

import (
	"context"
	"sync"
	"time"

	"facet/internal/id"
)

// leaders remembers which member last led each group. It is a hint: a member that
// does not lead says so.
type leaders struct {
	groups Groups
	self   id.Member

	// mu guards hint. Never held across a call out of this package.
	mu   sync.Mutex
	hint map[id.Shard]id.Member
}

func newLeaders(groups Groups, self id.Member) *leaders {
	return &leaders{groups: groups, self: self, hint: map[id.Shard]id.Member{}}
}

// guess returns the member to call for group at the given try. It prefers the view
// of this node's replica, then the hint, then the group's members in turn.
func (l *leaders) guess(group id.Shard, try int) (id.Member, bool) {
	if g, ok := l.groups.Group(group); ok {
		if m, ok := g.Leader(); ok {
			return m, true
		}
	}
	l.mu.Lock()
	m, ok := l.hint[group]
	l.mu.Unlock()
	if ok {
		return m, true
	}
	members := l.groups.Members(group)
	if len(members) == 0 {
		return "", false
	}
	return members[try%len(members)], true
}

// changed returns a channel that is closed when this node's replica of group learns
// of another leader, or of none. A request that waits for an election then
// continues at once. It returns nil when there is no replica here.
func (l *leaders) changed(group id.Shard) <-chan struct{} {
	if g, ok := l.groups.Group(group); ok {
		return g.LeaderChanged()
	}
	return nil
}

// watch calls lost when this node's replica of group follows another leader than
// member. Otherwise a paused leader would hold the request for attemptMax. watch
// checks until ctx ends. It starts after watchPause, when most requests are done.
func (l *leaders) watch(ctx context.Context, group id.Shard, member id.Member, lost func()) (stop func() bool) {
	g, ok := l.groups.Group(group)
	if !ok || member == l.self {
		return func() bool { return true }
	}
	return time.AfterFunc(watchPause, func() {
		for ctx.Err() == nil {
			changed := g.LeaderChanged()
			if leader, known := g.Leader(); known && leader != member {
				lost()
				return
			}
			_ = sleep(ctx, watchPause, changed) // the loop checks ctx
		}
	}).Stop
}

// confirm records that member answered as the leader of group.
func (l *leaders) confirm(group id.Shard, member id.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hint[group] = member
}

// learn records that member answered err. again reports whether a retry may
// succeed. elsewhere reports that the answer named another member.
func (l *leaders) learn(group id.Shard, member id.Member, err error) (again, elsewhere bool) {
	leader, again := retryable(err)
	if !again {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if leader != "" && leader != member {
		l.hint[group] = leader
		return true, true
	}
	if l.hint[group] == member {
		delete(l.hint, group)
	}
	return true, false
}

// watchPause is how often a long try checks whether its member still leads.
const watchPause = 100 * time.Millisecond
