package node_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// externals is a gallery on three nodes that all know external ids.
type externals struct {
	cluster *nodetest.Cluster
	client  *nodetest.Client
	tenant  id.Tenant
	access  router.Access
	running []atomic.Pointer[node.Node] // which register uses
}

func startExternals(t *testing.T, o nodetest.Options) externals {
	t.Helper()
	e := externals{cluster: nodetest.Start(t, o)}
	e.running = make([]atomic.Pointer[node.Node], len(e.cluster.Nodes))
	e.client, e.tenant = e.cluster.ClientOf("named")
	gallery(t, e.client, e.cluster.Nodes[0].URL, "g", 100)
	for i, n := range e.cluster.Nodes {
		e.running[i].Store(n.Node)
		waitLevel(t, n.Node, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
		if err := n.Node.Router().SyncMeta(t.Context()); err != nil {
			t.Fatal(err)
		}
		access, ok := n.Node.AccessTo(e.tenant, "g")
		if !ok {
			t.Fatal("a node does not know the gallery")
		}
		e.access = access
	}
	return e
}

// register registers a person with an external id on a node, again with the same write if the node
// fails.
func (e externals) register(ctx context.Context, n int, w router.Write, externalID string) (s router.Registered, err error) {
	for try := range 20 {
		at := e.running[(n+try)%len(e.running)].Load()
		if at == nil {
			continue
		}
		s, err = at.Router().Register(ctx, router.Registration{
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
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]id.Subject{}
	for _, entry := range list.Entries {
		if entry.Note == nil {
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

// Of two registrations at once through different nodes one wins, while the gallery grows.
func TestExternalIDHasOneSubject(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{SlotsPerShard: 100})
		won := e.contend(t, 60, func() {
			size := 400
			patch := router.GalleryPatch{Size: &size}
			if _, err := e.cluster.Nodes[0].Node.Router().UpdateGallery(t.Context(), e.tenant, write(1), e.access.Gallery, patch); err != nil {
				t.Error(err)
			}
		})
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

// An external id whose registration died is free for the next one, and stays with one subject while
// leaders go.
func TestExternalIDSurvivesLostLeaders(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		dead := id.Subject{UUID: id.UUID{1, 6: 0x80, 7: 2, 8: 0x80}}
		left := false
		eventually(t, e.cluster.Nodes[0].Node, "the home of the external id has a leader", func(wire.Status) bool {
			for _, n := range e.cluster.Nodes {
				ok, err := n.Node.LeaveClaim(t.Context(), e.access.Gallery, "left", dead)
				if err != nil {
					t.Fatal(err)
				}
				left = left || ok
			}
			return left
		})
		began := time.Now()
		s, err := e.register(t.Context(), 1, write(7), "left")
		if took := time.Since(began); err != nil || took < time.Second || took > 30*time.Second {
			t.Fatalf("registered after %v: %v", took, err)
		}
		won := e.contend(t, 60, func() {
			for i := range 2 { // the leader of some shards goes, and comes back
				e.running[i].Store(nil)
				e.cluster.Stop(i)
				time.Sleep(time.Second)
				e.cluster.Restart(i)
				e.cluster.WaitReady()
				e.running[i].Store(e.cluster.Nodes[i].Node)
			}
		})
		won["left"] = s.Subject
		e.check(t, won)
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
		for _, n := range e.cluster.Nodes {
			if _, err := n.Node.LeaveClaim(t.Context(), e.access.Gallery, "left", id.Subject{UUID: id.UUID{1, 6: 0x80, 7: 2, 8: 0x80}}); err != nil {
				t.Fatal(err)
			}
		}
		await := func(what string, want int) {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				counts := []int{}
				for _, n := range e.cluster.Nodes {
					counts = append(counts, n.Node.ClaimsHere())
				}
				if counts[0] == want && counts[1] == want && counts[2] == want {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%s: the nodes have %d claims, want %d", what, counts, want)
				}
			}
		}
		await("the claim that was left", 8)
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/externalId:staff%2F0", nil)
		await("the claim of a removed subject", 7)
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, "/api/galleries/"+e.access.Gallery.String(), nil)
		await("the claims of a deleted gallery", 0)
	})
}

// TestErasedNotesLeaveEveryDisk scans the data directories of all nodes for notes, as
// TestErasedDataLeavesEveryDisk does for faces, and all log lines for external ids.
func TestErasedNotesLeaveEveryDisk(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const bound = 16 * time.Second
		var lines lockedLines
		e := startExternals(t, nodetest.Options{EraseWithin: bound, Log: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		url := e.cluster.Nodes[0].URL
		ids := []string{"removed person", "renamed person", "dropped person", "a deleted list"}
		for _, external := range ids {
			body := face(external)
			body["externalId"] = external
			expect(t, e.client, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", body)
		}
		secret, err := e.cluster.Nodes[0].Node.DataSecret(e.access.Gallery)
		if err != nil {
			t.Fatal(err)
		}
		files := func(text string, secrets ...[]byte) (found []string) {
			t.Helper()
			for _, n := range e.cluster.Nodes {
				found = append(found, fsmtest.NewTextScanner(text, secrets...).Files(t, n.Config.Dir)...)
			}
			return found
		}
		gone := func(external string, deadline time.Time) {
			t.Helper()
			for found := files(external, secret); len(found) > 0; found = files(external, secret) {
				if time.Now().After(deadline) {
					t.Fatalf("%s after its erasure %q is in %v", bound, external, found)
				}
				time.Sleep(bound / 40)
			}
		}
		for _, external := range ids {
			if found := files(external, secret); len(found) < 3 {
				t.Fatalf("the scan finds the note of %q in %v only", external, found)
			}
			if found := files(external); len(found) > 0 {
				t.Fatalf("%q is in clear in %v", external, found)
			}
		}
		at := func(external string) string {
			return "/v1.1/subjects/externalId:" + strings.ReplaceAll(external, " ", "%20")
		}
		renamed, dropped := face(ids[1]), face(ids[2])
		renamed["externalId"], dropped["externalId"] = "somebody else now", ""
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, at(ids[0]), nil)
		expect(t, e.client, http.StatusOK, url, http.MethodPut, at(ids[1]), renamed)
		expect(t, e.client, http.StatusOK, url, http.MethodPut, at(ids[2]), dropped)
		deadline := time.Now().Add(bound)
		for _, external := range ids[:3] {
			gone(external, deadline)
		}
		if len(files(ids[3], secret)) < 3 {
			t.Error("others are gone too")
		}
		expect(t, e.client, http.StatusNoContent, url, http.MethodDelete, "/api/galleries/"+e.access.Gallery.String(), nil)
		gone(ids[3], time.Now().Add(bound))
		for _, text := range append(ids, "somebody else now", "externalId:") {
			if line, ok := lines.with(text); ok {
				t.Errorf("a line of the log has %q: %s", text, line)
			}
		}
	})
}

// lockedLines keeps what is logged.
type lockedLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with returns the first line that has a text.
func (l *lockedLines) with(text string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) || strings.Contains(line, strings.ReplaceAll(text, " ", "%20")) {
			return line, true
		}
	}
	return "", false
}

// A restored cluster knows the external ids of the backup, at its own homes, and takes none twice.
func TestRestoredExternalIDsAreClaimed(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		e := startExternals(t, nodetest.Options{})
		won := map[string]id.Subject{}
		for i := range 12 {
			external := fmt.Sprint("staff/", i)
			s, err := e.register(t.Context(), i, write(uint64(i)), external)
			if err != nil {
				t.Fatal(err)
			}
			won[external] = s.Subject
		}
		to := "file://" + t.TempDir()
		if _, err := e.cluster.Nodes[1].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: to, Name: "first"}, nil); err != nil {
			t.Fatal(err)
		}
		// Another number of shards: the ids have other homes.
		young := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 7, ClusterKeyFile: e.cluster.Nodes[0].Config.ClusterKeyFile})
		n := young.Nodes[0].Node
		waitLevel(t, n, "the level", metafsm.Level, func(n *node.Node) uint32 { return n.Status(t.Context()).Level })
		if _, err := n.Backups().Restore(t.Context(), wire.RestoreOrder{BackupQuery: wire.BackupQuery{From: to}}, nil); err != nil {
			t.Fatal(err)
		}
		if got := n.ClaimsHere(); got != len(won) {
			t.Errorf("%d claims after the restoration, want %d", got, len(won))
		}
		for external, subject := range won {
			if got, err := n.Router().SubjectWith(t.Context(), e.access, external); err != nil || got != subject {
				t.Errorf("%s finds %s, %v, want %s", external, got, err, subject)
			}
		}
		_, err := n.Router().Register(t.Context(), router.Registration{
			Access: e.access, Write: write(99), Image: []byte("another"), Note: router.Note{ExternalID: "staff/3"},
		})
		if router.KindOf(err) != router.Duplicate {
			t.Errorf("a restored external id is registered again: %v", err)
		}
	})
}

// Below level 5 nothing of an external id is proposed, and the answer says what to do.
func TestOlderClusterRefusesExternalIDs(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Level: metafsm.LevelSubjects - 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, url := cluster.Client("old"), cluster.Nodes[0].URL
		gallery(t, c, url, "g", 10)
		body := face("somebody")
		body["externalId"] = "staff/1"
		a := c.Call(t, url, http.MethodPost, "/v1.1/subjects", body)
		if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), "finish the upgrade") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		enrol(t, c, url, "somebody")
	})
}
