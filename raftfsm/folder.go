package raftfsm

import (
	"fmt"

	"facet/raftfsm/logstore"
	"facet/raftfsm/snapshots"
	"facet/shard/segment"
)

// Prepare creates the folder of a member that never ran, with an empty log. It does
// nothing if the folder has a log. When it returns, the folder survives a loss of power.
//
// The caller then records that the member exists, and opens it with Config.Prepared. The
// record comes first because an open member votes, and a member that has forgotten its
// votes would vote twice.
func Prepare(dir string) error {
	if err := logstore.Prepare(dir); err != nil {
		return fmt.Errorf("prepare a group's folder: %w", err)
	}
	return nil
}

// SalvageSegments links the undamaged segments of the folder aside into folder, which
// replaces aside, and returns how many there were. The leader then sends only the damaged
// segments. The member must not be open on either folder. The member's first snapshot
// removes the segments that it does not name.
func SalvageSegments(aside, folder string) (files int, err error) {
	files, err = segment.Salvage(snapshots.SegmentsDir(aside), snapshots.SegmentsDir(folder))
	if err != nil {
		return files, fmt.Errorf("salvage a member's segments: %w", err)
	}
	return files, nil
}
