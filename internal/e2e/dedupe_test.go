package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/must"
)

// report is the answer about a comparison of a gallery with itself.
type report struct {
	BatchID, Status, Next string
	Total, Done, Found    int
	Incomplete            bool
	Pairs                 []struct {
		Score    int
		Subjects []struct{ ID string }
	}
}

// flood sends more photos to each node than it has workers for, so that comparisons rest between their pieces.
func flood(ctx context.Context, t *testing.T, k *client) (wait func()) {
	t.Helper()
	r, err := k.sign("POST", "/v1.1/face/extract", "", map[string]any{"face": photo(t, obama)})
	must.Do(t, err)
	var all sync.WaitGroup
	for i := range 6 * len(k.info.Nodes) {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := k.send(i%len(k.info.Nodes), r); err != nil { // the node is dead
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	return all.Wait
}

// killWorker returns the whole report of a comparison, during which it kills a node. chosen reports whether the node may be killed; it gets the leader of
// the comparison's shard, which is known beforehand: a comparison takes less time than to ask.
func killWorker(t *testing.T, c *cluster, k *client, chosen func(node, leader int) bool) (report, int) {
	t.Helper()
	leaders, err := leadersOf(c) // the cluster is whole
	must.Do(t, err)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	wait := flood(ctx, t, k)
	var begun struct{ BatchID string }
	var leader, victim int
	var at int // who is asked
	var r report
	for try := 1; ; try++ { // a comparison may end before it is looked at
		k.post(t, 0, "/v1.1/jobs/duplicates", map[string]any{"threshold": 9500}).Want(t, 200, &begun)
		var shard int
		if _, err := fmt.Sscanf(strings.Split(begun.BatchID, "-")[2], "8%03x", &shard); err != nil {
			t.Fatal(err)
		}
		leader, victim = leaders[shard], 0
		for !chosen(victim, leader) {
			victim++
		}
		at = (victim + 1) % len(c.info.Nodes)
		if r = progress(t, k, at); r.Done < r.Total {
			break
		}
		if try == 10 {
			t.Fatalf("the comparison is too quick: %d of %d parts are done", r.Done, r.Total)
		}
	}
	c.kill(t, victim)
	left := r.Total - r.Done
	end()
	wait()
	within(t, "the comparison is done", func() error {
		before := r.Done
		if r = progress(t, k, at); r.Done < before {
			t.Fatalf("after %d parts: %+v", before, r)
		}
		if r.Status != "Done" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	t.Logf("%d of %d parts were left when node %d died; node %d led", left, r.Total, victim, leader)
	if r.BatchID != begun.BatchID {
		t.Errorf("batch %s, want %s", r.BatchID, begun.BatchID)
	}
	return r, victim
}

// registerAs registers a photo once for each key.
func registerAs(t *testing.T, k *client, node int, photo, key string) string {
	t.Helper()
	r, err := k.sign("POST", "/v1.1/subjects", key, map[string]any{"face": encoded(t, photo)})
	must.Do(t, err)
	a, err := k.send(node, r)
	must.Do(t, err)
	var made registered
	a.Want(t, 201, &made)
	return made.ID
}

// progress returns how far a comparison is, when a node has an answer: one is dead, and the others are busy.
func progress(t *testing.T, k *client, node int) (r report) {
	t.Helper()
	within(t, "a report of the comparison", func() error {
		q, err := k.sign("GET", "/v1.1/jobs/duplicates", "", nil)
		must.Do(t, err)
		a, err := k.send(node, q)
		if err == nil && a.Status != 200 {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		if err == nil {
			a.Want(t, 200, &r)
		}
		return err
	})
	return r
}

// A node dies while it compares a part of a gallery: once the one that lent the parts, once another one. Each
// planted pair is found, once, and nothing else.
func TestKilledNodeLosesNoPair(t *testing.T) {
	c := killable(t)
	k := c.client(t, 400_000) // on all shards
	want := map[[2]string]bool{}
	for photo, n := range map[string]int{obama: 8, collins: 6, biden: 4} {
		var same []string
		for i := range n {
			id := registerAs(t, k, i%len(c.info.Nodes), photo, fmt.Sprint(photo, i))
			for _, other := range same {
				want[[2]string{min(id, other), max(id, other)}] = true
			}
			same = append(same, id)
		}
	}
	f := func(name string, chosen func(node, leader int) bool) {
		t.Run(name, func(t *testing.T) {
			r, victim := killWorker(t, c, k, chosen)
			found := map[[2]string]bool{}
			for _, p := range r.Pairs {
				a, b := p.Subjects[0].ID, p.Subjects[1].ID
				if pair := [2]string{min(a, b), max(a, b)}; !want[pair] || found[pair] || p.Score != 9999 {
					t.Errorf("%+v was not planted, or is there twice", p)
				} else {
					found[pair] = true
				}
			}
			if len(found) != len(want) || r.Found != len(want) || r.Incomplete || r.Next != "" {
				t.Errorf("%d of %d pairs: %+v", len(found), len(want), r)
			}
			c.revive(t, victim)
			c.waitWhole(t)
		})
	}
	f("a borrower dies", func(node, leader int) bool { return node != leader })
	f("the lender dies", func(node, leader int) bool { return node == leader })
}
