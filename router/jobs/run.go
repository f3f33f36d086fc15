package jobs

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/router"
	"facet/router/bulk"
)

// Open starts to work on jobs.
func Open(cfg Config) *Workers {
	if cfg.Slots == 0 {
		cfg.Slots = max(1, runtime.GOMAXPROCS(0)/2)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Workers{cfg: cfg, cancel: cancel, begun: time.Now()}
	w.work.Go(func() { w.run(ctx) })
	w.work.Go(func() { w.expire(ctx) })
	return w
}

// run asks the shards for work, in changing order, until ctx ends.
func (w *Workers) run(ctx context.Context) {
	for ctx.Err() == nil {
		worked := false
		shards := w.cfg.Source.Shards()
		rand.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
		for _, shard := range shards {
			if ctx.Err() != nil || w.cfg.Source.Idle(shard) {
				continue
			}
			p, err := w.take(ctx, shard)
			if err != nil && ctx.Err() == nil {
				w.cfg.Log.WarnContext(ctx, "jobs of a shard could not be asked for work", "shard", shard, "err", err)
			}
			if p != nil {
				worked = true
				w.piece(ctx, p)
			}
		}
		if !worked {
			_ = tick.Pause(ctx, idlePause) // the loop checks ctx
		}
	}
}

func (w *Workers) take(ctx context.Context, shard id.Shard) (*bulk.Piece, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return w.cfg.Source.TakePiece(ctx, shard, bulk.PieceMax)
}

// expire drops old records every expirePause until ctx ends.
func (w *Workers) expire(ctx context.Context) {
	for pause(ctx, expirePause) == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		if err := w.cfg.Source.ExpireJobs(call); err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "old records of jobs could not be dropped, trying again later", "err", err)
		}
		cancel()
	}
}

// piece processes the files of a piece, Slots at a time, and reports the results as
// they come. When a quota of the tenant is used up, piece leaves the other files: they would
// meet it, too, and the jobs of other tenants would wait.
func (w *Workers) piece(ctx context.Context, p *bulk.Piece) {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks := make(chan bulk.Task) // unbuffered: a slot takes one when it is free
	results := make(chan bulk.TaskResult, len(p.Tasks))
	var slots sync.WaitGroup
	var over atomic.Bool
	for range min(w.cfg.Slots, len(p.Tasks)) {
		slots.Go(func() {
			for t := range tasks {
				r, err := w.task(work, p.Tenant, t)
				if router.KindOf(err) == router.OverQuota {
					over.Store(true)
					cancel()
				}
				if err != nil {
					continue
				}
				if w.cfg.Done != nil {
					w.cfg.Done(r.Registered != nil)
				}
				results <- r
			}
		})
	}
	slots.Go(func() {
		defer close(tasks)
		for _, t := range p.Tasks {
			select {
			case tasks <- t:
			case <-work.Done():
				return
			}
		}
	})
	done := make(chan struct{})
	go func() { // ends with the slots; report waits for done
		slots.Wait()
		close(done)
	}()
	w.report(ctx, p, results, done, cancel)
	if over.Load() {
		w.postpone(ctx, p)
	}
}

func (w *Workers) postpone(ctx context.Context, p *bulk.Piece) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := w.cfg.Source.Postpone(ctx, p); err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "files beyond a quota could not be postponed", "err", err) // the lease ends by itself
	}
}

// report reports results until done is closed and all are reported. It calls lost
// when the lease of the piece was lost.
func (w *Workers) report(ctx context.Context, p *bulk.Piece, results <-chan bulk.TaskResult, done <-chan struct{}, lost func()) {
	tick := time.NewTicker(reportPause)
	defer tick.Stop()
	var ready []bulk.TaskResult
	tell := func() {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, cancel) })()
		held, err := w.cfg.Source.Report(call, p, ready)
		switch {
		case err != nil:
			w.cfg.Log.WarnContext(ctx, "results of a job could not be reported, trying again", "err", err)
			return
		case !held:
			lost()
		}
		ready = nil
	}
	for {
		select {
		case r := <-results:
			if ready = append(ready, r); len(ready) >= reportMax {
				tell()
			}
			continue
		case <-tick.C:
			tell()
			continue
		case <-done:
		}
		break
	}
	for len(results) > 0 {
		ready = append(ready, <-results)
	}
	for try := 0; len(ready) > 0 && try < reportTries; try++ {
		if tell(); len(ready) > 0 && pause(ctx, reportPause) != nil {
			return
		}
	}
}
