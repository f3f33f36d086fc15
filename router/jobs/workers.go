package jobs

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"facet/internal/id"
	"facet/router"
)

const (
	// FileBytesMax bounds a file, as a request's body is bounded.
	FileBytesMax = 20 << 20

	// idlePause is how long nobody is asked for work when there was none.
	idlePause = 500 * time.Millisecond
	// reportPause is how often a piece's results are told at the least; it must be
	// well below router.LeaseTime. reportMax is how many wait for it at the most.
	reportPause = time.Second
	reportMax   = 16
	// reportTries bounds how often the last results of a piece are told.
	reportTries = 5
	// expirePause is how often a node looks for records that are kept for too long.
	expirePause = time.Minute
	// callTimeout bounds one call about work, readTimeout and registerTimeout one try
	// of a file.
	callTimeout     = 10 * time.Second
	readTimeout     = 30 * time.Second
	registerTimeout = 30 * time.Second
	// closeGrace is how long last results may take to be told when the work ends.
	closeGrace = time.Second
)

// Source gives work and takes its results; *router.Router is the real one.
type Source interface {
	// Shards gives all shards; Idle tells whether one surely has no work.
	Shards() []id.Shard
	Idle(shard id.Shard) bool
	// TakePiece gives at most n tasks of a shard, nil when there are none.
	TakePiece(ctx context.Context, shard id.Shard, n int) (*router.Piece, error)
	RegisterTask(ctx context.Context, t router.Task, image []byte) (router.Registered, error)
	// Report notes results and tells whether the piece is still to be worked on here.
	Report(ctx context.Context, p *router.Piece, results []router.TaskResult) (held bool, err error)
	// ExpireJobs drops what is kept for too long.
	ExpireJobs(ctx context.Context) error
}

// Files is the object store.
type Files interface {
	// Read gives a file of a tenant, of at most limit bytes. The error wraps
	// fs.ErrNotExist if there is none, ErrTooLarge if it is larger.
	Read(ctx context.Context, tenant id.Tenant, name string, limit int) ([]byte, error)
}

// ErrTooLarge says that a file is larger than may be read.
var ErrTooLarge = errors.New("jobs: the file is too large")

// Config is what Workers work with.
type Config struct {
	Source Source
	Files  Files
	// Slots is how many files are worked on at once; 0 is half of the processors, so
	// that live requests keep the other half.
	Slots int
	// Waiting counts the live requests that wait for a processor; while there are
	// any, a file is begun every half a second only. nil is none.
	Waiting func() int
	// Done is told of each file that got its outcome here; nil tells nobody.
	Done func(registered bool)
	Log  *slog.Logger
}

// Workers are this node's share in the work on jobs.
type Workers struct {
	cfg    Config
	cancel context.CancelFunc
	work   sync.WaitGroup // run and expire; end with cancel

	mu    sync.Mutex // guards begun
	begun time.Time  // when a file was begun for the last time
}

// Open begins to work.
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

// Close ends the work and waits for it. What was not finished is done by another
// node, or again.
func (w *Workers) Close() error {
	w.cancel()
	w.work.Wait()
	return nil
}

// run asks the shards for work in changing order until ctx ends.
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
				w.cfg.Log.Warn("no work on jobs could be taken", "shard", shard, "err", err)
			}
			if p != nil {
				worked = true
				w.piece(ctx, p)
			}
		}
		if !worked {
			_ = pause(ctx, idlePause) // it ends with ctx, which the loop looks at
		}
	}
}

func (w *Workers) take(ctx context.Context, shard id.Shard) (*router.Piece, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return w.cfg.Source.TakePiece(ctx, shard, router.PieceMax)
}

// expire drops old records from time to time until ctx ends.
func (w *Workers) expire(ctx context.Context) {
	for pause(ctx, expirePause) == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		if err := w.cfg.Source.ExpireJobs(call); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("old records of jobs are not dropped yet", "err", err)
		}
		cancel()
	}
}

// piece works on a piece, Slots files at a time, and tells the results as they come.
func (w *Workers) piece(ctx context.Context, p *router.Piece) {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks := make(chan router.Task) // unbuffered: a slot takes one when it is free
	results := make(chan router.TaskResult, len(p.Tasks))
	var slots sync.WaitGroup
	for range min(w.cfg.Slots, len(p.Tasks)) {
		slots.Go(func() {
			for t := range tasks {
				if r, ok := w.task(work, p.Tenant, t); ok {
					if w.cfg.Done != nil {
						w.cfg.Done(r.Registered != nil)
					}
					results <- r
				}
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
	go func() { // ends with the slots, which the loop below waits for
		slots.Wait()
		close(done)
	}()
	w.report(ctx, p, results, done, cancel)
}

// report tells results until done is closed and all are told; lost is called when
// the piece is another's by now.
func (w *Workers) report(ctx context.Context, p *router.Piece, results <-chan router.TaskResult, done <-chan struct{}, lost func()) {
	tick := time.NewTicker(reportPause)
	defer tick.Stop()
	var ready []router.TaskResult
	tell := func() {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, cancel) })()
		held, err := w.cfg.Source.Report(call, p, ready)
		switch {
		case err != nil:
			w.cfg.Log.Warn("results of a job are not noted yet", "err", err)
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
