package node_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

type (
	subject struct{ ID, EventID string }
	results struct {
		Candidates []struct {
			ID     string
			Score  int
			Events []struct {
				ID    string
				Score int
			}
		}
	}
)

// gallery makes a gallery through base and gives the client its key.
func gallery(t testing.TB, c *nodetest.Client, base, name string, size int) {
	t.Helper()
	var a nodetest.Answer
	for range 20 { // on a busy machine meta may be without a leader for a moment
		a = c.Call(t, base, http.MethodPost, "/api/galleries", map[string]any{
			"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45,
		})
		if a.Status != http.StatusInternalServerError {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	var g struct{ APIKey string }
	if a.Decode(t, &g); a.Status != http.StatusOK || len(g.APIKey) != 40 {
		t.Fatalf("create gallery: %d %s", a.Status, a.Body)
	}
	c.APIKey = g.APIKey
}

// enrol registers a person through base and gives the answer's subject.
func enrol(t *testing.T, c *nodetest.Client, base, person string) subject {
	t.Helper()
	a := c.Call(t, base, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(person)})
	var s subject
	if a.Decode(t, &s); a.Status != http.StatusCreated {
		t.Fatalf("register %s: %d %s", person, a.Status, a.Body)
	}
	return s
}

// find searches for a person and gives the ids found.
func find(t *testing.T, c *nodetest.Client, base, person string) []string {
	t.Helper()
	return candidates(t, person, search(t, c, base, person))
}

// findUntil is find for a client that tries again while a shard has no leader.
func findUntil(t *testing.T, c *nodetest.Client, base, person string) []string {
	t.Helper()
	a := search(t, c, base, person)
	for late := time.Now().Add(movesTimeout); a.Status == http.StatusInternalServerError && time.Now().Before(late); {
		a = search(t, c, base, person)
	}
	return candidates(t, person, a)
}

func search(t *testing.T, c *nodetest.Client, base, person string) nodetest.Answer {
	t.Helper()
	return c.Call(t, base, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image(person)})
}

// candidates returns the subjects in the answer to a search for a person.
func candidates(t *testing.T, person string, a nodetest.Answer) []string {
	t.Helper()
	if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		t.Fatalf("search %s: %d %s", person, a.Status, a.Body)
	}
	var r results
	a.Decode(t, &r)
	var ids []string
	for _, candidate := range r.Candidates {
		ids = append(ids, candidate.ID)
	}
	return ids
}

// promises is the cluster that the tests of TestRequestsKeepPromises share.
type promises struct{ cluster *nodetest.Cluster }

// tenants counts the tenants of promises, whose names differ.
var tenants atomic.Int64

func (p promises) url(i int) string { return p.cluster.Nodes[i%3].URL }

// open returns a client of a new tenant with a gallery.
func (p promises) open(t *testing.T, size int) *nodetest.Client {
	c := p.cluster.Client(fmt.Sprint("tenant ", tenants.Add(1)))
	gallery(t, c, p.url(0), "g", size)
	return c
}

func TestRequestsKeepPromises(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p := promises{nodetest.Start(t, nodetest.Options{})}
		nodetest.Step(t, "a byte-identical retry through another node gets the first answer", p.aRetryThroughAnotherNodeGetsTheFirstAnswer)
		nodetest.Step(t, "ten registrations with one key at once make one subject", p.oneKeyAtOnceMakesOneSubject)
		nodetest.Step(t, "a gallery over several shards lists and finds everybody", p.manyShardsListAndFindEverybody)
		nodetest.Step(t, "a tenant reaches its own only", p.aTenantReachesItsOwnOnly)
		nodetest.Step(t, "of ten creations of a gallery at once one is it", p.oneOfTenCreationsIsIt)
	})
}

func (p promises) aRetryThroughAnotherNodeGetsTheFirstAnswer(t *testing.T) {
	c := p.open(t, 10)
	// The host is signed, so the same bytes reach another node as they would behind
	// one name: by sending them there with their Host.
	r, err := c.Sign(p.url(0), http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("ann")})
	must.Do(t, err)
	var first, second subject
	for i, s := range []*subject{&first, &second} {
		a, err := c.SendAs(t.Context(), p.url(i), p.url(0), r)
		if err != nil || a.Status != http.StatusCreated {
			t.Fatalf("try %d: %d %s, %v", i, a.Status, a.Body, err)
		}
		a.Decode(t, s)
	}
	if first != second {
		t.Errorf("got %v, then %v", first, second)
	}
	isFound(t, c, p.url(2), "ann")
}

func (p promises) oneKeyAtOnceMakesOneSubject(t *testing.T) {
	c := p.open(t, 10)
	key := sigv4.Header{Name: "idempotency-key", Value: "door-7"}
	answers := make([]subject, 10)
	var work sync.WaitGroup
	for i := range answers {
		work.Go(func() {
			a := c.Call(t, p.url(i), http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("bob")}, key)
			if a.Decode(t, &answers[i]); a.Status != http.StatusCreated {
				t.Errorf("try %d: %d %s", i, a.Status, a.Body)
			}
		})
	}
	work.Wait()
	for _, s := range answers {
		if s != answers[0] {
			t.Errorf("got %v and %v", answers[0], s)
		}
	}
	a := c.Call(t, p.url(1), http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image("eve")}, key)
	if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "InvalidRequest") {
		t.Errorf("the key with another body: %d %s", a.Status, a.Body)
	}
}

func (p promises) manyShardsListAndFindEverybody(t *testing.T) {
	c := p.open(t, 200_000)
	var ids []string
	shards := map[byte]bool{}
	for i := range 40 {
		s := enrol(t, c, p.url(i), fmt.Sprint("q", i))
		ids = append(ids, s.ID)
		shards[s.ID[17]] = true
		time.Sleep(time.Millisecond) // the list is in the order of milliseconds
	}
	if len(shards) < 2 {
		t.Errorf("all of 40 subjects lie on one shard: %v", ids)
	}
	var all []string
	for start := 0; start < 40; start += 7 {
		var page struct{ Subjects []subject }
		c.Call(t, p.url(start), http.MethodGet, fmt.Sprintf("/v1.1/subjects?start=%d&length=7", start), nil).Decode(t, &page)
		for _, s := range page.Subjects {
			all = append(all, s.ID)
		}
	}
	if fmt.Sprint(all) != fmt.Sprint(ids) {
		t.Errorf("pages give %v, registered in order %v", all, ids)
	}
	for i := range 40 {
		isFound(t, c, p.url(i+1), fmt.Sprint("q", i), ids[i])
	}
}

func (p promises) aTenantReachesItsOwnOnly(t *testing.T) {
	mine, other := p.open(t, 10), p.cluster.Client("other")
	s := enrol(t, mine, p.url(0), "ann")
	other.APIKey = mine.APIKey
	a := other.Call(t, p.url(1), http.MethodDelete, "/v1.1/subjects/"+s.ID, nil)
	if a.Status != http.StatusForbidden || string(a.Body) != `{"message":"Forbidden"}` {
		t.Errorf("another tenant's API key: %d %s", a.Status, a.Body)
	}
	var galleries struct{ Galleries []struct{ ID string } }
	mine.Call(t, p.url(1), http.MethodGet, "/api/galleries", nil).Decode(t, &galleries)
	if a := other.Call(t, p.url(2), http.MethodGet, "/api/galleries/"+galleries.Galleries[0].ID, nil); a.Status != http.StatusNotFound {
		t.Errorf("another tenant's gallery: %d %s", a.Status, a.Body)
	}
}

func (p promises) oneOfTenCreationsIsIt(t *testing.T) {
	c := p.cluster.Client("creator")
	var mu sync.Mutex
	var key string
	var refusals []string
	var work sync.WaitGroup
	for i := range 10 {
		work.Go(func() {
			a := c.Call(t, p.url(i), http.MethodPost, "/api/galleries", map[string]any{
				"name": "door", "description": fmt.Sprint(i), "size": 10, "faceMinimumQualityScore": 0.45,
			})
			mu.Lock()
			defer mu.Unlock()
			if a.Status == http.StatusOK {
				var g struct{ APIKey string }
				a.Decode(t, &g)
				key += g.APIKey
			} else {
				refusals = append(refusals, string(a.Body))
			}
		})
	}
	work.Wait()
	if len(key) != 40 || len(refusals) != 9 {
		t.Fatalf("%d were refused, and the keys made are %q", len(refusals), key)
	}
	for _, r := range refusals {
		if !strings.Contains(r, "Duplicate") || !strings.Contains(r, key) {
			t.Errorf("a refusal without the key: %s", r)
		}
	}
}

func TestOtherPackOrKeyRefusesToServe(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		refuses := func(why string) {
			t.Helper()
			cluster.Restart(1)
			ended(t, cluster.Nodes[1], why)
			cluster.Stop(1)
		}
		cluster.Stop(1)
		config := &cluster.Nodes[1].Config
		own := config.Pack
		config.Pack = "another pack"
		refuses("model pack")
		config.Pack = own
		config.ClusterKeyFile = filepath.Join(t.TempDir(), "cluster.key")
		must.Do(t, os.WriteFile(config.ClusterKeyFile, []byte(strings.Repeat("7", 64)), 0o600))
		refuses("cluster key")
	})
}
