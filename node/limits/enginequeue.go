package limits

import (
	"context"
	"errors"
	"fmt"

	"facet/engine"
	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
)

// queuePerWorker is the most images that wait for each worker. An image takes about 16
// ms, so the last one waits half a second.
const queuePerWorker = 32

// Queue is an extractor that shares its workers fairly between tenants. Images of jobs
// belong to the zero tenant.
type Queue struct {
	router.Extractor
	queue *fair.Queue
}

// NewQueue puts a Queue before an extractor that knows its number of workers. It returns any
// other extractor as it is.
func NewQueue(e router.Extractor) router.Extractor {
	counted, ok := e.(interface{ Workers() int })
	if !ok {
		return e
	}
	workers := counted.Workers()
	return Queue{e, fair.NewQueue(workers, queuePerWorker*workers)}
}

// Extract waits for the tenant's turn and finds all faces. It returns engine.ErrBusy when
// the tenant's line is full.
func (q Queue) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	turn, err := q.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	ctx, running := trace.Start(ctx, trace.Stage{Name: trace.Models})
	faces, err := q.Extractor.Extract(engine.WithTurn(ctx, turn), image)
	running.End(err)
	return faces, err
}

// ExtractLarge finds the largest faces, as Extract.
func (q Queue) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	turn, err := q.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	ctx, running := trace.Start(ctx, trace.Stage{Name: trace.Models})
	faces, err := q.Extractor.ExtractLarge(engine.WithTurn(ctx, turn), image, share)
	running.End(err)
	return faces, err
}

func (q Queue) enter(ctx context.Context) (*fair.Turn, error) {
	_, waiting := trace.Start(ctx, trace.Stage{Name: trace.Queue})
	turn, err := q.queue.Enter(ctx, fair.Of(ctx))
	waiting.End(err)
	if errors.Is(err, fair.ErrFull) {
		err = fmt.Errorf("extract: %w: %w", engine.ErrBusy, err)
	}
	return turn, err
}

// Waiting returns how many images wait for their turn.
func (q Queue) Waiting() int { return q.queue.Waiting() }

// Crowded returns a function that reports whether e would refuse an image of a tenant now.
// It returns nil if e never refuses.
func Crowded(e router.Extractor) func(id.Tenant) bool {
	if q, ok := e.(Queue); ok {
		return q.queue.Crowded
	}
	return nil
}

// Turns returns a function that waits for a turn of e's queue without an image. It returns nil
// if e has none.
func Turns(e router.Extractor) func(context.Context) (end func(), err error) {
	q, ok := e.(Queue)
	if !ok {
		return nil
	}
	return func(ctx context.Context) (func(), error) {
		turn, err := q.enter(ctx)
		if err != nil {
			return nil, err
		}
		return turn.End, nil
	}
}

// Limit returns how many images may wait.
func (q Queue) Limit() int { return q.queue.Limit() }
