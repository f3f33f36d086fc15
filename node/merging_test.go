package node_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/router"
)

// eventsOf returns the ids of a subject's events, none for an unknown subject.
func eventsOf(t *testing.T, c *nodetest.Client, base, subject string) (ids []string) {
	t.Helper()
	var list struct{ Events []struct{ ID string } }
	if a := c.Call(t, base, http.MethodGet, "/v1.1/subjects/"+subject+"/events", nil); a.Status != http.StatusNotFound {
		a.Decode(t, &list)
	}
	for _, e := range list.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// twoFaces registers a subject with two events and returns it.
func twoFaces(t *testing.T, c *nodetest.Client, base, person string) subject {
	t.Helper()
	s := enrol(t, c, base, person+" 0")
	expect(t, c, http.StatusCreated, base, http.MethodPost, "/v1.1/subjects/"+s.ID+"/events", face(person+" 1"))
	return s
}

// awaitCopies waits until a subject has as many events.
func awaitCopies(t *testing.T, c *nodetest.Client, base, subject string, want int) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); len(eventsOf(t, c, base, subject)) != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("the target has %d events, want %d", len(eventsOf(t, c, base, subject)), want)
		}
	}
}

// What is removed while it is merged stays in no search under the other subject, and nothing that
// was not removed goes.
func TestRemovalDuringMergeKeepsItsPromise(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		waitNewest(t, cluster)
		url, c := cluster.Nodes[0].URL, cluster.Client("bank")
		gallery(t, c, url, "g", 100)
		f := func(name string, path func(target, source string) string, check func(t *testing.T, status int, target, person string)) {
			nodetest.Step(t, name, func(t *testing.T) {
				target, source := enrol(t, c, url, name+" stays"), twoFaces(t, c, url, name)
				at := path(target.ID, source.ID)
				done := make(chan nodetest.Answer, 1)
				go func() {
					done <- c.Call(t, url, http.MethodPost, "/v1.1/subjects/"+target.ID+"/merge", map[string]any{"source": source.ID})
				}()
				awaitCopies(t, c, url, target.ID, 3)
				removal := c.Call(t, url, http.MethodDelete, at, nil)
				status := removal.Status
				if status == http.StatusNotFound && !strings.Contains(string(removal.Body), target.ID+`","reason":"SubjectMerged"`) {
					t.Errorf("the removal of what was merged answers %s", removal.Body)
				}
				gone := time.Now()
				found := [2][]string{find(t, c, url, name+" 0"), find(t, c, url, name+" 1")}
				if a := <-done; a.Status != http.StatusOK {
					t.Fatalf("merge: %d %s", a.Status, a.Body)
				}
				t.Logf("%d; then the faces were under %v, until the merge ended %v later", status, found, time.Since(gone))
				for n, before := range found {
					if after := find(t, c, url, fmt.Sprint(name, " ", n)); len(after) == 0 && len(before) > 0 {
						t.Errorf("face %d was under %v after the removal, and went later", n, before)
					}
				}
				check(t, status, target.ID, name)
			})
		}
		subjectPath := func(s string) string { return "/v1.1/subjects/" + s }
		f("source", func(_, source string) string { return subjectPath(source) }, func(t *testing.T, status int, target, person string) {
			if found := find(t, c, url, person+" 0"); status == http.StatusNoContent && len(found) > 0 {
				t.Errorf("a removed subject's face is under %v", found)
			}
		})
		f("event", func(_, source string) string {
			return subjectPath(source) + "/events/" + eventsOf(t, c, url, source)[0]
		}, func(t *testing.T, status int, target, person string) {
			if found := find(t, c, url, person+" 0"); status == http.StatusNoContent && len(found) > 0 {
				t.Errorf("a removed event is under %v", found)
			}
			isFound(t, c, url, person+" 1", target)
		})
		f("target", func(target, _ string) string { return subjectPath(target) }, func(t *testing.T, status int, target, person string) {
			if left := eventsOf(t, c, url, target); status != http.StatusNoContent || len(left) > 0 {
				t.Errorf("the removal of the target answered %d; it has %d events", status, len(left))
			}
		})
	})
}

// A merge that is given up for a lack of slots, and whose leader stops after it has removed the
// copies, loses no event when there are slots again.
func TestMergeGivenUpTwiceLosesNoEvent(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		waitNewest(t, cluster)
		leader := cluster.Nodes[leaderOf(t, cluster, 1)]
		n, url := leader.Node, leader.URL
		for _, m := range cluster.Nodes {
			must.Do(t, m.Node.StopMerges())
			for _, other := range cluster.Nodes { // a command takes ten milliseconds
				cluster.Network.Set(m.Host, other.Host, memnet.Link{Delay: 5 * time.Millisecond})
			}
		}
		c, tenant := cluster.ClientOf("bank")
		gallery(t, c, url, "g", 4)
		var access router.Access
		within(t, time.Minute, "the gallery", func() (known bool) {
			access, known = n.AccessTo(tenant, "g")
			return known
		})
		target, source := enrol(t, c, url, "stays"), twoFaces(t, c, url, "goes")
		into, from := subjectID(t, target.ID), subjectID(t, source.ID)
		merge := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = n.Router().Merge(ctx, router.Merging{Access: access, Write: write(1), Target: into, Source: from})
		}
		interrupted := false
		for try := 0; try < 100 && !interrupted; try++ {
			merge() // begins it
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // stops the work when the copy that had a slot is gone
				for before := 1; ctx.Err() == nil; {
					now := n.EventsHere(access.Gallery, 1, into)
					if now < before {
						cancel()
					}
					before = now
					time.Sleep(time.Millisecond)
				}
			}()
			interrupted = n.Router().CarryOut(ctx, from) != nil
			cancel()
		}
		if !interrupted {
			t.Fatal("no merge was interrupted")
		}
		size := 20
		if _, err := n.Router().UpdateGallery(t.Context(), tenant, write(2), access.Gallery, router.GalleryPatch{Change: settings.ChangeTo(settings.Gallery{Size: uint32(size)}, "size")}); err != nil {
			t.Fatal(err)
		}
		must.Do(t, n.Router().CarryOut(t.Context(), from))
		for i := range 2 {
			isFound(t, c, url, fmt.Sprint("goes ", i))
		}
	})
}
