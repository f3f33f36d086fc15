package main

import (
	"strings"
	"testing"
	"time"
)

// signed is a request as a client signs it.
const signed = "PUT /v1.1/tags/a%2Fb?x=1&y=2 HTTP/1.1\r\nhost: h:1\r\nx-api-key: k  k\r\nContent-Length: 2\r\n" +
	"Authorization: AWS4-HMAC-SHA256 Credential=c, SignedHeaders=host;x-api-key, Signature=s\r\n\r\n{}"

// The judge of mutations must neither excuse a change nor cry at a spelling.
func TestMeaningJudgesChanges(t *testing.T) {
	t.Parallel()
	was, ok := meaningOf([]byte(signed))
	if !ok {
		t.Fatal("the request is none")
	}
	f := func(old, replacement string, want bool) {
		t.Helper()
		if !strings.Contains(signed, old) {
			t.Fatalf("no %q", old)
		}
		is, ok := meaningOf([]byte(strings.Replace(signed, old, replacement, 1)))
		if got := ok && is.equal(was); got != want {
			t.Errorf("%q for %q: the same meaning %v, want %v", replacement, old, got, want)
		}
	}
	f("x=1&y=2", "y=2&x=1", true)
	f("x=1", "%78=%31", true)
	f("%2F", "%2f", true)
	f("host: h:1", "HOST:\th:1 ", true)
	f("k  k", "k k", true)
	f("PUT ", "\r\nPUT ", true)
	f("HTTP/1.1\r\n", "HTTP/1.1\n", false)
	f("k  k\r\n", "k  k\n", false)
	f(", Signature", ",Signature", true)
	f("\r\nContent", "\r\naccept: z\r\nContent", true)
	f("\r\nContent", "\r\naccept: y\r\naccept: z\r\nContent", true)
	f("\r\nContent", "\r\nhost: h:1\r\nContent", false)
	f("PUT ", "POST ", false)
	f("%2F", "/", false)
	f("%2F", "%252F", false)
	f("x=1", "x=2", false)
	f("h:1", "h:2", false)
	f("k  k", "kk", false)
	f("{}", "{]", false)
	f("{}", "{", false)
	f("Signature=s", "Signature=S", false)
	f(";x-api-key", "", false)
	f("x-api-key: ", "x-api-key: k\r\nx-api-key: ", false)
}

func TestTableShowsShortTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{412_340: "410µs", 12_345_678: "12.35ms"} {
		if got := short(d).String(); got != want {
			t.Errorf("%s is shown as %s, want %s", d, got, want)
		}
	}
}
