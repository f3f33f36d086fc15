package node

import (
	"context"
	"log/slog"
	"testing"

	"facet/node/backup"
	"facet/node/wire"
)

func TestWhoWaitsForABackupHearsOfItWhenTheNextOneHasBegun(t *testing.T) {
	t.Parallel()
	n := &Node{ctx: t.Context(), log: slog.New(slog.DiscardHandler)}
	do := func(events uint64) (id string) {
		if !n.begin("backup", func(context.Context, func(done, total int)) (*wire.BackupResult, *backup.Restored, error) {
			return &wire.BackupResult{Events: events}, nil, nil
		}) {
			t.Fatal("a backup was not begun")
		}
		id = n.backups.get("").ID
		n.work.Wait()
		return id
	}
	mine, next := do(1), do(2)
	for id, want := range map[string]uint64{mine: 1, next: 2, "": 2, "another node's": 2} {
		if p := n.backups.get(id); p.Running || p.Backup == nil || p.Backup.Events != want {
			t.Errorf("asked for %q: got %+v, want the backup of %d events", id, p, want)
		}
	}
	if p := n.backups.get("another node's"); p.ID != next {
		t.Errorf("asked for one that is not known: got %s, want the last, %s", p.ID, next)
	}
}
