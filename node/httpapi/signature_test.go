package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"facet/node/sigv4"
)

// messageMismatch is the answer to every forged request (D4).
const messageMismatch = "The request signature we calculated does not match the signature you provided."

// apiKey is the header with an API key of tenantA.
var apiKey = sigv4.Header{Name: "x-api-key", Value: keyOf("app")}

// refused sends raw bytes and expects 403 with this message.
func (r *running) refused(what, raw, message string) {
	r.t.Helper()
	a := r.exchange(raw, "POST")
	if want := fmt.Sprintf(`{"message":%q}`, message); a.status != 403 || a.body != want {
		r.t.Errorf("%s: got %d %s, want 403 %s", what, a.status, a.body, want)
	}
}

// The clock may differ in both directions.
func TestSignatureIsValidForFiveMinutes(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	f := func(off time.Duration, want string) {
		t.Helper()
		a := r.send(signed{as: "reader", method: "GET", target: "/v1.1/health", at: testNow.Add(off)})
		if want == "" && a.status != 200 || want != "" && (a.status != 403 || !strings.Contains(a.body, want)) {
			t.Errorf("signed %v off: got %d %s, want %q", off, a.status, a.body, want)
		}
	}
	f(-4*time.Minute-59*time.Second, "")
	f(-5*time.Minute, "")
	f(-5*time.Minute-time.Second, "Signature expired: 20260506T070308Z is now earlier than 20260506T070309Z (20260506T070809Z - 5 min.)")
	f(4*time.Minute+59*time.Second, "")
	f(5*time.Minute, "")
	f(5*time.Minute+time.Second, "Signature not yet current: 20260506T071310Z is still later than 20260506T071309Z (20260506T070809Z + 5 min.)")
}

// The request was changed between the client and the server.
func TestChangedRequestHasNoEffect(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	raw := signed{
		as: "biometric", method: "POST", target: "/v1.1/subjects?a=1&b=2", headers: []sigv4.Header{apiKey, {Name: "Idempotency-Key", Value: "k1"}},
		body: `{"face":"aW1nIGFubmE="}`,
	}.raw(t)
	f := func(what, old, replacement string) {
		t.Helper()
		if strings.Count(raw, old) == 0 {
			t.Fatalf("no %q in %q", old, raw)
		}
		r.refused(what, strings.Replace(raw, old, replacement, 1), messageMismatch)
	}
	f("a byte of the body", "aW1nIGFubmE", "aW1nIGFubmF")
	f("the method", "POST ", "PUT ")
	f("the path", "/v1.1/subjects", "/v1/subjects")
	f("a longer path", "/v1.1/subjects", "/v1.1/subjects/x")
	f("a value of the query", "a=1", "a=2")
	f("a parameter more", "a=1&", "a=1&c=3&")
	f("a parameter less", "a=1&", "")
	f("the host", "facet.test", "facet.evil")
	f("a signed header", "k1", "k2")
	f("another access key", "Credential=biometric", "Credential=reader")
	f("another tenant's access key", "Credential=biometric", "Credential=other")
	f("an unknown access key", "Credential=biometric", "Credential=nobody")
	r.refused("another region", strings.Replace(raw, "/ap-southeast-2/", "/us-east-1/", 1), "Credential should be scoped to a valid region and service.")
	r.refused("another service", strings.Replace(raw, "/execute-api/", "/s3/", 1), "Credential should be scoped to a valid region and service.")
	r.refused("another day", strings.Replace(raw, "/20260506/", "/20260505/", 1), "Credential should be scoped to a valid region and service.")
	if n := r.service.registered.Load(); n != 0 {
		t.Errorf("%d changed requests had an effect", n)
	}
	if a := r.exchange(raw, "POST"); a.status != 201 {
		t.Errorf("the request as it was signed: %d %s", a.status, a.body)
	}
}

// The test replays a captured write with a key that its signature does not cover,
// which would make it another write, or with a condition.
func TestUnsignedHeaderIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	for _, target := range []string{"/v1/subjects", "/v1.1/subjects"} {
		captured := signed{as: "biometric", method: "POST", target: target, headers: []sigv4.Header{apiKey}, body: `{"face":"aW1nIGFubmE="}`}.raw(t)
		for header, name := range map[string]string{"Idempotency-Key: k1\r\n": "idempotency-key", "idempotency-key: \r\n": "idempotency-key", "If-Match: *\r\n": "if-match"} {
			a := r.exchange(strings.Replace(captured, "\r\n", "\r\n"+header, 1), "POST")
			want := fmt.Sprintf(`{"message":"The header %s must be signed when it is sent: name it in SignedHeaders.","errorCode":1001,"errorType":"InvalidRequest"}`, name)
			if a.status != 400 || a.body != want {
				t.Errorf("%s %s: got %d %s, want 400 %s", target, header, a.status, a.body, want)
			}
		}
		if a := r.exchange(captured, "POST"); a.status != 201 {
			t.Errorf("%s as it was signed: %d %s", target, a.status, a.body)
		}
	}
}

func TestAPIKeyWorksForItsTenantOnly(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	for _, target := range []string{"/v1.1/subjects", "/v1.1/tags"} {
		q := signed{as: "other", method: "GET", target: target, headers: []sigv4.Header{apiKey}}
		r.refused("another tenant's API key for "+target, q.raw(t), "Forbidden")
		q.headers = nil
		r.refused("no API key for "+target, q.raw(t), "Forbidden")
	}
}

// A known access key with a wrong signature asks the cluster as often, and passes the
// gate as often, as an unknown one.
func TestUnknownKeyTakesTheWayOfAKnownOne(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	cost := func(what, as string) {
		t.Helper()
		q := signed{as: "reader", method: "GET", target: "/v1.1/health"}
		raw := strings.Replace(q.raw(t), "Credential=reader", "Credential="+as, 1)
		r.server.accessKeys.mu.Lock()
		r.server.accessKeys.opens = time.Time{}
		r.server.accessKeys.mu.Unlock()
		asked := r.service.questions.Load()
		r.refused(what, raw, messageMismatch)
		r.server.accessKeys.mu.Lock()
		defer r.server.accessKeys.mu.Unlock()
		if asked = r.service.questions.Load() - asked; asked != 1 || r.server.accessKeys.opens.IsZero() {
			t.Errorf("%s: %d questions to the cluster, gate passed: %v", what, asked, !r.server.accessKeys.opens.IsZero())
		}
	}
	cost("unknown", "nobody")
	cost("known, not seen lately", "admin")
	cost("known, seen lately", "admin")
	asked := r.service.questions.Load()
	if a := r.send(signed{as: "reader", method: "GET", target: "/v1.1/health"}); a.status != 200 || r.service.questions.Load() != asked {
		t.Errorf("a good request: %d, %d questions to the cluster", a.status, r.service.questions.Load()-asked)
	}
}
