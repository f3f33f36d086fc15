package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"facet/engine/imaging"
	"facet/internal/must"
)

func TestShrinkKeepsModelResolution(t *testing.T) {
	t.Parallel()
	for scale, want := range map[float64]imaging.Shrink{
		.1: imaging.Whole, 1: imaging.Whole, 1.99: imaging.Whole, 2: imaging.Half, 3.99: imaging.Half,
		4: imaging.Quarter, 7.99: imaging.Quarter, 8: imaging.Eighth, 1000: imaging.Eighth,
	} {
		if got := coarsest(scale); got != want {
			t.Errorf("at %v pixels for one: shrunk by %d, want %d", scale, got, want)
		}
	}
}

func TestGrowingLeasesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const most = 100
	memory := semaphore.NewWeighted(most)
	one, other := lease{from: memory, most: most}, lease{from: memory, most: most}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, l := range []*lease{&one, &other} {
		must.Do(t, l.raise(ctx, 50))
	}
	grown := make(chan error, 1)
	go func() {
		err := one.raise(ctx, 1000) // more than there is: all
		one.end()
		grown <- err
	}()
	must.Do(t, other.raise(ctx, 80))
	if err := other.raise(ctx, 10); err != nil || other.held != 80 {
		t.Errorf("a lease of %d, %v; want 80: what is held is enough", other.held, err)
	}
	other.end()
	must.Do(t, <-grown)
	if !memory.TryAcquire(most) {
		t.Error("memory is missing when no lease holds any")
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := one.raise(stopped, 1); !errors.Is(err, context.Canceled) || one.held != 0 {
		t.Errorf("a lease of %d, %v after its context ended", one.held, err)
	}
	one.end()
}
