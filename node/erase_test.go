package node_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/raftfsm/fsmtest"
	"facet/shard/segment"
)

// TestErasedDataLeavesEveryDisk scans the data directories
// of all nodes, log, segments and snapshots of every group included, with the keys of
// all galleries.
func TestErasedDataLeavesEveryDisk(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const bound = 8 * time.Second
		cluster := nodetest.Start(t, nodetest.Options{EraseWithin: bound})
		url := cluster.Nodes[0].URL
		stay, leave := cluster.Client("stays"), cluster.Client("leaves")
		gallery(t, stay, url, "stays", 400)
		gallery(t, leave, url, "leaves", 100)
		var erased, replaced subject
		for i := range 240 { // so many that a segment gets codes
			if enrol(t, stay, url, fmt.Sprint("other ", i)); i == 10 { // in the first block of codes
				erased, replaced = enrol(t, stay, url, "erased"), enrol(t, stay, url, "replaced")
			}
		}
		enrol(t, leave, url, "of a gallery")

		galleries := map[*nodetest.Client]string{}
		var secrets [][]byte
		for _, c := range []*nodetest.Client{stay, leave} {
			gallery, secret := galleryOf(t, cluster, c)
			galleries[c] = gallery
			secrets = append(secrets, secret)
		}
		files := func(person string) (found []string) {
			t.Helper()
			faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(person))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range cluster.Nodes {
				found = append(found, fsmtest.NewScanner(faces[0].Template, secrets...).Files(t, n.Config.Dir)...)
			}
			return found
		}
		all := []string{"erased", "replaced", "of a gallery"}
		for _, person := range all {
			if found := files(person); len(found) < 3 {
				t.Fatalf("the scan finds %q, who is enrolled, in %v only", person, found)
			}
		}
		coded := func(person string) (n int) {
			for _, path := range files(person) {
				if segment.IsCompanion(filepath.Base(path)) {
					n++
				}
			}
			return n
		}
		for since, n := time.Now(), 0; coded("erased") == 0 || coded("replaced") == 0; time.Sleep(bound / 40) {
			if n++; n < 100 {
				enrol(t, stay, url, fmt.Sprint("further ", n)) // small segments are merged when others come
			}
			if time.Since(since) > 3*bound {
				t.Fatalf("the codes of faces to be erased are on %d and %d disks", coded("erased"), coded("replaced"))
			}
		}
		expect(t, stay, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+erased.ID, nil)
		expect(t, stay, http.StatusOK, url, http.MethodPut, "/v1.1/subjects/"+replaced.ID, face("another"))
		expect(t, leave, http.StatusNoContent, url, http.MethodDelete, "/api/galleries/"+galleries[leave], nil)
		deadline := time.Now().Add(bound)
		for _, person := range all {
			for found := files(person); len(found) > 0; found = files(person) {
				if time.Now().After(deadline) {
					for i, path := range found {
						found[i] = filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
					}
					t.Fatalf("%s after its erasure %q is in %v", bound, person, found)
				}
				time.Sleep(bound / 40)
			}
		}
		if len(files("other 7")) < 3 {
			t.Error("others are gone too")
		}
		if got := find(t, stay, url, "other 7"); len(got) != 1 {
			t.Errorf("others are found no more: %v", got)
		}
	})
}

// A round of erasure does not end while somebody reads a segment that has the erased face.
func TestReadSegmentIsNotSaidToBeErased(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		client, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, client, m.URL, "staff", 100)
		erased := enrol(t, client, m.URL, "erased")
		if err := m.Node.CutLog(1); err != nil { // the face is in a segment
			t.Fatal(err)
		}
		faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte("erased"))
		if err != nil {
			t.Fatal(err)
		}
		_, secret := galleryOf(t, cluster, client)
		files := func() []string { return fsmtest.NewScanner(faces[0].Template, secret).Files(t, m.Config.Dir) }
		done := m.Node.ReadSegments(1)
		if a := client.Call(t, m.URL, http.MethodDelete, "/v1.1/subjects/"+erased.ID, nil); a.Status != http.StatusNoContent {
			t.Fatalf("erase: %d %s", a.Status, a.Body)
		}
		if err := m.Node.CutLog(1); err == nil || len(files()) == 0 {
			t.Errorf("the round ends with %v while the segment is read; the face is in %v", err, files())
		}
		done()
		if err := m.Node.CutLog(1); err != nil || len(files()) != 0 {
			t.Errorf("the round ends with %v when nobody reads; the face is in %v", err, files())
		}
	})
}
