package cluster

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/internal/must"
)

func someToken(t testing.TB) Token {
	t.Helper()
	token, err := NewToken([]string{"10.0.0.1:7423", "n1.example.org:7423"}, sha256.Sum256([]byte("ca")), time.Now().Add(time.Hour))
	must.Do(t, err)
	return token
}

func TestTokenReadsBack(t *testing.T) {
	t.Parallel()
	want := someToken(t)
	got, err := ParseToken("  " + want.String() + "\n")
	must.Do(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if someToken(t).Secret == want.Secret {
		t.Error("two tokens have one secret")
	}
}

func TestIncompleteTokenIsExplained(t *testing.T) {
	t.Parallel()
	text := someToken(t).String()
	for i := range text {
		if _, err := ParseToken(text[:i]); !errors.Is(err, ErrToken) {
			t.Errorf("the first %d characters: got %v", i, err)
		}
	}
	other := []byte(text)
	other[len(other)-9] ^= 1
	for _, bad := range []string{string(other), text + "A", "facet-join-" + text, "SWMTKN-1-x"} {
		if _, err := ParseToken(bad); !errors.Is(err, ErrToken) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestTokenNamesFewAddresses(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, addressesMax + 1} {
		if _, err := NewToken(make([]string, n), [32]byte{}, time.Now()); err == nil {
			t.Errorf("%d addresses: no error", n)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(someToken(f).String())
	f.Add("facet-join-AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || !cmp.Equal(token, again) {
			t.Errorf("%q: %+v, again %+v, %v", text, token, again, err)
		}
	})
}
