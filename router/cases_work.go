package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard/job"
	"facet/shard/seal"
)

// caseKept is how long a closed case stays.
const caseKept = 30 * 24 * time.Hour

// caseWork is the work of a node as the leader of homes.
type caseWork struct {
	// looks lets one request at a time look at the cases of a gallery.
	looks *fair.Queue
	uses  uint64 // counts looks
	// closed counts cases by the state in which they were closed here, and dropped doubtful verifications of
	// this node that got no case.
	closed  [job.CaseErased + 1]atomic.Uint64
	dropped atomic.Uint64

	mu        sync.Mutex // guards galleries
	galleries map[id.Batch]*galleryCases
}

func newCaseWork() *caseWork {
	return &caseWork{looks: fair.NewQueue(1, caseLooksMax), galleries: map[id.Batch]*galleryCases{}}
}

// openCases are how many cases of a gallery are open, and when the oldest one was opened.
type openCases struct {
	number int
	oldest int64
}

// CaseFigures are the figures of the cases of the galleries whose homes a node leads.
type CaseFigures struct {
	Open   int
	Oldest time.Time // of those that are open, or zero
	// Closed counts cases by the state in which they were closed on this node.
	Closed map[string]uint64
	// Dropped counts doubtful verifications of this node that got no case.
	Dropped uint64
}

// CaseFigures returns the figures of this node.
func (r *caseRequests) CaseFigures() CaseFigures {
	w := r.work
	f := CaseFigures{Closed: map[string]uint64{}, Dropped: w.dropped.Load()}
	for s := job.CaseSame; s <= job.CaseErased; s++ {
		f.Closed[StateName(s)] = w.closed[s].Load()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for batch, of := range w.galleries {
		o := of.open
		if _, _, ok := ledShard(r.cluster.groups, batch.Shard()); !ok || o.number == 0 {
			continue
		}
		f.Open += o.number
		if at := time.UnixMilli(o.oldest).UTC(); f.Oldest.IsZero() || at.Before(f.Oldest) {
			f.Oldest = at
		}
	}
	return f
}

// caseBook is the cases of a gallery on this node, which leads their shard.
type caseBook struct {
	r      *caseRequests
	group  *raftfsm.Group
	jobs   *job.Book
	name   shardfsm.JobName
	key    *seal.Key
	tenant id.Tenant
	now    int64
}

// readCases returns the cases of a gallery. A look at them has every change that was acknowledged before the call.
func (r *caseRequests) readCases(ctx context.Context, group id.Shard, name shardfsm.JobName) (*caseBook, error) {
	m, err := r.cluster.leaderMachine(ctx, group)
	if err != nil {
		return nil, err
	}
	g, s, err := r.cluster.localReplica(group)
	if err != nil {
		return nil, err
	}
	if err := s.Check(name.Gallery, name.Generation); err != nil { // it was deleted
		return nil, outdated(err)
	}
	key, err := keyOf(ctx, r.cluster, name.Gallery)
	if err != nil {
		return nil, err
	}
	of, _ := r.cluster.groups.Meta().Gallery(name.Gallery) // keyOf has waited for it
	return &caseBook{r, g, m.Jobs(), name, key, of.Tenant, r.cluster.clock.Now().UnixMilli()}, nil
}

// changingCases calls change with the cases of a gallery. Meanwhile nobody else changes them on this node.
func changingCases[A any](ctx context.Context, r *caseRequests, group id.Shard, name shardfsm.JobName, change func(*caseBook) (A, error)) (a A, err error) {
	of := r.work.of(name.Batch)
	select {
	case of.turn <- struct{}{}:
		defer func() { <-of.turn }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	b, err := r.readCases(ctx, group, name)
	if err != nil {
		return a, err
	}
	if a, err = change(b); err == nil {
		_ = b.look(ctx, func(*caseIndex) {}) // for the figures
	}
	return a, err
}

// errCaseChanged is returned when another leader changed the cases meanwhile.
var errCaseChanged = &Error{Kind: Unavailable, Message: "the cases of the gallery have changed meanwhile; try again", RetryAfter: calls.RetryLater}

// put replaces an item by a case, or frees it if c is nil.
func (b *caseBook) put(ctx context.Context, index int, before caseItem, c *job.Case, share shardfsm.JobShare) (shardfsm.Status, error) {
	put := shardfsm.PutItem{Name: b.name, Kind: job.Cases, Index: uint32(index), Old: before.sealed, Time: b.now, Share: share}
	if c != nil {
		put.New = job.SealCase(b.key, b.name.Gallery, b.name.Generation, c)
	}
	a, err := propose(ctx, b.group, shardfsm.PutItemOp, put)
	if err != nil || a.Status != shardfsm.Done {
		return a.Status, err
	}
	if c != nil && c.ID == before.ID && before.State == job.CaseOpen && c.State != job.CaseOpen {
		b.r.work.closed[c.State].Add(1)
		if c.State == job.CaseExpired {
			b.expired(c)
		}
	}
	return a.Status, nil
}

// expired reports the expiry of a case.
func (b *caseBook) expired(c *job.Case) {
	if g, ok := b.r.cluster.gallery(b.name.Gallery); ok {
		b.r.cluster.acted(Act{Log: g.Tenant, Operation: "expire case", Gallery: GalleryVersion{b.name.Gallery, b.name.Generation}, Case: c.ID})
	}
}

// openCaseQuery asks to open a case for Days.
type openCaseQuery struct {
	Name  shardfsm.JobName  `cbor:"1,keyasint"`
	Case  job.Case          `cbor:"2,keyasint"`
	Days  int               `cbor:"3,keyasint"`
	Share shardfsm.JobShare `cbor:"4,keyasint,omitzero"`
}

// openCaseAnswer has the id of the case, or none if there is no room.
type openCaseAnswer struct {
	Case id.UUID `cbor:"1,keyasint,omitzero"`
}

// caseOpen opens a case, unless the doubt belongs to one that is known (caseIndex.known), or the application has
// opened its most cases of a minute by the clock of this leader. These doubts, most of a flood, do not wait for the
// turn to change.
var caseOpen = calls.NewMethod("case.open", func(ctx context.Context, r *caseRequests, group id.Shard, q openCaseQuery) (a openCaseAnswer, err error) {
	var index int
	var before caseItem
	answered := func(b *caseBook) (done bool, err error) {
		err = b.look(ctx, func(x *caseIndex) {
			if a.Case, done = x.known(&q.Case, b.now); done {
				return
			}
			room := false
			index, room = x.place(b.now)
			before, done = x.at(index), !room || !x.mayOpen(q.Case.Application, b.now)
		})
		return done, err
	}
	b, err := r.readCases(ctx, group, q.Name)
	if err != nil {
		return a, err
	}
	if done, err := answered(b); done || err != nil {
		return a, err
	}
	return changingCases(ctx, r, group, q.Name, func(b *caseBook) (openCaseAnswer, error) {
		if done, err := answered(b); done || err != nil {
			return a, err
		}
		q.Case.Created = b.now
		q.Case.Expires = b.now + (time.Duration(q.Days) * 24 * time.Hour).Milliseconds()
		status, err := b.put(ctx, index, before, &q.Case, q.Share)
		switch {
		case err != nil:
			return openCaseAnswer{}, err
		case status == shardfsm.Done:
			return openCaseAnswer{q.Case.ID}, nil
		case status == shardfsm.JobsFull, status == shardfsm.OverJobs, status == shardfsm.OverJobItems:
			return openCaseAnswer{}, nil
		}
		return openCaseAnswer{}, errCaseChanged
	})
})

// decideQuery adds a verdict, whose time the leader sets.
type decideQuery struct {
	Name    shardfsm.JobName  `cbor:"1,keyasint"`
	Case    id.UUID           `cbor:"2,keyasint"`
	Verdict job.Verdict       `cbor:"3,keyasint"`
	Share   shardfsm.JobShare `cbor:"4,keyasint,omitzero"`
}

var caseDecide = calls.NewMethod("case.decide", func(ctx context.Context, r *caseRequests, group id.Shard, q decideQuery) (job.Case, error) {
	return changingCases(ctx, r, group, q.Name, func(b *caseBook) (c job.Case, err error) {
		index, known := 0, false
		var before caseItem
		err = b.look(ctx, func(x *caseIndex) {
			if index, known = x.byID[q.Case]; known {
				before = x.items[index]
			}
		})
		if err == nil && !known {
			err = caseNotFound()
		}
		if err != nil {
			return c, err
		}
		c = before.At(b.now)
		given := slices.IndexFunc(c.Verdicts, func(v job.Verdict) bool { return v.Holder == q.Verdict.Holder })
		switch {
		case given >= 0 && c.Verdicts[given].Same == q.Verdict.Same:
			return c, nil
		case c.State != job.CaseOpen:
			return c, caseClosed(&c)
		case given >= 0:
			return c, Errorf(InvalidRequest, ReasonVerdictGiven, "this holder has said otherwise; another person decides now")
		case c.Needed > 1 && q.Verdict.Holder == "":
			return c, Errorf(InvalidRequest, ReasonHolderNeeded, "two people decide on this case, and the access key has no holder; use one that has")
		}
		q.Verdict.Time = b.now
		c = c.Decided(q.Verdict)
		status, err := b.put(ctx, index, before, &c, q.Share)
		if err == nil && status != shardfsm.Done {
			err = errCaseChanged
		}
		return c, err
	})
})

// listCasesQuery asks for cases after a place, or for one case.
type listCasesQuery struct {
	Name   shardfsm.JobName `cbor:"1,keyasint"`
	Filter CaseFilter       `cbor:"2,keyasint,omitempty"`
	After  casePlace        `cbor:"3,keyasint,omitzero"`
	Length int              `cbor:"4,keyasint"`
	Only   id.UUID          `cbor:"5,keyasint,omitzero"`
}

// listCasesAnswer is a page of cases. Total counts all that the filter admits, and More reports that others
// follow.
type listCasesAnswer struct {
	Cases []job.Case `cbor:"1,keyasint,omitempty"`
	Total int        `cbor:"2,keyasint"`
	More  bool       `cbor:"3,keyasint,omitempty"`
}

var caseList = calls.NewMethod("case.list", func(ctx context.Context, r *caseRequests, group id.Shard, q listCasesQuery) (a listCasesAnswer, err error) {
	b, err := r.readCases(ctx, group, q.Name)
	if err != nil {
		return a, err
	}
	err = b.look(ctx, func(x *caseIndex) { a = x.page(q, b.now) })
	return a, err
})

// redactCases redacts the cases of the shards that this node leads: it erases those of subjects that are gone,
// closes those whose time is over, and removes those that were closed long ago.
func (r *caseRequests) redactCases(ctx context.Context) error {
	var failed []error
	led := map[id.Batch]bool{}
	for _, s := range r.cluster.Shards() {
		g, m, ok := ledShard(r.cluster.groups, s)
		if !ok {
			continue
		}
		for _, n := range m.Jobs().Batches(job.Cases) {
			led[n.Batch] = true
			failed = append(failed, r.redactBook(ctx, g, m.Jobs(), shardfsm.JobName(n)))
		}
	}
	r.work.keepOnly(led)
	return errors.Join(failed...)
}

// redactBook closes the cases of a gallery whose time is over, erases those of subjects that are gone, and
// frees the items of cases that were closed caseKept ago, on a shard that this node leads.
func (r *caseRequests) redactBook(ctx context.Context, group *raftfsm.Group, book *job.Book, name shardfsm.JobName) error {
	g, there, err := confirmedGallery(ctx, r.cluster, name.Gallery, name.Generation)
	if err != nil || !there {
		return err
	}
	key, err := r.cluster.dataKey(g.Gallery)
	if err != nil {
		return err
	}
	b := &caseBook{r, group, book, name, key, g.Tenant, r.cluster.clock.Now().UnixMilli()}
	var items []caseItem
	if err := b.look(ctx, func(x *caseIndex) { items = slices.Clone(x.items) }); err != nil {
		return err
	}
	var subjects []id.Subject
	for _, i := range items {
		if !i.Subject.IsZero() {
			subjects = append(subjects, i.Subject)
		}
	}
	left, err := subjectsOf(ctx, r.cluster, g, subjects, false)
	if err != nil {
		return err
	}
	share := jobShare(r.cluster, g.Tenant)
	for index, i := range items {
		if len(i.sealed) == 0 {
			continue
		}
		c := i.At(b.now)
		_, present := left[c.Subject]
		switch {
		case c.State != job.CaseOpen && b.now-c.Closed > caseKept.Milliseconds():
			_, err = b.put(ctx, index, i, nil, share)
		case c.State != job.CaseErased && !present:
			c = c.Erased(b.now)
			_, err = b.put(ctx, index, i, &c, share)
		case c.State != i.State:
			_, err = b.put(ctx, index, i, &c, share)
		}
		if err != nil { // a case that was changed meanwhile is for the next round
			return err
		}
	}
	return b.look(ctx, func(*caseIndex) {}) // for the figures
}
