package duplicates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/bulk"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/router/searches"
	"facet/shard"
	"facet/shard/job"
	"facet/shard/seal"
)

const (
	// probesAtOnce is how many probes a shard is asked to compare in one call. It compares the first ones, for
	// about compareTime: a call must not last as long as one of a replica that has stopped (calls.CallAny).
	probesAtOnce = 128
	compareTime  = 500 * time.Millisecond
	// keepInterval is how often the lease of a block is renewed.
	keepInterval = time.Second
)

// Block is a part of a comparison that was lent to this node. It is for one goroutine.
type Block struct {
	shard id.Shard
	lease uint64
	name  shardfsm.JobName
	index uint32
	block job.Block
	// room is how many pairs it may have.
	room  int
	kept  time.Time
	pairs job.Pairs
}

// NoBlocks reports whether this node's replica of a shard has no block to compare, or there is none.
// The nodes with a replica of a shard work on its comparisons.
func (r *DuplicateRequests) NoBlocks(s id.Shard) bool {
	m, here := r.cluster.Groups.Shard(s)
	return !here || m.Jobs().Left(job.Duplicates) == 0
}

// TakeBlock borrows a block from a shard's leader. It returns nil when there is none.
func (r *DuplicateRequests) TakeBlock(ctx context.Context, s id.Shard) (*Block, error) {
	a, err := calls.CallLeader(ctx, r.cluster.Calls, jobTakeBlock, s, struct{}{})
	if err != nil || a.Lease == 0 || len(a.Records) != 1 {
		return nil, err
	}
	g, err := r.compared(ctx, a.Name)
	if errors.Is(err, ErrLost) {
		return nil, nil // its shards drop the comparison soon
	}
	if err != nil {
		return nil, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	block, err := job.OpenBlock(key, job.Name(a.Name), a.Records[0].Index, a.Records[0].Sealed)
	if err != nil {
		return nil, err
	}
	return &Block{
		shard: s, lease: a.Lease, name: a.Name, index: a.Records[0].Index, block: block, kept: time.Now(),
		room: min(job.PairsMax, router.DuplicatesMax-a.Pairs),
	}, nil
}

// CompareBlock compares the events of a block with its gallery. It calls turn before each piece of work.
// A fault of the gallery's, which no repetition cures, becomes the reason of the block.
func (r *DuplicateRequests) CompareBlock(ctx context.Context, b *Block, turn func(context.Context) error) error {
	if b.pairs = (job.Pairs{Cut: true}); b.room <= 0 {
		return nil
	}
	found, complete, err := r.compareBlock(ctx, b, turn)
	if e, ok := errors.AsType[*router.Error](err); ok && (e.Kind == router.InvalidRequest || e.Kind == router.Forbidden) {
		b.pairs.Reason = e.Message
		return nil
	}
	if err != nil {
		return err
	}
	if len(found) > b.room {
		found, complete = found[:b.room], false
	}
	b.pairs = job.Pairs{Cut: !complete}
	for _, p := range found {
		b.pairs.List = append(b.pairs.List, job.Pair(p))
	}
	return nil
}

func (r *DuplicateRequests) compareBlock(ctx context.Context, b *Block, turn func(context.Context) error) (found []shard.Pair, complete bool, err error) {
	g, err := r.compared(ctx, b.name)
	if err != nil {
		return nil, false, err
	}
	a, err := calls.CallAny(ctx, r.cluster.Calls, shardProbes, b.block.Shard, probesQuery{
		Gallery: g.ID, Generation: g.Generation, After: b.block.After, Last: b.block.Last,
	})
	if err != nil {
		return nil, false, err
	}
	best := map[[2]id.Subject]int{}
	complete = true
	for some := range slices.Chunk(a.Probes, probesAtOnce) {
		q := pairsQuery{
			Gallery: g.ID, Generation: g.Generation, Probes: some, Model: a.Model, Threshold: b.block.Threshold, Limit: b.room,
		}
		lists, err := cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) ([]pairsAnswer, error) { return r.compareProbes(ctx, g, b, q, turn) })
		if err != nil {
			return nil, false, err
		}
		for _, l := range lists {
			complete = complete && !l.Cut
			for _, p := range l.Pairs {
				best[[2]id.Subject{p.A, p.B}] = max(best[[2]id.Subject{p.A, p.B}], p.Score)
			}
		}
	}
	for k, score := range best {
		found = append(found, shard.Pair{A: k[0], B: k[1], Score: score})
	}
	slices.SortFunc(found, shard.ComparePairs)
	return found, complete, nil
}

// compareProbes compares probes with the block's shard and those after it in the gallery's list, one
// after the other: the work shall take no more than one processor.
func (r *DuplicateRequests) compareProbes(ctx context.Context, g cluster.Gallery, b *Block, q pairsQuery, turn func(context.Context) error) (lists []pairsAnswer, err error) {
	at := slices.Index(g.ShardIDs, b.block.Shard)
	if at < 0 {
		return nil, ErrLost
	}
	q.Epoch = g.Epoch
	all := q.Probes
	for _, s := range g.ShardIDs[at:] {
		q.Own = s == b.block.Shard
		some, err := inPieces(all, func(left []shard.Probe) (a pairsAnswer, err error) {
			if err = turn(ctx); err == nil {
				err = r.keep(ctx, b)
			}
			if err != nil {
				return a, err
			}
			q.Probes = left
			return calls.CallAny(ctx, r.cluster.Calls, shardPairs, s, q)
		})
		if err != nil {
			return nil, err
		}
		lists = append(lists, some...)
	}
	return lists, nil
}

// inPieces calls compare with the probes that are left until all are done.
func inPieces(left []shard.Probe, compare func(left []shard.Probe) (pairsAnswer, error)) (lists []pairsAnswer, err error) {
	for len(left) > 0 {
		a, err := compare(left)
		if err == nil && (a.Done < 1 || a.Done > len(left)) {
			err = fmt.Errorf("a shard says that it has compared %d of %d probes", a.Done, len(left))
		}
		if err != nil {
			return nil, err
		}
		lists, left = append(lists, a), left[a.Done:]
	}
	return lists, nil
}

// keep renews the lease of a block when it is time.
func (r *DuplicateRequests) keep(ctx context.Context, b *Block) error {
	if time.Since(b.kept) < keepInterval {
		return nil
	}
	return r.finish(ctx, b, nil)
}

// FinishBlock records the pairs of a block. The first result of a block counts.
func (r *DuplicateRequests) FinishBlock(ctx context.Context, b *Block) error {
	g, err := r.compared(ctx, b.name)
	if err != nil {
		return err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return err
	}
	return r.finish(ctx, b, []job.Result{{
		Index: b.index, Attempts: 1, Pairs: uint32(len(b.pairs.List)), Sealed: job.SealPairs(key, job.Name(b.name), b.index, b.pairs),
	}})
}

func (r *DuplicateRequests) finish(ctx context.Context, b *Block, results []job.Result) error {
	a, err := calls.CallLeader(ctx, r.cluster.Calls, bulk.JobFinish, b.shard, bulk.FinishQuery{
		Lease: b.lease, Finish: shardfsm.FinishJob{Name: b.name, Results: results, Time: time.Now().UnixMilli()},
	})
	if err == nil && !a.Held && results == nil {
		err = ErrLost
	}
	b.kept = time.Now()
	return err
}

// RedactPairs takes the pairs of subjects that are gone out of the reports, and out of the pairs of different
// subjects, on the shards that this node leads.
func (r *DuplicateRequests) RedactPairs(ctx context.Context) error {
	var failed []error
	for _, s := range r.cluster.Shards() {
		_, m, ok := cluster.LedShard(r.cluster.Groups, s)
		if !ok {
			continue
		}
		failed = append(failed, redactAll(m.Jobs(), job.Duplicates, func(n shardfsm.JobName) error { return r.redact(ctx, m.Jobs(), n) })...)
		failed = append(failed, redactAll(m.Jobs(), job.Different, func(n shardfsm.JobName) error { return r.redactDifferent(ctx, m.Jobs(), n) })...)
	}
	return errors.Join(failed...)
}

// redact takes the pairs of subjects that are gone out of a report.
func (r *DuplicateRequests) redact(ctx context.Context, book *job.Book, name shardfsm.JobName) error {
	g, err := r.compared(ctx, name)
	if err != nil {
		return err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return err
	}
	for from := uint32(0); ; {
		page, _, err := book.Page(job.Name(name), from, blocksPage)
		if err != nil || len(page) == 0 { // dropped meanwhile, or the end
			return nil
		}
		from += uint32(len(page))
		if err := r.redactPage(ctx, g, key, name, page); err != nil {
			return err
		}
	}
}

// redactPage takes the pairs of subjects that are gone out of the results of some blocks.
func (r *DuplicateRequests) redactPage(ctx context.Context, g cluster.Gallery, key *seal.Key, name shardfsm.JobName, page []job.Record) error {
	var subjects []id.Subject
	found := make([]job.Pairs, len(page))
	for i, rec := range page {
		if rec.Result == nil || rec.Result.Pairs == 0 {
			continue
		}
		var err error
		if found[i], err = job.OpenPairs(key, job.Name(name), rec.Result.Index, rec.Result.Sealed); err != nil {
			return err
		}
		for _, p := range found[i].List {
			subjects = append(subjects, p.A, p.B)
		}
	}
	there, err := lookup.Present(ctx, r.cluster, g, subjects, false)
	if err != nil {
		return err
	}
	for i, p := range found {
		left := slices.DeleteFunc(slices.Clone(p.List), func(p job.Pair) bool {
			_, first := there[p.A]
			_, second := there[p.B]
			return !first || !second
		})
		if len(left) == len(p.List) {
			continue
		}
		p.List = left
		result := *page[i].Result
		result.Pairs, result.Sealed = uint32(len(left)), job.SealPairs(key, job.Name(name), result.Index, p)
		if _, err := calls.CallLeader(ctx, r.cluster.Calls, jobRedact, name.Batch.Shard(), shardfsm.RedactJob{
			Name: name, Results: []job.Result{result}, Time: time.Now().UnixMilli(),
		}); err != nil {
			return err
		}
	}
	return nil
}

var (
	jobDrop   = cluster.ShardCommand("job.drop", shardfsm.DropJobOp, func(c *shardfsm.DropJob) *int64 { return &c.Time })
	jobRedact = cluster.ShardCommand("job.redact", shardfsm.RedactJobOp, func(c *shardfsm.RedactJob) *int64 { return &c.Time })
)

// reportAnswer is how far a comparison is. First is its first item.
type reportAnswer struct {
	job.Summary
	Known bool   `cbor:"10,keyasint"`
	Pairs int    `cbor:"11,keyasint,omitempty"`
	First []byte `cbor:"12,keyasint,omitempty"`
}

// jobReport returns how far the comparison of a gallery with itself is.
var jobReport = cluster.MachineRead("job.report", func(m *shardfsm.Machine, q bulk.JobListQuery) (a reportAnswer, err error) {
	book := m.Jobs()
	list := book.List(q.Gallery, q.Generation, job.Duplicates, id.UUID{}, 1)
	if len(list) == 0 {
		return a, nil
	}
	name := job.Name{Gallery: q.Gallery, Generation: q.Generation, Batch: list[0].Batch}
	page, _, err := book.Page(name, 0, 1)
	if err != nil || len(page) == 0 {
		return a, nil //nolint:nilerr // it was dropped meanwhile
	}
	return reportAnswer{list[0], true, book.Paired(name), page[0].Sealed}, nil
})

// blockAnswer is a piece of one block. Pairs is how many pairs its comparison has so far.
type blockAnswer struct {
	bulk.PieceAnswer
	Pairs int `cbor:"11,keyasint,omitempty"`
}

// jobTakeBlock lends a block to the caller.
var jobTakeBlock = calls.NewMethod("job.takeblock", func(_ context.Context, r *DuplicateRequests, group id.Shard, _ struct{}) (blockAnswer, error) {
	_, book, err := bulk.LeadingJobs(r.cluster, group)
	if err != nil {
		return blockAnswer{}, err
	}
	piece := r.jobs.Take(group, book, job.Duplicates, 1)
	return blockAnswer{piece, book.Paired(job.Name(piece.Name))}, nil
})

// blocksQuery asks a shard for its blocks of entries of a gallery.
type blocksQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Size       int        `cbor:"3,keyasint"`
}

var shardBlocks = cluster.ShardRead("shard.blocks", func(s *shard.Shard, q blocksQuery) ([]uint64, error) {
	return s.Blocks(q.Gallery, q.Generation, max(q.Size, blockEntries))
})

// probesQuery asks a shard for the templates of a block.
type probesQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	After      uint64     `cbor:"3,keyasint"`
	Last       uint64     `cbor:"4,keyasint"`
}

type probesAnswer struct {
	Probes []shard.Probe `cbor:"1,keyasint,omitempty"`
	Model  id.Model      `cbor:"2,keyasint"`
}

var shardProbes = cluster.ShardReadAny("shard.probes", func(ctx context.Context, r *cluster.Cluster, s *shard.Shard, q probesQuery) (a probesAnswer, err error) {
	key, err := cluster.KeyOf(ctx, r, q.Gallery)
	if err != nil {
		return a, err
	}
	a.Probes, a.Model, err = s.Probes(ctx, q.Gallery, q.Generation, key, q.After, q.Last)
	return a, ofOneModel(err)
})

// ofOneModel turns the error of templates of two models into one that no repetition cures.
func ofOneModel(err error) error {
	if _, ok := errors.AsType[*id.ModelError](err); ok {
		return router.Errorf(router.InvalidRequest, "", "%v", err)
	}
	return err
}

// pairsQuery asks a shard for the pairs of probes and its subjects.
type pairsQuery struct {
	Gallery    id.Gallery    `cbor:"1,keyasint"`
	Generation uint32        `cbor:"2,keyasint"`
	Epoch      uint32        `cbor:"3,keyasint,omitempty"` // as in searches.SearchQuery
	Probes     []shard.Probe `cbor:"4,keyasint"`
	Model      id.Model      `cbor:"5,keyasint"` // of the probes
	Threshold  int           `cbor:"6,keyasint"`
	Own        bool          `cbor:"7,keyasint,omitempty"` // as in shard.PairQuery
	Limit      int           `cbor:"8,keyasint"`
}

type pairsAnswer struct {
	Pairs []shard.Pair `cbor:"1,keyasint,omitempty"`
	Cut   bool         `cbor:"2,keyasint,omitempty"`
	Done  int          `cbor:"3,keyasint"` // as in shard.Paired
}

var shardPairs = cluster.ShardReadAny("shard.pairs", func(ctx context.Context, r *cluster.Cluster, s *shard.Shard, q pairsQuery) (a pairsAnswer, err error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return a, err
	}
	key, err := cluster.KeyOf(ctx, r, q.Gallery)
	if err != nil {
		return a, err
	}
	found, err := s.Pairs(ctx, q.Gallery, q.Generation, key, shard.PairQuery{
		Probes: q.Probes, Threshold: q.Threshold, Own: q.Own, Limit: min(q.Limit, job.PairsMax), Time: compareTime,
	})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return a, ofOneModel(other)
	}
	return pairsAnswer{found.Pairs, !found.Complete, found.Done}, searches.TooBusy(err)
})
