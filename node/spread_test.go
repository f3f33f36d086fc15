package node_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/transport/memnet"
)

// All nodes that hold a shard take part in its searches.
func TestSearchesUseAllReplicas(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1000) // on one shard
		const writes = 60
		for i := range writes {
			person, base := fmt.Sprint("person ", i), cluster.Nodes[i%3].URL
			want := enrol(t, client, cluster.Nodes[(i+1)%3].URL, person).ID
			if got := find(t, client, base, person); len(got) != 1 || got[0] != want {
				t.Fatalf("%s was enrolled as %s, and node %d finds %v at once", person, want, i%3+1, got)
			}
		}
		did := func() (counts [3]float64) {
			for i, m := range cluster.Nodes {
				counts[i] = sum(scrape(t, m), "facet_shard_search_duration_seconds_count")
			}
			return counts
		}
		before := did()
		for i, n := range before {
			if n < writes/6 {
				t.Errorf("node %d did %.0f of %d searches, asked one after the other", i+1, n, writes)
			}
		}
		// One node is asked for all, and has help. On a busy machine a node that was slow once
		// is passed over for seconds, so that there may be several rounds.
		for late := time.Now().Add(time.Minute); ; {
			var work sync.WaitGroup
			for range 20 {
				work.Go(func() {
					for range 10 {
						find(t, client, cluster.Nodes[0].URL, "person 0")
					}
				})
			}
			work.Wait()
			now := did()
			least := min(now[0]-before[0], now[1]-before[1], now[2]-before[2])
			if least >= 10 {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("20 at a time: the nodes did %v searches, had done %v", now, before)
			}
		}
	})
}

func TestCutOffNodeGivesNoStaleAnswer(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		cluster := nodetest.Start(t, nodetest.Options{})
		network := cluster.Network
		client := cluster.Client("bank")
		gallery(t, client, cluster.Nodes[0].URL, "staff", 1000)
		enrol(t, client, cluster.Nodes[0].URL, "before")
		for cut := range cluster.Nodes { // the leader of the shard is one of them
			for i, other := range cluster.Nodes {
				if i != cut {
					network.Set(cluster.Nodes[cut].Host, other.Host, memnet.Link{Cut: true})
					network.Set(other.Host, cluster.Nodes[cut].Host, memnet.Link{Cut: true})
				}
			}
			person := fmt.Sprint("while ", cut)
			id := enrolUntil(t, client, cluster.Nodes[(cut+1)%3].URL, person)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			r, err := client.Sign(cluster.Nodes[cut].URL, http.MethodPost, "/v1.1/face/search", probe(person))
			if err != nil {
				t.Fatal(err)
			}
			if a, err := client.Send(ctx, cluster.Nodes[cut].URL, r); err == nil && a.Status < http.StatusInternalServerError {
				t.Errorf("node %d, cut off, answers %d %s for %s of the others", cut+1, a.Status, a.Body, id)
			}
			cancel()
			network.Heal()
			within(t, 30*time.Second, "the node is back", func() bool {
				a := client.Call(t, cluster.Nodes[cut].URL, http.MethodPost, "/v1.1/face/search", probe(person))
				return a.Status == http.StatusOK
			})
		}
	})
}
