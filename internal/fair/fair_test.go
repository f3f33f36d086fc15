package fair_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/must"
)

var (
	alice = tenant(1)
	bob   = tenant(2)
	carol = tenant(3)
)

// runs is how long shares runs in virtual time.
const runs = 12 * time.Second

func tenant(n byte) id.Tenant { return id.Tenant{UUID: id.UUID{n}} }

// client sends images of a fixed length: each of its workers sends one after the
// other.
type client struct {
	who     id.Tenant
	workers int
	cost    time.Duration
}

// shares runs clients for a virtual while. Their images lend their turns. It returns the
// engine time that each tenant got, and how many of its images were refused.
func shares(t *testing.T, q *fair.Queue, clients ...client) (had map[id.Tenant]time.Duration, refused map[id.Tenant]int) {
	t.Helper()
	had, refused = map[id.Tenant]time.Duration{}, map[id.Tenant]int{}
	ctx, cancel := context.WithTimeout(t.Context(), runs)
	defer cancel()
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, c := range clients {
		for range c.workers {
			work.Go(func() {
				for ctx.Err() == nil {
					err := steps(ctx, q, c.who, c.cost)
					if err != nil {
						time.Sleep(10 * time.Millisecond)
					}
					mu.Lock()
					if err == nil {
						had[c.who] += c.cost
					} else if errors.Is(err, fair.ErrFull) {
						refused[c.who]++
					}
					mu.Unlock()
				}
			})
		}
	}
	work.Wait()
	return had, refused
}

// The share is that of the workers' time.
func TestFloodGetsOnlyItsShare(t *testing.T) {
	t.Parallel()
	f := func(what string, slots int, clients []client, want map[id.Tenant]float64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			q := fair.NewQueue(slots, 32*slots)
			had, _ := shares(t, q, clients...)
			for who, part := range want {
				if got := had[who].Seconds() / runs.Seconds(); got < .93*part || got > 1.07*part {
					t.Errorf("%s: tenant %v had %.2f of a worker, want %.2f", what, who.UUID[0], got, part)
				}
			}
			if q.Waiting() != 0 {
				t.Errorf("%s: %d wait when all have ended", what, q.Waiting())
			}
		})
	}
	const ms = time.Millisecond
	f("a flood beside four", 1, []client{{alice, 200, 20 * ms}, {bob, 4, 20 * ms}}, map[id.Tenant]float64{alice: .5, bob: .5})
	f("a flood beside one at a time", 1, []client{{alice, 200, 20 * ms}, {bob, 1, 20 * ms}}, map[id.Tenant]float64{alice: .5, bob: .5})
	f("large photos beside small ones", 1, []client{{alice, 20, 200 * ms}, {bob, 20, 20 * ms}}, map[id.Tenant]float64{alice: .5, bob: .5})
	f("one large photo at a time beside small ones", 1, []client{{alice, 1, 400 * ms}, {bob, 20, 20 * ms}}, map[id.Tenant]float64{alice: .5, bob: .5})
	f("three on two workers", 2, []client{{alice, 300, 20 * ms}, {bob, 30, 20 * ms}, {carol, 10, 20 * ms}}, map[id.Tenant]float64{alice: .667, bob: .667, carol: .667})
	f("one large photo at a time beside two floods", 2, []client{{alice, 20, 20 * ms}, {bob, 20, 400 * ms}, {carol, 1, 400 * ms}}, map[id.Tenant]float64{alice: .667, bob: .667, carol: .667})
	f("alone", 2, []client{{alice, 50, 20 * ms}}, map[id.Tenant]float64{alice: 2})
}

// steps runs an image of four steps that take cost together, and lends its turn between them.
func steps(ctx context.Context, q *fair.Queue, who id.Tenant, cost time.Duration) error {
	turn, err := q.Enter(ctx, who)
	if err != nil {
		return err
	}
	defer turn.End()
	for range 4 {
		time.Sleep(cost / 4)
		if turn.Wanted() {
			if err := turn.Lend(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// A quiet tenant's image beside a flood of all workers waits for one step of an image, or for
// the rest of one that has lent its turn before. So it takes at most twice its time, and
// usually little more than that. A flood that sends one image after the other looks quiet as
// well, and gets no more.
func TestFloodAtMostDoublesLatency(t *testing.T) {
	t.Parallel()
	const cost, images = 20 * time.Millisecond, 200
	f := func(workers, atOnce int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			q := fair.NewQueue(workers, 32*workers)
			ctx, cancel := context.WithTimeout(t.Context(), runs)
			defer cancel()
			var flood sync.WaitGroup
			for range atOnce {
				flood.Go(func() {
					for ctx.Err() == nil {
						if steps(ctx, q, alice, cost) != nil {
							time.Sleep(10 * time.Millisecond)
						}
					}
				})
			}
			random := rand.New(rand.NewPCG(uint64(workers), 1))
			var all time.Duration
			for range images {
				time.Sleep(time.Duration(random.Int64N(int64(4 * cost))))
				began := time.Now()
				if err := steps(t.Context(), q, bob, cost); err != nil || time.Since(began) > 2*cost {
					t.Errorf("%d workers, a flood of %d: %v took %v, alone %v: %v", workers, atOnce, bob, time.Since(began), cost, err)
				}
				all += time.Since(began)
			}
			if mean := all / images; mean > cost*5/4 {
				t.Errorf("%d workers, a flood of %d: a mean of %v, alone %v", workers, atOnce, mean, cost)
			}
			cancel()
			flood.Wait()
		})
	}
	f(1, 1)
	for workers := 1; workers <= 4; workers++ {
		f(workers, 200)
	}
}

// entered starts to wait for a turn in a bubble, and returns a channel for it.
func entered(t *testing.T, q *fair.Queue, who id.Tenant) chan *fair.Turn {
	begun := make(chan *fair.Turn, 1)
	go func() {
		turn, err := q.Enter(t.Context(), who)
		if err != nil {
			t.Error(err)
		}
		begun <- turn
	}()
	synctest.Wait()
	return begun
}

// A turn is lent once, to a quiet tenant and not to jobs. The lender goes on before others
// start.
func TestTurnIsLentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(1, 64)
		enter := func(who id.Tenant) chan *fair.Turn { return entered(t, q, who) }
		lender := <-enter(alice)
		job, more := enter(id.Tenant{}), enter(alice)
		if lender.Wanted() {
			t.Error("a job, or the same tenant, wants the turn")
		}
		other := enter(bob)
		if !lender.Wanted() {
			t.Error("another tenant does not want the turn")
		}
		back := make(chan error, 1)
		go func() { back <- lender.Lend(t.Context()) }()
		borrower := <-other
		third := enter(carol)
		if borrower.Wanted() {
			t.Error("a second turn would be lent")
		}
		borrower.End()
		if err := <-back; err != nil || len(third)+len(job)+len(more) > 0 {
			t.Errorf("%v; %d, %d, %d turns started before the lender goes on", err, len(third), len(job), len(more))
		}
		if lender.Wanted() || lender.Lend(t.Context()) != nil {
			t.Error("a turn would be lent twice")
		}
		lender.End()
		for _, begun := range []chan *fair.Turn{third, job, more} {
			go func() { (<-begun).End() }()
		}
		synctest.Wait()
		if q.Waiting() != 0 {
			t.Errorf("%d wait when all have ended", q.Waiting())
		}
	})
}

// A lender whose client goes away loses its turn, and the queue goes on.
func TestCancelledLenderLosesItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(1, 64)
		ctx, cancel := context.WithCancel(t.Context())
		lender, err := q.Enter(ctx, alice)
		must.Do(t, err)
		begun := entered(t, q, bob)
		back := make(chan error)
		go func() { back <- lender.Lend(ctx) }()
		borrower := <-begun
		cancel()
		if err := <-back; !errors.Is(err, context.Canceled) {
			t.Errorf("lent with %v", err)
		}
		lender.End()
		borrower.End()
		for range 2 { // the one slot is free again
			turn, err := q.Enter(t.Context(), alice)
			must.Do(t, err)
			turn.End()
		}
	})
}

// An idle tenant gets no claim to the time that it did not use. A tenant that goes
// away still owes the time above its share.
func TestIdleTenantGetsNoClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(1, 64)
		both := []client{{alice, 10, 20 * time.Millisecond}, {bob, 10, 20 * time.Millisecond}}
		shares(t, q, both[0])
		had, _ := shares(t, q, both...)
		if got := had[alice].Seconds() / runs.Seconds(); got < .47 || got > .53 {
			t.Errorf("who worked alone for a while had %.2f of the next one, want half", got)
		}
	})
}

// The queue is bounded in all and for each tenant.
func TestQueueKeepsRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(1, 32)
		turn, err := q.Enter(t.Context(), alice)
		must.Do(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		var mu sync.Mutex
		refused := map[id.Tenant]int{}
		enter := func(who id.Tenant) {
			waiting.Go(func() {
				turn, err := q.Enter(ctx, who)
				if err == nil {
					turn.End()
					t.Error("a turn began while another had the only slot")
				}
				if errors.Is(err, fair.ErrFull) {
					mu.Lock()
					refused[who]++
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		for range 100 {
			enter(alice)
		}
		if q.Waiting() != 25 || !q.Crowded(alice) || q.Crowded(bob) {
			t.Errorf("%d of a flood wait, crowded for it %v and for another %v; want 25, true, false", q.Waiting(), q.Crowded(alice), q.Crowded(bob))
		}
		enter(bob)
		if refused[bob] != 0 {
			t.Error("a tenant that has nothing in the queue was refused")
		}
		for n := range byte(100) {
			enter(tenant(10 + n))
		}
		if q.Waiting() != q.Limit() || q.Limit() != 32 {
			t.Errorf("%d wait, at most 32 may", q.Waiting())
		}
		cancel()
		waiting.Wait()
		turn.End()
		if q.Waiting() != 0 || q.Crowded(alice) {
			t.Errorf("%d wait after all gave up", q.Waiting())
		}
	})
}

// After a storm of cancellations, many at the moment when a turn begins, all slots are free.
func TestCancelledCallerLosesNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(3, 64)
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		var storm sync.WaitGroup
		ms := func(most int) time.Duration { return time.Duration(random.IntN(most)) * time.Millisecond }
		for range 2000 {
			who, begin, patience, cost := tenant(byte(random.IntN(4))), ms(1000), ms(5), ms(5)
			storm.Go(func() {
				time.Sleep(begin)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if turn, err := q.Enter(ctx, who); err == nil {
					time.Sleep(cost)
					turn.End()
				}
			})
		}
		storm.Wait()
		if q.Waiting() != 0 {
			t.Fatalf("seed %d: %d wait", seed, q.Waiting())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range 4 { // a fourth turn beside three waits for ever
			if _, err := q.Enter(ctx, alice); (err == nil) != (i < 3) {
				t.Errorf("seed %d: turn %d: %v", seed, i+1, err)
			}
		}
	})
}

func TestPoolKeepsSomeForTheNext(t *testing.T) {
	t.Parallel()
	const size = 1000
	p := fair.NewPool[id.Tenant](size)
	fill := func(who id.Tenant) (n int64) {
		for p.Take(who, 1) {
			n++
		}
		return n
	}
	for i, want := range []int64{800, 160, 32} {
		if got := fill(tenant(byte(1 + i))); got != want {
			t.Errorf("tenant %d gets %d of %d, want %d", i+1, got, size, want)
		}
	}
	p.Give(alice, 800)
	if got := fill(bob); got < 480 {
		t.Errorf("after the first has given back the second gets %d more only", got)
	}
	if p.Used() > p.Max() || p.Most() != 992 {
		t.Errorf("%d of %d are taken, %d at most, want 992", p.Used(), p.Max(), p.Most())
	}
}

func TestNewTenantGetsLargePiece(t *testing.T) {
	t.Parallel()
	p := fair.NewPool[id.Tenant](100)
	if !p.Take(alice, 90) || p.Take(alice, 5) || p.Take(bob, 11) || !p.Take(bob, 10) || p.Room(carol, 1) {
		t.Errorf("%d of 100 are taken", p.Used())
	}
	p.Give(alice, 90)
	p.Give(bob, 10)
	if p.Used() != 0 || !p.Take(alice, 0) || !p.Room(alice, 100) {
		t.Errorf("%d are taken when all was given back", p.Used())
	}
}

func BenchmarkTurn(b *testing.B) {
	q := fair.NewQueue(2, 64)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		turn, err := q.Enter(ctx, alice)
		must.Do(b, err)
		turn.End()
	}
}
