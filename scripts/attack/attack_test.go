package main

import (
	"testing"
	"time"
)

func TestTableShowsShortTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{412_340: "410µs", 12_345_678: "12.35ms"} {
		if got := short(d).String(); got != want {
			t.Errorf("%s is shown as %s, want %s", d, got, want)
		}
	}
}
