package httpapi

import "time"

// timeMax is the most characters of a time.
const timeMax = 40

// expires reads when an event expires. The zero time is a missing member. In an update an
// empty text removes the time that the event has.
func (o object) expires() (at time.Time, remove bool, err error) {
	text, ok, err := o.text("expires", timeMax)
	switch {
	case err != nil || !ok:
		return time.Time{}, false, err
	case text == "":
		return time.Time{}, true, nil
	}
	at, err = parseTime("expires", text)
	return at, false, err
}

// parseTime parses a time of ISO 8601 with an offset, to the millisecond.
func parseTime(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UnixMilli() <= 0 {
		return time.Time{}, invalid("", name+" must be a time of ISO 8601 with seconds and an offset.")
	}
	return t.Truncate(time.Millisecond).UTC(), nil
}
