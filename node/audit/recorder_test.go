package audit

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/audit/entry"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/auditlog"
	"facet/shard/seal"
)

// cluster is a book behind a majority that can be lost.
type cluster struct {
	key  *seal.Key
	book *auditlog.Book

	mu   sync.Mutex // guards mode, lost, twice, calls and most
	mode metafsm.AuditMode
	// lost makes appends fail without effect. twice makes each second one fail after its effect.
	lost, twice bool
	calls       int
	most        uint64
}

var bank = id.Tenant{UUID: id.UUID{1}}

func newCluster(t *testing.T, mode metafsm.AuditMode) *cluster {
	t.Helper()
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	must.Do(t, err)
	c := &cluster{key: key, book: auditlog.NewBook(), mode: mode, most: metafsm.QuotaMax}
	must.Do(t, c.book.Begin(bank, nil))
	return c
}

func (c *cluster) set(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cluster) Audit(id.Tenant) metafsm.Audit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return metafsm.Audit{Mode: c.mode}
}

func (c *cluster) BeginAudit(context.Context, id.Tenant) (*seal.Key, error) { return c.key, nil }

var errLost = errors.New("no majority")

func (c *cluster) AppendAudit(_ context.Context, b auditlog.Batch) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost || len(shardfsm.AppendLogOp.Encode(shardfsm.AppendLog(b))) > raftfsm.CommandBytesMax {
		return 0, errLost
	}
	at, err := c.book.Append(b)
	if c.calls++; c.twice && c.calls%2 == 1 {
		return 0, errLost
	}
	return at.First, err
}

func (c *cluster) FollowAudit(_ context.Context, tenant id.Tenant, first auditlog.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.book.Begin(tenant, nil, first)
}

func (c *cluster) AuditMost(id.Tenant) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

func (c *cluster) AuditHead(_ context.Context, tenant id.Tenant) (auditlog.Head, error) {
	return c.book.Head(tenant)
}

// ids returns how often the log has a record of each request.
func (c *cluster) ids(t *testing.T) map[[16]byte]int {
	t.Helper()
	count := map[[16]byte]int{}
	list, err := c.book.Read(bank, 0, 1<<20)
	must.Do(t, err)
	for _, e := range list {
		content, err := c.key.Open(e.Sealed, bank.UUID[:])
		must.Do(t, err)
		r, err := entry.Decode(content)
		if err != nil || e.Leaf != auditlog.LeafHash(content) {
			t.Fatal(err)
		}
		count[r.ID]++
	}
	return count
}

// start runs a Recorder. stop ends it.
func start(t *testing.T, c *cluster, folder string) (r *Recorder, stop func()) {
	t.Helper()
	r, err := New(Config{Log: c, Folder: folder, Logger: slog.New(slog.DiscardHandler)})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { r.Run(ctx) })
	return r, func() { cancel(); work.Wait() }
}

// A tenant whose records wait leaves room for those of another.
func TestWaitingRecordsAreSharedByTenants(t *testing.T) {
	t.Parallel()
	c := newCluster(t, metafsm.AuditBestEffort)
	other := id.Tenant{UUID: id.UUID{2}}
	must.Do(t, c.book.Begin(other, nil))
	r, stop := start(t, c, t.TempDir())
	defer stop()
	for n := int64(1 << 20); n > 0; n /= 2 {
		for r.waiting.Take(bank, n) {
		}
	}
	if err := r.Record(t.Context(), bank, event(1)); !errors.Is(err, ErrFull) {
		t.Errorf("a tenant beyond its share: got %v, want ErrFull", err)
	}
	must.Do(t, r.Record(t.Context(), other, event(2)))
}

func event(n int) Event {
	e := entry.New(entry.Request, time.UnixMilli(int64(n)))
	e.ID = [16]byte{1, byte(n >> 8), byte(n)}
	return Event{Record: e}
}

// record makes records of n requests at once, from number first on.
func record(t *testing.T, r *Recorder, first, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() {
			if err := r.Record(ctx, bank, event(first+i)); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

// once waits until the log has n requests, each of them once.
func (c *cluster) once(t *testing.T, n int) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		count := c.ids(t)
		for name, times := range count {
			if times != 1 {
				t.Fatalf("request %x has %d records", name[:3], times)
			}
		}
		if len(count) == n {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the log has %d requests of %d", len(count), n)
		}
	}
}

func TestRecordsAreThereOnceInEveryMode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []metafsm.AuditMode{metafsm.AuditBestEffort, metafsm.AuditStrict} {
			c := newCluster(t, mode)
			c.set(func(c *cluster) { c.twice = true })
			r, stop := start(t, c, t.TempDir())
			for i := range 10 {
				record(t, r, 50*i, 50)
				if mode == metafsm.AuditStrict && len(c.ids(t)) != 50*(i+1) {
					t.Fatalf("strict: the log has %d requests after %d answers", len(c.ids(t)), 50*(i+1))
				}
			}
			c.once(t, 500)
			stop()
		}
	})
}

func TestNoRecordIsKeptWithAuditOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, metafsm.AuditOff)
	r, stop := start(t, c, t.TempDir())
	defer stop()
	record(t, r, 0, 5)
	if n := len(c.ids(t)); n != 0 || r.Waiting() != 0 {
		t.Errorf("the log has %d records, %d bytes wait", n, r.Waiting())
	}
}

// A node that ends without a majority has its records on its disk, and sends them after the start.
func TestRestartSendsSpooledRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		r, stop := start(t, c, folder)
		record(t, r, 0, 20)
		c.once(t, 20)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 20, 30)
		record(t, r, 50, 1)
		if n := len(c.ids(t)); n != 20 {
			t.Fatalf("the log has %d records without a majority", n)
		}
		stop()
		c.set(func(c *cluster) { c.lost = false })
		for range 2 { // what was sent already has no second effect
			_, stop = start(t, c, folder)
			c.once(t, 51)
			stop()
		}
		r, stop = start(t, c, folder)
		record(t, r, 100, 1)
		c.once(t, 52)
		stop()
		if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) != 0 {
			t.Errorf("the spool has %v, %v", left, err)
		}
	})
}

// A file of the spool takes records for an hour at most, and is removed once the log has all of it.
func TestDeliveredRecordsLeaveSpool(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, metafsm.AuditBestEffort)
		r, stop := start(t, c, folder)
		files := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			if names, err := filepath.Glob(filepath.Join(folder, "*.spool")); err != nil || len(names) != want {
				t.Errorf("the spool has %v, %v, want %d files", names, err, want)
			}
		}
		record(t, r, 0, 5)
		c.once(t, 5)
		files(0, 1)
		files(spoolFileAge/2, 1)
		files(spoolFileAge/2+spoolInterval, 0)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 10, 5)
		files(2*spoolFileAge, 1) // the log does not have these
		record(t, r, 20, 5)
		files(0, 2)
		c.set(func(c *cluster) { c.lost = false })
		c.once(t, 15)
		files(0, 1)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 30, 5)
		stop()
		c.set(func(c *cluster) { c.lost = false })
		_, stop = start(t, c, folder)
		c.once(t, 20)
		files(spoolInterval, 0)
		stop()
	})
}

// A torn batch at the end of a file, as after a loss of power, hides none before it.
func TestTornSpoolKeepsBatchesBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		c.set(func(c *cluster) { c.lost = true })
		r, stop := start(t, c, folder)
		for i := range 5 {
			record(t, r, i, 1)
		}
		stop()
		names, err := filepath.Glob(filepath.Join(folder, "*.spool"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		info, err := os.Stat(names[0])
		must.Do(t, err)
		must.Do(t, os.Truncate(names[0], info.Size()-3))
		c.set(func(c *cluster) { c.lost = false })
		_, stop = start(t, c, folder)
		c.once(t, 4)
		stop()
		if _, err := os.Stat(names[0] + damaged); err != nil {
			t.Error(err)
		}
	})
}

func TestStrictRecordIsLateWithoutMajority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, metafsm.AuditStrict)
		c.set(func(c *cluster) { c.lost = true })
		r, stop := start(t, c, t.TempDir())
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := r.Record(ctx, bank, event(1)); !errors.Is(err, ErrLate) {
			t.Errorf("got %v", err)
		}
		c.set(func(c *cluster) { c.lost = false })
		c.once(t, 1)
	})
}

// A full disk makes records wait for the majority instead.
func TestLostDiskLeavesMajority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		r, stop := start(t, c, folder)
		defer stop()
		must.Do(t, os.RemoveAll(folder))
		record(t, r, 0, 20)
		c.once(t, 20)
	})
}

// Records of best effort gather for the log, so that requests one after the other leave no backlog that
// delays strict ones.
func TestBestEffortRecordsShareAppends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, metafsm.AuditBestEffort)
		r, stop := start(t, c, t.TempDir())
		defer stop()
		for i := range 300 {
			record(t, r, i, 1)
		}
		c.set(func(c *cluster) { c.mode = metafsm.AuditStrict })
		record(t, r, 300, 1)
		c.once(t, 301)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls > 100 {
			t.Errorf("301 records took %d appends", c.calls)
		}
	})
}

// What gathers while the log has no majority is more than raft takes as one command: 4,000 small records, then large
// ones.
func TestManyRecordsFitIntoCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		r, stop := start(t, c, folder)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 0, 4000)
		c.set(func(c *cluster) { c.lost = false })
		c.once(t, 4000)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 4000, 4000)
		stop()
		c.set(func(c *cluster) { c.lost = false })
		_, stop = start(t, c, folder)
		defer stop()
		c.once(t, 8000)
	})
}

// A node that dies again soon after its start has sent the last records of its former process, too.
func TestSpoolIsSentInFewBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		r, stop := start(t, c, folder)
		c.set(func(c *cluster) { c.lost = true })
		for i := range 300 {
			record(t, r, i, 1)
		}
		stop()
		c.set(func(c *cluster) { c.lost, c.calls = false, 0 })
		_, stop = start(t, c, folder)
		defer stop()
		c.once(t, 300)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls > 3 {
			t.Errorf("300 records of the spool took %d appends", c.calls)
		}
	})
}

// A log that has forgotten a writer gets its records under another name: from its queue, and from the
// spool of a former process.
func TestForgottenWriterGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, folder := newCluster(t, metafsm.AuditBestEffort), t.TempDir()
		forget := func() {
			c.book.Drop(bank)
			must.Do(t, c.book.Begin(bank, nil))
		}
		r, stop := start(t, c, folder)
		record(t, r, 0, 3)
		c.once(t, 3)
		forget()
		record(t, r, 3, 4)
		c.once(t, 4)
		c.set(func(c *cluster) { c.lost = true })
		record(t, r, 7, 5)
		stop()
		forget()
		c.set(func(c *cluster) { c.lost = false })
		_, stop = start(t, c, folder)
		defer stop()
		c.once(t, 12) // the spool's file has those before, too
	})
}
