package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"facet/internal/id"
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

// Close ends the work and waits for it. Another node, or this one, repeats the
// unfinished files.
func (w *Workers) Close() error {
	w.cancel()
	w.work.Wait()
	return nil
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
