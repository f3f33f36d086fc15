package jobs

import (
	"context"
	"errors"
	"log/slog"
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

const (
	// FileBytesMax is the most bytes of a file, the same as of a request's body.
	FileBytesMax = 20 << 20

	// idlePause is the pause before shards are asked for work again when none had
	// any.
	idlePause = 500 * time.Millisecond
	// The results of a piece are reported at least every reportPause, and when
	// reportMax of them are ready. reportPause must be well below bulk.LeaseTime.
	reportPause = time.Second
	reportMax   = 16
	// reportTries is the most tries to report the last results of a piece.
	reportTries = 5
	// expirePause is how often a node drops old records.
	expirePause = time.Minute
	// callTimeout is the longest time for one call about work. readTimeout and
	// registerTimeout are those for one try to read and to register a file.
	callTimeout     = 10 * time.Second
	readTimeout     = 30 * time.Second
	registerTimeout = 30 * time.Second
	// closeGrace is the longest time to report the last results after the end of
	// work.
	closeGrace = time.Second
)

// Source lends out work and takes its results. *routing.Router is the real one.
type Source interface {
	// Shards returns all shards. Idle reports whether a shard has no work for
	// certain.
	Shards() []id.Shard
	Idle(shard id.Shard) bool
	// TakePiece borrows at most n tasks of a shard. It returns nil when there are
	// none.
	TakePiece(ctx context.Context, shard id.Shard, n int) (*bulk.Piece, error)
	RegisterTask(ctx context.Context, t bulk.Task, image []byte) (router.Registered, error)
	// Report sends results and renews the lease. held is false when the lease was
	// lost.
	Report(ctx context.Context, p *bulk.Piece, results []bulk.TaskResult) (held bool, err error)
	// Postpone returns a piece to its leader. No files for its gallery are lent for a while.
	Postpone(ctx context.Context, p *bulk.Piece) error
	// ExpireJobs drops the records of old jobs.
	ExpireJobs(ctx context.Context) error
}

// Files is the object store.
type Files interface {
	// Read returns a file of a tenant. The error wraps fs.ErrNotExist when there is
	// none, and ErrTooLarge when it has more than limit bytes.
	Read(ctx context.Context, tenant id.Tenant, name string, limit int) ([]byte, error)
}

// ErrTooLarge is returned when a file is too large to be read.
var ErrTooLarge = errors.New("jobs: the file is too large")

// Config configures Workers.
type Config struct {
	Source Source
	Files  Files
	// Slots is the number of files that are processed at once. 0 means half of the
	// processors, so that live requests keep the other half.
	Slots int
	// Waiting returns the number of live requests that wait for a processor. While
	// there are any, a file is started only every half second. nil means none.
	Waiting func() int
	// Done is called for each file that got its outcome here. It may be nil.
	Done func(registered bool)
	Log  *slog.Logger
}

// Workers processes files of jobs on this node.
type Workers struct {
	cfg    Config
	cancel context.CancelFunc
	work   sync.WaitGroup // run and expire; end with cancel

	// mu guards begun.
	mu    sync.Mutex
	begun time.Time // when the last file was started
}

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

// Close ends the work and waits for it. Another node, or this one, repeats the
// unfinished files.
func (w *Workers) Close() error {
	w.cancel()
	w.work.Wait()
	return nil
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

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
