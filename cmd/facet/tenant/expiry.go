package tenant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"facet.internal/client"
)

// never is the value of --expires that takes the time away.
const never = "never"

// momentHelp has examples of moments.
const momentHelp = "30d, 12h, 2030-01-31 or 2030-01-31T12:00:00Z"

// moment is the value of a flag: a time, or how long from now. It implements pflag.Value.
type moment struct {
	time.Time
	text string
}

// String returns the value as it was given.
func (m *moment) String() string { return m.text }

// Type returns the name of the value in the help.
func (m *moment) Type() string { return "time" }

// Set parses a value.
func (m *moment) Set(text string) (err error) {
	m.text = text
	m.Time, err = parseMoment(text, time.Now())
	return err
}

// momentOrNever is a moment that may be never, too.
type momentOrNever struct {
	moment
	never bool
}

// Set parses a value.
func (m *momentOrNever) Set(text string) error {
	if m.never = text == never; m.never {
		m.moment = moment{text: text}
		return nil
	}
	return m.moment.Set(text)
}

// daysMax is the most days from now, as long as the longest retention.
const daysMax = 36500

// errMoment is returned for a text that is no moment.
var errMoment = errors.New("it is no time: give " + momentHelp)

// parseMoment parses a time, a day, which begins at midnight UTC, or how long from now.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > daysMax {
			return time.Time{}, errMoment
		}
		return now.Add(time.Duration(n) * 24 * time.Hour), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, errMoment
	}
	return now.Add(d), nil
}

// expiresAt returns when something expires, for people.
func expiresAt(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return at(t)
}

// kept returns for people how long a gallery keeps photos.
func kept(days int) string {
	switch days {
	case 0:
		return "always"
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}

// expiring iterates over the photos that expire before a time, soonest first. total gets the
// number of all of them.
func (s *session) expiring(ctx context.Context, before time.Time, total *int) iter.Seq2[client.Entry, error] {
	return func(yield func(client.Entry, error) bool) {
		for p := (client.Page{Length: client.PageLengthMax}); ; {
			list, err := s.Expiring(ctx, before, p)
			if err != nil {
				yield(client.Entry{}, err)
				return
			}
			if p.After == "" {
				*total = list.Total
			}
			for _, e := range list.Subjects {
				if !yield(e, nil) {
					return
				}
			}
			if p.After = list.Next; p.After == "" {
				return
			}
		}
	}
}
