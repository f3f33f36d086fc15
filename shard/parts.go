package shard

import (
	"context"
	"fmt"
	"slices"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/scan"
	"facet/shard/seal"
)

// parts are the scans of one search: that of the events and, if the search uses means, one of each
// kind of mean. The first q.Limit hits of all parts together hold the first q.Limit of the search. A
// hit by an event's own score has fewer than q.Limit events before it, and a hit by a subject's
// template fewer than q.Limit subjects.
type parts struct {
	by    *comparator
	sl    *slice
	means *means // nil if the search uses none
	query *Query
	list  []part
	unpin func() // of means, or nil
}

// part is a scan of one matrix. kind is eventRows or a kind of mean.
type part struct {
	rows  *templates
	kind  int
	table *score.Table
	query Query
	now   scanning
	hits  []Hit
}

// eventRows is the kind of the rows that are no means.
const eventRows = -1

// partsOf returns the parts of a search, and makes means if the search needs them and there are
// none. Shard.mu is not held.
func partsOf(s *Shard, sl *slice, q *Query) *parts {
	var m *means
	if q.Means {
		m = s.averaged(sl)
	}
	return newParts(&s.comparator, sl, m, q)
}

func newParts(c *comparator, sl *slice, m *means, q *Query) *parts {
	if q.Coverage != nil {
		q.Coverage.Reset(0) // of an earlier scan
	}
	p := &parts{by: c, sl: sl, query: q, list: []part{{rows: &sl.templates, kind: eventRows, table: c.table, query: *q}}}
	if q.Means && m != nil {
		if p.unpin = m.entries.Pin(); p.unpin == nil {
			return p // the slice lost them a moment ago
		}
		p.means = m
		for kind := range m.rows {
			of := *q
			of.BySubject = false // a subject has one row
			of.Floor = nil       // its event may count already
			of.Coverage = nil    // which counts events
			p.list = append(p.list, part{rows: &m.rows[kind], kind: kind, table: c.table.OfMean(kind), query: of})
		}
	}
	return p
}

// leave ends the use of the parts.
func (p *parts) leave() {
	if p.unpin != nil {
		p.unpin()
	}
}

// patterned brings the tags of the queries for means up to date. A query needs every pattern of the
// rows in its matrix, so patterned follows begin: rows that come later are compared by settle.
func (p *parts) patterned() {
	if p.means == nil || len(p.query.Tags) == 0 {
		return
	}
	tags := p.means.matching(p.query.Tags)
	for i := range p.list {
		if at := &p.list[i]; at.kind != eventRows {
			at.query.Tags = tags
		}
	}
}

// matching returns the tags with which a search by tags finds rows all of whose events match.
func (m *means) matching(tags []uint32) []uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.patterns.matching(tags)
}

// current reports whether the slice has the means that the search scans.
func (p *parts) current() bool {
	return !p.query.Means || p.means != nil && p.sl.means.Load() == p.means
}

// open opens the events and derives the means that wait at the time of the call.
func (p *parts) open(ctx context.Context, key *seal.Key) error {
	err := p.by.open(ctx, p.sl, key)
	if err == nil && p.means != nil {
		err = p.by.derive(ctx, p.sl, p.means, key)
	}
	return err
}

// scan scans all parts. The caller calls end afterwards, whatever scan returns.
func (p *parts) scan(ctx context.Context) error {
	for i := range p.list {
		p.list[i].now = p.list[i].rows.begin()
	}
	p.patterned()
	for i := range p.list {
		at := &p.list[i]
		if at.now.queue == nil { // nothing was opened yet, or all rows went
			continue
		}
		var err error
		at.query.Threshold = max(at.query.Threshold, p.floor())
		if at.hits, err = queued(ctx, at.now.queue, &at.query); err != nil {
			return err
		}
	}
	return nil
}

// floor returns the least score with which a mean may get in: that of the last event of a full list,
// or of the events of all shards that share a floor, or else 0. A write that takes an event from a full
// list makes the search scan again.
func (p *parts) floor() (least int) {
	if p.query.After != nil {
		return 0
	}
	if p.query.Floor != nil {
		least = p.query.Floor.Least()
	}
	if hits := p.list[0].hits; len(hits) == p.query.Limit {
		least = max(least, hits[len(hits)-1].Score)
	}
	return least
}

func (p *parts) end() {
	for i := range p.list {
		if p.list[i].now.begun {
			p.list[i].rows.end()
		}
	}
}

// settle brings the hits up to date. It returns false if another scan is needed. Shard.mu is held
// for reading, and all templates are open.
func (p *parts) settle(key *seal.Key) (bool, error) {
	p.patterned()
	for i := range p.list {
		at := &p.list[i]
		came, cold, ok := at.rows.since(at.now.from, at.table, &at.query)
		for _, e := range cold {
			h, err := p.compared(key, at, e)
			if err != nil {
				return false, err
			}
			came = append(came, h)
		}
		if ok {
			at.hits, ok = settled(at.hits, came, &at.query, func(h Hit) bool { return p.there(at.kind, h) })
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// compared reads an entry from disk and compares it. Below the threshold its score is −1.
func (p *parts) compared(key *seal.Key, at *part, e member) (Hit, error) {
	h := Hit{Subject: e.Subject, Event: e.Event, Score: -1}
	similarity, err := p.by.compare(p.sl, key, e, at.query.Probe)
	if err != nil {
		return h, err
	}
	if s := at.table.Score(similarity); s >= at.query.Threshold {
		h.Score = s
	}
	return h, nil
}

// there reports whether the row of a hit is still there.
func (p *parts) there(kind int, h Hit) bool {
	if kind == eventRows {
		return !p.sl.find(h.Subject, h.Event).none()
	}
	row := p.means.entries.first(h.Subject)
	return !row.none() && p.means.kindOf(row) == &p.means.rows[kind]
}

// combine returns the hits of a search whose parts are of one moment. Shard.mu is held for reading.
func (p *parts) combine(key *seal.Key) ([]Hit, error) {
	p.sl.cover(p.query.Coverage)
	hits := p.list[0].hits
	if p.means == nil {
		return hits, nil
	}
	seen := make(map[id.Subject]bool, len(hits))
	for i := range hits { // the best event of a subject is its first hit
		h := &hits[i]
		if seen[h.Subject] {
			continue
		}
		seen[h.Subject] = true
		if err := p.scoreSubject(key, h); err != nil {
			return nil, err
		}
	}
	for _, part := range p.list[1:] {
		for _, of := range part.hits {
			if seen[of.Subject] {
				continue
			}
			h, err := p.by.bestEvent(p.sl, key, p.sl.first(of.Subject), p.query)
			if err != nil {
				return nil, fmt.Errorf("compare with subject %s: %w", of.Subject, err)
			}
			h.SubjectScore = of.Score
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, p.query.Compare)
	return hits[:min(len(hits), p.query.Limit)], nil
}

// scoreSubject sets the score of a hit's subject, if the search may use its template.
func (p *parts) scoreSubject(key *seal.Key, h *Hit) (err error) {
	first := p.sl.first(h.Subject)
	for e := range p.sl.from(first) {
		if !scan.Tagged(p.sl.tags(e), p.query.Tags) {
			return nil
		}
	}
	if h.SubjectScore, _, err = p.by.subjectScore(p.sl, key, first, p.query.Probe); err != nil {
		err = fmt.Errorf("compare with subject %s: %w", h.Subject, err)
	}
	return err
}
