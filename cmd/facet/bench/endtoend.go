package bench

import (
	"fmt"

	"facet/engine/accuracy"
)

// EndToEnd has the rates of persons who send their first photograph to be enrolled and search with
// all others. A photograph that was not acquired counts against them, unlike in Identification.
type EndToEnd struct {
	// NotEnrolled is the share of first photographs that were not acquired.
	NotEnrolled accuracy.Rate `json:"failureToEnrol"`
	// Rank1 is the share of searches that were acquired and whose first candidate is the
	// person, of all searches of persons with several photographs. Equal scores count against them.
	Rank1 accuracy.Rate `json:"rank1"`
}

// endToEnd measures EndToEnd. The samples are in the order of persons.
func (m *measured) endToEnd() *EndToEnd {
	var persons, failed, searches, found int64
	var references, probes []int
	reference := map[int]int{}
	for i, s := range m.samples {
		if i > 0 && m.samples[i-1].Person == s.Person {
			probes = append(probes, i)
			continue
		}
		persons++
		if !s.Acquired {
			failed++
			continue
		}
		reference[s.Person] = i
		references = append(references, i)
	}
	for _, p := range probes {
		searches++
		own, enrolled := reference[m.samples[p].Person]
		if enrolled && m.samples[p].Acquired && m.first(p, own, references) {
			found++
		}
	}
	return &EndToEnd{accuracy.Share(failed, persons), accuracy.Share(found, searches)}
}

// first reports whether own is more similar to probe than every other reference.
func (m *measured) first(probe, own int, references []int) bool {
	score := m.compare(probe, own)
	for _, r := range references {
		if r != own && m.compare(probe, r) >= score {
			return false
		}
	}
	return true
}

// line returns the rates in words.
func (r *EndToEnd) line(faces string, qualityMin float64) string {
	return fmt.Sprintf("End to end, --faces %s and enrolled from quality %v on: failure to enrol %v (%d of %d first photographs); rank 1 in %v of %s searches with the others",
		faces, qualityMin, r.NotEnrolled, r.NotEnrolled.Events, r.NotEnrolled.Trials, r.Rank1, number(r.Rank1.Trials))
}
