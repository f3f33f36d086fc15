package backup_test

import (
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm/fsmtest"
	"facet/shard/seal"
)

// TestBackupHoldsNothingErasedOrClear opens a backup with the cluster's key and scans
// it with the gallery's, which somebody who has both could do.
func TestBackupHoldsNothingErasedOrClear(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, url := cluster.Client("a bank of renown"), cluster.Nodes[0].URL
		var g struct{ APIKey string }
		c.Call(t, url, http.MethodPost, "/api/galleries", map[string]any{
			"name": "staff of the bank", "description": "", "size": 100, "faceMinimumQualityScore": 0.45,
		}).Decode(t, &g)
		c.APIKey = g.APIKey
		enrol := func(person string) string {
			t.Helper()
			var s struct{ ID string }
			a := c.Call(t, url, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(person)})
			if a.Decode(t, &s); a.Status != http.StatusCreated {
				t.Fatalf("register %s: %d %s", person, a.Status, a.Body)
			}
			return s.ID
		}
		ann, bob := enrol("ann"), enrol("bob")
		enrol("eve")
		if a := c.Call(t, url, http.MethodDelete, "/v1.1/subjects/"+ann, nil); a.Status != http.StatusNoContent {
			t.Fatalf("erase: %d %s", a.Status, a.Body)
		}
		if a := c.Call(t, url, http.MethodPut, "/v1.1/subjects/"+bob, map[string]any{"face": nodetest.Image("bobby")}); a.Status != http.StatusOK {
			t.Fatalf("replace: %d %s", a.Status, a.Body)
		}
		dir := t.TempDir()
		if _, err := cluster.Nodes[0].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: "file://" + dir, Name: "b"}, nil); err != nil {
			t.Fatal(err)
		}
		master := masterOf(t, cluster)
		plain := plainOf(t, dir, "b", master)
		if !strings.Contains(string(plain), "staff of the bank") {
			t.Fatal("the opened backup does not name the gallery: nothing was scanned")
		}
		sealed := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(sealed, "plain"), plain, 0o600))
		var list struct{ Galleries []struct{ ID string } }
		c.Call(t, url, http.MethodGet, "/api/galleries", nil).Decode(t, &list)
		secret := gallerySecret(t, master, plain, list.Galleries[0].ID)
		for person, want := range map[string]int{"ann": 0, "bob": 0, "bobby": 1, "eve": 1} {
			faces, err := nodetest.HashExtractor{}.Extract(t.Context(), []byte(person))
			must.Do(t, err)
			scan := fsmtest.NewScanner(faces[0].Template, secret)
			if got := len(scan.Files(t, sealed)); got != want {
				t.Errorf("%s's face is in %d opened files, want %d", person, got, want)
			}
			if got := scan.Files(t, dir); len(got) != 0 {
				t.Errorf("%s's face is in %v as it is stored", person, got)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "b", "*"))
		if err != nil || len(files) != 4 {
			t.Fatalf("the backup has %v, %v", files, err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			must.Do(t, err)
			for _, text := range []string{"staff of the bank", "a bank of renown", bob} {
				if strings.Contains(string(b), text) {
					t.Errorf("%s holds %q in clear", filepath.Base(name), text)
				}
			}
		}
	})
}

// masterOf returns the key of a cluster.
func masterOf(t *testing.T, cluster *nodetest.Cluster) *seal.Master {
	t.Helper()
	raw, err := os.ReadFile(cluster.Nodes[0].Config.ClusterKeyFile)
	must.Do(t, err)
	key, err := hex.DecodeString(string(raw))
	must.Do(t, err)
	master, err := seal.NewMaster(key)
	must.Do(t, err)
	return master
}

// plainOf returns an opened backup.
func plainOf(t *testing.T, dir, name string, master *seal.Master) []byte {
	t.Helper()
	f, err := bucket.OpenFolder(t.Context(), "file://"+dir)
	must.Do(t, err)
	defer f.Close()
	plain, err := backup.Plain(t.Context(), f, name, master)
	must.Do(t, err)
	return plain
}

// gallerySecret finds the wrapped key of a gallery in an opened backup.
func gallerySecret(t *testing.T, master *seal.Master, plain []byte, gallery string) []byte {
	t.Helper()
	u, err := id.Parse(gallery)
	must.Do(t, err)
	const wrapped = 1 + 4 + seal.KeyBytes + seal.Overhead
	for i := 0; i+wrapped <= len(plain); i++ {
		if plain[i] != 1 {
			continue
		}
		if secret, err := master.Unwrap(plain[i:i+wrapped], []byte("gallery-data-key"+u.String())); err == nil {
			return secret
		}
	}
	t.Fatal("the opened backup has no wrapped key of the gallery")
	return nil
}
