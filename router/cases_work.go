package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard/job"
	"facet/shard/seal"
)

// caseKept is how long a closed case stays.
const caseKept = 30 * 24 * time.Hour

// caseItem is an item of the job: a case and its sealed form, which is empty if the item is free.
type caseItem struct {
	job.Case
	sealed []byte
}

// caseWork is the work of a node as the leader of homes.
type caseWork struct {
	// turn has room for one: the leader changes one case at a time.
	turn chan struct{}
	// closed counts cases by the state in which they were closed here, and dropped doubtful verifications of
	// this node that got no case.
	closed  [job.CaseErased + 1]atomic.Uint64
	dropped atomic.Uint64

	mu   sync.Mutex             // guards open
	open map[id.Batch]openCases // as of the last look or change here
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
	w := &r.cases
	f := CaseFigures{Closed: map[string]uint64{}, Dropped: w.dropped.Load()}
	for s := job.CaseSame; s <= job.CaseErased; s++ {
		f.Closed[StateName(s)] = w.closed[s].Load()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for batch, o := range w.open {
		if g, err := r.localGroup(batch.Shard()); err != nil || !g.IsLeader() || o.number == 0 {
			continue
		}
		f.Open += o.number
		if at := time.UnixMilli(o.oldest).UTC(); f.Oldest.IsZero() || at.Before(f.Oldest) {
			f.Oldest = at
		}
	}
	return f
}

// note remembers how many cases are open, and counts the one that a change has closed.
func (w *caseWork) note(batch id.Batch, items []caseItem, now int64, closed job.CaseState) {
	var o openCases
	for _, i := range items {
		if len(i.sealed) == 0 || i.At(now).State != job.CaseOpen {
			continue
		}
		if o.number++; o.oldest == 0 || i.Created < o.oldest {
			o.oldest = i.Created
		}
	}
	if closed != job.CaseOpen {
		w.closed[closed].Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[id.Batch]openCases{}
	}
	if w.open[batch] = o; o.number == 0 {
		delete(w.open, batch)
	}
}

// caseBook is the cases of a gallery on this node, which leads their shard.
type caseBook struct {
	r     *cluster
	group *raftfsm.Group
	name  shardfsm.JobName
	key   *seal.Key
	items []caseItem
	now   int64
}

// readCases returns the cases of a gallery.
func (r *Router) readCases(ctx context.Context, group id.Shard, name shardfsm.JobName) (*caseBook, error) {
	book, err := r.readJobs(ctx, group)
	if err != nil {
		return nil, err
	}
	g, s, err := r.localReplica(group)
	if err != nil {
		return nil, err
	}
	if err := s.Check(name.Gallery, name.Generation); err != nil { // it was deleted
		return nil, outdated(err)
	}
	key, err := r.keyOf(ctx, name.Gallery)
	if err != nil {
		return nil, err
	}
	return openBook(r.cluster, g, book, name, key)
}

// openBook decrypts the cases in a book.
func openBook(r *cluster, g *raftfsm.Group, book *job.Book, name shardfsm.JobName, key *seal.Key) (*caseBook, error) {
	b := &caseBook{r: r, group: g, name: name, key: key, now: r.clock.Now().UnixMilli()}
	page, _, err := book.Page(jobName(name), 0, CasesMax)
	if err != nil && !errors.Is(err, job.ErrUnknown) {
		return nil, err
	}
	for _, rec := range page {
		item := caseItem{sealed: rec.Sealed}
		if len(rec.Sealed) > 0 {
			if item.Case, err = job.OpenCase(key, name.Gallery, name.Generation, rec.Sealed); err != nil {
				return nil, err
			}
		}
		b.items = append(b.items, item)
	}
	return b, nil
}

// changingCases calls change with the cases of a gallery. Meanwhile nobody else changes cases on this node.
func changingCases[A any](ctx context.Context, r *Router, group id.Shard, name shardfsm.JobName, change func(*caseBook) (A, error)) (a A, err error) {
	select {
	case r.cases.turn <- struct{}{}:
		defer func() { <-r.cases.turn }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	b, err := r.readCases(ctx, group, name)
	if err != nil {
		return a, err
	}
	return change(b)
}

// errCaseChanged is returned when another leader changed the cases meanwhile.
var errCaseChanged = &Error{Kind: Unavailable, Message: "the cases of the gallery have changed meanwhile; try again", RetryAfter: calls.RetryLater}

// put replaces an item by a case, or frees it if c is nil.
func (b *caseBook) put(ctx context.Context, index int, c *job.Case, share shardfsm.JobShare) (shardfsm.Status, error) {
	put := shardfsm.PutItem{Name: b.name, Kind: job.Cases, Index: uint32(index), Time: b.now, Share: share}
	var before caseItem
	if index < len(b.items) {
		before = b.items[index]
		put.Old = before.sealed
	}
	if c != nil {
		put.New = job.SealCase(b.key, b.name.Gallery, b.name.Generation, c)
	}
	a, err := propose(ctx, b.group, shardfsm.PutItemOp, put)
	if err != nil || a.Status != shardfsm.Done {
		return a.Status, err
	}
	if index == len(b.items) {
		b.items = append(b.items, caseItem{})
	}
	b.items[index] = caseItem{sealed: put.New}
	closed := job.CaseOpen
	if c != nil {
		b.items[index].Case = *c
		if before.State == job.CaseOpen && len(before.sealed) > 0 {
			closed = c.State
		}
	}
	if closed == job.CaseExpired {
		caseExpired(b.r, GalleryVersion{b.name.Gallery, b.name.Generation}, c)
	}
	b.r.cases.note(b.name.Batch, b.items, b.now, closed)
	return a.Status, nil
}

// place returns where a new case goes: a free item, one more, or that of the case that was closed first. ok is
// false if all cases are open.
func (b *caseBook) place() (index int, ok bool) {
	free := slices.IndexFunc(b.items, func(i caseItem) bool { return len(i.sealed) == 0 })
	if free >= 0 {
		return free, true
	}
	if len(b.items) < CasesMax {
		return len(b.items), true
	}
	var first int64
	for i, item := range b.items {
		if c := item.At(b.now); c.State != job.CaseOpen && (!ok || c.Closed < first) {
			index, first, ok = i, c.Closed, true
		}
	}
	return index, ok
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

// caseOpen opens a case, unless the request was here before, or an open case has the same application, subject
// and reference.
var caseOpen = method[openCaseQuery, openCaseAnswer]{Name: "case.open", Run: func(ctx context.Context, r *Router, group id.Shard, q openCaseQuery) (openCaseAnswer, error) {
	return changingCases(ctx, r, group, q.Name, func(b *caseBook) (openCaseAnswer, error) {
		for _, i := range b.items {
			c := i.At(b.now)
			again := c.State == job.CaseOpen && c.Reference != "" && c.Reference == q.Case.Reference &&
				c.Subject == q.Case.Subject && c.Application == q.Case.Application
			if len(i.sealed) > 0 && (again || c.ID == q.Case.ID) {
				return openCaseAnswer{c.ID}, nil
			}
		}
		index, ok := b.place()
		if !ok {
			return openCaseAnswer{}, nil
		}
		q.Case.Created = b.now
		q.Case.Expires = b.now + (time.Duration(q.Days) * 24 * time.Hour).Milliseconds()
		status, err := b.put(ctx, index, &q.Case, q.Share)
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
}}

// decideQuery adds a verdict, whose time the leader sets.
type decideQuery struct {
	Name    shardfsm.JobName  `cbor:"1,keyasint"`
	Case    id.UUID           `cbor:"2,keyasint"`
	Verdict job.Verdict       `cbor:"3,keyasint"`
	Share   shardfsm.JobShare `cbor:"4,keyasint,omitzero"`
}

var caseDecide = method[decideQuery, job.Case]{Name: "case.decide", Run: func(ctx context.Context, r *Router, group id.Shard, q decideQuery) (job.Case, error) {
	return changingCases(ctx, r, group, q.Name, func(b *caseBook) (c job.Case, err error) {
		index := slices.IndexFunc(b.items, func(i caseItem) bool { return len(i.sealed) > 0 && i.ID == q.Case })
		if index < 0 {
			return c, caseNotFound()
		}
		c = b.items[index].At(b.now)
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
		status, err := b.put(ctx, index, &c, q.Share)
		if err == nil && status != shardfsm.Done {
			err = errCaseChanged
		}
		return c, err
	})
}}

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

var caseList = method[listCasesQuery, listCasesAnswer]{Name: "case.list", Run: func(ctx context.Context, r *Router, group id.Shard, q listCasesQuery) (a listCasesAnswer, err error) {
	b, err := r.readCases(ctx, group, q.Name)
	if err != nil {
		return a, err
	}
	for _, i := range b.items {
		c := i.At(b.now)
		if len(i.sealed) == 0 || !q.Filter.admits(c.State) || !q.Only.IsZero() && c.ID != q.Only {
			continue
		}
		if a.Total++; placeOf(c).compare(q.After) > 0 {
			a.Cases = append(a.Cases, c)
		}
	}
	slices.SortFunc(a.Cases, func(x, y job.Case) int { return placeOf(x).compare(placeOf(y)) })
	if length := min(q.Length, CasesPageMax); len(a.Cases) > length {
		a.Cases, a.More = a.Cases[:length], true
	}
	return a, nil
}}

// redactCases closes the cases of a gallery whose time is over, erases those of subjects that are gone, and
// frees the items of cases that were closed caseKept ago, on a shard that this node leads.
func (r *duplicateRequests) redactCases(ctx context.Context, group *raftfsm.Group, book *job.Book, name shardfsm.JobName) error {
	g, err := r.compared(ctx, name)
	if err != nil {
		return err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return err
	}
	b, err := openBook(r.cluster, group, book, name, key)
	if err != nil {
		return err
	}
	var subjects []id.Subject
	for _, i := range b.items {
		if !i.Subject.IsZero() {
			subjects = append(subjects, i.Subject)
		}
	}
	there, err := subjectsOf(ctx, r.cluster, g, subjects, false)
	if err != nil {
		return err
	}
	r.cases.note(name.Batch, b.items, b.now, job.CaseOpen)
	share := r.jobShare(g.Tenant)
	for index, i := range b.items {
		if len(i.sealed) == 0 {
			continue
		}
		c := i.At(b.now)
		_, present := there[c.Subject]
		switch {
		case c.State != job.CaseOpen && b.now-c.Closed > caseKept.Milliseconds():
			_, err = b.put(ctx, index, nil, share)
		case c.State != job.CaseErased && !present:
			c = c.Erased(b.now)
			_, err = b.put(ctx, index, &c, share)
		case c.State != i.State:
			_, err = b.put(ctx, index, &c, share)
		}
		if err != nil { // a case that was changed meanwhile is for the next round
			return err
		}
	}
	return nil
}
