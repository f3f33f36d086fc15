package node_test

import (
	"net/http"
	"testing"

	"facet/node/nodetest"
)

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
