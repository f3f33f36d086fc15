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

// shortRun is how long the nemesis of the short run works.
const shortRun = 25 * time.Second

// TestAttackedProcessesLoseNothing is the short run: in
// network namespaces for root, else on loopback.
func TestAttackedProcessesLoseNothing(t *testing.T) {
	var out strings.Builder
	s := settings{
		nodes: 3, shards: 3, workers: 6, length: shortRun, seed: uint64(time.Now().UnixNano()),
		dir: t.TempDir(), loopback: os.Geteuid() != 0, cold: true,
		// Those that take seconds; joins and moves are for longer runs.
		only: []string{"kill", "stop", "pause", "isolate", "deafen", "mute", "bridge", "delay", "loss", "freeze", "full", "bad disk", "clock", "power", "power all"},
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
