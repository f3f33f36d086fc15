package traffic

import (
	"encoding/base64"
	"fmt"
	"time"
)

// Options describe the work of the clients. Zero fields take the defaults.
type Options struct {
	// Size is the size of the large gallery. If Step is not 0, the gallery grows by
	// Step up to SizeMax.
	Size, Step, SizeMax int
	// Ballast is how many people are enrolled at first and never changed.
	Ballast int
	// Pace is a client's pause between two operations. It may not be 0 in virtual
	// time, where all work takes no time.
	Pace time.Duration
	// Expiring reports whether the large gallery has a retention and persons have a time to expire:
	// most long after the attack, some after seconds.
	Expiring bool
	// Photos show one face each, each of another person. Without them an image is a
	// text, and its template comes from the text's hash.
	Photos [][]byte
}

// image returns a face as a request's body contains it: its photo, or a text.
func (o Options) image(face string) string {
	raw := []byte(face)
	if photos := o.Photos; len(photos) > 0 {
		var n int
		_, _ = fmt.Sscanf(face, hotForm, &n) // any other face has the first photo
		raw = photos[n]
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// crowd returns the number of people that all workers share.
func (o Options) crowd() int {
	if n := len(o.Photos); n > 0 {
		return n
	}
	return hotPeople
}

// body returns the body of a write: a face with its tag.
func (o Options) body(p plan) map[string]any {
	m := map[string]any{"face": o.image(p.face)}
	if o.Expiring && p.call%2 == 0 {
		m["expires"] = wireTime(time.Now().Add(lateTime))
	}
	switch p.tag {
	case "":
		m["tags"] = []string{}
	case keepTag:
	default:
		m["tags"] = []string{p.tag}
	}
	return m
}
