package backup

import (
	"context"
	"time"

	"facet/node/bucket"
	"facet/node/wire"
)

const (
	// schedulePause is how often a node looks whether a backup is due.
	schedulePause = time.Minute
	// listTimeout bounds the listing of backups.
	listTimeout = 30 * time.Second
	// scheduledPrefix begins the names of backups that are made by the clock: only
	// these are ever removed by it.
	scheduledPrefix = "auto-"
)

// Run makes a backup whenever the newest one by the clock is older than Config.Every, on
// meta's leader, and removes the oldest beyond Config.Keep, until ctx ends. What is due is
// seen from the object store, so that it does not matter who led before.
func (s *Service) Run(ctx context.Context) {
	s.Every(ctx, min(schedulePause, s.cfg.Every/4), s.step)
}

// step starts the backup that is due.
func (s *Service) step(ctx context.Context) error {
	if !s.cfg.Replicas.MetaGroup().IsLeader() || s.cfg.Serving() != nil {
		return nil
	}
	name, due, err := s.due(ctx)
	if err != nil {
		s.cfg.Log.Error("the backups can't be listed", "err", err)
		return err
	}
	if due {
		s.begin("backup", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *Restored, error) {
			m, err := s.Backup(ctx, wire.BackupOrder{To: s.cfg.To, Name: name}, p)
			if err == nil {
				err = s.prune(ctx)
			}
			return result(m), nil, err
		})
	}
	return nil
}

// due gives the name of the backup to be made now: the unfinished one, if there is any.
func (s *Service) due(ctx context.Context) (name string, due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	f, err := bucket.OpenFolder(ctx, s.cfg.To)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	list, err := List(ctx, f)
	if err != nil {
		return "", false, err
	}
	name = scheduledPrefix + time.Now().UTC().Format(backupNameFormat)
	for _, l := range list { // in order of names, which is that of times
		began, err := time.Parse(scheduledPrefix+backupNameFormat, l.Name)
		switch {
		case err != nil:
		case l.Finished && time.Since(l.Created) < s.cfg.Every:
			return "", false, nil
		case !l.Finished && time.Since(began) < s.cfg.Every:
			name = l.Name
		}
	}
	return name, true, nil
}

func (s *Service) prune(ctx context.Context) error {
	f, err := bucket.OpenFolder(ctx, s.cfg.To)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	gone, err := Prune(ctx, f, scheduledPrefix, s.cfg.Keep)
	if len(gone) > 0 {
		s.cfg.Log.Info("old backups removed", "backups", gone)
	}
	return err
}
