package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/node/backup"
	"facet/node/bucket"
	"facet/node/wire"
)

const (
	// schedulePause is how often a node looks whether a backup is due.
	schedulePause = time.Minute
	// scheduledPrefix begins the names of backups that are made by the clock: only
	// these are ever removed by it.
	scheduledPrefix = "auto-"
)

// scheduleRun makes a backup whenever the newest one by the clock is older than
// BackupEvery, on meta's leader, and removes the oldest beyond BackupKeep. What is
// due is seen from the object store, so that it does not matter who led before. It
// ends when ctx does.
func (n *Node) scheduleRun(ctx context.Context) {
	tick := time.NewTicker(min(schedulePause, n.cfg.BackupEvery/4))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !n.replicas.MetaGroup().IsLeader() || n.serving() != nil {
			continue
		}
		if name, due, err := n.due(ctx); err != nil {
			n.log.Error("the backups can't be listed", "err", err)
		} else if due {
			n.begin("backup", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *backup.Restored, error) {
				m, err := n.Backup(ctx, wire.BackupOrder{To: n.cfg.BackupTo, Name: name}, p)
				if err == nil {
					err = n.prune(ctx)
				}
				return &wire.BackupResult{Head: m.Head, Digest: m.Digest, Events: m.Active()}, nil, err
			})
		}
	}
}

// due gives the name of the backup to be made now: the unfinished one, if there is any.
func (n *Node) due(ctx context.Context) (name string, due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	f, err := bucket.OpenFolder(ctx, n.cfg.BackupTo)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	list, err := backup.List(ctx, f)
	if err != nil {
		return "", false, err
	}
	name = scheduledPrefix + time.Now().UTC().Format(backupNameFormat)
	for _, l := range list { // in order of names, which is that of times
		began, err := time.Parse(scheduledPrefix+backupNameFormat, l.Name)
		switch {
		case err != nil:
		case l.Finished && time.Since(l.Created) < n.cfg.BackupEvery:
			return "", false, nil
		case !l.Finished && time.Since(began) < n.cfg.BackupEvery:
			name = l.Name
		}
	}
	return name, true, nil
}

func (n *Node) prune(ctx context.Context) error {
	f, err := bucket.OpenFolder(ctx, n.cfg.BackupTo)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	gone, err := backup.Prune(ctx, f, scheduledPrefix, n.cfg.BackupKeep)
	if len(gone) > 0 {
		n.log.Info("old backups removed", "backups", gone)
	}
	return err
}

// checkBackup refuses a schedule that can't be meant.
func (c Config) checkBackup() error {
	switch {
	case c.BackupTo == "" && c.BackupEvery == 0:
		return nil
	case c.BackupTo == "" || c.BackupEvery <= 0 || c.BackupKeep < 1:
		return errors.New("node: backups by the clock need a URL, a time between them, and at least one to keep")
	}
	if err := bucket.Check(c.BackupTo); err != nil {
		return fmt.Errorf("node: backups by the clock: %w", err)
	}
	return nil
}
