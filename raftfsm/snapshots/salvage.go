package snapshots

import "facet/shard/segment"

// Salvage puts the sound segments of the member folder aside into folder, and returns how
// many.
func Salvage(aside, folder string) (files int, err error) {
	return segment.Salvage(SegmentsDir(aside), SegmentsDir(folder))
}
