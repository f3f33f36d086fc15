package backup

import (
	"context"
	"log/slog"
	"testing"

	"facet/node/wire"
)

func TestBackupWaiterLearnsOutcome(t *testing.T) {
	t.Parallel()
	s := Open(Config{Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	do := func(events uint64) (id string) {
		if !s.begin("backup", func(context.Context, progress) (*wire.BackupResult, *Restored, error) {
			return &wire.BackupResult{Events: events}, nil, nil
		}) {
			t.Fatal("a backup was not begun")
		}
		id = s.Progress("").ID
		s.work.Wait()
		return id
	}
	mine, next := do(1), do(2)
	for id, want := range map[string]uint64{mine: 1, next: 2, "": 2, "another node's": 2} {
		if p := s.Progress(id); p.Running || p.Backup == nil || p.Backup.Events != want {
			t.Errorf("asked for %q: got %+v, want the backup of %d events", id, p, want)
		}
	}
	if p := s.Progress("another node's"); p.ID != next {
		t.Errorf("asked for one that is not known: got %s, want the last, %s", p.ID, next)
	}
}
