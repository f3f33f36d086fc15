package node_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
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
			isFound(t, client, base, person, want)
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

// TestSubjectTemplatesFollowWrites writes through one node and searches through all, each time at
// once. A template of the hash extractor is orthogonal to others, nearly: the mean of n of them has
// a cosine of about 1/√n with each.
func TestSubjectTemplatesFollowWrites(t *testing.T) {
	nodetest.Run(t, nodetest.Options{SlotsPerShard: 25}, func(t *testing.T, cluster *nodetest.Cluster) {
		waitNewest(t, cluster)
		url, c := cluster.Nodes[0].URL, cluster.Client("bank")
		gallery(t, c, url, "staff", 100)
		first := enrol(t, c, url, "first")
		enrol(t, c, url, "other")
		add := func(person string) (event string) {
			t.Helper()
			var made struct{ EventID string }
			expect(t, c, http.StatusCreated, cluster.Nodes[1].URL, http.MethodPost, "/v1.1/subjects/"+first.ID+"/events", face(person)).Decode(t, &made)
			return made.EventID
		}
		type found struct {
			Candidates []struct {
				ID                  string
				Score, SubjectScore int
				Events              []struct{ Score int }
			}
		}
		check := func(what string, least, most int) (points int) {
			t.Helper()
			for i, n := range cluster.Nodes {
				var got found
				expect(t, c, http.StatusOK, n.URL, http.MethodPost, "/v1.1/face/search", probe("first")).Decode(t, &got)
				if len(got.Candidates) != 1 || got.Candidates[0].ID != first.ID || got.Candidates[0].Score != 9999 {
					t.Fatalf("%s, node %d: %+v", what, i+1, got)
				}
				at := got.Candidates[0].SubjectScore
				if at < least || at > most || i > 0 && at != points {
					t.Errorf("%s, node %d: the score of the subject is %d, want %d to %d, and the same on all nodes (%d)", what, i+1, at, least, most, points)
				}
				points = at
			}
			return points
		}
		var list struct {
			Galleries []struct {
				ID    string
				Count int
			}
		}
		set := func(on bool) {
			t.Helper()
			expect(t, c, http.StatusOK, url, http.MethodGet, "/api/galleries", nil).Decode(t, &list)
			expect(t, c, http.StatusOK, cluster.Nodes[2].URL, http.MethodPatch, "/api/galleries/"+list.Galleries[0].ID, map[string]any{"subjectTemplates": on})
		}
		add("second")
		check("without the setting", 0, 0)
		set(true)
		two := check("two events", 7800, 8800)
		third := add("third")
		check("three events", 7100, two-100)
		expect(t, c, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+first.ID+"/events/"+third, nil)
		if again := check("two events again", 7800, 8800); again != two {
			t.Errorf("the score of the subject is %d again, was %d", again, two)
		}
		for i := range cluster.Nodes {
			restart(cluster, i)
			if again := check("after a restart", 7800, 8800); again != two {
				t.Errorf("node %d: the score of the subject is %d after a restart, was %d", i+1, again, two)
			}
		}
		set(false)
		check("the setting is off", 0, 0)
		if expect(t, c, http.StatusOK, url, http.MethodGet, "/api/galleries", nil).Decode(t, &list); list.Galleries[0].Count != 3 {
			t.Errorf("%d events count, want 3", list.Galleries[0].Count)
		}
		set(true)
		check("the setting is on again", 7800, 8800)
	})
}
