package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/loop"
	"facet/node/peer"
)

const (
	// warmInterval is how often new templates are opened, because on a follower no search opens
	// them. After the start of the node the interval is warmSoon until all templates were
	// opened once.
	warmInterval, warmSoon = time.Second, 20 * time.Millisecond
	// warmPause is the pause after templates that could not be opened.
	warmPause = time.Minute
	// catchUpMost is the longest time that a new node waits until it has applied what the
	// leaders have committed. A leader of an old release can't tell how much it has committed.
	catchUpMost = 5 * time.Second
)

// Templates opens the templates of replicas and brings replicas up to date
// (routing.Router).
type Templates interface {
	SyncMeta(ctx context.Context) error
	CatchUp(ctx context.Context, shard id.Shard) error
	Warm(ctx context.Context, shard id.Shard) error
}

// warmable is the part of Replicas that the Warmer needs.
type warmable interface {
	Led() error
	Complete() bool
	Numbers() []id.Shard
}

// Warmer opens the templates of a node's replicas before a search needs them, so that a new
// leader answers its first search at once. It is safe for concurrent use.
type Warmer struct {
	*loop.Loop
	replicas  warmable
	templates Templates
	first     func()
	log       *slog.Logger
	warmed    atomic.Bool // see Warmed
}

// NewWarmer returns the warmer of a node's replicas. It calls first once, as soon as Warmed
// reports true. Until then no replica is hashed or verified.
func NewWarmer(r *Replicas, t Templates, first func()) *Warmer {
	return &Warmer{Loop: loop.New("warmer"), replicas: r, templates: t, first: func() { <-r.checks; first() }, log: r.cfg.Log}
}

// Warmed reports whether the templates that were committed before the start have been
// opened, or can't be.
func (w *Warmer) Warmed() bool { return w.warmed.Load() }

// Run opens templates until ctx ends.
func (w *Warmer) Run(ctx context.Context) {
	defer w.Start()()
	pause := time.NewTimer(warmSoon)
	defer pause.Stop()
	var since time.Time // when all groups had leaders
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		all := false
		if !w.Warmed() && w.replicas.Led() == nil && w.replicas.Complete() {
			if since.IsZero() {
				since = time.Now()
			}
			all = w.upToDate(ctx) || time.Since(since) > catchUpMost
		}
		err := w.warmAll(ctx)
		w.Done(err)
		if all {
			w.warmed.Store(true)
			w.first()
		}
		switch warmed := w.Warmed(); {
		case err != nil && warmed:
			pause.Reset(warmPause)
		case err != nil || warmed:
			pause.Reset(tick.Until(warmInterval))
		default:
			pause.Reset(warmSoon)
		}
	}
}

// upToDate reports whether the replicas here have applied what their leaders have
// committed. It asks for all groups at once, so that far leaders answer in time.
func (w *Warmer) upToDate(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	var behind atomic.Bool
	var work sync.WaitGroup
	ask := func(catchUp func() error) {
		work.Go(func() { // ends with ctx
			if catchUp() != nil {
				behind.Store(true)
				cancel()
			}
		})
	}
	ask(func() error { return w.templates.SyncMeta(ctx) })
	for _, number := range w.replicas.Numbers() {
		ask(func() error { return w.templates.CatchUp(ctx, number) })
	}
	work.Wait()
	return !behind.Load()
}

// warmAll opens closed templates and returns why some can't be opened.
func (w *Warmer) warmAll(ctx context.Context) (failed error) {
	for _, number := range w.replicas.Numbers() {
		if err := w.templates.Warm(ctx, number); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "templates can't be opened", "group", number, "err", err)
			failed = errors.Join(failed, fmt.Errorf("open the templates of %s: %w", Name(number), err))
		}
	}
	return failed
}
