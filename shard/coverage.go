package shard

import "facet/shard/scan"

// Log is the log of a shard's group.
type Log interface {
	// Hold waits for the command under way, and returns the index of the last one. No other command
	// begins until release is called.
	Hold() (index uint64, release func())
}

// Follow sets the log of s, whose indexes searches with a coverage give. Call it before any other method.
// Without one the indexes are 0.
func Follow(s *Shard, log Log) { s.log = log }

// hold takes s.mu for reading. A search with a coverage notes the index of the state that it sees
// until release is called.
func hold(s *Shard, c *scan.Coverage) (release func()) {
	if c == nil || s.log == nil {
		s.mu.RLock()
		return s.mu.RUnlock
	}
	index, goOn := s.log.Hold()
	s.mu.RLock()
	c.Index = index
	return func() {
		s.mu.RUnlock()
		goOn()
	}
}

// cover counts what a search went through. Shard.mu is held for reading, and all templates are open.
// sl may be nil.
func (sl *slice) cover(c *scan.Coverage) {
	if c == nil || sl == nil {
		return
	}
	c.Active = int(sl.usage().Active)
	sl.templates.cover(c)
}

func (t *templates) cover(c *scan.Coverage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix != nil {
		t.matrix.Count(c)
	}
}
