package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
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

// ErrLost is returned when the lease of a block was lost, or its gallery or comparison is gone.
var ErrLost = errors.New("router: the block is no longer lent to this node")

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
func (r *duplicateRequests) NoBlocks(s id.Shard) bool {
	m, here := r.groups.Shard(s)
	return !here || m.Jobs().Left(job.Duplicates) == 0
}

// TakeBlock borrows a block from a shard's leader. It returns nil when there is none.
func (r *duplicateRequests) TakeBlock(ctx context.Context, s id.Shard) (*Block, error) {
	a, err := calls.CallLeader(ctx, r.calls, jobTakeBlock, s, struct{}{})
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
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	block, err := job.OpenBlock(key, jobName(a.Name), a.Records[0].Index, a.Records[0].Sealed)
	if err != nil {
		return nil, err
	}
	return &Block{
		shard: s, lease: a.Lease, name: a.Name, index: a.Records[0].Index, block: block, kept: time.Now(),
		room: min(job.PairsMax, DuplicatesMax-a.Pairs),
	}, nil
}

// compared returns the gallery of a comparison. The error is ErrLost if it was deleted.
func (r *duplicateRequests) compared(ctx context.Context, n shardfsm.JobName) (enrolment, error) {
	g, err := confirmedLookup(ctx, r.cluster, func() (enrolment, bool) { return r.gallery(n.Gallery) })
	if KindOf(err) == NotFound || err == nil && g.Generation != n.Generation {
		err = ErrLost
	}
	return g, err
}

// CompareBlock compares the events of a block with its gallery. It calls turn before each piece of work.
// A fault of the gallery's, which no repetition cures, becomes the reason of the block.
func (r *duplicateRequests) CompareBlock(ctx context.Context, b *Block, turn func(context.Context) error) error {
	if b.pairs = (job.Pairs{Cut: true}); b.room <= 0 {
		return nil
	}
	found, complete, err := r.compareBlock(ctx, b, turn)
	if e, ok := errors.AsType[*Error](err); ok && (e.Kind == InvalidRequest || e.Kind == Forbidden) {
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

func (r *duplicateRequests) compareBlock(ctx context.Context, b *Block, turn func(context.Context) error) (found []shard.Pair, complete bool, err error) {
	g, err := r.compared(ctx, b.name)
	if err != nil {
		return nil, false, err
	}
	a, err := calls.CallAny(ctx, r.calls, shardProbes, b.block.Shard, probesQuery{
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
		lists, err := withFreshShards(ctx, r.cluster, g, func(g enrolment) ([]pairsAnswer, error) { return r.compareProbes(ctx, g, b, q, turn) })
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
func (r *duplicateRequests) compareProbes(ctx context.Context, g enrolment, b *Block, q pairsQuery, turn func(context.Context) error) (lists []pairsAnswer, err error) {
	at := slices.Index(g.shards, b.block.Shard)
	if at < 0 {
		return nil, ErrLost
	}
	q.Epoch = g.Epoch
	all := q.Probes
	for _, s := range g.shards[at:] {
		q.Own = s == b.block.Shard
		some, err := inPieces(all, func(left []shard.Probe) (a pairsAnswer, err error) {
			if err = turn(ctx); err == nil {
				err = r.keep(ctx, b)
			}
			if err != nil {
				return a, err
			}
			q.Probes = left
			return calls.CallAny(ctx, r.calls, shardPairs, s, q)
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
func (r *duplicateRequests) keep(ctx context.Context, b *Block) error {
	if time.Since(b.kept) < keepInterval {
		return nil
	}
	return r.finish(ctx, b, nil)
}

// FinishBlock records the pairs of a block. The first result of a block counts.
func (r *duplicateRequests) FinishBlock(ctx context.Context, b *Block) error {
	g, err := r.compared(ctx, b.name)
	if err != nil {
		return err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return err
	}
	return r.finish(ctx, b, []job.Result{{
		Index: b.index, Attempts: 1, Pairs: uint32(len(b.pairs.List)), Sealed: job.SealPairs(key, jobName(b.name), b.index, b.pairs),
	}})
}

func (r *duplicateRequests) finish(ctx context.Context, b *Block, results []job.Result) error {
	a, err := calls.CallLeader(ctx, r.calls, jobFinish, b.shard, finishQuery{
		Lease: b.lease, Finish: shardfsm.FinishJob{Name: b.name, Results: results, Time: time.Now().UnixMilli()},
	})
	if err == nil && !a.Held && results == nil {
		err = ErrLost
	}
	b.kept = time.Now()
	return err
}

// RedactDuplicates takes the pairs of subjects that are gone out of the reports, and the pairs of different
// subjects and the cases, on the shards that this node leads. It also closes cases whose time is over. The next round of erasure of these shards removes them from the disks.
func (r *duplicateRequests) RedactDuplicates(ctx context.Context) error {
	var failed []error
	cases := map[id.Batch]bool{}
	for _, s := range r.Shards() {
		m, here := r.groups.Shard(s)
		g, err := r.localGroup(s)
		if err != nil || !here || !g.IsLeader() {
			continue // another node leads the shard
		}
		failed = append(failed, redactAll(m.Jobs(), job.Duplicates, func(n shardfsm.JobName) error { return r.redact(ctx, m.Jobs(), n) })...)
		failed = append(failed, redactAll(m.Jobs(), job.Different, func(n shardfsm.JobName) error { return r.redactDifferent(ctx, m.Jobs(), n) })...)
		failed = append(failed, redactAll(m.Jobs(), job.Cases, func(n shardfsm.JobName) error {
			cases[n.Batch] = true
			return r.redactCases(ctx, g, m.Jobs(), n)
		})...)
	}
	r.cases.keepOnly(cases)
	return errors.Join(failed...)
}

// redact takes the pairs of subjects that are gone out of a report.
func (r *duplicateRequests) redact(ctx context.Context, book *job.Book, name shardfsm.JobName) error {
	g, err := r.compared(ctx, name)
	if err != nil {
		return err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return err
	}
	for from := uint32(0); ; {
		page, _, err := book.Page(jobName(name), from, blocksPage)
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
func (r *duplicateRequests) redactPage(ctx context.Context, g enrolment, key *seal.Key, name shardfsm.JobName, page []job.Record) error {
	var subjects []id.Subject
	found := make([]job.Pairs, len(page))
	for i, rec := range page {
		if rec.Result == nil || rec.Result.Pairs == 0 {
			continue
		}
		var err error
		if found[i], err = job.OpenPairs(key, jobName(name), rec.Result.Index, rec.Result.Sealed); err != nil {
			return err
		}
		for _, p := range found[i].List {
			subjects = append(subjects, p.A, p.B)
		}
	}
	there, err := subjectsOf(ctx, r.cluster, g, subjects, false)
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
		result.Pairs, result.Sealed = uint32(len(left)), job.SealPairs(key, jobName(name), result.Index, p)
		if _, err := calls.CallLeader(ctx, r.calls, jobRedact, name.Batch.Shard(), shardfsm.RedactJob{
			Name: name, Results: []job.Result{result}, Time: time.Now().UnixMilli(),
		}); err != nil {
			return err
		}
	}
	return nil
}

var (
	jobDrop   = shardCommand("job.drop", shardfsm.DropJobOp, func(r *Router, c *shardfsm.DropJob) { c.Time = r.onTime(c.Time) })
	jobRedact = shardCommand("job.redact", shardfsm.RedactJobOp, func(r *Router, c *shardfsm.RedactJob) { c.Time = r.onTime(c.Time) })
)

// reportAnswer is how far a comparison is. First is its first item.
type reportAnswer struct {
	job.Summary
	Known bool   `cbor:"10,keyasint"`
	Pairs int    `cbor:"11,keyasint,omitempty"`
	First []byte `cbor:"12,keyasint,omitempty"`
}

// jobReport returns how far the comparison of a gallery with itself is.
var jobReport = method[jobListQuery, reportAnswer]{Name: "job.report", Run: func(ctx context.Context, r *Router, group id.Shard, q jobListQuery) (a reportAnswer, err error) {
	book, err := r.readJobs(ctx, group)
	if err != nil {
		return a, err
	}
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
}}

// blockAnswer is a piece of one block. Pairs is how many pairs its comparison has so far.
type blockAnswer struct {
	pieceAnswer
	Pairs int `cbor:"11,keyasint,omitempty"`
}

// jobTakeBlock lends a block to the caller.
var jobTakeBlock = method[struct{}, blockAnswer]{Name: "job.takeblock", Run: func(_ context.Context, r *Router, group id.Shard, _ struct{}) (blockAnswer, error) {
	_, book, err := r.leadingJobs(group)
	if err != nil {
		return blockAnswer{}, err
	}
	piece := r.leases.take(time.Now(), group, book, job.Duplicates, 1, r.works)
	return blockAnswer{piece, book.Paired(jobName(piece.Name))}, nil
}}

// blocksQuery asks a shard for its blocks of entries of a gallery.
type blocksQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Size       int        `cbor:"3,keyasint"`
}

var shardBlocks = shardRead("shard.blocks", func(_ context.Context, _ *Router, s *shard.Shard, q blocksQuery) ([]uint64, error) {
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

var shardProbes = shardReadAny("shard.probes", func(ctx context.Context, r *Router, s *shard.Shard, q probesQuery) (a probesAnswer, err error) {
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return a, err
	}
	a.Probes, a.Model, err = s.Probes(ctx, q.Gallery, q.Generation, key, q.After, q.Last)
	return a, ofOneModel(err)
})

// ofOneModel turns the error of templates of two models into one that no repetition cures.
func ofOneModel(err error) error {
	if _, ok := errors.AsType[*id.ModelError](err); ok {
		return Errorf(InvalidRequest, "", "%v", err)
	}
	return err
}

// pairsQuery asks a shard for the pairs of probes and its subjects.
type pairsQuery struct {
	Gallery    id.Gallery    `cbor:"1,keyasint"`
	Generation uint32        `cbor:"2,keyasint"`
	Epoch      uint32        `cbor:"3,keyasint,omitempty"` // as in searchQuery
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

var shardPairs = shardReadAny("shard.pairs", func(ctx context.Context, r *Router, s *shard.Shard, q pairsQuery) (a pairsAnswer, err error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return a, err
	}
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return a, err
	}
	found, err := s.Pairs(ctx, q.Gallery, q.Generation, key, shard.PairQuery{
		Probes: q.Probes, Threshold: q.Threshold, Own: q.Own, Limit: min(q.Limit, job.PairsMax), Time: compareTime,
	})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return a, ofOneModel(other)
	}
	return pairsAnswer{found.Pairs, !found.Complete, found.Done}, tooBusy(err)
})

// presentQuery asks a shard which subjects it has.
type presentQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Subjects   []id.Subject `cbor:"3,keyasint"`
	Notes      bool         `cbor:"4,keyasint,omitempty"`
}

// presentAnswer has an entry for each subject. Noted may be empty.
type presentAnswer struct {
	Present []bool         `cbor:"1,keyasint"`
	Noted   []shard.Active `cbor:"2,keyasint,omitempty"`
}

var shardPresent = shardReadAny("shard.present", func(_ context.Context, _ *Router, s *shard.Shard, q presentQuery) (a presentAnswer, err error) {
	if len(q.Subjects) > presentMax {
		return a, Errorf(InvalidRequest, "", "at most %d subjects at once", presentMax)
	}
	if a.Present, err = s.Present(q.Gallery, q.Generation, q.Subjects); err == nil && q.Notes {
		a.Noted, err = s.NotesOf(q.Gallery, q.Generation, q.Subjects)
	}
	return a, err
})
