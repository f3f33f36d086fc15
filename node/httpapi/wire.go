package httpapi

import (
	"math"
	"strconv"
	"time"

	"facet/engine"
	"facet/internal/answers"
	"facet/router"
)

// noSubjects answers a window of the subject list without an entry.
type noSubjects struct {
	Message             string `json:"message"`
	answers.SubjectList `json:",inline"`
}

// noCandidates answers a search that found nothing.
type noCandidates struct {
	Message              string `json:"message"`
	answers.SearchResult `json:",inline"`
}

// wireAttributes returns the wire form of a.
func wireAttributes(a engine.Attributes) answers.Attributes {
	return answers.Attributes{
		FaceArea: wireRect(a.Face), HeadArea: wireRect(a.Head),
		RightEyeCenter: answers.Point{X: pixel(a.RightEye.X), Y: pixel(a.RightEye.Y)},
		LeftEyeCenter:  answers.Point{X: pixel(a.LeftEye.X), Y: pixel(a.LeftEye.Y)},
		FaceScore:      decimal(a.Score), FrontalFaceScore: decimal(a.Frontal), FaceQualityScore: decimal(a.Quality),
		FaceRoll: decimal(a.Roll), FacePan: decimal(a.Pan), FaceTilt: decimal(a.Tilt),
	}
}

// wireRect returns the wire form of r.
func wireRect(r engine.Rect) answers.Rectangle {
	return answers.Rectangle{Left: pixel(r.Left), Top: pixel(r.Top), Right: pixel(r.Right), Bottom: pixel(r.Bottom)}
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

// ignored returns the wire form of ignored faces, nil for none and in version 1.
func (c *call) ignored(faces []engine.Attributes) []answers.IgnoredFace {
	if c.version == v1 {
		return nil
	}
	return wireIgnored(faces)
}

// wireIgnored returns the wire form of ignored faces, nil for none.
func wireIgnored(faces []engine.Attributes) []answers.IgnoredFace {
	var text []answers.IgnoredFace
	for _, a := range faces {
		text = append(text, answers.IgnoredFace{FaceArea: wireRect(a.Face), FaceQualityScore: decimal(a.Quality)})
	}
	return text
}

// wireEntry returns the wire form of an entry of the subject list.
func wireEntry(e router.Entry) answers.Entry {
	status := "A"
	if e.Deleted {
		status = "D"
	}
	text := answers.Entry{ID: e.Subject.String(), EventID: e.Event.String(), Status: status, LastUpdated: wireTime(e.Updated), Note: wireNote(e.Note)}
	if !e.Expires.IsZero() {
		text.Expires = wireTime(e.Expires)
	}
	return text
}

// wireTime formats t as ISO 8601 with milliseconds and the offset +00:00 (D13).
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// probed returns the photos of a probe of several.
func (c *call) probed(photos []router.Probed) (list []answers.Probed) {
	for _, p := range photos {
		list = append(list, answers.Probed{Attributes: wireAttributes(p.Attributes), IgnoredFaces: c.ignored(p.Ignored)})
	}
	return list
}

// wireCandidate returns the wire form of c for clients of version v.
func wireCandidate(c router.Candidate, v version) answers.Candidate {
	w := answers.Candidate{ID: c.Subject.String(), Score: c.Score}
	if v == v1 {
		return w
	}
	w.SubjectScore, w.Note = c.SubjectScore, wireNote(c.Note)
	w.Events = make([]answers.Scored, len(c.Events))
	for i, e := range c.Events {
		w.Events[i] = answers.Scored{ID: e.Event.String(), Score: e.Score}
	}
	return w
}

// wireGallery returns the fields that every view of a gallery has.
func wireGallery(g router.Gallery) answers.Gallery {
	return answers.Gallery{ID: g.ID.String(), Gallery: g.Gallery}
}

// wireLines returns the wire form of a list of applications.
func wireLines(list []router.Application) []answers.ApplicationEntry {
	lines := make([]answers.ApplicationEntry, len(list))
	for i, a := range list {
		lines[i] = answers.ApplicationEntry{ID: a.ID.String(), Name: a.Name, APIKey: a.APIKey}
	}
	return lines
}

// wireApplication returns the wire form of a.
func wireApplication(a router.Application) answers.Application {
	return answers.Application{ID: a.ID.String(), Name: a.Name, Description: a.Description, APIKey: a.APIKey, Application: a.Reviewed()}
}
