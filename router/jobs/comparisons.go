package jobs

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/router/duplicates"
)

const (
	// blockTries is how often a block is tried that fails, with pauses of blockPause. Then it is left to
	// another node, or to this one after the end of the lease.
	blockTries = 5
	blockPause = time.Second
	// redactInterval is how often reports are looked through for subjects that are gone.
	redactInterval = 5 * time.Minute
	redactTimeout  = time.Minute
)

// Blocks lends out blocks of galleries that are compared with themselves. *routing.Router is the real one.
type Blocks interface {
	Shards() []id.Shard
	// NoBlocks reports whether a shard has no block for this node.
	NoBlocks(s id.Shard) bool
	// TakeBlock borrows a block. It returns nil when there is none.
	TakeBlock(ctx context.Context, s id.Shard) (*duplicates.Block, error)
	// CompareBlock compares a block, and calls turn before each piece of the work. The error is
	// duplicates.ErrLost when the block is no longer lent.
	CompareBlock(ctx context.Context, b *duplicates.Block, turn func(context.Context) error) error
	// FinishBlock records the pairs of a block.
	FinishBlock(ctx context.Context, b *duplicates.Block) error
	// RedactDuplicates takes pairs of subjects that are gone out of the reports.
	RedactDuplicates(ctx context.Context) error
	// ExpireJobs drops the records of old jobs.
	ExpireJobs(ctx context.Context) error
}

// ComparisonConfig configures Comparisons.
type ComparisonConfig struct {
	Source Blocks
	// Waiting returns the number of live requests that wait for a processor. While there are any, a
	// piece of work is begun only every half second. nil means none.
	Waiting func() int
	Log     *slog.Logger
}

// Comparisons compares galleries with themselves on this node, one block at a time, so that it takes no
// more than one processor.
type Comparisons struct {
	cfg    ComparisonConfig
	cancel context.CancelFunc
	work   sync.WaitGroup // run and tidy; end with cancel
}

// OpenComparisons starts to work on comparisons.
func OpenComparisons(cfg ComparisonConfig) *Comparisons {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Comparisons{cfg: cfg, cancel: cancel}
	c.work.Go(func() { c.run(ctx) })
	c.work.Go(func() { c.tidy(ctx) })
	return c
}

// Close ends the work and waits for it. Another node, or this one, repeats the unfinished block.
func (c *Comparisons) Close() error {
	c.cancel()
	c.work.Wait()
	return nil
}

// run asks the shards for blocks, in changing order, until ctx ends.
func (c *Comparisons) run(ctx context.Context) {
	for ctx.Err() == nil {
		worked := false
		shards := c.cfg.Source.Shards()
		rand.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
		for _, s := range shards {
			if ctx.Err() != nil || c.cfg.Source.NoBlocks(s) {
				continue
			}
			call, cancel := context.WithTimeout(ctx, callTimeout)
			b, err := c.cfg.Source.TakeBlock(call, s)
			cancel()
			if err != nil && ctx.Err() == nil {
				c.cfg.Log.WarnContext(ctx, "a shard could not be asked for blocks to compare", "shard", s, "err", err)
			}
			if b != nil {
				worked = true
				c.block(ctx, b)
			}
		}
		if !worked {
			_ = tick.Pause(ctx, idlePause) // the loop checks ctx
		}
	}
}

// block compares a block and records its pairs.
func (c *Comparisons) block(ctx context.Context, b *duplicates.Block) {
	for try := 1; ; try++ {
		err := c.cfg.Source.CompareBlock(ctx, b, c.turn)
		if err == nil {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			err = c.cfg.Source.FinishBlock(call, b)
			cancel()
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, duplicates.ErrLost) {
			return
		}
		c.cfg.Log.WarnContext(ctx, "a part of a gallery could not be compared with the gallery, trying again", "err", err)
		if try == blockTries || pause(ctx, blockPause) != nil {
			return
		}
	}
}

// turn waits while live requests wait, but no longer than yieldMax.
func (c *Comparisons) turn(ctx context.Context) error {
	for until := time.Now().Add(yieldMax); c.cfg.Waiting != nil && c.cfg.Waiting() > 0 && time.Now().Before(until); {
		if err := pause(ctx, yieldPause); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tidy drops old records and redacts reports until ctx ends.
func (c *Comparisons) tidy(ctx context.Context) {
	redacted := time.Now()
	for pause(ctx, expirePause) == nil {
		call, cancel := context.WithTimeout(ctx, redactTimeout)
		err := c.cfg.Source.ExpireJobs(call)
		if time.Since(redacted) >= redactInterval {
			redacted = time.Now()
			err = errors.Join(err, c.cfg.Source.RedactDuplicates(call))
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.WarnContext(ctx, "old records of jobs could not be dropped, trying again later", "err", err)
		}
	}
}
