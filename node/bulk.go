package node

import (
	"errors"

	"facet/node/bucket"
	"facet/router"
	"facet/router/jobs"
)

// bulk is this node's share in bulk registrations.
type bulk struct {
	store   *bucket.Store
	workers *jobs.Workers
}

// openBulk begins to work on jobs; nil without an object store.
func openBulk(cfg Config, r *router.Router, done func(registered bool)) (*bulk, error) {
	if cfg.Bucket == "" {
		return nil, nil
	}
	store, err := bucket.Open(cfg.Bucket)
	if err != nil {
		return nil, err
	}
	work := jobs.Config{Source: r, Files: store, Slots: cfg.JobSlots, Done: done, Log: cfg.Log}
	if busy, ok := cfg.Extractor.(interface{ Waiting() int }); ok {
		work.Waiting = busy.Waiting
	}
	return &bulk{store, jobs.Open(work)}, nil
}

func (b *bulk) close() error { return errors.Join(b.workers.Close(), b.store.Close()) }
