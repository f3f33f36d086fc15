package raftfsm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"facet/internal/must"
)

// Raft itself sends the commit index of a leader that writes nothing more after commitTimeout.
func TestFollowersLearnLastCommitSoon(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		for round := range 20 {
			time.Sleep(time.Second + time.Duration(round)*100*time.Millisecond) // the group is at rest
			c.propose(fmt.Sprint(round))
			want, at := c.leader().Applied(), time.Now()
			time.Sleep(2*commitPause + 10*time.Millisecond)
			for _, m := range c.members {
				if got := m.Applied(); got < want {
					t.Errorf("round %d: %s has applied %d of %d after %s", round, m.name, got, want, time.Since(at))
				}
			}
		}
	})
}

// A follower that gets an entry after its commit was announced learns of the commit then. So
// does one that had the entry, and could not be reached.
func TestLateFollowersLearnCommitSoon(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		for round := range 10 {
			c.propose(fmt.Sprint(round))
			leader := c.leader()
			late := c.members[c.others(leader)[0]]
			if round%2 == 0 {
				time.Sleep(time.Duration(round) * time.Second) // it has the entry
			}
			c.wires.part(1, late.name)
			if round%2 == 1 {
				c.propose("without it", leader.name, c.others(leader)[1])
			}
			time.Sleep(heartbeatDefault / 4)
			c.wires.part(0, late.name)
			time.Sleep(heartbeatDefault / 2)
			if got, want := late.Applied(), leader.Applied(); got < want {
				t.Errorf("round %d: %s has applied %d of %d", round, late.name, got, want)
			}
		}
	})
}

// Raft itself would notice it with its next append, commitTimeout later or more.
func TestLostLogAtRestIsSentSoon(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		for round := range 5 {
			c.propose(fmt.Sprint(round))
			c.agree()
			name := c.others(c.leader())[round%2]
			c.stop(name)
			must.Do(t, os.RemoveAll(filepath.Join(c.dir, string(name))))
			m, began, want := c.open(name), time.Now(), c.leader().Applied()
			for m.Applied() < want && time.Since(began) < time.Minute {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("round %d: %s had the state after %s", round, name, took)
			}
		}
	})
}

// At rest a follower gets heartbeats, and an append every five to ten seconds.
func TestRestingLeaderSendsLittle(t *testing.T) {
	inGroup(t, names(3), nil, func(t *testing.T, c *cluster) {
		time.Sleep(time.Second)
		before := c.wires.sent.Load()
		time.Sleep(time.Minute)
		const most = 2 * 60 * 6
		if sent := c.wires.sent.Load() - before; sent > most {
			t.Errorf("a leader at rest sent %d messages in a minute, want at most %d", sent, most)
		}
	})
}
