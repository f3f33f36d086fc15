package backup_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/receipt"
	"facet/node/sigv4"
	"facet/node/wire"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/metafsm"
)

// person is enrolled in several galleries of a cluster and erased.
type person struct {
	cluster   *nodetest.Cluster
	admin     *nodetest.Client
	galleries []string // ids
	keys      []string // API keys
	template  []float32
	secrets   [][]byte // of the galleries
	writes    int
}

func (p *person) call(t *testing.T, gallery, want int, method, target string, body, into any) nodetest.Answer {
	t.Helper()
	c := *p.admin
	c.APIKey = p.keys[gallery]
	var headers []sigv4.Header
	if method == http.MethodPost {
		p.writes++ // each registration is another request
		headers = append(headers, sigv4.Header{Name: "idempotency-key", Value: fmt.Sprint(p.writes)})
	}
	a := c.Call(t, p.cluster.Nodes[gallery%2].URL, method, target, body, headers...)
	if a.Status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, target, a.Status, a.Body, want)
	}
	if into != nil {
		a.Decode(t, into)
	}
	return a
}

// newPerson enrols one person with 64 events in two of three galleries, and others.
func newPerson(t *testing.T, cluster *nodetest.Cluster, face string) *person {
	t.Helper()
	p := &person{cluster: cluster, admin: cluster.Client("bank")}
	faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(face))
	must.Do(t, err)
	p.template = faces[0].Template
	for n := range 3 {
		var g struct{ ID, APIKey string }
		p.admin.Call(t, cluster.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
			"name": fmt.Sprint("gallery ", n), "description": "", "size": 200, "faceMinimumQualityScore": 0.45,
		}).Decode(t, &g)
		p.galleries, p.keys = append(p.galleries, g.ID), append(p.keys, g.APIKey)
		for i := range 5 {
			p.call(t, n, http.StatusCreated, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(fmt.Sprint("other ", n, i))}, nil)
		}
	}
	for range 2 {
		p.call(t, 1, http.StatusCreated, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(face)}, nil)
	}
	var s struct{ ID string }
	p.call(t, 0, http.StatusCreated, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(face)}, &s)
	for range 61 {
		p.call(t, 0, http.StatusCreated, http.MethodPost, "/v1.1/subjects/"+s.ID+"/events", map[string]any{"face": nodetest.Image(face)}, nil)
	}
	return p
}

// matches pages through the subjects of a gallery that are like the face.
func (p *person) matches(t *testing.T, gallery int, face string) (ids []string, events int) {
	t.Helper()
	for after := ""; ; {
		body := map[string]any{"probe": nodetest.Image(face), "length": 1}
		if after != "" {
			body["after"] = after
		}
		var page struct {
			Candidates []struct {
				ID         string
				Events     []struct{ ID string }
				EventCount int
			}
			Next string
		}
		p.call(t, gallery, http.StatusOK, http.MethodPost, "/v1.1/face/matches", body, &page)
		for _, c := range page.Candidates {
			if len(c.Events) != min(c.EventCount, 50) {
				t.Errorf("%d events of %d are shown", len(c.Events), c.EventCount)
			}
			ids, events = append(ids, c.ID), events+c.EventCount
		}
		if after = page.Next; after == "" {
			return ids, events
		}
	}
}

// erase erases the person and returns what a receipt begins with.
func (p *person) erase(t *testing.T, face string) (done []receipt.Subject) {
	t.Helper()
	total := 0
	for n, gallery := range p.galleries {
		ids, events := p.matches(t, n, face)
		total += events
		for _, subject := range ids {
			a := p.call(t, n, http.StatusNoContent, http.MethodDelete, "/v1.1/subjects/"+subject, nil, nil)
			commit := a.Header.Get("Facet-Commit")
			if !regexp.MustCompile(`^group=[1-4], index=[1-9]\d*$`).MatchString(commit) {
				t.Errorf("facet-commit: %q", commit)
			}
			done = append(done, receipt.Subject{
				Gallery: id.Gallery{UUID: parse(t, gallery)}, Subject: id.Subject{UUID: parse(t, subject)},
				Answered: time.Now(), RequestID: a.Header.Get("X-Request-Id"), Commit: commit,
			})
		}
		if left, _ := p.matches(t, n, face); len(left) > 0 {
			t.Errorf("after the erasure gallery %d has %v", n, left)
		}
	}
	if len(done) != 3 || total != 64 {
		t.Errorf("found %d subjects with %d events, want 3 with 64", len(done), total)
	}
	return done
}

func parse(t *testing.T, text string) id.UUID {
	t.Helper()
	u, err := id.Parse(text)
	must.Do(t, err)
	return u
}

// onDisks returns the files of all data directories that have the face.
func (p *person) onDisks(t *testing.T) (found []string) {
	t.Helper()
	for _, n := range p.cluster.Nodes {
		found = append(found, fsmtest.NewScanner(p.template, p.secrets...).Files(t, n.Config.Dir)...)
	}
	return found
}

// inBackup reports whether a backup has the face.
func (p *person) inBackup(t *testing.T, dir, name string) bool {
	t.Helper()
	opened := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(opened, "plain"), plainOf(t, dir, name, masterOf(t, p.cluster)), 0o600))
	return len(fsmtest.NewScanner(p.template, p.secrets...).Files(t, opened)) > 0
}

// order asks a node for a receipt, and opens it as somebody with the public key does.
func (p *person) order(t *testing.T, node int, o receipt.Order) (*receipt.Receipt, []byte) {
	t.Helper()
	port := p.cluster.Nodes[node].Node.Admin()
	a, err := port.Receipts().Receipt(t.Context(), o)
	must.Do(t, err)
	r, err := receipt.Open(a.Signed, port.Status(t.Context()).ReceiptKey)
	must.Do(t, err)
	return r, a.Signed
}

// until orders receipts until one fulfils want.
func (p *person) until(t *testing.T, signed []byte, want func(*receipt.Receipt) bool) (*receipt.Receipt, []byte) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		r, again := p.order(t, 0, receipt.Order{Signed: signed, Now: true})
		if signed = again; want(r) {
			return r, signed
		}
		if time.Now().After(late) {
			text, _ := json.MarshalIndent(r.Replicas, "", "")
			t.Fatalf("after a minute the receipt is\n%s", text)
		}
	}
}

// of returns what the receipt says of a node.
func of(r *receipt.Receipt, node string) []receipt.Replica {
	return slices.DeleteFunc(slices.Clone(r.Replicas), func(row receipt.Replica) bool { return row.Name != node })
}

func clean(rows []receipt.Replica) bool {
	return len(rows) > 0 && !slices.ContainsFunc(rows, func(row receipt.Replica) bool { return !row.Clean })
}

// TestReceiptIsTrue scans every byte of all data directories and backups before and after.
func TestReceiptIsTrue(t *testing.T) {
	const face = "the person"
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		for end := time.Now().Add(20 * time.Second); cluster.Nodes[0].Node.Status(t.Context()).Level != metafsm.Level; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the cluster does not come to its level")
			}
		}
		p, dir := newPerson(t, cluster, face), t.TempDir()
		backup := func(name string) {
			t.Helper()
			if _, err := cluster.Nodes[0].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: "file://" + dir, Name: name}, nil); err != nil {
				t.Fatal(err)
			}
		}
		backup("before")
		plain := plainOf(t, dir, "before", masterOf(t, cluster))
		for _, g := range p.galleries {
			p.secrets = append(p.secrets, gallerySecret(t, masterOf(t, cluster), plain, g))
		}
		if found := p.onDisks(t); len(found) < 3 || !p.inBackup(t, dir, "before") {
			t.Fatalf("the scan finds the person in %v only", found)
		}

		begun := receipt.Order{Subjects: p.erase(t, face), Folders: []string{"file://" + dir}}
		r, signed := p.order(t, 1, begun)
		if r.DisksClean || r.Complete || len(r.Missing) < 3 || r.Tenant != "bank" || len(r.Subjects) != 3 || r.Subjects[0].GalleryName != "gallery 0" {
			t.Errorf("at once the receipt is %+v", r)
		}
		changed := slices.Clone(signed)
		changed[len(changed)/2] ^= 1
		if _, err := cluster.Nodes[0].Node.Admin().Receipts().Receipt(t.Context(), receipt.Order{Signed: changed}); err == nil {
			t.Error("a changed receipt is brought up to date")
		}

		cluster.Stop(2)
		r, signed = p.until(t, signed, func(r *receipt.Receipt) bool { return clean(of(r, "n1")) && clean(of(r, "n2")) })
		if rows := of(r, "n3"); r.DisksClean || len(rows) == 0 || rows[0].Clean || rows[0].Answered.IsZero() || !strings.Contains(rows[0].Why, "does not answer") ||
			!slices.ContainsFunc(r.Missing, func(s string) bool { return strings.Contains(s, "n3") }) {
			t.Errorf("with a node stopped: %+v, missing %v", rows, r.Missing)
		}
		if found := p.onDisks(t); len(found) == 0 || slices.ContainsFunc(found, func(f string) bool { return !strings.HasPrefix(f, cluster.Nodes[2].Config.Dir) }) {
			t.Errorf("with two disks clean the person is in %v", found)
		}
		cluster.Restart(2)
		cluster.WaitReady()
		r, signed = p.until(t, signed, func(r *receipt.Receipt) bool { return r.DisksClean })
		if found := p.onDisks(t); len(found) > 0 {
			t.Errorf("the receipt says that all disks are clean, and the person is in %v", found)
		}
		if len(r.Backups) != 1 || r.Backups[0].Name != "before" || r.Complete {
			t.Errorf("backups %+v, complete %v", r.Backups, r.Complete)
		}

		backup("after")
		if p.inBackup(t, dir, "after") {
			t.Error("a backup after the erasure has the person")
		}
		must.Do(t, os.RemoveAll(filepath.Join(dir, "before")))
		r, _ = p.order(t, 2, receipt.Order{Signed: signed})
		if got := r.Backups; len(got) != 1 || got[0].Name != "after" {
			t.Errorf("a backup that was begun within a minute of the erasure is not listed as one that may hold it: %v", got)
		}
		var kept struct{ Candidates []struct{ ID string } }
		p.call(t, 2, http.StatusOK, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image("other 2 3")}, &kept)
		if len(kept.Candidates) != 1 {
			t.Errorf("others are found no more: %v", kept)
		}
	})
}
