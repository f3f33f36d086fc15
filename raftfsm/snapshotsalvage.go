package raftfsm

import (
	"fmt"
	"path/filepath"

	"facet/shard/segment"
)

// SalvageSegments gives a member's new folder the sound segments of the one that was
// set aside for it: when the leader asks what there is, the member has them, and only
// what was damaged is sent. Neither folder's member is open. The segments are of no
// other effect, and go with the member's first snapshot if that does not name them.
func SalvageSegments(aside, folder string) (files int, err error) {
	files, err = segment.Salvage(filepath.Join(aside, segmentsDir), filepath.Join(folder, segmentsDir))
	if err != nil {
		return files, fmt.Errorf("salvage a member's segments: %w", err)
	}
	return files, nil
}
