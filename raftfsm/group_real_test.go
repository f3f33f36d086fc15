package raftfsm

import (
	"fmt"
	"testing"
)

// Streams over TCP, and a disk that is waited for.
func TestLoopbackGroupSurvivesRestarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, func(cfg *Config) { cfg.TrailingLogs = 20 })
	c.found(names(3)...)
	for i := range 100 {
		c.propose(fmt.Sprint("first ", i))
	}
	c.agree()

	old := c.leader().name
	c.stop(old)
	for i := range 100 {
		c.propose(fmt.Sprint("second ", i))
	}
	for _, m := range c.members { // the log that old lacks is cut everywhere
		c.snapshot(m.name)
		if got := m.Status().Snapshot; got < 200 {
			t.Errorf("snapshot of %s: at index %d, want at least 200", m.name, got)
		}
	}
	back := c.open(old)
	if !back.HasState() {
		t.Error("a member that comes back says that it has no state")
	}
	c.propose("third")
	c.agree()
	if got := back.Status(); got.Snapshot < 200 || got.State != "Follower" || len(got.Servers) != 3 || got.ConfigIndex == 0 {
		t.Errorf("status after InstallSnapshot: %+v", got)
	}

	want := c.leader().journal.Digest()
	c.close()
	for _, name := range names(3) {
		c.open(name)
	}
	c.agree()
	if got := c.leader().journal.Digest(); got != want {
		t.Errorf("digest after all restarted: got %x, want %x", got[:4], want[:4])
	}
}
