package sim

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/backup"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

// The leader of a shard is lost while it writes the shard's part of a backup. The backup
// goes on with the next leader, and what the lost one does later changes nothing.
func TestBackupOutlivesShardLeader(t *testing.T) {
	for name, lose := range map[string]func(w *world, node int) (back func()){
		"cut off": func(w *world, node int) func() { w.cut(node); return w.net.Heal },
		"killed": func(w *world, node int) func() {
			w.cut(node)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = w.cluster.Nodes[node].Node.Close(ctx) // it may not end in order
			w.cluster.Nodes[node].Node = nil
			return func() { w.net.Heal(); w.cluster.Restart(node) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodetest.Virtual(t, func(t *testing.T) {
				w := newWorldOf(t, nodetest.Options{Shards: 1}, 1000)
				time.Sleep(settled)
				for i := range 20 {
					w.enrol(0, string(rune('a'+i)))
				}
				leader := w.leader(1)
				maker := (leader + 1) % 3
				// The leader asks the maker before it finishes the part. That takes .4 s or more.
				slow := memnet.Link{Delay: 200 * time.Millisecond}
				w.net.Set(w.cluster.Nodes[leader].Host, w.cluster.Nodes[maker].Host, slow)
				w.net.Set(w.cluster.Nodes[maker].Host, w.cluster.Nodes[leader].Host, slow)
				dir := t.TempDir()
				q := wire.BackupOrder{To: "file://" + dir, Name: "one"}
				type result struct {
					backup.Manifest
					error
				}
				done := make(chan result, 1)
				go func() {
					m, err := w.cluster.Nodes[maker].Node.Backups().Backup(t.Context(), q, nil)
					done <- result{m, err}
				}()
				for began := time.Now(); !writes(t, dir, "shard-0001"); time.Sleep(10 * time.Millisecond) {
					if time.Since(began) > time.Minute {
						t.Fatal("no part is being written")
					}
				}
				back := lose(w, leader)
				began := time.Now()
				r := <-done
				if r.error != nil || r.Active() != 20 {
					t.Fatalf("%s after the loss: %v, %d events, want 20", time.Since(began), r.error, r.Active())
				}
				t.Logf("the backup ended %s after the loss", time.Since(began))
				back()
				time.Sleep(time.Minute)
				if writes(t, dir, "shard-0001") {
					t.Error("the lost leader still writes")
				}
				m, err := w.cluster.Nodes[maker].Node.Backups().Verify(t.Context(), wire.BackupQuery{From: q.To, Name: q.Name}, nil)
				if err != nil || m.Digest != r.Digest {
					t.Errorf("after the return of the lost leader: %v", err)
				}
			})
		})
	}
}

// writes reports whether a part of a backup is being written in dir.
func writes(t *testing.T, dir, part string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "one", "*"))
	must.Do(t, err)
	for _, name := range names {
		if base := filepath.Base(name); strings.Contains(base, part) && base != part {
			return true
		}
	}
	return false
}
