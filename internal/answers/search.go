package answers

// Scored is an event and its similarity to the probe.
type Scored struct {
	ID    ID    `json:"id"`
	Score Score `json:"score"`
}

// Candidate is a subject that a probe may show.
type Candidate struct {
	ID ID `json:"id"`
	// The score of its best event, or SubjectScore if that is larger.
	Score Score `json:"score"`
	// The score of the subject's own template, in a gallery with subjectTemplates. Absent if the search used none. If it
	// alone reaches the threshold, Events has the best event with its lower score.
	SubjectScore Score `json:"subjectScore,omitzero" schema:"ext"`
	// Best first. Absent in version 1.
	Events []Scored `json:"events,omitzero" schema:"v1.1 min=1 max=50"`
	Note   `json:",inline"`
}

// SearchResult is what a search found: the candidates, best first, equal scores by subject id.
//
//facet:schema Candidates
//facet:none NoCandidates Nobody reaches the threshold.
type SearchResult struct {
	Candidates []Candidate `json:"candidates" schema:"min=1 max=50"`
	// The face of the probe. Of several photos it is the first one's.
	Attributes Attributes `json:"attributes"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"ext min=1 max=19"`
	// The faces of several photos, in the order of the request. Absent if the probe is one photo.
	Probes []Probed `json:"probes,omitzero" schema:"ext min=2 max=10"`
	// Absent if not asked for.
	Receipt *Receipt `json:"receipt,omitzero" schema:"ext"`
	// Subjects whose scores are in the application's review band: no matches. Best first, of the events that the limit
	// leaves. Absent if there is none.
	Doubtful []Candidate `json:"doubtful,omitzero" schema:"ext min=1 max=50"`
}

// Receipt is what a search went through. It was complete if Shards has each shard of List once, and the numbers of each
// add up. A later receipt of the gallery has no lower epoch, and no lower index
// for a shard.
//
//facet:ext
type Receipt struct {
	// Number of the gallery's list of shards. It rises when the gallery gets more.
	Epoch int `json:"epoch" schema:"min=1"`
	// The shards of that epoch.
	List   []int          `json:"list" schema:"min=1 max=4096"`
	Shards []ShardReceipt `json:"shards" schema:"max=4096"`
}

// ShardReceipt is the statement of one shard. Searched and the numbers of LeftOut add up to Active.
//
//facet:ext
type ShardReceipt struct {
	Shard int `json:"shard"`
	// The index in the shard's log at which it was searched.
	Index uint64 `json:"index" schema:"min=0"`
	// How many active events the gallery has in the shard at that index.
	Active int `json:"active" schema:"min=0"`
	// How many of them the search compared, or excluded by a bound of their score.
	Searched int `json:"searched" schema:"min=0"`
	// Events that were not searched, by reason. The only reason is "tags": events without any of the tags of the search.
	LeftOut LeftOut `json:"leftOut"`
}

// LeftOut are the events that a search left out, by reason.
//
//facet:ext
type LeftOut struct {
	// Events without any of the tags of the search.
	Tags int `json:"tags" schema:"min=0"`
}

// Match is a subject at or above the threshold, and its best 50 events that are.
//
//facet:ext
type Match struct {
	ID ID `json:"id"`
	// The score of its best event, or SubjectScore if that is larger.
	Score Score `json:"score"`
	// The score of the subject's own template, in a gallery with subjectTemplates. Absent if there is none. If it alone
	// reaches the threshold, Events has the best event with its lower score.
	SubjectScore Score    `json:"subjectScore,omitzero"`
	Events       []Scored `json:"events" schema:"min=1 max=50"`
	// How many of its events are at or above the threshold.
	EventCount int `json:"eventCount" schema:"min=0"`
	Note       `json:",inline"`
}

// MatchPage is a page of matches, in the order of ids. A page may be empty and not the last one.
//
//facet:schema Matches
//facet:ext
type MatchPage struct {
	Matches []Match `json:"candidates" schema:"max=200"`
	// Cursor of the page that follows. The last page has none.
	Next Cursor `json:"next,omitzero"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"min=1 max=19"`
}
