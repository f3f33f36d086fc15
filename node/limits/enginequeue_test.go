package limits

import (
	"context"
	"errors"
	"testing"

	"facet/engine"
	"facet/internal/id"
	"facet/node/fair"
)

// held is an extractor with one worker whose images end when they are told to.
type held struct {
	begun chan struct{}
	end   chan struct{}
}

func (held) Workers() int { return 1 }

func (h held) Extract(ctx context.Context, _ []byte) ([]engine.Face, error) {
	h.begun <- struct{}{}
	<-h.end
	return nil, ctx.Err()
}

func (h held) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return h.Extract(ctx, image)
}

// uncounted is an extractor that does not say how many workers it has.
type uncounted struct{ held }

// Workers takes an argument, so it is another method than the one that is looked for.
func (uncounted) Workers(int) {}

func TestTenantsShareWorkersFairly(t *testing.T) {
	t.Parallel()
	h := held{begun: make(chan struct{}), end: make(chan struct{})}
	e := NewQueue(h)
	flooder, other := id.Tenant{UUID: id.UUID{1}}, id.Tenant{UUID: id.UUID{2}}
	full := Crowded(e)
	results := make(chan error)
	ask := func(who id.Tenant) {
		go func() {
			_, err := e.ExtractLarge(fair.With(t.Context(), who), nil, 1)
			results <- err
		}()
	}
	const inTurn, mayWait = 1, 25 // of 32: one tenant leaves room for others
	for range inTurn {
		ask(flooder)
		<-h.begun
	}
	refused := 0
	for range mayWait + 10 {
		ask(flooder)
	}
	for range 10 {
		if err := <-results; errors.Is(err, engine.ErrBusy) {
			refused++
		}
	}
	if refused != 10 || !full(flooder) || full(other) || e.(Queue).Waiting() != mayWait {
		t.Errorf("%d refused, %d wait, crowded for the flooder %v, for another %v; want 10, %d, true, false",
			refused, e.(Queue).Waiting(), full(flooder), full(other), mayWait)
	}
	ask(other)
	<-h.begun // of the other, ahead of the flooder's
	close(h.end)
	go func() {
		for range h.begun { // the rest; ends with the test
		}
	}()
	for range inTurn + mayWait + 1 {
		if err := <-results; err != nil {
			t.Errorf("an image that waited: %v", err)
		}
	}
	close(h.begun)
}

func TestPlainExtractorHasNoQueue(t *testing.T) {
	t.Parallel()
	u := uncounted{}
	if e := NewQueue(u); e != any(u) || Crowded(e) != nil {
		t.Errorf("got %T, crowded %v", e, Crowded(e) != nil)
	}
}
