package searches

import (
	"context"
	"errors"
	"time"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/scan"
)

// Search returns the complete candidate list of the gallery for the probe. It
// covers every write that was acknowledged before the call; otherwise Search
// returns an error. An empty list is no error.
func (r *SearchRequests) Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error) {
	g, app, err := r.cluster.Of(q.Access)
	if err != nil {
		return router.SearchResult{}, err
	}
	tags, err := cluster.TagIdentities(ctx, r.cluster, g, q.Tags)
	if err != nil {
		return router.SearchResult{}, err
	}
	begin := time.Now()
	probe, err := r.faces.Probes(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return router.SearchResult{}, err
	}
	extracted := time.Now()
	least := q.Threshold
	if q.Count == router.CountEvents && app.ReviewThreshold > 0 {
		least = min(least, app.ReviewThreshold)
	}
	lists, receipt, err := r.Scatter(ctx, g, SearchQuery{
		Probe: probe.Template, Model: probe.Model, Threshold: least, Limit: q.Limit, Tags: tags,
		BySubject: q.Count == router.CountSubjects, Notes: q.Count == router.CountEvents || q.Audited, Means: g.SubjectTemplates, Receipt: q.Receipt || q.Audited,
	})
	if err == nil && q.Receipt {
		err = r.showReceipt(ctx, g.ID, receipt)
	}
	if err != nil {
		return router.SearchResult{}, err
	}
	searched := time.Now()
	result := router.SearchResult{
		Attributes: probe.Attributes, Ignored: probe.Ignored, Probes: probe.All,
		Searched: router.Searched{Generation: g.Generation, Model: probe.Model, Receipt: receipt},
	}
	hits := BestHits(lists, q.Limit)
	notes := NotesOf(hits)
	result.Candidates, result.Doubtful = divide(hits, q.Threshold)
	if err = r.OpenCandidates(g, result.Candidates, notes); err == nil {
		err = r.OpenCandidates(g, result.Doubtful, notes)
	}
	r.meter.Searched(extracted.Sub(begin), searched.Sub(extracted), time.Since(searched))
	return result, err
}

// Scatter searches all shards of a gallery by q, which names no gallery. The shards of a node share a
// limit, unless that has left out a hit. receipt is nil unless q asks for one and all shards give one.
func (r *SearchRequests) Scatter(ctx context.Context, g cluster.Gallery, q SearchQuery) (lists [][]NotedHit, receipt *router.Receipt, err error) {
	for shares := true; ; shares = false {
		asked := g
		lists, err = Settled(ctx, r.cluster, g, func(g cluster.Gallery) ([][]NotedHit, error) {
			asked = g
			q.Gallery, q.Generation, q.Epoch = g.ID, g.Generation, g.Epoch
			if q.Share = (id.UUID{}); shares && len(g.ShardIDs) > 1 {
				q.Share = cluster.RandomID()
			}
			return calls.ScatterAny(ctx, r.cluster.Calls, ShardSearch, g.ShardIDs, q)
		})
		if err == nil && q.Receipt {
			receipt = ReceiptOf(r.cluster, asked.Gallery, lists)
		}
		if err != nil || withoutFloors(lists, q.Limit) || !shares {
			return lists, receipt, err
		}
	}
}

// OpenCandidates decrypts the notes of candidates.
func (r *SearchRequests) OpenCandidates(g cluster.Gallery, list []router.Candidate, notes map[id.Subject]shard.Active) error {
	for i := range list {
		if err := r.openCandidate(g, &list[i], notes); err != nil {
			return err
		}
	}
	return nil
}

// openCandidate decrypts the note of a candidate, if it has one.
func (r *SearchRequests) openCandidate(g cluster.Gallery, c *router.Candidate, notes map[id.Subject]shard.Active) error {
	noted := notes[c.Subject]
	if len(noted.Note) == 0 {
		return nil
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err == nil {
		c.Note, err = g.OpenNote(key, c.Subject, noted)
	}
	return err
}

// ShardSearch searches one shard.
var ShardSearch = calls.NewMethod("shard.search", func(ctx context.Context, r *SearchRequests, group id.Shard, q SearchQuery) ([]NotedHit, error) {
	floor, leave := r.shares.join(q.Share, q.Limit)
	defer leave()
	return cluster.ReadBeside(ctx, r.cluster, group, func(ctx context.Context, s *shard.Shard) ([]NotedHit, error) {
		noted, err := searchShard(ctx, r, group, s, q, floor)
		return withFloor(noted, floor), err
	})
})

// searchShard searches one shard.
func searchShard(ctx context.Context, r *SearchRequests, group id.Shard, s *shard.Shard, q SearchQuery, floor *scan.Floor) ([]NotedHit, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return nil, cluster.Outdated(err)
	}
	key, err := cluster.KeyOf(ctx, r.cluster, q.Gallery)
	if err != nil {
		return nil, err
	}
	search := s.Search
	if q.Pending {
		search = s.SearchPending
	}
	var coverage *scan.Coverage
	if q.Receipt {
		coverage = new(scan.Coverage)
	}
	begin := time.Now()
	ctx, running := trace.Start(ctx, trace.Stage{Name: trace.Scan, Group: group})
	hits, err := search(ctx, q.Gallery, q.Generation, key, shard.Query{
		Probe: q.Probe, Threshold: q.Threshold, Limit: q.Limit, Tags: q.Tags, BySubject: q.BySubject, Means: q.Means,
		Floor: floor, Coverage: coverage,
	})
	running.End(err)
	err = TooBusy(err)
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return nil, other
	}
	if err == nil {
		r.meter.SearchedShard(int(s.Usage(q.Gallery).Active), time.Since(begin))
	}
	if err != nil {
		return nil, cluster.Outdated(err)
	}
	noted, err := q.notes(s, hits)
	return withReceipt(noted, group, coverage), err
}

// TooBusy turns the error of a queue that is full into one for the client.
func TooBusy(err error) error {
	if errors.Is(err, kernel.ErrBusy) {
		return &router.Error{Kind: router.Busy, Message: "too many searches wait; try again", RetryAfter: calls.RetryLater}
	}
	return err
}

// notes adds the notes of subjects to hits, if q asks for them.
func (q SearchQuery) notes(s *shard.Shard, hits []shard.Hit) ([]NotedHit, error) {
	out, subjects := make([]NotedHit, len(hits)), make([]id.Subject, len(hits))
	seen := map[id.Subject]bool{}
	for i, h := range hits {
		out[i].Hit = h
		if !seen[h.Subject] {
			seen[h.Subject], subjects[i] = true, h.Subject
		}
	}
	if !q.Notes {
		return out, nil
	}
	noted, err := s.NotesOf(q.Gallery, q.Generation, subjects)
	for i := range noted {
		out[i].Noted = noted[i]
	}
	return out, cluster.Outdated(err)
}
