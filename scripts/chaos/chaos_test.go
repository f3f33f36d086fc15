package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"facet/scripts/chaos/power"
)

func TestMain(m *testing.M) {
	if err := power.OwnMounts(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A run of three seconds shows that the harness works: it builds and starts the cluster, in network
// namespaces for root, breaks it, and judges what the clients saw. make test-change attacks for a
// minute with all faults, an audit log and cold rows.
func TestAttackedProcessesLoseNothing(t *testing.T) {
	var out strings.Builder
	s := settings{
		nodes: 3, shards: 1, workers: 2, length: 3 * time.Second, rest: time.Second, seed: uint64(time.Now().UnixNano()),
		dir: t.TempDir(), loopback: os.Geteuid() != 0, audit: auditOff, only: []string{"kill"},
	}
	err := attack(t.Context(), s, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatalf("seed %d: %v", s.seed, err)
	}
	if !strings.Contains(out.String(), "nothing lost") {
		t.Error("the run has no verdict")
	}
}
