package snapshots

import "facet/shard/segment"

// Salvage gives folder the sound segments of aside.
func Salvage(aside, folder string) (files int, err error) {
	return segment.Salvage(SegmentsDir(aside), SegmentsDir(folder))
}
