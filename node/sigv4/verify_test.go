package sigv4

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
)

var (
	signedAt = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	verifier = New(Config{Region: "ap-southeast-2", Service: "execute-api"})
)

// example returns a signed request.
func example(t testing.TB, dialect Dialect, dateHeader string) Request {
	t.Helper()
	r := Request{
		Method: "POST", Target: "/v1.1/tags/a%20b%2Fc?b=2&a=1",
		Headers: []Header{{"Host", "facet.test:8443"}, {"Content-Type", "application/json"}, {"X-Api-Key", "key"}},
	}
	more, err := Signer{
		Region: "ap-southeast-2", Service: "execute-api", Dialect: dialect, DateHeader: dateHeader,
		AccessKey: "AKID", SecretKey: "SECRET",
	}.Sign(r, sha256.Sum256([]byte("body")), signedAt)
	must.Do(t, err)
	r.Headers = append(r.Headers, more...)
	return r
}

// verify checks r over a body at a time. The explanation of the outcome must agree with it.
func verify(v *Verifier, r Request, body string, now time.Time) error {
	err := check(v, r, body, now)
	if wrong := disagreement(v.Explain(Sent{Request: r, Body: []byte(body), Secret: "SECRET"}, now), err); wrong != "" {
		return errors.New(wrong)
	}
	return err
}

// check is verify without an explanation.
func check(v *Verifier, r Request, body string, now time.Time) error {
	c, err := v.Parse(r, now)
	if err != nil {
		return err
	}
	return c.Verify("SECRET", sha256.Sum256([]byte(body)))
}

// wantMessage fails unless err is a refusal with this message.
func wantMessage(t *testing.T, what string, err error, want string) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Message != want {
		t.Errorf("%s: got %v, want message %q", what, err, want)
	}
}

// changed returns r with fn applied to the value of a header.
func changed(r Request, name string, fn func(string) string) Request {
	r.Headers = slices.Clone(r.Headers)
	for i, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			r.Headers[i].Value = fn(h.Value)
		}
	}
	return r
}

// with is r with a header more.
func with(r Request, name, value string) Request {
	r.Headers = append(slices.Clone(r.Headers), Header{name, value})
	return r
}

// without is r without a header.
func without(r Request, name string) Request {
	r.Headers = slices.DeleteFunc(slices.Clone(r.Headers), func(h Header) bool { return strings.EqualFold(h.Name, name) })
	return r
}

// The vector is get-vanilla of the test suite that AWS publishes.
func TestSignatureMatchesSpec(t *testing.T) {
	t.Parallel()
	r := Request{Method: "GET", Target: "/", Headers: []Header{{"Host", "example.amazonaws.com"}}}
	more, err := Signer{
		Region: "us-east-1", Service: "service", DateHeader: AmzDate,
		AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
	}.Sign(r, sha256.Sum256(nil), time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	must.Do(t, err)
	want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
		"SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
	if got := more[1].Value; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Both dialects work with both date headers.
func TestSignedRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	strict := New(Config{Region: "ap-southeast-2", Service: "execute-api", Canonical: Strict})
	for _, dialect := range []Dialect{AWS4, Cloud4} {
		for _, name := range []string{CloudDate, AmzDate} {
			r := example(t, dialect, name)
			for _, v := range []*Verifier{verifier, strict} {
				if err := verify(v, r, "body", signedAt); err != nil {
					t.Errorf("%s %s: %v", dialect.token(), name, err)
				}
			}
		}
	}
}

func TestWindowIsFiveMinutesInclusive(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	f := func(later time.Duration, want string) {
		t.Helper()
		err := verify(verifier, r, "body", signedAt.Add(later))
		if want == "" {
			if err != nil {
				t.Errorf("%v later: %v", later, err)
			}
			return
		}
		wantMessage(t, later.String()+" later", err, want)
	}
	f(0, "")
	f(4*time.Minute+59*time.Second, "")
	f(5*time.Minute, "")
	f(5*time.Minute+time.Nanosecond, "Signature expired: 20260506T070809Z is now earlier than 20260506T070809Z (20260506T071309Z - 5 min.)")
	f(5*time.Minute+time.Second, "Signature expired: 20260506T070809Z is now earlier than 20260506T070810Z (20260506T071310Z - 5 min.)")
	f(-4*time.Minute-59*time.Second, "")
	f(-5*time.Minute, "")
	f(-5*time.Minute-time.Second, "Signature not yet current: 20260506T070809Z is still later than 20260506T070808Z (20260506T070308Z + 5 min.)")
	if err := verify(verifier, r, "body", signedAt.In(time.FixedZone("", 10*3600))); err != nil {
		t.Errorf("server clock in another zone: %v", err)
	}
}

func TestAnyChangeIsRefused(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	f := func(what string, r Request) {
		t.Helper()
		wantMessage(t, what, verify(verifier, r, "body", signedAt), messageMismatch)
	}
	wantMessage(t, "body", verify(verifier, r, "Body", signedAt), messageMismatch)
	q := r
	q.Method = "PUT"
	f("method", q)
	for _, target := range []string{
		"/v1.1/tags/a%20b%2Fd?b=2&a=1", "/v1.1/tags/a%20b/c?b=2&a=1", "/v1.1/tags/a%2520b%252Fc?b=2&a=1",
		"/v1.1/tags/a%20b%2Fc?b=2&a=2", "/v1.1/tags/a%20b%2Fc?b=2", "/v1.1/tags/a%20b%2Fc", "/v1.1/tags/a%20b%2Fc?b=2&a=1&c=",
		"/v1.1/tags/a%20b%2Fc?b=2&a=%zz", "/V1.1/tags/a%20b%2Fc?b=2&a=1",
	} {
		q = r
		q.Target = target
		f(target, q)
	}
	for target, key := range map[string]string{"/v1.1/tags/a%20b%2Fc?b=2&a=1&a=1": "a", "/v1.1/tags/a%20b%2Fc?b=2&a=1&%61=1": "%61"} {
		q = r
		q.Target = target
		wantMessage(t, target, verify(verifier, q, "body", signedAt), "The query has the parameter "+key+" twice: send it once.")
	}
	f("host", changed(r, "host", func(string) string { return "evil.test:8443" }))
	f("port", changed(r, "host", func(string) string { return "facet.test:8444" }))
	f("header", changed(r, "x-api-key", func(string) string { return "kex" }))
	f("header dropped", without(r, "x-api-key"))
	f("header doubled", with(r, "x-api-key", "key"))
	f("host doubled", with(r, "host", "facet.test:8443"))
	f("Authorization doubled", with(r, "authorization", r.Headers[4].Value))
	f("both date headers", with(r, AmzDate, "20260506T070809Z"))
	f("other copy of the date", with(r, CloudDate, "20260506T070808Z"))
	f("date", changed(r, CloudDate, func(string) string { return "20260506T070808Z" }))
	f("session token", with(r, "X-Amz-Security-Token", "t"))
	f("presigned query too", Request{Method: "GET", Target: "/?X-Amz-Signature=0", Headers: r.Headers})
	f("unsigned body stated", with(r, "x-amz-content-sha256", "UNSIGNED-PAYLOAD"))
	if err := verify(verifier, with(r, CloudDate, "20260506T070809Z"), "body", signedAt); err != nil {
		t.Errorf("equal copy of the date: %v", err)
	}
	if err := verify(verifier, with(r, "accept", "x"), "body", signedAt); err != nil {
		t.Errorf("a header more that is not signed: %v", err)
	}
}

func TestWrongBodyHashIsRefused(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("body"))
	for stated, ok := range map[string]bool{
		fmt.Sprintf("%x", sum): true, fmt.Sprintf("%X", sum): false, "UNSIGNED-PAYLOAD": false,
		"STREAMING-AWS4-HMAC-SHA256-PAYLOAD": false, "": false,
	} {
		r := Request{Method: "POST", Target: "/", Headers: []Header{{"Host", "h"}, {"X-Cloud-Content-Sha256", stated}}}
		// The signature is right, over the true hash and over this header.
		more, err := Signer{Region: "ap-southeast-2", Service: "execute-api", AccessKey: "AKID", SecretKey: "SECRET"}.Sign(r, sum, signedAt)
		must.Do(t, err)
		r.Headers = append(r.Headers, more...)
		if err := verify(verifier, r, "body", signedAt); (err == nil) != ok {
			t.Errorf("%q: %v", stated, err)
		}
	}
}

func TestEachDigitOfSignatureCounts(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	for i := range 64 {
		other := changed(r, "authorization", func(s string) string {
			at := strings.LastIndexByte(s, '=') + 1 + i
			digit := "0"
			if s[at] == '0' {
				digit = "1"
			}
			return s[:at] + digit + s[at+1:]
		})
		wantMessage(t, fmt.Sprintf("digit %d", i), verify(verifier, other, "body", signedAt), messageMismatch)
	}
}

func TestMalformedHeaderIsRefused(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	f := func(old, replacement, want string) {
		t.Helper()
		broken := changed(r, "authorization", func(s string) string {
			if !strings.Contains(s, old) {
				t.Fatalf("no %q in %q", old, s)
			}
			return strings.Replace(s, old, replacement, 1)
		})
		wantMessage(t, fmt.Sprintf("%q for %q", replacement, old), verify(verifier, broken, "body", signedAt), want)
	}
	f("AWS4-HMAC-SHA256", "CLOUD4-HMAC-SHA256", messageScope) // the terminator belongs to the other dialect
	f("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512", messageMissing)
	f("AWS4-HMAC-SHA256", "Bearer", messageMissing)
	f("ap-southeast-2", "us-east-1", messageScope)
	f("execute-api", "s3", messageScope)
	f("aws4_request", "cloud4_request", messageScope)
	f("aws4_request", "aws4_request/more", messageScope)
	f("/20260506/", "/20260505/", messageScope)
	f("AKID/", "/", messageScope)
	f("AKID", strings.Repeat("K", accessKeyMax+1), messageScope)
	f("Credential=", "Credentials=", messageMissing)
	f("Credential=", "Credential=x, Credential=", messageMissing)
	f(", Signature=", ", Signature=, Signature=", messageMissing)
	f("SignedHeaders=content-type;host;x-api-key;x-cloud-date", "SignedHeaders=", messageMissing)
	f("content-type;host;", "host;content-type;", messageMismatch)
	f("content-type;host;", "content-type;host;host;", messageMismatch)
	f("content-type;host;", "Content-Type;host;", messageMismatch)
	f("content-type;host;", "content-type;", messageMismatch)
	f(";x-cloud-date", "", messageMismatch)
	f("content-type;", "absent;content-type;", messageMismatch)
	f("content-type;", strings.Repeat("a;", signedHeadersMax)+"content-type;", messageMismatch)
	f("Signature=", "Signature=0", messageMismatch)
	upper := changed(r, "authorization", func(s string) string {
		cut := strings.LastIndexByte(s, '=') + 1
		return s[:cut] + strings.ToUpper(s[cut:])
	})
	wantMessage(t, "upper-case signature", verify(verifier, upper, "body", signedAt), messageMismatch)
	long := changed(r, "authorization", func(s string) string { return s + strings.Repeat(" ", authorizationMax) })
	wantMessage(t, "long", verify(verifier, long, "body", signedAt), messageMissing)
	wantMessage(t, "none", verify(verifier, without(r, "authorization"), "body", signedAt), messageMissing)
	wantMessage(t, "no date", verify(verifier, without(r, CloudDate), "body", signedAt), messageMissing)
	for _, date := range []string{"", "20260506T070809", "2026-05-06T07:08:09Z", "20260506T070809.0Z", "20260532T070809Z", "20260506T070809+00"} {
		bad := changed(r, CloudDate, func(string) string { return date })
		wantMessage(t, "date "+date, verify(verifier, bad, "body", signedAt), messageMissing)
	}
}

func TestUnknownKeyIsNotRevealed(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	c, err := verifier.Parse(r, signedAt)
	must.Do(t, err)
	if c.AccessKey != "AKID" || len(c.Signature) != 64 {
		t.Errorf("claim: %q %q", c.AccessKey, c.Signature)
	}
	wantMessage(t, "no secret", c.Verify("", sha256.Sum256([]byte("body"))), messageMismatch)
	// A client that signs with the dummy secret is refused as well.
	more, err := Signer{Region: "ap-southeast-2", Service: "execute-api", AccessKey: "NOBODY", SecretKey: dummySecret}.
		Sign(Request{Method: "GET", Target: "/", Headers: []Header{{"Host", "h"}}}, sha256.Sum256(nil), signedAt)
	must.Do(t, err)
	c, err = verifier.Parse(Request{Method: "GET", Target: "/", Headers: append([]Header{{"Host", "h"}}, more...)}, signedAt)
	must.Do(t, err)
	wantMessage(t, "dummy secret", c.Verify("", sha256.Sum256(nil)), messageMismatch)
}

// signedAs returns a GET of target at a host, signed in any canonical form.
func signedAs(target, host string, as form) Request {
	r := Request{Method: "GET", Target: target, Headers: []Header{{"Host", host}, {CloudDate, "20260506T070809Z"}}}
	hash := as.hash(r.Method, []string{"host", CloudDate}, []string{"", "20260506T070809Z"}, emptyHash)
	sc := scope{AWS4, "20260506", "ap-southeast-2", "execute-api"}
	return with(r, "Authorization", "AWS4-HMAC-SHA256 Credential=AKID/"+sc.String()+
		",SignedHeaders=host;x-cloud-date,Signature="+sc.derive(mac, "SECRET").sign(mac, sc, "20260506T070809Z", hash))
}

// The accepted form is the specification's.
func TestStrictTakesOneFormOnly(t *testing.T) {
	t.Parallel()
	strict := New(Config{Region: "ap-southeast-2", Service: "execute-api", Canonical: Strict})
	f := func(target string, as form, inTolerant, inStrict bool) {
		t.Helper()
		r := signedAs(target, "h:8443", as)
		if err := verify(verifier, r, "", signedAt); (err == nil) != inTolerant {
			t.Errorf("%s signed as %v, tolerant: %v", target, as, err)
		}
		if err := verify(strict, r, "", signedAt); (err == nil) != inStrict {
			t.Errorf("%s signed as %v, strict: %v", target, as, err)
		}
	}
	f("/a%20b?b=1&a=2", form{"/a%2520b", "a=2&b=1", "h:8443"}, true, true)
	f("/a%20b?b=1&a=2", form{"/a%20b", "a=2&b=1", "h:8443"}, true, false)
	f("/a%20b?b=1&a=2", form{"/a%2520b", "b=1&a=2", "h:8443"}, true, false)
	f("/a%20b?b=1&a=2", form{"/a%2520b", "a=2&b=1", "h"}, true, false)
	f("/a%20b?b=1&a=2", form{"/a%20b", "b=1&a=2", "h"}, true, false)
	f("/a?b=:&a=%c3", form{"/a", "a=%C3&b=%3A", "h:8443"}, true, true)
	f("/a?b=:&a=%c3", form{"/a", "a=%c3&b=:", "h:8443"}, true, false) // botocore
	f("/a%20b", form{"/a b", "", "h:8443"}, false, false)
	// Signed for /a%20b encoded twice; sent as another path that is this text.
	f("/a%2520b", form{"/a%2520b", "", "h:8443"}, false, false)
	f("/a%2520b", form{"/a%252520b", "", "h:8443"}, true, true)
}

func TestConfiguredHeadersMustBeSigned(t *testing.T) {
	t.Parallel()
	v := New(Config{Region: "ap-southeast-2", Service: "execute-api", MustSign: []string{"x-api-key"}})
	r := example(t, AWS4, CloudDate)
	if err := verify(v, r, "body", signedAt); err != nil {
		t.Errorf("signed: %v", err)
	}
	bare, err := Signer{Region: "ap-southeast-2", Service: "execute-api", AccessKey: "AKID", SecretKey: "SECRET"}.
		Sign(Request{Method: "GET", Target: "/", Headers: []Header{{"Host", "h"}}}, sha256.Sum256(nil), signedAt)
	must.Do(t, err)
	q := Request{Method: "GET", Target: "/", Headers: append([]Header{{"Host", "h"}}, bare...)}
	if err := verify(v, q, "", signedAt); err != nil {
		t.Errorf("absent: %v", err)
	}
	q = with(q, "X-Api-Key", "key")
	wantMessage(t, "present and not signed", verify(v, q, "", signedAt), "The header x-api-key must be signed when it is sent: name it in SignedHeaders.")
	if err := verify(verifier, q, "", signedAt); err != nil {
		t.Errorf("not signed, not configured: %v", err)
	}
}

func TestSignRefusesBadRequests(t *testing.T) {
	t.Parallel()
	f := func(s Signer, r Request) {
		t.Helper()
		if got, err := s.Sign(r, sha256.Sum256(nil), signedAt); err == nil {
			t.Errorf("signed %v as %v", r, got)
		}
	}
	host := []Header{{"Host", "h"}}
	f(Signer{}, Request{Method: "GET", Target: "/"})
	f(Signer{DateHeader: "date"}, Request{Method: "GET", Target: "/", Headers: host})
	f(Signer{}, Request{Method: "GET", Target: "/", Headers: append(host, Header{"X-Amz-Date", "x"})})
	f(Signer{}, Request{Method: "GET", Target: "/", Headers: append(host, Header{"authorization", "x"})})
	f(Signer{}, Request{Method: "GET", Target: "/?a=1&a=2", Headers: host})
}

func TestRefusalsRevealNothing(t *testing.T) {
	t.Parallel()
	r := changed(example(t, AWS4, CloudDate), "x-api-key", func(string) string { return "private-value" })
	err := verify(verifier, r, "body", signedAt)
	for _, word := range []string{"SECRET", "private-value", "facet.test", "AKID"} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%q tells %q", err, word)
		}
	}
}

func TestKeyCacheIsBounded(t *testing.T) {
	t.Parallel()
	var cache keyCache
	aws := scope{AWS4, "20260506", "ap-southeast-2", "execute-api"}
	cloud := aws
	cloud.dialect = Cloud4
	for i := range 3*cachedKeysMax + 7 {
		secret := fmt.Sprint(i % (2*cachedKeysMax + 3))
		cache.add(nameOf(secret, aws), signingKey{byte(i)})
		if got, ok := cache.find(nameOf(secret, aws)); !ok || got != (signingKey{byte(i)}) {
			t.Fatalf("key of %s: got %x, %v", secret, got, ok)
		}
		if _, ok := cache.find(nameOf(secret, cloud)); ok {
			t.Fatal("both dialects share a key")
		}
		if len(cache.young) > cachedKeysMax || len(cache.old) > cachedKeysMax {
			t.Fatalf("%d and %d keys cached, at most %d", len(cache.young), len(cache.old), cachedKeysMax)
		}
	}
}

// The MACs of a request are counted: of a known access key in use and not in use, with
// a wrong signature and with a wrong stated hash, and of an unknown access key.
func TestRefusalsTakeTheSameMACs(t *testing.T) {
	t.Parallel()
	r := example(t, AWS4, CloudDate)
	stating := r
	stating.Headers = append(slices.Clone(r.Headers[:3]), Header{"X-Cloud-Content-Sha256", strings.Repeat("0", 64)})
	more, err := Signer{Region: "ap-southeast-2", Service: "execute-api", AccessKey: "AKID", SecretKey: "SECRET"}.
		Sign(stating, sha256.Sum256([]byte("body")), signedAt)
	must.Do(t, err)
	stating.Headers = append(stating.Headers, more...)
	// count returns the MACs of verifying q with secret, after the key SECRET was used.
	count := func(q Request, secret string, used bool) (n int) {
		t.Helper()
		v := New(verifier.cfg)
		if used {
			must.Do(t, verify(v, r, "body", signedAt))
		}
		c, err := v.Parse(q, signedAt)
		must.Do(t, err)
		v.mac = func(key []byte, text string) signingKey { n++; return mac(key, text) }
		for range 2 { // the second refusal finds what the first one left
			n = 0
			wantMessage(t, "a bad claim", c.Verify(secret, sha256.Sum256([]byte("body"))), messageMismatch)
		}
		return n
	}
	wrong := changed(r, "authorization", func(s string) string { return s[:len(s)-64] + strings.Repeat("0", 64) })
	want := count(wrong, "", false)
	for what, got := range map[string]int{
		"unknown, while another is in use": count(wrong, "", true),
		"known, in use":                    count(wrong, "SECRET", true),
		"known, not in use":                count(wrong, "SECRET", false),
		"known, wrong stated hash":         count(stating, "SECRET", true),
		"unknown, wrong stated hash":       count(stating, "", true),
	} {
		if got != want {
			t.Errorf("%s: %d MACs, an unknown access key %d", what, got, want)
		}
	}
}

func TestQueryIsSortedByKeyNotByPair(t *testing.T) {
	t.Parallel()
	f := func(raw, want string) {
		t.Helper()
		pairs, err := readPairs(raw)
		must.Do(t, err)
		for i := range pairs {
			pairs[i] = pairs[i].normalise()
		}
		if got := sortedQuery(pairs); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	f("", "")
	f("a=1&a-b=2", "a=1&a-b=2")
	f("b&a", "a=&b=")
	f("a=x+y%2b", "a=x%2By%2B")
	f("%61=1&b=%7E~", "a=1&b=~~")
	f("=v", "=v")
}

func FuzzVerifyRefusesUnsignedRequests(f *testing.F) {
	r := example(f, AWS4, CloudDate)
	f.Add("POST", r.Target, r.Headers[0].Value, r.Headers[3].Value, r.Headers[4].Value, "body")
	f.Add("GET", "/?a=%", "h", "20260506T070809Z", "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=;;, Signature=", "")
	f.Add("GET", "?%zz&&=", "[::1]:80", "", "CLOUD4-HMAC-SHA256 ,,", "")
	f.Fuzz(func(t *testing.T, method, target, host, date, authorization, body string) {
		q := Request{Method: method, Target: target, Headers: []Header{
			{"Host", host}, r.Headers[1], r.Headers[2], {CloudDate, date}, {"Authorization", authorization},
		}}
		if check(verifier, q, body, signedAt) != nil {
			return
		}
		// Only the example, or a request that means the same, may pass.
		path, query, _ := strings.Cut(target, "?")
		pairs, err := readPairs(query)
		if err != nil || len(pairs) != 2 || method != "POST" || body != "body" || date != r.Headers[3].Value ||
			path != "/v1.1/tags/a%20b%2Fc" || canonicalValue([]string{host}) != "facet.test:8443" {
			t.Fatalf("accepted %q %q %q %q %q", method, target, host, date, body)
		}
	})
}
