package node_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Records name a subject by its id and a salt, always the same, until the subject is gone with its salt.
// Then nobody can find the name again. The receipt of the erasure has its request id, which leads to no name,
// either.
func TestErasedSubjectCannotBeNamed(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 400)
		register := func(i int, person string) id.Subject {
			t.Helper()
			var made struct{ ID string }
			expect(t, a.client, http.StatusCreated, a.url(i), http.MethodPost, "/v1.1/subjects", face(person)).Decode(t, &made)
			subject := parsed(t, made.ID)
			return id.Subject{UUID: subject}
		}
		subject, source := register(0, "alice"), register(1, "bob")
		path := "/v1.1/subjects/" + subject.String()
		verify := probe("alice")
		delete(verify, "threshold")
		verify["id"] = subject.String()
		other := map[string]any{"probe": probe("carol")["probe"], "id": subject.String()}
		ends := map[string]bool{} // ids of the requests that end the subject's life
		for i, call := range []struct {
			want           int
			method, target string
			body           any
		}{
			{200, http.MethodPost, "/v1.1/face/search", probe("alice")},
			{200, http.MethodPost, "/v1/face/search", probe("alice")},
			{200, http.MethodPost, "/v1.1/face/matches", probe("alice")},
			{200, http.MethodPost, "/v1.1/face/verify", verify},
			{404, http.MethodPost, "/v1.1/face/verify", other},
			{200, http.MethodGet, path + "/events", nil},
			{200, http.MethodPut, path, face("alice")},
			{200, http.MethodPost, path + "/merge", map[string]any{"source": source.String()}},
			{204, http.MethodDelete, path, nil},
			{404, http.MethodDelete, path, nil},
		} {
			answer := a.call(t, i%3, call.method, call.target, call.body)
			if answer.Status != call.want {
				t.Fatalf("%s %s: %d %s", call.method, call.target, answer.Status, answer.Body)
			}
			if call.method == http.MethodDelete {
				ends[answer.Header.Get("X-Request-Id")] = true
			}
		}
		names := map[entry.Name][]string{}
		var search *entry.Record
		for _, r := range a.readAll(t, 2) {
			if ends[fmt.Sprintf("%x", r.ID)] && len(r.List())+len(r.Subjects) > 0 {
				t.Errorf("the %v of %s names whom it erased", r.Kind, r.Operation)
			}
			for _, c := range r.List() {
				names[c.Subject] = append(names[c.Subject], r.Operation)
			}
			for b := r.Subjects; len(b) > 0; b = b[entry.NameBytes:] {
				names[entry.Name(b)] = append(names[entry.Name(b)], r.Operation)
			}
			if r.Operation == "POST /v1.1/face/search" {
				search = r
			}
		}
		if len(names) != 2 {
			t.Fatalf("two subjects have %d names: %v", len(names), names)
		}
		key, err := a.cluster.Nodes[0].Node.Router().AuditKey(a.tenant)
		must.Do(t, err)
		for _, s := range []id.Subject{subject, source} {
			mac := key.MAC(append([]byte("subject "), s.UUID[:]...))
			if of := names[entry.Name(mac[:entry.NameBytes])]; of != nil {
				t.Errorf("whoever has the id and the key finds the subject in the records of %v", of)
			}
		}
		counts := []int{}
		for _, of := range names {
			counts = append(counts, len(of))
		}
		if slices.Sort(counts); counts[0] != 3 || counts[1] != 13 { // a verification names its subject twice, and an intent its subjects
			t.Errorf("the names are in %v", names)
		}
		if search == nil || search.Generation == 0 || len(search.Searched) != 8 || slices.Max(search.Searched) < 5 || search.Pack == "" || search.Quality == 0 {
			t.Errorf("the record of a search is %+v", search)
		}
	})
}

// The record of the removal of an event names the subject, unless that was its last event: then the subject is
// erased.
func TestRemovalOfLastEventNamesNobody(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 50)
		var first, second struct{ ID, EventID string }
		expect(t, a.client, http.StatusCreated, a.url(0), http.MethodPost, "/v1.1/subjects", face("alice")).Decode(t, &first)
		path := "/v1.1/subjects/" + first.ID + "/events"
		expect(t, a.client, http.StatusCreated, a.url(1), http.MethodPost, path, face("alice")).Decode(t, &second)
		names := map[string]int{}
		for i, event := range []string{first.EventID, second.EventID} {
			answer := a.call(t, i, http.MethodDelete, path+"/"+event, nil)
			if answer.Status != http.StatusNoContent {
				t.Fatalf("%d %s", answer.Status, answer.Body)
			}
			names[answer.Header.Get("X-Request-Id")] = 1 - i
		}
		for _, r := range a.readAll(t, 2) {
			want, removes := names[fmt.Sprintf("%x", r.ID)]
			if r.Kind == entry.Intent {
				want = 0 // nobody knows yet which event is the last
			}
			if removes && len(r.Subjects) != want*entry.NameBytes {
				t.Errorf("the %v names %d bytes of subjects, want %d names", r.Kind, len(r.Subjects), want)
			}
		}
	})
}

// The cluster completes the intents of a node that died before it gave an outcome.
func TestOpenIntentsAreCompleted(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		a := startAudited(t)
		gallery(t, a.client, a.url(0), "staff", 100)
		r := a.cluster.Nodes[0].Node.Router()
		setAudit(t, a.cluster, a.tenant, metafsm.AuditStrict)
		access, err := r.Access(t.Context(), a.tenant, a.client.APIKey)
		must.Do(t, err)
		if _, err := r.Register(t.Context(), router.Registration{Access: access, Write: write(1), Image: []byte("alice")}); err != nil {
			t.Fatal(err)
		}
		dead, err := audit.New(audit.Config{Log: r, Folder: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		must.Do(t, err)
		ctx, die := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		runs.Go(func() { dead.Run(ctx) })
		intend := func(id byte, at time.Time, of router.Write) {
			t.Helper()
			e := entry.New(entry.Intent, at)
			e.ID, e.Doing, e.Operation = [16]byte{id}, of.Operation, "POST /v1.1/subjects"
			e.Subjects, e.Case, e.Verdict, e.Purpose = bytes.Repeat([]byte{id}, entry.NameBytes), access.Gallery.UUID, entry.Same, "visit"
			must.Do(t, dead.Record(t.Context(), a.tenant, audit.Event{Record: e}))
		}
		now := time.Now()
		intend(1, now.Add(-2*time.Minute), write(1))
		intend(2, now.Add(-2*time.Minute), write(2))
		intend(3, now.Add(-2*time.Minute), router.Write{})
		intend(4, now.Add(-time.Hour), write(2))
		intend(5, now, write(1)) // its request may still be under way
		die()
		runs.Wait()
		want := map[byte]string{1: entry.ReasonCarriedOut, 2: entry.ReasonNotCarriedOut, 3: entry.ReasonUnknown, 4: entry.ReasonUnknown}
		got := map[byte]string{}
		for late := now.Add(20 * time.Second); len(got) < len(want) && time.Now().Before(late); time.Sleep(200 * time.Millisecond) {
			for _, r := range a.read(t, 1) {
				if r.Kind != entry.Completed {
					continue
				}
				got[r.ID[0]] = r.Reason
				if want := bytes.Repeat(r.ID[:1], entry.NameBytes); !bytes.Equal(r.Subjects, want) || r.Case != access.Gallery.UUID || r.Verdict != entry.Same || r.Purpose != "visit" {
					t.Errorf("the outcome of an intent is %+v", r)
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("intents were completed as %v, want %v", got, want)
		}
	})
}
