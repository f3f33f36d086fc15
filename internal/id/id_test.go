package id

import (
	"errors"
	"testing"
)

func TestDerivedIDCarriesShard(t *testing.T) {
	t.Parallel()
	for _, shard := range []Shard{0, 1, 16, 255, 256, MaxShard} {
		u := Derive([]byte("key"), "subject", Operation{1, 2, 3}, shard)
		if got := u.Shard(); got != shard {
			t.Errorf("shard of %s: got %d, want %d", u, got, shard)
		}
		if u[6]>>4 != 8 || u[8]>>6 != 2 {
			t.Errorf("%s is not version 8 of the RFC 9562 variant", u)
		}
		back, err := Parse(u.String())
		if err != nil || back != u {
			t.Errorf("parse %s: got %s, %v", u, back, err)
		}
	}
}

// The inputs are key, purpose and operation.
func TestDerivedIDDependsOnInputs(t *testing.T) {
	t.Parallel()
	base := Derive([]byte("k"), "subject", Operation{1}, 3)
	for name, other := range map[string]UUID{
		"key":       Derive([]byte("l"), "subject", Operation{1}, 3),
		"purpose":   Derive([]byte("k"), "event", Operation{1}, 3),
		"operation": Derive([]byte("k"), "subject", Operation{2}, 3),
	} {
		if other == base {
			t.Errorf("another %s gives the same id %s", name, base)
		}
	}
	if again := Derive([]byte("k"), "subject", Operation{1}, 3); again != base {
		t.Errorf("same inputs: got %s, want %s", again, base)
	}
}

// Parse accepts only texts that String returns.
func FuzzParse(f *testing.F) {
	f.Add("01234567-89ab-8cde-8123-456789abcdef")
	f.Add("01234567-89AB-8cde-8123-456789abcdef")
	f.Add("0123456789ab8cde8123456789abcdef")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := Parse(s)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("parse %q: got %v, want ErrMalformed", s, err)
			}
			return
		}
		if u.String() != s {
			t.Fatalf("parse %q: gives %s", s, u)
		}
	})
}
