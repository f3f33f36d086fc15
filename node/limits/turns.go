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
	// turnsAhead is how many images more than the engine has workers are handed to it,
	// so that none of them waits for the next one's goroutine.
	turnsAhead = 1
	// queuePerWorker bounds the images that wait for a worker: with about 16 ms for one
	// the last waits half a second.
	queuePerWorker = 32
)

// Turns is an extractor whose workers tenants share fairly. Images of jobs are one
// tenant's, the zero one.
type Turns struct {
	router.Extractor
	queue *fair.Queue
}

// ByTurns puts a queue before an extractor that says how many workers it has; another
// one is given back as it is.
func ByTurns(e router.Extractor) router.Extractor {
	counted, ok := e.(interface{ Workers() int })
	if !ok {
		return e
	}
	workers := counted.Workers()
	return Turns{e, fair.NewQueue(workers+turnsAhead, queuePerWorker*workers)}
}

// Extract finds all faces when it is the tenant's turn; ErrBusy when its line is full.
func (t Turns) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.Extractor.Extract(ctx, image)
}

// ExtractLarge finds the largest faces, as Extract.
func (t Turns) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return t.Extractor.ExtractLarge(ctx, image, share)
}

func (t Turns) enter(ctx context.Context) (leave func(), err error) {
	leave, err = t.queue.Enter(ctx, fair.Of(ctx))
	if errors.Is(err, fair.ErrFull) {
		err = fmt.Errorf("extract: %w: %w", engine.ErrBusy, err)
	}
	return leave, err
}

// Waiting counts the images that wait for their turn.
func (t Turns) Waiting() int { return t.queue.Waiting() }

// Crowded tells whether an image of a tenant would be refused now; nil when none ever is.
func Crowded(e router.Extractor) func(id.Tenant) bool {
	if t, ok := e.(Turns); ok {
		return t.queue.Crowded
	}
	return nil
}

// Limit is how many images may wait.
func (t Turns) Limit() int { return t.queue.Limit() }
