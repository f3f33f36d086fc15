package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/node/loop"
)

const (
	// warmEvery is how often templates that came are opened: on a follower no search
	// does it. warmSoon is that until all were opened once.
	warmEvery, warmSoon = time.Second, 20 * time.Millisecond
	// warmPause is how long a node waits after templates that it can't open.
	warmPause = time.Minute
	// catchUpMost is for how long a node that has leaders waits for what they have
	// committed before it is ready: theirs may be the release that can't tell.
	catchUpMost = 5 * time.Second
)

// Templates opens and brings up to date what replicas hold (router.Router).
type Templates interface {
	SyncMeta(ctx context.Context) error
	CatchUp(ctx context.Context, shard id.Shard) error
	Warm(ctx context.Context, shard id.Shard) error
}

// shards are the replicas that are to be warm.
type shards interface {
	Led() error
	Complete() bool
	Numbers() []id.Shard
}

// Warmer opens the templates of all replicas of a node, one after the other, as they
// come: a new leader answers its first search at once. Its methods are safe for
// concurrent use.
type Warmer struct {
	*loop.Loop
	replicas  shards
	templates Templates
	first     func()
	log       *slog.Logger
	warmed    atomic.Bool // templates that were there at the start are open
}

// NewWarmer returns the warmer of a node's replicas. It calls first once, when it has
// tried with all that was committed when Run began.
func NewWarmer(r *Replicas, t Templates, first func()) *Warmer {
	return &Warmer{Loop: loop.New("warmer"), replicas: r, templates: t, first: first, log: r.cfg.Log}
}

// Warmed reports whether the templates that were there at the start have been opened, or
// can't be.
func (w *Warmer) Warmed() bool { return w.warmed.Load() }

// Run opens templates until ctx ends.
func (w *Warmer) Run(ctx context.Context) {
	defer w.Start()()
	pause := time.NewTimer(warmSoon)
	defer pause.Stop()
	var since time.Time // all groups have leaders
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
			pause.Reset(warmEvery)
		default:
			pause.Reset(warmSoon)
		}
	}
}

// upToDate reports whether the replicas here have applied what their leaders have
// committed.
func (w *Warmer) upToDate(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, warmEvery)
	defer cancel()
	if w.templates.SyncMeta(ctx) != nil {
		return false
	}
	for _, number := range w.replicas.Numbers() {
		if w.templates.CatchUp(ctx, number) != nil {
			return false
		}
	}
	return true
}

// warmAll opens what is closed, and returns why some of it can't be.
func (w *Warmer) warmAll(ctx context.Context) (failed error) {
	for _, number := range w.replicas.Numbers() {
		if err := w.templates.Warm(ctx, number); err != nil && ctx.Err() == nil {
			w.log.Warn("templates can't be opened", "group", number, "err", err)
			failed = errors.Join(failed, fmt.Errorf("open the templates of %s: %w", Name(number), err))
		}
	}
	return failed
}
