package node_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"facet/node/backup"
	"facet/node/nodetest"
)

// One node of three survives, is recovered and gets new replicas.
func TestLoneSurvivorIsRecovered(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4, Founders: 3}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		url := cluster.Nodes[0].URL
		gallery(t, c, url, "staff", 200)
		for i := range 30 {
			enrol(t, c, url, fmt.Sprint("person ", i))
		}
		dir := cluster.Nodes[0].Config.Dir
		if _, err := backup.OpenRecovery([]string{dir}); err == nil {
			t.Fatal("a directory on which a node runs is opened")
		}
		waitApplied(t, cluster)
		for i := range 3 {
			cluster.Stop(i)
		}
		r, err := backup.OpenRecovery([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Groups) != 5 || len(r.Lost) != 0 || len(r.Gone) != 2 {
			t.Errorf("found: %+v", r)
		}
		for _, g := range r.Groups {
			if g.Voters != 3 || g.Last == 0 {
				t.Errorf("group %d: %+v", g.Group, g)
			}
		}
		if err := errors.Join(r.Carry(), r.Close()); err != nil {
			t.Fatal(err)
		}
		cluster.Restart(0)
		cluster.WaitReady()
		for i := range 30 {
			if got := find(t, c, url, fmt.Sprint("person ", i)); len(got) != 1 {
				t.Fatalf("person %d: %v", i, got)
			}
		}
		enrol(t, c, url, "afterwards")
		cluster.Restart(3)
		for late := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			s := cluster.Nodes[0].Node.Status(t.Context())
			two := 0
			for _, n := range s.Nodes {
				for _, g := range n.Groups {
					if n.Answers && g.Group != 0 && g.Voters == 2 && g.Lag == 0 {
						two++
					}
				}
			}
			if two == 8 {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("the new node has no replicas of all shards: %+v", s)
			}
		}
		if got := find(t, c, cluster.Nodes[3].URL, "afterwards"); len(got) != 1 {
			t.Errorf("on the new node: %v", got)
		}
	})
}

// waitApplied waits until all nodes have applied all that is committed.
func waitApplied(t *testing.T, cluster *nodetest.Cluster) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		lag := uint64(0)
		for _, n := range cluster.Nodes[0].Node.Status(t.Context()).Nodes {
			for _, g := range n.Groups {
				lag += g.Lag
			}
		}
		if lag == 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("replicas lag %d entries behind", lag)
		}
	}
}
