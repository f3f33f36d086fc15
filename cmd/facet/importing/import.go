package importing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/importing/state"
)

const (
	// graceTime is how long requests under way may take when the import is interrupted.
	graceTime = 15 * time.Second
	// stateSuffix is behind the report's name in that of the state.
	stateSuffix = ".state"
)

// ErrInterrupted is returned when the import was interrupted. The same command goes on.
var ErrInterrupted = errors.New("interrupted")

// Config says what to bring in and where.
type Config struct {
	// Client has the nodes and the keys, also the gallery's API key.
	Client client.Config
	// Source has the rows.
	Source *list.Source
	// Tags are set on all photos, beside those of a row.
	Tags  []string
	Known Known
	// AtOnce is how many requests are under way; 0: as many as make the import fast.
	AtOnce int
	// Report is the file that says what became of each row. The state lies beside it.
	Report string
	// Grow makes the places that the gallery lacks. Where is the flags that name the profile, for
	// a command to type next.
	Grow  bool
	Where string
	// Bucket is the URL of the tenant's place in the object store, or empty: then no job
	// is used. Keep keeps the copies there.
	Bucket string
	Keep   bool
	// Out gets the progress and the failures. Terminal says that it is a terminal.
	Out      io.Writer
	Terminal bool
	// Words puts an error of the service into words for people.
	Words func(error) error
}

// run is one import in progress.
type run struct {
	Config
	sender
	client   *client.Client
	gallery  uint64 // hash of the API key
	report   *report
	progress *progress
	look     look
	role     string         // of the access key; "" if the service does not say
	work     sync.WaitGroup // the rows under way
	// requests is the context of requests. It ends graceTime after the import is
	// interrupted, and when the import gives up, with the cause.
	requests context.Context

	before     atomic.Int64 // rows that an earlier run or a job has done
	knownInRow atomic.Int32 // the newest persons that were known
	shown      atomic.Bool  // the service knows external ids
	trial      sync.Mutex   // held by the one row that finds out
	changed    atomic.Int32 // rows that were changed in the list and skipped
	refusal    atomic.Pointer[error]
	photos     buffers

	mu       sync.Mutex // guards the fields below
	state    *state.State
	verdicts map[state.Person]verdict
	waiting  map[state.Person][]task // of persons with a row under way
}

// refuse lets all further rows fail with this error.
func (r *run) refuse(err error) {
	err = r.Words(err)
	r.refusal.CompareAndSwap(nil, &err)
}

func (r *run) refused() error {
	if err := r.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

// Run brings the rows in. An error means that the import did not come to its end. Rows
// that are not in are counted as failed.
func Run(ctx context.Context, cfg Config) (sum Summary, err error) {
	cfg.Client.Tries = 1 // insist sends again, and the gate hears of each refusal
	c, err := client.New(cfg.Client)
	if err != nil {
		return sum, err
	}
	defer c.Close()
	hash := sha256.Sum256([]byte("facet import " + cfg.Client.APIKey))
	r := &run{
		Config: cfg, client: c, gallery: binary.BigEndian.Uint64(hash[:]), verdicts: map[state.Person]verdict{}, waiting: map[state.Person][]task{},
	}
	r.begin(cfg)
	if r.state, err = state.Open(cfg.Report+stateSuffix, r.gallery); err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, r.state.Close()) }()
	err = r.all(ctx)
	if r.report == nil { // nothing was begun
		if r.state.New {
			err = errors.Join(err, os.Remove(cfg.Report+stateSuffix))
		}
		return sum, err
	}
	r.progress.close()
	err = errors.Join(err, r.report.close())
	for _, failure := range r.report.failures {
		fmt.Fprintln(cfg.Out, failure)
	}
	if more := r.report.sum.Failed - len(r.report.failures); more > 0 {
		fmt.Fprintf(cfg.Out, "… and %d more\n", more)
	}
	if n := r.changed.Load(); n > 0 {
		fmt.Fprintf(cfg.Out, "rows that were changed in the list since they were imported, and are skipped: %d; --known replace brings in what the list has now\n", n)
	}
	return r.report.sum, err
}

// all carries out all rows, first by jobs if there is an object store.
func (r *run) all(ctx context.Context) error {
	requests, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	r.requests, r.stop = requests, stop
	defer context.AfterFunc(ctx, func() { // the command is interrupted
		select {
		case <-time.After(graceTime):
			stop(ErrInterrupted)
		case <-requests.Done():
		}
	})()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer r.see(ctx)
	if r.Bucket != "" {
		if err := r.throughJobs(ctx); err != nil {
			return err
		}
	}
	return r.watched(ctx, func(ctx context.Context) error {
		err := r.feed(ctx)
		r.work.Wait()
		return err
	}, func() { r.progress.show("rows", r.report.counts(), int(r.before.Load()), r.stall()) })
}

// watched carries out a part of the import. It shows the progress and makes the state
// durable meanwhile.
func (r *run) watched(outer context.Context, part func(context.Context) error, show func()) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	defer context.AfterFunc(r.requests, cancel)()
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case err := <-ended:
			if cause := context.Cause(r.requests); cause != nil {
				return errors.Join(err, cause)
			}
			if outer.Err() != nil {
				return ErrInterrupted
			}
			return err
		case <-every.C:
			show()
			if err := r.state.Sync(); err != nil { // rows may be added meanwhile
				r.stop(err)
			}
		}
	}
}
