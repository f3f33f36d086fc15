package searches

import (
	"slices"

	"facet/internal/id"
	"facet/router"
	"facet/shard"
	"facet/shard/scan"
)

// BestHits joins the lists of the shards and keeps the best limit events. Each list already is the best
// limit of its shard. With CountSubjects a list has one event for each subject, so limiting events limits
// subjects.
func BestHits(lists [][]NotedHit, limit int) []NotedHit {
	hits := slices.Concat(lists...)
	slices.SortFunc(hits, func(a, b NotedHit) int { return scan.Compare(a.Hit, b.Hit) })
	return hits[:min(limit, len(hits))]
}

// NotesOf returns the sealed notes of the subjects of hits.
func NotesOf(hits []NotedHit) map[id.Subject]shard.Active {
	notes := map[id.Subject]shard.Active{}
	for _, h := range hits {
		if len(h.Noted.Note) > 0 {
			notes[h.Subject] = h.Noted
		}
	}
	return notes
}

// divide returns the candidates of sorted hits, and those of which no hit reaches the threshold. The hits of
// a candidate below the threshold are left out.
func divide(hits []NotedHit, threshold int) (candidates, doubtful []router.Candidate) {
	below := slices.IndexFunc(hits, func(h NotedHit) bool { return h.Rank() < threshold })
	if below < 0 {
		return CandidatesOf(hits), nil
	}
	candidates = CandidatesOf(hits[:below])
	doubtful = CandidatesOf(slices.DeleteFunc(hits[below:], func(h NotedHit) bool {
		return slices.ContainsFunc(candidates, func(c router.Candidate) bool { return c.Subject == h.Subject })
	}))
	return candidates, doubtful
}

// CandidatesOf groups sorted hits by subject.
func CandidatesOf(hits []NotedHit) []router.Candidate {
	candidates := []router.Candidate{}
	for _, h := range hits {
		event := router.CandidateEvent{Event: h.Event, Score: h.Score}
		at := slices.IndexFunc(candidates, func(c router.Candidate) bool { return c.Subject == h.Subject })
		if at >= 0 {
			candidates[at].Events = append(candidates[at].Events, event)
			continue
		}
		candidates = append(candidates, router.Candidate{
			Subject: h.Subject, Score: h.Rank(), SubjectScore: h.SubjectScore, Events: []router.CandidateEvent{event},
		})
	}
	return candidates
}
