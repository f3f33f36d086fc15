package sim

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
)

const (
	year = 365 * 24 * time.Hour
	// expiredWithin is the promise: how long after its time an event may still match.
	expiredWithin = 5 * time.Second
)

// waitLevel waits until all nodes know that the cluster has its level.
func (w *world) waitLevel() {
	w.t.Helper()
	for _, n := range w.cluster.Nodes {
		for late := time.Now().Add(time.Minute); n.Node.Status(w.t.Context()).Level != metafsm.Level; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(late) {
				w.t.Fatal("the cluster does not come to its level")
			}
		}
	}
}

// expiring registers a person who expires at a time, or never, and returns the subject's shard.
func (w *world) expiring(through int, person string, at time.Time) id.Shard {
	w.t.Helper()
	body := face(person)
	if !at.IsZero() {
		body["expires"] = at.UTC().Format(time.RFC3339Nano)
	}
	return w.shardOf(w.client.Call(w.t, w.cluster.Nodes[through].URL, http.MethodPost, "/v1.1/subjects", body, keyed(person)))
}

// matches reports whether a search through a node finds a person. An error finds nobody.
func (w *world) matches(through int, person string) bool {
	a, err := w.search(through, person)
	return err == nil && strings.Contains(string(a.Body), `"candidates":[{`)
}

// lastMatch searches for a person through the nodes until none of them has found them for
// expiredWithin since the time at. It returns how long after at the last match was.
func (w *world) lastMatch(person string, at time.Time, through ...int) (late time.Duration) {
	w.t.Helper()
	time.Sleep(time.Until(at))
	for time.Since(at)-late < expiredWithin {
		for _, i := range through {
			if asked := time.Since(at); w.matches(i, person) {
				late = asked
			}
		}
		if late > time.Minute {
			w.t.Fatalf("%s still matches a minute after %s", person, at)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return late
}

// updated returns when a gallery's last entry was updated, by the list.
func (w *world) updated(through int) time.Time {
	w.t.Helper()
	var page struct {
		Subjects []struct{ LastUpdated time.Time }
	}
	w.client.Call(w.t, w.cluster.Nodes[through].URL, http.MethodGet, "/v1.1/subjects?length=1&dir=desc", nil).Decode(w.t, &page)
	return page.Subjects[0].LastUpdated
}

// The clock of the node that leads the shard jumps by a year, ahead or back. Nothing expires
// early, what is due goes when the clock is right again, and no write gets a wrong time.
func TestWrongClockExpiresNothing(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": year, "back": -year} {
		t.Run(name, func(t *testing.T) {
			nodetest.Virtual(t, func(t *testing.T) {
				var wrong atomic.Int64 // the node whose clock is off, from 1
				w := newWorldOf(t, nodetest.Options{Shards: 1, Off: func(i int) time.Duration {
					if int64(i+1) == wrong.Load() {
						return off
					}
					return 0
				}}, 100)
				w.waitLevel()
				time.Sleep(settled)
				due := time.Now().Add(40 * time.Second)
				shard := w.expiring(0, "due", due)
				w.expiring(1, "later", due.Add(time.Hour))
				w.expiring(2, "stays", time.Time{})
				leader := w.leader(shard)
				wrong.Store(int64(leader + 1))
				time.Sleep(time.Until(due.Add(10 * time.Second)))
				for i := range 3 {
					for _, person := range []string{"due", "later", "stays"} {
						if !w.matches(i, person) {
							t.Errorf("%s does not match through node %d", person, i+1)
						}
					}
				}
				if now := w.leader(shard); now != leader {
					t.Errorf("node %d leads, not %d", now+1, leader+1)
				}
				s := w.cluster.Nodes[0].Node.Status(t.Context())
				if !warned(s, "no event expires") {
					t.Errorf("warnings: %q", s.Warnings)
				}
				w.expiring(leader, "meanwhile", time.Time{})
				if at := w.updated(0); time.Since(at).Abs() > expiredWithin {
					t.Errorf("a write got the time %s, now is %s", at, time.Now())
				}
				wrong.Store(0)
				if late := w.lastMatch("due", time.Now(), 0, 1, 2); late > expiredWithin {
					t.Errorf("due matches %s after the clock was right", late)
				}
				for _, person := range []string{"later", "stays", "meanwhile"} {
					if !w.matches(0, person) {
						t.Errorf("%s is gone", person)
					}
				}
			})
		})
	}
}

// The leader of the shard is cut off just before an event's time. The event is gone in time.
func TestLostLeaderDelaysNoExpiry(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorldOf(t, nodetest.Options{Shards: 1}, 100)
		w.waitLevel()
		leader := w.leader(w.expiring(0, "stays", time.Time{}))
		for _, before := range []time.Duration{2 * time.Second, 100 * time.Millisecond, 0} {
			nodetest.Step(t, fmt.Sprint(before), func(t *testing.T) {
				due, person := time.Now().Add(20*time.Second), fmt.Sprint("due, cut off before ", before)
				w.expiring(leader, person, due)
				time.Sleep(time.Until(due) - before)
				leader = w.leader(1)
				w.cut(leader)
				late := w.lastMatch(person, due, (leader+1)%3, (leader+2)%3)
				t.Logf("leader cut off %s before: the last match was %s after the time", before, late)
				if late > expiredWithin {
					t.Errorf("matches %s after its time", late)
				}
				if !w.matches((leader+1)%3, "stays") {
					t.Error("others are gone")
				}
				w.net.Heal()
				time.Sleep(15 * time.Second)
				if w.matches(leader, person) || !w.matches(leader, "stays") {
					t.Error("the former leader differs")
				}
			})
		}
	})
}
