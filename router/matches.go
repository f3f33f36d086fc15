package router

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"

	"facet/engine"
	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/scan"
)

// MatchQuery asks for a page of all subjects that the probe may show.
type MatchQuery struct {
	Access    Access
	Probe     []byte // image bytes
	Threshold int    // 0 to ThresholdMax, inclusive
	Length    int    // 1 to MatchLengthMax
	// After is the Next of the page before, or empty.
	After string
	// Audited asks for a receipt, as in SearchQuery.
	Audited bool
}

// Match is a subject with at least one event, or a template of its own, at or above the threshold.
type Match struct {
	Candidate // its best MatchEventsMax events
	// EventCount counts all its events at or above the threshold. It is 0 if only the subject's own
	// template is; Events has the best event then.
	EventCount int
}

// Matched is a page of matches in the order of their ids.
type Matched struct {
	Matches []Match
	// Next continues the run; it is empty on the last page. A page may be empty and have a Next.
	Next       string
	Attributes engine.Attributes // of the probe
	// Ignored are other faces on the probe.
	Ignored []engine.Attributes
	Searched
}

// Matches returns a page of the gallery's subjects that have an event at or above the threshold.
// Each page covers every write that was acknowledged before its call. A subject that has such an
// event during the whole run is on exactly one of its pages.
func (r *searchRequests) Matches(ctx context.Context, q MatchQuery) (Matched, error) {
	g, app, err := r.enrolment(q.Access)
	if err != nil {
		return Matched{}, err
	}
	cluster, _ := r.groups.Meta().Cluster()
	after, ok := readMatchCursor(cluster.ID, g.Gallery, q.After)
	if !ok {
		return Matched{}, Errorf(InvalidRequest, ReasonUnknownCursor, "the cursor in after is not one of this gallery's matches; send the next of an earlier page as it came")
	}
	probe, err := r.probe(ctx, q.Probe, portrait.Rule(app.MultipleFaces))
	if err != nil {
		return Matched{}, err
	}
	asked := g
	lists, err := settled(ctx, r.cluster, g, func(g enrolment) ([]matchesAnswer, error) {
		asked = g
		return calls.ScatterAny(ctx, r.calls, shardMatches, g.shards, matchesQuery{
			Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Probe: probe.Template, Model: probe.Model,
			Threshold: q.Threshold, Limit: q.Length, After: after, Means: g.SubjectTemplates, Receipt: q.Audited,
		})
	})
	if err != nil {
		return Matched{}, err
	}
	matches, next := mergeMatches(lists, q.Length)
	page := Matched{Matches: matches, Attributes: probe.Attributes, Ignored: probe.Ignored, Searched: Searched{g.Generation, probe.Model, nil}}
	if q.Audited {
		page.Receipt = receiptOfMatches(r.cluster, asked.Gallery, lists)
	}
	for i := range matches {
		if err := r.openCandidate(g, &matches[i].Candidate); err != nil {
			return Matched{}, err
		}
	}
	if !next.IsZero() {
		page.Next = matchCursor(cluster.ID, g.Gallery, next)
	}
	return page, nil
}

// mergeMatches returns the first length matches of the shards' pages, and the subject after which
// the run continues: zero at its end. A shard's list says nothing of subjects after its own next.
func mergeMatches(lists []matchesAnswer, length int) (page []Match, next id.Subject) {
	var all []shard.Match
	noted := map[id.Subject]shard.Active{}
	for _, l := range lists {
		all = append(all, l.Matches...)
		for i, a := range l.Noted[:min(len(l.Noted), len(l.Matches))] {
			noted[l.Matches[i].Subject] = a
		}
		if !l.Next.IsZero() && (next.IsZero() || compareSubjects(l.Next, next) < 0) {
			next = l.Next
		}
	}
	slices.SortFunc(all, func(a, b shard.Match) int { return compareSubjects(a.Subject, b.Subject) })
	for _, m := range all {
		if !next.IsZero() && compareSubjects(m.Subject, next) > 0 {
			break
		}
		if len(page) == length {
			return page, page[length-1].Subject
		}
		c := Candidate{Subject: m.Subject, Score: m.Events[0].Rank(), SubjectScore: m.Events[0].SubjectScore, noted: noted[m.Subject]}
		for _, h := range m.Events {
			c.Events = append(c.Events, CandidateEvent{Event: h.Event, Score: h.Score})
		}
		page = append(page, Match{Candidate: c, EventCount: m.Total})
	}
	return page, next
}

func compareSubjects(a, b id.Subject) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }

// matchesQuery asks one shard for its part of a page.
type matchesQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Epoch      uint32     `cbor:"3,keyasint,omitempty"` // as in searchQuery
	Probe      []float32  `cbor:"4,keyasint"`
	Model      id.Model   `cbor:"5,keyasint"` // of the probe
	Threshold  int        `cbor:"6,keyasint"`
	Limit      int        `cbor:"7,keyasint"`
	After      id.Subject `cbor:"8,keyasint,omitzero"`
	Means      bool       `cbor:"9,keyasint,omitempty"` // as in searchQuery
	// Receipt asks for a ShardReceipt.
	Receipt bool `cbor:"10,keyasint,omitempty"`
}

type matchesAnswer struct {
	Matches []shard.Match `cbor:"1,keyasint,omitempty"`
	Next    id.Subject    `cbor:"2,keyasint,omitzero"`
	// Noted has the notes of the subjects of Matches, or nothing if none has one.
	Noted []shard.Active `cbor:"3,keyasint,omitempty"`
	// Receipt states which events were searched for the subjects of this page.
	Receipt *ShardReceipt `cbor:"4,keyasint,omitempty"`
}

var shardMatches = method[matchesQuery, matchesAnswer]{Name: "shard.matches", Run: func(ctx context.Context, r *Router, group id.Shard, q matchesQuery) (a matchesAnswer, err error) {
	s, err := r.readAny(ctx, group)
	if err != nil {
		return a, err
	}
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return a, outdated(err)
	}
	key, err := r.keyOf(ctx, q.Gallery)
	if err != nil {
		return a, err
	}
	var coverage *scan.Coverage
	if q.Receipt {
		coverage = new(scan.Coverage)
	}
	a.Matches, a.Next, err = s.Matches(ctx, q.Gallery, q.Generation, key, shard.MatchQuery{
		Probe: q.Probe, Threshold: q.Threshold, After: q.After,
		Limit: min(q.Limit, MatchLengthMax), EventsMax: MatchEventsMax, Means: q.Means, Coverage: coverage,
	})
	if other := s.CheckModel(q.Gallery, q.Model); other != nil {
		return matchesAnswer{}, other
	}
	if err != nil {
		return a, outdated(tooBusy(err))
	}
	subjects := make([]id.Subject, len(a.Matches))
	for i, m := range a.Matches {
		subjects[i] = m.Subject
	}
	a.Receipt = receiptOfShard(group, coverage)
	a.Noted, err = s.NotesOf(q.Gallery, q.Generation, subjects)
	return a, outdated(err)
}}

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
	return base64.RawURLEncoding.EncodeToString(append(b, macOfCursor(purposeMatches, of, g, b)...))
}

// readMatchCursor reads a cursor of matches in g. The empty text is the start of a run.
func readMatchCursor(of id.Cluster, g metafsm.Gallery, text string) (last id.Subject, ok bool) {
	if text == "" {
		return last, true
	}
	head, ok := openCursor(purposeMatches, of, g, text, matchCursorHead)
	if !ok || head[0] != matchCursorVersion {
		return last, false
	}
	copy(last.UUID[:], head[1:])
	return last, true
}
