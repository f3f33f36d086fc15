package snapshots

import (
	"time"

	"facet/shard/segment"
)

// scrubPause is the pause after each file that Scrub reads, and scrubInterval the pause
// after all of them.
const (
	scrubPause    = time.Second
	scrubInterval = 24 * time.Hour
)

// Scrub reads the segments of the newest snapshot once a day, to find a damaged one before
// it is needed. A damaged segment takes the group out of service. Scrub waits for a place in
// turns, if that is not nil, before each file. It returns when stop is closed.
func (s *Store) Scrub(turns chan struct{}, stop <-chan struct{}) {
	if s.segments == nil {
		return
	}
	timer := time.NewTimer(scrubPause)
	defer timer.Stop()
	next := 0
	for {
		select {
		case <-stop:
			return
		case <-s.health.Broken():
			return
		case <-timer.C:
		}
		f := s.nth(next)
		if f == nil {
			next = 0
			timer.Reset(scrubInterval)
			continue
		}
		verify(f, turns, stop)
		f.Release()
		next++
		timer.Reset(scrubPause)
	}
}

func verify(f *segment.File, turns chan struct{}, stop <-chan struct{}) {
	if turns != nil {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-stop:
			return
		}
	}
	_ = f.Verify() // the store was told of damage
}
