package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/node/loop"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

const (
	// sendTimeout is how long one attempt to append a batch may take, retryPause the time before the next
	// one.
	sendTimeout = 2 * time.Second
	retryPause  = 100 * time.Millisecond
	// gatherTime is how long records of best effort gather for a batch, unless there are gatherMost.
	gatherTime = 500 * time.Millisecond
	gatherMost = 1000
	// flushTime is how long Run waits at its end until the logs have all records.
	flushTime = time.Second
	// waitingBytesMax is the most bytes of records that are on no majority yet. Tenants share them.
	waitingBytesMax = 256 << 20
	// batchBytes is the size from which a batch takes no more records. With one more of SealedMax it is a command that
	// raft takes. recordBytes is what a record has beside its content, at most.
	batchBytes  = raftfsm.CommandBytesMax - 2*auditlog.SealedMax
	recordBytes = 128
)

// Errors of Record.
var (
	// ErrLate is returned when a record was not durable in time. It may become durable later.
	ErrLate = errors.New("audit: the record of the request is not durable in time")
	// ErrFull is returned when too many records of the tenant wait.
	ErrFull = errors.New("audit: too many records wait for the audit log")
)

// Log appends batches to the audit logs of tenants. *routing.Router is one.
type Log interface {
	Audit(tenant id.Tenant) metafsm.Audit
	BeginAudit(ctx context.Context, tenant id.Tenant) (*seal.Key, error)
	AppendAudit(ctx context.Context, b auditlog.Batch) (first uint64, err error)
	FollowAudit(ctx context.Context, tenant id.Tenant, first auditlog.Entry) error
	AuditMost(tenant id.Tenant) uint64
	AuditHead(ctx context.Context, tenant id.Tenant) (auditlog.Head, error)
}

// Config configures a Recorder.
type Config struct {
	Log Log
	// Folder has the spool.
	Folder string
	Logger *slog.Logger
}

// Recorder makes records durable.
type Recorder struct {
	*loop.Loop
	cfg     Config
	spool   *spool
	waiting *fair.Pool[id.Tenant] // bytes of records that are on no majority yet
	// refusals are the requests without a valid signature that no record counts yet, operators those that the admin
	// port has refused.
	refusals, operators refusals
	// health are the requests for health that no record counts yet.
	health perMinute[Asker, statuses]

	mu    sync.Mutex // guards lines, dirty, counts and closed
	lines map[id.Tenant]*line
	// dirty are the lines with records that the spool may take.
	dirty []*line
	// counts has the tenants with a quota of records.
	counts map[id.Tenant]*count
	closed bool

	senders sync.WaitGroup
	// closing is closed when no more records come. stop ends when the logs get no more.
	closing chan struct{}
	stop    context.Context
	cancel  context.CancelFunc
}

// waiter is a record whose request waits.
type waiter struct {
	auditlog.New
	// frame has the record on the disk, or is nil.
	frame *frame
	// spooled is closed when the node's disk has the record, committed when a majority has it.
	spooled, committed chan struct{}
}

// frame is a batch for the disk.
type frame struct {
	auditlog.Batch
	waiters []*waiter
	left    int  // records that the log does not have yet; Recorder.mu guards it
	gone    bool // the log has all; spool.mu guards it
}

// line gathers the records of one tenant.
type line struct {
	tenant id.Tenant
	writer auditlog.Writer
	// number is that of the first record in queue, which has those that the log does not have yet. The
	// spool has taken the first framed of them.
	number  uint64
	queue   []*waiter
	framed  int
	sending bool
	spools  bool // the last record was of a tenant with best effort
}

// New returns a Recorder. It reads the batches that a former process left in the spool, which Run sends.
func New(cfg Config) (*Recorder, error) {
	r := &Recorder{Loop: loop.New("audit"), cfg: cfg, waiting: fair.NewPool[id.Tenant](waitingBytesMax), lines: make(map[id.Tenant]*line), counts: make(map[id.Tenant]*count), closing: make(chan struct{})}
	r.refusals.most, r.operators.most = sourcesMax, sourcesMax
	r.health.most = math.MaxInt // operators have made each key
	r.stop, r.cancel = context.WithCancel(context.Background())
	var err error
	r.spool, err = openSpool(cfg.Folder)
	return r, err
}

// Run sends what a former process left, and spools records until ctx ends. Then it waits flushTime for
// the logs, and gives up what they do not have: the spool keeps that.
func (r *Recorder) Run(ctx context.Context) {
	defer r.Start()()
	var parts sync.WaitGroup
	parts.Go(func() {
		r.resend(ctx)
		r.Done(nil)
	})
	parts.Go(func() { r.keepSpool(ctx) })
	r.keepRefusals(ctx)
	r.RecordRefusals(math.MaxInt64)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	close(r.closing)
	late := time.AfterFunc(flushTime, r.cancel)
	r.senders.Wait()
	late.Stop()
	r.cancel()
	parts.Wait()
	if err := r.spool.close(); err != nil {
		r.cfg.Logger.WarnContext(ctx, "close the audit spool", "err", err)
	}
}

// Keeps reports whether the requests of a tenant have records.
func (r *Recorder) Keeps(tenant id.Tenant) bool {
	return r.cfg.Log.Audit(tenant).Mode != metafsm.AuditOff
}

// Record makes a record of a tenant durable, as the tenant's mode says. The error is ErrLate, ErrFull or
// that of the key; then the record may be durable or become so.
func (r *Recorder) Record(ctx context.Context, tenant id.Tenant, e Event) error {
	mode := r.cfg.Log.Audit(tenant).Mode
	if mode == metafsm.AuditOff {
		return nil
	}
	key, err := r.cfg.Log.BeginAudit(ctx, tenant)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	w, err := r.add(tenant, key, e, mode == metafsm.AuditBestEffort)
	if err != nil {
		return err
	}
	spooled := w.spooled
	if mode == metafsm.AuditStrict {
		spooled = nil
	}
	select {
	case <-w.committed:
		return nil
	case <-spooled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrLate, ctx.Err())
	case <-r.stop.Done():
		return ErrLate
	}
}

// Correct adds a record that nobody waits for.
func (r *Recorder) Correct(tenant id.Tenant, e Event) {
	ctx, cancel := context.WithTimeout(r.stop, sendTimeout)
	defer cancel()
	if key, err := r.cfg.Log.BeginAudit(ctx, tenant); err == nil {
		_, _ = r.add(tenant, key, e, true) // without room there is nothing more to do
	}
}

// add puts a record into its line.
func (r *Recorder) add(tenant id.Tenant, key *seal.Key, e Event, spools bool) (*waiter, error) {
	e.name(key)
	content := e.Encode()
	w := &waiter{spooled: make(chan struct{}), committed: make(chan struct{})}
	w.Leaf, w.Sealed = auditlog.LeafHash(content), key.Seal(content, tenant.UUID[:])
	switch e.Kind {
	case entry.Intent:
		w.Opens = e.ID
	default:
		w.Closes, w.IfOpen = e.ID, e.Kind == entry.Completed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, ErrLate
	case !r.waiting.Take(tenant, int64(len(w.Sealed))):
		return nil, ErrFull
	}
	l := r.lines[tenant]
	if l == nil {
		l = newLine(tenant)
		r.lines[tenant] = l
	}
	l.queue = append(l.queue, w)
	l.spools = spools
	if !l.sending {
		l.sending = true
		r.senders.Go(func() { r.send(l) }) // ends when the line is empty, or with stop
	}
	if spools {
		r.dirty = append(r.dirty, l)
		r.spool.wake()
	}
	return w, nil
}

func newLine(tenant id.Tenant) *line {
	l := &line{tenant: tenant}
	l.rename()
	return l
}

// rename makes the line another writer, whose entries the log does not know: those in the queue are its
// first ones.
func (l *line) rename() {
	_, _ = rand.Read(l.writer[:]) // it never fails, by its documentation
	l.number = 1
}

// batch returns the records of a line from a place in its queue on, as many as a batch may have. The caller
// holds r.mu.
func (l *line) batch(from int) (b auditlog.Batch, of []*waiter) {
	b = auditlog.Batch{Tenant: l.tenant, Writer: l.writer, Number: l.number + uint64(from)}
	rest := l.queue[from:]
	n := batched(len(rest), func(i int) int { return len(rest[i].Sealed) })
	for _, w := range rest[:n] {
		b.Entries = append(b.Entries, w.New)
	}
	return b, rest[:n:n]
}

// batched returns how many of the first of n records fit into a batch. size returns the bytes of a record's content.
func batched(n int, size func(i int) int) int {
	bytes := 0
	for i := range n {
		if bytes += size(i) + recordBytes; bytes >= batchBytes {
			return i + 1
		}
	}
	return n
}

// frames returns frames for the disk, of all records that it has not taken yet. The caller holds r.mu.
func (l *line) frames() (list []*frame) {
	for l.framed < len(l.queue) {
		b, of := l.batch(l.framed)
		f := &frame{Batch: b, waiters: of, left: len(of)}
		for _, w := range of {
			w.frame = f
		}
		l.framed += len(of)
		list = append(list, f)
	}
	return list
}

// send appends the records of a line to its log, until the line is empty. It keeps a line of best effort
// waiting a little: the log takes many records as easily as one.
func (r *Recorder) send(l *line) {
	for {
		r.mu.Lock()
		if len(l.queue) == 0 {
			l.sending = false
			r.mu.Unlock()
			return
		}
		gathers := l.spools && len(l.queue) < gatherMost
		r.mu.Unlock()
		if gathers {
			select {
			case <-time.After(gatherTime):
			case <-r.closing:
			}
		}
		r.mu.Lock()
		b, of := l.batch(0)
		r.mu.Unlock()
		err := r.deliver(b)
		if errors.Is(err, auditlog.ErrWriter) {
			r.mu.Lock()
			l.rename()
			r.mu.Unlock()
			continue
		}
		if err != nil {
			return // the spool keeps the records
		}
		r.mu.Lock()
		l.queue, l.number = l.queue[len(of):], l.number+uint64(len(of))
		l.framed = max(0, l.framed-len(of))
		var gone []*frame
		for _, w := range of {
			r.waiting.Give(l.tenant, int64(len(w.Sealed)))
			close(w.committed)
			if w.frame == nil {
				continue
			}
			if w.frame.left--; w.frame.left == 0 {
				gone = append(gone, w.frame)
			}
		}
		r.mu.Unlock()
		r.spool.done(gone)
	}
}

// deliver appends a batch. It tries again until the batch is off the writer's hands: the log has it, or the
// tenant is gone. The error is ErrLate after stop, or wraps auditlog.ErrWriter.
func (r *Recorder) deliver(b auditlog.Batch) error {
	for {
		ctx, cancel := context.WithTimeout(r.stop, sendTimeout)
		_, err := r.cfg.Log.AppendAudit(ctx, b)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, auditlog.ErrWriter):
			r.cfg.Logger.Warn("the audit log has forgotten a writer; it goes on under another name", "tenant", b.Tenant)
			return err
		case router.KindOf(err) == router.NotFound && len(r.cfg.Log.Audit(b.Tenant).Former) > 0:
			if err := r.follow(b.Tenant); err == nil {
				continue
			}
		case router.KindOf(err) == router.NotFound:
			r.cfg.Logger.Warn("records of a deleted tenant are dropped", "tenant", b.Tenant, "records", len(b.Entries))
			return nil
		}
		select {
		case <-r.stop.Done():
			return ErrLate
		case <-time.After(retryPause):
		}
	}
}

// follow returns nil once the log of a tenant that was restored from a backup has begun. The log's first record
// names the last checkpoint of the former log that the backup has.
func (r *Recorder) follow(tenant id.Tenant) error {
	ctx, cancel := context.WithTimeout(r.stop, sendTimeout)
	defer cancel()
	key, err := r.cfg.Log.BeginAudit(ctx, tenant)
	if err != nil {
		return err
	}
	e := entry.New(entry.Act, time.Now())
	e.Operation, e.Former = entry.OperationRestored, string(r.cfg.Log.Audit(tenant).Former)
	content := e.Encode()
	return r.cfg.Log.FollowAudit(ctx, tenant, auditlog.Entry{Leaf: auditlog.LeafHash(content), Sealed: key.Seal(content, tenant.UUID[:])})
}

// Waiting returns the bytes of the records that are on no majority yet.
func (r *Recorder) Waiting() int64 { return r.waiting.Used() }
