package duplicates

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/bulk"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
	"facet/shard/job"
	"facet/shard/seal"
)

const purposeDuplicates = "duplicates"

// BeginDuplicates begins to compare a gallery with itself. The former comparison of the gallery ends,
// and its report goes. A retry with the same Write has no further effect, also after another comparison.
func (r *DuplicateRequests) BeginDuplicates(ctx context.Context, access router.Access, w router.Write, threshold int) (id.Batch, error) {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return id.Batch{}, err
	}
	home := g.ShardIDs[0]
	name := shardfsm.JobName{
		Gallery: g.ID, Generation: g.Generation,
		Batch: id.Batch{UUID: id.Derive(g.IDKey[:], purposeDuplicates, w.Operation, home)},
	}
	begin := shardfsm.BeginJob{
		Name: name, Application: access.Application, Request: w.Request,
		Time: time.Now().UnixMilli(), Share: admission.JobShare(r.cluster, g.Tenant), Kind: job.Duplicates,
		Write: shardfsm.JobWrite{Op: w.Operation, Request: w.Request, Keyed: w.Keyed, Share: admission.Share(r.cluster, g.Tenant)},
	}
	earlier, err := calls.CallLeader(ctx, r.cluster.Calls, bulk.JobPage, home, bulk.JobPageQuery{Name: name})
	if err == nil && earlier.Known {
		begin.Total = earlier.Total
		_, err = bulk.Ask(ctx, r.cluster, bulk.JobBegin, home, begin) // an error if it was another request
		return name.Batch, err
	}
	if err == nil { // an earlier try may have begun with other blocks
		_, err = calls.CallLeader(ctx, r.cluster.Calls, jobDrop, home, shardfsm.DropJob{Name: name, Time: time.Now().UnixMilli()})
	}
	if err != nil {
		return id.Batch{}, err
	}
	blocks, err := r.blocks(ctx, g, threshold)
	if err != nil {
		return id.Batch{}, err
	}
	begin.Total = uint32(len(blocks))
	return name.Batch, bulk.FillJob(ctx, r.cluster, home, begin, func(index uint32) []byte {
		return job.SealBlock(key, job.Name(name), index, blocks[index])
	})
}

// blocks returns the blocks of a gallery, at least one.
func (r *DuplicateRequests) blocks(ctx context.Context, g cluster.Gallery, threshold int) ([]job.Block, error) {
	q := blocksQuery{Gallery: g.ID, Generation: g.Generation, Size: min(max(blockEntries, int(g.Size/blocksMost)), blockEntriesMax)}
	ends, err := calls.Scatter(ctx, r.cluster.Calls, shardBlocks, g.ShardIDs, q)
	if err != nil {
		return nil, err
	}
	var list []job.Block
	for i, s := range g.ShardIDs {
		after := uint64(0)
		for _, last := range ends[i] {
			list = append(list, job.Block{Shard: s, After: after, Last: last, Threshold: threshold})
			after = last
		}
	}
	if len(list) == 0 {
		list = []job.Block{{Shard: g.ShardIDs[0], Threshold: threshold}}
	}
	if len(list) > job.ItemsMax {
		return nil, router.Errorf(router.InvalidRequest, "", "the gallery has too many entries to be compared with itself")
	}
	return list, nil
}

// EndDuplicates ends the comparison of a gallery and drops its report. The error is NotFound if there is none.
func (r *DuplicateRequests) EndDuplicates(ctx context.Context, access router.Access) error {
	g, _, err := r.comparable(ctx, access)
	if err != nil {
		return err
	}
	of, name, err := r.report(ctx, g)
	if err == nil && !of.Known {
		err = noDuplicates()
	}
	if err == nil {
		_, err = calls.CallLeader(ctx, r.cluster.Calls, jobDrop, g.ShardIDs[0], shardfsm.DropJob{Name: name, Time: time.Now().UnixMilli()})
	}
	return err
}

func noDuplicates() error {
	return router.Errorf(router.NotFound, "", "the gallery was not compared with itself, or its report was dropped; begin with POST")
}

// report returns how far the comparison of a gallery is.
func (r *DuplicateRequests) report(ctx context.Context, g cluster.Gallery) (reportAnswer, shardfsm.JobName, error) {
	a, err := calls.CallLeader(ctx, r.cluster.Calls, jobReport, g.ShardIDs[0], bulk.JobListQuery{Gallery: g.ID, Generation: g.Generation})
	return a, shardfsm.JobName{Gallery: g.ID, Generation: g.Generation, Batch: a.Batch}, err
}

// Duplicates returns how far the comparison of a gallery is. If it has ended, it returns a page of the
// pairs: the first one, or the one that after, the Next of another one, names. Pairs come group by group,
// the best first. Those of subjects that are gone are left out. The error is NotFound if there is no
// comparison.
func (r *DuplicateRequests) Duplicates(ctx context.Context, access router.Access, after string, length int) (router.Duplicates, error) {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return router.Duplicates{}, err
	}
	of, name, err := r.report(ctx, g)
	if err == nil && !of.Known {
		err = noDuplicates()
	}
	if err != nil {
		return router.Duplicates{}, err
	}
	d := router.Duplicates{
		Batch: of.Batch, Blocks: int(of.Total), Compared: int(of.Done), Found: of.Pairs, LastUpdated: time.UnixMilli(of.Touched).UTC(),
	}
	first, err := job.OpenBlock(key, job.Name(name), 0, of.First)
	if d.Threshold = first.Threshold; err != nil || d.Compared < d.Blocks {
		return d, err
	}
	pairs, err := r.pairs(ctx, key, name, &d)
	if err != nil {
		return d, err
	}
	if pairs, d.Different, err = r.withoutDifferent(ctx, g, key, pairs); err != nil {
		return d, err
	}
	list := grouped(pairs)
	d.Found = len(list)
	if len(list) > 0 {
		d.Groups = list[len(list)-1].Group
	}
	from, ok := readDuplicatesCursor(of.Batch, len(list), after)
	if !ok {
		return d, unknownDuplicatesCursor()
	}
	list = list[from:]
	if len(list) > length {
		list = list[:length]
		d.Next = duplicatesCursor(of.Batch, d.Found, from+length)
	}
	d.Pairs, err = r.present(ctx, g, list)
	return d, err
}

// pairs reads all pairs of a comparison that has ended.
func (r *DuplicateRequests) pairs(ctx context.Context, key *seal.Key, name shardfsm.JobName, d *router.Duplicates) ([]job.Pair, error) {
	best := map[[2]id.Subject]int{} // two blocks may have found one pair
	for from := 0; from < d.Blocks; {
		a, err := calls.CallLeader(ctx, r.cluster.Calls, bulk.JobPage, name.Batch.Shard(), bulk.JobPageQuery{Name: name, From: uint32(from), Length: blocksPage})
		if err != nil {
			return nil, err
		}
		if !a.Known || len(a.Records) == 0 {
			return nil, noDuplicates()
		}
		from += len(a.Records)
		for _, rec := range a.Records {
			if rec.Result == nil {
				continue
			}
			p, err := job.OpenPairs(key, job.Name(name), rec.Index, rec.Result.Sealed)
			if err != nil {
				return nil, err
			}
			d.Incomplete = d.Incomplete || p.Cut
			d.Reason = cmp.Or(d.Reason, p.Reason)
			for _, pair := range p.List {
				best[[2]id.Subject{pair.A, pair.B}] = max(best[[2]id.Subject{pair.A, pair.B}], pair.Score)
			}
		}
	}
	list := make([]job.Pair, 0, len(best))
	for k, score := range best {
		list = append(list, job.Pair{A: k[0], B: k[1], Score: score})
	}
	slices.SortFunc(list, func(x, y job.Pair) int { return shard.ComparePairs(shard.Pair(x), shard.Pair(y)) })
	return list, nil
}

// grouped gives pairs, the best first, the numbers of their groups. The group of the best pair is the
// first.
func grouped(pairs []job.Pair) []router.DuplicatePair {
	parent := map[id.Subject]id.Subject{}
	root := func(s id.Subject) id.Subject {
		for {
			up, ok := parent[s]
			if !ok || up == s {
				return s
			}
			if next, ok := parent[up]; ok {
				parent[s] = next // halves the way
			}
			s = up
		}
	}
	for _, p := range pairs {
		a, b := root(p.A), root(p.B)
		parent[a], parent[b] = a, b
		if bytes.Compare(a.UUID[:], b.UUID[:]) < 0 {
			parent[b] = a
		} else {
			parent[a] = b
		}
	}
	numbers := map[id.Subject]int{}
	list := make([]router.DuplicatePair, len(pairs))
	for i, p := range pairs {
		top := root(p.A)
		if numbers[top] == 0 {
			numbers[top] = len(numbers) + 1
		}
		list[i] = router.DuplicatePair{Group: numbers[top], Score: p.Score, Subjects: [2]router.DuplicateSubject{{Subject: p.A}, {Subject: p.B}}}
	}
	slices.SortStableFunc(list, func(x, y router.DuplicatePair) int { return cmp.Compare(x.Group, y.Group) })
	return list
}
