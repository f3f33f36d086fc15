package backup

import (
	"context"
	"slices"
	"strings"
	"time"

	"facet/node/receipt"
	"facet/node/wire"
)

// holdingSlack is the largest difference to expect between the clocks of two nodes.
const holdingSlack = time.Minute

// Scheduled returns the URL of the folder for scheduled backups, or "".
func (s *Service) Scheduled() string { return s.cfg.To }

// Holding returns the backups in a folder that may hold what was erased at a time: those that were
// begun before, and unfinished ones.
func (s *Service) Holding(ctx context.Context, folder string, erased time.Time) ([]receipt.Backup, error) {
	list, err := s.List(ctx, wire.BackupQuery{From: folder})
	if err != nil {
		return nil, err
	}
	return s.holding(list, folder, erased.Add(holdingSlack)), nil
}

func (s *Service) holding(list []Listed, folder string, before time.Time) (found []receipt.Backup) {
	slices.SortFunc(list, func(a, b Listed) int { return b.Created.Compare(a.Created) }) // the newest first
	var newest time.Time
	newer := 0 // finished scheduled ones
	for _, l := range list {
		scheduled := l.Finished && folder == s.cfg.To && strings.HasPrefix(l.Name, scheduledPrefix)
		if scheduled && newer == 0 {
			newest = l.Created
		}
		b := receipt.Backup{Folder: folder, Name: l.Name, Created: l.Created}
		if p := s.plan.Load(); scheduled && p.every > 0 {
			b.Goes = newest.Add(p.every * time.Duration(max(p.keep-newer, 0)))
		}
		if scheduled {
			newer++
		}
		began := l.Created
		if !l.Finished {
			began, _ = time.Parse(backupNameFormat, strings.TrimPrefix(l.Name, scheduledPrefix)) // zero for another name
		}
		if began.Before(before) {
			found = append(found, b)
		}
	}
	return found
}
