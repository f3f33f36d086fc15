package httpapi

import (
	"math"
	"strconv"
	"time"

	"facet/engine"
	"facet/internal/settings"
	"facet/router"
)

// The bodies of answers. Their fields have the names of the interface.

// attributesBody are face attributes: every value is a string (D12).
type attributesBody struct {
	FaceArea         rectBody  `json:"faceArea"`
	HeadArea         rectBody  `json:"headArea"`
	RightEyeCenter   pointBody `json:"rightEyeCenter"`
	LeftEyeCenter    pointBody `json:"leftEyeCenter"`
	FaceScore        string    `json:"faceScore"`
	FrontalFaceScore string    `json:"frontalFaceScore"`
	FaceQualityScore string    `json:"faceQualityScore"`
	FaceRoll         string    `json:"faceRoll"`
	FacePan          string    `json:"facePan"`
	FaceTilt         string    `json:"faceTilt"`
}

type rectBody struct {
	Left   string `json:"left"`
	Top    string `json:"top"`
	Right  string `json:"right"`
	Bottom string `json:"bottom"`
}

type pointBody struct {
	X string `json:"x"`
	Y string `json:"y"`
}

// wireAttributes returns the wire form of a.
func wireAttributes(a engine.Attributes) attributesBody {
	return attributesBody{
		FaceArea: wireRect(a.Face), HeadArea: wireRect(a.Head),
		RightEyeCenter: pointBody{pixel(a.RightEye.X), pixel(a.RightEye.Y)},
		LeftEyeCenter:  pointBody{pixel(a.LeftEye.X), pixel(a.LeftEye.Y)},
		FaceScore:      decimal(a.Score), FrontalFaceScore: decimal(a.Frontal), FaceQualityScore: decimal(a.Quality),
		FaceRoll: decimal(a.Roll), FacePan: decimal(a.Pan), FaceTilt: decimal(a.Tilt),
	}
}

// wireRect returns the wire form of r.
func wireRect(r engine.Rect) rectBody {
	return rectBody{Left: pixel(r.Left), Top: pixel(r.Top), Right: pixel(r.Right), Bottom: pixel(r.Bottom)}
}

// decimal formats v like %g with 6 digits. Minus zero becomes zero.
func decimal(v float32) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(float64(v), 'g', 6, 64)
}

// pixel formats the whole pixel nearest to v.
func pixel(v float32) string { return strconv.Itoa(int(math.Round(float64(v)))) }

// registeredBody is the answer to a registration. Version 1 has no event id.
type registeredBody struct {
	ID         string         `json:"id"`
	EventID    string         `json:"eventId,omitzero"`
	Attributes attributesBody `json:"attributes"`
	Ignored    []ignoredBody  `json:"ignoredFaces,omitzero"`
}

// ignoredBody is a face beside the one that was taken.
type ignoredBody struct {
	FaceArea         rectBody `json:"faceArea"`
	FaceQualityScore string   `json:"faceQualityScore"`
}

// ignored returns the wire form of ignored faces, nil for none and in version 1.
func (c *call) ignored(faces []engine.Attributes) []ignoredBody {
	if c.version == v1 {
		return nil
	}
	return wireIgnored(faces)
}

// wireIgnored returns the wire form of ignored faces, nil for none.
func wireIgnored(faces []engine.Attributes) []ignoredBody {
	var text []ignoredBody
	for _, a := range faces {
		text = append(text, ignoredBody{wireRect(a.Face), decimal(a.Quality)})
	}
	return text
}

// listBody is the answer to a listing of subjects. Message is set when the list is
// empty.
type listBody struct {
	Message  string      `json:"message,omitzero"`
	Subjects []entryBody `json:"subjects"`
	Total    int         `json:"total"`
	Next     string      `json:"next,omitzero"`
}

type entryBody struct {
	ID          string `json:"id"`
	EventID     string `json:"eventId"`
	Status      string `json:"status"`
	LastUpdated string `json:"lastUpdated"`
	Expires     string `json:"expires,omitzero"`
	noteBody    `json:",inline"`
}

// wireEntry returns the wire form of an entry of the subject list.
func wireEntry(e router.Entry) entryBody {
	status := "A"
	if e.Deleted {
		status = "D"
	}
	text := entryBody{ID: e.Subject.String(), EventID: e.Event.String(), Status: status, LastUpdated: wireTime(e.Updated), noteBody: wireNote(e.Note)}
	if !e.Expires.IsZero() {
		text.Expires = wireTime(e.Expires)
	}
	return text
}

// wireTime formats t as ISO 8601 with milliseconds and the offset +00:00 (D13).
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// mergedBody answers a merge with the subject that stays.
type mergedBody struct {
	ID string `json:"id"`
}

// eventsBody is the answer to a listing of a subject's events.
type eventsBody struct {
	ID     string      `json:"id"`
	Events []eventBody `json:"events"`
	noteBody
}

type eventBody struct {
	ID      string `json:"id"`
	Expires string `json:"expires,omitzero"`
}

// facesBody is the answer to an extraction.
type facesBody struct {
	Faces []faceBody `json:"faces"`
}

// faceBody is a face of an extraction. Measures and Defects are there if asked for.
type faceBody struct {
	Attributes attributesBody  `json:"attributes"`
	Measures   *measuresBody   `json:"measures,omitzero"`
	Defects    []engine.Defect `json:"defects,omitzero"`
}

// verifiedBody is the answer to a verification. ID is set when a subject was
// verified.
type verifiedBody struct {
	ID       string       `json:"id,omitzero"`
	Score    int          `json:"score"`
	Probes   []probedBody `json:"probes,omitzero"`
	noteBody `json:",inline"`
	Ignored  []ignoredBody `json:"ignoredFaces,omitzero"`
}

// searchBody is the answer to a search. Message is set when nothing was found.
type searchBody struct {
	Message    string         `json:"message,omitzero"`
	Candidates []candidate    `json:"candidates"`
	Attributes attributesBody `json:"attributes"`
	Ignored    []ignoredBody  `json:"ignoredFaces,omitzero"`
	Probes     []probedBody   `json:"probes,omitzero"`
	Receipt    *receiptBody   `json:"receipt,omitzero"`
	// Doubtful are candidates in the review band of the application.
	Doubtful []candidate `json:"doubtful,omitzero"`
}

// probedBody is one photo of a probe of several.
type probedBody struct {
	Attributes attributesBody `json:"attributes"`
	Ignored    []ignoredBody  `json:"ignoredFaces,omitzero"`
}

// probed returns the photos of a probe of several.
func (c *call) probed(photos []router.Probed) (list []probedBody) {
	for _, p := range photos {
		list = append(list, probedBody{wireAttributes(p.Attributes), c.ignored(p.Ignored)})
	}
	return list
}

// matchesBody is a page of matches.
type matchesBody struct {
	Candidates []matchBody   `json:"candidates"`
	Next       string        `json:"next,omitzero"`
	Ignored    []ignoredBody `json:"ignoredFaces,omitzero"`
}

// matchBody is a subject with its best events. EventCount counts all its events at or above
// the threshold.
type matchBody struct {
	candidate
	EventCount int `json:"eventCount"`
}

// candidate is a candidate of a search. Version 1 has no events.
type candidate struct {
	ID           string           `json:"id"`
	Score        int              `json:"score"`
	SubjectScore int              `json:"subjectScore,omitzero"`
	Events       []candidateEvent `json:"events,omitzero"`

	noteBody `json:",inline"`
}

type candidateEvent struct {
	ID    string `json:"id"`
	Score int    `json:"score"`
}

// wireCandidate returns the wire form of c for clients of version v.
func wireCandidate(c router.Candidate, v version) candidate {
	w := candidate{ID: c.Subject.String(), Score: c.Score}
	if v == v1 {
		return w
	}
	w.SubjectScore, w.noteBody = c.SubjectScore, wireNote(c.Note)
	w.Events = make([]candidateEvent, len(c.Events))
	for i, e := range c.Events {
		w.Events[i] = candidateEvent{ID: e.Event.String(), Score: e.Score}
	}
	return w
}

// galleryBody is a gallery. Count, Applications and APIKey are set where the
// interface shows them.
type galleryBody struct {
	ID               string `json:"id"`
	settings.Gallery `json:",inline"`
	Count            *int               `json:"count,omitzero"`
	Applications     *[]applicationLine `json:"applications,omitzero"`
	APIKey           string             `json:"apiKey,omitzero"`
}

// wireGallery returns the fields that every view of a gallery has.
func wireGallery(g router.Gallery) galleryBody {
	return galleryBody{ID: g.ID.String(), Gallery: g.Gallery}
}

type galleriesBody struct {
	Galleries []galleryBody `json:"galleries"`
}

// applicationLine is an application in a listing.
type applicationLine struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"apiKey"`
}

// wireLines returns the wire form of a list of applications.
func wireLines(list []router.Application) []applicationLine {
	lines := make([]applicationLine, len(list))
	for i, a := range list {
		lines[i] = applicationLine{ID: a.ID.String(), Name: a.Name, APIKey: a.APIKey}
	}
	return lines
}

type applicationsBody struct {
	Applications []applicationLine `json:"applications"`
}

// applicationBody is an application. Its name and description come before its key, as in the interface.
type applicationBody struct {
	ID                   string `json:"id"`
	Name                 string `json:"name"`
	Description          string `json:"description"`
	APIKey               string `json:"apiKey"`
	settings.Application `json:",inline"`
}

// wireApplication returns the wire form of a.
func wireApplication(a router.Application) applicationBody {
	return applicationBody{a.ID.String(), a.Name, a.Description, a.APIKey, a.Reviewed()}
}

type healthBody struct {
	Status string `json:"status"`
}
