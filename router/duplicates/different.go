package duplicates

import (
	"context"
	"errors"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/bulk"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard/job"
	"facet/shard/seal"
)

// Somebody who has looked at both subjects of a pair may find that they are different people. The gallery's
// home keeps that in a job of its own (job.Different), whose id follows from the gallery's key. An item of it
// is one pair, or free. Reports leave such pairs out.

// differentTries is how often a place for a pair is looked for, while other requests take them.
const differentTries = 8

// differentItem is an item of the job: two subjects, the smaller id first, and their sealed form, which is
// empty if the item is free.
type differentItem struct {
	pair   [2]id.Subject
	sealed []byte
}

func differentName(g cluster.Gallery) shardfsm.JobName {
	return router.ItemsName(g.Gallery, job.Different, g.ShardIDs[0])
}

// different returns the items of a gallery.
func (r *DuplicateRequests) different(ctx context.Context, g cluster.Gallery, key *seal.Key) ([]differentItem, error) {
	var items []differentItem
	for name := differentName(g); ; {
		q := bulk.JobPageQuery{Name: name, From: uint32(len(items)), Length: router.BulkPageMax}
		a, err := calls.CallLeader(ctx, r.cluster.Calls, bulk.JobPage, name.Batch.Shard(), q)
		if err != nil {
			return nil, err
		}
		for _, rec := range a.Records {
			item, err := openDifferent(g, key, rec)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		if len(a.Records) == 0 || len(items) >= int(a.Total) {
			return items, nil
		}
	}
}

func openDifferent(g cluster.Gallery, key *seal.Key, rec job.Record) (item differentItem, err error) {
	if len(rec.Sealed) == 0 {
		return item, nil
	}
	item.sealed = rec.Sealed
	item.pair[0], item.pair[1], err = job.OpenDifferent(key, g.ID, g.Generation, rec.Sealed)
	return item, err
}

// SetDifferent remembers that two subjects of a gallery are different people. The error is NotFound if one of
// them is gone.
func (r *DuplicateRequests) SetDifferent(ctx context.Context, access router.Access, a, b id.Subject) error {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return err
	}
	switch pair := sortedPair(a, b); {
	case a == b:
		return router.Errorf(router.InvalidRequest, "", "name two subjects, not one twice")
	case !g.Holds(a.Shard()) || !g.Holds(b.Shard()):
		return admission.SubjectNotFound()
	default:
		return r.setDifferent(ctx, g, key, pair)
	}
}

func (r *DuplicateRequests) setDifferent(ctx context.Context, g cluster.Gallery, key *seal.Key, pair [2]id.Subject) error {
	there, err := lookup.Present(ctx, r.cluster, g, slices.Clone(pair[:]), false)
	if err == nil && len(there) < len(pair) {
		err = admission.SubjectNotFound()
	}
	if err != nil {
		return err
	}
	for range differentTries {
		items, err := r.different(ctx, g, key)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(items, func(i differentItem) bool { return i.pair == pair }) {
			return nil
		}
		index := slices.IndexFunc(items, func(i differentItem) bool { return len(i.sealed) == 0 })
		if index < 0 {
			index = len(items)
		}
		if index >= router.DifferentMax {
			return router.Errorf(router.InvalidRequest, "", "the gallery has the most pairs of different subjects, %d; take some back first", router.DifferentMax)
		}
		sealed := job.SealDifferent(key, g.ID, g.Generation, pair[0], pair[1])
		if done, err := r.putItem(ctx, g, index, nil, sealed); done || err != nil {
			return err
		}
	}
	return &router.Error{Kind: router.Busy, Message: "other requests say at the same time who is different; try again", RetryAfter: calls.RetryLater}
}

// UnsetDifferent takes back that two subjects are different. The error is NotFound if nobody said so.
func (r *DuplicateRequests) UnsetDifferent(ctx context.Context, access router.Access, a, b id.Subject) error {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return err
	}
	items, err := r.different(ctx, g, key)
	if err != nil {
		return err
	}
	known := false
	for i, item := range items {
		if item.pair != sortedPair(a, b) || len(item.sealed) == 0 {
			continue
		}
		known = true
		if _, err := r.putItem(ctx, g, i, item.sealed, nil); err != nil { // another request may have done it
			return err
		}
	}
	if !known {
		return router.Errorf(router.NotFound, "", "nobody said that these two subjects are different")
	}
	return nil
}

// Different returns a page of the pairs of different subjects: the first one, or the one that after, the next
// of another one, names. total counts all, those of subjects that went since included.
func (r *DuplicateRequests) Different(ctx context.Context, access router.Access, after string, length int) (list []router.DuplicatePair, total int, next string, err error) {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return nil, 0, "", err
	}
	items, err := r.different(ctx, g, key)
	if err != nil {
		return nil, 0, "", err
	}
	for _, item := range items {
		if len(item.sealed) > 0 {
			list = append(list, router.DuplicatePair{Subjects: [2]router.DuplicateSubject{{Subject: item.pair[0]}, {Subject: item.pair[1]}}})
		}
	}
	total = len(list)
	batch := differentName(g).Batch
	from, ok := readDuplicatesCursor(batch, total, after)
	if !ok {
		return nil, 0, "", unknownDuplicatesCursor()
	}
	if list = list[from:]; len(list) > length {
		list, next = list[:length], duplicatesCursor(batch, total, from+length)
	}
	list, err = r.present(ctx, g, list)
	return list, total, next, err
}

// putItem replaces the text of an item. done is false if the item has another text than old.
func (r *DuplicateRequests) putItem(ctx context.Context, g cluster.Gallery, index int, old, sealed []byte) (done bool, err error) {
	name := differentName(g)
	a, err := bulk.Ask(ctx, r.cluster, jobPut, name.Batch.Shard(), shardfsm.PutItem{
		Name: name, Index: uint32(index), Old: old, New: sealed, Time: time.Now().UnixMilli(), Share: admission.JobShare(r.cluster, g.Tenant),
	})
	if a.Status == shardfsm.Conflict || a.Status == shardfsm.JobItemsMissing {
		return false, nil
	}
	return err == nil, err
}

// withoutDifferent returns the pairs of a report that nobody found to be different, and counts the others.
func (r *DuplicateRequests) withoutDifferent(ctx context.Context, g cluster.Gallery, key *seal.Key, pairs []job.Pair) (left []job.Pair, different int, err error) {
	items, err := r.different(ctx, g, key)
	if err != nil {
		return nil, 0, err
	}
	said := make(map[[2]id.Subject]bool, len(items))
	for _, item := range items {
		said[item.pair] = true
	}
	left = slices.DeleteFunc(pairs, func(p job.Pair) bool { return said[[2]id.Subject{p.A, p.B}] })
	return left, len(pairs) - len(left), nil
}

func sortedPair(a, b id.Subject) [2]id.Subject {
	if lookup.CompareSubjects(a, b) > 0 {
		a, b = b, a
	}
	return [2]id.Subject{a, b}
}

// redactDifferent takes pairs of subjects that are gone out of the items of a gallery on a shard that this
// node leads.
func (r *DuplicateRequests) redactDifferent(ctx context.Context, book *job.Book, name shardfsm.JobName) error {
	g, err := r.compared(ctx, name)
	if err != nil {
		return err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return err
	}
	for from := 0; ; {
		page, _, err := book.Page(job.Name(name), uint32(from), blocksPage)
		if err != nil || len(page) == 0 { // dropped meanwhile, or the end
			return nil
		}
		var subjects []id.Subject
		items := make([]differentItem, len(page))
		for i, rec := range page {
			if items[i], err = openDifferent(g, key, rec); err != nil {
				return err
			}
			if len(rec.Sealed) > 0 {
				subjects = append(subjects, items[i].pair[:]...)
			}
		}
		there, err := lookup.Present(ctx, r.cluster, g, subjects, false)
		if err != nil {
			return err
		}
		for i, item := range items {
			_, first := there[item.pair[0]]
			if _, second := there[item.pair[1]]; len(item.sealed) == 0 || first && second {
				continue
			}
			if _, err := r.putItem(ctx, g, from+i, item.sealed, nil); err != nil {
				return err
			}
		}
		from += len(page)
	}
}

var jobPut = cluster.ShardCommand("job.put", shardfsm.PutItemOp, func(c *shardfsm.PutItem) *int64 { return &c.Time })

// redactAll calls redact for each job of a kind on a shard, and collects the errors.
func redactAll(book *job.Book, kind job.Kind, redact func(shardfsm.JobName) error) (failed []error) {
	for _, n := range book.Batches(kind) {
		err := redact(shardfsm.JobName(n))
		if err != nil && !errors.Is(err, ErrLost) {
			failed = append(failed, err)
		}
	}
	return failed
}
