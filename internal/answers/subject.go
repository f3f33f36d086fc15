package answers

// Note is what a client has stored with a subject.
type Note struct {
	// The client's own id of the subject. Absent without one.
	ExternalID ExternalID `json:"externalId,omitzero" schema:"ext"`
	// The object that the client keeps with the subject. Absent without one.
	UserData UserData `json:"userData,omitzero" schema:"ext"`
}

// Registered is the answer to a registration or an update.
type Registered struct {
	ID ID `json:"id"`
	// Absent in version 1.
	EventID    ID         `json:"eventId,omitzero" schema:"v1.1"`
	Attributes Attributes `json:"attributes"`
	// Other faces on the photo, the largest first. Absent unless multipleFaces of the application is dominant and the
	// photo has several faces.
	IgnoredFaces []IgnoredFace `json:"ignoredFaces,omitzero" schema:"ext min=1 max=19"`
}

// Entry is one event of the subject list. A subject is there once for each. A deleted entry has no external id and no
// user data.
//
//facet:schema SubjectEntry
type Entry struct {
	ID      ID `json:"id"`
	EventID ID `json:"eventId"`
	// Active is "A". Deleted or replaced is "D": the entry stays in the list until its slot is used again.
	Status      Status `json:"status" schema:"enum=A|D"`
	LastUpdated Time   `json:"lastUpdated"`
	// When the event expires: the earlier of its own time and the end of the gallery's retentionDays. Absent if never.
	Expires Time `json:"expires,omitzero" schema:"ext"`
	Note    `json:",inline"`
}

// SubjectList is a part of the subject list.
//
//facet:none NoSubjects The window has no entry.
type SubjectList struct {
	Subjects []Entry `json:"subjects" schema:"min=1 max=1000"`
	// Entries of the whole list, deleted ones included.
	Total int `json:"total" schema:"min=0"`
	// Cursor of the page that follows. Every node takes it. The last page has none.
	Next Cursor `json:"next,omitzero" schema:"ext"`
}

// Event is an event of a subject.
type Event struct {
	ID ID `json:"id"`
	// When the event expires: the earlier of its own time and the end of the gallery's retentionDays. Absent if never.
	Expires Time `json:"expires,omitzero" schema:"ext"`
}

// Subject is a subject with its active events, in the order of registration.
//
//facet:schema EventList
type Subject struct {
	ID     ID      `json:"id"`
	Events []Event `json:"events"`
	Note   `json:",inline"`
}

// Merged is the answer to a merge: the subject that stays.
//
//facet:ext
type Merged struct {
	ID ID `json:"id"`
}

// Health is whether the node serves.
//
//facet:frame
type Health struct {
	Status string `json:"status" schema:"enum=OK"`
}

// GalleryRoom is how full a gallery is.
//
//facet:ext
type GalleryRoom struct {
	ID   ID     `json:"id"`
	Name string `json:"name"`
	Size int    `json:"size" schema:"min=1"`
	// Active events.
	Count int `json:"count" schema:"min=0"`
}

// Whoami is what an access key may do.
//
//facet:ext
type Whoami struct {
	Role string `json:"role" schema:"enum=admin|biometric|read-only|enrol-only|search-only|reviewer|auditor"`
	// The person or device that has the key. Absent if nobody is named.
	Holder string `json:"holder,omitzero"`
	// The only galleries that the key may use. Absent for all of the tenant.
	Galleries []ID `json:"galleries,omitzero"`
	// Absent if the key does not end.
	Ends Time `json:"ends,omitzero"`
	// The gallery of the request's API key. Absent without one.
	Gallery *GalleryRoom `json:"gallery,omitzero"`
}
