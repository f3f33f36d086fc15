package tenant

import (
	"testing"
	"time"
)

func TestMomentIsTimeOrDuration(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"30d":                       now.AddDate(0, 0, 30),
		"36500d":                    now.AddDate(0, 0, daysMax),
		"12h":                       now.Add(12 * time.Hour),
		"1h30m":                     now.Add(90 * time.Minute),
		"2030-01-31":                time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC),
		"2030-01-31T12:00:00+01:00": time.Date(2030, 1, 31, 11, 0, 0, 0, time.UTC),
	} {
		if got, err := parseMoment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "36501d", "1.5d", "99999999999999999999d", "-2h", "0s", "30", "never", "2030-02-30", "2030-01-31T12:00:00"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
