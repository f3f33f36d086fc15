package router

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/job"
	"facet/shard/seal"
)

// A gallery is compared with itself by a job (shard/job), whose items are blocks of events. Its home is
// the first shard of the gallery, which stays the first when the gallery grows. The probes of a block
// are compared with the block's shard and those after it in the gallery's list, so each pair of shards
// is compared once (duplicates_work.go).

// Limits of comparisons.
const (
	// DuplicatesMax is how many pairs end a comparison.
	DuplicatesMax = 100_000
	// DuplicatesPageMax is the most pairs in a page.
	DuplicatesPageMax = 1000
	// DuplicatesThresholdDefault is the default threshold. Below DuplicatesThresholdMin the pairs are of
	// people who merely look alike.
	DuplicatesThresholdDefault = 9000
	DuplicatesThresholdMin     = 7000

	// blockEntries is how many entries a block has, and blocksMost how many blocks a gallery has before
	// its blocks grow, to blockEntriesMax at most: the templates of a block are one message.
	blockEntries, blockEntriesMax = 512, 10_000
	blocksMost                    = 50_000
	// blocksPage is how many blocks of a job are read at once.
	blocksPage = 256
	// presentMax is how many subjects a shard is asked for at once.
	presentMax = 4096
)

const purposeDuplicates = "duplicates"

// Duplicates is how far the comparison of a gallery with itself is, and a page of the pairs that it
// has found.
type Duplicates struct {
	Batch     id.Batch
	Threshold int
	// Blocks is how many parts there are, and Compared how many of them are done. There are no pairs
	// before all are.
	Blocks, Compared int
	LastUpdated      time.Time
	// Found is how many pairs were found, those of subjects that went since included.
	Found int
	// Incomplete reports that pairs are missing: there were too many, or Reason.
	Incomplete bool
	Reason     string
	// Different is how many pairs are left out because somebody found them to be different people.
	Different int
	// Groups is how many groups the pairs form: whoever is in a pair with somebody is in one group.
	Groups int
	Pairs  []DuplicatePair
	Next   string // continues the list; empty at its end
}

// DuplicatePair is two subjects that may show one person.
type DuplicatePair struct {
	// Group counts from 1 on.
	Group, Score int
	Subjects     [2]DuplicateSubject
}

// DuplicateSubject is a subject with its note, or nil.
type DuplicateSubject struct {
	Subject id.Subject
	Note    *Note
}

// comparable returns the gallery of an access, with its present shards, and its key.
func (r *duplicateRequests) comparable(ctx context.Context, access Access) (enrolment, *seal.Key, error) {
	if err := r.cluster.sync.Join(ctx); err != nil { // the gallery may have grown
		return enrolment{}, nil, err
	}
	g, _, err := r.cluster.enrolment(access)
	if err != nil {
		return g, nil, err
	}
	key, err := r.cluster.dataKey(g.Gallery)
	return g, key, err
}

// BeginDuplicates begins to compare a gallery with itself. The former comparison of the gallery ends,
// and its report goes. A retry with the same Write has no further effect, also after another comparison.
func (r *duplicateRequests) BeginDuplicates(ctx context.Context, access Access, w Write, threshold int) (id.Batch, error) {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return id.Batch{}, err
	}
	home := g.shards[0]
	name := shardfsm.JobName{
		Gallery: g.ID, Generation: g.Generation,
		Batch: id.Batch{UUID: id.Derive(g.IDKey[:], purposeDuplicates, w.Operation, home)},
	}
	begin := shardfsm.BeginJob{
		Name: name, Application: access.Application, Request: w.Request,
		Time: time.Now().UnixMilli(), Share: jobShare(r.cluster, g.Tenant), Kind: job.Duplicates,
		Write: shardfsm.JobWrite{Op: w.Operation, Request: w.Request, Keyed: w.Keyed, Share: share(r.cluster, g.Tenant)},
	}
	earlier, err := calls.CallLeader(ctx, r.cluster.calls, jobPage, home, jobPageQuery{Name: name})
	if err == nil && earlier.Known {
		begin.Total = earlier.Total
		_, err = bulkAsk(ctx, r.cluster, jobBegin, home, begin) // an error if it was another request
		return name.Batch, err
	}
	if err == nil { // an earlier try may have begun with other blocks
		_, err = calls.CallLeader(ctx, r.cluster.calls, jobDrop, home, shardfsm.DropJob{Name: name, Time: time.Now().UnixMilli()})
	}
	if err != nil {
		return id.Batch{}, err
	}
	blocks, err := r.blocks(ctx, g, threshold)
	if err != nil {
		return id.Batch{}, err
	}
	begin.Total = uint32(len(blocks))
	return name.Batch, fillJob(ctx, r.cluster, home, begin, func(index uint32) []byte {
		return job.SealBlock(key, job.Name(name), index, blocks[index])
	})
}

// blocks returns the blocks of a gallery, at least one.
func (r *duplicateRequests) blocks(ctx context.Context, g enrolment, threshold int) ([]job.Block, error) {
	q := blocksQuery{Gallery: g.ID, Generation: g.Generation, Size: min(max(blockEntries, int(g.Size/blocksMost)), blockEntriesMax)}
	ends, err := calls.Scatter(ctx, r.cluster.calls, shardBlocks, g.shards, q)
	if err != nil {
		return nil, err
	}
	var list []job.Block
	for i, s := range g.shards {
		after := uint64(0)
		for _, last := range ends[i] {
			list = append(list, job.Block{Shard: s, After: after, Last: last, Threshold: threshold})
			after = last
		}
	}
	if len(list) == 0 {
		list = []job.Block{{Shard: g.shards[0], Threshold: threshold}}
	}
	if len(list) > job.ItemsMax {
		return nil, Errorf(InvalidRequest, "", "the gallery has too many entries to be compared with itself")
	}
	return list, nil
}

// EndDuplicates ends the comparison of a gallery and drops its report. The error is NotFound if there is none.
func (r *duplicateRequests) EndDuplicates(ctx context.Context, access Access) error {
	g, _, err := r.comparable(ctx, access)
	if err != nil {
		return err
	}
	of, name, err := r.report(ctx, g)
	if err == nil && !of.Known {
		err = noDuplicates()
	}
	if err == nil {
		_, err = calls.CallLeader(ctx, r.cluster.calls, jobDrop, g.shards[0], shardfsm.DropJob{Name: name, Time: time.Now().UnixMilli()})
	}
	return err
}

func noDuplicates() error {
	return Errorf(NotFound, "", "the gallery was not compared with itself, or its report was dropped; begin with POST")
}

func unknownDuplicatesCursor() error {
	return Errorf(InvalidRequest, ReasonUnknownCursor, "the report has changed, or the cursor in after is not one of it; read the report from its start")
}

// report returns how far the comparison of a gallery is.
func (r *duplicateRequests) report(ctx context.Context, g enrolment) (reportAnswer, shardfsm.JobName, error) {
	a, err := calls.CallLeader(ctx, r.cluster.calls, jobReport, g.shards[0], jobListQuery{Gallery: g.ID, Generation: g.Generation})
	return a, shardfsm.JobName{Gallery: g.ID, Generation: g.Generation, Batch: a.Batch}, err
}

// Duplicates returns how far the comparison of a gallery is. If it has ended, it returns a page of the
// pairs: the first one, or the one that after, the Next of another one, names. Pairs come group by group,
// the best first. Those of subjects that are gone are left out. The error is NotFound if there is no
// comparison.
func (r *duplicateRequests) Duplicates(ctx context.Context, access Access, after string, length int) (Duplicates, error) {
	g, key, err := r.comparable(ctx, access)
	if err != nil {
		return Duplicates{}, err
	}
	of, name, err := r.report(ctx, g)
	if err == nil && !of.Known {
		err = noDuplicates()
	}
	if err != nil {
		return Duplicates{}, err
	}
	d := Duplicates{
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
func (r *duplicateRequests) pairs(ctx context.Context, key *seal.Key, name shardfsm.JobName, d *Duplicates) ([]job.Pair, error) {
	best := map[[2]id.Subject]int{} // two blocks may have found one pair
	for from := 0; from < d.Blocks; {
		a, err := calls.CallLeader(ctx, r.cluster.calls, jobPage, name.Batch.Shard(), jobPageQuery{Name: name, From: uint32(from), Length: blocksPage})
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
func grouped(pairs []job.Pair) []DuplicatePair {
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
	list := make([]DuplicatePair, len(pairs))
	for i, p := range pairs {
		top := root(p.A)
		if numbers[top] == 0 {
			numbers[top] = len(numbers) + 1
		}
		list[i] = DuplicatePair{Group: numbers[top], Score: p.Score, Subjects: [2]DuplicateSubject{{Subject: p.A}, {Subject: p.B}}}
	}
	slices.SortStableFunc(list, func(x, y DuplicatePair) int { return cmp.Compare(x.Group, y.Group) })
	return list
}

// present returns the pairs of which both subjects are still there, with their notes.
func (r *duplicateRequests) present(ctx context.Context, g enrolment, list []DuplicatePair) ([]DuplicatePair, error) {
	var subjects []id.Subject
	for _, p := range list {
		subjects = append(subjects, p.Subjects[0].Subject, p.Subjects[1].Subject)
	}
	there, err := subjectsOf(ctx, r.cluster, g, subjects, true)
	if err != nil {
		return nil, err
	}
	key, err := r.cluster.dataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	left := make([]DuplicatePair, 0, len(list))
	for _, p := range list {
		a, first := there[p.Subjects[0].Subject]
		b, second := there[p.Subjects[1].Subject]
		if !first || !second {
			continue
		}
		for i, noted := range []shard.Active{a, b} {
			if p.Subjects[i].Note, err = g.openNote(key, p.Subjects[i].Subject, noted); err != nil {
				return nil, err
			}
		}
		left = append(left, p)
	}
	return left, nil
}

// subjectsOf returns the subjects that are still in a gallery, on request with their notes.
func subjectsOf(ctx context.Context, r *cluster, g enrolment, subjects []id.Subject, notes bool) (map[id.Subject]shard.Active, error) {
	slices.SortFunc(subjects, compareSubjects)
	there := map[id.Subject]shard.Active{}
	for at, of := range byShard(slices.Compact(subjects), id.Subject.Shard) {
		for some := range slices.Chunk(of, presentMax) {
			a, err := calls.CallAny(ctx, r.calls, shardPresent, at, presentQuery{Gallery: g.ID, Generation: g.Generation, Subjects: some, Notes: notes})
			if err != nil {
				return nil, err
			}
			if len(a.Present) != len(some) || len(a.Noted) > 0 && len(a.Noted) != len(some) {
				return nil, errHolders
			}
			for i, subject := range some {
				if a.Present[i] {
					there[subject] = shard.Active{}
				}
				if len(a.Noted) > 0 && a.Present[i] {
					there[subject] = a.Noted[i]
				}
			}
		}
	}
	return there, nil
}

// A cursor of a report has the index of the next pair, and how many pairs there are: when subjects go,
// the indexes change. Bytes of a hash detect a mistyped cursor, and one of another report.
const duplicatesCursorBytes = 12

func duplicatesCursor(of id.Batch, total, next int) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, duplicatesCursorBytes), uint32(next))
	b = binary.BigEndian.AppendUint32(b, uint32(total))
	h := sha256.New()
	h.Write([]byte("facet duplicates 1"))
	h.Write(of.UUID[:])
	h.Write(b)
	return base64.RawURLEncoding.EncodeToString(append(b, h.Sum(nil)[:duplicatesCursorBytes-len(b)]...))
}

// readDuplicatesCursor returns the index in a cursor of a report of total pairs. The empty text is the
// start.
func readDuplicatesCursor(of id.Batch, total int, text string) (next int, ok bool) {
	if text == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != duplicatesCursorBytes {
		return 0, false
	}
	next = int(binary.BigEndian.Uint32(b))
	return next, next < total && duplicatesCursor(of, total, next) == text
}
