package reviews

import (
	"context"
	"errors"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard/job"
)

// caseKept is how long a closed case stays.
const caseKept = 30 * 24 * time.Hour

// CaseFigures returns the figures of this node.
func (r *CaseRequests) CaseFigures() router.CaseFigures {
	w := r.work
	f := router.CaseFigures{Closed: map[string]uint64{}, Dropped: w.dropped.Load()}
	for s := job.CaseSame; s <= job.CaseErased; s++ {
		f.Closed[router.StateName(s)] = w.closed[s].Load()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for batch, of := range w.galleries {
		o := of.open
		if _, _, ok := cluster.LedShard(r.cluster.Groups, batch.Shard()); !ok || o.number == 0 {
			continue
		}
		f.Open += o.number
		if at := time.UnixMilli(o.oldest).UTC(); f.Oldest.IsZero() || at.Before(f.Oldest) {
			f.Oldest = at
		}
	}
	return f
}

// caseOpen opens a case, unless the doubt belongs to one that is known (caseIndex.known), or the application has
// opened its most cases of a minute by the clock of this leader. These doubts, most of a flood, do not wait for the
// turn to change.
var caseOpen = calls.NewMethod("case.open", func(ctx context.Context, r *CaseRequests, group id.Shard, q openCaseQuery) (a openCaseAnswer, err error) {
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

var caseDecide = calls.NewMethod("case.decide", func(ctx context.Context, r *CaseRequests, group id.Shard, q decideQuery) (job.Case, error) {
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
			return c, router.Errorf(router.InvalidRequest, router.ReasonVerdictGiven, "this holder has said otherwise; another person decides now")
		case c.Needed > 1 && q.Verdict.Holder == "":
			return c, router.Errorf(router.InvalidRequest, router.ReasonHolderNeeded, "two people decide on this case, and the access key has no holder; use one that has")
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

var caseList = calls.NewMethod("case.list", func(ctx context.Context, r *CaseRequests, group id.Shard, q listCasesQuery) (a listCasesAnswer, err error) {
	b, err := r.readCases(ctx, group, q.Name)
	if err != nil {
		return a, err
	}
	err = b.look(ctx, func(x *caseIndex) { a = x.page(q, b.now) })
	return a, err
})

// RedactCases redacts the cases of the shards that this node leads: it erases those of subjects that are gone,
// closes those whose time is over, and removes those that were closed long ago.
func (r *CaseRequests) RedactCases(ctx context.Context) error {
	var failed []error
	led := map[id.Batch]bool{}
	for _, s := range r.cluster.Shards() {
		g, m, ok := cluster.LedShard(r.cluster.Groups, s)
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
func (r *CaseRequests) redactBook(ctx context.Context, group *raftfsm.Group, book *job.Book, name shardfsm.JobName) error {
	g, there, err := cluster.ConfirmedGallery(ctx, r.cluster, name.Gallery, name.Generation)
	if err != nil || !there {
		return err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return err
	}
	b := &caseBook{r, group, book, name, key, g.Tenant, r.cluster.Clock.Now().UnixMilli()}
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
	left, err := lookup.Present(ctx, r.cluster, g, subjects, false)
	if err != nil {
		return err
	}
	share := admission.JobShare(r.cluster, g.Tenant)
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
