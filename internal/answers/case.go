package answers

// Verdict is what the holder of an access key has said of a case.
//
//facet:ext
type Verdict struct {
	Verdict string `json:"verdict" schema:"enum=same|different"`
	// Absent if the key names nobody.
	Holder string `json:"holder,omitzero" schema:"min=1 max=128"`
	Time   Time   `json:"time"`
}

// Case is a verification with a score in the review band of its application. It holds no photo.
//
//facet:ext
type Case struct {
	ID ID `json:"id"`
	// All verdicts of a case say "same" or "different", two people disagree if it is "disputed", and the verdicts did not
	// come in time if it has "expired". If it is "erased", the subject is gone, and only id, application and times are left.
	State         string     `json:"state" schema:"enum=open|same|different|disputed|expired|erased"`
	ApplicationID ID         `json:"applicationId"`
	SubjectID     ID         `json:"subjectId,omitzero"`
	ExternalID    ExternalID `json:"externalId,omitzero"`
	Score         Score      `json:"score,omitzero"`
	Threshold     Score      `json:"threshold,omitzero"`
	// The client's name of the probe. Absent without one.
	Reference string `json:"reference,omitzero" schema:"min=1 max=128"`
	Created   Time   `json:"created"`
	// When an open case closes by itself. Absent if it is closed.
	Expires Time `json:"expires,omitzero"`
	// When the case was closed. Absent if it is open.
	Closed Time `json:"closed,omitzero"`
	// How many verdicts close the case.
	VerdictsNeeded int `json:"verdictsNeeded,omitzero" schema:"min=1 max=2"`
	VerdictsGiven  int `json:"verdictsGiven" schema:"min=0 max=2"`
	// An open case shows the caller's own only, so that the second person decides alone.
	Verdicts []Verdict `json:"verdicts" schema:"max=2"`
	// The photo link of the gallery: with the external id it leads to the subject's photo, with Reference in its place to
	// the probe. Absent in a list, which has it once.
	PhotoLink string `json:"photoLink,omitzero" schema:"min=1 max=1024"`
}

// CasePage is a page of cases, the oldest first.
//
//facet:schema Cases
//facet:ext
type CasePage struct {
	// All cases of the wanted state, for some minutes also those of subjects that went.
	Total int    `json:"total" schema:"min=0 max=10000"`
	Cases []Case `json:"cases" schema:"max=1000"`
	// The photo link of the gallery. Absent if it has none.
	PhotoLink string `json:"photoLink,omitzero" schema:"min=1 max=1024"`
	// Cursor of the page that follows. The last page has none.
	Next Cursor `json:"next,omitzero"`
}
