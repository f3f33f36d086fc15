package table

import "testing"

func TestShortenTakesTheMiddle(t *testing.T) {
	t.Parallel()
	f := func(limit int, want string) {
		t.Helper()
		if got := Shorten("größe-12", limit); got != want {
			t.Errorf("in %d: %q, want %q", limit, got, want)
		}
	}
	f(8, "größe-12")
	f(7, "grö…-12")
	f(6, "grö…12")
}
