package snapshots

import "time"

// scrubPause is the pause after each file that Scrub reads, and scrubInterval the pause
// after all of them.
const (
	scrubPause    = time.Second
	scrubInterval = 24 * time.Hour
)

// Scrub reads the segments of the newest snapshot once a day, to find a damaged one before
// it is needed. A damaged segment takes the group out of service. Scrub returns when stop
// is closed.
func (s *Store) Scrub(stop <-chan struct{}) {
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
		_ = f.Verify() // the store was told of damage
		f.Release()
		next++
		timer.Reset(scrubPause)
	}
}
