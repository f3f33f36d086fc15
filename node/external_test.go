package node_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/nodetest"
	"facet/node/sigv4"
	"facet/router"
)

// externals is a gallery on three nodes that all know external ids.
type externals struct {
	cluster *nodetest.Cluster
	client  *nodetest.Client
	tenant  id.Tenant
	access  router.Access
}

func startExternals(t *testing.T, o nodetest.Options) externals {
	t.Helper()
	e := externals{cluster: nodetest.Start(t, o)}
	e.client, e.tenant = e.cluster.ClientOf("named")
	gallery(t, e.client, e.cluster.Nodes[0].URL, "g", 100)
	waitNewest(t, e.cluster)
	synced(t, e.cluster)
	access, ok := e.cluster.Nodes[0].Node.AccessTo(e.tenant, "g")
	if !ok {
		t.Fatal("a node does not know the gallery")
	}
	e.access = access
	return e
}

// register registers a person with an external id on a node, again with the same write if the node
// fails.
func (e externals) register(ctx context.Context, n int, w router.Write, externalID string) (s router.Registered, err error) {
	for try := range 20 {
		s, err = e.cluster.Nodes[(n+try)%len(e.cluster.Nodes)].Node.Router().Register(ctx, router.Registration{
			Access: e.access, Write: w, Image: fmt.Append(nil, "person ", w.Operation), Note: router.Note{ExternalID: externalID},
		})
		if k := router.KindOf(err); err == nil || k == router.Duplicate {
			return s, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return s, err
}

// check demands that each external id has exactly the subject that won it.
func (e externals) check(t *testing.T, won map[string]id.Subject) {
	t.Helper()
	r := e.cluster.Nodes[2].Node.Router()
	list, err := r.Subjects(t.Context(), e.access, router.Page{Length: router.ListLengthMax})
	must.Do(t, err)
	seen := map[string]id.Subject{}
	for _, entry := range list.Entries {
		if entry.Note == nil || entry.Note.ExternalID == "" {
			continue
		}
		if of, twice := seen[entry.Note.ExternalID]; twice {
			t.Errorf("%s has the subjects %s and %s", entry.Note.ExternalID, of, entry.Subject)
		}
		seen[entry.Note.ExternalID] = entry.Subject
	}
	for external, subject := range won {
		if got, err := r.SubjectWith(t.Context(), e.access, external); err != nil || got != subject || seen[external] != subject {
			t.Errorf("%s finds %s, %v, and the list has %s, want %s", external, got, err, seen[external], subject)
		}
	}
	if len(seen) != len(won) {
		t.Errorf("%d external ids are listed, %d were won", len(seen), len(won))
	}
}

// contend registers each of n external ids through two nodes at once, and returns the winners.
// between runs meanwhile.
func (e externals) contend(t *testing.T, n int, between func()) map[string]id.Subject {
	t.Helper()
	var mu sync.Mutex
	won := map[string]id.Subject{}
	var done atomic.Int32
	var work sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range n {
		turns <- struct{}{}
		work.Go(func() {
			defer func() { <-turns; done.Add(1) }()
			external := fmt.Sprint("staff/", i)
			var got [2]router.Registered
			var errs [2]error
			var two sync.WaitGroup
			for k := range 2 {
				two.Go(func() {
					got[k], errs[k] = e.register(t.Context(), i+k, write(uint64(1000+2*i+k)), external)
				})
			}
			two.Wait()
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			if errs[winner] != nil || router.KindOf(errs[1-winner]) != router.Duplicate || !strings.Contains(errs[1-winner].Error(), got[winner].Subject.String()) {
				t.Errorf("%s: %v and %v, want one subject, and a Duplicate that names %s", external, errs[0], errs[1], got[winner].Subject)
			}
			mu.Lock()
			defer mu.Unlock()
			won[external] = got[winner].Subject
		})
	}
	between()
	work.Wait()
	return won
}

// Of two registrations at once through different nodes one wins, while the gallery grows. An external id whose
// registration died is free for the next one.
func TestExternalIDHasOneSubject(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{SlotsPerShard: 100})
		e.leaveClaim(t)
		began := time.Now()
		left, err := e.register(t.Context(), 1, write(7), "left")
		if took := time.Since(began); err != nil || took < time.Second || took > 30*time.Second {
			t.Fatalf("registered after %v: %v", took, err)
		}
		won := e.contend(t, 60, func() {
			size := 400
			patch := router.GalleryPatch{Change: settings.ChangeTo(settings.Gallery{Size: uint32(size)}, "size")}
			if _, err := e.cluster.Nodes[0].Node.Router().UpdateGallery(t.Context(), e.tenant, write(1), e.access.Gallery, patch); err != nil {
				t.Error(err)
			}
		})
		won["left"] = left.Subject
		e.check(t, won)
		// A retry gets the first answer, on any node, although the id is taken.
		for i := range 10 {
			external := fmt.Sprint("staff/", i)
			for k := range 2 {
				s, err := e.register(t.Context(), i, write(uint64(1000+2*i+k)), external)
				if err == nil && s.Subject != won[external] || err != nil && router.KindOf(err) != router.Duplicate {
					t.Errorf("%s again: %s, %v", external, s.Subject, err)
				}
			}
		}
		e.check(t, won)
	})
}

// The refusal of an external id is the answer to each try of the same write, also to a first one that a slow node
// carries out after the id has become free.
func TestRefusedExternalIDStaysRefused(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		first, err := e.register(t.Context(), 0, write(1), "badge")
		must.Do(t, err)
		other, err := e.register(t.Context(), 0, write(2), "")
		must.Do(t, err)
		rename := func(n int) error {
			patch := router.NotePatch{ExternalID: new("badge")}
			_, err := e.cluster.Nodes[n].Node.Router().UpdateSubject(t.Context(), router.Enrolment{
				Access: e.access, Subject: other.Subject, Write: write(3), Image: []byte("person renamed"), Note: patch,
			})
			return err
		}
		refused := func(what string, err error) {
			t.Helper()
			if router.KindOf(err) != router.Duplicate || !strings.Contains(err.Error(), first.Subject.String()) {
				t.Errorf("%s: %v, want that %s has the id", what, err, first.Subject)
			}
		}
		_, err = e.register(t.Context(), 0, write(4), "badge")
		refused("a registration", err)
		refused("a change", rename(0))
		_, err = e.cluster.Nodes[1].Node.Router().Unregister(t.Context(), e.access, first.Subject, write(5).Operation)
		must.Do(t, err)
		_, err = e.register(t.Context(), 1, write(4), "badge")
		refused("the late first try of the registration", err)
		refused("that of the change", rename(2))
		e.check(t, nil)
		now, err := e.register(t.Context(), 2, write(6), "badge")
		must.Do(t, err)
		e.check(t, map[string]id.Subject{"badge": now.Subject})
	})
}

// leaveClaim leaves a claim on the external id "left", as a node does that dies before it registers the subject.
func (e externals) leaveClaim(t *testing.T) {
	t.Helper()
	dead := id.Subject{UUID: id.UUID{1, 6: 0x80, 7: 2, 8: 0x80}}
	within(t, movesTimeout, "the home of the external id has a leader", func() (left bool) {
		for _, n := range e.cluster.Nodes {
			ok, err := n.Node.LeaveClaim(t.Context(), e.access.Gallery, "left", dead)
			must.Do(t, err)
			left = left || ok
		}
		return left
	})
}

// Claims that a crash left behind, and those of deleted galleries, go with the erasure. An external id
// whose claim was lost gets it back.
func TestScrubRemovesLeftClaims(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{EraseWithin: 16 * time.Second})
		url := e.cluster.Nodes[0].URL
		for i := range 8 {
			if _, err := e.register(t.Context(), i, write(uint64(i)), fmt.Sprint("staff/", i)); err != nil {
				t.Fatal(err)
			}
		}
		e.leaveClaim(t)
		await := func(what string, want int) {
			t.Helper()
			within(t, 20*time.Second, fmt.Sprintf("%s is gone: %d are left", what, want), func() bool {
				return !slices.ContainsFunc(e.cluster.Nodes, func(m *nodetest.Member) bool { return m.Node.ClaimsHere() != want })
			})
		}
		await("the claim that was left", 8)
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/externalId:staff%2F0", nil)
		await("the claim of a removed subject", 7)
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, "/api/galleries/"+e.access.Gallery.String(), nil)
		await("the claims of a deleted gallery", 0)
	})
}

// Most encoders write + for a space, some for a plus sign: the signature says which.
func TestPlusInQueryFindsOneSubject(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		url, c := e.cluster.Nodes[0].URL, e.client
		for _, external := range []string{"a b", "a+b"} {
			body := face("the person " + external)
			body["externalId"] = external
			expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body)
		}
		const list = "/v1.1/subjects?externalId="
		for signed, want := range map[string]string{"a%20b": "a b", "a%2Bb": "a+b"} {
			for _, sent := range []string{signed, "a+b"} {
				r, err := c.Sign(url, http.MethodGet, list+signed, nil)
				must.Do(t, err)
				r.Target = list + sent
				var got struct{ Subjects []struct{ ExternalID string } }
				a, err := c.Send(t.Context(), url, r)
				must.Do(t, err)
				a.Want(t, http.StatusOK, &got)
				if len(got.Subjects) != 1 || got.Subjects[0].ExternalID != want {
					t.Errorf("%s signed as %s: %+v, want %q", sent, signed, got, want)
				}
			}
		}
	})
}

// A retry of a rename finds its outcome by the old external id, also when another subject has
// that id by then.
func TestRetriedRenameGetsFirstAnswer(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		url, c := e.cluster.Nodes[0].URL, e.client
		register := func(person string) string {
			body := face(person)
			body["externalId"] = "old"
			var s subject
			expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body).Decode(t, &s)
			return s.ID
		}
		was := register("a person")
		renamed, key := face("a person"), sigv4.Header{Name: "idempotency-key", Value: "rename"}
		renamed["externalId"] = "new"
		rename := func(node int) (int, string) {
			var s subject
			a := c.Call(t, e.cluster.Nodes[node].URL, http.MethodPut, "/v1.1/subjects/externalId:old", renamed, key)
			if a.Status == http.StatusOK {
				a.Decode(t, &s)
			}
			return a.Status, s.ID
		}
		for try := range 3 {
			if status, got := rename(try); status != http.StatusOK || got != was {
				t.Errorf("try %d: %d, subject %q, want %s", try, status, got, was)
			}
		}
		other := register("another person")
		if status, got := rename(1); status != http.StatusOK || got != was {
			t.Errorf("with another subject of the old id: %d, subject %q, want %s", status, got, was)
		}
		isFound(t, c, url, "another person", other)
		e.matchesShowNotes(t)
	})
}

// matchesShowNotes demands that all matches have the notes that the candidates of a search have.
func (e externals) matchesShowNotes(t *testing.T) {
	t.Helper()
	body := face("a third person")
	body["externalId"], body["userData"] = "staff/7", map[string]any{"door": 3}
	url := e.cluster.Nodes[0].URL
	expect(t, e.client, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body)
	enrol(t, e.client, url, "somebody else")
	for person, noted := range map[string]bool{"a third person": true, "somebody else": false} {
		for _, path := range []string{"search", "matches"} {
			a := expect(t, e.client, http.StatusOK, url, http.MethodPost, "/v1.1/face/"+path, probe(person))
			text := string(a.Body)
			if got := strings.Contains(text, `"externalId":"staff/7"`) && strings.Contains(text, `"userData":{"door":3}`); got != noted {
				t.Errorf("%s of %s: notes %v, want %v: %s", path, person, got, noted, text)
			}
		}
	}
}
