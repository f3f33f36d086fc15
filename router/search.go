package router

import (
	"context"
	"errors"
	"time"

	"facet/internal/id"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/kernel"
)

// Search returns the complete candidate list of the gallery for the probe. It
// covers every write that was acknowledged before the call; otherwise Search
// returns an error. An empty list is no error.
func (r *searchRequests) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	g, _, err := r.enrolment(q.Access)
	if err != nil {
		return SearchResult{}, err
	}
	tags, err := r.tags(ctx, g, q.Tags)
	if err != nil {
		return SearchResult{}, err
	}
	begin := time.Now()
	probe, err := r.probe(ctx, q.Probe)
	if err != nil {
		return SearchResult{}, err
	}
	extracted := time.Now()
	lists, err := withFreshShards(ctx, r.cluster, g, func(g enrolment) ([][]shard.Hit, error) {
		return calls.ScatterAny(ctx, r.calls, shardSearch, g.shards, searchQuery{
			Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Probe: probe.Template, Model: probe.Model,
			Threshold: q.Threshold, Limit: q.Limit, Tags: tags, BySubject: q.Count == CountSubjects,
		})
	})
	if err != nil {
		return SearchResult{}, err
	}
	found := time.Now()
	result := SearchResult{Candidates: merge(lists, q.Limit), Attributes: probe.Attributes}
	r.meter.Searched(extracted.Sub(begin), found.Sub(extracted), time.Since(found))
	return result, nil
}

// searchQuery asks one shard for its best matches.
type searchQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Probe      []float32  `cbor:"3,keyasint"`
	Threshold  int        `cbor:"4,keyasint"`
	Limit      int        `cbor:"5,keyasint"`
	Tags       []uint32   `cbor:"6,keyasint,omitempty"`
	BySubject  bool       `cbor:"7,keyasint,omitempty"`
	// Epoch is the epoch of the list of shards that the caller uses.
	Epoch uint32 `cbor:"8,keyasint,omitempty"`
	// Pending selects events that are not active yet (see activateUnlessKnown).
	Pending bool `cbor:"9,keyasint,omitempty"`
	// Model is the model that made the probe.
	Model id.Model `cbor:"10,keyasint"`
}

var shardSearch = method[searchQuery, []shard.Hit]{Name: "shard.search", Run: func(ctx context.Context, r *Router, group id.Shard, q searchQuery) ([]shard.Hit, error) {
	s, err := r.readAny(ctx, group)
	if err != nil {
		return nil, err
	}
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return nil, outdated(err)
	}
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return nil, err
	}
	search := s.Search
	if q.Pending {
		search = s.Pending().Search
	}
	begin := time.Now()
	hits, err := search(ctx, q.Gallery, q.Generation, key, shard.Query{
		Probe: q.Probe, Threshold: q.Threshold, Limit: q.Limit, Tags: q.Tags, BySubject: q.BySubject,
	})
	err = tooBusy(err)
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return nil, other
	}
	if err == nil {
		r.meter.SearchedShard(int(s.Slots().Usage(q.Gallery).Active), time.Since(begin))
	}
	return hits, outdated(err)
}}

// tooBusy turns the error of a queue that is full into one for the client.
func tooBusy(err error) error {
	if errors.Is(err, kernel.ErrBusy) {
		return &Error{Kind: Busy, Message: "too many searches wait; try again", RetryAfter: calls.RetryLater}
	}
	return err
}

// bestQuery asks a subject's shard for the best score among the subject's events.
type bestQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
	Probe      []float32  `cbor:"4,keyasint"`
	Model      id.Model   `cbor:"5,keyasint"` // of the probe
}

type bestAnswer struct {
	Known bool `cbor:"1,keyasint"`
	Score int  `cbor:"2,keyasint"`
}

var shardBest = shardRead("shard.best", func(ctx context.Context, r *Router, s *shard.Shard, q bestQuery) (bestAnswer, error) {
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return bestAnswer{}, err
	}
	best, known, err := s.Best(q.Gallery, key, q.Subject, q.Probe)
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return bestAnswer{}, other
	}
	return bestAnswer{Known: known, Score: best}, err
})
