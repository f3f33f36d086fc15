package transport

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/node/transport/memnet"
)

// All requests are answered in the end.
func TestLargeRequestsWaitForMemory(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		const size = 400 << 10
		p.server.budget = newBudget(2*size + size/2) // set before the first connection
		var inside, most atomic.Int64
		p.handle(func(_ context.Context, method string, body []byte) ([]byte, error) {
			if method == "large" {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
			}
			time.Sleep(time.Second)
			return body[:1], nil
		})
		var calls sync.WaitGroup
		for range 12 {
			calls.Go(func() {
				if got, err := p.call(t.Context(), "large", strings.Repeat("x", size)); err != nil || got != "x" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		began := time.Now() // while the large ones wait
		if _, err := p.call(t.Context(), "small", "y"); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a small request took %s: %v", time.Since(began), err)
		}
		calls.Wait()
		if most.Load() != 2 {
			t.Errorf("%d large requests were in memory at once, and there is room for 2", most.Load())
		}
		if !p.server.budget.room.TryAcquire(2*size + size/2) {
			t.Error("memory was not given back")
		}
	})
}

// All answers arrive in the end.
func TestLargeAnswersWaitForMemory(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		const size = 400 << 10
		p.client.budget = newBudget(size + size/2)
		p.handle(func(context.Context, string, []byte) ([]byte, error) { return make([]byte, size), nil })
		var calls sync.WaitGroup
		for range 12 {
			calls.Go(func() {
				if got, err := p.call(t.Context(), "large", "x"); err != nil || len(got) != size {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			})
		}
		calls.Wait()
		if !p.client.budget.room.TryAcquire(size + size/2) {
			t.Error("memory was not given back")
		}
	})
}

// A request that never gets room fails at its sender's deadline, and its memory is
// returned.
func TestEndedConnectionFreesMemory(t *testing.T) {
	virtual(t, func(t *testing.T, _ *memnet.Network, p *pair) {
		const size = 400 << 10
		p.server.budget = newBudget(size + size/2)
		p.handle(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var calls sync.WaitGroup
		for range 6 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := p.call(ctx, "large", strings.Repeat("x", size)); err == nil {
					t.Error("a request is answered whose handler does not end")
				}
			})
		}
		calls.Wait()
		time.Sleep(time.Minute)
		if !p.server.budget.room.TryAcquire(size + size/2) {
			t.Error("memory was not given back")
		}
	})
}
