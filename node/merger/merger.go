package merger

import (
	"context"
	"time"

	"facet/node/loop"
)

const (
	// mergeInterval is how often a node looks for merges that nobody carries out.
	mergeInterval = time.Second
	// mergeTimeout is the longest time of one round.
	mergeTimeout = 5 * time.Minute
)

// Subjects continues merges of subjects (router.Router).
type Subjects interface {
	ContinueMerges(ctx context.Context) error
}

// Merger continues the merges of subjects on the shards that this node leads: their client, or the
// leader before, may have ended.
type Merger struct {
	*loop.Loop
	subjects Subjects
}

// New returns a Merger; Run does its work.
func New(subjects Subjects) *Merger { return &Merger{loop.New("merges"), subjects} }

// Run continues merges until ctx ends.
func (m *Merger) Run(ctx context.Context) {
	m.Every(ctx, mergeInterval, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
		defer cancel()
		return m.subjects.ContinueMerges(ctx)
	})
}
