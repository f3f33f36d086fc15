package limits

import (
	"context"
	"errors"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/fair"
	"facet/internal/id"
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
	type result struct {
		who id.Tenant
		err error
	}
	results := make(chan result, 64)
	ask := func(who id.Tenant) {
		go func() {
			_, err := e.ExtractLarge(fair.With(t.Context(), who), nil, 1)
			results <- result{who, err}
		}()
	}
	const mayWait = 25 // of 32: one tenant leaves room for others
	ask(flooder)
	<-h.begun
	for range mayWait + 10 {
		ask(flooder)
	}
	for range 10 {
		if r := <-results; !errors.Is(r.err, engine.ErrBusy) {
			t.Errorf("an image above the share: %v", r.err)
		}
	}
	if !full(flooder) || full(other) || e.(Queue).Waiting() != mayWait {
		t.Errorf("%d wait, crowded for the flooder %v, for another %v; want %d, true, false",
			e.(Queue).Waiting(), full(flooder), full(other), mayWait)
	}
	ask(other)
	for e.(Queue).Waiting() == mayWait {
		time.Sleep(time.Millisecond)
	}
	for i, who := range []id.Tenant{flooder, other} {
		h.end <- struct{}{}
		if r := <-results; r.who != who || r.err != nil {
			t.Errorf("image %d was of %v: %v", i, r.who, r.err)
		}
		<-h.begun
	}
	close(h.end)
	go func() {
		for range h.begun { // the rest; ends with the test
		}
	}()
	for range mayWait {
		if r := <-results; r.err != nil {
			t.Errorf("an image that waited: %v", r.err)
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
