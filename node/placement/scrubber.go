package placement

import (
	"context"
	"time"

	"facet/node/loop"
)

const (
	// scrubRounds is how often claims are checked in the time after which no erased data is
	// left on a disk. The rounds that erase need half of that time (raftfsm/erase.go).
	scrubRounds = 8
	// scrubTimeout is the longest time of one round.
	scrubTimeout = time.Hour
)

// Claims checks the claims to external ids (routing.Router).
type Claims interface {
	ScrubClaims(ctx context.Context) error
}

// Scrubber checks the claims to external ids on the shards that this node leads, so that a claim
// whose subject was erased leaves the disk, too.
type Scrubber struct {
	*loop.Loop
	claims Claims
	every  time.Duration
}

// NewScrubber returns a Scrubber; Run does its work. within is raftfsm.Config.EraseWithin.
func NewScrubber(within time.Duration, claims Claims) *Scrubber {
	return &Scrubber{loop.New("claims"), claims, within / scrubRounds}
}

// Run checks until ctx ends.
func (s *Scrubber) Run(ctx context.Context) {
	s.Every(ctx, s.every, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
		defer cancel()
		return s.claims.ScrubClaims(ctx)
	})
}
