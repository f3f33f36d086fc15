package replicas

import "testing"

// Two voters, of which one is empty, elect no leader: the empty one gives no vote.
func TestEmptyReplicaHasNotCaughtUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		applied, commit uint64
		want            bool
	}{{0, 80, false}, {0, 1, false}, {1, 80, true}, {80, 80, true}, {80, 181, false}, {81, 181, true}} {
		if got := (Word{Open: true, Applied: c.applied}).CaughtUp(c.commit); got != c.want {
			t.Errorf("applied %d of %d: %v", c.applied, c.commit, got)
		}
	}
	if (Word{Applied: 80}).CaughtUp(80) {
		t.Error("a replica that is not open has caught up")
	}
}
