package router

import (
	"facet/engine"
	"facet/internal/id"
)

// SearchQuery asks which subjects of a gallery the probe may show.
type SearchQuery struct {
	Access    Access
	Probe     Probe
	Threshold int // 0 to ThresholdMax, inclusive
	Limit     int // 1 to SearchLimitMax, in units of Count
	Tags      []string
	// Count is the unit of Limit.
	Count Counting
	// Receipt asks for a receipt.
	Receipt bool
	// Audited asks for what an audit record says of the search: notes of the candidates, and a receipt
	// if all nodes give one.
	Audited bool
}

// Counting is the unit in which the limit of a search counts.
type Counting uint8

const (
	// CountEvents limits the number of events. They are grouped by subject
	// afterwards (version 1.1).
	CountEvents Counting = iota
	// CountSubjects limits the number of subjects. Each comes with its best event
	// (version 1).
	CountSubjects
)

// Candidate is a subject that the probe may show. Candidates are sorted by score,
// best first, then by id.
type Candidate struct {
	Subject id.Subject
	// Score is the larger of SubjectScore and the best event's.
	Score int
	// SubjectScore is that of the subject's own template, or 0 if the search used none.
	SubjectScore int
	// Events are the matching events, best first. If only the subject's own template reaches the
	// threshold, it is the best event with its lower score.
	Events []CandidateEvent
	// Note is the subject's, or nil. A search that counts subjects and is not audited has none.
	Note *Note
}

// CandidateEvent is a matching event of a candidate.
type CandidateEvent struct {
	Event id.Event
	Score int
}

// SearchResult is a complete candidate list. It may be empty.
type SearchResult struct {
	Candidates []Candidate
	Attributes engine.Attributes // of the probe, or its first photo
	// Ignored are other faces on the probe, the largest first.
	Ignored []engine.Attributes
	// Probes has each photo of a probe of several. Ignored has no faces then.
	Probes []Probed
	Searched
	// Doubtful are candidates whose scores are in the application's review band. Only a search that counts
	// events has them.
	Doubtful []Candidate
}

// Searched says how a search went, for its audit record.
type Searched struct {
	// Generation is that of the gallery, and Model the one that made the probe's template.
	Generation uint32
	Model      id.Model
	// Receipt is nil unless the search asks for one or is audited, and all nodes give one.
	Receipt *Receipt
}

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

// ProbesMin and ProbesMax are the least and the most photos of a probe of several.
const (
	ProbesMin = 2
	ProbesMax = 10
)

// Probe is the image bytes of one photo, or of up to ProbesMax photos of one person.
type Probe [][]byte

// Probed is the face that was taken of one photo of several, and the other faces on it.
type Probed struct {
	Attributes engine.Attributes
	Ignored    []engine.Attributes // the largest first
}

// Receipt states what a search went through. List and Shards come from different places, and so do the
// counts of a shard, so that a search that was not complete shows:
//
//   - Shards has each shard of List once;
//   - Searched and LeftOut of each shard add up to its Active.
//
// No later receipt of the gallery has a lower epoch, or a lower index for a shard.
type Receipt struct {
	// Epoch numbers the gallery's lists of shards. List is that list, by meta.
	Epoch uint32
	List  []id.Shard
	// Shards has the statements of the shards that answered, in the order of their answers.
	Shards []ShardReceipt
}

// ShardReceipt is the statement of one shard.
type ShardReceipt struct {
	Shard id.Shard `cbor:"1,keyasint"`
	// Index is the index in the group's log at which the shard was searched, and Active the number of
	// active events there.
	Index  uint64 `cbor:"2,keyasint"`
	Active int    `cbor:"3,keyasint"`
	// Searched counts the events that were compared, or excluded by their bounds, and LeftOut those
	// without any of the search's tags.
	Searched int `cbor:"4,keyasint"`
	LeftOut  int `cbor:"5,keyasint"`
}
