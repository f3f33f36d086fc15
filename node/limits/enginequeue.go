package limits

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/internal/id"
	"facet/node/fair"
	"facet/router"
)

const (
	// queueAhead is how many images more than the engine has workers are handed to it,
	// so that none of them waits for the next one's goroutine.
	queueAhead = 1
	// queuePerWorker bounds the images that wait for a worker: with about 16 ms for one
	// the last waits half a second.
	queuePerWorker = 32
)

// Queue is an extractor whose workers the tenants share fairly. Images of jobs belong to
// the zero tenant.
type Queue struct {
	router.Extractor
	queue *fair.Queue
}

// NewQueue puts a queue before an extractor that says how many workers it has; it returns
// any other one as it is.
func NewQueue(e router.Extractor) router.Extractor {
	counted, ok := e.(interface{ Workers() int })
	if !ok {
		return e
	}
	workers := counted.Workers()
	return Queue{e, fair.NewQueue(workers+queueAhead, queuePerWorker*workers)}
}

// Extract finds all faces when it is the tenant's turn. It returns engine.ErrBusy when the
// tenant's line is full.
func (q Queue) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	leave, err := q.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return q.Extractor.Extract(ctx, image)
}

// ExtractLarge finds the largest faces, as Extract.
func (q Queue) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	leave, err := q.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return q.Extractor.ExtractLarge(ctx, image, share)
}

func (q Queue) enter(ctx context.Context) (leave func(), err error) {
	leave, err = q.queue.Enter(ctx, fair.Of(ctx))
	if errors.Is(err, fair.ErrFull) {
		err = fmt.Errorf("extract: %w: %w", engine.ErrBusy, err)
	}
	return leave, err
}

// Waiting returns how many images wait for their turn.
func (q Queue) Waiting() int { return q.queue.Waiting() }

// Crowded returns a function that reports whether an image of a tenant would be refused
// now, or nil if e never refuses one.
func Crowded(e router.Extractor) func(id.Tenant) bool {
	if q, ok := e.(Queue); ok {
		return q.queue.Crowded
	}
	return nil
}

// Limit returns how many images may wait.
func (q Queue) Limit() int { return q.queue.Limit() }
