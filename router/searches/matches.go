package searches

import (
	"context"
	"encoding/base64"
	"slices"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
	"facet/shard/scan"
)

// Matches returns a page of the gallery's subjects that have an event at or above the threshold.
// Each page covers every write that was acknowledged before its call. A subject that has such an
// event during the whole run is on exactly one of its pages.
func (r *SearchRequests) Matches(ctx context.Context, q router.MatchQuery) (router.Matched, error) {
	g, app, err := r.cluster.Of(q.Access)
	if err != nil {
		return router.Matched{}, err
	}
	record, _ := r.cluster.Groups.Meta().Cluster()
	after, ok := readMatchCursor(record.ID, g.Gallery, q.After)
	if !ok {
		return router.Matched{}, router.Errorf(router.InvalidRequest, router.ReasonUnknownCursor, "the cursor in after is not one of this gallery's matches; send the next of an earlier page as it came")
	}
	probe, err := r.faces.Probe(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return router.Matched{}, err
	}
	asked := g
	lists, err := Settled(ctx, r.cluster, g, func(g cluster.Gallery) ([]matchesAnswer, error) {
		asked = g
		return calls.ScatterAny(ctx, r.cluster.Calls, shardMatches, g.ShardIDs, matchesQuery{
			Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Probe: probe.Template, Model: probe.Model,
			Threshold: q.Threshold, Limit: q.Length, After: after, Means: g.SubjectTemplates, Receipt: q.Audited,
		})
	})
	if err != nil {
		return router.Matched{}, err
	}
	matches, notes, next := mergeMatches(lists, q.Length)
	page := router.Matched{Matches: matches, Attributes: probe.Attributes, Ignored: probe.Ignored, Searched: router.Searched{Generation: g.Generation, Model: probe.Model, Receipt: nil}}
	if q.Audited {
		page.Receipt = receiptOfMatches(r.cluster, asked.Gallery, lists)
	}
	for i := range matches {
		if err := r.openCandidate(g, &matches[i].Candidate, notes); err != nil {
			return router.Matched{}, err
		}
	}
	if !next.IsZero() {
		page.Next = matchCursor(record.ID, g.Gallery, next)
	}
	return page, nil
}

// mergeMatches returns the first length matches of the shards' pages, the sealed notes of their subjects, and
// the subject after which the run continues: zero at its end. A shard's list says nothing of subjects after its own next.
func mergeMatches(lists []matchesAnswer, length int) (page []router.Match, notes map[id.Subject]shard.Active, next id.Subject) {
	var all []shard.Match
	notes = map[id.Subject]shard.Active{}
	for _, l := range lists {
		all = append(all, l.Matches...)
		for i, a := range l.Noted[:min(len(l.Noted), len(l.Matches))] {
			notes[l.Matches[i].Subject] = a
		}
		if !l.Next.IsZero() && (next.IsZero() || lookup.CompareSubjects(l.Next, next) < 0) {
			next = l.Next
		}
	}
	slices.SortFunc(all, func(a, b shard.Match) int { return lookup.CompareSubjects(a.Subject, b.Subject) })
	for _, m := range all {
		if !next.IsZero() && lookup.CompareSubjects(m.Subject, next) > 0 {
			break
		}
		if len(page) == length {
			return page, notes, page[length-1].Subject
		}
		c := router.Candidate{Subject: m.Subject, Score: m.Events[0].Rank(), SubjectScore: m.Events[0].SubjectScore}
		for _, h := range m.Events {
			c.Events = append(c.Events, router.CandidateEvent{Event: h.Event, Score: h.Score})
		}
		page = append(page, router.Match{Candidate: c, EventCount: m.Total})
	}
	return page, notes, next
}

var shardMatches = calls.NewMethod("shard.matches", func(ctx context.Context, r *cluster.Cluster, group id.Shard, q matchesQuery) (a matchesAnswer, err error) {
	s, err := r.ReadAny(ctx, group)
	if err != nil {
		return a, err
	}
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return a, cluster.Outdated(err)
	}
	key, err := cluster.KeyOf(ctx, r, q.Gallery)
	if err != nil {
		return a, err
	}
	var coverage *scan.Coverage
	if q.Receipt {
		coverage = new(scan.Coverage)
	}
	a.Matches, a.Next, err = s.Matches(ctx, q.Gallery, q.Generation, key, shard.MatchQuery{
		Probe: q.Probe, Threshold: q.Threshold, After: q.After,
		Limit: min(q.Limit, router.MatchLengthMax), EventsMax: router.MatchEventsMax, Means: q.Means, Coverage: coverage,
	})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return matchesAnswer{}, other
	}
	if err != nil {
		return a, cluster.Outdated(TooBusy(err))
	}
	subjects := make([]id.Subject, len(a.Matches))
	for i, m := range a.Matches {
		subjects[i] = m.Subject
	}
	a.Receipt = receiptOfShard(group, coverage)
	a.Noted, err = s.NotesOf(q.Gallery, q.Generation, subjects)
	return a, cluster.Outdated(err)
})

// The cursor of a run of matches has the last subject of a page. The next page has the subjects
// after it, so no node remembers anything of a run.
//
//	0         1         17    33
//	┌─────────┬─────────┬─────┐
//	│ version │ subject │ MAC │   base64url
//	└─────────┴─────────┴─────┘
const (
	matchCursorVersion = 1
	matchCursorHead    = 1 + len(id.UUID{})
	purposeMatches     = "cursor-of-matches"
)

func matchCursor(of id.Cluster, g metafsm.Gallery, last id.Subject) string {
	b := append([]byte{matchCursorVersion}, last.UUID[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, cluster.MACOfCursor(purposeMatches, of, g, b)...))
}

// readMatchCursor reads a cursor of matches in g. The empty text is the start of a run.
func readMatchCursor(of id.Cluster, g metafsm.Gallery, text string) (last id.Subject, ok bool) {
	if text == "" {
		return last, true
	}
	head, ok := cluster.OpenCursor(purposeMatches, of, g, text, matchCursorHead)
	if !ok || head[0] != matchCursorVersion {
		return last, false
	}
	copy(last.UUID[:], head[1:])
	return last, true
}
