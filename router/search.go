package router

import (
	"context"
	"errors"
	"time"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/scan"
)

// Search returns the complete candidate list of the gallery for the probe. It
// covers every write that was acknowledged before the call; otherwise Search
// returns an error. An empty list is no error.
func (r *searchRequests) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	g, app, err := r.enrolment(q.Access)
	if err != nil {
		return SearchResult{}, err
	}
	tags, err := r.tags(ctx, g, q.Tags)
	if err != nil {
		return SearchResult{}, err
	}
	begin := time.Now()
	probe, err := r.probes(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return SearchResult{}, err
	}
	extracted := time.Now()
	least := q.Threshold
	if q.Count == CountEvents && app.ReviewThreshold > 0 {
		least = min(least, app.ReviewThreshold)
	}
	lists, receipt, err := r.scatter(ctx, g, searchQuery{
		Probe: probe.Template, Model: probe.Model, Threshold: least, Limit: q.Limit, Tags: tags,
		BySubject: q.Count == CountSubjects, Notes: q.Count == CountEvents || q.Audited, Means: g.SubjectTemplates, Receipt: q.Receipt || q.Audited,
	})
	if err == nil && q.Receipt {
		err = r.showReceipt(ctx, g.ID, receipt)
	}
	if err != nil {
		return SearchResult{}, err
	}
	searched := time.Now()
	result := SearchResult{
		Attributes: probe.Attributes, Ignored: probe.Ignored, Probes: probe.all,
		Searched: Searched{g.Generation, probe.Model, receipt},
	}
	result.Candidates, result.Doubtful = divide(bestHits(lists, q.Limit), q.Threshold)
	if err = r.openCandidates(g, result.Candidates); err == nil {
		err = r.openCandidates(g, result.Doubtful)
	}
	r.meter.Searched(extracted.Sub(begin), searched.Sub(extracted), time.Since(searched))
	return result, err
}

// scatter searches all shards of a gallery by q, which names no gallery. The shards of a node share a
// limit, unless that has left out a hit. receipt is nil unless q asks for one and all shards give one.
func (r *searchRequests) scatter(ctx context.Context, g enrolment, q searchQuery) (lists [][]notedHit, receipt *Receipt, err error) {
	for shares := true; ; shares = false {
		asked := g
		lists, err = settled(ctx, r.cluster, g, func(g enrolment) ([][]notedHit, error) {
			asked = g
			q.Gallery, q.Generation, q.Epoch = g.ID, g.Generation, g.Epoch
			if q.Share = (id.UUID{}); shares && len(g.shards) > 1 {
				q.Share = randomID()
			}
			return calls.ScatterAny(ctx, r.calls, shardSearch, g.shards, q)
		})
		if err == nil && q.Receipt {
			receipt = receiptOf(r.cluster, asked.Gallery, lists)
		}
		if err != nil || withoutFloors(lists, q.Limit) || !shares {
			return lists, receipt, err
		}
	}
}

// openCandidates decrypts the notes of candidates.
func (r *searchRequests) openCandidates(g enrolment, list []Candidate) error {
	for i := range list {
		if err := r.openCandidate(g, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// openCandidate decrypts the note of a candidate, if it has one.
func (r *searchRequests) openCandidate(g enrolment, c *Candidate) error {
	if len(c.noted.Note) == 0 {
		return nil
	}
	key, err := r.dataKey(g.Gallery)
	if err == nil {
		c.Note, err = openNote(g, key, c.Subject, c.noted)
	}
	return err
}

// notedHit is a hit of a shard. The first one of a subject has the subject's note, if there is one and
// the search asks for notes.
type notedHit struct {
	shard.Hit
	Noted shard.Active `cbor:",omitzero"`
	// Floor, unless 0, says that this is no hit: the shard may have left out hits of lower scores,
	// because the search shares a limit.
	Floor int `cbor:",omitempty"`
	// Receipt, unless nil, says that this is no hit but what the shard states about the search.
	Receipt *ShardReceipt `cbor:",omitempty"`
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
	// Notes asks for notes.
	Notes bool `cbor:"11,keyasint,omitempty"`
	// Means asks for the subjects' own templates.
	Means bool `cbor:"12,keyasint,omitempty"`
	// Share, unless zero, names the search: shards of one node that search for it share a limit, and
	// may leave out hits below it.
	Share id.UUID `cbor:"13,keyasint,omitzero"`
	// Receipt asks for a ShardReceipt behind the hits.
	Receipt bool `cbor:"14,keyasint,omitempty"`
}

var shardSearch = method[searchQuery, []notedHit]{Name: "shard.search", Run: func(ctx context.Context, r *Router, group id.Shard, q searchQuery) ([]notedHit, error) {
	floor, leave := r.shares.join(q.Share, q.Limit)
	defer leave()
	return readBeside(ctx, r.cluster, group, func(ctx context.Context, s *shard.Shard) ([]notedHit, error) {
		noted, err := searchShard(ctx, r, group, s, q, floor)
		return withFloor(noted, floor), err
	})
}}

// searchShard searches one shard.
func searchShard(ctx context.Context, r *Router, group id.Shard, s *shard.Shard, q searchQuery, floor *scan.Floor) ([]notedHit, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return nil, outdated(err)
	}
	key, err := r.keyOf(ctx, q.Gallery)
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
	err = tooBusy(err)
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return nil, other
	}
	if err == nil {
		r.meter.SearchedShard(int(s.Usage(q.Gallery).Active), time.Since(begin))
	}
	if err != nil {
		return nil, outdated(err)
	}
	noted, err := q.notes(s, hits)
	return withReceipt(noted, group, coverage), err
}

// tooBusy turns the error of a queue that is full into one for the client.
func tooBusy(err error) error {
	if errors.Is(err, kernel.ErrBusy) {
		return &Error{Kind: Busy, Message: "too many searches wait; try again", RetryAfter: calls.RetryLater}
	}
	return err
}

// notes adds the notes of subjects to hits, if q asks for them.
func (q searchQuery) notes(s *shard.Shard, hits []shard.Hit) ([]notedHit, error) {
	out, subjects := make([]notedHit, len(hits)), make([]id.Subject, len(hits))
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
	return out, outdated(err)
}

// bestQuery asks a subject's shard for the best score among the subject's events.
type bestQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
	Probe      []float32  `cbor:"4,keyasint"`
	Model      id.Model   `cbor:"5,keyasint"` // of the probe
	// Means asks for the subject's own template, too.
	Means bool `cbor:"6,keyasint,omitempty"`
}

type bestAnswer struct {
	Known bool `cbor:"1,keyasint"`
	Score int  `cbor:"2,keyasint"`
	// Noted has the subject's note, if there is one.
	Noted shard.Active `cbor:"3,keyasint,omitzero"`
}

var shardBest = shardReadAny("shard.best", func(ctx context.Context, r *Router, s *shard.Shard, q bestQuery) (bestAnswer, error) {
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return bestAnswer{}, err
	}
	best, known, err := s.Best(q.Gallery, key, q.Subject, shard.Query{Probe: q.Probe, Means: q.Means})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return bestAnswer{}, other
	}
	a := bestAnswer{Known: known, Score: best}
	if err != nil {
		return a, err
	}
	noted, err := s.NotesOf(q.Gallery, q.Generation, []id.Subject{q.Subject})
	if len(noted) == 1 {
		a.Noted = noted[0]
	}
	return a, err
})
