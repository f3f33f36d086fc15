package metafsm

import (
	"testing"

	"facet/internal/id"
)

// The number may go below that of the founding, and up again.
func TestNumberOfReplicasFollowsLastCommand(t *testing.T) {
	t.Parallel()
	m := New()
	set := func(n int) {
		t.Helper()
		if got := status(t, m, SetReplicas{n}); got != Done {
			t.Errorf("set %d: %v", n, got)
		}
	}
	set(5)
	if c, founded := m.Cluster(); founded {
		t.Errorf("the command founded a cluster: %+v", c)
	}
	m.Apply(1, FoundOp.Encode(Found{Cluster{ID: id.Cluster{UUID: id.UUID{1}}, Shards: 4, Replicas: 2, Wanted: 3, Pack: "pack"}}))
	for _, c := range []struct {
		set, want int
		changes   bool
	}{{3, 3, true}, {3, 3, false}, {5, 5, true}, {1, 1, true}, {0, 1, false}, {-1, 1, false}, {3, 3, true}} {
		changed := m.Changed()
		set(c.set)
		if got, _ := m.Cluster(); got.WantedReplicas() != c.want {
			t.Errorf("set %d: %d are wanted, want %d", c.set, got.WantedReplicas(), c.want)
		}
		if got := m.Changed() != changed; got != c.changes {
			t.Errorf("set %d: told as a change %v, want %v", c.set, got, c.changes)
		}
	}
}
