package node_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

// expect calls and demands a status.
func expect(t testing.TB, c *nodetest.Client, want int, base, method, target string, body any) nodetest.Answer {
	t.Helper()
	a := c.Call(t, base, method, target, body)
	if a.Status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, target, a.Status, a.Body, want)
	}
	return a
}

func face(person string, tags ...string) map[string]any {
	body := map[string]any{"face": nodetest.Image(person)}
	if tags != nil {
		body["tags"] = tags
	}
	return body
}

func probe(person string, tags ...string) map[string]any {
	body := map[string]any{"probe": nodetest.Image(person)}
	if tags != nil {
		body["tags"] = tags
	}
	return body
}

func TestEventsAndTagsKeepPromises(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		p := promises{nodetest.Start(t, nodetest.Options{SlotsPerShard: 10})}
		nodetest.Step(t, "a repeated registration does not bring a subject back", p.aRepeatBringsNobodyBack)
		nodetest.Step(t, "an update needs no free slot", p.anUpdateNeedsNoSlot)
		nodetest.Step(t, "a deleted gallery is gone on every node", p.aDeletedGalleryIsGone)
		nodetest.Step(t, "a gallery grows over more shards while it is used", p.aGalleryGrows)
		nodetest.Step(t, "the guard lets a person in once", p.theGuardLetsInOnce)
	})
}

// aRepeatBringsNobodyBack sends registrations again, byte for byte, while their subject
// lives, after one of its events is gone, and after it is gone itself.
func (p promises) aRepeatBringsNobodyBack(t *testing.T) {
	c := p.open(t, 10)
	sent := func(target, person string, headers ...sigv4.Header) (repeat func(i, status int) subject) {
		t.Helper()
		r, err := c.Sign(p.url(0), http.MethodPost, target, face(person), headers...)
		must.Do(t, err)
		return func(i, status int) (s subject) {
			t.Helper()
			a, err := c.SendAs(t.Context(), p.url(i), p.url(0), r)
			if err != nil || a.Status != status || (status == http.StatusBadRequest) != strings.Contains(string(a.Body), `"errorCode":1001,"errorType":"InvalidRequest","reason":"SubjectDeleted"`) {
				t.Fatalf("%s of %s at node %d: got %d %s, %v; want %d", target, person, i, a.Status, a.Body, err, status)
			}
			if status == http.StatusCreated {
				a.Decode(t, &s)
			}
			return s
		}
	}
	key := sigv4.Header{Name: "idempotency-key", Value: "a repeat"}
	plain, keyed := sent("/v1.1/subjects", "ann"), sent("/v1.1/subjects", "bob", key)
	ann, bob := plain(0, http.StatusCreated), keyed(0, http.StatusCreated)
	second := sent("/v1.1/subjects/"+ann.ID+"/events", "ann 2")
	later := second(0, http.StatusCreated)
	expect(t, c, http.StatusOK, p.url(1), http.MethodPut, "/v1.1/subjects/"+ann.ID, face("ann 3"))
	expect(t, c, http.StatusNoContent, p.url(1), http.MethodDelete, "/v1.1/subjects/"+ann.ID+"/events/"+ann.EventID, nil)
	if got := plain(2, http.StatusCreated); got != ann {
		t.Errorf("while the subject lives: %v, first %v", got, ann)
	}
	if got := second(1, http.StatusCreated); got != later {
		t.Errorf("an event, while the subject lives: %v, first %v", got, later)
	}
	for _, s := range []subject{ann, bob} {
		expect(t, c, http.StatusNoContent, p.url(1), http.MethodDelete, "/v1.1/subjects/"+s.ID, nil)
	}
	for i := range 3 {
		plain(i, http.StatusBadRequest)
		second(i, http.StatusBadRequest)
		if got := keyed(i, http.StatusCreated); got != bob {
			t.Errorf("with a key: %v, first %v", got, bob)
		}
		for _, person := range []string{"ann", "ann 2", "bob"} {
			isGone(t, c, p.url(i), person)
		}
	}
}

func (p promises) anUpdateNeedsNoSlot(t *testing.T) {
	c := p.open(t, 2)
	s := enrol(t, c, p.url(0), "a")
	enrol(t, c, p.url(1), "b")
	for i := range 4 {
		expect(t, c, http.StatusOK, p.url(i), http.MethodPut, "/v1.1/subjects/"+s.ID, face(fmt.Sprint("a", i)))
	}
	isFound(t, c, p.url(1), "a3", s.ID)
}

func (p promises) aDeletedGalleryIsGone(t *testing.T) {
	c := p.open(t, 100)
	for i := range 5 {
		enrol(t, c, p.url(i), fmt.Sprint("p", i))
	}
	var list struct{ Galleries []struct{ ID, Name string } }
	c.Call(t, p.url(0), http.MethodGet, "/api/galleries", nil).Decode(t, &list)
	expect(t, c, http.StatusNoContent, p.url(0), http.MethodDelete, "/api/galleries/"+list.Galleries[0].ID, nil)
	for i := range 3 {
		for _, target := range []string{"/v1.1/face/search"} {
			a := c.Call(t, p.url(i), http.MethodPost, target, probe("p1"))
			if a.Status != http.StatusForbidden {
				t.Errorf("node %d, right after the deletion: %d %s", i+1, a.Status, a.Body)
			}
		}
		expect(t, c, http.StatusNotFound, p.url(i), http.MethodGet, "/api/galleries/"+list.Galleries[0].ID, nil)
	}
	// The name is free, with the entries still to be purged.
	again := map[string]any{"name": list.Galleries[0].Name, "description": "", "size": 10, "faceMinimumQualityScore": 0.45}
	expect(t, c, http.StatusOK, p.url(1), http.MethodPost, "/api/galleries", again)
	for i := range 12 {
		name := fmt.Sprint("again ", i)
		again["name"] = name
		var g struct{ ID string }
		expect(t, c, http.StatusOK, p.url(i), http.MethodPost, "/api/galleries", again).Decode(t, &g)
		expect(t, c, http.StatusNoContent, p.url(i), http.MethodDelete, "/api/galleries/"+g.ID, nil)
		if i%2 == 0 {
			expect(t, c, http.StatusOK, p.url(i+1), http.MethodPost, "/api/galleries", again)
			continue
		}
		again["name"] = "another " + name
		expect(t, c, http.StatusOK, p.url(i), http.MethodPost, "/api/galleries", again).Decode(t, &g)
		expect(t, c, http.StatusOK, p.url(i+1), http.MethodPatch, "/api/galleries/"+g.ID, map[string]any{"name": name})
	}
}

func (p promises) aGalleryGrows(t *testing.T) {
	c := p.open(t, 10)
	// gone is enrolled with a key, removed, and enrolled again with that key.
	gone := func(i int) (s subject) {
		key := sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint("gone ", i)}
		c.Call(t, p.url(i), http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("gone ", i)), key).Decode(t, &s)
		return s
	}
	var removed []string
	for i := range 6 {
		removed = append(removed, gone(i).ID)
		expect(t, c, http.StatusNoContent, p.url(i), http.MethodDelete, "/v1.1/subjects/"+removed[i], nil)
	}
	for i := range 10 {
		enrol(t, c, p.url(i), fmt.Sprint("before ", i))
	}
	path := "/api/galleries/" + galleryID(t, c, p.url(0))
	expect(t, c, http.StatusBadRequest, p.url(0), http.MethodPatch, path, map[string]any{"size": 9})
	expect(t, c, http.StatusOK, p.url(0), http.MethodPatch, path, map[string]any{"size": 50})
	shards := map[byte]bool{}
	for i := range 30 {
		s := enrol(t, c, p.url(i), fmt.Sprint("after ", i))
		shards[s.ID[17]] = true
		isFound(t, c, p.url(i+1), fmt.Sprint("after ", i))
	}
	for i := range 10 {
		isFound(t, c, p.url(i), fmt.Sprint("before ", i))
	}
	if len(shards) < 2 {
		t.Errorf("the gallery did not spread: %v", shards)
	}
	for i, first := range removed {
		again, found := gone(i).ID, find(t, c, p.url(i+1), fmt.Sprint("gone ", i))
		if again != first || len(found) > 0 {
			t.Errorf("a retry of the enrolment of %s, who was removed, made %q, found as %v", first, again, found)
		}
	}
}

func (p promises) theGuardLetsInOnce(t *testing.T) {
	c := p.open(t, 200_000)
	expect(t, c, http.StatusOK, p.url(0), http.MethodPatch, "/api/applications/"+applicationID(t, c, p.url(0)), map[string]any{"enrolmentGuard": true})
	for i := range 3 { // a node that answers this has heard of the change
		expect(t, c, http.StatusOK, p.url(i), http.MethodGet, "/api/applications/"+applicationID(t, c, p.url(0)), nil)
	}
	named := regexp.MustCompile(`as subject: ([0-9a-f-]{36})`)
	for round := range 10 {
		var mu sync.Mutex
		made, known := 0, map[string]int{}
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				a := c.Call(t, p.url(i), http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("eve ", round)),
					sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint(round, "-", i)})
				mu.Lock()
				defer mu.Unlock()
				duplicate := named.FindSubmatch(a.Body)
				switch {
				case a.Status == http.StatusCreated:
					made++
				case duplicate == nil || !strings.Contains(string(a.Body), `"Duplicate"`):
					t.Errorf("register: %d %s", a.Status, a.Body)
				default:
					known[string(duplicate[1])]++
				}
			})
		}
		work.Wait()
		got := find(t, c, p.url(round), fmt.Sprint("eve ", round))
		if made != 1 || len(got) != 1 || known[got[0]] != 7 {
			t.Errorf("round %d: %d were told that they are enrolled, and %v are; 7 were told of %v", round, made, got, known)
		}
		a := c.Call(t, p.url(round), http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("eve ", round)))
		if !strings.Contains(string(a.Body), "Duplicate") {
			t.Errorf("round %d, enrolled again: %d %s", round, a.Status, a.Body)
		}
	}
}
