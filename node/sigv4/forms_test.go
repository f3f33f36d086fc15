package sigv4

import (
	"crypto/sha256"
	"testing"

	"facet/internal/must"
)

func TestPlusInQueryMeansWhatWasSigned(t *testing.T) {
	t.Parallel()
	f := func(sent, signed, want string) {
		t.Helper()
		r := signedAs("/a?"+sent, "h", form{"/a", signed, "h"})
		if err := verify(verifier, r, "", signedAt); err != nil {
			t.Errorf("%s signed as %s: %v", sent, signed, err)
			return
		}
		c, err := verifier.Parse(r, signedAt)
		must.Do(t, err)
		must.Do(t, c.Verify("SECRET", sha256.Sum256(nil)))
		if got := c.Query(); got != want {
			t.Errorf("%s signed as %s: read as %s, want %s", sent, signed, got, want)
		}
	}
	f("x=a+b", "x=a+b", "x=a+b")
	f("x=a+b", "x=a%20b", "x=a+b")
	f("x=a+b", "x=a%2Bb", "x=a%2Bb")
	f("x=a%2Bb", "x=a%2Bb", "x=a%2Bb")
	f("x=a%20b", "x=a%20b", "x=a%20b")
	f("y=c&x=a+b", "x=a+b&y=c", "y=c&x=a+b")                 // botocore
	f("y=c%2bd&x=a+b", "x=a%20b&y=c%2Bd", "y=c%2bd&x=a+b")   // a space and a plus sign
	f("y=c%2bd&x=a+b", "x=a%2Bb&y=c%2Bd", "y=c%2bd&x=a%2Bb") // two plus signs
	f("y+=c&x=d", "x=d&y%2B=c", "y%2B=c&x=d")                // a key
	if err := verify(verifier, signedAs("/a+b", "h", form{"/a%20b", "", "h"}), "", signedAt); err == nil {
		t.Error("a plus sign of a path counts as a space")
	}
	if err := verify(verifier, signedAs("/a?y+=c", "h", form{"/a", "y%20=c", "h"}), "", signedAt); err == nil {
		t.Error("a plus sign of a key counts as a space")
	}
}

func TestHostIsTriedWithDroppedPort(t *testing.T) {
	t.Parallel()
	v := New(Config{Region: "ap-southeast-2", Service: "execute-api", Ports: []string{"7420"}})
	f := func(sent, signed string, want bool) {
		t.Helper()
		if err := verify(v, signedAs("/", sent, form{"/", "", signed}), "", signedAt); (err == nil) != want {
			t.Errorf("%s signed as %s: %v", sent, signed, err)
		}
	}
	f("h", "h:443", true)
	f("h", "h:7420", true)
	f("[::1]", "[::1]:7420", true)
	f("h:443", "h", true)
	f("h:7420", "h:443", false)
	f("h", "h:8443", false)
	f("h", "g:443", false)
}
