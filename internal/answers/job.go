package answers

// Batch is a job that has begun.
//
//facet:frame
type Batch struct {
	BatchID ID `json:"batchId"`
}

// BulkRecord is the state of one registration of a job.
type BulkRecord struct {
	// The id of the record, not of a subject.
	ID       ID     `json:"id"`
	Filename string `json:"filename"`
	// How often it was tried.
	Attempts Digits `json:"attempts"`
	// Absent until a success.
	EventID ID `json:"eventId,omitzero"`
	// Absent until a success.
	SubjectID ID `json:"subjectId,omitzero"`
	// Empty until Status is "Processed".
	RegisterStatus string `json:"registerStatus" schema:"enum=|Success|Failed"`
	// Why it has failed. Empty otherwise.
	Reason string `json:"reason"`
	Status string `json:"status" schema:"enum=New|Processed"`
	// Attributes as a JSON text. Empty without a face.
	AttributesJSON string `json:"attributesJson"`
	Note           `json:",inline"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"ext min=1 max=19"`
}

// BulkPage is a page of a job's records.
//
//facet:schema BulkProgress
type BulkPage struct {
	BatchID ID           `json:"batchId"`
	Records []BulkRecord `json:"processed" schema:"max=1000"`
	// The paging id of the next page. Empty on the last one.
	LastEvaluatedKey string `json:"lastEvaluatedKey"`
}

// Job is how far a job is.
//
//facet:ext
type Job struct {
	BatchID ID `json:"batchId"`
	// Photos of the job.
	Total int `json:"total" schema:"min=1"`
	// Photos that were registered or have failed.
	Done        int  `json:"done" schema:"min=0"`
	LastUpdated Time `json:"lastUpdated"`
}

// Jobs are the newest jobs of a gallery, the one that changed last first.
//
//facet:frame
//facet:ext
type Jobs struct {
	Jobs []Job `json:"jobs" schema:"max=1000"`
}

// PairSubject is a subject of a pair.
//
//facet:ext
type PairSubject struct {
	ID   ID `json:"id"`
	Note `json:",inline"`
}

// Pair is two subjects that may show one person. Everybody who is in a pair with somebody is in one group.
//
//facet:ext
type Pair struct {
	// The group of the best pair is 1.
	Group    int           `json:"group" schema:"min=1"`
	Score    Score         `json:"score"`
	Subjects []PairSubject `json:"subjects" schema:"min=2 max=2"`
}

// DifferentPair is two subjects that are different people.
//
//facet:ext
type DifferentPair struct {
	Subjects []PairSubject `json:"subjects" schema:"min=2 max=2"`
}

// DifferentPairs is a page of the pairs of different people.
//
//facet:ext
type DifferentPairs struct {
	// All pairs that are kept, for some minutes also those of subjects that went.
	Total int             `json:"total" schema:"min=0 max=10000"`
	Pairs []DifferentPair `json:"pairs" schema:"max=1000"`
	// Cursor of the page that follows. The last page has none.
	Next Cursor `json:"next,omitzero"`
}

// Duplicates is how far the comparison of a gallery with itself is. After the end it has a page of the pairs.
//
//facet:ext
type Duplicates struct {
	BatchID   ID     `json:"batchId"`
	Status    string `json:"status" schema:"enum=Running|Done"`
	Threshold Score  `json:"threshold"`
	// Parts of the gallery.
	Total int `json:"total" schema:"min=1"`
	// Parts that were compared with the gallery.
	Done        int  `json:"done" schema:"min=0"`
	LastUpdated Time `json:"lastUpdated"`
	// How many pairs there are so far.
	Found int `json:"found" schema:"min=0"`
	// Some pairs are missing: there are more than about 100,000, or Reason says why. Raise the threshold, or merge and erase,
	// and compare again.
	Incomplete bool `json:"incomplete"`
	// Why parts could not be compared.
	Reason string `json:"reason,omitzero"`
	// How many pairs are left out because somebody said that they are different people. Absent without any.
	Different int `json:"different,omitzero" schema:"min=1"`
	// How many groups the pairs form: two subjects that are in a pair are in one group.
	Groups int    `json:"groups" schema:"min=0"`
	Pairs  []Pair `json:"pairs" schema:"max=1000"`
	// Cursor of the page that follows. The last page has none.
	Next Cursor `json:"next,omitzero"`
}
