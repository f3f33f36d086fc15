package backup

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"facet/node/bucket"
	"facet/node/wire"
)

const (
	// scheduleInterval is how often meta's leader checks whether a backup is due.
	scheduleInterval = time.Minute
	// listTimeout is how long the listing of backups may take.
	listTimeout = 30 * time.Second
	// scheduledPrefix is the prefix of the names of scheduled backups. The schedule removes no
	// other backups.
	scheduledPrefix = "auto-"
)

// Run works on meta's leader until ctx ends. It makes a backup whenever the newest scheduled
// one is older than Config.Every, and removes the oldest beyond Config.Keep. It reads from
// the object store what is due, so a new leader continues the schedule.
func (s *Service) Run(ctx context.Context) {
	s.Every(ctx, min(scheduleInterval, s.cfg.Every/4), s.step)
}

// step starts the backup that is due.
func (s *Service) step(ctx context.Context) error {
	if !s.cfg.Replicas.MetaGroup().IsLeader() || s.cfg.Serving() != nil {
		return nil
	}
	name, due, err := s.due(ctx)
	if err != nil {
		s.cfg.Log.ErrorContext(ctx, "the backups can't be listed", "err", err)
		return err
	}
	if due {
		backUp := recordedBackup(s, s.cfg.To, name, func(ctx context.Context, p progress) (Manifest, error) {
			return s.Backup(ctx, wire.BackupOrder{To: s.cfg.To, Name: name}, p)
		})
		s.beginBackup("backup", func(ctx context.Context, p progress) (Manifest, error) {
			m, err := backUp(ctx, p)
			if err == nil {
				err = s.prune(ctx)
			}
			return m, err
		})
	}
	return nil
}

// due reports whether a backup is due, and returns its name: that of an unfinished scheduled
// backup, or a new one.
func (s *Service) due(ctx context.Context) (name string, due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := s.List(ctx, wire.BackupQuery{From: s.cfg.To})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the first backup makes the folder
		return "", false, err
	}
	s.note(list)
	name = scheduledPrefix + time.Now().UTC().Format(backupNameFormat)
	for _, l := range list { // ordered by name, and so by time
		began, err := time.Parse(scheduledPrefix+backupNameFormat, l.Name)
		switch {
		case err != nil:
		case l.Finished && time.Since(l.Created) < s.plan.Load().every:
			return "", false, nil
		case !l.Finished && time.Since(began) < s.plan.Load().every:
			name = l.Name
		}
	}
	return name, true, nil
}

// note keeps the time of the newest finished scheduled backup for Last.
func (s *Service) note(list []Listed) {
	var last time.Time
	for _, l := range list {
		if l.Finished && strings.HasPrefix(l.Name, scheduledPrefix) && l.Created.After(last) {
			last = l.Created
		}
	}
	s.last.Store(&last)
}

// Last returns when the newest finished scheduled backup was made, as this node saw it when it
// last led meta. It is zero if this node has seen none.
func (s *Service) Last() time.Time {
	if last := s.last.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

func (s *Service) prune(ctx context.Context) error {
	gone, err := inFolder(ctx, bucket.OpenFolder, s.cfg.To, func(f *bucket.Folder) ([]string, error) { return Prune(ctx, f, scheduledPrefix, s.plan.Load().keep) })
	if len(gone) > 0 {
		s.cfg.Log.InfoContext(ctx, "old backups removed", "backups", gone)
	}
	return err
}
