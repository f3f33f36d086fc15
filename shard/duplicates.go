package shard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/scan"
	"facet/shard/seal"
	"facet/shard/segment"
)

const (
	// pairsTogether is how many probes share a pass: as many as the kernel compares at once. A pass over many entries
	// has fewer, so that it has passComparisons at most, about half a second.
	pairsTogether   = 32
	passComparisons = 1 << 27
	// pairHits is how many subjects a probe is expected to find at most. One that finds as many is
	// searched for again.
	pairHits = 32
)

// Pair is two subjects whose best events have this score. A is the smaller id.
type Pair struct {
	A     id.Subject `cbor:"1,keyasint"`
	B     id.Subject `cbor:"2,keyasint"`
	Score int        `cbor:"3,keyasint"`
}

// ComparePairs orders pairs totally, best first.
func ComparePairs(x, y Pair) int {
	return cmp.Or(cmp.Compare(y.Score, x.Score), bytes.Compare(x.A.UUID[:], y.A.UUID[:]), bytes.Compare(x.B.UUID[:], y.B.UUID[:]))
}

// Probe is the template of an event, to be compared with a gallery.
type Probe struct {
	Subject  id.Subject      `cbor:"1,keyasint"`
	Template engine.Template `cbor:"2,keyasint"`
}

// PairQuery asks for the pairs of some probes' subjects and those of a slice.
type PairQuery struct {
	Probes []Probe
	// Threshold is the lowest score wanted, inclusive.
	Threshold int
	// Own says that the probes are of the same slice. Then only subjects with a larger id than the
	// probe's count, so that the probes of a whole slice find each pair once.
	Own bool
	// Limit is the most pairs to return.
	Limit int
	// Time is how long passes begin. At least one does.
	Time time.Duration
}

// Paired is the answer to a PairQuery.
type Paired struct {
	// Pairs are in the order of ComparePairs.
	Pairs []Pair
	// Complete is false if there are more than the query's limit. Then some of them are missing.
	Complete bool
	// Done is how many of the query's probes, the first ones, were compared.
	Done int
}

// Blocks returns the sequences that end blocks of n entries of a gallery's slice. The last block may be
// shorter. The error wraps ErrGeneration.
func (s *lockedState) Blocks(g id.Gallery, generation uint32, n int) (ends []uint64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return nil, err
	}
	for at := n; ; at += n {
		for _, e := range sl.entries.At(min(at, sl.entries.Len()) - 1) {
			ends = append(ends, e.Sequence())
			break
		}
		if at >= sl.entries.Len() {
			return ends, nil
		}
	}
}

// Present reports which subjects are in a gallery's slice. The error wraps ErrGeneration.
func (s *lockedState) Present(g id.Gallery, generation uint32, subjects []id.Subject) ([]bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	present := make([]bool, len(subjects))
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return present, err
	}
	for i, subject := range subjects {
		present[i] = !sl.first(subject).none()
	}
	return present, nil
}

// Probes returns the templates of the active events of a gallery's slice whose sequences lie behind
// after, up to last, and their model. Errors are those of Search.
func (s *Shard) Probes(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, after, last uint64) (probes []Probe, model id.Model, err error) {
	sl, leave, err := s.enter(g, generation)
	if err != nil || sl == nil {
		return nil, model, err
	}
	defer leave()
	if model, err = sl.models.only(); err != nil {
		return nil, model, err
	}
	u := newUnsealer(&s.sealed, key)
	defer u.free()
	set := s.sealed.current()
	defer set.Release()
	for _, e := range s.active(sl, after, last) {
		if err := s.going(ctx); err != nil {
			return nil, model, err
		}
		template, err := u.open(set, sl.ref(e), e)
		if errors.Is(err, segment.ErrMissing) && sl.templates.gone(e) {
			continue
		}
		if err != nil {
			return nil, model, err
		}
		probes = append(probes, Probe{e.Subject, slices.Clone(template)})
	}
	return probes, model, nil
}

// active returns the active entries of a pinned slice in a span of sequences.
func (s *Shard) active(sl *slice, after, last uint64) (list []*entry) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range sl.entries.All(after + 1) {
		if e.Sequence() > last {
			break
		}
		if !e.Deleted {
			list = append(list, e)
		}
	}
	return list
}

// Pairs returns the pairs of the probes' subjects and the subjects of a gallery's slice. The score of a pair
// is the best one of the probes and the subject's events; templates of subjects don't count. Each pair of a
// compared probe at or above the threshold is there whose events stay as they are during the call. Errors are
// those of Search.
func (s *Shard) Pairs(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q PairQuery) (Paired, error) {
	none := Paired{Complete: true, Done: len(q.Probes)}
	sl, leave, err := s.enter(g, generation)
	if err != nil || sl == nil {
		return none, err
	}
	defer leave()
	if err := s.open(ctx, sl, key); err != nil {
		return Paired{}, err
	}
	now := sl.templates.begin()
	defer sl.templates.end()
	if now.queue == nil {
		return none, nil
	}
	found, begun, done := pairing{query: &q, best: make(map[[2]id.Subject]int), complete: true}, time.Now(), 0
	for some := range slices.Chunk(q.Probes, probesOfPass(s.entriesOf(sl))) {
		if done > 0 && time.Since(begun) >= q.Time {
			break
		}
		if err := s.going(ctx); err != nil {
			return Paired{}, err
		}
		if err := found.search(ctx, now.queue, some); err != nil {
			return Paired{}, fmt.Errorf("compare %d probes with gallery %s: %w", len(some), g, err)
		}
		done += len(some)
	}
	pairs := found.sorted()
	return Paired{pairs, found.complete, done}, nil
}

func (s *Shard) entriesOf(sl *slice) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sl.entries.Len()
}

// probesOfPass returns how many probes share a pass over so many entries.
func probesOfPass(entries int) int {
	return min(max(passComparisons/max(entries, 1), 1), pairsTogether)
}

// pairing collects pairs.
type pairing struct {
	query    *PairQuery
	best     map[[2]id.Subject]int
	complete bool
}

// search adds the pairs of some probes. It searches again for those that found as many subjects as they
// could.
func (p *pairing) search(ctx context.Context, queue *kernel.Queue, probes []Probe) error {
	most := max(pairHits, p.query.Limit+2) // the probe's own subject is one
	for limit := pairHits; len(probes) > 0; limit = most {
		queries := make([]scan.Query, len(probes))
		for i, probe := range probes {
			queries[i] = scan.Query{Probe: probe.Template, Threshold: p.query.Threshold, Limit: limit, BySubject: true}
		}
		lists, err := queue.SearchAll(ctx, queries)
		if err != nil {
			return err
		}
		var again []Probe
		for i, hits := range lists {
			if len(hits) == limit && limit < most {
				again = append(again, probes[i])
				continue
			}
			p.complete = p.complete && len(hits) < limit
			for _, h := range hits {
				p.add(probes[i].Subject, h)
			}
		}
		probes = again
	}
	return nil
}

func (p *pairing) add(probe id.Subject, h Hit) {
	order := bytes.Compare(probe.UUID[:], h.Subject.UUID[:])
	if order == 0 || order > 0 && p.query.Own {
		return
	}
	key := [2]id.Subject{probe, h.Subject}
	if order > 0 {
		key = [2]id.Subject{h.Subject, probe}
	}
	p.best[key] = max(p.best[key], h.Score)
	if len(p.best) >= 2*p.query.Limit+pairHits {
		p.keep(p.sorted())
	}
}

// sorted returns the best pairs, at most as many as the query wants.
func (p *pairing) sorted() []Pair {
	list := make([]Pair, 0, len(p.best))
	for k, score := range p.best {
		list = append(list, Pair{k[0], k[1], score})
	}
	slices.SortFunc(list, ComparePairs)
	if len(list) > p.query.Limit {
		list, p.complete = list[:p.query.Limit], false
	}
	return list
}

// keep forgets all pairs but these.
func (p *pairing) keep(list []Pair) {
	clear(p.best)
	for _, pair := range list {
		p.best[[2]id.Subject{pair.A, pair.B}] = pair.Score
	}
}
