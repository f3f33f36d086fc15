package calls

import (
	"context"
	"sync"
	"time"

	"facet/internal/id"
)

// leaders remembers which member led each group when last heard of. What it holds
// is a hint: a member that does not lead says so.
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

// guess gives the member to try for group at the try-th try. A group that lives
// here knows best; then comes the hint, then the group's members in turn.
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

// changed gives a channel that is closed when the replica of group on this node hears
// of another leader, or of none; nil where there is no replica. Who waits for a leader
// that is being elected goes on with the first word of it.
func (l *leaders) changed(group id.Shard) <-chan struct{} {
	if g, ok := l.groups.Group(group); ok {
		return g.LeaderChanged()
	}
	return nil
}

// watch calls lost when the replica of group on this node follows another leader
// than member: a paused leader would hold the request for attemptMax. It looks
// until ctx ends, from watchPause on: most requests are done by then, and stop.
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
			_ = sleep(ctx, watchPause, changed) // ends with ctx, which the loop looks at
		}
	}).Stop
}

// confirm notes that member answered as the leader of group.
func (l *leaders) confirm(group id.Shard, member id.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hint[group] = member
}

// learn notes that member answered err. again tells whether a retry makes sense,
// elsewhere that the answer named another member to ask.
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
