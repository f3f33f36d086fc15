package node

import (
	"context"
	"errors"

	"facet/node/bucket"
	"facet/router/jobs"
)

// openBulk starts the workers of bulk registrations if there is an object store.
func openBulk(_ context.Context, n *Node) (stop func() error, err error) {
	if n.cfg.Bucket == "" {
		return nil, nil
	}
	store, err := bucket.Open(n.cfg.Bucket)
	if err != nil {
		return nil, err
	}
	work := jobs.Config{Source: n.router, Files: store, Slots: n.cfg.JobSlots, Done: n.meters.File, Log: n.cfg.Log}
	if busy, ok := n.cfg.Extractor.(interface{ Waiting() int }); ok {
		work.Waiting = busy.Waiting
	}
	workers := jobs.Open(work)
	return func() error { return errors.Join(workers.Close(), store.Close()) }, nil
}

// openComparisons starts the worker of comparisons of galleries with themselves.
func openComparisons(_ context.Context, n *Node) (stop func() error, err error) {
	work := jobs.ComparisonConfig{Source: n.router, Log: n.cfg.Log}
	if busy, ok := n.cfg.Extractor.(interface{ Waiting() int }); ok {
		work.Waiting = busy.Waiting
	}
	return jobs.OpenComparisons(work).Close, nil
}
