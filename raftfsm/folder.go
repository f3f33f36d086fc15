package raftfsm

import (
	"fmt"

	"facet/raftfsm/logstore"
	"facet/raftfsm/snapshots"
)

// Prepare makes the folder of a member that never ran, with an empty log in it. It does
// nothing where there is a log. Once it has returned the folder outlives a loss of
// power; what notes down that the member exists does so then, before the member is
// opened with Config.Prepared: from its opening on it may vote, and what it said must
// not be said twice.
func Prepare(dir string) error {
	if err := logstore.Prepare(dir); err != nil {
		return fmt.Errorf("prepare a group's folder: %w", err)
	}
	return nil
}

// SalvageSegments gives a member's new folder the sound segments of the one that was
// set aside for it: when the leader asks what there is, the member has them, and only
// what was damaged is sent. Neither folder's member is open. The segments are of no
// other effect, and go with the member's first snapshot if that does not name them.
func SalvageSegments(aside, folder string) (files int, err error) {
	files, err = snapshots.Salvage(aside, folder)
	if err != nil {
		return files, fmt.Errorf("salvage a member's segments: %w", err)
	}
	return files, nil
}
