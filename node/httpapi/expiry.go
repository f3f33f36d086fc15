package httpapi

import (
	"context"
	"fmt"
	"time"

	"facet/router"
)

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

// retentionDays reads how long a gallery keeps events; 0 is for ever.
func (o object) retentionDays() (int, error) {
	return o.integer("retentionDays", bounds{0, router.RetentionDaysMax}, 0)
}

// getExpiring serves GET subjects with expiresBefore: query length and after. It lists what
// would go and changes nothing.
func getExpiring(ctx context.Context, c *call, all map[string]string) (answer, error) {
	var p router.ExpiringPage
	var err error
	if p.Before, err = parseTime("expiresBefore", all["expiresBefore"]); err != nil {
		return answer{}, err
	}
	for _, name := range []string{"start", "dir"} {
		if _, ok := all[name]; ok {
			return answer{}, invalid("", fmt.Sprintf("A request has expiresBefore or %s, not both; what expires is listed soonest first.", name))
		}
	}
	if p.Length, err = wholeParameter(all, "length", bounds{1, router.ListLengthMax}, router.ListLengthMax); err != nil {
		return answer{}, err
	}
	p.After = all["after"]
	return listed(c.service.Expiring(ctx, c.access, p))
}
