package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Raft itself sends the commit index of a leader that writes nothing more after commitTimeout.
func TestFollowersLearnLastCommitSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newWires(), nil)
		c.found(names(3)...)
		for round := range 20 {
			c.propose(fmt.Sprint(round))
			want, at := c.leader().Applied(), time.Now()
			time.Sleep(2*commitPause + 10*time.Millisecond)
			for _, m := range c.members {
				if got := m.Applied(); got < want {
					t.Errorf("round %d: %s has applied %d of %d after %s", round, m.name, got, want, time.Since(at))
				}
			}
			time.Sleep(time.Duration(round) * 100 * time.Millisecond)
		}
		c.close()
		settle()
	})
}

// At rest a follower gets four or five heartbeats a second, and an append every second or two.
func TestRestingLeaderSendsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		c := newCluster(t, w, nil)
		c.found(names(3)...)
		c.propose("x")
		time.Sleep(time.Second)
		before := w.sent.Load()
		time.Sleep(time.Minute)
		const most = 2 * 60 * 6
		if sent := w.sent.Load() - before; sent > most {
			t.Errorf("a leader at rest sent %d messages in a minute, want at most %d", sent, most)
		}
		c.close()
		settle()
	})
}
