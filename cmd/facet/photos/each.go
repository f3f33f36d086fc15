package photos

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each calls do for the numbers below n, several at once, until one returns an error. If screen is
// a terminal it shows the progress; screen may be nil.
func Each(ctx context.Context, n int, screen *os.File, do func(ctx context.Context, i int) error) error {
	show := NewProgress(screen, n)
	defer show.Close()
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), workersMax) {
		workers.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := do(ctx, i); err != nil {
					return err
				}
				show.Add()
			}
		})
	}
	return workers.Wait()
}

// Read returns the bytes of the photograph's file. The error of a file that is too large wraps
// engine.ErrImage.
func (p Photo) Read() ([]byte, error) { return readPhoto(p.File) }
