package sim

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/wire"
)

// A backup is cut off when it has the part of the target's shard. Then a merge ends, and the backup
// goes on with the part of the source's shard. It has the events that the merge moved.
func TestBackupHasWhatMergesMoved(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorldOf(t, nodetest.Options{Shards: 2}, 100_000)
		w.waitLevel()
		time.Sleep(settled)
		subjects := map[id.Shard]string{}
		for n := 0; len(subjects) < 2; n++ {
			var s struct{ ID string }
			a := w.insist(n, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("person-", n)))
			a.Decode(t, &s)
			u, err := id.Parse(s.ID)
			if err != nil {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if subjects[u.Shard()] != "" {
				w.insist(0, http.MethodDelete, "/v1.1/subjects/"+s.ID, nil)
				continue
			}
			subjects[u.Shard()] = s.ID
		}
		dir := t.TempDir()
		back := func() backup.Manifest {
			t.Helper()
			m, err := w.cluster.Nodes[0].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: "file://" + dir, Name: "one"}, nil)
			must.Do(t, err)
			return m
		}
		if m := back(); m.Active() != 2 {
			t.Fatalf("before the merge: %d events, want 2", m.Active())
		}
		for _, part := range []string{"manifest", "meta", backup.PartName(2)} {
			must.Do(t, os.Remove(filepath.Join(dir, "one", part)))
		}
		w.merge(0, subjects[1], subjects[2])
		if m := back(); m.Active() != 2 {
			t.Errorf("after the merge: %d events, want 2", m.Active())
		}
	})
}
